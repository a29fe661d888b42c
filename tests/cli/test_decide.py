"""`decide`: a decision is a record with fields, written by whoever may take it, and only that counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit

LOG = ".yolo-planning/phases/01-auth/decisions.jsonl"


@pytest.fixture
def team(tmp_path: Path) -> Team:
    made = Team(tmp_path / "work")
    made.begin()
    made.plan_one()
    made.once()
    return made


def decide(
    capsys: pytest.CaptureFixture[str], team: Team, *words: str
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(["decide", *words, "--json", "-C", str(team.root)])
    return code, json.loads(capsys.readouterr().out)


ACCEPT = ("accept", "01-01", "--reason", "it is rare")


def test_the_lead_accepts_a_plan_once_and_the_daemon_commits_it(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = decide(capsys, team, *ACCEPT, "--as", "yolo-lead")
    assert (code, said["data"]["path"], said["data"]["already"]) == (Exit.DONE, LOG, False)
    record = json.loads((team.root / LOG).read_text())
    assert record.pop("ts")
    assert record == {
        "agent": "lead",
        "dec": "accept 01-01 with known issues",
        "kind": "accept",
        "of": "01-01",
        "reason": "it is rare",
    }
    team.once()
    assert team.git("show", f"HEAD:{LOG}") == (team.root / LOG).read_text().rstrip("\n")
    assert decide(capsys, team, *ACCEPT, "--as", "lead")[1]["data"]["already"]
    assert len((team.root / LOG).read_text().splitlines()) == 1


@pytest.mark.parametrize("agent", ["dev", "senior", "fe-lead", "architect"])
def test_nobody_but_the_lead_of_its_department_accepts_a_plan(
    team: Team, capsys: pytest.CaptureFixture[str], agent: str
) -> None:
    code, said = decide(capsys, team, *ACCEPT, "--as", agent)
    (finding,) = said["findings"]
    assert (code, finding["reason"]) == (Exit.USAGE, "out_of_lane")
    assert "lead" in finding["hint"] and not (team.root / LOG).exists()


def test_a_plan_that_is_not_there_is_named_with_those_that_are(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("accept", "01-09", "--reason", "x", "--as", "lead")
    code, said = decide(capsys, team, *words)
    assert code == Exit.USAGE and "01-01" in said["findings"][0]["hint"]


@pytest.mark.parametrize(
    "words",
    [
        ("accept", "02-01", "--as", "lead"),
        ("assign", "02-01/T1", "--as", "lead"),
        ("supersede", ".yolo-planning/phases/02-next/critique.jsonl", "C1", "--as", "critic"),
    ],
    ids=lambda words: words[0],
)
def test_a_decision_on_a_plan_is_of_the_phase_that_its_number_names(
    team: Team, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """Another phase may be at work, and whoever is told the command is told no phase."""
    first = next((team.root / LOG).parent.glob("01-01.plan.jsonl")).read_text()
    later = ".yolo-planning/phases/02-next"
    team.file(f"{later}/02-01.plan.jsonl", first.replace('"p": "01"', '"p": "02"'))
    team.example("critique/ok/two_rounds.jsonl", "critique.jsonl", "02-next")
    team.user_commits("docs(02): plan 02-01", f"{later}/02-01.plan.jsonl")
    team.user_commits("docs(02): critique and gap analysis", f"{later}/critique.jsonl")
    code, said = decide(capsys, team, *words, "--reason", "it is rare")
    assert code == Exit.DONE, said["findings"]
    assert said["data"]["path"] == f"{later}/decisions.jsonl"


def test_the_user_accepts_the_risk_of_a_department(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = decide(capsys, team, "accept-risk", "backend", "--reason", "behind a VPN")
    record = said["data"]["record"]
    assert (code, record["agent"], record["kind"], record["of"]) == (
        Exit.DONE, "user", "accept_risk", "backend",
    )  # fmt: skip
    assert decide(capsys, team, "accept-risk", "frontend", "--reason", "x")[0] == Exit.USAGE


@pytest.mark.parametrize("gate", ["code_review", "qa_fail", "security_warn"])
def test_the_user_lets_a_department_go_on_at_an_approval_gate(
    team: Team, capsys: pytest.CaptureFixture[str], gate: str
) -> None:
    code, said = decide(capsys, team, "approve", gate, "backend", "--reason", "I read it")
    record = said["data"]["record"]
    assert (code, record["agent"], record["kind"], record["of"]) == (
        Exit.DONE, "user", "approve", f"backend:{gate}",
    )  # fmt: skip
    assert decide(capsys, team, "approve", gate, "frontend", "--reason", "x")[0] == Exit.USAGE


@pytest.mark.parametrize(
    "words",
    [
        ("decide", "accept-risk", "backend", "--reason", "x"),
        ("decide", "approve", "code_review", "backend", "--reason", "x"),
        ("answer", "ESC-01-01-T1", "1"),
        ("workflow", "skip", "research", "--reason", "x"),
        ("squash", "1", "--write"),
    ],
)
def test_what_a_person_decides_no_agent_of_a_run_decides(
    team: Team,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.setenv("YOLO_FS_RUN", "R20260101000000ab12")
    before = team.git("status", "--porcelain")
    capsys.readouterr()
    assert run([*words, "--json", "-C", str(team.root)]) == Exit.FINDINGS
    assert json.loads(capsys.readouterr().out)["findings"][0]["reason"] == "out_of_lane"
    assert team.git("status", "--porcelain") == before


@pytest.mark.parametrize(("file", "record"), [("critique.jsonl", "C99"), ("gaps.jsonl", "GAP-01")])
def test_a_record_that_is_not_there_is_not_given_up_in_advance(
    team: Team, capsys: pytest.CaptureFixture[str], file: str, record: str
) -> None:
    words = ("supersede", file, record, "--as", "lead", "--reason", "x")
    code, said = decide(capsys, team, *words)
    (finding,) = said["findings"]
    assert (code, finding["reason"]) == (Exit.USAGE, "unknown_name")
    assert ("C1" in finding["hint"]) == (file == "critique.jsonl")
    assert not (team.root / LOG).exists()


def test_a_file_of_another_phase_is_not_taken_for_that_of_this_one(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("supersede", ".yolo-planning/phases/02-pay/critique.jsonl", "C1", "--as", "critic")
    code, said = decide(capsys, team, *words, "--reason", "x")
    assert code == Exit.USAGE, said
    assert "no artifact of .yolo-planning/phases/01-auth" in said["findings"][0]["message"]


@pytest.mark.parametrize("variable", ["YOLO_FS_ROLE", "YOLO_FS_AGENT"])
@pytest.mark.parametrize(
    "words",
    [
        ("decide", *ACCEPT, "--as", "lead"),
        ("commit", "--task", "01-01/T1", "--type", "feat", "-m", "keys", "--as", "lead"),
        ("phase", "sign-off", "1", "--as", "lead"),
        ("escalate", "open", "--task", "01-01/T1", "--from", "lead", "--reason", "x"),
        ("task", "claim", "01-01/T1", "--as", "tester"),
    ],
)
def test_an_agent_that_the_environment_names_speaks_for_nobody_else(
    team: Team,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    variable: str,
) -> None:
    monkeypatch.setenv(variable, "dev")
    team.file("src/auth/keys.ts", "export {}\n")
    before = team.git("status", "--porcelain"), team.head()
    capsys.readouterr()
    assert run([*words, "--json", "-C", str(team.root)]) == Exit.FINDINGS
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["reason"], f"runs as dev ({variable})" in finding["message"]) == (
        "out_of_lane",
        True,
    )
    assert (team.git("status", "--porcelain"), team.head()) == before


@pytest.mark.parametrize(
    ("variable", "own", "said", "is_own"),
    [
        ("YOLO_FS_ROLE", "lead", "fe-lead", True),
        ("YOLO_FS_AGENT", "yolo-lead", "fe-lead", False),
        ("YOLO_FS_AGENT", "yolo-fe-lead", "fe-lead", True),
        ("YOLO_FS_AGENT", "lead-2", "lead", True),
        ("YOLO_FS_ROLE", "executor", "fe-lead", True),
    ],
)
def test_a_role_is_that_of_each_department_and_an_agent_of_its_own(
    team: Team,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    own: str,
    said: str,
    *,
    is_own: bool,
) -> None:
    monkeypatch.setenv(variable, own)
    _, answer = decide(capsys, team, *ACCEPT, "--as", said)
    (finding, *_) = answer["findings"] or [{"message": ""}]
    assert ("this session runs as" in finding["message"]) is not is_own


def test_whoever_answers_an_escalation_without_a_name_is_the_agent_of_the_session(
    team: Team, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("--task", "01-01/T1", "--reason", "Which?", "--evidence", "a", "--recommendation", "b")
    assert run(["escalate", "open", *asked, "-C", str(team.root)]) == Exit.DONE
    monkeypatch.setenv("YOLO_FS_ROLE", "dev")
    answer = ("escalate", "resolve", "ESC-01-01-T1", "--decision", "RS256", "--reason", "x")
    assert run([*answer, "-C", str(team.root)]) == Exit.FINDINGS
    monkeypatch.setenv("YOLO_FS_ROLE", "senior")
    assert run([*answer, "-C", str(team.root)]) == Exit.DONE
