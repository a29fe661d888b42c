"""A circuit breaker for each department: closed, open after failures in a row, half-open after a time. Pure.

What turns it are outcomes that artifacts, commits, the escalation log and the record of the crew
tell; nothing of it is stored. See docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from yolo_fs.protocol.crew import NEXT_CIRCUIT, Circuit, Outcome
from yolo_fs.protocol.names import Dept
from yolo_fs.rules.timestamps import iso


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that went well or failed in a department."""

    at: datetime
    department: Dept
    failed: bool
    what: str
    """In words, with the file, task or agent."""
    once: str = ""
    """What two sources may tell of the same failure; it counts once until something goes well."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When a breaker opens, and for how long."""

    failures: int
    """In a row, and it opens."""
    open_s: float
    """Seconds, and it is half-open."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """How the breaker of one department stands."""

    department: Dept
    state: Circuit = Circuit.CLOSED
    failures: tuple[Told, ...] = ()
    """Since something last went well."""
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    """Since when it may try again."""
    last: Told | None = None
    """What turned it last."""

    @property
    def key(self) -> str:
        """Name of the time that it has been open, so that it is timed once."""
        return (
            f"circuit {self.department} open {self.opened_at.isoformat() if self.opened_at else ''}"
        )

    @property
    def why(self) -> str:
        """What it rests on, in words."""
        failed = "; ".join(one.what for one in self.failures[-3:])
        match self.state:
            case Circuit.OPEN:
                return f"{len(self.failures)} failures in a row: {failed}"
            case Circuit.HALF_OPEN:
                return f"it may try again, the next outcome decides; before: {failed}"
        return failed and f"{len(self.failures)} failures in a row so far: {failed}"

    def as_message(self) -> dict[str, Any]:
        """Return the `circuit_breaker_state` that the Lead notes for itself."""
        return {
            "type": "circuit_breaker_state",
            "dept": self.department.value,
            "state": self.state.value,
            "opened_at": _written(self.opened_at),
            "failure_count": len(self.failures),
            "last_probe_at": _written(self.probe_at),
        }


def breakers(
    outcomes: Iterable[Told],
    departments: Iterable[Dept],
    patience: Patience,
    now: datetime,
    began: Mapping[str, datetime] = MappingProxyType({}),
) -> tuple[Breaker, ...]:
    """Return the breaker of each department.

    `began`: key of an open time → when it began, where a better clock than that of the outcomes knows.
    """
    return as_of(now, left_by(outcomes, departments, patience), patience, began)


def left_by(
    outcomes: Iterable[Told], departments: Iterable[Dept], patience: Patience
) -> tuple[Breaker, ...]:
    """Return the breaker of each department as its last outcome left it."""
    told = sorted(outcomes, key=lambda one: one.at)
    return tuple(_left_by(told, one, patience) for one in departments)


def as_of(
    now: datetime, left: Iterable[Breaker], patience: Patience, began: Mapping[str, datetime]
) -> tuple[Breaker, ...]:
    """Return what has become of the breakers since; `began`: as in `breakers`."""
    return tuple(_waited(one, now, patience, began) for one in left)


def _left_by(told: Iterable[Told], department: Dept, patience: Patience) -> Breaker:
    one = Breaker(department)
    for outcome in told:
        if outcome.department is department:
            one = _after(_waited(one, outcome.at, patience, {}), outcome, patience)
    return one


def _waited(
    one: Breaker, now: datetime, patience: Patience, began: Mapping[str, datetime]
) -> Breaker:
    to = NEXT_CIRCUIT.get((one.state, Outcome.TIME))
    if to is None or one.opened_at is None:
        return one
    due = began.get(one.key, min(one.opened_at, now)) + timedelta(seconds=patience.open_s)
    return replace(one, state=to, probe_at=due) if now >= due else one


def _after(one: Breaker, told: Told, patience: Patience) -> Breaker:
    if told.failed and told.once and any(each.once == told.once for each in one.failures):
        return one
    counted = (*one.failures, told) if told.failed else one.failures
    to = NEXT_CIRCUIT.get((one.state, _kind(told, len(counted), patience)))
    if not told.failed and Circuit.OPEN not in (one.state, to):
        counted = ()
    if to is None:
        return replace(one, failures=counted)
    opened_at = told.at if to is Circuit.OPEN else one.opened_at
    return replace(one, state=to, failures=counted, opened_at=opened_at, last=told)


def _kind(told: Told, failures: int, patience: Patience) -> Outcome:
    if not told.failed:
        return Outcome.SUCCESS
    return Outcome.LAST_FAILURE if failures >= patience.failures else Outcome.FAILURE


def _written(at: datetime | None) -> str:
    return iso(at.timestamp()) if at else ""
