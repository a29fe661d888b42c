"""An escalation as commands and `status` show it to machines, level by level. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from typing import Any

from yolo_fs.rules.escalations.log import Station
from yolo_fs.rules.escalations.progress import EscalationProgress
from yolo_fs.rules.timestamps import iso


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


def _station(one: Station) -> dict[str, Any]:
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
