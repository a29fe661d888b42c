"""Histories that nobody wishes for: the evidence of a phase is what it is, wherever it stands.

The clocks of all these commits run back and forth. `YOLO_EXAMPLES=1` makes the long one long.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.properties.histories import Event, Ground
from tests.properties.rewritten import FOLDER, Real, committed, git, standing_of, turn_of
from tests.properties.tales import EXAMPLES
from yolo_fs.protocol.departments import Dept

GROUND = Ground((Dept.BACKEND,), is_one_number=False)
BEFORE_SIGN_OFF = GROUND.whole(Random(0))[:-2]
MANY = 20_000 if EXAMPLES else 200
VERDICTS = ("verification.jsonl", "qa-code.jsonl", "security-audit.jsonl")
SIGNS_OFF = ("lead", "signoff")


def real(tmp_path: Path, events: Sequence[Event]) -> Real:
    return committed(tmp_path / "work", GROUND, events, Random(7))


def text_of(one: Real, name: str) -> str:
    return git(one.root, "show", f"main:{FOLDER}/{name}") + "\n"


def puts(one: Real, files: Mapping[str, str], subject: str = "docs(01): by hand") -> None:
    """Commit artifacts of the phase, all at once."""
    for name, text in files.items():
        (one.root / FOLDER / name).write_text(text)
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", subject)


def without(*names: str) -> list[Event]:
    return [event for event in BEFORE_SIGN_OFF if event.name not in names]


def test_twenty_thousand_commits_between_the_work_and_its_verdicts_change_nothing(
    tmp_path: Path,
) -> None:
    others = [Event("other/a.ts", (), "09-01", "other")] * MANY
    at = next(at for at, event in enumerate(BEFORE_SIGN_OFF) if event.name == "code-review.jsonl")
    phase = real(tmp_path, [*BEFORE_SIGN_OFF[:at], *others, *BEFORE_SIGN_OFF[at:]]).phase()
    assert turn_of(phase) == SIGNS_OFF


def test_a_verdict_that_goes_back_to_a_former_content_and_forward_again_is_the_one_in_force(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    passed = text_of(one, "qa-code.jsonl")
    failed = json.dumps(json.loads(passed) | {"r": "FAIL"}) + "\n"
    for said, turn in ((failed, ("lead", "qa")), (passed, SIGNS_OFF)) * 2:
        puts(one, {"qa-code.jsonl": said})
        assert turn_of(one.phase()) == turn


def test_a_plan_that_goes_back_to_a_former_content_and_forward_again_is_verified_again(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    now = text_of(one, "01-01.plan.jsonl")
    for text in (now.replace("Login", "Log in"), now):
        puts(one, {"01-01.plan.jsonl": text})
        phase = one.phase()
        assert turn_of(phase) == ("qa", "qa")
        assert "is older than plan 01-01" in str(phase.progress.departments[0].steps)


def test_a_commit_that_names_no_plan_opens_the_verdicts_on_what_it_changed(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    (plan, *_) = one.phase().facts.plans
    (one.root / "other.txt").write_text("nobody's\n")
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", "Fix typo")
    assert turn_of(one.phase()) == SIGNS_OFF
    (one.root / min(plan.files)).write_text("by hand\n")
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", "Fix typo")
    phase = one.phase()
    assert turn_of(phase) == ("senior", "code_review")
    assert f"older than source of {plan.id}" in str(phase.progress.departments[0].steps)


def test_a_commit_that_names_no_plan_opens_no_phase_that_was_squashed_when_it_was_done(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, GROUND.whole(Random(0)))
    (plan, *_) = one.phase().facts.plans
    root = git(one.root, "rev-list", "--max-parents=0", "main").strip()
    whole = git(one.root, "commit-tree", "main^{tree}", "-p", root, "-m", "Phase 1 (#1)").strip()
    git(one.root, "reset", "-q", "--hard", whole)
    assert one.phase().is_complete
    (one.root / min(plan.files)).write_text("by hand\n")
    git(one.root, "commit", "-q", "-a", "-m", "Fix typo")
    assert one.phase().is_complete


def test_a_verdict_on_a_branch_that_is_not_merged_judges_nothing_until_it_is(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    verdict = text_of(one, "qa-code.jsonl")
    git(one.root, "checkout", "-q", "-b", "base", "main")
    git(one.root, "rm", "-q", f"{FOLDER}/qa-code.jsonl")
    git(one.root, "commit", "-q", "-m", "chore: without a verdict")
    git(one.root, "checkout", "-q", "-b", "side")
    puts(one, {"qa-code.jsonl": verdict})
    assert turn_of(one.phase("base")) == ("qa-code", "qa")
    assert turn_of(one.phase("side")) == SIGNS_OFF
    git(one.root, "checkout", "-q", "base")
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    assert turn_of(one.phase("base")) == SIGNS_OFF


def test_verdicts_of_one_commit_each_judge_what_came_before_it(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    texts = {name: text_of(one, name) for name in VERDICTS}
    (one.root / "backend/a.ts").write_text("export const later = 1\n")
    git(one.root, "commit", "-qam", "fix(01-01): later")
    reviewed = text_of(one, "code-review.jsonl")
    said = reviewed.replace("approve", "changes_requested") + reviewed.replace(
        '"cycle": 2', '"cycle": 3'
    )
    later = {name: text.replace("2026-01", "2026-03") for name, text in texts.items()}
    puts(one, {"code-review.jsonl": said} | later)
    assert turn_of(one.phase()) == SIGNS_OFF


@pytest.mark.parametrize(
    "decision",
    [
        {"agent": "lead", "kind": "accept", "of": "01-99"},
        {"agent": "lead", "kind": "assign", "of": "01-99/T1", "task": "01-99/T1"},
        {"agent": "wizard", "kind": "accept", "of": "01-01"},
        {"agent": "fe-lead", "kind": "accept", "of": "01-01"},
    ],
    ids=str,
)
def test_a_decision_about_no_plan_or_of_no_role_decides_nothing(
    tmp_path: Path, decision: dict[str, Any]
) -> None:
    one = real(tmp_path, without("docs.jsonl", *VERDICTS))
    review = json.loads(text_of(one, "code-review.jsonl"))
    found = {"f": "backend/a.ts", "ln": 1, "sev": "major", "issue": "lost", "sug": "throw"}
    puts(one, {"code-review.jsonl": _lines(review | {"r": "changes_requested", "cycle": 1}, found)})
    before = one.phase()
    said = {"ts": "2026-02-20T10:00:00Z", "dec": "as it is", "reason": "rare"}
    puts(one, {"decisions.jsonl": _lines(said | decision)})
    after = one.phase()
    assert (standing_of(after), turn_of(after)) == (standing_of(before), turn_of(before))
    assert turn_of(after) == ("lead", "code_review")
    accepted = {"agent": "lead", "kind": "accept", "of": "01-01"}
    puts(one, {"decisions.jsonl": _lines(said | accepted)})
    assert turn_of(one.phase()) == ("qa", "qa")


def test_a_decision_of_no_kind_cannot_be_read_so_it_holds_and_is_told(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    said = {"ts": "2026-02-20T10:00:00Z", "dec": "as it is", "reason": "rare"}
    puts(
        one, {"decisions.jsonl": _lines(said | {"agent": "lead", "kind": "banish", "of": "01-01"})}
    )
    phase = one.phase()
    assert turn_of(phase) != SIGNS_OFF
    lacks = [lack for step in phase.progress.every_step for lack in step.missing]
    assert any("decisions.jsonl is on the branch and cannot be read" in lack for lack in lacks), (
        lacks
    )


def _lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)
