"""What the log of a phase's escalations says, line by line: who turned to whom, when and with what.

Whatever is written is read: a line that cannot be timed, or names a role that nobody knows, is a
finding and still a station, for an escalation is never lost. See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from yolo_fs.ids import EscalationId
from yolo_fs.protocol.names import Dept, Mode, Role
from yolo_fs.protocol.roster import AGENT_BY_NAME, plain_name
from yolo_fs.rules.artifacts.naming import entries_in
from yolo_fs.rules.evidence.facts import PhaseFacts, texts
from yolo_fs.rules.timestamps import moment

if TYPE_CHECKING:
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


# --- names ---


def role_of(spelled: object) -> Role | None:
    """Return the role that a name means in any department: `fe-dev`, `Dev`, `yolo-dev` and `dev-1`
    are all Devs.
    """
    return _role_of(str(spelled))


@lru_cache(maxsize=1_000)
def _role_of(spelled: str) -> Role | None:
    name = plain_name(spelled)
    agent = AGENT_BY_NAME.get(name) or AGENT_BY_NAME.get(name.rstrip("0123456789").rstrip("-"))
    return agent.role if agent else _OUTSIDE.get(name)


_OUTSIDE = {"user": Role.USER, "go.md": Role.USER, "go": Role.USER}
"""go.md speaks for the user: it is the only one that talks to them."""


# --- stations ---

OVER = "over"
"""Move of a line that ends what a Senior or a Lead reported: the loop that it was about is over."""


@dataclass(frozen=True, slots=True)
class LogEntry:
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
    """Yield the lines that name an escalation, in the order of the log, which is the order of
    events.
    """
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
    """Return an entry of the execution state as the one station that it tells of: who holds it, and
    since when.
    """
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
