"""Which steps stand still: nothing committed, no sign of their agent, for too long; and why. Pure.

A step stands still from the last artifact of its department, or the last sign of its agent,
whichever came later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from yolo_fs.agents.circuit import Breaker
from yolo_fs.agents.health import AgentHealth, place_of
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.verdicts import Held, Rejected, Verdict
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import errors
from yolo_fs.core.timestamps import iso
from yolo_fs.escalations.log import EscalationProgress
from yolo_fs.evidence.facts import SourceCommit, plan_progress
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import Next
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.roster import Cause, Circuit, Health


class Awaited(NamedTuple):
    """A step whose turn it is, and when something was last seen of it."""

    phase: PhaseId
    department: Dept | None
    """None for a step that the phase has once."""
    next: Next
    moved_at: datetime
    key: str
    """Name of this wait, so that it is timed once: whatever moves makes it another."""


class StepTurn(NamedTuple):
    """A step whose turn it is."""

    phase: PhaseId
    department: Dept | None
    next: Next
    by_commits: Awaited | None
    """As its commits alone tell; None where none has touched it."""


@dataclass(frozen=True, slots=True)
class StallInput:
    """Everything that may explain why a phase makes no progress."""

    phase: Phase
    turns: tuple[StepTurn, ...]
    agents: tuple[AgentHealth, ...] = ()
    """As they are by now, those that disappeared included."""
    breakers: tuple[Breaker, ...] = ()
    escalations: tuple[EscalationProgress, ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """Path of each candidate in the work tree → how it stands."""


@dataclass(frozen=True)
class Stall:
    """A step that stands still."""

    awaited: Awaited
    since: datetime
    known: StallInput = field(repr=False, compare=False)

    @cached_property
    def _why(self) -> tuple[Cause, str]:
        told = ((row, why(self.known, self.awaited)) for row, why in CAUSES.items())
        return next(each for each in told if each[1])

    @property
    def cause(self) -> Cause:
        """Why it does."""
        return self._why[0]

    @property
    def said(self) -> str:
        """The cause in words."""
        return self._why[1]

    def __str__(self) -> str:
        where = f" of the {self.awaited.department}" if self.awaited.department else ""
        one = self.awaited.next
        return (
            f"{one.step}{where} stands still since {iso(self.since.timestamp())}: "
            f"{one.agent} is next; {self.said}"
        )

    JSON_KEYS: ClassVar = {
        "phase": "awaited.phase",
        "department": "awaited.department",
        "step": "awaited.next.step",
        "agent": "awaited.next.agent",
        "task": "awaited.next.task",
        "since": "since",
        "cause": "cause",
        "said": "said",
    }


def turns_of(phase: Phase, done: Mapping[str, SourceCommit]) -> tuple[StepTurn, ...]:
    """Return each step whose turn it is in a phase. `done`: the commits of its tasks."""
    if phase.progress.is_complete:
        return ()
    turns: list[tuple[Dept | None, Next]] = [
        (one.department, one.next) for one in phase.progress.departments if one.next
    ]
    if phase.progress.next and phase.progress.next not in [turn for _, turn in turns]:
        turns = [(None, phase.progress.next)]
    moved = ((*turn, _committed(phase, turn[0], done)) for turn in turns)
    here = phase.facts.phase
    return tuple(
        StepTurn(here, department, turn, _awaited(here, department, turn, at))
        for department, turn, at in moved
    )


def awaited(turns: Iterable[StepTurn], agents: Sequence[AgentHealth]) -> tuple[Awaited, ...]:
    """Return each step whose turn it is, and when it was last seen; none that nothing times."""
    seen = (_last_seen(one, agents) for one in turns)
    return tuple(one for one in seen if one)


def stalls(
    known: StallInput,
    now: datetime,
    stall_s: float,
    began: Mapping[str, datetime] = MappingProxyType({}),
) -> tuple[Stall, ...]:
    """Return the steps that stand still for longer than `stall_s` seconds, in the order of the
    departments.

    `began`: key of a wait → when it began, where a better clock than that of commits and signs
    knows.
    """
    found = []
    for one in awaited(known.turns, known.agents):
        since = began.get(one.key, min(one.moved_at, now))
        if now - since > timedelta(seconds=stall_s):
            found.append(Stall(one, since, known))
    return tuple(found)


def _awaited(
    phase: PhaseId, department: Dept | None, turn: Next, moved_at: datetime | None
) -> Awaited | None:
    if moved_at is None:
        return None
    key = f"step {phase} {department or 'phase'} {turn.step} moved {moved_at.isoformat()}"
    return Awaited(phase, department, turn, moved_at, key)


def _last_seen(turn: StepTurn, agents: Sequence[AgentHealth]) -> Awaited | None:
    known = turn.by_commits
    beat = max(_beats(agents, turn.department, turn.next), default=None)
    if beat is None or (known and known.moved_at >= beat):
        return known
    return _awaited(*turn[:3], beat)


def _committed(
    phase: Phase, department: Dept | None, done: Mapping[str, SourceCommit]
) -> datetime | None:
    own = [
        one
        for one in phase.facts.filed
        if one.place.phase and department in (None, one.place.department)
    ]
    tasks = (task.commit for plan in plan_progress(phase.facts, department) for task in plan.tasks)
    times_s = (*(one.at_s for one in own), *(done[oid].at_s for oid in tasks if oid in done))
    last_s = max(filter(None, times_s), default=0)
    return datetime.fromtimestamp(last_s, UTC) if last_s else None


def _beats(
    agents: Iterable[AgentHealth], department: Dept | None, turn: Next
) -> Iterator[datetime]:
    for one in agents:
        if _is_asked(one, department, turn):
            yield one.seen
        elif one.role is None:  # it may be anybody, but what its agents do is theirs
            yield one.acted


def _is_asked(one: AgentHealth, department: Dept | None, turn: Next) -> bool:
    role, where = place_of(turn.agent)
    return one.role is role and one.department in (where, department)


def _gate(known: StallInput, one: Awaited) -> str:
    at_gates = [wait for wait in known.phase.waits if wait.on.startswith("gate:")]
    if not at_gates or one.department is None:
        return ""
    named = {
        one.department,
        *(str(plan.id) for plan in plan_progress(known.phase.facts, one.department)),
    }
    found = next((wait for wait in at_gates if wait.waiter in named), None)
    return f"waits at {found.on.removeprefix('gate:')}: {found.why}" if found else ""


def _escalation(known: StallInput, one: Awaited) -> str:
    open_ = [
        each
        for each in known.escalations
        if each.is_open and one.department in (None, each.department)
    ]
    levels = (
        f"{each.id} is open at the {each.holder} since {iso(each.since.timestamp())}"
        for each in open_
    )
    return "; ".join(levels)


def _disappeared(known: StallInput, one: Awaited) -> str:
    asked = [each for each in known.agents if _is_asked(each, one.department, one.next)]
    if not asked or any(each.is_there for each in asked):
        return ""
    gone = [each for each in asked if each.health is Health.DISAPPEARED]
    last = max(gone, key=lambda each: each.seen, default=None)
    return (
        f"{last.name} ({last.id}) disappeared, last seen {iso(last.seen.timestamp())}"
        if last
        else ""
    )


def _circuit(known: StallInput, one: Awaited) -> str:
    found = [
        each
        for each in known.breakers
        if each.department is one.department and each.state is not Circuit.CLOSED
    ]
    return "".join(f"the circuit is {each.state}: {each.why}" for each in found)


def _rejected(known: StallInput, one: Awaited) -> str:
    for path, verdict in _near(known, one):
        if isinstance(verdict, Rejected) and errors(verdict.findings):
            return f"rejected: {errors(verdict.findings)[0]}"
        if isinstance(verdict, Rejected):
            return f"{path} is rejected"
    return ""


def _held(known: StallInput, one: Awaited) -> str:
    held = ((path, verdict) for path, verdict in _near(known, one) if isinstance(verdict, Held))
    return next(
        (
            f"{path} is held: {verdict.reason.value}: {verdict.reason.sentence}"
            for path, verdict in held
        ),
        "",
    )


def _near(known: StallInput, one: Awaited) -> Iterator[tuple[str, Verdict]]:
    """Yield the candidates of the phase that are the department's own."""
    for path, verdict in sorted(known.verdicts.items()):
        place = classify(path)
        if place and place.phase == one.phase and one.department in (None, place.department):
            yield path, verdict


def _unknown(known: StallInput, one: Awaited) -> str:
    asked = [each for each in known.agents if _is_asked(each, one.department, one.next)]
    last = max(asked, key=lambda each: each.seen, default=None)
    if last is None:
        return f"no sign of {one.next.agent} is known"
    return (
        f"nothing is known: {last.name} ({last.id}) is {last.health} since "
        f"{iso(last.since.timestamp())}"
    )


CAUSES: Mapping[Cause, Callable[[StallInput, Awaited], str]] = {
    Cause.GATE: _gate,
    Cause.ESCALATION: _escalation,
    Cause.DISAPPEARED: _disappeared,
    Cause.CIRCUIT: _circuit,
    Cause.REJECTED: _rejected,
    Cause.HELD: _held,
    Cause.UNKNOWN: _unknown,
}
"""One row for each cause, in words; empty where it is not the cause.

The first that says something is told.
"""
