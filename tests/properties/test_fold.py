"""The fold over random phases: no order, no repetition and no invalid file changes it, and evidence
only helps.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.properties.profile import tried
from tests.properties.random_phases import THREE, phases, whole
from tests.support.phases import facts
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.evidence.failures import find_unreadable
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import PhaseStatus, fold
from yolo_fs.protocol.workflow import STEPS
from yolo_fs.states.execution import next_execution_state

ANY = phases() | phases(company=True)


def passed(progress: PhaseStatus) -> set[tuple[str, str]]:
    own = {
        (one.department.value, step.step.key)
        for one in progress.departments
        for step in one.steps
        if step.is_passed
    }
    return own | {("", step.step.key) for step in progress.steps if step.is_passed}


@tried(20)
@given(ANY, some.randoms(use_true_random=False))
def test_the_order_of_arrival_makes_no_difference(found: PhaseFacts, chance: Any) -> None:
    shuffled = list(found.committed)
    chance.shuffle(shuffled)
    commits = dict(chance.sample(sorted(found.commits.items()), len(found.commits)))
    other = replace(found, committed=tuple(shuffled), commits=commits)
    before, after = fold(found), fold(other)

    assert after == before
    assert Phase(other).gates == Phase(found).gates
    assert Phase(other).waits == Phase(found).waits


def test_artifacts_come_in_the_order_of_their_paths_however_they_were_listed() -> None:
    found = facts(whole(company=False))
    plans = [
        one.place.path for one in replace(found, committed=found.committed[::-1]).of_kind("plan")
    ]

    assert len(plans) == 2 and plans == sorted(plans) == [
        one.place.path for one in found.of_kind("plan")
    ]


@tried(15)
@given(ANY)
def test_the_same_facts_come_to_the_same_however_often_they_are_folded(found: PhaseFacts) -> None:
    once = fold(found)

    assert [fold(found) for _ in "123"] == [once] * 3
    assert Phase(found).sentinels == Phase(replace(found)).sentinels


@tried(15)
@given(ANY)
def test_what_is_not_valid_is_no_evidence_and_holds_at_most(found: PhaseFacts) -> None:
    without = replace(found, committed=tuple(one for one in found.committed if one.valid))
    before, after = fold(without), fold(found)

    assert passed(after) <= passed(before)
    assert after.percent <= before.percent
    if not list(find_unreadable(found)):
        assert after == before


@tried(10)
@given(ANY)
def test_what_is_projected_settles_and_then_stays(found: PhaseFacts) -> None:
    state: dict[str, Any] | None = None
    for _ in range(40):
        after = next_execution_state(Phase(found), state)
        if after is None or after == state:
            break
        state = after

    assert state is not None
    assert next_execution_state(Phase(found), state) is None


@tried(15)
@given(ANY)
def test_progress_is_bounded_and_no_phase_is_complete_without_its_sign_off(
    found: PhaseFacts,
) -> None:
    progress = fold(found)

    assert 0 <= progress.percent <= 100
    assert all(
        0 <= one.percent <= 100 and one.plans_complete <= len(one.plans)
        for one in progress.departments
    )
    assert not progress.is_complete or found.of_kind("state")
    assert progress.step in {step.key for step in STEPS}


ORDER = [
    "critique.jsonl", "research.jsonl", "architecture.toon", "01-01.plan.jsonl", "01-02.plan.jsonl", "test-plan.jsonl",
    "01-01.summary.jsonl", "01-02.summary.jsonl", "test-results.jsonl", "code-review.jsonl", "docs.jsonl",
    "verification.jsonl", "qa-code.jsonl", "security-audit.jsonl", "../../state.json", "../../ROADMAP.md",
]  # fmt: skip
"""In which the workflow makes them."""


def test_in_the_order_of_the_workflow_no_step_is_ever_lost() -> None:
    content = whole(company=False)
    assert sorted(ORDER) == sorted(content)
    stands = [
        fold(facts({name: content[name] for name in ORDER[:count]}))
        for count in range(5, len(ORDER) + 1)
    ]

    for before, after in pairwise(stands):
        assert passed(before) <= passed(after)
        assert before.percent <= after.percent
    assert stands[-1].is_complete


EVIDENCE = [name for name in ORDER if "plan.jsonl" not in name or name == "test-plan.jsonl"]


@tried(20)
@given(some.sets(some.sampled_from(EVIDENCE)), some.sampled_from(EVIDENCE))
def test_once_the_plans_are_made_more_evidence_takes_nothing_back(
    there: set[str], added: str
) -> None:
    content = whole(company=False)
    plans = {name for name in ORDER if name not in EVIDENCE}
    before = fold(facts({name: content[name] for name in sorted(there | plans)}))
    after = fold(facts({name: content[name] for name in sorted(there | plans | {added})}))

    assert passed(before) <= passed(after)
    assert before.percent <= after.percent


@pytest.mark.parametrize("company", [False, True])
def test_the_random_phases_are_of_every_sort(company: bool) -> None:
    seen: set[str] = set()

    @tried(15)
    @given(phases(company=company))
    def look(found: PhaseFacts) -> None:
        progress = fold(found)
        seen.update(step.standing for one in progress.departments for step in one.steps)

    look()
    assert {"pending", "ready", "running", "complete"} <= seen
    assert THREE.departments["uiux"]
