"""Escalations of a phase as the log has them, which levels were silent for too long, and
`escalations` of the execution state: a projection of the log, merged with what agents wrote by
hand.

A line of the log that breaks a rule changes nothing and is a finding; the rest goes on counting.
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
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept, Role
from yolo_fs.protocol.escalation import LEVELS

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


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
    """Return how each escalation of a phase stands, in the order of their names."""
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
    found: Iterable[EscalationProgress],
    now: datetime,
    began: Mapping[str, datetime] = MappingProxyType({}),
) -> tuple[Timeout, ...]:
    """Return the levels that were silent for longer than allowed, the longest first.

    `began`: key of a turn → when it began, where a better clock than that of the lines knows.
    """
    late = []
    for one in found:
        if one.deadline is not None:
            waited = now - began.get(one.key, one.since)
            if waited > one.deadline - one.since:
                late.append(
                    Timeout(
                        one.id, one.attempt, one.holder, one.silent_to, int(waited.total_seconds())
                    )
                )
    return tuple(sorted(late, key=lambda each: (-each.elapsed_s, each.id)))


def _fold(
    known: EscalationLog,
    found: list[LogEntry],
    entry: Mapping[str, Any] | None,
    name: EscalationId,
    now: datetime,
) -> EscalationProgress:
    first = found[0] if found else of_entry(name, entry or {})
    department = known.departments.get(str(name.task.plan), DEFAULT_DEPARTMENT)
    one, wrong_first = begin(first, known, department, is_known=entry is not None)
    findings = [*wrong_first, *_untimely(first, now)]
    opened_at = began = _clamped(first, EARLIEST, known, now)
    history = [
        first
    ]  # also when it reports nothing: then it stands in for the report, and each turn counts
    for next_ in found if first.state != "open" else found[1:]:
        moved, wrong = advance(one, next_, known)
        findings += [*wrong, *(() if next_ is first else _untimely(next_, now))]
        if moved is not one:
            one = moved
            began = began if next_.move == "remind" else _clamped(next_, began, known, now)
            history += [next_] if next_ is not first else []
    if found and entry and (earlier := moment(entry.get("escalated_at"))):
        opened_at = min(opened_at, earlier)
    one = one._replace(
        opened_at=opened_at, since=began, history=tuple(history), findings=tuple(findings)
    )
    return _timed(one, known)


def _clamped(found: LogEntry, earliest: datetime, known: EscalationLog, now: datetime) -> datetime:
    """Return when a line was written: not after the log or now, not before the line before."""
    latest = min(known.written_at or now, now)
    return (
        min(max(found.at or latest, earliest), now)
        if (found.at or latest) <= latest
        else max(latest, earliest)
    )


def _untimely(found: LogEntry, now: datetime) -> Iterator[Finding]:
    path, at = (LOG, "/dt") if found.number else (ENTRIES, "/escalations")
    return untimely(str(found.id), found.dt, now, path, found.number, at)


def _timed(one: EscalationProgress, known: EscalationLog) -> EscalationProgress:
    waits = one.standing in (EscalationStage.RISING, EscalationStage.DESCENDING)
    may_be_late = waits and one.holder is not Role.USER and not one.reminded
    timeout = timedelta(seconds=known.rules.timeout_seconds)
    return one._replace(deadline=one.since + timeout) if may_be_late else one


_END = datetime(9000, 1, 1, tzinfo=UTC)
"""Nothing that is committed is written anew because a clock says something else today."""


def entries_of(facts: PhaseFacts, before: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries: those of the log as it has them, the others as somebody wrote them.

    `before`: the execution state as it is. A key that the log does not know stays.
    """
    derived = {entry["id"]: entry for entry in _derived(facts.ask(logged))}
    kept = [_merged(one, derived.pop(str(one.get("id")), {})) for one in entries_in(before)]
    return [*kept, *derived.values()]


class NextEntries(NamedTuple):
    """The entries that the next write of an execution state has."""

    entries: tuple[Entry, ...]
    change: Changed | None
    """The escalation that this write takes in or closes; of several, each has its own write."""


def next_entries(facts: PhaseFacts, before: Mapping[str, Any] | None) -> NextEntries:
    """Return what the next write says of escalations; the first write of all takes none in yet."""
    known, derived = entries_in(before or {}), entries_of(facts, before or {})
    found = list(changes(known, derived))
    first = found[0] if found and before else None
    late = found[1:] if first else found
    return NextEntries(tuple(without(derived, known, late)), first)


def as_committed(facts: PhaseFacts) -> tuple[EscalationProgress, ...]:
    """Return the escalations of a phase as history has them, whatever any clock says today."""
    return escalations(facts.ask(logged), _END)


def open_of(facts: PhaseFacts, department: Dept | None) -> Iterator[EscalationProgress]:
    """Yield the open escalations of a department, or of all; the first that works on the phase has
    those of one that does not.
    """
    working = facts.switches.departments
    for one in as_committed(facts):
        theirs = one.department if one.department in working else working[0]
        if one.is_open and department in (None, theirs):
            yield one


def said_of(before: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what an execution state claims to be over: only claims run ahead of the evidence."""
    for entry in entries_in(before):
        if entry.get("status") == "resolved":
            yield f"escalations.{entry.get('id')}", "resolved"


def borne_out(facts: PhaseFacts) -> dict[str, str]:
    """Return the status of each escalation of the log, under the keys of `said_of`."""
    return {f"escalations.{entry['id']}": entry["status"] for entry in _derived(facts.ask(logged))}


def _merged(before: Mapping[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as the log has it; who reported it earlier did so at that time."""
    said, first = moment(before.get("escalated_at")), moment(derived.get("escalated_at"))
    earlier = {"escalated_at": before["escalated_at"]} if said and first and said < first else {}
    return {**before, **derived, **earlier}


def _derived(known: EscalationLog) -> Iterator[dict[str, Any]]:
    logged_alone = EscalationLog(
        known.mode, known.rules, known.lines, departments=known.departments
    )
    for one in escalations(logged_alone, _END):
        yield _entry(one)


def _entry(one: EscalationProgress) -> dict[str, Any]:
    moved = [station for station in one.history if station.move != "remind"]
    is_over = one.standing is EscalationStage.RESOLVED
    return {
        "id": str(one.id),
        "task": str(one.id.task),
        "plan": str(one.id.task.plan),
        "severity": one.severity if one.severity in ("blocking", "major", "minor") else "blocking",
        "status": "resolved" if is_over else "pending",
        "level": _level(one).value,
        "escalated_at": one.history[0].dt if one.history else "",
        "last_escalated_at": moved[-1].dt if moved else "",
        "resolved_at": one.history[-1].dt if is_over else "",
        "round_trips": one.round_trips,
        "resolution": one.decision,
    }


def _level(one: EscalationProgress) -> Role:
    """Return the level that holds it; of whoever is blocked, the one who told them how to go on."""
    return one.holder if one.holder in LEVELS and one.holder is not one.origin else one.path[1]
