"""Escalation lines as the messages that leave each level, and messages as what is to be logged.

See docs/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.protocol.departments import name_in
from yolo_fs.protocol.names import Role
from yolo_fs.rules.escalations.fold import Timeout
from yolo_fs.rules.escalations.log import LogEntry
from yolo_fs.rules.escalations.state import EscalationProgress
from yolo_fs.rules.evidence.facts import texts

_MAY_WARN = (Role.SENIOR, Role.LEAD, Role.ARCHITECT)
_RESOLVERS = (Role.USER, Role.OWNER, Role.ARCHITECT, Role.LEAD)


@dataclass(frozen=True, slots=True)
class EscalationRequest:
    """What somebody says of an escalation, by command or by message."""

    agent: str = ""
    reason: str = ""
    """What stands in the way, or why it is decided so."""
    boundary: str = ""
    """Why it is outside the authority of whoever raises it."""
    evidence: tuple[str, ...] = ()
    recommendation: str = ""
    options: tuple[str, ...] = ()
    severity: str = ""
    decision: str = ""
    instructions: tuple[str, ...] = ()
    shown_by: str = ""
    """Commit or message by which the task goes on."""
    task: str = ""
    id: str = ""
    """Escalation that a message names."""
    fails: bool = False
    """A security FAIL."""
    is_over: bool = False
    """The loop that it was about is over."""
    original: Mapping[str, Any] | None = None
    """The message that said it, where only its sender can write it: it names files and lines, or a
    commit."""


def request_of(message: Mapping[str, Any]) -> EscalationRequest:
    """Return what a valid message of one of the types of an escalation says."""
    match message["type"]:
        case "dev_blocker":
            return EscalationRequest(
                agent="dev",
                reason=message["blocker"],
                evidence=texts(message["attempted"]),
                recommendation=message["needs"],
                severity="blocking",
                task=message["task"],
            )
        case "escalation":
            return EscalationRequest(
                agent=message["from"],
                reason=message["issue"],
                evidence=texts(message["evidence"]),
                recommendation=message["recommendation"],
                options=texts(message.get("options")),
                severity=message["severity"],
            )
        case "escalation_resolution":
            return EscalationRequest(
                agent=message["resolved_by"],
                reason=message["rationale"],
                decision=message["decision"],
                instructions=texts(message["action_items"]),
                id=message["original_escalation"],
            )
        case "code_review_changes":
            fixes = tuple(f"{one['f']}:{one['ln']}: {one['fix']}" for one in message["changes"])
            return EscalationRequest(
                agent="senior", reason="code_review_changes", instructions=fixes, original=message
            )
        case _:
            shown_by = message["commit"] or f"dev_progress: {message['status']}"
            return EscalationRequest(
                "dev", "dev_progress", shown_by=shown_by, task=message["task"], original=message
            )


def message_of(one: EscalationProgress, line: LogEntry) -> dict[str, Any] | None:
    """Return the message that leaves the level with this line; None where the document names none.

    The Senior's instructions name files and lines, which only a `code_review_changes` of its own
    can.
    """
    if line.state == "open" and line.role is Role.DEV:
        return {
            "type": "dev_blocker",
            "task": str(one.id.task),
            "plan_id": str(one.id.task.plan),
            "blocker": line.reason,
            "needs": line.recommendation or "a decision",
            "attempted": list(line.evidence) or [line.reason],
        }
    if line.goes_down:
        return _resolution(one, line) if line.role in _RESOLVERS else None
    options = {"options": list(line.options)} if line.options else {}
    return {
        "type": "escalation",
        "from": line.role.value if line.role else "",
        "to": line.to.value if line.to else "",
        "issue": line.reason,
        "evidence": list(line.evidence) or [line.reason],
        "recommendation": line.recommendation or "a decision",
        "severity": line.severity,
        **options,
    }


def _resolution(one: EscalationProgress, line: LogEntry) -> dict[str, Any]:
    resolvers = [
        station.role for station in one.history if station.goes_down and station.role in _RESOLVERS
    ]
    return {
        "type": "escalation_resolution",
        "original_escalation": str(one.id),
        "decision": one.decision,
        "rationale": (_first_down(one) or line).reason,
        "action_items": list(one.instructions),
        "resolved_by": (resolvers[0] or Role.USER).value if resolvers else Role.USER.value,
    }


def _first_down(one: EscalationProgress) -> LogEntry | None:
    """Return the station that decided: the levels below pass its reasons on."""
    decided = None
    for station in one.history:
        if not station.goes_down:
            decided = None
        elif decided is None:
            decided = station
    return decided


def warning_of(one: EscalationProgress, late: Timeout) -> dict[str, Any] | None:
    """Return the `escalation_timeout_warning` of a silent level; None for levels that the message
    does not know.
    """
    if late.level not in _MAY_WARN:
        return None
    return {
        "type": "escalation_timeout_warning",
        "original_escalation": str(one.id),
        "elapsed_seconds": late.elapsed_s,
        "current_level": late.level.value,
        "agent_blocked": f"{name_in(one.origin, one.department)} (task {one.id.task})",
        "recommended_action": recommended(one, late),
    }


def recommended(one: EscalationProgress, late: Timeout) -> str:
    """Return what is to be done about a silent level."""
    if late.to is late.level:
        return f"Remind {name_in(late.level, one.department)}: {one.owed}"
    return f"Escalate to {name_in(late.to, one.department)}, who now holds it"
