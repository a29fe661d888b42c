"""A circuit breaker for each department, and the outcomes that drive it: closed, open after
consecutive failures, half-open after a delay. Pure; no state is stored. See
docs/dev/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from yolo_fs.agents.health import AgentHealth, AgentSign
from yolo_fs.agents.totals import task_of
from yolo_fs.core.timestamps import iso, moment
from yolo_fs.escalations.log import departments_of, logged, stations
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts, SourceCommit, Version
from yolo_fs.evidence.plan_status import plan_progress
from yolo_fs.loops.facts import LoopFacts
from yolo_fs.protocol.departments import Dept, Role
from yolo_fs.protocol.roster import (
    MEASURES,
    MESSAGE_MEASURES,
    NEXT_CIRCUIT,
    Circuit,
    CircuitSignal,
    Health,
    Measure,
    department_said,
)

_SHOWN = 3
"""Failures that are described; the others are only counted."""


class OutcomeEvent(NamedTuple):
    """One success or failure in a department."""

    at: datetime
    department: Dept
    failed: bool
    what: str
    """Description, with the file, task or agent."""
    once: str = ""
    """Key of a failure that two sources may report; it counts once until the next success."""


class BreakerPolicy(NamedTuple):
    """When a breaker opens, and for how long."""

    failures: int
    """Consecutive failures after which it opens."""
    open_s: float
    """Seconds after which it is half-open."""


class Breaker(NamedTuple):
    """State of the breaker of one department."""

    department: Dept
    state: Circuit = Circuit.CLOSED
    failures: int = 0
    """Failures since the last success."""
    latest: tuple[OutcomeEvent, ...] = ()
    """The last of them; in a long history there are thousands."""
    counted_once: frozenset[str] = frozenset()
    """Keys that are already counted; see `OutcomeEvent.once`."""
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    """When it became half-open."""

    @property
    def key(self) -> str:
        """Key of this open period, so that it is timed once."""
        return (
            f"circuit {self.department} open {self.opened_at.isoformat() if self.opened_at else ''}"
        )

    @property
    def why(self) -> str:
        """The reason for its state, in words."""
        failed = "; ".join(outcome.what for outcome in self.latest)
        match self.state:
            case Circuit.OPEN:
                return f"{self.failures} failures in a row: {failed}"
            case Circuit.HALF_OPEN:
                return f"half-open, the next outcome decides; before: {failed}"
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


def breakers_after(
    outcomes: Iterable[OutcomeEvent], departments: Iterable[Dept], patience: BreakerPolicy
) -> tuple[Breaker, ...]:
    """Return the breakers of departments after their outcomes, given in any order.

    Two sources that report the same at one moment count once.
    """
    left = {department: Breaker(department) for department in departments}
    for outcome in sorted(set(outcomes)):
        if breaker := left.get(outcome.department):
            waited = _advance_by_time(breaker, outcome.at, patience, {})
            left[breaker.department] = _after(waited, outcome, patience)
    return tuple(left.values())


def as_of(
    now: datetime, left: Iterable[Breaker], patience: BreakerPolicy, began: Mapping[str, datetime]
) -> tuple[Breaker, ...]:
    """Return the breakers as of `now`. `began`: key of an open period → its start, if known."""
    return tuple(_advance_by_time(breaker, now, patience, began) for breaker in left)


def _advance_by_time(
    breaker: Breaker, now: datetime, patience: BreakerPolicy, began: Mapping[str, datetime]
) -> Breaker:
    to = NEXT_CIRCUIT.get((breaker.state, CircuitSignal.TIME))
    if to is None or breaker.opened_at is None:
        return breaker
    since = min(breaker.opened_at, now)
    due = (began.get(breaker.key, since) if began else since) + timedelta(seconds=patience.open_s)
    return breaker._replace(state=to, probe_at=due) if now >= due else breaker


def _after(breaker: Breaker, outcome: OutcomeEvent, patience: BreakerPolicy) -> Breaker:
    if outcome.failed and outcome.once in breaker.counted_once:
        return breaker
    counted = _counted(breaker, outcome) if outcome.failed else breaker
    to = NEXT_CIRCUIT.get((breaker.state, _kind(outcome, counted.failures, patience)))
    if not outcome.failed and Circuit.OPEN not in (breaker.state, to):
        counted = breaker._replace(failures=0, latest=(), counted_once=frozenset())
    if to is None:
        return counted
    opened_at = outcome.at if to is Circuit.OPEN else breaker.opened_at
    return counted._replace(state=to, opened_at=opened_at)


def _counted(breaker: Breaker, failed: OutcomeEvent) -> Breaker:
    return breaker._replace(
        failures=breaker.failures + 1,
        latest=(*breaker.latest, failed)[-_SHOWN:],
        counted_once=breaker.counted_once | {failed.once} if failed.once else breaker.counted_once,
    )


def _kind(outcome: OutcomeEvent, failures: int, patience: BreakerPolicy) -> CircuitSignal:
    if not outcome.failed:
        return CircuitSignal.SUCCESS
    return CircuitSignal.LAST_FAILURE if failures >= patience.failures else CircuitSignal.FAILURE


def _written(at: datetime | None) -> str:
    return iso(at.timestamp()) if at else ""


BLOCKER = "dev_blocker"


def outcomes_on_branch(
    facts: LoopFacts, done: Mapping[str, SourceCommit]
) -> Iterator[OutcomeEvent]:
    """Yield the outcomes of a phase on the branch. `done`: its tasks' commits."""
    for row in MEASURES:
        for artifact in facts.phase.of_kind(row.of):
            yield from _judge_versions(row, artifact, facts.history(artifact))
    yield from _of_tasks(facts.phase, done)
    yield from _outcomes_of_blockers(facts.phase)


def _judge_versions(
    row: Measure, artifact: CommittedArtifact, versions: Iterable[Version]
) -> Iterator[OutcomeEvent]:
    department = Dept(artifact.place.department)
    for version in versions:
        lines = [line for line in version.lines if row.key in line]
        for line in lines if row.each else lines[:1]:
            at = (row.each and moment(line.get("dt"))) or datetime.fromtimestamp(version.at_s, UTC)
            yield from _measured(row, line, at, department, artifact.place.name)


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


def _outcomes_of_blockers(facts: PhaseFacts) -> Iterator[OutcomeEvent]:
    known = facts.ask(logged)
    for station in stations(known):
        if station.state == "open" and station.role is Role.DEV and station.at:
            department = known.department_of(station.id, station.agent)
            yield OutcomeEvent(
                station.at,
                department,
                failed=True,
                what=f"task {station.id.task} is blocked",
                once=str(station.id.task),
            )


def outcomes_reported(facts: PhaseFacts, seen: Iterable[AgentSign]) -> Iterator[OutcomeEvent]:
    """Yield the outcomes of a phase that agents reported, in the order of the agent journal."""
    departments = departments_of(facts)
    rows = {row.of: row for row in MESSAGE_MEASURES}
    for sign in seen:
        task = task_of(sign.message) if sign.message else None
        owners = departments.get(str(task.plan), ()) if task else ()
        if not owners:
            continue
        said = department_said(sign.name)
        department = said if said in owners else owners[0]
        if sign.event == BLOCKER:
            yield OutcomeEvent(
                sign.at, department, failed=True, what=f"task {task} is blocked", once=str(task)
            )
        elif row := rows.get(sign.event):
            yield from _measured(
                row, sign.message, sign.at, department, f"{sign.event} of task {task}"
            )


def disappearances(agents: Iterable[AgentHealth]) -> Iterator[OutcomeEvent]:
    """Yield a failure for each agent that disappeared."""
    for agent in agents:
        if agent.health is Health.DISAPPEARED and agent.department:
            yield OutcomeEvent(
                agent.seen,
                agent.department,
                failed=True,
                what=f"{agent.name} ({agent.id}) disappeared",
                once=agent.key,
            )
