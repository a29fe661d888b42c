"""What the log of a phase's escalations says, line by line: who turned to whom, when and with what;
and the state of one escalation: who holds it, since when, what is owed, and how it came there.
Pure.

Whatever is written is read: a line that cannot be timed, or names a role that nobody knows, is a
finding and still a station, for an escalation is never lost. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from yolo_fs.artifacts.naming import entries_in
from yolo_fs.core.ids import EscalationId
from yolo_fs.core.reasons import Finding
from yolo_fs.core.timestamps import iso, moment
from yolo_fs.evidence.facts import PhaseFacts, texts
from yolo_fs.protocol.departments import Dept, Mode, Role, name_in
from yolo_fs.protocol.escalation import DOWNWARD, UPWARD
from yolo_fs.protocol.roster import AGENT_BY_NAME, plain_name
from yolo_fs.schemas.config import EscalationRules

LOG = "escalation.jsonl"
ENTRIES = ".execution-state.json"


@dataclass(frozen=True, slots=True)
class EscalationLog:
    """What is known of the escalations of one phase."""

    mode: Mode
    rules: EscalationRules
    lines: Sequence[Mapping[str, Any]] = ()
    """The lines of `escalation.jsonl`, oldest first: the truth."""
    entries: Sequence[Mapping[str, Any]] = ()
    """`escalations` of the execution state: counts where the log says nothing of an escalation."""
    written_at: datetime | None = None
    """When the log was last written: no line of it is younger, whatever the line says."""
    departments: Mapping[str, Dept] = field(default_factory=dict)
    """Plan → its department."""
    numbers: Sequence[int] = ()
    """Line number of each line, where lines between them could not be read; else they are counted.
    """


def logged(facts: PhaseFacts) -> EscalationLog:
    """Return what the committed artifacts of a phase say of its escalations."""
    filed = facts.of_kind("escalation")
    at_s = max((one.at_s for one in filed), default=0)
    return EscalationLog(
        mode=mode_of(several=facts.switches.several_departments),
        rules=facts.switches.config.escalation,
        lines=tuple(line for one in filed for line in one.lines),
        entries=entries_in(facts.execution_state()),
        written_at=datetime.fromtimestamp(at_s, UTC) if at_s else None,
        departments=departments_of(facts),
    )


def mode_of(*, several: bool) -> Mode:
    """Return the mode of a company with one or several departments."""
    return Mode.MULTI if several else Mode.SINGLE


def departments_of(facts: PhaseFacts) -> dict[str, Dept]:
    """Return plan → department, for each plan that `plans_of` knows."""
    return {
        str(filed.place.plan): Dept(filed.place.department)
        for filed in facts.of_kind("plan")
        if filed.lines and filed.place.plan
    }


def role_of(spelled: object) -> Role | None:
    """Return the role that a name means anywhere: `fe-dev`, `Dev`, `yolo-dev`, `dev-1` are Devs."""
    return _role_of(str(spelled))


@lru_cache(maxsize=1_000)
def _role_of(spelled: str) -> Role | None:
    name = plain_name(spelled)
    agent = AGENT_BY_NAME.get(name) or AGENT_BY_NAME.get(name.rstrip("0123456789").rstrip("-"))
    return agent.role if agent else _OUTSIDE.get(name)


_OUTSIDE = {"user": Role.USER, "go.md": Role.USER, "go": Role.USER}
"""go.md speaks for the user: it is the only one that talks to them."""


OVER = "over"
"""Move of a line that ends what a Senior or a Lead reported: the loop that it was about is over."""


class LogEntry(NamedTuple):
    """One line of the log, taken apart."""

    number: int
    """Line number from 1; 0 for an entry of the execution state."""
    id: EscalationId
    dt: str
    """Moment as written."""
    at: datetime | None
    """The same as a moment; None when it is none, or has no zone."""
    agent: str
    role: Role | None
    target: str
    to: Role | None
    state: str
    """`open`, `escalated` or `resolved`."""
    reason: str
    severity: str
    move: str = ""
    """`timeout`, `remind`, `fail`, `stop` or `over`."""
    attempt: int | None = None
    evidence: tuple[str, ...] = ()
    recommendation: str = ""
    options: tuple[str, ...] = ()
    decision: str = ""
    """On its way down, or as resolved."""
    instructions: tuple[str, ...] = ()
    shown_by: str = ""
    """What shows that the task goes on."""

    @property
    def goes_down(self) -> bool:
        """Whether it carries a decision."""
        return bool(self.decision) or self.state == "resolved"


def stations(known: EscalationLog) -> Iterator[LogEntry]:
    """Yield the lines that name an escalation, in the order of the log, that of events."""
    numbers = known.numbers or range(1, len(known.lines) + 1)
    for number, line in zip(numbers, known.lines, strict=True):
        found = EscalationId.parse(str(line.get("id")))
        if found:
            yield station(number, found, line)


def station(number: int, name: EscalationId, line: Mapping[str, Any]) -> LogEntry:
    """Return a line taken apart."""
    attempt = line.get("att")
    return LogEntry(
        number=number,
        id=name,
        dt=str(line.get("dt") or ""),
        at=moment(line.get("dt")),
        agent=str(line.get("agent") or ""),
        role=role_of(line.get("agent")),
        target=str(line.get("tgt") or ""),
        to=role_of(line.get("tgt")),
        state=str(line.get("st") or ""),
        reason=str(line.get("reason") or ""),
        severity=str(line.get("sev") or "blocking"),
        move=str(line.get("mv") or ""),
        attempt=attempt if isinstance(attempt, int) else None,
        evidence=texts(line.get("ev")),
        recommendation=str(line.get("rec") or ""),
        options=texts(line.get("opts")),
        decision=str(line.get("res") or line.get("dec") or ""),
        instructions=texts(line.get("todo")),
        shown_by=str(line.get("ref") or ""),
    )


def of_entry(name: EscalationId, entry: Mapping[str, Any]) -> LogEntry:
    """Return the one station that an entry of the execution state tells of: who, and since when."""
    since = str(entry.get("last_escalated_at") or entry.get("escalated_at") or "")
    is_over = entry.get("status") == "resolved"
    return LogEntry(
        number=0,
        id=name,
        dt=since,
        at=moment(since),
        agent=Role.DEV.value,
        role=Role.DEV,
        target=str(entry.get("level") or ""),
        to=role_of(entry.get("level")),
        state="resolved" if is_over else "open",
        reason="known from the execution state alone",
        severity=str(entry.get("severity") or "blocking"),
        decision=str(entry.get("resolution") or "") if is_over else "",
    )


def by_id(found: Iterable[LogEntry]) -> dict[EscalationId, list[LogEntry]]:
    """Return the stations of each escalation, in the order in which they were first named."""
    grouped: dict[EscalationId, list[LogEntry]] = {}
    for one in found:
        grouped.setdefault(one.id, []).append(one)
    return grouped


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


class EscalationProgress(NamedTuple):
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
    def question(self) -> str:
        """What was asked at first: a level that hands it up gives reasons of its own."""
        return next((one.reason for one in self.last_round if one.reason), "")

    @property
    def options(self) -> tuple[str, ...]:
        """The options that were last named to whoever decides."""
        return next((one.options for one in reversed(self.last_round) if one.options), ())

    @property
    def recommendation(self) -> str:
        """What whoever asked last would do; empty where nobody says."""
        told = (one.recommendation for one in reversed(self.last_round))
        return next(filter(None, told), "")

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
