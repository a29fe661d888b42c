"""Callers join the streams (`integration-gate.sh … 2>&1 | jq`): what is JSON stays JSON, warnings included."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.compat.shim import (
    HEADER,
    SCRIPTS,
    SUMMARY,
    TASK,
    Done,
    call,
    fill,
    lines,
    through_the_shell,
)
from yolo_fs.compat.scripts import SCRIPTS as NAMES

TEXT = {
    "dept-cleanup": "a list of files",
    "dept-gate": "an exit code",
    "generate-execution-state": "a path",
    "git-commit-serialized": "a hash",
    "phase-detect": "key=value",
    "resolve-departments": "key=value",
}
"""The scripts that print something else."""
PLAN = lines(HEADER, TASK)
ODD_CONFIGS: Mapping[str, str] = {
    "none enabled": json.dumps({"department_workflow": "parallel"}),
    "unscheduled": json.dumps({"departments": {"frontend": True, "uiux": True}}),
    "unknown workflow": json.dumps(
        {"department_workflow": "banana", "departments": {"uiux": True}}
    ),
    "empty": "{}",
    "full": json.dumps(
        {"department_workflow": "parallel", "departments": {"backend": True, "frontend": True}}
    ),
    "unknown keys": json.dumps(
        {"colour": "red", "qa": {"timeout": 5}, "escalation": {"timeout_seconds": "soon"}}
    ),
}
STATES = {
    "none": "{}",
    "torn": '{"escalations": [',
    "a list": "[]",
    "no list": '{"escalations": 7}',
    "future": json.dumps({"escalations": [{"id": "E", "status": "pending", "last_escalated_at": "2099-01-01T00:00:00Z"}]}),
    "no time": json.dumps({"escalations": [{"id": "E", "status": "pending", "last_escalated_at": "soon"}]}),
}  # fmt: skip
PLANS = {
    "right": PLAN,
    "torn": "torn\n",
    "CRLF": PLAN.replace("\n", "\r\n"),
    "empty": "",
    "old keys": lines({"phase": 1, "t": "3"}, {"title": "x", "files": ["/etc/passwd"]}),
    "more": lines({**HEADER, "d": ["01-02", "01-01"], "surplus": 1}, TASK),
}
Call = tuple[str, tuple[object, ...], Mapping[str, str], str]


def _calls() -> list[tuple[str, Call]]:
    """Return each situation: its name, the script, its arguments, the files, its input."""
    found: list[tuple[str, Call]] = []

    def add(about: str, name: str, *arguments: object, given: str = "", **files: str) -> None:
        spelled = {key.replace("__", "/"): text for key, text in files.items()}
        found.append((f"{name}: {about}", (name, arguments, spelled, given)))

    for about, config in ODD_CONFIGS.items():
        gate = ("--phase-dir", "phase", "--config", "c.json")
        for name, arguments in (
            ("integration-gate", gate),
            ("pre-integration-check", gate),
            ("dept-orchestrate", ("c.json", "phase")),
            ("validate-config", ("c.json",)),
            ("validate", ("--type", "config", "c.json")),
            ("check-escalation-timeout", ("--phase-dir", "phase", "--config", "c.json")),
        ):
            add(about, name, *arguments, **{"c.json": config, "phase/x": ""})
    for name in ("pre-integration-check", "check-escalation-timeout"):
        files = {"c.json": "{torn", "phase/x": ""}
        add("torn configuration", name, "--phase-dir", "phase", "--config", "c.json", **files)
    files = {"c.json": "{torn", "phase/x": ""}
    add("torn", "integration-gate", "--phase-dir", "phase", "--config", "c.json", **files)
    add("no such folder", "integration-gate", "--phase-dir", "g" * 700 + '"', "--config", "c.json")
    for about, state in STATES.items():
        files = {"phase/.execution-state.json": state}
        add(about, "check-escalation-timeout", "--phase-dir", "phase", **files)
    for about, plan in PLANS.items():
        files = {"01-01.plan.jsonl": plan, "milestones/m/01-01.plan.jsonl": "torn\n"}
        for name in ("validate-plan", "validate-naming"):
            add(about, name, "01-01.plan.jsonl", **files)
            add(about, "validate", "--type", name.partition("-")[2], "01-01.plan.jsonl", **files)
        add(f"folder, {about}", "validate-naming", ".", "--scope=all", "--turbo", **files)
    add("unknown artifact", "validate-naming", "notes.md", **{"notes.md": "x"})
    add("right", "resolve-task-deps", "--plan", "p.jsonl", **{"p.jsonl": PLAN})
    for step in ("critique", "planning", "signoff"):
        add(step, "validate-gates", "--step", step, "--phase-dir", "phase", **{"phase/x": ""})
        add(f"{step}, no folder", "validate-gates", "--step", step, "--phase-dir", "gone")
    status = json.dumps({"dept": "backend", "status": "running", "step": "planning"})
    add("read", "dept-status", "--dept", "backend", "--phase-dir", "phase", "--action", "read",
        **{"phase/.dept-status-backend.json": status})  # fmt: skip
    asked: dict[str, Any] = {
        "validate-commit": {"command": "git commit -m oops"},
        "validate-send-message": {"recipient": "fe-lead", "to": "fe-lead", "content": "x"},
        "validate-summary": {"file_path": "01-01.summary.jsonl"},
        "validate-frontmatter": {"file_path": "a.md"},
    }
    for name, said in asked.items():
        files = {
            "01-01.summary.jsonl": lines({**SUMMARY, "s": "odd"}),
            "a.md": "---\nname: x\n---\n",
        }
        add("advice", name, given=json.dumps({"tool_name": "Write", "tool_input": said}), **files)
    return found


CALLS = _calls()


def _done(folder: Path, asked: Call) -> Done:
    name, arguments, files, given = asked
    return call(name, *arguments, cwd=fill(folder / "here", files), given=given)


@pytest.mark.parametrize("asked", [each for _, each in CALLS], ids=[name for name, _ in CALLS])
def test_what_is_json_stays_json_where_the_streams_are_joined(tmp_path: Path, asked: Call) -> None:
    done = _done(tmp_path, asked)
    joined = done.out + done.err
    if joined:  # a hook that has no advice is silent
        json.loads(joined)


def test_every_script_that_prints_json_is_called_here() -> None:
    assert {asked[0] for _, asked in CALLS} == set(NAMES) - set(TEXT)


def test_a_shell_that_joins_them_reads_one_value_with_the_warning_in_it(tmp_path: Path) -> None:
    fill(tmp_path, {"c.json": ODD_CONFIGS["unscheduled"], "phase/x": ""})
    command = f"{SCRIPTS}/integration-gate.sh --phase-dir phase --config c.json 2>&1"
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    ended = through_the_shell(["bash", "-c", command], tmp_path, environment, "")
    said = json.loads(ended.out)
    assert (ended.code, said["gate"]) == (1, "timeout")
    assert "frontend, uiux; the gate waits" in said["warnings"][0]


@pytest.mark.parametrize("says_so", ["header", "flag"])
def test_a_task_of_a_turbo_plan_needs_its_id_and_what_is_to_be_done(
    tmp_path: Path, says_so: str
) -> None:
    header = {**HEADER, "eff": "turbo"} if says_so == "header" else HEADER
    more = () if says_so == "header" else ("--turbo",)
    for task, missing in (
        ({"id": "T1", "a": "do"}, []),
        ({"id": "T1"}, ["a"]),
        ({"a": "do"}, ["id"]),
    ):
        fill(tmp_path, {"01-01.plan.jsonl": lines(header, task)})
        said = call("validate-naming", "01-01.plan.jsonl", *more, cwd=tmp_path).json
        keys = [text.rpartition(": ")[2] for text in said["errors"] if "missing" in text]
        assert keys == missing
