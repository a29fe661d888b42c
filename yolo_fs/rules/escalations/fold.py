"""Escalations of a phase as the log has them, and which levels were silent for too long.

A line of the log that breaks a rule changes nothing and is a finding; the rest goes on counting.
Silence never decides: it only hands the question up. See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from yolo_fs.ids import EscalationId
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT
from yolo_fs.protocol.names import Role
from yolo_fs.reasons import Finding
from yolo_fs.rules.escalations.log import (
    ENTRIES,
    LOG,
    EscalationLog,
    LogEntry,
    by_id,
    of_entry,
    stations,
)
from yolo_fs.rules.escalations.machine import advance, begin
from yolo_fs.rules.escalations.state import EscalationProgress, EscalationStage
from yolo_fs.rules.timestamps import moment, untimely

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Timeout:
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


# --- the fold ---


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
    one = replace(
        one, opened_at=opened_at, since=began, history=tuple(history), findings=tuple(findings)
    )
    return _timed(one, known)


def _clamped(found: LogEntry, earliest: datetime, known: EscalationLog, now: datetime) -> datetime:
    """Return when a line was written: not after the log was, not after now, and not before the line
    before it.
    """
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
    return replace(one, deadline=one.since + timeout) if may_be_late else one
