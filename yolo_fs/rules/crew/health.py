"""How each agent is: there, at work, idle, gone, or gone without a word. Pure.

Only who was at work can disappear: whoever is idle waits to be asked, and owes no sign. See
docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, ClassVar

from yolo_fs.protocol.crew import Health
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.rules.crew.record import REQUEST, Seen, place_of
from yolo_fs.rules.timestamps import iso

AT_WORK = frozenset({Health.STARTED, Health.WORKING})
"""Who is so, and is silent for too long, has disappeared."""


@dataclass(frozen=True, slots=True)
class AgentHealth:
    """How one agent is."""

    id: str
    name: str
    session: str
    role: Role | None
    department: Dept | None
    health: Health
    since: datetime
    """When it came to be so."""
    seen: datetime
    """Its last sign of life, or that of an agent which works for it."""
    acted: datetime
    """Its own last sign."""
    previous: Health | None = None
    timed_out: bool = False
    """Its silence, not the agent, says how it is."""

    JSON_KEYS: ClassVar = {
        "agent": "name",
        "id": "id",
        "department": "department",
        "health": "health",
        "since": "since",
        "seen": "seen",
        "before": "previous",
    }

    @property
    def key(self) -> str:
        """Name of its silence, so that it is timed once."""
        return f"agent {self.id} seen {self.seen.isoformat()}"

    @property
    def is_there(self) -> bool:
        """Whether it may still answer."""
        return self.health not in (Health.STOPPED, Health.DISAPPEARED)

    def as_event(self) -> dict[str, Any]:
        """Return the `agent_health_event` of its last change, which the Lead logs."""
        return {
            "type": "agent_health_event",
            "agent_id": self.id,
            "dept": (self.department or DEFAULT_DEPARTMENT).value,
            "state": self.health.wire,
            "timestamp": iso(self.since.timestamp()),
            "prev_state": self.previous.wire if self.previous else "",
            "timeout_triggered": self.timed_out,
        }


class Crew:
    """The agents that gave a sign, in the order of their first."""

    def __init__(self) -> None:
        self._found: dict[str, AgentHealth] = {}

    @property
    def agents(self) -> tuple[AgentHealth, ...]:
        """How each is by its signs alone."""
        return tuple(self._found.values())

    def take(self, one: Seen) -> None:
        """Take in the next sign. Whoever asks others to stop, by a command, gives no sign of itself."""
        if one.event == REQUEST:
            return
        self._found[one.id] = _after(self._found.get(one.id), one)
        above = self._found.get(one.session)
        if above and above.id != one.id and above.health is not Health.STOPPED:
            self._found[above.id] = replace(above, seen=max(above.seen, one.at))
        if one.event == "session-end":
            self._end_session(one)

    def _end_session(self, one: Seen) -> None:
        for agent in self.agents:
            if one.session and agent.session == one.session and agent.health is not Health.STOPPED:
                self._found[agent.id] = replace(
                    agent, health=Health.STOPPED, previous=agent.health, since=one.at
                )


def crew(seen: Iterable[Seen]) -> tuple[AgentHealth, ...]:
    """Return how each agent is by its signs, whatever time it is."""
    found = Crew()
    for one in seen:
        found.take(one)
    return found.agents


def judged(
    agents: Iterable[AgentHealth],
    now: datetime,
    silent_s: float,
    began: Mapping[str, datetime] = MappingProxyType({}),
) -> tuple[AgentHealth, ...]:
    """Return the agents, those as disappeared that were at work and are silent for longer than `silent_s` seconds.

    `began`: key of a silence → when it began, where a better clock than that of the record knows.
    """
    patience = timedelta(seconds=silent_s)
    return tuple(
        _judged(one, now, patience, began.get(one.key, min(one.seen, now))) for one in agents
    )


def instance_of(name: str, agents: Iterable[AgentHealth]) -> str:
    """Return the id of the one agent that is called so, or has that role alone; else the name itself.

    Hosts number their agents, and do not tell them.
    """
    there = [one for one in agents if one.health is not Health.STOPPED]
    named = [one for one in there if name in (one.id, one.name)]
    alike = [one for one in there if one.role and place_of(name) == (one.role, one.department)]
    return next((same[0].id for same in (named, alike) if len(same) == 1), name)


def _judged(
    one: AgentHealth, now: datetime, patience: timedelta, silent_since: datetime
) -> AgentHealth:
    if one.health not in AT_WORK or now - silent_since <= patience:
        return one
    since = silent_since + patience
    return replace(one, health=Health.DISAPPEARED, previous=one.health, since=since, timed_out=True)


def _after(before: AgentHealth | None, one: Seen) -> AgentHealth:
    name = one.name or (before.name if before else "")
    role, department = place_of(name)
    if before is None:
        return AgentHealth(
            one.id, name, one.session, role, department, one.health, one.at, one.at, one.at
        )
    same = before.health is one.health
    return replace(
        before,
        name=name,
        role=role,
        department=department,
        session=one.session or before.session,
        health=one.health,
        since=before.since if same else one.at,
        seen=one.at,
        acted=one.at,
        previous=before.previous if same else before.health,
    )
