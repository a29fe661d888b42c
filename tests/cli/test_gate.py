"""`gate` for people and machines: open or closed, why not, what lies there without evidence, and how waiting ends."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.gate import _standing
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit

AGREED = '{"endpoint":"POST /auth/login","status":"agreed"}\n'


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team.of_three(tmp_path / "work")


def asked(
    capsys: pytest.CaptureFixture[str], team: Team, *words: str
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(["gate", *words, "--phase", "1", "--json", "-C", str(team.root)])
    return code, json.loads(capsys.readouterr().out)


def said(capsys: pytest.CaptureFixture[str], team: Team, *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run(["gate", *words, "--phase", "1", "-C", str(team.root)])
    return code, capsys.readouterr().out


def agree(team: Team) -> None:
    team.artifact("api-contracts.jsonl", AGREED)
    team.once()


def test_a_gate_is_closed_until_its_evidence_is_committed(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.artifact("api-contracts.jsonl", AGREED)
    assert asked(capsys, team, "check", "api-contract")[0] == Exit.FINDINGS
    team.once()
    code, answer = asked(capsys, team, "check", "api-contract")
    assert (code, answer["ok"], answer["data"]["open"]) == (Exit.DONE, True, True)
    contract = ".yolo-planning/phases/01-auth/api-contracts.jsonl"
    commit = team.git("log", "-1", "--format=%H", "--", contract)
    assert answer["data"]["evidence"] == [{"path": contract, "commit": commit}]


def test_why_names_the_file_and_the_command(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = said(capsys, team, "why", "ux-complete")
    assert code == Exit.FINDINGS
    path = ".yolo-planning/phases/01-auth/design-tokens.jsonl"
    assert f"→ yolo-fs validate {path}\n" in shown
    team.artifact("design-tokens.jsonl", "{torn\n")
    capsys.readouterr()
    assert run(["validate", path, "-C", str(team.root)]) == Exit.FINDINGS
    assert "json_parse_error" in capsys.readouterr().out


def test_the_list_shows_forged_sentinels_and_drift(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.artifact(".handoff-ux-complete", "")
    status = team.root / ".yolo-planning/phases/01-auth/.dept-status-backend.json"
    status.write_text(json.dumps(json.loads(status.read_text()) | {"status": "complete"}))
    _, answer = asked(capsys, team, "list")
    _, shown = said(capsys, team, "list")
    assert answer["data"]["forged"] == [".handoff-ux-complete"]
    assert [(each["where"], each["key"]) for each in answer["data"]["drift"]] == [
        ("backend", "status")
    ]
    assert (
        "forged: .handoff-ux-complete was made by hand and is ignored" in shown
        and "drift: backend: status" in shown
    )


@pytest.mark.parametrize("key", ["status", "step", "plans_complete", "plans_total"])
def test_gate_list_status_and_resume_name_the_same_drift(
    team: Team, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    value = {"status": "complete", "step": "qa"}.get(key, 7)
    status = team.root / ".yolo-planning/phases/01-auth/.dept-status-backend.json"
    status.write_text(json.dumps(json.loads(status.read_text()) | {key: value}))
    _, gates = asked(capsys, team, "list")
    run(["status", "--json", "-C", str(team.root)])
    board = json.loads(capsys.readouterr().out)
    run(["resume", "-C", str(team.root)])
    brief = capsys.readouterr().out
    (drift,) = gates["data"]["drift"]
    assert (drift["where"], drift["key"], drift["declared"]) == ("backend", key, value)
    assert board["data"]["drift"] == [{"phase": "01-auth", **drift}]
    assert drift["command"] == "yolo-fs workflow next --phase 1"
    _, shown = said(capsys, team, "list")
    assert f"\n  → {drift['command']}\n" in shown
    assert f"backend: {key} is declared {value!r}" in brief


def test_waiting_for_an_open_gate_ends_at_once(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    agree(team)
    before = datetime.now(UTC)
    code, answer = asked(capsys, team, "wait", "api-contract")
    data = answer["data"]
    assert (code, data["open"], data["by"], data["commit"]) == (
        Exit.DONE,
        True,
        "look",
        team.head(),
    )
    assert before <= datetime.fromisoformat(data["woke_at"]) <= datetime.now(UTC)
    assert data["departments"] == []


def test_when_the_time_is_over_each_department_is_reported(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = asked(capsys, team, "wait", "all-depts", "--timeout", "0")
    data = answer["data"]
    assert (code, data["open"], answer["ok"]) == (Exit.FINDINGS, False, False)
    assert [each["department"] for each in data["departments"]] == ["backend", "frontend", "uiux"]
    assert all(each["step"] and each["missing"] for each in data["departments"])
    assert data["gates"][0]["missing"][0]["command"]


def test_the_report_is_for_people_as_well(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = said(capsys, team, "wait", "ux-complete", "api-contract", "--timeout", "0")
    assert code == Exit.FINDINGS
    assert "no contract is agreed (api-contracts.jsonl)" in shown
    assert "not open after" in shown
    for department in ("backend", "frontend", "uiux"):
        assert re.search(rf"^  {department} +at \w+: .+$", shown, re.MULTILINE)


def test_a_department_that_is_done_is_reported_as_complete() -> None:
    done = {"complete": True, "step": "", "missing": [], "blockers": []}
    assert _standing(done, "01-auth") == "complete"
    at_qa = {"complete": False, "step": "qa", "missing": [], "blockers": ["plan 01-02 failed"]}
    assert _standing(at_qa, "01-auth") == "at qa: plan 01-02 failed"
    lacking = _standing(at_qa | {"missing": ["a", "b", "c", "d"]}, "01-auth")
    assert "'yolo-fs workflow check qa --phase 01-auth'" in lacking


@pytest.mark.parametrize(
    "words",
    [["wait", "banana"], ["check", "banana"], ["wait"], ["wait", "all-depts", "--timeout", "-1"]],
)
def test_what_is_no_gate_and_no_time_is_a_usage_error(
    team: Team, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert run(["gate", *words, "--phase", "1", "-C", str(team.root)]) == Exit.USAGE
    assert "Traceback" not in capsys.readouterr().err
