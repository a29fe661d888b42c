"""The crew: what is a sign of an agent's health, what counts for and against a department, when its
breaker turns.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How an agent is; value as people see it, `wire` as in `agent_health_event`."""

    wire: str

    def __new__(cls, name: str, wire: str) -> Health:
        member = str.__new__(cls, name)
        member._value_ = name
        member.wire = wire
        return member

    STARTED = "started", "start"
    """It is there, and has done nothing yet."""
    WORKING = "working", "start"
    """It does something: the wire has no word of its own for that."""
    IDLE = "idle", "idle"
    """Its turn is over; it waits to be asked."""
    STOPPED = "stopped", "stop"
    """It said goodbye."""
    DISAPPEARED = "disappeared", "disappeared"
    """It was at work, and has been silent for too long."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What an event of a host, or a message, says of an agent's health."""

    event: str
    """A hook as in `yolo-fs hook EVENT`, or the type of a message; after `:` its status or state,
    where that counts.
    """
    health: Health
    is_work: bool = False
    """It says nothing but that the agent works, and may be left out when it repeats another."""


_MESSAGE = 'document 000 ("{}")'

SIGNS = (
    Sign("session-start", Health.STARTED),
    Sign("user-prompt-submit", Health.WORKING, is_work=True),
    Sign("post-compact", Health.WORKING),
    Sign("pre-tool-use", Health.WORKING, is_work=True),
    Sign("post-tool-use", Health.WORKING, is_work=True),
    Sign("post-tool-use-failure", Health.WORKING, is_work=True),
    Sign("task-completed", Health.WORKING),
    Sign("stop", Health.IDLE),
    Sign("session-end", Health.STOPPED),
    Sign("subagent-start", Health.STARTED),
    Sign("subagent-stop", Health.STOPPED),
    Sign("task_claim", Health.WORKING),
    Sign("task_complete", Health.WORKING),
    Sign("dev_progress", Health.WORKING),
    Sign("dev_blocker", Health.IDLE),
    Sign("shutdown_response", Health.WORKING),
    Sign("shutdown_response:clean", Health.STOPPED),
    Sign("agent_health_event:start", Health.STARTED),
    Sign("agent_health_event:idle", Health.IDLE),
    Sign("agent_health_event:stop", Health.STOPPED),
    Sign("agent_health_event:disappeared", Health.DISAPPEARED),
)
"""A message that is not listed, and is noted all the same, says that its sender works."""

SIGN_BY_EVENT = {row.event: row for row in SIGNS}


class Circuit(StrEnum):
    """How a department's breaker stands, as in `circuit_breaker_state`."""

    CLOSED = "closed"
    """Work flows."""
    OPEN = "open"
    """Too much failed in a row: nothing new is given to the department."""
    HALF_OPEN = "half-open"
    """It may try once: the next outcome decides."""


class CircuitSignal(StrEnum):
    """What turns a breaker."""

    FAILURE = "failure"
    LAST_FAILURE = "last failure"
    """The failure that makes it too many in a row."""
    SUCCESS = "success"
    TIME = "time"
    """It has been open for long enough."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What an outcome makes of a breaker.

    A pair that is not listed changes nothing but the count.
    """

    state: Circuit
    outcome: CircuitSignal
    to: Circuit


TURNS = (
    Turn(Circuit.CLOSED, CircuitSignal.LAST_FAILURE, Circuit.OPEN),
    Turn(Circuit.OPEN, CircuitSignal.TIME, Circuit.HALF_OPEN),
    Turn(Circuit.HALF_OPEN, CircuitSignal.FAILURE, Circuit.OPEN),
    Turn(Circuit.HALF_OPEN, CircuitSignal.LAST_FAILURE, Circuit.OPEN),
    Turn(Circuit.HALF_OPEN, CircuitSignal.SUCCESS, Circuit.CLOSED),
)

NEXT_CIRCUIT = {(row.state, row.outcome): row.to for row in TURNS}


@dataclass(frozen=True, slots=True)
class Measure:
    """Where an outcome of a department is read off."""

    of: str
    """Kind of artifact, or type of message."""
    key: str
    """Field of its first line, or of each line where `each` says so."""
    failing: tuple[str, ...]
    """Values that count against the department."""
    passing: tuple[str, ...]
    """Values that count for it."""
    each: bool = False


MEASURES = (
    Measure("summary", "s", ("failed",), ("complete",)),
    Measure("verification", "r", ("FAIL",), ("PASS",)),
    Measure("qa-code", "r", ("FAIL",), ("PASS",)),
    Measure("qa-gate-results", "r", ("FAIL",), ("PASS",), each=True),
)
"""Artifacts: each version that a commit gave them is one outcome."""

MESSAGE_MEASURES = (
    Measure("dev_progress", "status", ("failed",), ("complete",)),
    Measure("task_complete", "status", ("failed",), ("complete",)),
)


class Cause(StrEnum):
    """Why a step stands still, the most telling first."""

    GATE = "gate"
    """The department waits at a gate between departments."""
    ESCALATION = "escalation"
    """Somebody is asked, and has not answered."""
    DISAPPEARED = "disappeared"
    """The agent was at work, and is silent."""
    CIRCUIT = "circuit"
    """Too much failed in a row."""
    REJECTED = "rejected"
    """What was written last is not valid."""
    HELD = "held"
    """What was written last is valid, and may not be committed now."""
    UNKNOWN = "unknown"
    """Nothing is known."""
