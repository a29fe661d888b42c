"""The state of one escalation: who holds it, since when, what is owed, and how it came there. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from yolo_fs.ids import EscalationId
from yolo_fs.protocol.departments import name_in
from yolo_fs.protocol.escalation import DOWNWARD, UPWARD
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.reasons import Finding
from yolo_fs.rules.escalations.log import LogEntry
from yolo_fs.rules.timestamps import iso


class EscalationStage(StrEnum):
    """How an escalation stands."""

    RISING = "rising"
    """Somebody is asked."""
    DESCENDING = "descending"
    """It is decided, and the decision is on its way to whoever is blocked."""
    STOPPED = "stopped"
    """The round trips are used up: only the user's decision ends it."""
    RESOLVED = "resolved"
    """The task goes on."""


@dataclass(frozen=True, slots=True)
class EscalationProgress:
    """How one escalation stands."""

    id: EscalationId
    department: Dept
    severity: str
    standing: EscalationStage
    path: tuple[Role, ...]
    """Its levels, from whoever reported it to the user."""
    holder: Role
    """Whose move it is."""
    attempt: int
    """How many times the task was reported as blocked."""
    round_trips: int
    """Times that it went up and came back."""
    opened_at: datetime
    since: datetime
    """When the holder got it."""
    deadline: datetime | None
    """When it is handed up, or reminded of, if the holder is silent; None where nothing is due."""
    reminded: bool
    """The holder was silent, and nobody above may be asked: that was told, and is told once."""
    decision: str
    instructions: tuple[str, ...]
    history: tuple[LogEntry, ...]
    """The stations that counted, level by level."""
    asks_owner: bool = True
    """Whether the level above the Architect is asked when it is silent."""
    claimed: bool = False
    """Somebody wrote that it is resolved, and nothing shows yet that the task goes on."""
    findings: tuple[Finding, ...] = ()
    """Lines about it that did not count, or that cannot be timed."""

    @property
    def is_open(self) -> bool:
        """Whether anything is still owed."""
        return self.standing is not EscalationStage.RESOLVED

    @property
    def origin(self) -> Role:
        """Who is blocked."""
        return self.path[0]

    @property
    def is_told(self) -> bool:
        """Whether whoever is blocked knows how to go on, and nothing shows yet that it does."""
        return self.standing is EscalationStage.DESCENDING and self.holder is self.origin

    @property
    def last_round(self) -> tuple[LogEntry, ...]:
        """The stations since it was last reported."""
        opened = [number for number, one in enumerate(self.history) if one.state == "open"]
        return self.history[opened[-1] :] if opened else self.history

    @property
    def agent(self) -> str:
        """Name of whoever has to move, such as `fe-senior`."""
        return name_in(self.holder, self.department)

    @property
    def silent_to(self) -> Role:
        """Who gets it when the holder is silent; the holder itself where it is only reminded."""
        above = self.above(self.holder)
        may_rise = self.holder is not Role.ARCHITECT or self.asks_owner
        return (
            above if above and may_rise and self.standing is EscalationStage.RISING else self.holder
        )

    @property
    def key(self) -> str:
        """Name of the holder's turn, so that it is timed once."""
        return f"{self.id}#{len(self.history)}"

    @property
    def owed(self) -> str:
        """What is owed next, in the words of the round trip; nothing once it is over."""
        if not self.is_open:
            return ""
        rows = UPWARD if self.standing is EscalationStage.RISING else DOWNWARD
        role = Role.GO if self.holder is Role.USER else self.holder
        said = next((row.action for row in rows if row.role is role), "Passes the resolution on")
        return (
            f"stopped after {self.round_trips} round trips: decide"
            if self.standing is EscalationStage.STOPPED
            else said
        )

    def above(self, role: Role) -> Role | None:
        """Return the next level up for this escalation."""
        place = self.path.index(role) + 1 if role in self.path else len(self.path)
        return self.path[place] if place < len(self.path) else None

    def below(self, role: Role) -> Role:
        """Return the next level down."""
        return self.path[max(0, self.path.index(role) - 1)] if role in self.path else self.origin


def as_json(one: EscalationProgress) -> dict[str, Any]:
    """Return an escalation with every station that it came by."""
    return {
        "id": str(one.id),
        "task": str(one.id.task),
        "department": one.department.value,
        "severity": one.severity,
        "standing": one.standing.value,
        "holder": one.agent if one.is_open else "",
        "path": [role.value for role in one.path],
        "opened_at": iso(one.opened_at.timestamp()),
        "since": iso(one.since.timestamp()),
        "deadline": iso(one.deadline.timestamp()) if one.deadline else "",
        "attempt": one.attempt,
        "round_trips": one.round_trips,
        "owed": one.owed,
        "decision": one.decision,
        "action_items": list(one.instructions),
        "history": [_station(each) for each in one.history],
    }


def _station(one: LogEntry) -> dict[str, Any]:
    said = {
        "line": one.number,
        "dt": one.dt,
        "agent": one.agent,
        "to": one.target,
        "st": one.state,
        "move": one.move,
        "reason": one.reason,
        "evidence": list(one.evidence),
        "recommendation": one.recommendation,
        "options": list(one.options),
        "decision": one.decision,
        "shown_by": one.shown_by,
    }
    return {key: value for key, value in said.items() if value}
