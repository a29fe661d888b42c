"""The scripts about departments and the gates between them: resolve-departments, dept-orchestrate,
dept-gate, integration-gate and its pre-check.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from yolo_fs.compat.script_io import (
    Folder,
    Row,
    ScriptInput,
    UsageError,
    object_of,
    parse,
    print_json,
    read_object,
    require_folder,
    says,
    warn,
)
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import YoloError, safe
from yolo_fs.evidence.facts import section
from yolo_fs.phase.waves import Routing, routing, waves
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, PREFIXES, WORKING, WORKING_NAMES, Dept
from yolo_fs.protocol.gates import (
    GATE_BY_NAME,
    GATE_TIMEOUT_MINUTES,
    GATES,
    INTEGRATION_CHECKS,
    SENTINELS,
    Gate,
    Need,
)

CONFIG = ".yolo-planning/config.json"
STATUS = ".dept-status-"
SUMMARY = ".summary.jsonl"
RESULTS = "test-results.jsonl"
_OTHERS = tuple(row for row in WORKING if not row.is_default)
KEYS = (
    "multi_dept",
    "workflow",
    "active_depts",
    "leads_to_spawn",
    "spawn_order",
    "owner_active",
    *(f"{row.prefix.rstrip('-')}_active" for row in _OTHERS),
)


def resolve_departments(arguments: Sequence[str]) -> int:
    """`resolve-departments [CONFIG]`: active departments and the Leads to spawn, as `key=value`
    lines.

    A configuration that cannot be read gives the backend alone, with neither workflow nor flags.
    """
    try:
        route = routing(read_object(arguments[0] if arguments else CONFIG) or {})
        warn(route.warning)
        values = _values(route)
    except YoloError as error:
        warn(error.message)
        unknown = dict.fromkeys(("workflow", *KEYS[-len(_OTHERS) :]), "")
        values = [
            unknown.get(key, value) for key, value in zip(KEYS, _values(routing({})), strict=True)
        ]
    for key, value in zip(KEYS, values, strict=True):
        print(f"{key}={value}")
    return 0


def active_departments(route: Routing) -> tuple[Dept, ...]:
    """Return the default department and those whose flags are on, for any workflow."""
    return tuple(row.name for row in WORKING if row.is_default or row.name in route.active)


def _values(route: Routing) -> Sequence[str]:
    several = _word(is_on=route.has_several)
    return (
        several,
        route.workflow,
        ",".join(active_departments(route)),
        "|".join(",".join(row.lead for row in group) for group in route.groups),
        route.order,
        several,
        *(_word(is_on=row.name in route.active) for row in _OTHERS),
    )


def _word(*, is_on: bool) -> str:
    return "true" if is_on else "false"


def dept_orchestrate(arguments: Sequence[str]) -> int:
    """`dept-orchestrate CONFIG PHASE_DIR`: the waves of departments and the gates between them."""
    if len(arguments) < 2:
        raise UsageError("Usage: dept-orchestrate.sh CONFIG_PATH PHASE_DIR")
    config = read_object(arguments[0])
    team_mode = _choose_team_mode(config)
    route = routing(config or {})
    warn(route.warning)
    print_json(
        {
            "team_mode": team_mode,
            "waves": [
                {
                    "id": number,
                    "depts": [_spawned(dept, team_mode) for dept in wave.departments],
                    "gate": wave.gate,
                }
                for number, wave in enumerate(waves(route), 1)
            ],
            "timeout_minutes": GATE_TIMEOUT_MINUTES,
        }
    )
    return 0


def _choose_team_mode(config: Mapping[str, Any] | None) -> str:
    """Return how agents are started: as teammates if the host supports it and it is not
    disabled.
    """
    if config is None or config.get("team_mode", "auto") not in ("auto", "teammate"):
        return "task"
    is_able = os.environ.get("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "") != ""
    return "teammate" if is_able and config.get("agent_teams") is not False else "task"


def _spawned(dept: Dept, team_mode: str) -> Mapping[str, Any]:
    if team_mode == "teammate":
        return {"dept": dept, "spawn_strategy": "spawnTeam", "team_name": f"yolo-{dept}"}
    return {"dept": dept, "spawn_strategy": "task"}


TIMEOUT_S = 1800.0
POLL_S = 0.5

DEPT_GATE = (
    f"dept-gate.sh --gate {'|'.join(GATE_BY_NAME)} --phase-dir PATH [--timeout SECONDS]"
    " [--poll-interval SECONDS] [--no-poll]"
)
INTEGRATION_GATE = "integration-gate.sh --phase-dir PATH --config PATH [--timeout SECONDS]"
PRE_CHECK = "pre-integration-check.sh --phase-dir PATH [--config PATH]"


def dept_gate(arguments: Sequence[str]) -> int:
    """`dept-gate`: whether a gate between departments is open, now or within a time."""
    given = parse(
        arguments,
        DEPT_GATE,
        valued=("--gate", "--phase-dir", "--timeout", "--poll-interval"),
        switches=("--no-poll",),
    )
    name = given.need("--gate")
    given.need("--phase-dir")
    if name not in GATE_BY_NAME:
        raise UsageError(
            f"ERROR: Unknown gate: {name}", more=f"Valid gates: {', '.join(GATE_BY_NAME)}"
        )
    path = require_folder(given.need("--phase-dir"), "ERROR: --phase-dir: directory not found")
    folder = Folder(path)
    timeout_s, poll_s = (
        _seconds(given, "--timeout", TIMEOUT_S),
        _seconds(given, "--poll-interval", POLL_S),
    )
    if "--no-poll" in given.switches:
        return 1 if _lacking(GATE_BY_NAME[name], folder) else 0
    return _wait(GATE_BY_NAME[name], folder, timeout_s, poll_s)


def _seconds(given: ScriptInput, flag: str, default: float) -> float:
    text = given.values.get(flag, "")
    try:
        value = float(text) if flag in given.values else default
    except ValueError:
        value = -1
    if math.isfinite(value) and value >= 0:
        return value
    raise UsageError(f"ERROR: {flag}: not a number of seconds: {text}")


def _wait(gate: Gate, folder: Folder, timeout_s: float, poll_s: float) -> int:
    deadline = time.monotonic() + timeout_s
    while missing := _lacking(gate, folder):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            needs = "; ".join(safe(need) for need in missing)
            print(
                f"TIMEOUT: gate {gate.name} not met after {timeout_s:g} s: {needs}", file=sys.stderr
            )
            return 1
        time.sleep(min(max(poll_s, 0.01), left_s))
    return 0


def _lacking(gate: Gate, folder: Folder) -> Sequence[str]:
    """Return what is missing; everything if the directory disappeared during the wait."""
    if not set(gate.needs) <= set(FILES_MEET):
        return _find_lacks_in_history(gate, folder)
    try:
        return [need for need in gate.needs if not FILES_MEET[need](folder)]
    except OSError:
        return gate.needs


def _find_lacks_in_history(gate: Gate, folder: Folder) -> Sequence[str]:
    """Return what is missing for a gate that the reference does not know: only commits open it."""
    from yolo_fs.git.repository import Repository
    from yolo_fs.history.facts_reader import FactsReader
    from yolo_fs.progress.gates import gates_at
    from yolo_fs.workspace.settings import load

    phase = PhaseId.parse(os.path.basename(folder.path))
    if phase is None:
        return gate.needs
    with Repository(folder.path) as repository:
        facts_reader, tip = FactsReader(repository, load(repository.root)), repository.head().tip
        return [lack.what for lack in gates_at(facts_reader, phase, tip).named(gate.name).missing]


def _files(kind: str) -> list[str]:
    return [f"{prefix}{kind}.jsonl" for prefix in PREFIXES]


def _has(folder: Folder, kind: str) -> bool:
    return any(map(folder.has, _files(kind)))


def _is_readable(folder: Folder, kind: str) -> bool:
    files = [name for name in _files(kind) if folder.has(name)]
    return bool(files) and all(map(folder.is_json, files))


def _rows(folder: Folder, kind: str) -> list[Row]:
    return [row for name in _files(kind) for row in folder.rows(name)]


def _has_ux_sentinel(folder: Folder) -> bool:
    gates = [gate for gate in GATES if Need.UX_SENTINEL in gate.needs]
    return any(folder.stands(file) for gate in gates for file in gate.sentinels)


def _are_complete(folder: Folder) -> bool:
    files = folder.names(STATUS, ".json")
    return all(folder.object(name).get("status") == "complete" for name in files)


FILES_MEET: Mapping[Need, Callable[[Folder], bool]] = {
    Need.UX_SENTINEL: _has_ux_sentinel,
    Need.DESIGN_HANDOFF: lambda folder: _is_readable(folder, "design-handoff"),
    Need.DESIGN_TOKENS: lambda folder: _has(folder, "design-tokens"),
    Need.COMPONENT_SPECS: lambda folder: _is_readable(folder, "component-specs"),
    Need.CONTRACT_AGREED: lambda folder: any(
        says(row, "status", "agreed") for row in _rows(folder, "api-contracts")
    ),
    Need.SOME_STATUS: lambda folder: bool(folder.names(STATUS, ".json")),
    Need.ALL_COMPLETE: _are_complete,
    Need.SOME_SUMMARY: lambda folder: bool(folder.names("", SUMMARY)),
}
"""The checks of the reference script: on files, committed or not, and weaker than our gates."""


INTEGRATION_TIMEOUT_S = 300


def integration_gate(arguments: Sequence[str]) -> int:
    """`integration-gate`: whether the departments' work fits together; a failed check gives 0.

    `timeout` only means that not all departments are complete; it never waits.
    """
    flags = ("--phase-dir", "--config", "--timeout")
    given = parse(arguments, INTEGRATION_GATE, valued=flags, names_flag=False)
    folder, path = Folder(given.need("--phase-dir")), given.need("--config")
    if not os.path.isdir(folder.path):
        raise _error_as_json(f"Phase directory not found: {folder.path}")
    try:
        config = read_object(path)
    except YoloError as error:
        raise _error_as_json(error.message) from error
    if config is None:
        raise _error_as_json(f"Config file not found: {path}")
    timeout_s = _timeout(given, section(config, "integration_gate"))
    route = routing(config)
    departments = active_departments(route)
    if unscheduled := [dept for dept in departments if dept not in route.departments]:
        warn(
            f"department_workflow={route.workflow}, and yet departments are enabled:"
            f" {', '.join(unscheduled)}; the gate waits for them"
        )
    statuses = _read_statuses(folder, departments)
    is_complete = all(status == "complete" for status in statuses.values())
    checks = _checks(folder, departments, config) if is_complete else None
    gate = "timeout"
    if checks is not None:
        gate = "fail" if "fail" in checks.values() else "pass"
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    print_json(
        {
            "gate": gate,
            "departments": statuses,
            "cross_checks": checks,
            "timeout_remaining": timeout_s,
            "dt": today,
        }
    )
    return 1 if checks is None else 0


def _error_as_json(text: str) -> UsageError:
    return UsageError(json.dumps({"error": safe(text, 500)}))


def _read_statuses(folder: Folder, departments: Sequence[Dept]) -> dict[str, str]:
    """Return the status that each department reports.

    It is `pending` without a readable file, and `unknown` if the file has none.
    """
    statuses: dict[str, str] = {}
    for dept in departments:
        data = folder.content(f"{STATUS}{dept}.json")
        value = object_of(data) if isinstance(data, bytes) else None
        status = value.get("status", "unknown") if value is not None else "pending"
        statuses[dept.value] = status if isinstance(status, str) else "unknown"
    return statuses


def _checks(
    folder: Folder, departments: Sequence[Dept], config: Mapping[str, Any]
) -> dict[str, str]:
    wanted = section(section(config, "integration_gate"), "checks")
    return {
        row.key: _result(row.key, folder, departments)
        if wanted.get(row.config) is not False and row.applies_to(departments)
        else "skip"
        for row in INTEGRATION_CHECKS
    }


def _result(key: str, folder: Folder, departments: Sequence[Dept]) -> str:
    """Return pass, fail or skip, by the checks of the reference script."""
    if key == "api":
        rows = _rows(folder, "api-contracts")
        # An unreadable line may be a disputed contract.
        is_met = not any(row is None or says(row, "status", "proposed", "disputed") for row in rows)
        return _word_for_result(_has(folder, "api-contracts"), is_met)
    if key == "design":
        is_ready = any(says(row, "status", "ready") for row in _rows(folder, "design-handoff"))
        is_met = not is_ready or bool(folder.names("", SUMMARY))
        return _word_for_result(_has(folder, "design-handoff"), is_met)
    if key == "handoffs":
        return _word_for_result(True, all(has_handed_over(folder, each) for each in departments))
    # The reference knows a single file of results, none per department.
    return _word_for_result(folder.has(RESULTS), not any(map(_fails, folder.rows(RESULTS))))


def _word_for_result(applies: bool, is_met: bool) -> str:
    if not applies:
        return "skip"
    return "pass" if is_met else "fail"


def _fails(row: Row) -> bool:
    failed = row.get("fl") if row is not None else 1
    return isinstance(failed, int | float) and failed > 0


def has_handed_over(folder: Folder, department: Dept) -> bool:
    """Return whether the department's sentinel exists; either of two spellings is enough."""
    return any(folder.stands(row.file) for row in SENTINELS if row.department is department)


def _timeout(given: ScriptInput, settings: Mapping[str, Any]) -> int:
    configured = settings.get("timeout_seconds")
    text = given.values.get(
        "--timeout", str(configured) if isinstance(configured, int) else str(INTEGRATION_TIMEOUT_S)
    )
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise UsageError(f"ERROR: --timeout: not a whole number of seconds: {text}")


def pre_integration_check(arguments: Sequence[str]) -> int:
    """`pre-integration-check`: what each department still lacks for the integration gate."""
    given = parse(arguments, PRE_CHECK, valued=("--phase-dir", "--config"), names_flag=False)
    path = require_folder(
        given.need("--phase-dir", "Error: --phase-dir is required"),
        "Error: phase directory does not exist",
    )
    folder = Folder(path)
    departments = _read_enabled_departments(given.values.get("--config", CONFIG))
    issues = {dept: list(_find_issues(folder, dept, departments)) for dept in departments}
    blocking = [f"{dept}: {issue}" for dept, listed in issues.items() for issue in listed]
    print_json(
        {
            "status": _status(blocking),
            "departments": [
                {"department": dept, "status": _status(listed), "issues": listed}
                for dept, listed in issues.items()
            ],
            "blocking_issues": blocking,
        }
    )
    return 1 if blocking else 0


def _read_enabled_departments(path: str) -> Sequence[Dept]:
    """Return the departments that a configuration enables, in its order; else the default one."""
    try:
        flags = section(read_object(path) or {}, "departments")
    except YoloError as error:
        warn(error.message)
        flags = {}
    enabled = [Dept(name) for name, flag in flags.items() if name in WORKING_NAMES and flag is True]
    return enabled or [DEFAULT_DEPARTMENT]


def _status(issues: Sequence[str]) -> str:
    return "not_ready" if issues else "ready"


def _find_issues(folder: Folder, department: Dept, departments: Sequence[Dept]) -> Iterator[str]:
    """Yield what is missing for a department at the integration gate."""
    if not has_handed_over(folder, department):
        yield f"missing handoff sentinel: .handoff-{department}-complete"
    results = folder.rows("test-results.jsonl")
    if len(departments) > 1 and not folder.has("test-results.jsonl"):
        yield "test-results.jsonl not found"
    elif len(departments) > 1 and not any(says(row, "dept", department.value) for row in results):
        yield f"no test results for department: {department}"
    latest = {str(row.get("id")): row for row in folder.rows("escalation.jsonl") if row is not None}
    # The reference checks for severity `critical`, which no escalation can have.
    blocking = [
        name
        for name, row in latest.items()
        if says(row, "sev", "blocking", "critical")
        and says(row, "st", "open", "escalated")
        and row.get("dept") in (None, "", department.value)
    ]
    if blocking:
        listed = ", ".join(map(safe, blocking))
        yield f"{len(blocking)} open critical escalation(s) for {department}: {listed}"
