"""A circuit breaker for each department, and the outcomes that turn it: closed, open after failures
in a row, half-open after a time. Pure; nothing of it is stored. See
docs/dev/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import chain, groupby, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from yolo_fs.agents.health import AgentHealth, AgentSign
from yolo_fs.core.ids import TaskRef
from yolo_fs.core.timestamps import iso, moment
from yolo_fs.escalations.log import departments_of, logged, stations
from yolo_fs.evidence.facts import Filed, PhaseFacts, SourceCommit, Version, plan_progress
from yolo_fs.loops.facts import LoopFacts
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept, Role
from yolo_fs.protocol.roster import (
    MEASURES,
    MESSAGE_MEASURES,
    NEXT_CIRCUIT,
    Circuit,
    CircuitSignal,
    Health,
    Measure,
)

_AT = attrgetter("at")
_SHOWN = 3
"""Failures that are told in words; the others are only counted."""


class OutcomeEvent(NamedTuple):
    """One thing that went well or failed in a department."""

    at: datetime
    department: Dept
    failed: bool
    what: str
    """In words, with the file, task or agent."""
    once: str = ""
    """What two sources may tell of the same failure; it counts once until something goes well."""


class BreakerPolicy(NamedTuple):
    """When a breaker opens, and for how long."""

    failures: int
    """In a row, and it opens."""
    open_s: float
    """Seconds, and it is half-open."""


class Breaker(NamedTuple):
    """How the breaker of one department stands."""

    department: Dept
    state: Circuit = Circuit.CLOSED
    failures: int = 0
    """Since something last went well."""
    latest: tuple[OutcomeEvent, ...] = ()
    """The last of them; in a long history there are thousands."""
    counted_once: frozenset[str] = frozenset()
    """What must not be counted again; see `OutcomeEvent.once`."""
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    """Since when it may try again."""
    last: OutcomeEvent | None = None
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
        failed = "; ".join(one.what for one in self.latest)
        match self.state:
            case Circuit.OPEN:
                return f"{self.failures} failures in a row: {failed}"
            case Circuit.HALF_OPEN:
                return f"it may try again, the next outcome decides; before: {failed}"
        return failed and f"{self.failures} failures in a row so far: {failed}"

    def as_message(self) -> dict[str, Any]:
        """Return the `circuit_breaker_state` that the Lead notes for itself."""
        return {
            "type": "circuit_breaker_state",
            "dept": self.department.value,
            "state": self.state.value,
            "opened_at": _written(self.opened_at),
            "failure_count": self.failures,
            "last_probe_at": _written(self.probe_at),
        }


def turned(
    departments: Iterable[Dept],
    patience: BreakerPolicy,
    phases: Sequence[LoopFacts],
    told: Iterable[OutcomeEvent],
) -> tuple[Breaker, ...]:
    """Return the breakers of departments as the last outcome left them.

    `told`: all outcomes that are no versions of an artifact.
    """
    closed = (Breaker(department) for department in departments)
    series = (_of_versions(*one) for facts in phases for one in _series(facts))
    moments = in_order([sorted(told, key=_AT), *series])
    return left_by(chain.from_iterable(moments), closed, patience)


def left_by(
    outcomes: Iterable[OutcomeEvent], before: Iterable[Breaker], patience: BreakerPolicy
) -> tuple[Breaker, ...]:
    """Return breakers as outcomes leave them. `outcomes`: oldest first."""
    left = {one.department: one for one in before}
    for outcome in outcomes:
        one = left.get(outcome.department)
        if one is None:
            continue
        is_as_before = one.state is Circuit.CLOSED and not (outcome.failed or one.failures)
        if not is_as_before:  # nearly all of a long history
            waited = _waited(one, outcome.at, patience, {})
            left[one.department] = _after(waited, outcome, patience)
    return tuple(left.values())


def in_order(series: Iterable[Iterable[OutcomeEvent]]) -> Iterator[tuple[OutcomeEvent, ...]]:
    """Yield the outcomes of many series moment by moment; what several tell alike only once.

    No more than one of each is held at a time: a long history has tens of thousands.
    """
    for _, together in groupby(merge(*series, key=_AT), key=_AT):
        yield tuple(sorted(set(together)))


def as_of(
    now: datetime, left: Iterable[Breaker], patience: BreakerPolicy, began: Mapping[str, datetime]
) -> tuple[Breaker, ...]:
    """Return what has become of them since. `began`: key of an open time → when, if known."""
    return tuple(_waited(one, now, patience, began) for one in left)


def _waited(
    one: Breaker, now: datetime, patience: BreakerPolicy, began: Mapping[str, datetime]
) -> Breaker:
    to = NEXT_CIRCUIT.get((one.state, CircuitSignal.TIME))
    if to is None or one.opened_at is None:
        return one
    since = min(one.opened_at, now)
    due = (began.get(one.key, since) if began else since) + timedelta(seconds=patience.open_s)
    return one._replace(state=to, probe_at=due) if now >= due else one


def _after(one: Breaker, told: OutcomeEvent, patience: BreakerPolicy) -> Breaker:
    if told.failed and told.once in one.counted_once:
        return one
    counted = _counted(one, told) if told.failed else one
    to = NEXT_CIRCUIT.get((one.state, _kind(told, counted.failures, patience)))
    if not told.failed and Circuit.OPEN not in (one.state, to):
        counted = one._replace(failures=0, latest=(), counted_once=frozenset())
    if to is None:
        return counted
    opened_at = told.at if to is Circuit.OPEN else one.opened_at
    return counted._replace(state=to, opened_at=opened_at, last=told)


def _counted(one: Breaker, failed: OutcomeEvent) -> Breaker:
    return one._replace(
        failures=one.failures + 1,
        latest=(*one.latest, failed)[-_SHOWN:],
        counted_once=one.counted_once | {failed.once} if failed.once else one.counted_once,
    )


def _kind(told: OutcomeEvent, failures: int, patience: BreakerPolicy) -> CircuitSignal:
    if not told.failed:
        return CircuitSignal.SUCCESS
    return CircuitSignal.LAST_FAILURE if failures >= patience.failures else CircuitSignal.FAILURE


def _written(at: datetime | None) -> str:
    return iso(at.timestamp()) if at else ""


BLOCKER = "dev_blocker"


def outcomes(facts: LoopFacts, done: Mapping[str, SourceCommit]) -> Iterator[OutcomeEvent]:
    """Yield what the branch tells of a phase beside the versions of artifacts; `done`: its tasks'
    commits.
    """
    for row in MEASURES:
        for filed in facts.phase.of_kind(row.of):
            if row.each or not facts.versions.get(filed.place.path):
                yield from _told(row, filed, facts.history(filed))
    yield from _of_tasks(facts.phase, done)
    yield from _of_blockers(facts.phase)


def _series(facts: LoopFacts) -> Iterator[tuple[Measure, Filed, Sequence[Version]]]:
    """Yield the artifacts each version of which is one outcome."""
    for row in MEASURES:
        if row.each:
            continue
        for filed in facts.phase.of_kind(row.of):
            if versions := facts.versions.get(filed.place.path):
                yield row, filed, versions


def _of_versions(row: Measure, filed: Filed, versions: Sequence[Version]) -> Iterable[OutcomeEvent]:
    """Return the outcomes of an artifact's versions, oldest first."""
    told = _told(row, filed, versions)
    is_in_order = all(before.at_s <= after.at_s for before, after in pairwise(versions))
    return told if is_in_order else sorted(told, key=_AT)


def _told(row: Measure, filed: Filed, versions: Iterable[Version]) -> Iterator[OutcomeEvent]:
    # In one frame: as many of these stand in memory at a time as there are files.
    department = Dept(filed.place.department)
    for version in versions:
        lines = [line for line in version.lines if row.key in line]
        for line in lines if row.each else lines[:1]:
            at = (row.each and moment(line.get("dt"))) or datetime.fromtimestamp(version.at_s, UTC)
            yield from _measured(row, line, at, department, filed.place.name)


def _measured(
    row: Measure, line: Mapping[str, Any], at: datetime, department: Dept, of: str
) -> tuple[OutcomeEvent, ...]:
    value = line.get(row.key)
    if value not in (*row.failing, *row.passing):
        return ()
    return (OutcomeEvent(at, department, value in row.failing, f"{of} says {value}"),)


def _of_tasks(facts: PhaseFacts, done: Mapping[str, SourceCommit]) -> Iterator[OutcomeEvent]:
    for plan in plan_progress(facts):
        for task in plan.tasks:
            if commit := done.get(task.commit):
                at = datetime.fromtimestamp(commit.at_s, UTC)
                yield OutcomeEvent(
                    at, plan.department, failed=False, what=f"task {task.ref} is committed"
                )


def _of_blockers(facts: PhaseFacts) -> Iterator[OutcomeEvent]:
    known = facts.ask(logged)
    for one in stations(known):
        if one.state == "open" and one.role is Role.DEV and one.at:
            department = known.departments.get(str(one.id.task.plan), DEFAULT_DEPARTMENT)
            yield OutcomeEvent(
                one.at,
                department,
                failed=True,
                what=f"task {one.id.task} is blocked",
                once=str(one.id.task),
            )


def outcomes_told(facts: PhaseFacts, seen: Iterable[AgentSign]) -> Iterator[OutcomeEvent]:
    """Yield what agents tell of a phase in the record of the crew, in its order."""
    departments = departments_of(facts)
    rows = {row.of: row for row in MESSAGE_MEASURES}
    for one in seen:
        task = _task_said(one.said) if one.said else None
        department = departments.get(str(task.plan)) if task else None
        if department is None:
            continue
        if one.event == BLOCKER:
            yield OutcomeEvent(
                one.at, department, failed=True, what=f"task {task} is blocked", once=str(task)
            )
        elif row := rows.get(one.event):
            yield from _measured(row, one.said, one.at, department, f"{one.event} of task {task}")


def _task_said(said: Mapping[str, Any]) -> TaskRef | None:
    """Return the task of a message: `task` names it, or `plan_id` and `task_id` do."""
    return TaskRef.parse(str(said.get("task") or f"{said.get('plan_id')}/{said.get('task_id')}"))


def disappearances(agents: Iterable[AgentHealth]) -> Iterator[OutcomeEvent]:
    """Yield the end of each agent that is gone without a word."""
    for one in agents:
        if one.health is Health.DISAPPEARED and one.department:
            yield OutcomeEvent(
                one.seen,
                one.department,
                failed=True,
                what=f"{one.name} ({one.id}) disappeared",
                once=one.key,
            )
