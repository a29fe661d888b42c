"""A code review that failed for the last time is escalated by the daemon, once, and its holder is told what is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team, planned_team
from yolo_fs.cli.main import run
from yolo_fs.phase.report import Audience, as_text
from yolo_fs.reports.resume import resume

LOG = ".yolo-planning/phases/01-auth/escalation.jsonl"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    return planned_team(tmp_path, monkeypatch)


def review(team: Team, cycle: int, issue: str) -> None:
    verdict = {"plan": "01-01", "r": "changes_requested", "cycle": cycle, "dt": "2026-02-19"}
    found = {"f": "src/auth.ts", "ln": 1, "sev": "major", "issue": issue, "sug": "mend it"}
    team.artifact("code-review.jsonl", json.dumps(verdict) + "\n" + json.dumps(found) + "\n")
    team.once()


def logged(team: Team) -> list[dict[str, Any]]:
    path = team.root / LOG
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_the_last_failed_review_opens_its_escalation_once(team: Team) -> None:
    review(team, 1, "no check")
    assert logged(team) == []
    team.file("src/auth/tokens.ts", "export {}\n")
    team.user_commits("feat(01-01): T1 load the keys", "src/auth/tokens.ts")
    review(team, 2, "still no check")
    (line,) = logged(team)
    assert (line["id"], line["agent"], line["tgt"], line["st"]) == (
        "ESC-01-01-T1", "senior", "lead", "open",
    )  # fmt: skip
    assert team.git("status", "--porcelain", "--", LOG) == "", "it is committed like any artifact"
    team.file("README.md", "more\n")
    team.user_commits("docs: more", "README.md")
    team.once()
    assert logged(team) == [line]
    text = as_text(resume(str(team.root), Audience("lead")))
    assert "next: lead" in text and "nothing to do" not in text
    assert "question: code review 01-01: escalated to the Lead" in text


@pytest.mark.proves("002:133")
def test_what_the_lead_accepts_ends_the_escalation_of_the_review(team: Team) -> None:
    team.file("src/auth/tokens.ts", "export {}\n")
    review(team, 1, "no check")
    team.user_commits("feat(01-01): T1 load the keys", "src/auth/tokens.ts")
    review(team, 2, "still no check")
    accepted = {"ts": "2026-02-20T10:00:00Z", "agent": "lead", "reason": "it is rare"}
    remark = json.dumps({**accepted, "dec": "I like 01-01"}) + "\n"
    team.artifact("decisions.jsonl", remark)
    team.once()
    assert len(logged(team)) == 1
    accepted |= {"dec": "Ship 01-01 as it is", "kind": "accept", "of": "01-01"}
    team.artifact("decisions.jsonl", remark + json.dumps(accepted) + "\n")
    team.once()
    last = logged(team)[-1]
    assert (last["st"], last["mv"], last["agent"]) == ("resolved", "over", "senior")
    assert team.git("cat-file", "-t", last["ref"]) == "commit"
    assert "rising" not in as_text(resume(str(team.root), Audience("lead")))


FAILED = {"r": "FAIL", "findings": 1, "critical": 1, "dt": "2026-02-20"}
HOLE = {"cat": "secrets", "sev": "critical", "f": "src/auth.ts", "issue": "a key", "fix": "move it"}
ACCEPTED = {"ts": "2026-02-20T10:00:00Z", "agent": "user", "reason": "behind a VPN", "dec": "accept the risks",
            "kind": "accept_risk", "of": "backend"}  # fmt: skip


@pytest.mark.proves("002:101b")
@pytest.mark.parametrize(
    ("name", "record", "end"),
    [
        ("decisions.jsonl", ACCEPTED, "the user accepted the risk"),
        ("security-audit.jsonl", FAILED | {"r": "PASS", "critical": 0}, "passed"),
    ],
)
def test_a_user_who_has_decided_on_a_security_fail_is_not_asked_again(
    team: Team, name: str, record: dict[str, Any], end: str
) -> None:
    team.artifact("security-audit.jsonl", f"{json.dumps(FAILED)}\n{json.dumps(HOLE)}\n")
    team.once()
    words = ("escalate", "open", "--fail", "--as", "security", "--task", "01-01/T1", "--reason", "a key",
             "--evidence", "src/auth.ts:1", "--recommendation", "move it")  # fmt: skip
    assert run([*words, "-C", str(team.root)]) == 0
    team.once()
    assert "user has to act" in as_text(resume(str(team.root), Audience("lead")))
    team.artifact(name, json.dumps(record) + "\n")
    team.once()
    last = logged(team)[-1]
    assert (last["st"], last["mv"], last["res"]) == ("resolved", "over", end)
    assert "user has to act" not in as_text(resume(str(team.root), Audience("lead")))
