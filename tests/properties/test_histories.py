"""Evidence stands in an order: whatever does not fit in position, department, plan, name or word
satisfies nothing, what it leaves open is named, and whoever does as told comes to the end.

`YOLO_EXAMPLES=10000` tries so many histories; `YOLO_SEED` names where they begin.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.properties.tales import EXAMPLES, MISMATCHES, MOST_ACTS, Tale
from yolo_fs.phase.acts import acts_of
from yolo_fs.phase.phase import Phase

TRIED = EXAMPLES or 10 * len(MISMATCHES)


def missing_in(phase: Phase) -> Iterator[str]:
    for steps in (*(each.steps for each in phase.progress.departments), phase.progress.steps):
        for step in steps:
            yield from step.missing


@pytest.fixture(scope="module")
def tales() -> list[Tale]:
    return [Tale(number) for number in range(TRIED)]


def test_what_does_not_fit_satisfies_nothing_and_is_named(tales: list[Tale]) -> None:
    wrong = []
    for tale in tales:
        phase = tale.phase
        acts = acts_of(phase)
        told = [
            *missing_in(phase),
            *(act.turn.why for act in acts),
            *(gate for act in acts for gate in act.lacks),
        ]
        if phase.is_complete or not acts or not any(told):
            wrong.append((tale.label, phase.is_complete, acts))
    assert wrong == []


def test_whoever_does_as_told_comes_to_the_end_or_to_a_person(tales: list[Tale]) -> None:
    lost = []
    for tale in tales:
        done = []
        for _ in range(MOST_ACTS):
            phase = tale.phase
            acts = acts_of(phase)
            if phase.is_complete or acts[0].is_of_person:
                break
            act = acts[0]
            if done and act.basis == done[-1].basis:
                lost.append(
                    (tale.label, act.agent, act.turn.step, act.turn.why, act.writes, act.lacks)
                )
                break
            done.append(act)
            tale.obey(act)
        else:
            lost.append((tale.label, [(act.agent, act.turn.step) for act in done[-5:]]))
    assert lost == []
