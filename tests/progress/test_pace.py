"""How long a phase may still take follows from the steps that it has worked on, and from nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.phases import CONFIG, Content, complete, facts
from yolo_fs.phase.progress import StepStanding
from yolo_fs.progress.board import Pace, PhaseBoard
from yolo_fs.schemas.config import Config

FIRST = ("critique.jsonl", "research.jsonl", "architecture.toon")
HOUR = 3_600


def board_of(names: tuple[str, ...], config: Config = CONFIG, apart_s: int = HOUR) -> PhaseBoard:
    """Return a phase whose artifacts were committed one after the other."""
    every: Content = complete()
    commits = None if len(names) == len(every) else {}
    known = facts({name: every[name] for name in names}, config=config, commits=commits)
    at = [
        each._replace(at_s=1_000_000 + number * apart_s)
        for number, each in enumerate(known.committed)
    ]
    return PhaseBoard(replace(known, committed=tuple(at)))


def pace_of(names: tuple[str, ...], config: Config = CONFIG, apart_s: int = HOUR) -> Pace:
    return board_of(names, config, apart_s).pace


def test_what_is_left_takes_as_long_as_the_steps_that_were_worked_on() -> None:
    phase = board_of(FIRST)
    every = phase.progress.every_step
    left = [one for one in every if one.step.blocking and not one.is_passed]
    assert sum(one.standing is StepStanding.COMPLETE for one in every) == 3
    assert phase.pace.left_s == HOUR * len(left), "the second and the third took an hour each"
    assert phase.pace.sentence == f"about {len(left)} h 0 min left at this pace"


def test_a_step_that_is_skipped_makes_nobody_faster() -> None:
    """It took no time: a small team would else be told that it is nearly there."""
    skipping = CONFIG._replace(security_audit=False)
    assert pace_of(FIRST).left_s - pace_of(FIRST, skipping).left_s == HOUR
    assert pace_of(FIRST, skipping).steps_done == pace_of(FIRST).steps_done == 3
    assert pace_of(FIRST, skipping).steps == pace_of(FIRST).steps - 1


@pytest.mark.parametrize(
    ("names", "apart_s"), [((), HOUR), (FIRST[:1], HOUR), (FIRST, 0), (tuple(complete()), HOUR)]
)
def test_nothing_is_told_where_nothing_is_known_or_left(
    names: tuple[str, ...], apart_s: int
) -> None:
    assert pace_of(names, apart_s=apart_s).sentence == ""
