"""Loops read from a real history: each version of a file is a round, each source commit in between a repair."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.services.teams import CLAIM, Team
from yolo_fs.edges.git.repository import Repository
from yolo_fs.rules.loops.facts import Loop, LoopProgress
from yolo_fs.services.loops import loop_facts, loops_of
from yolo_fs.services.settings import load
from yolo_fs.services.team import Team as Facts


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    found = Team(tmp_path / "work tree")
    found.begin()
    found.plan_one()
    return found


def of(team: Team, kind: Loop) -> LoopProgress:
    with Repository(str(team.root)) as repository:
        facts = Facts(repository, load(repository.root))
        (phase,) = facts.facts(team.head())
        return next(one for one in loops_of(repository, facts, phase, team.head(), 0) if one.kind is kind)


def works(team: Team, subject: str, text: str) -> str:
    team.file("src/auth/tokens.ts", text)
    return team.user_commits(subject, "src/auth/tokens.ts")


def summarise(team: Team) -> None:
    done = works(team, "feat(01-01): T1 load the keys", "1\n")
    team.artifact("01-01.summary.jsonl", json.dumps(CLAIM | {"ch": [done[:12]]}) + "\n")
    team.once()


def review(team: Team, verdict: str, cycle: int, *severities: str) -> None:
    lines: list[dict[str, Any]] = [{"plan": "01-01", "r": verdict, "cycle": cycle, "dt": "2026-02-19"}]
    lines += [
        {"f": "src/auth/tokens.ts", "ln": 1, "sev": each, "issue": f"{each} {cycle}", "sug": "x"} for each in severities
    ]
    team.artifact("code-review.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    team.once()


def test_a_review_goes_through_its_cycles_although_the_file_is_written_anew(team: Team) -> None:
    summarise(team)
    assert (of(team, Loop.CODE_REVIEW).round, of(team, Loop.CODE_REVIEW).next) == (0, "senior")
    review(team, "changes_requested", 1, "major", "nit")
    assert of(team, Loop.CODE_REVIEW).next == "dev"
    works(team, "fix(01-01): T1 end the session", "2\n")
    assert of(team, Loop.CODE_REVIEW).next == "senior"
    review(team, "changes_requested", 2, "critical")
    found = of(team, Loop.CODE_REVIEW)
    assert (found.state, found.round, found.rounds_left, found.next) == ("escalated to the Lead", 2, 0, "lead")
    assert found.metrics is not None
    assert found.metrics.finding_severity_distribution == {"major": 1, "nit": 1, "critical": 1}
    assert len(found.metrics.time_per_cycle) == found.metrics.cycle_count == 2
    assert found.metrics.escalation_triggered


def test_only_a_commit_of_that_plan_repairs_it(team: Team) -> None:
    summarise(team)
    review(team, "changes_requested", 1, "nit")
    works(team, "fix(01-02): T1 elsewhere", "2\n")
    assert of(team, Loop.CODE_REVIEW).state == "minor findings"
    works(team, "fix(01-01): T1 here", "3\n")
    assert of(team, Loop.CODE_REVIEW).state == "approved after the fix"


def test_the_step_of_the_review_ends_where_its_loop_does(team: Team) -> None:
    def lacks() -> tuple[str, ...]:
        with Repository(str(team.root)) as repository:
            ((_, progress),) = Facts(repository, load(repository.root)).folded(team.head())
        steps = progress.departments[0].steps
        (missing,) = [one.missing for one in steps if one.step.key == "code_review"]
        return tuple(lack for lack in missing if "review" in lack)

    summarise(team)
    review(team, "changes_requested", 1, "nit")
    asked = ("the review of plan 01-01 says changes_requested: minor findings",)
    assert lacks() == asked
    works(team, "fix(01-02): T1 elsewhere", "2\n")
    assert lacks() == asked
    works(team, "fix(01-01): name it well", "3\n")
    assert lacks() == ()
    path = team.root / ".yolo-planning/phases/01-auth/code-review.jsonl"
    path.write_text(path.read_text() + '{"plan":"01-02","r":"approve","cycle":1,"dt":"2026-02-19"}\n')
    team.once()
    assert lacks() == () and of(team, Loop.CODE_REVIEW).state == "approved after the fix"


def test_three_failures_of_qa_are_counted_over_one_file(team: Team) -> None:
    quality = json.loads((team.examples / "qa-code/ok").joinpath(_first(team)).read_text().splitlines()[0])
    for number in range(3):
        team.artifact("qa-code.jsonl", json.dumps(quality | {"r": "FAIL", "dt": f"2026-02-1{number}"}) + "\n")
        team.once()
        works(team, f"fix(01-01): T1 try {number}", f"{number + 7}\n")
    found = of(team, Loop.QA)
    assert (found.state, found.round, found.rounds_left, found.next) == ("3rd QA FAIL", 3, 0, "lead")


def _first(team: Team) -> str:
    return min((team.examples / "qa-code/ok").iterdir()).name


def test_seconds_between_reviews_are_those_of_the_commits(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    summarise(team)
    review(team, "changes_requested", 1, "major")
    tip = team.head()
    at_s = int(team.git("log", "-1", "--format=%ct", tip)) + 3600
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"@{at_s} +0000")
    works(team, "fix(01-01): T1 later", "2\n")
    review_path = ".yolo-planning/phases/01-auth/code-review.jsonl"
    team.file(review_path, '{"plan":"01-01","r":"approve","cycle":2,"dt":"2026-02-20"}\n')
    team.user_commits("docs(01): code review 01-01", review_path)
    found = of(team, Loop.CODE_REVIEW)
    assert found.metrics is not None
    assert found.metrics.time_per_cycle[1] == 3600
    assert (found.state, found.metrics.escalation_triggered) == ("approved", False)


def test_versions_follow_the_order_of_history(team: Team) -> None:
    summarise(team)
    review(team, "changes_requested", 1, "nit")
    with Repository(str(team.root)) as repository:
        facts = Facts(repository, load(repository.root))
        (phase,) = facts.facts(team.head())
        found = loop_facts(repository, facts, phase, team.head(), 0)
    orders = [version.order for versions in found.versions.values() for version in versions]
    count = subprocess.run(
        ["git", "-C", team.root, "rev-list", "--count", "HEAD"], check=True, capture_output=True, text=True
    ).stdout
    assert len(set(orders)) == len(orders) and max(orders) == int(count)
    assert [one.plan for one in found.work] == ["01-01"]
