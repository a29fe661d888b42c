"""The scripts about gates between departments: dept-gate, integration-gate and its pre-check."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from yolo_fs.compat.arguments import Given, UsageError, parse
from yolo_fs.compat.departments import CONFIG
from yolo_fs.compat.folder import Folder, read_object
from yolo_fs.compat.output import print_json
from yolo_fs.protocol.gates import GATE_BY_NAME, INTEGRATION_CHECKS, Gate
from yolo_fs.protocol.names import Dept
from yolo_fs.reasons import safe
from yolo_fs.rules.phase.gate_needs import integration_checks, lacking
from yolo_fs.rules.phase.gate_sources import STATUS, FolderEvidence, has_handed_over, says
from yolo_fs.rules.phase.waves import routing, section

TIMEOUT_S = 1800.0
POLL_S = 0.5


def dept_gate(arguments: Sequence[str]) -> int:
    """`dept-gate`: whether a gate between departments is open, now or within a time."""
    given = parse(
        arguments,
        valued=("--gate", "--phase-dir", "--timeout", "--poll-interval"),
        switches=("--no-poll",),
    )
    name = given.need("--gate")
    if name not in GATE_BY_NAME:
        raise UsageError(f"Unknown gate: {name}", hint=f"it is one of {', '.join(GATE_BY_NAME)}")
    folder = Folder(given.need_folder("--phase-dir"))
    timeout_s, poll_s = (
        _seconds(given, "--timeout", TIMEOUT_S),
        _seconds(given, "--poll-interval", POLL_S),
    )
    if "--no-poll" in given.switches:
        return 1 if lacking(GATE_BY_NAME[name], FolderEvidence(folder)) else 0
    return _wait(GATE_BY_NAME[name], folder, timeout_s, poll_s)


def _seconds(given: Given, flag: str, default: float) -> float:
    text = given.values.get(flag, "")
    try:
        value = float(text) if flag in given.values else default
    except ValueError:
        value = -1
    if math.isfinite(value) and value >= 0:
        return value
    raise UsageError(f"{flag}: not a number of seconds: {text}")


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
    """Return what is missing; everything, when the directory itself went away while we waited."""
    try:
        return lacking(gate, FolderEvidence(folder))
    except OSError:
        return gate.needs


INTEGRATION_TIMEOUT_S = 300


def integration_gate(arguments: Sequence[str]) -> int:
    """`integration-gate`: whether the departments' work fits together; a failed check gives 0.

    `timeout` only means that not all departments are complete; it never waits.
    """
    given = parse(arguments, valued=("--phase-dir", "--config", "--timeout"))
    folder = Folder(given.need_folder("--phase-dir"))
    path = given.need("--config")
    config = read_object(path)
    if config is None:
        raise UsageError(f"--config: file not found: {path}")
    timeout_s = _timeout(given, section(config, "integration_gate"))
    departments = routing(config).departments
    said = _statuses(folder, departments)
    is_complete = all(status == "complete" for status in said.values())
    checks = _checks(folder, departments, config) if is_complete else None
    gate = "timeout"
    if checks is not None:
        gate = "fail" if "fail" in checks.values() else "pass"
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    print_json(
        {
            "gate": gate,
            "departments": said,
            "cross_checks": checks,
            "timeout_remaining": timeout_s,
            "dt": today,
        }
    )
    return 1 if checks is None else 0


def _statuses(folder: Folder, departments: Sequence[Dept]) -> dict[str, str]:
    """Return the status that each department gives itself; `pending` when it gives none."""
    said = {dept.value: folder.object(f"{STATUS}{dept}.json").get("status") for dept in departments}
    return {name: status if isinstance(status, str) else "pending" for name, status in said.items()}


def _checks(
    folder: Folder, departments: Sequence[Dept], config: Mapping[str, Any]
) -> dict[str, str]:
    checks = integration_checks(FolderEvidence(folder, departments), _off(config))
    return {key: result for key, (result, _) in checks.items()}


def _timeout(given: Given, settings: Mapping[str, Any]) -> int:
    configured = settings.get("timeout_seconds")
    text = given.values.get(
        "--timeout", str(configured) if isinstance(configured, int) else str(INTEGRATION_TIMEOUT_S)
    )
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise UsageError(f"--timeout: not a whole number of seconds: {text}")


def _off(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the checks that the configuration turns off."""
    wanted = section(section(config, "integration_gate"), "checks")
    return frozenset(row.key for row in INTEGRATION_CHECKS if wanted.get(row.config) is False)


def pre_integration_check(arguments: Sequence[str]) -> int:
    """`pre-integration-check`: what each department still lacks for the integration gate."""
    given = parse(arguments, valued=("--phase-dir", "--config"))
    folder = Folder(given.need_folder("--phase-dir"))
    departments = routing(read_object(given.values.get("--config", CONFIG)) or {}).departments
    found = {dept: list(_issues(folder, dept, departments)) for dept in departments}
    blocking = [f"{dept}: {issue}" for dept, listed in found.items() for issue in listed]
    print_json(
        {
            "status": _status(blocking),
            "departments": [
                {"department": dept, "status": _status(listed), "issues": listed}
                for dept, listed in found.items()
            ],
            "blocking_issues": blocking,
        }
    )
    return 1 if blocking else 0


def _status(found: Sequence[str]) -> str:
    return "not_ready" if found else "ready"


def _issues(folder: Folder, department: Dept, departments: Sequence[Dept]) -> Iterator[str]:
    """Yield what keeps a department from the integration gate."""
    if not has_handed_over(folder, department):
        yield f"handoff sentinel missing: .handoff-{department}-complete"
    results = folder.rows("test-results.jsonl")
    if len(departments) > 1 and not any(says(row, "dept", department.value) for row in results):
        yield "no test results in test-results.jsonl"
    latest = {str(row.get("id")): row for row in folder.rows("escalation.jsonl") if row is not None}
    for name, row in latest.items():
        # The reference looks for severity `critical`, which no escalation can have.
        blocks = says(row, "sev", "blocking", "critical") and says(row, "st", "open", "escalated")
        if blocks and row.get("dept") in (None, "", department.value):
            yield f"blocking escalation is not resolved: {name}"
