"""What is done about an act that its agent does not get done, where it is about no task and the
log of escalations has no place for it: its report-to decides how to go on, by a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from yolo_fs.core.reasons import safe
from yolo_fs.phase.acts import Act
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import Next

_DECISIONS = "decisions"


class Advice(NamedTuple):
    """A decision that somebody is asked for."""

    about: Act
    own: Act
    """The act of whoever decides."""
    tried: tuple[str, ...]
    """Why each try of the act was not enough."""
    before: str
    """What the branch had of decisions when it was asked for."""


def act_of_advice(phase: Phase, about: Act, superior: str, tried: Sequence[str]) -> Act:
    """Return the act of whoever decides how an agent gets an act done.

    `superior`: name of whom its agent reports to; `tried`: why each try was not enough.
    """
    does = (
        f"decides how {about.agent} gets this done: {about.turn.sentence}. Add one record: in its"
        f" `dec` what {about.agent} is to do differently"
    )
    why = safe(f"{len(tried)} tries were not enough: {'; '.join(tried)}", 1500)
    path = f"{phase.facts.folder}/{_DECISIONS}.jsonl"
    turn = Next(about.turn.step, superior, about.turn.inputs, why=why, act=does)
    return Act(turn, about.department, writes=(path,), lacks=(f"{path} has no such record",))


def decision_of(phase: Phase) -> str:
    """Return what the last record of a phase's decisions says; empty where there is none."""
    lines = [line for artifact in phase.facts.of_kind(_DECISIONS) for line in artifact.lines]
    return safe(str(lines[-1].get("dec", "")), 1000) if lines else ""
