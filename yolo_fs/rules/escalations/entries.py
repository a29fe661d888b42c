"""`escalations` of the execution state: a projection of the log, merged with what agents wrote by
hand.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from yolo_fs.protocol.escalation import LEVELS
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.rules.artifacts.naming import Changed, Entry, changes, entries_in, without
from yolo_fs.rules.escalations.fold import escalations
from yolo_fs.rules.escalations.log import EscalationLog, logged
from yolo_fs.rules.escalations.state import EscalationProgress, EscalationStage
from yolo_fs.rules.evidence.facts import PhaseFacts
from yolo_fs.rules.timestamps import moment

_END = datetime(9000, 1, 1, tzinfo=UTC)
"""Nothing that is committed is written anew because a clock says something else today."""


def entries_of(facts: PhaseFacts, before: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries: those of the log as it has them, the others as somebody wrote them.

    `before`: the execution state as it is. A key that the log does not know stays.
    """
    derived = {entry["id"]: entry for entry in _derived(logged(facts))}
    kept = [_merged(one, derived.pop(str(one.get("id")), {})) for one in entries_in(before)]
    return [*kept, *derived.values()]


@dataclass(frozen=True, slots=True)
class NextEntries:
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
    return escalations(logged(facts), _END)


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
    """Yield what an execution state claims to be over, for only a claim can run ahead of the
    evidence.
    """
    for entry in entries_in(before):
        if entry.get("status") == "resolved":
            yield f"escalations.{entry.get('id')}", "resolved"


def borne_out(facts: PhaseFacts) -> dict[str, str]:
    """Return the status of each escalation of the log, under the keys of `said_of`."""
    return {f"escalations.{entry['id']}": entry["status"] for entry in _derived(logged(facts))}


def _merged(before: Mapping[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as the log has it; who reported it before it was logged did so at that
    time.
    """
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
    """Return the level that holds it; while whoever is blocked has it, that is the one who told
    them how to go on.
    """
    return one.holder if one.holder in LEVELS and one.holder is not one.origin else one.path[1]
