"""The record of what agents and their hosts reported, the health of each agent that follows from
it, and who was asked to stop, has answered, or is late. Pure; nobody is ever made to stop.

See docs/dev/sources.md#document-000.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.core.timestamps import iso, moment, untimely
from yolo_fs.escalations.log import role_of
from yolo_fs.evidence.facts import texts
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept, Role
from yolo_fs.protocol.departments import department as department_row
from yolo_fs.protocol.roster import SIGN_BY_EVENT, Health, department_said
from yolo_fs.schemas.layout import Record

RECORD = ".git/yolo-fs/agents.jsonl"
REQUEST = "shutdown_request"
RESPONSE = "shutdown_response"
_KEYS = ("event", "id")
"""What a line must say to be a sign of anybody."""


@dataclass(frozen=True, slots=True)
class AgentSign:
    """One line of the record, taken apart."""

    number: int
    at: datetime
    """When it was written, as it says; it may lie, and even in the future."""
    event: str
    """A hook as in `yolo-fs hook EVENT`, or the type of a message."""
    name: str
    """What the agent is called, such as `yolo-fe-dev` or `dev-1`; empty if nobody named it."""
    id: str
    """The instance: an agent of a host, a session, or a name such as `dev-1`."""
    session: str = ""
    """The session that it belongs to."""
    said: Mapping[str, Any] = field(default_factory=dict)
    """The message; empty for an event of a host."""

    @property
    def health(self) -> Health:
        """How an agent is that gives this sign."""
        value = self.said.get("status") or self.said.get("state")
        row = SIGN_BY_EVENT.get(f"{self.event}:{value}") or SIGN_BY_EVENT.get(self.event)
        return row.health if row else Health.WORKING


def place_of(name: str) -> tuple[Role | None, Dept | None]:
    """Return what `fe-dev`, `yolo-fe-dev` or `fe-dev-1` does and where: no role for whoever is none
    of the company.

    Those who belong to no single department have none.
    """
    role = role_of(name)
    backend = department_row(DEFAULT_DEPARTMENT)
    return role, department_said(name) or (
        DEFAULT_DEPARTMENT if backend and role in backend.roles else None
    )


def seen_in(
    records: Iterable[Record], now: datetime, written_at: datetime
) -> tuple[tuple[AgentSign, ...], tuple[Finding, ...]]:
    """Return the signs of a record in the order of their lines, and what is wrong with it.

    A line that has no moment of its own was written when the one before it was, and the first one
    at `written_at`.
    """
    seen: list[AgentSign] = []
    findings: list[Finding] = []
    for record in records:
        line = record.value
        if missing := next(
            (key for key in _KEYS if not isinstance(line.get(key), str) or not line[key]), ""
        ):
            message = f"a sign without {missing!r}: nobody knows whose it is"
            findings.append(
                Finding(Reason.MISSING_KEY, RECORD, record.line, f"/{missing}", message)
            )
            continue
        said = str(line.get("at"))
        findings += untimely(str(line["id"]), said, now, RECORD, record.line, "/at")
        seen.append(_seen(record.line, line, moment(said) or (seen[-1].at if seen else written_at)))
    return tuple(seen), tuple(findings)


def _seen(number: int, line: Mapping[str, Any], at: datetime) -> AgentSign:
    said = line.get("said")
    return AgentSign(
        number=number,
        at=at,
        event=str(line["event"]),
        name=str(line.get("agent") or ""),
        id=str(line["id"]),
        session=str(line.get("session") or ""),
        said=said if isinstance(said, dict) else {},
    )


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

    def take(self, one: AgentSign) -> None:
        """Take in the next sign.

        Whoever asks others to stop, by a command, gives no sign of itself.
        """
        if one.event == REQUEST:
            return
        self._found[one.id] = _after(self._found.get(one.id), one)
        above = self._found.get(one.session)
        if above and above.id != one.id and above.health is not Health.STOPPED:
            self._found[above.id] = replace(above, seen=max(above.seen, one.at))
        if one.event == "session-end":
            self._end_session(one)

    def _end_session(self, one: AgentSign) -> None:
        for agent in self.agents:
            if one.session and agent.session == one.session and agent.health is not Health.STOPPED:
                self._found[agent.id] = replace(
                    agent, health=Health.STOPPED, previous=agent.health, since=one.at
                )


def crew(seen: Iterable[AgentSign]) -> tuple[AgentHealth, ...]:
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
    """Return the agents, those as disappeared that were at work and are silent for longer than
    `silent_s` seconds.

    `began`: key of a silence → when it began, where a better clock than that of the record knows.
    """
    patience = timedelta(seconds=silent_s)
    return tuple(
        _judged(one, now, patience, began.get(one.key, min(one.seen, now))) for one in agents
    )


_NUMBERED = re.compile(r"[a-z][a-z-]*-[0-9]+")


def instance_of(name: str, agents: Iterable[AgentHealth]) -> str:
    """Return the id of the one agent that is called so, or has that role alone; else the name
    itself.

    Hosts number their agents, and do not tell them; two that have numbers are two.
    """
    there = [one for one in agents if one.health is not Health.STOPPED]
    named = [one for one in there if name in (one.id, one.name)]
    numbered = bool(_NUMBERED.fullmatch(name))
    others = [one for one in there if not (numbered and _NUMBERED.fullmatch(one.id))]
    alike = [one for one in others if one.role and place_of(name) == (one.role, one.department)]
    return next((same[0].id for same in (named, alike) if len(same) == 1), name)


def _judged(
    one: AgentHealth, now: datetime, patience: timedelta, silent_since: datetime
) -> AgentHealth:
    if one.health not in AT_WORK or now - silent_since <= patience:
        return one
    since = silent_since + patience
    return replace(one, health=Health.DISAPPEARED, previous=one.health, since=since, timed_out=True)


def _after(before: AgentHealth | None, one: AgentSign) -> AgentHealth:
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


GONE = "stopped"
"""The answer of whoever ended without a word: it is not late."""


@dataclass(frozen=True, slots=True)
class AskedAgent:
    """One teammate that was asked to stop."""

    agent: AgentHealth
    answer: str = ""
    """`status` of its `shutdown_response`, `stopped` if it ended without; empty before."""
    pending: tuple[str, ...] = ()
    """What it says is not done."""
    committed: bool | None = None
    """Whether it says that everything is committed; None when it says nothing."""

    @property
    def answer_or_none(self) -> str | None:
        """The answer; None while it is silent."""
        return self.answer or None

    JSON_KEYS: ClassVar = {
        "agent": "agent.name",
        "id": "agent.id",
        "answer": "answer_or_none",
        "health": "agent.health",
        "pending_work": "pending",
        "artifacts_committed": "committed",
    }


class Shutdown(NamedTuple):
    """One request to stop."""

    id: str
    by: str
    department: Dept | None
    """None when it is meant for all departments."""
    reason: str
    asked_at: datetime
    deadline_s: float
    """Seconds that a teammate has to answer."""
    asked: tuple[AskedAgent, ...]

    @property
    def key(self) -> str:
        """Name of the request, so that it is timed once and told once."""
        return f"shutdown {self.id}"

    @property
    def silent(self) -> tuple[AskedAgent, ...]:
        """Who has not answered."""
        return tuple(one for one in self.asked if not one.answer)

    @property
    def unclean(self) -> tuple[AskedAgent, ...]:
        """Who has answered, and is not done."""
        return tuple(
            one
            for one in self.asked
            if one.answer in ("in_progress", "error") or one.committed is False
        )

    @property
    def is_over(self) -> bool:
        """Whether nobody owes anything."""
        return not self.silent and not self.unclean

    def is_late(self, now: datetime, began: Mapping[str, datetime] = MappingProxyType({})) -> bool:
        """Return whether the deadline has passed.

        `began`: key → when it was asked, where a better clock knows.
        """
        asked_at = began.get(self.key, min(self.asked_at, now))
        return now - asked_at > timedelta(seconds=self.deadline_s)


def shutdowns(seen: Iterable[AgentSign]) -> tuple[tuple[Shutdown, ...], tuple[Finding, ...]]:
    """Return the last request of each department, or of all, oldest first, and stray answers."""
    crew = Crew()
    found: dict[Dept | None, Shutdown] = {}
    findings = []
    for one in seen:
        crew.take(one)
        if one.event == REQUEST:
            request = _request(one, crew.agents)
            for department in [dept for dept in found if request.department in (None, dept)]:
                del found[department]
            found[request.department] = request
            continue
        asked = (each.agent.id for request in found.values() for each in request.asked)
        if one.event == RESPONSE and one.id not in asked:
            findings.append(_unasked(one))
        found = {department: _heard(request, one, crew) for department, request in found.items()}
    return tuple(found.values()), tuple(findings)


def _request(one: AgentSign, agents: Iterable[AgentHealth]) -> Shutdown:
    deadline_s = one.said.get("deadline_seconds")
    asker, department = place_of(one.name)
    asked = tuple(
        AskedAgent(agent)
        for agent in agents
        if agent.health is not Health.STOPPED
        and agent.role not in (None, asker)
        and department in (None, agent.department)
    )
    wait_s = deadline_s if isinstance(deadline_s, int | float) else 0
    reason = str(one.said.get("reason"))
    return Shutdown(one.id, one.name, department, reason, one.at, wait_s, asked)


def _heard(request: Shutdown, one: AgentSign, crew: Crew) -> Shutdown:
    now = {agent.id: agent for agent in crew.agents}
    return request._replace(
        asked=tuple(_answered(each, one, now[each.agent.id]) for each in request.asked)
    )


def _answered(asked: AskedAgent, one: AgentSign, now: AgentHealth) -> AskedAgent:
    asked = replace(asked, agent=now)
    if one.event == RESPONSE and one.id == now.id:
        committed = one.said.get("artifacts_committed")
        said = committed if isinstance(committed, bool) else None
        return AskedAgent(
            now, str(one.said.get("status")), texts(one.said.get("pending_work")), said
        )
    return (
        replace(asked, answer=GONE) if now.health is Health.STOPPED and not asked.answer else asked
    )


def _unasked(one: AgentSign) -> Finding:
    message = f"{one.id} answers a request to stop that nobody sent it"
    hint = "'yolo-fs agent shutdown' sends one."
    return Finding(Reason.STATE_CONFLICT, RECORD, one.number, "/event", message, hint=hint)
