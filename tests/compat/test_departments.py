"""resolve-departments, dept-orchestrate, integration-gate, pre-integration-check."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.compat.shim import Done, call, fill, lines

PARALLEL = {"departments": {"frontend": True, "uiux": True}, "department_workflow": "parallel"}
ALL = ("backend", "frontend", "uiux")


def config(folder: Path, value: object) -> Path:
    path = folder / "config.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def resolved(folder: Path, value: object) -> tuple[dict[str, str], Done]:
    done = call("resolve-departments", config(folder, value), cwd=folder)
    assert done.code == 0
    return dict(line.split("=", 1) for line in done.out.splitlines()), done


def setting(workflow: str, *, fe: bool, ux: bool) -> dict[str, Any]:
    return {"department_workflow": workflow, "departments": {"frontend": fe, "uiux": ux}}


# --- resolve-departments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workflow", "fe", "ux", "active", "leads", "order"),
    [
        ("backend_only", True, True, "backend,frontend,uiux", "lead", "single"),
        ("parallel", True, False, "backend,frontend", "fe-lead,lead", "wave"),
        ("parallel", False, True, "backend,uiux", "ux-lead|lead", "wave"),
        ("parallel", True, True, "backend,frontend,uiux", "ux-lead|fe-lead,lead", "wave"),
        ("sequential", True, True, "backend,frontend,uiux", "ux-lead|fe-lead|lead", "sequential"),
        ("sequential", True, False, "backend,frontend", "fe-lead|lead", "sequential"),
        ("sequential", False, True, "backend,uiux", "ux-lead|lead", "sequential"),
    ],
)
def test_the_rows_of_the_routing(
    tmp_path: Path, workflow: str, fe: bool, ux: bool, active: str, leads: str, order: str
) -> None:
    said, done = resolved(tmp_path, setting(workflow, fe=fe, ux=ux))
    several = "true" if order != "single" else "false"
    assert done.err == ""
    assert list(said.items()) == [
        ("multi_dept", several), ("workflow", workflow), ("active_depts", active), ("leads_to_spawn", leads),
        ("spawn_order", order), ("owner_active", several), ("fe_active", str(fe).lower()), ("ux_active", str(ux).lower()),
    ]  # fmt: skip


@pytest.mark.parametrize("workflow", ["parallel", "sequential", "banana", 7])
def test_a_workflow_that_cannot_be_is_backend_only_with_a_warning(
    tmp_path: Path, workflow: Any
) -> None:
    said, done = resolved(tmp_path, setting(workflow, fe=False, ux=False))
    assert (said["workflow"], said["leads_to_spawn"]) == ("backend_only", "lead")
    assert done.err.startswith("[warn]")
    assert done.err.count("\n") == 1


def test_the_backend_works_even_where_it_is_turned_off(tmp_path: Path) -> None:
    said, _ = resolved(tmp_path, {**PARALLEL, "departments": {"backend": False, "frontend": True}})
    assert said["active_depts"] == "backend,frontend"


def test_no_configuration_means_the_defaults(tmp_path: Path) -> None:
    done = call("resolve-departments", cwd=tmp_path)
    assert (done.code, done.out.splitlines()[:3]) == (
        0,
        ["multi_dept=false", "workflow=backend_only", "active_depts=backend"],
    )


@pytest.mark.parametrize("text", ['{"departments": ', "[]", ""])
def test_a_torn_or_foreign_configuration_gives_the_backend_and_a_warning(
    tmp_path: Path, text: str
) -> None:
    said, done = resolved(tmp_path, text)
    assert said == {
        "multi_dept": "false",
        "workflow": "",
        "active_depts": "backend",
        "leads_to_spawn": "lead",
        "spawn_order": "single",
        "owner_active": "false",
        "fe_active": "",
        "ux_active": "",
    }
    assert "config.json" in done.err


# --- dept-orchestrate ------------------------------------------------------------------------------------------------


TEAMS = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"}


def orchestrate(folder: Path, value: object, env: Mapping[str, str] = TEAMS) -> Any:
    done = call("dept-orchestrate", config(folder, value), folder, cwd=folder, env=env)
    assert (done.code, done.err) == (0, "")
    return done.json


@pytest.mark.parametrize(
    ("value", "waves"),
    [
        ({}, [(["backend"], "all-depts-complete")]),
        (
            PARALLEL,
            [(["uiux"], "handoff-ux-complete"), (["frontend", "backend"], "all-depts-complete")],
        ),
        (
            setting("sequential", fe=True, ux=True),
            [
                (["uiux"], "handoff-ux-complete"),
                (["frontend"], "handoff-frontend-complete"),
                (["backend"], "all-depts-complete"),
            ],
        ),
    ],
)
def test_the_waves_and_the_gates_behind_them(tmp_path: Path, value: object, waves: object) -> None:
    said = orchestrate(tmp_path, value)
    assert [
        ([dept["dept"] for dept in wave["depts"]], wave["gate"]) for wave in said["waves"]
    ] == waves
    assert [wave["id"] for wave in said["waves"]] == list(range(1, len(said["waves"]) + 1))
    assert said["timeout_minutes"] == 30


@pytest.mark.parametrize("mode", [{"team_mode": "teammate"}, {"team_mode": "auto"}, {}])
def test_teammates_are_spawned_as_teams(tmp_path: Path, mode: Mapping[str, str]) -> None:
    said = orchestrate(tmp_path, {**PARALLEL, **mode})
    assert said["team_mode"] == "teammate"
    assert said["waves"][0]["depts"] == [
        {"dept": "uiux", "spawn_strategy": "spawnTeam", "team_name": "yolo-uiux"}
    ]


@pytest.mark.parametrize(
    ("value", "env"),
    [
        ({"team_mode": "task"}, TEAMS),
        ({"team_mode": "teammate"}, {}),
        ({"team_mode": "teammate", "agent_teams": False}, TEAMS),
    ],
)
def test_tasks_have_no_team(
    tmp_path: Path, value: Mapping[str, object], env: Mapping[str, str]
) -> None:
    assert orchestrate(tmp_path, value, env)["waves"][0]["depts"] == [
        {"dept": "backend", "spawn_strategy": "task"}
    ]


def test_one_argument_is_not_enough(tmp_path: Path) -> None:
    assert call("dept-orchestrate", config(tmp_path, {}), cwd=tmp_path).code == 1


# --- integration-gate ------------------------------------------------------------------------------------------------

WHOLE: Mapping[str, str] = {
    **{f".dept-status-{dept}.json": '{"status": "complete"}' for dept in ALL},
    ".handoff-backend-complete": "",
    ".handoff-frontend-complete": "",
    ".handoff-uiux-complete": "",
    "01-01.summary.jsonl": lines({}),
    "api-contracts.jsonl": lines({"endpoint": "/", "status": "agreed"}),
    "design-handoff.jsonl": lines({"component": "login", "status": "ready"}),
    "test-results.jsonl": lines(*({"dept": dept, "fl": 0} for dept in ALL)),
}


def test_the_flags_say_which_departments_are_awaited(tmp_path: Path) -> None:
    value = {"departments": {"frontend": True}}
    done = integrate(tmp_path, {".dept-status-backend.json": '{"status": "complete"}'}, value)
    assert (done.code, done.json["gate"]) == (1, "timeout")
    assert done.json["departments"] == {"backend": "complete", "frontend": "pending"}
    assert done.json["warnings"][0].startswith("department_workflow=backend_only")
    assert done.err == ""


def test_a_status_file_without_a_status_is_unknown(tmp_path: Path) -> None:
    done = integrate(tmp_path, {".dept-status-backend.json": "{}"}, {})
    assert done.json["departments"] == {"backend": "unknown"}


def integrate(
    folder: Path, files: Mapping[str, str], value: object = PARALLEL, *more: object
) -> Done:
    phase = fill(folder / "01-auth", files)
    path = config(folder, value)
    return call("integration-gate", "--phase-dir", phase, "--config", path, *more, cwd=folder)


def test_work_that_fits_together_passes(tmp_path: Path) -> None:
    done = integrate(tmp_path, WHOLE)
    said = done.json
    assert (done.code, said.pop("dt")[:2]) == (0, "20")
    assert said == {
        "gate": "pass",
        "departments": dict.fromkeys(ALL, "complete"),
        "cross_checks": {"api": "pass", "design": "pass", "handoffs": "pass", "tests": "pass"},
        "timeout_remaining": 300,
    }


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"api-contracts.jsonl": lines({"status": "agreed"}, {"status": "disputed"})}, "api"),
        ({"api-contracts.jsonl": lines({"status": "proposed"})}, "api"),
        ({"api-contracts.jsonl": '{"status": "agr'}, "api"),
        ({"01-01.summary.jsonl": None}, "design"),
        ({".handoff-frontend-complete": None}, "handoffs"),
        ({"test-results.jsonl": lines({"fl": 0}, {"fl": 2})}, "tests"),
        ({"test-results.jsonl": "torn"}, "tests"),
    ],
)
def test_a_failed_check_fails_the_gate_with_exit_0(
    tmp_path: Path, changed: Mapping[str, str | None], key: str
) -> None:
    files = {name: text for name, text in {**WHOLE, **changed}.items() if text is not None}
    done = integrate(tmp_path, files)
    failed = [name for name, outcome in done.json["cross_checks"].items() if outcome == "fail"]
    assert (done.code, done.json["gate"], failed) == (0, "fail", [key])


@pytest.mark.parametrize(
    ("value", "skipped"),
    [
        (PARALLEL, ["api", "design", "tests"]),
        (setting("parallel", fe=True, ux=False), ["api", "design", "tests"]),
        ({}, ["api", "design", "tests"]),
    ],
)
def test_what_is_not_there_is_skipped(tmp_path: Path, value: object, skipped: list[str]) -> None:
    files = {name: text for name, text in WHOLE.items() if name.startswith(".")}
    done = integrate(tmp_path, files, value)
    assert [
        key for key, outcome in done.json["cross_checks"].items() if outcome == "skip"
    ] == skipped
    assert done.json["gate"] == "pass"


def test_a_check_that_is_turned_off_is_skipped(tmp_path: Path) -> None:
    value = {**PARALLEL, "integration_gate": {"checks": {"tests": False}}}
    done = integrate(tmp_path, {**WHOLE, "test-results.jsonl": lines({"fl": 2})}, value)
    assert (done.json["gate"], done.json["cross_checks"]["tests"]) == ("pass", "skip")


@pytest.mark.parametrize("status", ['{"status": "running"}', '{"status": "comp', None])
def test_a_department_that_is_not_complete_is_a_timeout(tmp_path: Path, status: str | None) -> None:
    files = {**WHOLE, ".dept-status-uiux.json": status}
    done = integrate(tmp_path, {name: text for name, text in files.items() if text is not None})
    said = done.json
    assert (done.code, said["gate"], said["cross_checks"]) == (1, "timeout", None)
    assert said["departments"]["uiux"] == (
        "running" if status and "running" in status else "pending"
    )


@pytest.mark.parametrize(
    ("value", "more", "timeout"),
    [
        (PARALLEL, (), 300),
        ({**PARALLEL, "integration_gate": {"timeout_seconds": 600}}, (), 600),
        ({**PARALLEL, "integration_gate": {"timeout_seconds": 600}}, ("--timeout", 7), 7),
    ],
)
def test_the_timeout_is_told_back(
    tmp_path: Path, value: object, more: tuple[object, ...], timeout: int
) -> None:
    assert integrate(tmp_path, WHOLE, value, *more).json["timeout_remaining"] == timeout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--phase-dir", ".", "--config", "none.json"), "none.json"),
        (("--phase-dir", "nowhere", "--config", "config.json"), "nowhere"),
        (("--phase-dir", "."), "Usage: integration-gate.sh "),
        (("--phase-dir", ".", "--config", "config.json"), "config.json"),
        (("--phase-dir", ".", "--config", "good.json", "--timeout", "long"), "--timeout"),
    ],
)
def test_what_is_missing_or_torn_is_named(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    fill(tmp_path, {"config.json": '{"torn', "good.json": "{}"})
    done = call("integration-gate", *arguments, cwd=tmp_path)
    assert (done.code, done.out, said in done.err) == (1, "", True)


# --- pre-integration-check -------------------------------------------------------------------------------------------


ENABLED = {"departments": dict.fromkeys(ALL, True)}


def precheck(folder: Path, files: Mapping[str, str], value: object = ENABLED) -> Done:
    phase = fill(folder / "01-auth", files)
    path = config(folder, value)
    return call("pre-integration-check", "--phase-dir", phase, "--config", path, cwd=folder)


def test_a_company_that_owes_nothing_is_ready(tmp_path: Path) -> None:
    done = precheck(tmp_path, WHOLE)
    assert (done.code, done.json["status"], done.json["blocking_issues"]) == (0, "ready", [])
    assert [one["department"] for one in done.json["departments"]] == list(ALL)


def test_what_a_department_owes_is_listed(tmp_path: Path) -> None:
    files = {**WHOLE, "test-results.jsonl": lines({"dept": "backend"}, {"dept": "uiux"})}
    del files[".handoff-frontend-complete"]
    done = precheck(tmp_path, files)
    owed = {
        one["department"]: (one["status"], len(one["issues"])) for one in done.json["departments"]
    }
    assert (done.code, done.json["status"]) == (1, "not_ready")
    assert owed == {"backend": ("ready", 0), "frontend": ("not_ready", 2), "uiux": ("ready", 0)}
    assert len(done.json["blocking_issues"]) == 2


@pytest.mark.parametrize(
    ("results", "issue"),
    [
        ({}, "test-results.jsonl not found"),
        (
            {"test-results.jsonl": lines({"dept": "uiux"})},
            "no test results for department: frontend",
        ),
    ],
)
def test_test_results_that_are_not_there_are_told_from_those_of_others(
    tmp_path: Path, results: Mapping[str, str], issue: str
) -> None:
    files = {name: text for name, text in WHOLE.items() if name != "test-results.jsonl"}
    done = precheck(tmp_path, {**files, **results})
    owed = {one["department"]: one["issues"] for one in done.json["departments"]}
    assert owed["frontend"] == [issue]


def test_one_department_needs_no_test_results(tmp_path: Path) -> None:
    assert precheck(tmp_path, {".handoff-backend-complete": ""}, {}).code == 0


RAISED = {"id": "ESC-01-01-T1", "sev": "blocking", "st": "open"}


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ([RAISED], 1),
        ([RAISED, {**RAISED, "st": "escalated"}], 1),
        ([RAISED, {**RAISED, "st": "resolved"}], 0),
        ([{**RAISED, "sev": "critical"}], 1),
        ([{**RAISED, "sev": "minor"}], 0),
        ([{**RAISED, "dept": "frontend"}], 0),
        ([{**RAISED, "id": ["odd"]}], 1),
    ],
)
def test_an_open_escalation_that_blocks_is_an_issue(
    tmp_path: Path, log: list[object], code: int
) -> None:
    files = {".handoff-backend-complete": "", "escalation.jsonl": "torn {\n" + lines(*log)}
    assert precheck(tmp_path, files, {}).code == code
