"""The journal of what agents and their hosts reported, and what follows from it: the health of each
agent, and who was asked to stop, has answered, or is late. Pure; no agent is ever forced to stop.

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
from yolo_fs.evidence.facts import texts
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept, Role
from yolo_fs.protocol.departments import department as department_row
from yolo_fs.protocol.roster import SIGN_BY_EVENT, Health, department_said, role_of
from yolo_fs.schemas.layout import Record

RECORD = ".git/yolo-fs/agents.jsonl"
REQUEST = "shutdown_request"
RESPONSE = "shutdown_response"
_KEYS = ("event", "id")
"""Keys that a line needs to be a sign of an agent."""


@dataclass(frozen=True, slots=True)
class AgentSign:
    """One parsed line of the journal."""

    number: int
    at: datetime
    """The time that the line gives; it may be wrong, even in the future."""
    event: str
    """A hook as in `yolo-fs hook EVENT`, or the type of a message."""
    name: str
    """Name of the agent, such as `yolo-fe-dev` or `dev-1`; empty if the line has none."""
    id: str
    """The instance: an agent of a host, a session, or a name such as `dev-1`."""
    session: str = ""
    """The session that it belongs to."""
    message: Mapping[str, Any] = field(default_factory=dict)
    """The message; empty for an event of a host."""

    @property
    def health(self) -> Health:
        """The health of an agent that gives this sign."""
        value = self.message.get("status") or self.message.get("state")
        row = SIGN_BY_EVENT.get(f"{self.event}:{value}") or SIGN_BY_EVENT.get(self.event)
        return row.health if row else Health.WORKING


def place_of(name: str) -> tuple[Role | None, Dept | None]:
    """Return role and department of a name such as `fe-dev`, `yolo-fe-dev` or `fe-dev-1`.

    The role is None for a name that is not in the roster, the department for a role that belongs to
    no single one.
    """
    role = role_of(name)
    backend = department_row(DEFAULT_DEPARTMENT)
    return role, department_said(name) or (
        DEFAULT_DEPARTMENT if backend and role in backend.roles else None
    )


def seen_in(
    records: Iterable[Record], now: datetime, written_at: datetime
) -> tuple[tuple[AgentSign, ...], tuple[Finding, ...]]:
    """Return the signs of a journal in the order of its lines, and what is wrong with it.

    A line without a time takes that of the line before it, and the first line takes `written_at`.
    """
    seen: list[AgentSign] = []
    findings: list[Finding] = []
    for record in records:
        line = record.value
        if missing := next(
            (key for key in _KEYS if not isinstance(line.get(key), str) or not line[key]), ""
        ):
            message = f"a heartbeat without {missing!r}: its agent is unknown"
            findings.append(
                Finding(Reason.MISSING_KEY, RECORD, record.line, f"/{missing}", message)
            )
            continue
        timestamp = str(line.get("at"))
        findings += untimely(str(line["id"]), timestamp, now, RECORD, record.line, "/at")
        seen.append(
            _seen(record.line, line, moment(timestamp) or (seen[-1].at if seen else written_at))
        )
    return tuple(seen), tuple(findings)


def _seen(number: int, line: Mapping[str, Any], at: datetime) -> AgentSign:
    message = line.get("said")
    return AgentSign(
        number=number,
        at=at,
        event=str(line["event"]),
        name=str(line.get("agent") or ""),
        id=str(line["id"]),
        session=str(line.get("session") or ""),
        message=message if isinstance(message, dict) else {},
    )


AT_WORK = frozenset({Health.STARTED, Health.WORKING})
"""An agent in one of these states that is silent for too long has disappeared."""


@dataclass(frozen=True, slots=True)
class AgentHealth:
    """The health of one agent."""

    id: str
    name: str
    session: str
    role: Role | None
    department: Dept | None
    health: Health
    since: datetime
    """When it entered this state."""
    seen: datetime
    """Its last heartbeat, or that of an agent which works for it."""
    acted: datetime
    """Its own last sign."""
    previous: Health | None = None
    timed_out: bool = False
    """Its state is inferred from its silence, not reported."""

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
        """Key of this silence, so that it is timed once."""
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


class SeenAgents:
    """The agents that gave a sign, in the order of their first sign."""

    def __init__(self) -> None:
        self._by_id: dict[str, AgentHealth] = {}

    @property
    def all(self) -> tuple[AgentHealth, ...]:
        """The health of each agent by its signs alone."""
        return tuple(self._by_id.values())

    def take(self, sign: AgentSign) -> None:
        """Apply the next sign.

        A command that asks others to stop is no heartbeat of its sender.
        """
        if sign.event == REQUEST:
            return
        self._by_id[sign.id] = _after(self._by_id.get(sign.id), sign)
        above = self._by_id.get(sign.session)
        if above and above.id != sign.id and above.health is not Health.STOPPED:
            self._by_id[above.id] = replace(above, seen=max(above.seen, sign.at))
        if sign.event == "session-end":
            self._end_session(sign)

    def _end_session(self, sign: AgentSign) -> None:
        for agent in self.all:
            if (
                sign.session
                and agent.session == sign.session
                and agent.health is not Health.STOPPED
            ):
                self._by_id[agent.id] = replace(
                    agent, health=Health.STOPPED, previous=agent.health, since=sign.at
                )


def agents_in(seen: Iterable[AgentSign]) -> tuple[AgentHealth, ...]:
    """Return the health of each agent by its signs alone, whatever the time."""
    agents = SeenAgents()
    for sign in seen:
        agents.take(sign)
    return agents.all


def judged(
    agents: Iterable[AgentHealth],
    now: datetime,
    silent_s: float,
    began: Mapping[str, datetime] = MappingProxyType({}),
) -> tuple[AgentHealth, ...]:
    """Return the agents; mark as disappeared those that were at work and are silent for too long.

    `silent_s`: seconds of silence allowed. `began`: key of a silence → its start, where a better
    clock than that of the journal has measured it.
    """
    patience = timedelta(seconds=silent_s)
    return tuple(
        _judged(agent, now, patience, began.get(agent.key, min(agent.seen, now)))
        for agent in agents
    )


_NUMBERED = re.compile(r"[a-z][a-z-]*-[0-9]+")


def instance_of(name: str, agents: Iterable[AgentHealth]) -> str:
    """Return the id of the only agent with that name or role; else the name itself.

    Hosts number their agents but do not tell them their number. Two numbered names are two agents.
    """
    there = [agent for agent in agents if agent.health is not Health.STOPPED]
    named = [agent for agent in there if name in (agent.id, agent.name)]
    numbered = bool(_NUMBERED.fullmatch(name))
    others = [agent for agent in there if not (numbered and _NUMBERED.fullmatch(agent.id))]
    alike = [
        agent for agent in others if agent.role and place_of(name) == (agent.role, agent.department)
    ]
    return next((same[0].id for same in (named, alike) if len(same) == 1), name)


def _judged(
    agent: AgentHealth, now: datetime, patience: timedelta, silent_since: datetime
) -> AgentHealth:
    if agent.health not in AT_WORK or now - silent_since <= patience:
        return agent
    since = silent_since + patience
    return replace(
        agent, health=Health.DISAPPEARED, previous=agent.health, since=since, timed_out=True
    )


def _after(before: AgentHealth | None, sign: AgentSign) -> AgentHealth:
    name = sign.name or (before.name if before else "")
    role, department = place_of(name)
    if before is None:
        return AgentHealth(
            sign.id, name, sign.session, role, department, sign.health, sign.at, sign.at, sign.at
        )
    same = before.health is sign.health
    return replace(
        before,
        name=name,
        role=role,
        department=department,
        session=sign.session or before.session,
        health=sign.health,
        since=before.since if same else sign.at,
        seen=sign.at,
        acted=sign.at,
        previous=before.previous if same else before.health,
    )


GONE = "stopped"
"""The answer recorded for an agent that ended without one; it is not late."""


@dataclass(frozen=True, slots=True)
class AskedAgent:
    """One teammate that was asked to stop."""

    agent: AgentHealth
    answer: str = ""
    """`status` of its `shutdown_response`, `stopped` if it ended without; empty before."""
    pending: tuple[str, ...] = ()
    """Work that it reports as not done."""
    committed: bool | None = None
    """Whether it reports that everything is committed; None if it does not say."""

    @property
    def answer_or_none(self) -> str | None:
        """The answer; None before there is one."""
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
    """None if it addresses all departments."""
    reason: str
    asked_at: datetime
    deadline_s: float
    """Seconds that a teammate has to answer."""
    asked: tuple[AskedAgent, ...]

    @property
    def key(self) -> str:
        """Key of the request, so that it is timed and reported once."""
        return f"shutdown {self.id}"

    @property
    def silent(self) -> tuple[AskedAgent, ...]:
        """The agents that have not answered."""
        return tuple(asked_agent for asked_agent in self.asked if not asked_agent.answer)

    @property
    def unclean(self) -> tuple[AskedAgent, ...]:
        """The agents that have answered but still have open work."""
        return tuple(
            asked_agent
            for asked_agent in self.asked
            if asked_agent.answer in ("in_progress", "error") or asked_agent.committed is False
        )

    @property
    def is_over(self) -> bool:
        """Whether every agent has answered and finished."""
        return not self.silent and not self.unclean

    def is_late(self, now: datetime, began: Mapping[str, datetime] = MappingProxyType({})) -> bool:
        """Return whether the deadline has passed.

        `began`: key → when it was asked, where a better clock has measured it.
        """
        asked_at = began.get(self.key, min(self.asked_at, now))
        return now - asked_at > timedelta(seconds=self.deadline_s)


def shutdowns(seen: Iterable[AgentSign]) -> tuple[tuple[Shutdown, ...], tuple[Finding, ...]]:
    """Return the last request of each department, or of all, oldest first, and stray answers."""
    agents = SeenAgents()
    requests: dict[Dept | None, Shutdown] = {}
    findings = []
    for sign in seen:
        agents.take(sign)
        if sign.event == REQUEST:
            request = _request(sign, agents.all)
            for department in [dept for dept in requests if request.department in (None, dept)]:
                del requests[department]
            requests[request.department] = request
            continue
        asked_ids = (each.agent.id for request in requests.values() for each in request.asked)
        if sign.event == RESPONSE and sign.id not in asked_ids:
            findings.append(_unasked(sign))
        requests = {
            department: _with_answer(request, sign, agents)
            for department, request in requests.items()
        }
    return tuple(requests.values()), tuple(findings)


def _request(sign: AgentSign, agents: Iterable[AgentHealth]) -> Shutdown:
    deadline_s = sign.message.get("deadline_seconds")
    asker, department = place_of(sign.name)
    asked_agents = tuple(
        AskedAgent(agent)
        for agent in agents
        if agent.health is not Health.STOPPED
        and agent.role not in (None, asker)
        and department in (None, agent.department)
    )
    wait_s = deadline_s if isinstance(deadline_s, int | float) else 0
    reason = str(sign.message.get("reason"))
    return Shutdown(sign.id, sign.name, department, reason, sign.at, wait_s, asked_agents)


def _with_answer(request: Shutdown, sign: AgentSign, agents: SeenAgents) -> Shutdown:
    now = {agent.id: agent for agent in agents.all}
    return request._replace(
        asked=tuple(_answered(each, sign, now[each.agent.id]) for each in request.asked)
    )


def _answered(asked_agent: AskedAgent, sign: AgentSign, now: AgentHealth) -> AskedAgent:
    asked_agent = replace(asked_agent, agent=now)
    if sign.event == RESPONSE and sign.id == now.id:
        committed = sign.message.get("artifacts_committed")
        is_committed = committed if isinstance(committed, bool) else None
        return AskedAgent(
            now,
            str(sign.message.get("status")),
            texts(sign.message.get("pending_work")),
            is_committed,
        )
    return (
        replace(asked_agent, answer=GONE)
        if now.health is Health.STOPPED and not asked_agent.answer
        else asked_agent
    )


def _unasked(sign: AgentSign) -> Finding:
    message = f"{sign.id} answers a request to stop that nobody sent"
    hint = "'yolo-fs agent shutdown' sends one."
    return Finding(Reason.STATE_CONFLICT, RECORD, sign.number, "/event", message, hint=hint)
