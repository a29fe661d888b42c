"""check-escalation-timeout, generate-execution-state, resolve-task-deps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.compat.shim import HEADER, SUMMARY, TASK, Done, call, fill, lines
from yolo_fs.schemas.check import check
from yolo_fs.schemas.state import ExecutionState

STATE = ".execution-state.json"


def ago(seconds: int) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def entry(last: object, status: str = "pending", **more: object) -> dict[str, object]:
    return {
        "id": "ESC-01-01-T1",
        "task": "01-01/T1",
        "status": status,
        "last_escalated_at": last,
        **more,
    }


def escalations(folder: Path, found: object, *more: object) -> Done:
    fill(folder, {STATE: found if isinstance(found, str) else json.dumps({"escalations": found})})
    return call("check-escalation-timeout", "--phase-dir", folder, *more, cwd=folder)


# --- check-escalation-timeout ----------------------------------------------------------------------------------------


def test_what_waits_too_long_is_told_with_exit_1(tmp_path: Path) -> None:
    done = escalations(
        tmp_path, [entry(ago(400)), entry(ago(100), id="ESC-01-01-T2"), entry("", "resolved")]
    )
    said = done.json
    (late,) = said["timed_out"]
    (early,) = said["active"]
    assert (done.code, said["resolved"], done.err) == (1, 1, "")
    assert 400 <= late.pop("elapsed_seconds") < 460
    assert late == {
        "id": "ESC-01-01-T1",
        "task": "01-01/T1",
        "recommended_action": "Auto-escalate to next level",
    }
    assert (early["id"], set(early)) == ("ESC-01-01-T2", {"id", "task", "elapsed_seconds"})


@pytest.mark.parametrize("found", [{}, {"escalations": []}, {"escalations": None}, None])
def test_nothing_to_tell_is_an_empty_result(tmp_path: Path, found: object) -> None:
    if found is not None:
        fill(tmp_path, {STATE: json.dumps(found)})
    done = call("check-escalation-timeout", "--phase-dir", tmp_path, cwd=tmp_path)
    assert (done.code, done.json) == (0, {"timed_out": [], "active": [], "resolved": 0})


@pytest.mark.parametrize("last", [None, "", "yesterday", 7, "2026-13-45T99:00:00Z"])
def test_a_time_that_cannot_be_read_counts_as_the_beginning_of_time(
    tmp_path: Path, last: object
) -> None:
    done = escalations(tmp_path, [entry(last)])
    assert (done.code, len(done.json["timed_out"])) == (1, 1)
    assert str(done.json.get("warnings", [""])[0]).startswith("ESC-01-01-T1") is bool(last)


def test_a_time_from_the_future_waits_and_is_told(tmp_path: Path) -> None:
    done = escalations(tmp_path, [entry(ago(-9000))])
    assert (done.code, done.json["active"][0]["elapsed_seconds"]) == (0, 0)
    assert "is in the future" in done.json["warnings"][0]


@pytest.mark.parametrize(
    ("config", "late"),
    [
        ('{"escalation": {"timeout_seconds": 60}}', 1),
        ('{"escalation": {"timeout_seconds": 6000}}', 0),
        ('{"escalation": {"timeout_seconds": "soon"}}', 0),
        ('{"torn', 0),
    ],
)
def test_the_configuration_sets_the_timeout(tmp_path: Path, config: str, late: int) -> None:
    fill(tmp_path, {"c.json": config})
    done = escalations(tmp_path, [entry(ago(200))], "--config", "c.json")
    assert (done.code, len(done.json["timed_out"])) == (late, late)


def test_entries_of_another_status_or_kind_are_left_out(tmp_path: Path) -> None:
    done = escalations(tmp_path, [entry(ago(900), "open"), "text", {"status": "pending"}])
    assert [one["id"] for one in done.json["timed_out"]] == ["unknown"]


@pytest.mark.parametrize("text", ['{"escalations": [', "[]", '{"escalations": {"a": 1}}'])
def test_a_torn_or_foreign_state_has_no_escalations_and_is_named(tmp_path: Path, text: str) -> None:
    """The exit code 1 would mean that one of them timed out."""
    done = escalations(tmp_path, text)
    assert (done.code, done.json["timed_out"], STATE in done.json["warnings"][0]) == (0, [], True)


# --- generate-execution-state ----------------------------------------------------------------------------------------


def planned(folder: Path, files: Mapping[str, str] = {}) -> Path:
    second = {**HEADER, "n": "02", "t": "Logout", "w": 2}
    plans = {"01-01.plan.jsonl": lines(HEADER, TASK), "01-02.plan.jsonl": lines(second, TASK)}
    return fill(folder / "01-auth", {**plans, **files})


def generate(phase: Path, *more: object, number: str = "01") -> Done:
    return call(
        "generate-execution-state", "--phase-dir", phase, "--phase", number, *more, cwd=phase.parent
    )


def written(phase: Path) -> Any:
    return json.loads((phase / STATE).read_text())


def test_a_planned_phase_gets_its_state(tmp_path: Path) -> None:
    phase = planned(tmp_path, {"critique.jsonl": "{}", "01-01.summary.jsonl": lines(SUMMARY)})
    done = generate(phase)
    said = written(phase)
    assert done == (0, f"{phase / STATE}\n", "")
    assert check(ExecutionState, said)[1] == ()
    assert [said[key] for key in ("phase", "phase_name", "status", "step", "wave", "total_waves")] == [
        1, "auth", "running", "planning", 2, 2,
    ]  # fmt: skip
    assert said["plans"] == [
        {"id": "01-01", "title": "Login", "wave": 1, "status": "complete"},
        {"id": "01-02", "title": "Logout", "wave": 2, "status": "pending"},
    ]
    assert len(said["steps"]) == 10
    assert {step for step, state in said["steps"].items() if state["status"] == "complete"} == {
        "critique",
        "planning",
    }


@pytest.mark.parametrize("status", ["running", "complete"])
def test_a_state_in_force_is_kept_unless_forced(tmp_path: Path, status: str) -> None:
    phase = planned(tmp_path, {STATE: json.dumps({"status": status})})
    done = generate(phase)
    assert (done.code, done.out, "--force" in done.err) == (1, "", True)
    assert written(phase) == {"status": status}
    assert (generate(phase, "--force").code, written(phase)["phase"]) == (0, 1)


@pytest.mark.parametrize("text", ['{"status": "run', "[]", ""])
def test_a_torn_state_is_kept_as_it_is_unless_forced(tmp_path: Path, text: str) -> None:
    phase = planned(tmp_path, {STATE: text})
    assert generate(phase).code == 1
    assert (phase / STATE).read_text() == text


@pytest.mark.parametrize("number", ["one", "-1", "../01", "02", "", "1.0"])
def test_a_number_that_is_not_the_phases_is_refused(tmp_path: Path, number: str) -> None:
    phase = planned(tmp_path)
    done = generate(phase, number=number)
    assert (done.code, "--phase" in done.err, (phase / STATE).exists()) == (1, True, False)


@pytest.mark.parametrize(
    ("change", "plan"),
    [
        ({"w": None}, {"id": "01-02", "wave": 1}),
        ({"w": "2"}, {"id": "01-02", "wave": 2}),
        ({"n": "01-02"}, {"id": "01-01-02", "wave": 1}),
        ({"t": None}, {"id": "01-02", "title": ""}),
    ],
)
def test_a_header_that_is_common_in_real_trees_is_taken(
    tmp_path: Path, change: Mapping[str, Any], plan: Mapping[str, Any]
) -> None:
    header = {**HEADER, "n": "02", **change}
    header = {key: value for key, value in header.items() if value is not None}
    phase = planned(tmp_path, {"01-02.plan.jsonl": lines(header)})
    assert generate(phase).code == 0
    assert written(phase)["plans"][1].items() >= plan.items()


@pytest.mark.parametrize("header", ["{torn", "[]", ""])
def test_a_plan_without_a_header_is_named(tmp_path: Path, header: str) -> None:
    phase = planned(tmp_path, {"01-02.plan.jsonl": header + "\n"})
    done = generate(phase)
    assert (done.code, "01-02.plan.jsonl" in done.err, (phase / STATE).exists()) == (1, True, False)


def test_a_phase_without_plans_or_without_a_directory_has_no_state(tmp_path: Path) -> None:
    assert "Error: No plan.jsonl files found in " in generate(fill(tmp_path / "01-auth", {})).err
    done = call("generate-execution-state", "--phase-dir", "02-gone", "--phase", "02", cwd=tmp_path)
    assert (done.code, "02-gone" in done.err, (tmp_path / "02-gone").exists()) == (1, True, False)


# --- resolve-task-deps -----------------------------------------------------------------------------------------------


def groups(folder: Path, tasks: list[object], *more: object) -> Done:
    fill(folder, {"01-01.plan.jsonl": lines(HEADER, *tasks)})
    return call("resolve-task-deps", "--plan", "01-01.plan.jsonl", *more, cwd=folder)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([], []),
        ([{"id": "T2"}, {"id": "T1"}], [["T2", "T1"]]),
        ([{"id": "T1"}, {"id": "T2", "td": ["T1"]}, {"id": "T3"}], [["T1", "T3"], ["T2"]]),
        ([{"id": "T1", "td": ["T9", "T2"]}, {"id": "T2", "td": None}], [["T2"], ["T1"]]),
    ],
)
def test_tasks_come_in_groups(
    tmp_path: Path, tasks: list[object], expected: list[list[str]]
) -> None:
    done = groups(tmp_path, tasks, "--all-plans", "anywhere")
    assert (done.code, done.err) == (0, "")
    assert done.json == [
        {"group": number, "tasks": names} for number, names in enumerate(expected, 1)
    ]


def test_a_circle_is_told(tmp_path: Path) -> None:
    done = groups(tmp_path, [{"id": "T1", "td": ["T2"]}, {"id": "T2", "td": ["T1"]}, {"id": "T3"}])
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("ERROR: Circular dependency detected among tasks: T1, T2")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (lines(HEADER) + "{torn", "invalid JSON"),
        (lines(HEADER, {"id": "T1", "td": "T2"}), "td must be an array"),
        (lines(HEADER, {"a": "write it"}), "a task without id"),
        (lines(HEADER, {"id": "T1"}, {"id": "T1"}), "a second task T1"),
    ],
)
def test_a_torn_plan_is_named(tmp_path: Path, text: str, said: str) -> None:
    fill(tmp_path, {"p.jsonl": text})
    done = call("resolve-task-deps", "--plan", "p.jsonl", cwd=tmp_path)
    assert (done.code, done.out, said in done.err, "p.jsonl" in done.err) == (1, "", True, True)
