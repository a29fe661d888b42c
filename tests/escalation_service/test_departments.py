"""Two departments with a plan of one number: each has escalations of its own for the same task number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.ids import EscalationId
from yolo_fs.core.reasons import Exit
from yolo_fs.protocol.departments import WORKING, Department
from yolo_fs.schemas.check import check
from yolo_fs.schemas.lines.escalation import EscalationLine

PHASE = ".yolo-planning/phases/01-auth"
LOG = f"{PHASE}/escalation.jsonl"
SAYS = ("--evidence", "seen", "--recommendation", "decide")

Ask = Callable[..., tuple[int, dict[str, Any]]]


def plan_frontend(team: Team) -> None:
    """Write a plan of the frontend with the number of the backend's."""
    plan = (team.examples / "plan/ok/first_wave.jsonl").read_text()
    team.artifact("fe-01-01.plan.jsonl", plan.replace("src/auth/", "src/page/"))


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    """A backend and a frontend with a plan 01-01 each; both are blocked at their task T1."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team.of_three(tmp_path / "work tree")
    team.plan_one()
    plan_frontend(team)
    team.once()
    return team


def asking(team: Team, capsys: pytest.CaptureFixture[str]) -> Ask:
    def asked(*words: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = run([*words, "--json", "-C", str(team.root)])
        return code, json.loads(capsys.readouterr().out)

    return asked


@pytest.fixture
def ask(team: Team, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(team, capsys)


def report(ask: Ask, agent: str, reason: str) -> tuple[int, dict[str, Any]]:
    return ask(
        "escalate", "open", "--as", agent, "--task", "01-01/T1", "--reason", reason, *SAYS
    )  # fmt: skip


def standings(ask: Ask) -> dict[str, tuple[str, str]]:
    (listed,) = ask("escalate", "list")[1]["data"].values()
    return {each["id"]: (each["department"], each["standing"]) for each in listed}


def test_each_department_reports_its_own_task_of_one_number(team: Team, ask: Ask) -> None:
    assert report(ask, "dev", "the key is missing")[0] == Exit.DONE
    code, answer = report(ask, "fe-dev", "which blue?")
    assert (code, answer["findings"]) == (Exit.DONE, [])
    assert answer["data"]["line"]["id"] == "ESC-fe-01-01-T1"
    assert answer["data"]["line"]["tgt"] == "fe-senior"
    assert standings(ask) == {
        "ESC-01-01-T1": ("backend", "rising"),
        "ESC-fe-01-01-T1": ("frontend", "rising"),
    }
    team.once()
    assert team.git("status", "--porcelain", "--", LOG) == "", "it is committed like any artifact"
    state = json.loads((team.root / PHASE / ".execution-state.json").read_text())
    assert [(each["id"], each["task"]) for each in state["escalations"]] == [
        ("ESC-01-01-T1", "01-01/T1"),
        ("ESC-fe-01-01-T1", "01-01/T1"),
    ]
    assert ask("validate")[0] == Exit.DONE
    inbox = [each["id"] for each in ask("inbox")[1]["data"]]
    assert not [each for each in inbox if each.startswith("ESC")], "a Senior each is asked first"


def test_an_answer_and_a_commit_end_the_one_that_they_name(team: Team, ask: Ask) -> None:
    report(ask, "dev", "the key is missing")
    report(ask, "fe-dev", "which blue?")
    told = ask("escalate", "resolve", "ESC-fe-01-01-T1", "--as", "fe-senior", "--decision", "navy")
    assert told[0] == Exit.DONE
    assert standings(ask) == {
        "ESC-01-01-T1": ("backend", "rising"),
        "ESC-fe-01-01-T1": ("frontend", "descending"),
    }
    team.file("src/page/tokens.ts", "export {}\n")
    team.user_commits("feat(01-01): T1 paint it navy", "src/page/tokens.ts")
    ask("escalate", "tick")
    assert standings(ask) == {
        "ESC-01-01-T1": ("backend", "rising"),
        "ESC-fe-01-01-T1": ("frontend", "resolved"),
    }


def test_nobody_of_another_department_is_asked_for_a_decision(team: Team, ask: Ask) -> None:
    opened = ("escalate", "open", "--as", "dev", "--task", "01-01/T1", "--reason", "the key", *SAYS)
    code, answer = ask(*opened, "--to", "fe-senior")
    assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, "wrong_level")
    assert answer["findings"][0]["message"] == (
        "fe-senior is not in backend, which owns this escalation"
    )
    assert ask(*opened, "--to", "senior")[0] == Exit.DONE
    up = ("escalate", "raise", "ESC-01-01-T1", "--as", "senior", "--reason", "the key", *SAYS)
    code, answer = ask(*up, "--to", "fe-lead")
    assert (code, answer["findings"][0]["hint"]) == (Exit.FINDINGS, "It belongs to lead.")
    assert ask(*up, "--to", "lead")[0] == Exit.DONE
    down = ("escalate", "resolve", "ESC-01-01-T1", "--as", "lead", "--decision", "the new one")
    code, answer = ask(*down, "--to", "ux-senior")
    held = answer["data"]["escalation"]["holder"]
    assert (code, held) == (Exit.DONE, "senior"), "a decision goes on all the same"
    (warning,) = ask("escalate", "list")[1]["findings"]
    assert (warning["level"], warning["hint"]) == ("warning", "It belongs to senior.")


def test_a_progress_message_names_the_task_of_either(team: Team, ask: Ask, tmp_path: Path) -> None:
    report(ask, "fe-dev", "which blue?")
    ask("escalate", "resolve", "ESC-fe-01-01-T1", "--as", "fe-senior", "--decision", "navy")
    team.file("src/page/tokens.ts", "export {}\n")
    commit = team.user_commits("feat(01-01): T1 paint it navy", "src/page/tokens.ts")
    progress = {"type": "dev_progress", "task": "01-01/T1", "plan_id": "01-01", "commit": commit[:12],
                "status": "complete", "concerns": []}  # fmt: skip
    message = tmp_path / "progress.json"
    message.write_text(json.dumps(progress))
    code, answer = ask(
        "escalate", "resolve", "ESC-fe-01-01-T1", "--as", "fe-dev", "--message", str(message)
    )
    assert (code, answer["findings"]) == (Exit.DONE, [])
    assert standings(ask)["ESC-fe-01-01-T1"] == ("frontend", "resolved")


def test_a_line_under_the_other_departments_id_is_told_its_own(team: Team, ask: Ask) -> None:
    report(ask, "dev", "the key is missing")
    code, answer = ask(
        "escalate", "raise", "ESC-01-01-T1", "--as", "fe-senior", "--reason", "blue?", *SAYS
    )
    assert code == Exit.FINDINGS
    assert "as ESC-fe-01-01-T1" in answer["findings"][0]["hint"]


def test_what_was_reported_without_a_prefix_goes_on_without_it(team: Team, ask: Ask) -> None:
    line = {"id": "ESC-01-01-T1", "dt": "2026-02-19T11:00:00Z", "agent": "fe-dev", "reason": "which blue?", "sb": "s",
            "tgt": "fe-senior", "sev": "blocking", "st": "open"}  # fmt: skip
    team.file(LOG, json.dumps(line) + "\n")
    told = ask("escalate", "resolve", "ESC-01-01-T1", "--as", "fe-senior", "--decision", "navy")
    assert told[0] == Exit.DONE
    assert report(ask, "fe-dev", "navy fails")[1]["data"]["line"]["id"] == "ESC-01-01-T1"
    assert standings(ask) == {"ESC-01-01-T1": ("frontend", "rising")}


def test_a_plan_that_comes_after_the_others_escalation_has_an_id_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team.of_three(tmp_path / "work tree")
    plan_frontend(team)
    team.once()
    ask = asking(team, capsys)
    assert report(ask, "fe-dev", "which blue?")[1]["data"]["line"]["id"] == "ESC-01-01-T1"
    team.plan_one()
    team.once()
    code, answer = report(ask, "dev", "the key is missing")
    assert (code, answer["findings"]) == (Exit.DONE, [])
    assert answer["data"]["line"]["id"] == "ESC-be-01-01-T1"
    assert answer["data"]["line"]["tgt"] == "senior"
    assert standings(ask) == {
        "ESC-01-01-T1": ("frontend", "rising"),
        "ESC-be-01-01-T1": ("backend", "rising"),
    }
    told = ask("escalate", "resolve", "ESC-be-01-01-T1", "--as", "senior", "--decision", "rotate")
    assert told[0] == Exit.DONE
    team.file("src/auth/session.ts", "export {}\n")
    team.user_commits("feat(01-01): T1 rotate the key", "src/auth/session.ts")
    ask("escalate", "tick")
    assert standings(ask) == {
        "ESC-01-01-T1": ("frontend", "rising"),
        "ESC-be-01-01-T1": ("backend", "resolved"),
    }
    assert ask("validate")[0] == Exit.DONE


def test_a_line_by_hand_under_an_id_that_the_other_has_is_told_its_own(
    team: Team, ask: Ask
) -> None:
    line = {"id": "ESC-01-01-T1", "dt": "2026-02-19T11:00:00Z", "agent": "fe-dev", "reason": "which blue?", "sb": "s",
            "tgt": "fe-senior", "sev": "blocking", "st": "open"}  # fmt: skip
    mine = line | {"dt": "2026-02-19T11:01:00Z", "agent": "dev", "tgt": "senior"}
    team.file(LOG, json.dumps(line) + "\n" + json.dumps(mine) + "\n")
    answer = ask("escalate", "list")[1]
    assert "as ESC-be-01-01-T1" in str(answer["findings"])


def test_a_blocker_that_is_resolved_in_words_ends_the_one_of_the_department_whose_files_it_changes(
    team: Team, ask: Ask
) -> None:
    report(ask, "dev", "the key is missing")
    report(ask, "fe-dev", "which blue?")
    for name, agent in (("ESC-01-01-T1", "senior"), ("ESC-fe-01-01-T1", "fe-senior")):
        ask("escalate", "resolve", name, "--as", agent, "--decision", "go on")
    team.file("src/page/tokens.ts", "export {}\n")
    team.user_commits("fix(01-01): resolve blocker", "src/page/tokens.ts")
    ask("escalate", "tick")
    assert standings(ask) == {
        "ESC-01-01-T1": ("backend", "descending"),
        "ESC-fe-01-01-T1": ("frontend", "resolved"),
    }


def test_a_review_that_failed_for_the_last_time_finds_a_task_that_only_the_other_has_blocked(
    team: Team, ask: Ask
) -> None:
    report(ask, "dev", "the key is missing")
    found = {"f": "src/page/tokens.ts", "ln": 1, "sev": "major", "issue": "no check", "sug": "one"}
    for cycle in (1, 2):
        verdict = {"plan": "01-01", "r": "changes_requested", "cycle": cycle, "dt": "2026-02-19"}
        lines = "".join(json.dumps(each) + "\n" for each in (verdict, found))
        team.artifact("fe-code-review.jsonl", lines)
        team.once()
        team.file("src/page/tokens.ts", f"export const cycle = {cycle}\n")
        team.user_commits("feat(01-01): T1 paint it", "src/page/tokens.ts")
    team.once()
    assert standings(ask)["ESC-fe-01-01-T1"] == ("frontend", "rising")


def test_a_blocker_counts_for_the_department_of_whoever_reports_it(team: Team, ask: Ask) -> None:
    for number in (1, 2):
        blocker = {"type": "dev_blocker", "task": f"01-01/T{number}", "plan_id": "01-01", "blocker": "blue?",
                   "needs": "a colour", "attempted": ["navy"]}  # fmt: skip
        message = team.file(f"blocker{number}.json", json.dumps(blocker))
        assert ask("agent", "note", str(message), "--as", "fe-dev")[0] == Exit.DONE
    circuits = ask("status")[1]["data"]["crew"]["circuits"]
    assert {each["dept"]: each["failure_count"] for each in circuits} == {
        "backend": 0, "frontend": 2, "uiux": 0,
    }  # fmt: skip


@pytest.mark.parametrize("row", WORKING, ids=lambda row: row.name)
def test_the_ids_of_every_department_are_known_to_the_schema(row: Department) -> None:
    name = EscalationId.parse(f"ESC-{row.in_ids}01-01-T1")
    assert name is not None and name.marker == row.in_ids
    line = {"id": str(name), "dt": "2026-02-19T11:00:00Z", "agent": "dev", "reason": "r", "sb": "s", "tgt": "senior",
            "sev": "blocking", "st": "open"}  # fmt: skip
    assert check(EscalationLine, line)[1] == ()
