"""The life of a handoff: delivered, read, acknowledged, acted upon; each with its time and its
deadline. Pure.

Nothing records these stages; files and commits show them. A handoff is delivered by its commit. It
is read when the receiver's context is compiled with it, or when the log of reads says that the
receiver has ended a turn; acknowledged when the receiver begins its part, or agrees; acted upon by
the receiver's first artifact, or by an implemented contract. A later stage proves the earlier ones.
See docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from yolo_fs.rules.timestamps import iso


class HandoffStage(StrEnum):
    """How far a handoff is."""

    DELIVERED = "delivered"
    READ = "read"
    ACKNOWLEDGED = "acknowledged"
    ACTED_UPON = "acted upon"


STAGES = tuple(HandoffStage)


class Moment(NamedTuple):
    """When something happened; commits of the same second have an order."""

    at_s: int
    """Seconds since the epoch."""
    order: int = 1 << 62
    """Position in the history; what is no commit comes after all commits of its second."""


@dataclass(frozen=True, slots=True)
class DeliveredHandoff:
    """One handoff, as its commit delivered it."""

    path: str
    line: int
    """0 when the whole file is the handoff."""
    sender: str
    receiver: str
    """Who it is for, such as `frontend`, or the directory of the next phase."""
    at: Moment
    by: str
    """The commit."""
    needs_answer: bool = False
    """Only an answer to this very handoff acknowledges it, as for a contract that was proposed."""

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(frozen=True, slots=True)
class ReceiverSign:
    """Something that files or commits show of a receiver."""

    receiver: str
    stage: HandoffStage
    at: Moment
    by: str
    """Commit, or file, that shows it."""
    about: str = ""
    """Place of the handoff, where the sign is an answer to that one alone."""


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage of one handoff."""

    stage: HandoffStage
    at_s: int | None
    """When it was reached, at the latest; None when it has not been."""
    due_s: int | None
    """When it is due: a deadline after the stage before; None while that has not been reached."""
    by: str = ""
    """What shows it."""

    def is_overdue(self, now_s: int) -> bool:
        """Return whether it is due and has not been reached."""
        return self.at_s is None and self.due_s is not None and now_s > self.due_s


@dataclass(frozen=True, slots=True)
class HandoffLifecycle:
    """One handoff and its four stages."""

    delivery: DeliveredHandoff
    stations: tuple[StageTime, ...]

    @property
    def stage(self) -> HandoffStage:
        """The last stage that was reached."""
        return [one.stage for one in self.stations if one.at_s is not None][-1]

    def awaited(self, now_s: int) -> StageTime | None:
        """Return the stage that is overdue, or None."""
        return next((one for one in self.stations if one.is_overdue(now_s)), None)


@dataclass(frozen=True, slots=True)
class Overdue:
    """A handoff whose next stage is late."""

    delivery: DeliveredHandoff
    stage: HandoffStage
    """The stage that is waited for."""
    due_s: int
    """When it was due, seconds since the epoch."""

    def __str__(self) -> str:
        one = self.delivery
        return (
            f"{one.sender} → {one.receiver}: not {self.stage.value}, which was due "
            f"{iso(self.due_s)} ({one.place})"
        )


def lifecycles(
    deliveries: Iterable[DeliveredHandoff], signs: Iterable[ReceiverSign], deadline_s: int
) -> tuple[HandoffLifecycle, ...]:
    """Return the life of each handoff, in the order of the deliveries.

    The order of the signs makes no difference.
    """
    known = tuple(signs)
    return tuple(_life(delivery, known, deadline_s) for delivery in deliveries)


def overdue(found: Iterable[HandoffLifecycle], now_s: int) -> tuple[Overdue, ...]:
    """Return the handoffs whose next stage is late, the latest first."""
    late = (
        Overdue(life.delivery, station.stage, station.due_s)
        for life in found
        if (station := life.awaited(now_s)) and station.due_s is not None
    )
    return tuple(sorted(late, key=lambda one: (one.due_s, one.delivery.place)))


def _life(
    delivery: DeliveredHandoff, signs: tuple[ReceiverSign, ...], deadline_s: int
) -> HandoffLifecycle:
    after = [sign for sign in signs if _concerns(sign, delivery)]
    stations = [StageTime(HandoffStage.DELIVERED, delivery.at.at_s, None, delivery.by)]
    for stage in STAGES[1:]:
        before = stations[-1].at_s
        due = before + deadline_s if before is not None else None
        # Whoever has acted has read: the earliest sign of this stage or of a later one counts.
        proof = min(
            (sign for sign in after if _proves(sign, stage)), key=lambda sign: sign.at, default=None
        )
        stations.append(
            StageTime(stage, proof.at.at_s, due, proof.by) if proof else StageTime(stage, None, due)
        )
    return HandoffLifecycle(delivery, tuple(stations))


def _concerns(sign: ReceiverSign, delivery: DeliveredHandoff) -> bool:
    if sign.about:  # an answer may come with the very commit: both sides sat together
        return sign.about == delivery.place and sign.at >= delivery.at
    reaches = sign.stage is HandoffStage.READ or not delivery.needs_answer
    return reaches and sign.receiver == delivery.receiver and sign.at > delivery.at


def _proves(sign: ReceiverSign, stage: HandoffStage) -> bool:
    return STAGES.index(sign.stage) >= STAGES.index(stage)
