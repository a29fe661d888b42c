"""Who was asked to stop, who has answered, who is late. Pure; nobody is ever made to stop.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import ClassVar

from yolo_fs.protocol.crew import Health
from yolo_fs.protocol.names import Dept
from yolo_fs.reasons import Finding, Reason
from yolo_fs.rules.agents.health import (
    RECORD,
    REQUEST,
    RESPONSE,
    AgentHealth,
    AgentSign,
    Crew,
    place_of,
)
from yolo_fs.rules.evidence.facts import texts

GONE = "stopped"
"""The answer of whoever ended without a word: it is not late."""


@dataclass(frozen=True, slots=True)
class AskedAgent:
    """One teammate that was asked to stop."""

    agent: AgentHealth
    answer: str = ""
    """`status` of its `shutdown_response`, `stopped` when it ended without one; empty while it is
    silent.
    """
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


@dataclass(frozen=True, slots=True)
class Shutdown:
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
    """Return the last request of each department, or of all, oldest first, and the answers that
    nobody asked for.
    """
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
        if one.event == RESPONSE and not any(
            _is_asked(request, one.id) for request in found.values()
        ):
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
    return Shutdown(
        one.id, one.name, department, str(one.said.get("reason")), one.at, wait_s, asked
    )


def _heard(request: Shutdown, one: AgentSign, crew: Crew) -> Shutdown:
    now = {agent.id: agent for agent in crew.agents}
    return replace(
        request, asked=tuple(_answered(each, one, now[each.agent.id]) for each in request.asked)
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


def _is_asked(request: Shutdown, agent: str) -> bool:
    return any(one.agent.id == agent for one in request.asked)


def _unasked(one: AgentSign) -> Finding:
    message = f"{one.id} answers a request to stop that nobody sent it"
    hint = "'yolo-fs agent shutdown' sends one."
    return Finding(Reason.STATE_CONFLICT, RECORD, one.number, "/event", message, hint=hint)
