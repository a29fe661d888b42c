"""State of a phase's escalations from its log, and `escalations` of the execution state.

The latter is a projection of the log, merged with what agents wrote by hand. This module also finds
the levels that were silent for too long.

A line of the log that breaks a rule changes nothing and is a finding; the rest still counts.
Silence never decides: it only hands the question up. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from yolo_fs.artifacts.naming import Changed, Entry, changes, entries_in, without
from yolo_fs.core.ids import EscalationId
from yolo_fs.core.reasons import Finding
from yolo_fs.core.timestamps import moment, untimely
from yolo_fs.escalations.log import (
    EARLIEST,
    ENTRIES,
    LOG,
    EscalationLog,
    EscalationProgress,
    EscalationStage,
    LogEntry,
    by_id,
    logged,
    of_entry,
    stations,
)
from yolo_fs.escalations.machine import advance, begin
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.protocol.departments import Dept, Role
from yolo_fs.protocol.escalation import LEVELS


class Timeout(NamedTuple):
    """A level that was silent for too long."""

    id: EscalationId
    attempt: int
    level: Role
    """Who was silent."""
    to: Role
    """Who gets it now; the same level where it is only reminded."""
    elapsed_s: int


def escalations(known: EscalationLog, now: datetime) -> tuple[EscalationProgress, ...]:
    """Return the state of each escalation of a phase, ordered by name."""
    if not (known.lines or known.entries):
        return ()
    grouped = by_id(stations(known))
    entries = {
        name: entry for entry in known.entries if (name := EscalationId.parse(str(entry.get("id"))))
    }
    names = sorted({*grouped, *entries})
    return tuple(
        _fold(known, grouped.get(name, []), entries.get(name), name, now) for name in names
    )


def due(
    progress: Iterable[EscalationProgress],
    now: datetime,
    began: Mapping[str, datetime] = MappingProxyType({}),
) -> tuple[Timeout, ...]:
    """Return the levels that were silent for longer than allowed, the longest first.

    `began`: key of a turn → when it began, if a better clock than the lines' times knows it.
    """
    late = []
    for escalation in progress:
        if escalation.deadline is not None:
            waited = now - began.get(escalation.key, escalation.since)
            if waited > escalation.deadline - escalation.since:
                late.append(
                    Timeout(
                        escalation.id,
                        escalation.attempt,
                        escalation.holder,
                        escalation.silent_to,
                        int(waited.total_seconds()),
                    )
                )
    return tuple(sorted(late, key=lambda each: (-each.elapsed_s, each.id)))


def _fold(
    known: EscalationLog,
    log_entries: list[LogEntry],
    entry: Mapping[str, Any] | None,
    name: EscalationId,
    now: datetime,
) -> EscalationProgress:
    first = log_entries[0] if log_entries else of_entry(name, entry or {})
    department = known.department_of(name)
    escalation, wrong_first = begin(first, known, department, is_known=entry is not None)
    findings = [*wrong_first, *_find_untimely(first, now)]
    opened_at = began = _clamp_time(first, EARLIEST, known, now)
    history = [
        first
    ]  # also when it reports nothing: then it stands in for the report, and each turn counts
    for next_ in log_entries if first.state != "open" else log_entries[1:]:
        moved, wrong = advance(escalation, next_, known)
        findings += [*wrong, *(() if next_ is first else _find_untimely(next_, now))]
        if moved is not escalation:
            escalation = moved
            began = began if next_.move == "remind" else _clamp_time(next_, began, known, now)
            history += [next_] if next_ is not first else []
    if log_entries and entry and (earlier := moment(entry.get("escalated_at"))):
        opened_at = min(opened_at, earlier)
    escalation = escalation._replace(
        opened_at=opened_at, since=began, history=tuple(history), findings=tuple(findings)
    )
    return _timed(escalation, known)


def _clamp_time(
    entry: LogEntry, earliest: datetime, known: EscalationLog, now: datetime
) -> datetime:
    """Return when a line was written: not after the log or now, not before the line before."""
    latest = min(known.written_at or now, now)
    return (
        min(max(entry.at or latest, earliest), now)
        if (entry.at or latest) <= latest
        else max(latest, earliest)
    )


def _find_untimely(entry: LogEntry, now: datetime) -> Iterator[Finding]:
    path, at = (LOG, "/dt") if entry.number else (ENTRIES, "/escalations")
    return untimely(str(entry.id), entry.dt, now, path, entry.number, at)


def _timed(escalation: EscalationProgress, known: EscalationLog) -> EscalationProgress:
    waits = escalation.standing in (EscalationStage.RISING, EscalationStage.DESCENDING)
    may_be_late = waits and escalation.holder is not Role.USER and not escalation.reminded
    timeout = timedelta(seconds=known.rules.timeout_seconds)
    return escalation._replace(deadline=escalation.since + timeout) if may_be_late else escalation


_END = datetime(9000, 1, 1, tzinfo=UTC)
"""`now` for committed data: nothing is rewritten because the clock has moved on."""


def entries_of(facts: PhaseFacts, before: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries: logged ones as the log has them, others as they were written.

    `before`: the current execution state. Keys that the log does not know stay.
    """
    derived = {entry["id"]: entry for entry in _derived(facts.ask(logged))}
    kept = [_merged(entry, derived.pop(str(entry.get("id")), {})) for entry in entries_in(before)]
    return [*kept, *derived.values()]


class NextEntries(NamedTuple):
    """The entries for the next write of an execution state."""

    entries: tuple[Entry, ...]
    change: Changed | None
    """The escalation that this write adds or closes; each one gets a write of its own."""


def next_entries(facts: PhaseFacts, before: Mapping[str, Any] | None) -> NextEntries:
    """Return the entries for the next write; the very first write adds none yet."""
    known, derived = entries_in(before or {}), entries_of(facts, before or {})
    entry_changes = list(changes(known, derived))
    first = entry_changes[0] if entry_changes and before else None
    late = entry_changes[1:] if first else entry_changes
    return NextEntries(tuple(without(derived, known, late)), first)


def as_committed(facts: PhaseFacts) -> tuple[EscalationProgress, ...]:
    """Return the escalations of a phase as committed, independent of any clock."""
    return escalations(facts.ask(logged), _END)


def open_of(facts: PhaseFacts, department: Dept | None) -> Iterator[EscalationProgress]:
    """Yield the open escalations of a department, or of all.

    The first active department also gets those of inactive departments.
    """
    working = facts.options.departments
    for escalation in as_committed(facts):
        theirs = escalation.department if escalation.department in working else working[0]
        if escalation.is_open and department in (None, theirs):
            yield escalation


def claims_of(before: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what an execution state claims to be over: only claims run ahead of the evidence."""
    for entry in entries_in(before):
        if entry.get("status") == "resolved":
            yield f"escalations.{entry.get('id')}", "resolved"


def confirmed_statuses(facts: PhaseFacts) -> dict[str, str]:
    """Return the status of each escalation of the log, under the keys of `claims_of`."""
    return {f"escalations.{entry['id']}": entry["status"] for entry in _derived(facts.ask(logged))}


def _merged(before: Mapping[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as the log has it; an earlier report time in the entry is kept."""
    reported_at, first = moment(before.get("escalated_at")), moment(derived.get("escalated_at"))
    earlier = (
        {"escalated_at": before["escalated_at"]}
        if reported_at and first and reported_at < first
        else {}
    )
    return {**before, **derived, **earlier}


def _derived(known: EscalationLog) -> Iterator[dict[str, Any]]:
    logged_alone = EscalationLog(
        known.mode, known.rules, known.lines, departments=known.departments
    )
    for escalation in escalations(logged_alone, _END):
        yield _entry(escalation)


def _entry(escalation: EscalationProgress) -> dict[str, Any]:
    moved = [station for station in escalation.history if station.move != "remind"]
    is_over = escalation.standing is EscalationStage.RESOLVED
    return {
        "id": str(escalation.id),
        "task": str(escalation.id.task),
        "plan": str(escalation.id.task.plan),
        "severity": escalation.severity
        if escalation.severity in ("blocking", "major", "minor")
        else "blocking",
        "status": "resolved" if is_over else "pending",
        "level": _level_of(escalation).value,
        "escalated_at": escalation.history[0].dt if escalation.history else "",
        "last_escalated_at": moved[-1].dt if moved else "",
        "resolved_at": escalation.history[-1].dt if is_over else "",
        "round_trips": escalation.round_trips,
        "resolution": escalation.decision,
    }


def _level_of(escalation: EscalationProgress) -> Role:
    """Return the level that holds it; if that is the reporter, the level directly above."""
    return (
        escalation.holder
        if escalation.holder in LEVELS and escalation.holder is not escalation.origin
        else escalation.path[1]
    )
