"""A verb that is not everybody's is refused to the wrong agent by itself, as the hooks of hosts refuse it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import THREE, Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit

UPDATE = ("dept", "update", "frontend", "--status", "running")
SKIP = ("workflow", "skip", "research", "--reason", "nothing is unknown")
ANSWER = ("answer", "ESC-01-01-T1", "blue")
STATUS = ".yolo-planning/phases/01-auth/.dept-status-frontend.json"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    made = Team(tmp_path / "work")
    made.config(THREE)
    made.begin()
    return made


def said(team: Team, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = run([*words, "--json", "-C", str(team.root)])
    return code, json.loads(capsys.readouterr().out)["findings"]


@pytest.mark.parametrize("agent", ["critic", "yolo-critic", "lead", "ux-lead", "scout"])
@pytest.mark.parametrize("door", ["--as", "YOLO_FS_AGENT"])
def test_who_is_of_another_department_or_of_none_declares_nothing(
    team: Team, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    agent: str, door: str,
) -> None:  # fmt: skip
    before = (team.root / STATUS).read_bytes()
    words = ("--as", agent) if door == "--as" else ()
    if door != "--as":
        monkeypatch.setenv(door, agent)
    code, (finding,) = said(team, capsys, *UPDATE, *words)
    assert (code, finding["reason"]) == (Exit.FINDINGS, "out_of_lane")
    assert "acts for the department frontend" in finding["message"]
    assert finding["hint"] == "Ask fe-lead."
    assert (team.root / STATUS).read_bytes() == before


@pytest.mark.parametrize("agent", ["", "fe-lead", "yolo-fe-dev", "owner", "user"])
def test_who_is_of_the_department_or_above_all_of_them_declares_how_it_stands(
    team: Team, capsys: pytest.CaptureFixture[str], agent: str
) -> None:
    assert said(team, capsys, *UPDATE, "--as", agent)[0] == Exit.DONE
    assert json.loads((team.root / STATUS).read_text())["status"] == "running"


@pytest.mark.parametrize("words", [SKIP, ANSWER])
@pytest.mark.parametrize("agent", ["critic", "lead", "owner"])
def test_what_a_person_decides_no_agent_does(
    team: Team, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], agent: str
) -> None:
    code, (finding,) = said(team, capsys, *words, "--as", agent)
    assert (code, finding["reason"]) == (Exit.FINDINGS, "out_of_lane")
    assert "Only a person may run" in finding["message"]


def test_a_person_may_name_themselves(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("workflow", "skip", "documentation", "--reason", "nobody reads it")
    assert said(team, capsys, *words, "--as", "user")[0] == Exit.DONE


def test_who_holds_a_question_is_told_its_own_way_to_answer_and_takes_it(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = ("--task", "01-01/T1", "--from", "dev", "--reason", "Blue or red?", "--evidence", "x",
              "--recommendation", "Blue", "--boundary", "taste")  # fmt: skip
    team.plan_one()
    assert said(team, capsys, "escalate", "open", *opened)[0] == Exit.DONE
    _, (finding,) = said(team, capsys, *ANSWER, "--as", "senior")
    assert "'yolo-fs escalate resolve'" in finding["hint"]
    words = (
        "escalate",
        "resolve",
        ANSWER[1],
        "--by",
        "senior",
        "--decision",
        "blue",
        "--reason",
        "y",
    )
    assert said(team, capsys, *words)[0] == Exit.DONE
