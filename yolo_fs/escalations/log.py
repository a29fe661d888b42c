"""Lines of a phase's escalation log, and the state of one escalation. Pure.

A line says who turned to whom, when and with what. The state says who holds the escalation, since
when, what is owed, and how it got there.

Everything that was written is read: a line without a valid time, or with an unknown role, is a
finding but still a station, since no escalation may get lost. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from yolo_fs.artifacts.naming import entries_in
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.authority.actors import mode_of
from yolo_fs.core.ids import EscalationId, TaskRef
from yolo_fs.core.reasons import Finding, safe
from yolo_fs.core.timestamps import iso, moment
from yolo_fs.evidence.facts import PhaseFacts, texts
from yolo_fs.protocol.departments import (
    DEFAULT_DEPARTMENT,
    DEPARTMENT_BY_MARKER,
    DEPARTMENT_BY_NAME,
    Dept,
    Mode,
    Role,
    name_in,
)
from yolo_fs.protocol.escalation import DOWNWARD, UPWARD
from yolo_fs.protocol.roster import department_said, role_of
from yolo_fs.schemas.config import EscalationRules

LOG = "escalation.jsonl"
ENTRIES = ".execution-state.json"

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of what has none."""


@dataclass(frozen=True, slots=True)
class EscalationLog:
    """What is known of the escalations of one phase."""

    mode: Mode
    rules: EscalationRules
    lines: Sequence[Mapping[str, Any]] = ()
    """The lines of `escalation.jsonl`, oldest first: the truth."""
    entries: Sequence[Mapping[str, Any]] = ()
    """`escalations` of the execution state: used for an escalation that the log does not have."""
    written_at: datetime | None = None
    """When the log was last written: no line counts as later, whatever time it states."""
    departments: Mapping[str, tuple[Dept, ...]] = field(default_factory=dict)
    """Plan → the departments that have one of that number."""
    numbers: Sequence[int] = ()
    """Line number of each line, if unreadable lines lie between them; otherwise counted."""

    def department_of(self, name: EscalationId, agent: str = "") -> Dept:
        """Return whose task is blocked: as the id says, else as the name of the agent says that
        reports it, else as the plan does.
        """
        if name.marker:
            return DEPARTMENT_BY_MARKER[name.marker]
        return department_said(agent) or self._owners(name.task)[0]

    def name_for(self, task: TaskRef, agent: str) -> EscalationId:
        """Return the id under which an agent reports a task.

        The id without a marker belongs to the department that reported it first, before that to the
        first one with a plan of that number. Another one with such a plan has its marker in the id.
        """
        name, owners = EscalationId(task), self._owners(task)
        own = department_said(agent) or owners[0]
        reported = (line.get("agent") for line in self.lines if line.get("id") == str(name))
        first = next(reported, None)
        holder = owners[0] if first is None else self.department_of(name, str(first))
        if own is holder or own not in owners:
            return name
        return EscalationId(task, DEPARTMENT_BY_NAME[own].in_ids)

    def _owners(self, task: TaskRef) -> tuple[Dept, ...]:
        return self.departments.get(str(task.plan), (DEFAULT_DEPARTMENT,))


def logged(facts: PhaseFacts) -> EscalationLog:
    """Return what the committed artifacts of a phase say of its escalations."""
    committed = facts.of_kind("escalation")
    at_s = max((artifact.at_s for artifact in committed), default=0)
    return EscalationLog(
        mode=mode_of(facts.options),
        rules=facts.options.config.escalation,
        lines=tuple(line for artifact in committed for line in artifact.lines),
        entries=entries_in(facts.execution_state()),
        written_at=datetime.fromtimestamp(at_s, UTC) if at_s else None,
        departments=departments_of(facts),
    )


def departments_of(facts: PhaseFacts) -> dict[str, tuple[Dept, ...]]:
    """Return plan → its departments, for each plan that `plans_of` knows."""
    return departments_among(artifact.place for artifact in facts.of_kind("plan") if artifact.lines)


def departments_among(plans: Iterable[ArtifactPath]) -> dict[str, tuple[Dept, ...]]:
    """Return plan → the departments with a plan of that number, the one without a prefix first."""
    departments: dict[str, tuple[Dept, ...]] = {}
    for place in sorted(plans, key=lambda place: place.path):
        if place.plan:
            known = departments.get(str(place.plan), ())
            departments[str(place.plan)] = (*known, Dept(place.department))
    return departments


OVER = "over"
"""Move of a line that ends what a Senior or a Lead reported, because its loop is over."""


class LogEntry(NamedTuple):
    """One parsed line of the log."""

    number: int
    """Line number from 1; 0 for an entry of the execution state."""
    id: EscalationId
    dt: str
    """Time as written."""
    at: datetime | None
    """Parsed time; None if it is invalid or has no zone."""
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
    """The decision, on its way down or final."""
    instructions: tuple[str, ...] = ()
    shown_by: str = ""
    """Evidence that the task goes on."""

    @property
    def goes_down(self) -> bool:
        """Whether it carries a decision."""
        return bool(self.decision) or self.state == "resolved"


def stations(known: EscalationLog) -> Iterator[LogEntry]:
    """Yield the lines that name an escalation, in log order, which is the order of events."""
    numbers = known.numbers or range(1, len(known.lines) + 1)
    for number, line in zip(numbers, known.lines, strict=True):
        name = EscalationId.parse(str(line.get("id")))
        if name:
            yield station(number, name, line)


def station(number: int, name: EscalationId, line: Mapping[str, Any]) -> LogEntry:
    """Return a parsed line."""
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
    """Return the single station in an entry of the execution state: who, and since when."""
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


def by_id(entries: Iterable[LogEntry]) -> dict[EscalationId, list[LogEntry]]:
    """Return the stations of each escalation, ordered by when it was first named."""
    grouped: dict[EscalationId, list[LogEntry]] = {}
    for entry in entries:
        grouped.setdefault(entry.id, []).append(entry)
    return grouped


class EscalationStage(StrEnum):
    """Stage of an escalation."""

    RISING = "rising"
    """A level is asked."""
    DESCENDING = "descending"
    """It is decided, and the decision is on its way to the blocked agent."""
    STOPPED = "stopped"
    """The round trips are used up: only the user's decision ends it."""
    RESOLVED = "resolved"
    """The task goes on."""


class EscalationProgress(NamedTuple):
    """State of one escalation."""

    id: EscalationId
    department: Dept
    severity: str
    standing: EscalationStage
    path: tuple[Role, ...]
    """Its levels, from the reporter up to the user."""
    holder: Role
    """Whose turn it is."""
    attempt: int
    """How many times the task was reported as blocked."""
    round_trips: int
    """How often it went up and came back."""
    opened_at: datetime
    since: datetime
    """When the holder got it."""
    deadline: datetime | None
    """When it is handed up, or the silent holder reminded; None if nothing is due."""
    reminded: bool
    """The reminder was sent, which happens once: the holder was silent and no level above may be
    asked.
    """
    decision: str
    instructions: tuple[str, ...]
    history: tuple[LogEntry, ...]
    """The accepted stations, level by level."""
    asks_owner: bool = True
    """Whether the level above the Architect is asked when it is silent."""
    claimed: bool = False
    """It was reported as resolved, but nothing shows yet that the task goes on."""
    findings: tuple[Finding, ...] = ()
    """Lines about it that were ignored, or that have no valid time."""

    @property
    def is_open(self) -> bool:
        """Whether anything is still owed."""
        return self.standing is not EscalationStage.RESOLVED

    @property
    def origin(self) -> Role:
        """The blocked role."""
        return self.path[0]

    @property
    def is_told(self) -> bool:
        """Whether the blocked agent knows how to go on, and nothing shows yet that it does."""
        return self.standing is EscalationStage.DESCENDING and self.holder is self.origin

    @property
    def last_round(self) -> tuple[LogEntry, ...]:
        """The stations since it was last reported."""
        opened = [number for number, entry in enumerate(self.history) if entry.state == "open"]
        return self.history[opened[-1] :] if opened else self.history

    @property
    def question(self) -> str:
        """The first question: each level that hands it up adds reasons of its own."""
        return next((entry.reason for entry in self.last_round if entry.reason), "")

    @property
    def options(self) -> tuple[str, ...]:
        """The options named last to the level that decides."""
        return next((entry.options for entry in reversed(self.last_round) if entry.options), ())

    @property
    def recommendation(self) -> str:
        """The last recommendation of those who asked; empty if nobody gave one."""
        recommendations = (entry.recommendation for entry in reversed(self.last_round))
        return next(filter(None, recommendations), "")

    @property
    def agent(self) -> str:
        """Name of the agent whose turn it is, such as `fe-senior`."""
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
        """Key of the holder's turn, so that each turn is timed once."""
        return f"{self.id}#{len(self.history)}"

    @property
    def owed(self) -> str:
        """What is owed next, in the words of the round trip; empty once it is over."""
        if not self.is_open:
            return ""
        rows = UPWARD if self.standing is EscalationStage.RISING else DOWNWARD
        role = Role.GO if self.holder is Role.USER else self.holder
        action = next((row.action for row in rows if row.role is role), "Passes the resolution on")
        return (
            f"stopped after {self.round_trips} round trips: decide"
            if self.standing is EscalationStage.STOPPED
            else action
        )

    def above(self, role: Role) -> Role | None:
        """Return the next level up for this escalation."""
        place = self.path.index(role) + 1 if role in self.path else len(self.path)
        return self.path[place] if place < len(self.path) else None

    def below(self, role: Role) -> Role:
        """Return the next level down."""
        return self.path[max(0, self.path.index(role) - 1)] if role in self.path else self.origin


def act_of(escalation: EscalationProgress) -> tuple[str, str]:
    """Return what the holder of an escalation has to do, and the command for it.

    The command is empty where no line of the log is owed, but work.
    """
    decide = f"yolo-fs escalate resolve {escalation.id} --by {escalation.agent} --decision …"
    if escalation.holder is Role.USER:
        decide = (
            f"yolo-fs answer {escalation.id} {'CHOICE' if escalation.options else '--text TEXT'}"
        )
    if escalation.is_told and escalation.origin is Role.SENIOR:
        return (
            f"specifies {escalation.id.task} again, as decided: {safe(escalation.decision, 200)}",
            "",
        )
    if escalation.is_told and escalation.origin is Role.SECURITY:
        task, decision = escalation.id.task, safe(escalation.decision, 200)
        return f"fixes what Security found in {task}: {decision}", ""
    if escalation.is_told:
        return f"continues {escalation.id.task}: {safe(escalation.decision, 200)}", ""
    if escalation.standing is EscalationStage.DESCENDING:
        below = name_in(escalation.below(escalation.holder), escalation.department)
        if safe(escalation.decision, 1000) == escalation.decision:  # another wording is refused
            decide = decide.replace("…", shlex.quote(escalation.decision))
        return f"passes the decision {safe(escalation.decision, 200)!r} on to {below}", decide
    choice = (
        f" ({' or '.join(safe(each, 80) for each in escalation.options)})"
        if escalation.options
        else ""
    )
    return f"answers {escalation.id}{choice}: {safe(escalation.question, 200)}", decide


def waiting_for(agent: str, deed: str) -> str:
    """Return the words for a wait: the agent it is for, and what that agent does to end it."""
    return f"waiting for {agent}, who {deed}"


def as_json(escalation: EscalationProgress) -> dict[str, Any]:
    """Return an escalation with all of its stations."""
    return {
        "id": str(escalation.id),
        "task": str(escalation.id.task),
        "department": escalation.department.value,
        "severity": escalation.severity,
        "standing": escalation.standing.value,
        "holder": escalation.agent if escalation.is_open else "",
        "path": [role.value for role in escalation.path],
        "opened_at": iso(escalation.opened_at.timestamp()),
        "since": iso(escalation.since.timestamp()),
        "deadline": iso(escalation.deadline.timestamp()) if escalation.deadline else "",
        "attempt": escalation.attempt,
        "round_trips": escalation.round_trips,
        "owed": escalation.owed,
        "decision": escalation.decision,
        "action_items": list(escalation.instructions),
        "history": [_describe_station(each) for each in escalation.history],
    }


def _describe_station(entry: LogEntry) -> dict[str, Any]:
    fields = {
        "line": entry.number,
        "dt": entry.dt,
        "agent": entry.agent,
        "to": entry.target,
        "st": entry.state,
        "move": entry.move,
        "reason": entry.reason,
        "evidence": list(entry.evidence),
        "recommendation": entry.recommendation,
        "options": list(entry.options),
        "decision": entry.decision,
        "shown_by": entry.shown_by,
    }
    return {key: value for key, value in fields.items() if value}
