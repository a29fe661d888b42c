"""`explain` knows the ids of this repository: phases, plans, tasks and escalations, each with the command that helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_inbox import NAME, WORDS, asks_the_user, said
from tests.support.teams import Team, planned_team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    return planned_team(tmp_path, monkeypatch)


def test_an_escalation_is_its_question_who_has_it_and_how_it_is_answered(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    team.once()
    code, reply = said(team, capsys, "explain", NAME)
    assert code == Exit.DONE
    question, does, options = reply["data"]["says"]
    assert question == "Which colour? (blocks 01-01/T1)"
    assert does.startswith(f"user answers {NAME}") and options.startswith("options: blue or red")
    assert reply["data"]["command"] == f"yolo-fs answer {NAME} CHOICE"


@pytest.mark.parametrize("name", ["01-auth", "auth", "01"])
def test_a_phase_is_what_it_waits_for_first(
    team: Team, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    asks_the_user(team, "blue", "red")
    team.once()
    code, reply = said(team, capsys, "explain", name)
    assert (code, reply["data"]["what"]) == (Exit.DONE, "phase")
    assert reply["data"]["says"][-1].startswith("phase 01-auth: at ")


def test_a_plan_and_a_task_are_how_much_of_them_is_committed(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    _, plan = said(team, capsys, "explain", "01-01")
    _, task = said(team, capsys, "explain", "01-01/T1")
    assert (plan["data"]["what"], task["data"]["what"]) == ("plan", "task")
    assert "0 of" in plan["data"]["says"][0] and "0 of 1 task committed" in task["data"]["says"][0]


@pytest.mark.parametrize("name", ["ESC-01-01-T9", "01-77", "01-01/T77", "77-nothing"])
def test_an_id_that_the_branch_does_not_have_is_unknown(
    team: Team, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(["explain", "-C", str(team.root), name]) == Exit.USAGE
    assert "unknown_name" in capsys.readouterr().err


def test_a_closed_gate_names_first_what_most_of_the_phase_waits_for(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    team.once()
    capsys.readouterr()
    assert run(["gate", "why", "all-depts", "-C", str(team.root)]) == Exit.FINDINGS
    first, command, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith(f"root cause: waiting for user, who answers {NAME}")
    assert command == f"  → yolo-fs answer {NAME} CHOICE"


def test_whoever_is_waited_for_is_told_in_the_same_words_everywhere(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("-C", str(team.root), "-q")
    run(["escalate", "open", *at, "--task", "01-01/T1", "--reason", "Which colour?", *WORDS])
    team.once()
    told = {}
    for command in ("status", "gate why all-depts"):
        capsys.readouterr()
        run([*command.split(), "-C", str(team.root)])
        told[command] = " ".join(capsys.readouterr().out.split())
    words = f"waiting for senior, who answers {NAME}"
    assert {command: text.count(words) for command, text in told.items()} == {
        "status": 3,
        "gate why all-depts": 1,
    }


@pytest.mark.parametrize(
    ("written", "meant"), [("all_dept", "all-depts"), ("ux-securty", "ux-security")]
)
def test_a_name_that_is_meant_is_told_as_every_command_spells_it(
    team: Team, capsys: pytest.CaptureFixture[str], written: str, meant: str
) -> None:
    assert run(["explain", "-C", str(team.root), written]) == Exit.USAGE
    assert f"Did you mean {meant}" in capsys.readouterr().err
