"""Finds stalled steps, with the cause. Pure.

A step is stalled when, for too long, neither its department has committed nor its agent has sent a
heartbeat.
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
from yolo_fs.evidence.facts import SourceCommit
from yolo_fs.evidence.plan_status import plan_progress
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import Next
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.roster import Cause, Circuit, Health


class Awaited(NamedTuple):
    """A step whose turn it is, and its last sign of progress."""

    phase: PhaseId
    department: Dept | None
    """None for a step that occurs once per phase."""
    next: Next
    moved_at: datetime
    key: str
    """Key of this wait, so that it is timed once; any progress changes it."""


class StepTurn(NamedTuple):
    """A step whose turn it is."""

    phase: PhaseId
    department: Dept | None
    next: Next
    committed_at: datetime | None
    """The last commit that touched it; None where none has."""


@dataclass(frozen=True, slots=True)
class StallInput:
    """Everything that may explain why a phase makes no progress."""

    phase: Phase
    turns: tuple[StepTurn, ...]
    agents: tuple[AgentHealth, ...] = ()
    """Their current health, including those that disappeared."""
    breakers: tuple[Breaker, ...] = ()
    escalations: tuple[EscalationProgress, ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """Path of each candidate in the work tree → its verdict."""


@dataclass(frozen=True)
class Stall:
    """A stalled step."""

    awaited: Awaited
    since: datetime
    known: StallInput = field(repr=False, compare=False)

    @cached_property
    def _why(self) -> tuple[Cause, str]:
        causes = ((row, why(self.known, self.awaited)) for row, why in CAUSES.items())
        return next(each for each in causes if each[1])

    @property
    def cause(self) -> Cause:
        """Why it stalls."""
        return self._why[0]

    @property
    def sentence(self) -> str:
        """The cause in words."""
        return self._why[1]

    def __str__(self) -> str:
        where = f" of the {self.awaited.department}" if self.awaited.department else ""
        turn = self.awaited.next
        return (
            f"{turn.step}{where} has stalled since {iso(self.since.timestamp())}: "
            f"{turn.agent} is next; {self.sentence}"
        )

    JSON_KEYS: ClassVar = {
        "phase": "awaited.phase",
        "department": "awaited.department",
        "step": "awaited.next.step",
        "agent": "awaited.next.agent",
        "task": "awaited.next.task",
        "since": "since",
        "cause": "cause",
        "said": "sentence",
    }


def turns_of(phase: Phase, done: Mapping[str, SourceCommit]) -> tuple[StepTurn, ...]:
    """Return each step whose turn it is in a phase. `done`: the commits of its tasks."""
    if phase.progress.is_complete:
        return ()
    turns: list[tuple[Dept | None, Next]] = [
        (status.department, status.next) for status in phase.progress.departments if status.next
    ]
    if phase.progress.next and phase.progress.next not in [turn for _, turn in turns]:
        turns = [(None, phase.progress.next)]
    return tuple(
        StepTurn(phase.facts.phase, department, turn, _committed(phase, department, done))
        for department, turn in turns
    )


def awaited(turns: Iterable[StepTurn], agents: Sequence[AgentHealth]) -> tuple[Awaited, ...]:
    """Return each step whose turn it is with its last sign; leave out those that nothing times."""
    return tuple(filter(None, (_await(turn, agents) for turn in turns)))


def stalls(
    known: StallInput,
    now: datetime,
    stall_s: float,
    began: Mapping[str, datetime] = MappingProxyType({}),
) -> tuple[Stall, ...]:
    """Return the steps that stall for longer than `stall_s` seconds, in the order of departments.

    `began`: key of a wait → its start, where a better clock than that of commits and signs has
    measured it.
    """
    stalled = []
    for step in awaited(known.turns, known.agents):
        since = began.get(step.key, min(step.moved_at, now))
        if now - since > timedelta(seconds=stall_s):
            stalled.append(Stall(step, since, known))
    return tuple(stalled)


def _await(turn: StepTurn, agents: Iterable[AgentHealth]) -> Awaited | None:
    phase, department, act, committed_at = turn
    signs = [*filter(None, [committed_at]), *_beats(agents, department, act)]
    if not signs:
        return None
    moved_at = max(signs)
    key = f"step {phase} {department or 'phase'} {act.step} moved {moved_at.isoformat()}"
    return Awaited(phase, department, act, moved_at, key)


def _committed(
    phase: Phase, department: Dept | None, done: Mapping[str, SourceCommit]
) -> datetime | None:
    own = [
        file
        for file in phase.facts.committed
        if file.place.phase and department in (None, file.place.department)
    ]
    tasks = (task.commit for plan in plan_progress(phase.facts, department) for task in plan.tasks)
    times_s = (*(file.at_s for file in own), *(done[oid].at_s for oid in tasks if oid in done))
    last_s = max(filter(None, times_s), default=0)
    return datetime.fromtimestamp(last_s, UTC) if last_s else None


def _beats(
    agents: Iterable[AgentHealth], department: Dept | None, turn: Next
) -> Iterator[datetime]:
    for agent in agents:
        if _is_asked(agent, department, turn):
            yield agent.seen
        elif agent.role is None:  # it may be anybody, but what its agents do is theirs
            yield agent.acted


def _is_asked(agent: AgentHealth, department: Dept | None, turn: Next) -> bool:
    role, where = place_of(turn.agent)
    return agent.role is role and agent.department in (where, department)


def _gate(known: StallInput, step: Awaited) -> str:
    at_gates = [wait for wait in known.phase.waits if wait.is_at_gate]
    if not at_gates or step.department is None:
        return ""
    named = {
        step.department,
        *(str(plan.id) for plan in plan_progress(known.phase.facts, step.department)),
    }
    gate_wait = next((wait for wait in at_gates if wait.waiter in named), None)
    return f"waits at {gate_wait.on.removeprefix('gate:')}: {gate_wait.why}" if gate_wait else ""


def _escalation(known: StallInput, step: Awaited) -> str:
    open_ = [
        each
        for each in known.escalations
        if each.is_open and step.department in (None, each.department)
    ]
    levels = (
        f"{each.id} has been with the {each.holder} since {iso(each.since.timestamp())}"
        for each in open_
    )
    return "; ".join(levels)


def _explain_disappearance(known: StallInput, step: Awaited) -> str:
    asked_agents = [each for each in known.agents if _is_asked(each, step.department, step.next)]
    if not asked_agents or any(each.is_there for each in asked_agents):
        return ""
    gone = [each for each in asked_agents if each.health is Health.DISAPPEARED]
    last = max(gone, key=lambda each: each.seen, default=None)
    return (
        f"{last.name} ({last.id}) disappeared, last seen {iso(last.seen.timestamp())}"
        if last
        else ""
    )


def _explain_circuit(known: StallInput, step: Awaited) -> str:
    breakers = [
        each
        for each in known.breakers
        if each.department is step.department and each.state is not Circuit.CLOSED
    ]
    return "".join(f"the circuit is {each.state}: {each.why}" for each in breakers)


def _rejected(known: StallInput, step: Awaited) -> str:
    for path, verdict in _near(known, step):
        if isinstance(verdict, Rejected) and errors(verdict.findings):
            return f"rejected: {errors(verdict.findings)[0]}"
        if isinstance(verdict, Rejected):
            return f"{path} is rejected"
    return ""


def _held(known: StallInput, step: Awaited) -> str:
    held = ((path, verdict) for path, verdict in _near(known, step) if isinstance(verdict, Held))
    return next((f"{path} is held: {verdict.reason.with_sentence}" for path, verdict in held), "")


def _near(known: StallInput, step: Awaited) -> Iterator[tuple[str, Verdict]]:
    """Yield the candidates of the phase that are the department's own."""
    for path, verdict in sorted(known.verdicts.items()):
        place = classify(path)
        if place and place.phase == step.phase and step.department in (None, place.department):
            yield path, verdict


def _unknown(known: StallInput, step: Awaited) -> str:
    asked_agents = [each for each in known.agents if _is_asked(each, step.department, step.next)]
    last = max(asked_agents, key=lambda each: each.seen, default=None)
    if last is None:
        return f"{step.next.agent} was never seen"
    return (
        f"cause unknown: {last.name} ({last.id}) has been {last.health} since "
        f"{iso(last.since.timestamp())}"
    )


CAUSES: Mapping[Cause, Callable[[StallInput, Awaited], str]] = {
    Cause.GATE: _gate,
    Cause.ESCALATION: _escalation,
    Cause.DISAPPEARED: _explain_disappearance,
    Cause.CIRCUIT: _explain_circuit,
    Cause.REJECTED: _rejected,
    Cause.HELD: _held,
    Cause.UNKNOWN: _unknown,
}
"""For each cause, a function that returns a description; empty where it is not the cause.

The first description that is not empty is reported.
"""
