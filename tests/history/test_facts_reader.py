"""Loops read from a real history: each version of a file is a round, each source commit in between a repair."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import BACKEND, CLAIM, EXAMPLES, Team, planned_team
from yolo_fs.artifacts.table import ARTIFACTS, Home
from yolo_fs.cli.main import run
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.evidence.failures import withdrawn_from
from yolo_fs.evidence.judged import came_later, later_than
from yolo_fs.git import history
from yolo_fs.git.repository import Repository
from yolo_fs.history import version_reader
from yolo_fs.history.artifact_reader import ArtifactReader
from yolo_fs.history.facts_reader import FactsReader, loop_facts, loops_of
from yolo_fs.loops.facts import Loop, LoopProgress
from yolo_fs.phase.phase import Phase
from yolo_fs.progress.board import board
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT
from yolo_fs.workspace.settings import load


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    return planned_team(tmp_path, monkeypatch)


def of(team: Team, kind: Loop) -> LoopProgress:
    with Repository(str(team.root)) as repository:
        facts = FactsReader(repository, load(repository.root))
        (phase,) = facts.facts(team.head())
        return next(one for one in loops_of(facts, Phase(phase), 0) if one.kind is kind)


def in_every_form(team: Team) -> None:
    """Commit each example of each artifact, those with faults as well, as the user does."""
    for row in ARTIFACTS:
        folder = EXAMPLES / row.kind
        for number, example in enumerate(sorted(folder.glob("*/*")), 1):
            name = row.file.format(
                dept="", plan=f"{number:02}-01", NN=f"{number:02}", department="backend"
            )
            home = f"phases/{number:02}-x/" if row.home is Home.PHASE else ""
            path = team.root / ".yolo-planning" / f"{home}{name}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(example.read_bytes())
    team.user_commits("chore: everything", ".yolo-planning")


def facts_of(team: Team, *, keep: bool = False) -> tuple[PhaseFacts, ...]:
    with Repository(str(team.root)) as repository:
        facts = FactsReader(repository, load(repository.root))
        found = facts.facts(team.head())
        if keep:
            facts.keep()
        return found


def refuse(*_: object) -> None:
    raise AssertionError("it was read anew")


@pytest.mark.proves("resume:9")
def test_what_artifacts_say_is_read_once_for_all_processes(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_every_form(team)
    before = facts_of(team, keep=True)
    assert {one.valid for phase in before for one in phase.committed} == {True, False}
    monkeypatch.setattr(ArtifactReader, "_parse", refuse)
    assert facts_of(team) == before


def test_what_was_kept_holds_for_no_other_content_and_no_other_settings(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts_of(team, keep=True)
    monkeypatch.setattr(ArtifactReader, "_parse", refuse)
    for policy in ({"legacy": True}, {"max_depth": 63}):
        config = team.root.parent / "no config" / "yolo-fs" / "config.json"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps({"policy": policy}))
        with pytest.raises(AssertionError, match="read anew"):
            facts_of(team)
        config.unlink()
    facts_of(team)
    team.example("plan/ok/planned.jsonl", "01-02.plan.jsonl")
    team.user_commits("docs: another", ".yolo-planning")
    with pytest.raises(AssertionError, match="read anew"):
        facts_of(team)


def test_a_review_of_all_plans_is_read_anew_once_there_is_another_plan(team: Team) -> None:
    verdict = {"plan": "01-*", "r": "approve", "cycle": 1, "dt": "2026-02-19"}
    team.artifact("code-review.jsonl", json.dumps(verdict) + "\n")
    team.user_commits("docs: review", ".yolo-planning")
    facts_of(team, keep=True)
    team.example("plan/ok/planned.jsonl", "01-02.plan.jsonl")
    team.user_commits("docs: another", ".yolo-planning")
    (phase,) = facts_of(team)
    assert [line["plan"] for line in phase.lines_of("code-review")] == ["01-01", "01-02"]


def works(team: Team, subject: str, text: str) -> str:
    team.file("src/auth/tokens.ts", text)
    return team.user_commits(subject, "src/auth/tokens.ts")


def summarise(team: Team) -> None:
    done = works(team, "feat(01-01): T1 load the keys", "1\n")
    team.artifact("01-01.summary.jsonl", json.dumps(CLAIM | {"ch": [done[:12]]}) + "\n")
    team.once()


def review(team: Team, verdict: str, cycle: int, *severities: str) -> None:
    lines: list[dict[str, Any]] = [
        {"plan": "01-01", "r": verdict, "cycle": cycle, "dt": "2026-02-19"}
    ]
    lines += [
        {"f": "src/auth/tokens.ts", "ln": 1, "sev": each, "issue": f"{each} {cycle}", "sug": "x"}
        for each in severities
    ]
    team.artifact("code-review.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    team.once()


def test_the_board_shows_open_loops_and_decisions_out_of_lane_now_and_at_any_commit(
    team: Team,
) -> None:
    summarise(team)
    review(team, "changes_requested", 1, "major", "nit")
    decided = {
        "ts": "2026-02-19T08:00:00Z",
        "agent": "dev",
        "dec": "use Redis",
        "reason": "fast",
        "task": "01-01/T1",
    }
    team.artifact(
        "decisions.jsonl", json.dumps(decided | {"topic": "architectural choices"}) + "\n"
    )
    team.once()
    then = team.head()
    (before,) = on_board(team, then)["phases"]
    assert [(one["loop"], one["next"]) for one in before["loops"]] == [("code review", "dev")]
    (found,) = before["out_of_lane"]
    assert (found["reason"], found["path"].rpartition("/")[2], found["line"]) == (
        "out_of_lane",
        "decisions.jsonl",
        1,
    )
    text = shown(team, "--at", then)
    assert (
        "\n  loop: code review 01-01: " in text
        and "\n  out of lane: .yolo-planning/phases/01-auth/decisions" in text
    )
    works(team, "fix(01-01): T1 load them again", "2\n")
    (after,) = on_board(team, team.head())["phases"]
    assert [one["next"] for one in after["loops"]] == ["senior"]
    assert on_board(team, then)["phases"] == [before]
    assert shown(team, "--at", then) == text


def shown(team: Team, *words: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(["status", *words, "-C", str(team.root)]) == 0
    return out.getvalue()


def on_board(team: Team, commit: str) -> dict[str, Any]:
    with Repository(str(team.root)) as repository:
        return board(FactsReader(repository, load(repository.root)), commit).as_json()


def test_what_a_merge_brings_in_is_no_round_of_its_own(team: Team) -> None:
    summarise(team)
    team.git("checkout", "-q", "-b", "side")
    review(team, "changes_requested", 1, "major")
    team.git("checkout", "-q", "main")
    team.file("src/other.ts", "1\n")
    team.user_commits("chore: elsewhere", "src/other.ts")
    team.git("merge", "-q", "--no-ff", "-m", "chore: merge", "side")
    with Repository(str(team.root)) as repository:
        facts = FactsReader(repository, load(repository.root))
        (phase,) = facts.facts(team.head())
        found = loop_facts(facts, phase, 0)
    assert [
        len(found.versions[path]) for path in found.versions if path.endswith("code-review.jsonl")
    ] == [1]


def test_a_review_goes_through_its_cycles_although_the_file_is_written_anew(team: Team) -> None:
    summarise(team)
    assert (of(team, Loop.CODE_REVIEW).round, of(team, Loop.CODE_REVIEW).next) == (0, "senior")
    review(team, "changes_requested", 1, "major", "nit")
    assert of(team, Loop.CODE_REVIEW).next == "dev"
    works(team, "fix(01-01): T1 end the session", "2\n")
    assert of(team, Loop.CODE_REVIEW).next == "senior"
    review(team, "changes_requested", 2, "critical")
    found = of(team, Loop.CODE_REVIEW)
    assert (found.state, found.round, found.rounds_left, found.next) == (
        "escalated to the Lead",
        2,
        0,
        "lead",
    )
    assert found.metrics is not None
    assert found.metrics.finding_severity_distribution == {"major": 1, "nit": 1, "critical": 1}
    assert len(found.metrics.time_per_cycle) == found.metrics.cycle_count == 2
    assert found.metrics.escalation_triggered


def test_the_work_on_a_plan_that_is_read_on_is_what_it_is_when_it_is_read_anew(team: Team) -> None:
    works(team, "feat(01-01): T1 first", "1\n")
    team.git("branch", "side")
    moves = [
        ("commit", "--allow-empty", "-q", "-m", "feat(01-01): T1 of no change"),
        ("checkout", "-q", "side"),
        ("commit", "--allow-empty", "-q", "-m", "chore: aside"),
        ("checkout", "-q", "main"),
        ("merge", "-q", "--no-ff", "-X", "ours", "-m", "Merge side", "side"),
        ("reset", "-q", "--hard", "side"),
        ("reset", "-q", "--hard", "HEAD~1"),
    ]
    with Repository(str(team.root)) as repository:
        kept = FactsReader(repository, load(repository.root))
        for number, words in enumerate(moves):
            team.git(*words)
            for at in ("HEAD", "HEAD~1", "HEAD"):
                commit = team.git("rev-parse", at)
                anew = FactsReader(repository, load(repository.root))
                for reader in (kept, anew):
                    reader.facts(commit)
                assert kept.work_of_plan("01-01") == anew.work_of_plan("01-01"), (words, at)
            works(team, f"feat(01-01): T1 next {number}", f"{number} more\n")


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
            (phase,) = FactsReader(repository, load(repository.root)).phases(team.head())
        steps = phase.progress.departments[0].steps
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
    path.write_text(
        path.read_text() + '{"plan":"01-02","r":"approve","cycle":1,"dt":"2026-02-19"}\n'
    )
    team.once()
    assert lacks() == () and of(team, Loop.CODE_REVIEW).state == "approved after the fix"


def test_three_failures_of_qa_are_counted_over_one_file(team: Team) -> None:
    quality = json.loads(
        (team.examples / "qa-code/ok").joinpath(_first(team)).read_text().splitlines()[0]
    )
    for number in range(3):
        team.artifact(
            "qa-code.jsonl", json.dumps(quality | {"r": "FAIL", "dt": f"2026-02-1{number}"}) + "\n"
        )
        team.once()
        found = of(team, Loop.QA)
        works(team, f"fix(01-01): T1 try {number}", f"{number + 7}\n")
    last = (found.state, found.round, found.rounds_left, found.next)
    assert last == ("3rd QA FAIL", 3, 0, "architect")  # the Lead's escalation opened by itself
    assert of(team, Loop.QA).next == "qa-code"  # whatever was decided is verified again


def take_back(team: Team, name: str) -> None:
    """Revert the last commit of an artifact, as anybody's git does, without any hook."""
    path = f".yolo-planning/phases/01-auth/{name}"
    team.git("revert", "--no-edit", team.git("log", "-1", "--format=%H", "--", path))


def asked_again(team: Team, kind: str) -> list[str]:
    """Return why verdicts of a kind have to be given again."""
    (phase,) = facts_of(team)
    return list(came_later(phase, kind, DEFAULT_DEPARTMENT))


def test_a_branch_that_goes_on_from_its_merge_has_the_order_of_the_main_line(team: Team) -> None:
    summarise(team)
    path = ".yolo-planning/phases/01-auth/verification.jsonl"
    team.git("branch", "main-line", "HEAD~2")
    team.artifact(
        "verification.jsonl",
        (team.examples / "verification/ok/pass_with_warning.jsonl").read_text(),
    )
    team.once()
    with Repository(str(team.root)) as repository:
        at_work = FactsReader(repository, load(repository.root))
        at_work.facts(team.head())
        (before,) = at_work.versions_of(path)
        branch = team.git("branch", "--show-current")
        team.git("checkout", "-q", "main-line")
        team.file("src/other.ts", "1\n")
        team.user_commits("chore: elsewhere", "src/other.ts")
        team.git("merge", "-q", "--no-ff", "-m", "Merge the department", branch)
        team.git("checkout", "-q", branch)
        team.git("merge", "-q", "--ff-only", "main-line")
        begins = FactsReader(repository, load(repository.root))
        for one in (at_work, begins):
            one.facts(team.head())
        (after,) = at_work.versions_of(path)
        assert after.position > before.position
        assert at_work.versions_of(path) == begins.versions_of(path)


@pytest.mark.proves("002:121")
def test_a_verdict_that_a_revert_brings_back_has_judged_nothing_since(team: Team) -> None:
    summarise(team)
    good = (team.examples / "verification/ok/pass_with_warning.jsonl").read_text()
    bad = good.replace('"r":"PASS","ps":3,"fl":0', '"r":"FAIL","ps":2,"fl":1')
    wanted = "verification.jsonl is older than a verdict that a revert or a merge took back"
    team.artifact("verification.jsonl", good)
    team.once()
    assert asked_again(team, "verification") == []
    team.artifact("verification.jsonl", bad)
    team.once()
    take_back(team, "verification.jsonl")
    assert asked_again(team, "verification") == [wanted]
    works(team, "fix(01-01): T1 never verified", "7\n")
    team.artifact("verification.jsonl", bad)
    team.once()
    take_back(team, "verification.jsonl")
    first, later = asked_again(team, "verification")
    assert first == wanted and "source of 01-01" in later
    team.artifact("verification.jsonl", good.replace("2026-02-20", "2026-02-21"))
    team.once()
    assert asked_again(team, "verification") == []


def remove(team: Team, name: str) -> None:
    team.git("rm", "-q", f".yolo-planning/phases/01-auth/{name}")
    team.git("commit", "-q", "-m", "chore: tidy")


@pytest.mark.parametrize("take", [take_back, remove])
def test_a_fail_that_was_taken_off_the_branch_is_skipped_by_nobody(
    team: Team, take: Callable[[Team, str], None]
) -> None:
    team.config({"effort": "turbo"})
    team.user_commits("chore: in a hurry", ".yolo-planning/config.json")
    good = (team.examples / "verification/ok/pass_with_warning.jsonl").read_text()
    bad = good.replace('"r":"PASS","ps":3,"fl":0', '"r":"FAIL","ps":2,"fl":1')

    def said() -> str:
        (facts,) = facts_of(team)
        steps = Phase(facts).progress.departments[0].steps
        return str(next(one.standing for one in steps if one.step.key == "qa"))

    assert said() == "skipped"
    team.artifact("verification.jsonl", bad)
    team.once()
    take(team, "verification.jsonl")
    assert said() != "skipped"
    (facts,) = facts_of(team)
    assert list(withdrawn_from(facts, "qa")) == [
        "verification.jsonl said FAIL and was withdrawn: it is judged again"
    ]
    with contextlib.redirect_stderr(io.StringIO()) as told:
        code = run(["workflow", "skip", "qa", "--reason", "no time", "-C", str(team.root)])
    assert code != 0 and "was withdrawn" in told.getvalue()
    team.artifact("verification.jsonl", good)
    team.once()
    remove(team, "verification.jsonl")
    assert said() == "skipped", "the last verdict was a PASS"


FOLDER = ".yolo-planning/phases/01-auth"


def merge_as_ours(team: Team, verdict: str) -> None:
    """Merge a branch that judged as well, and keep what was there before."""
    team.git("checkout", "-q", "-b", "elsewhere")
    team.artifact("verification.jsonl", verdict)
    team.user_commits("docs(01): verification results", f"{FOLDER}/verification.jsonl")
    team.git("checkout", "-q", "main")
    team.git("merge", "-q", "-s", "ours", "--no-edit", "elsewhere")


def merge_into_older(team: Team, verdict: str) -> None:
    """Judge again, and let the branch go on from before, with that judgement merged as nothing."""
    team.git("branch", "older")
    team.artifact("verification.jsonl", verdict)
    team.once()
    team.git("checkout", "-q", "older")
    works(team, "chore: elsewhere", "9\n")
    team.git("merge", "-q", "-s", "ours", "--no-edit", "main")
    team.git("checkout", "-q", "main")
    team.git("merge", "-q", "--ff-only", "older")


def merge_by_hand(team: Team, verdict: str) -> None:
    """Judge again, and put the former verdict into the commit of a merge."""
    team.git("checkout", "-q", "-b", "elsewhere")
    works(team, "chore: elsewhere", "9\n")
    team.git("checkout", "-q", "main")
    team.artifact("verification.jsonl", verdict)
    team.once()
    team.git("merge", "-q", "--no-commit", "elsewhere")
    team.git("checkout", "-q", "HEAD~", "--", f"{FOLDER}/verification.jsonl")
    team.git("commit", "-q", "--no-edit")


def revert_within_a_merge(team: Team, verdict: str) -> None:
    """Judge twice on a branch, take the second one back there, and merge all three at once."""
    team.git("checkout", "-q", "-b", "elsewhere")
    before = (team.root / FOLDER / "verification.jsonl").read_text()
    for text in (before.replace("2026-02-20", "2026-02-19"), verdict):
        team.artifact("verification.jsonl", text)
        team.user_commits("docs(01): verification results", f"{FOLDER}/verification.jsonl")
    team.git("revert", "--no-edit", "HEAD")
    team.git("checkout", "-q", "main")
    team.git("merge", "-q", "--no-ff", "--no-edit", "elsewhere")


@pytest.mark.parametrize(
    "lose", [merge_as_ours, merge_into_older, merge_by_hand, revert_within_a_merge]
)
def test_a_verdict_that_a_merge_brings_back_has_judged_nothing_since(
    team: Team, lose: Callable[[Team, str], None]
) -> None:
    summarise(team)
    good = (team.examples / "verification/ok/pass_with_warning.jsonl").read_text()
    bad = good.replace('"r":"PASS","ps":3,"fl":0', '"r":"FAIL","ps":2,"fl":1')
    team.artifact("verification.jsonl", good)
    team.once()
    lose(team, bad)
    assert '"r":"PASS"' in (team.root / FOLDER / "verification.jsonl").read_text()
    wanted = "verification.jsonl is older than a verdict that a revert or a merge took back"
    assert asked_again(team, "verification")[:1] == [wanted]
    team.artifact("verification.jsonl", good.replace("2026-02-20", "2026-02-21"))
    team.once()
    assert asked_again(team, "verification") == []


def test_a_verdict_that_a_merge_brings_is_the_one_in_force(team: Team) -> None:
    summarise(team)
    good = (team.examples / "verification/ok/pass_with_warning.jsonl").read_text()
    bad = good.replace('"r":"PASS","ps":3,"fl":0', '"r":"FAIL","ps":2,"fl":1')
    team.artifact("verification.jsonl", bad)
    team.once()
    team.git("checkout", "-q", "-b", "elsewhere")
    works(team, "fix(01-01): T1 mended", "9\n")
    team.artifact("verification.jsonl", good)
    team.user_commits("docs(01): verification results", f"{FOLDER}/verification.jsonl")
    team.git("checkout", "-q", "main")
    works(team, "chore: meanwhile", "2\n")
    team.git("merge", "-q", "--no-edit", "-X", "theirs", "elsewhere")
    assert asked_again(team, "verification") == []


@pytest.mark.proves("002:131")
def test_an_approval_that_was_taken_back_approves_nothing(team: Team) -> None:
    summarise(team)
    review(team, "changes_requested", 1, "major")
    works(team, "fix(01-01): T1 end the session", "2\n")
    review(team, "approve", 2)
    assert of(team, Loop.CODE_REVIEW).state == "approved"
    take_back(team, "code-review.jsonl")
    found = of(team, Loop.CODE_REVIEW)
    assert (found.state, found.next) == ("to be reviewed again", "senior")


def test_an_approval_by_a_person_counts_for_the_review_that_it_saw(team: Team) -> None:
    def is_asked() -> bool:
        with Repository(str(team.root)) as repository:
            (phase,) = FactsReader(repository, load(repository.root)).phases(team.head())
        (department,) = phase.progress.departments
        return any("approval_gates" in lack for step in department.steps for lack in step.missing)

    team.config(BACKEND | {"approval_gates": {"code_review": True}})
    team.user_commits("chore: ask a person", ".yolo-planning/config.json")
    summarise(team)
    review(team, "approve", 1)
    assert is_asked()
    words = ["decide", "approve", "code_review", "backend", "--reason", "read it", "--phase", "1"]
    assert run([*words, "-C", str(team.root)]) == 0
    team.once()
    assert not is_asked()
    works(team, "fix(01-01): T1 end the session", "2\n")
    review(team, "approve", 2)
    assert is_asked()


def _first(team: Team) -> str:
    return min((team.examples / "qa-code/ok").iterdir()).name


def test_seconds_between_reviews_are_those_of_the_commits(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        facts = FactsReader(repository, load(repository.root))
        (phase,) = facts.facts(team.head())
        found = loop_facts(facts, phase, 0)
    orders = [version.order for versions in found.versions.values() for version in versions]
    count = subprocess.run(
        ["git", "-C", team.root, "rev-list", "--count", "HEAD"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert len(set(orders)) == len(orders) and max(orders) == int(count) - 1
    assert [one.plan for one in found.work] == ["01-01"]


def test_versions_that_are_asked_for_at_once_are_those_found_one_by_one(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    summarise(team)
    for cycle in range(1, 4):
        review(team, "changes_requested", cycle, "major")
    path = ".yolo-planning/phases/01-auth/code-review.jsonl"
    team.git("checkout", "-q", "-b", "side", "HEAD~1")
    works(team, "fix(01-01): T1 aside", "aside\n")
    team.git("checkout", "-q", "main")
    team.git("merge", "-q", "--no-ff", "-m", "merge side", "side")
    team.git("rm", "-q", path)
    team.git("commit", "-q", "-m", "chore: no review")
    team.file(path, "nothing that a review says\n")
    team.user_commits("docs(01): broken", path)
    review(team, "changes_requested", 3, "major")
    review(team, "changes_requested", 4, "major")

    def versions() -> list[tuple[object, ...]]:
        with Repository(str(team.root)) as repository:
            facts = FactsReader(repository, load(repository.root))
            (phase,) = facts.facts(team.head())
            found = loop_facts(facts, phase, 0)
            return [(each, one) for each, some in found.versions.items() for one in some]

    monkeypatch.setattr(version_reader, "_MADE_FEW", 1_000)
    one_by_one = versions()
    monkeypatch.setattr(version_reader, "_MADE_FEW", 0)
    monkeypatch.setattr(version_reader, "_MADE_AT_ONCE", 2)
    monkeypatch.setattr(Repository, "blob_at", refuse_for(Repository.blob_at, path))
    assert versions() == one_by_one
    assert len(one_by_one) > 4


def test_many_new_versions_are_read_without_the_history_before_them(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def changes_in(repository: Repository, commits: Iterable[str], paths: Sequence[str]) -> Any:
        named = list(commits)
        asked.append(len(named))
        return history.changes_in(repository, named, paths)

    monkeypatch.setattr(version_reader, "_MADE_FEW", 2)
    monkeypatch.setattr(version_reader, "changes_in", changes_in)
    summarise(team)
    for round_ in range(20):
        works(team, "feat(01-01): T1 more", f"{round_}\n")
    with Repository(str(team.root)) as repository:
        facts = FactsReader(repository, load(repository.root))
        facts.phases(team.head())
        asked.clear()
        for cycle in range(1, 6):
            review(team, "changes_requested", cycle, "major")
        (phase,) = facts.facts(team.head())

    assert sum(map(len, phase.versions.values())) > 5
    assert asked and max(asked) < 10, asked  # each process that looks: the versions, no work


def refuse_for(
    look: Callable[[Repository, str | None, str], str | None], path: str
) -> Callable[[Repository, str | None, str], str | None]:
    """Return a look-up that is not to be asked for this path."""

    def found(repository: Repository, commit: str | None, wanted: str) -> str | None:
        assert wanted != path
        return look(repository, commit, wanted)

    return found


def in_force(team: Team, commit: str = "") -> dict[str, tuple[str, ...]]:
    """Return each phase of a commit with the folders of its artifacts, as the board is told of them."""
    with Repository(str(team.root)) as repository:
        phases = FactsReader(repository, load(repository.root)).facts(commit or team.head())
        return {
            f"{each.phase}": tuple(
                sorted({one.place.folder for one in each.committed if one.place.phase})
            )
            for each in phases
        }


def archive(team: Team, milestone: str) -> str:
    folder = f".yolo-planning/milestones/{milestone}"
    (team.root / folder).mkdir(parents=True)
    team.git("mv", ".yolo-planning/phases", f"{folder}/phases")
    return team.user_commits(f"chore: archive {milestone}", ".")


def names_plan(team: Team, plan: str, other: str) -> None:
    """Commit a plan that names a plan of another phase in `xd`."""
    header, *tasks = (EXAMPLES / "plan/ok/planned.jsonl").read_text().splitlines()
    foreign = [{"p": other[:2], "n": other[3:], "a": "src/a.ts", "r": "keys"}] if other else []
    named = json.loads(header) | {"p": plan[:2], "n": plan[3:], "d": [], "xd": foreign}
    team.artifact(
        f"{plan}.plan.jsonl", "\n".join((json.dumps(named), *tasks)) + "\n", f"{plan[:2]}-x"
    )
    team.user_commits(f"docs: plan {plan}", ".yolo-planning")


def test_a_circle_of_plans_over_two_phases_is_an_alarm_of_both_until_one_lets_go(
    team: Team,
) -> None:
    for plan, other in (("02-01", "03-02"), ("03-02", "02-01")):
        names_plan(team, plan, other)
    with Repository(str(team.root)) as repository:
        reader = FactsReader(repository, load(repository.root))
        for phase in reader.phases(team.head())[-2:]:
            (alarm,) = phase.alarms
            assert str(alarm).startswith("deadlock: 02-01 waits for 03-02 (`xd` names it, ")
        names_plan(team, "03-02", "")
        assert not any(phase.alarms for phase in reader.phases(team.head())[-2:])


def test_an_archived_milestone_tells_nothing_of_a_phase_of_the_same_name(team: Team) -> None:
    summarise(team)
    archive(team, "one")
    assert in_force(team) == {}
    team.plan_one()
    assert in_force(team) == {"01-auth": (".yolo-planning/phases/01-auth",)}


def test_the_phases_of_the_active_milestone_are_in_force_and_no_others(team: Team) -> None:
    archived = archive(team, "one")
    team.plan_one()
    kept = team.root / ".yolo-planning/phases/01-auth/.execution-state.json"
    kept.unlink()
    team.file(".yolo-planning/ACTIVE", "one\n")
    team.once()
    folder = ".yolo-planning/milestones/one/phases/01-auth"
    assert in_force(team) == {"01-auth": (folder,)}
    assert not kept.exists()
    team.file(".yolo-planning/ACTIVE", "none\n")
    assert in_force(team) == {"01-auth": (".yolo-planning/phases/01-auth",)}
    assert in_force(team, archived) == {}


def test_a_commit_of_another_plans_files_alone_finishes_no_task_whatever_its_subject_says(
    team: Team,
) -> None:
    team.plan()
    two = json.loads(
        (team.root / ".yolo-planning/phases/01-auth/01-02.plan.jsonl").read_text().splitlines()[1]
    )
    team.file(two["f"][0], "export {}\n")
    team.user_commits("feat(01-01): T1 load the keys", two["f"][0])
    (phase,) = facts_of(team)
    assert "01-01/T1" not in phase.task_commits
    team.file("src/elsewhere.ts", "export {}\n")
    done = team.user_commits("feat(01-01): T1 load the keys", "src/elsewhere.ts")
    (phase,) = facts_of(team)
    assert phase.task_commits["01-01/T1"] == done


@pytest.mark.proves("002:121")
@pytest.mark.parametrize(
    "subject",
    [
        "fix(02-01): T1 elsewhere",
        "fix(01-02): T1 elsewhere",
        "docs(01): code review 01-01",
        "docs(01): summary 01-01",
        "test(01): RED phase tests for plan 01-01",
        "tweak the keys",
    ],
)
def test_whatever_changed_a_judged_file_its_verdict_is_asked_again(
    team: Team, subject: str
) -> None:
    """What a commit changed counts, and not what it says that it is."""
    summarise(team)
    team.artifact(
        "verification.jsonl",
        (team.examples / "verification/ok/pass_with_warning.jsonl").read_text(),
    )
    team.once()
    assert asked_again(team, "verification") == []
    team.file("src/auth/tokens.ts", "changed\n")
    team.user_commits(subject, "src/auth/tokens.ts")
    (wanted,) = asked_again(team, "verification")
    assert "source of 01-01" in wanted


def test_a_file_that_another_plan_of_the_department_claims_is_judged_with_that_plan(
    team: Team,
) -> None:
    summarise(team)
    plan = (team.root / ".yolo-planning/phases/01-auth/01-01.plan.jsonl").read_text()
    team.artifact("01-02.plan.jsonl", plan.replace('"n":"01"', '"n":"02"'))
    team.once()
    review(team, "approve", 1)
    works(team, "fix(01-02): T1 the same file", "2\n")
    (phase,) = facts_of(team)
    (judged,) = phase.of_kind("code-review")

    def later(plan: str) -> list[str]:
        found = later_than(phase, "code-review", judged.position, DEFAULT_DEPARTMENT, plan)
        return [thing.what for thing in found]

    assert (len(later("01-02")), later("01-01")) == (1, [])
