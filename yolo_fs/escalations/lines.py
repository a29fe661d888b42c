"""Lines of the escalation log, the messages that leave each level, and the reverse. Pure.

Lines come from moves, silence and commits. Incoming messages are converted into requests for a
line.

A move has neither id nor time yet: both are known only once the log is locked. See
docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from yolo_fs.artifacts.naming import purpose_of
from yolo_fs.core.ids import GRAMMAR, EscalationId
from yolo_fs.escalations.fold import Timeout
from yolo_fs.escalations.log import (
    OVER,
    EscalationLog,
    EscalationProgress,
    EscalationStage,
    LogEntry,
)
from yolo_fs.escalations.machine import path_of
from yolo_fs.evidence.facts import texts
from yolo_fs.protocol.departments import Role, name_in
from yolo_fs.protocol.roster import department_said, role_of

_MAY_WARN = (Role.SENIOR, Role.LEAD, Role.ARCHITECT)
_RESOLVERS = (Role.USER, Role.OWNER, Role.ARCHITECT, Role.LEAD)


class EscalationRequest(NamedTuple):
    """A statement about an escalation, from a command or a message."""

    agent: str = ""
    reason: str = ""
    """What blocks the task, or why it was decided so."""
    boundary: str = ""
    """Why it exceeds the authority of the agent that raises it."""
    evidence: tuple[str, ...] = ()
    recommendation: str = ""
    options: tuple[str, ...] = ()
    severity: str = ""
    decision: str = ""
    instructions: tuple[str, ...] = ()
    shown_by: str = ""
    """Commit or message that shows that the task goes on."""
    task: str = ""
    id: str = ""
    """Escalation that a message names."""
    fails: bool = False
    """A security FAIL."""
    is_over: bool = False
    """Whether the loop that it was about is over."""
    original: Mapping[str, Any] | None = None
    """The original message, where only its sender can write it.
    It names files and lines, or a commit.
    """


def request_of(message: Mapping[str, Any]) -> EscalationRequest:
    """Return the request in a valid message of an escalation type."""
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
            fixes = tuple(
                f"{change['f']}:{change['ln']}: {change['fix']}" for change in message["changes"]
            )
            return EscalationRequest(
                agent="senior", reason="code_review_changes", instructions=fixes, original=message
            )
        case _:
            shown_by = message["commit"] or f"dev_progress: {message['status']}"
            return EscalationRequest(
                "dev", "dev_progress", shown_by=shown_by, task=message["task"], original=message
            )


def message_of(escalation: EscalationProgress, line: LogEntry) -> dict[str, Any] | None:
    """Return the message that leaves a level with this line; None if the document defines none.

    The Senior's instructions name files and lines, so only its own `code_review_changes` can carry
    them.
    """
    if line.state == "open" and line.role is Role.DEV:
        return {
            "type": "dev_blocker",
            "task": str(escalation.id.task),
            "plan_id": str(escalation.id.task.plan),
            "blocker": line.reason,
            "needs": line.recommendation or "a decision",
            "attempted": list(line.evidence) or [line.reason],
        }
    if line.goes_down:
        return _build_resolution(escalation, line) if line.role in _RESOLVERS else None
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


def _build_resolution(escalation: EscalationProgress, line: LogEntry) -> dict[str, Any]:
    resolvers = [
        station.role
        for station in escalation.history
        if station.goes_down and station.role in _RESOLVERS
    ]
    return {
        "type": "escalation_resolution",
        "original_escalation": str(escalation.id),
        "decision": escalation.decision,
        "rationale": (_find_deciding_station(escalation) or line).reason,
        "action_items": list(escalation.instructions),
        "resolved_by": (resolvers[0] or Role.USER).value if resolvers else Role.USER.value,
    }


def _find_deciding_station(escalation: EscalationProgress) -> LogEntry | None:
    """Return the station that decided: the levels below pass its reasons on."""
    decided = None
    for station in escalation.history:
        if not station.goes_down:
            decided = None
        elif decided is None:
            decided = station
    return decided


def warning_of(escalation: EscalationProgress, late: Timeout) -> dict[str, Any] | None:
    """Return the `escalation_timeout_warning` of a silent level; None for a level unknown to it."""
    if late.level not in _MAY_WARN:
        return None
    return {
        "type": "escalation_timeout_warning",
        "original_escalation": str(escalation.id),
        "elapsed_seconds": late.elapsed_s,
        "current_level": late.level.value,
        "agent_blocked": (
            f"{name_in(escalation.origin, escalation.department)} (task {escalation.id.task})"
        ),
        "recommended_action": recommended(escalation, late),
    }


def recommended(escalation: EscalationProgress, late: Timeout) -> str:
    """Return the recommended action for a silent level."""
    if late.to is late.level:
        return f"Remind {name_in(late.level, escalation.department)}: {escalation.owed}"
    return f"Escalate to {name_in(late.to, escalation.department)}, who now holds it"


_RESOLVED = re.compile(r"resolve blocker\b")


def resumes(name: EscalationId, subject: str, *, is_only: bool, is_of_plan: bool = False) -> bool:
    """Return whether a commit continues the blocked task.

    `is_only`: no other escalation of the plan waits for its Dev, so a resolved blocker can only be
    this one.
    `is_of_plan`: it was not reported by a Dev, so any work on the plan continues it.
    """
    if re.search(rf"\b{re.escape(str(name))}\b", subject):
        return True
    purpose = purpose_of(subject)
    if purpose is None or purpose.step:
        return False
    if is_of_plan:
        return purpose.plan == name.task.plan
    if purpose.task:
        return purpose.task == name.task
    match = GRAMMAR.fullmatch(subject)
    return (
        is_only
        and purpose.plan == name.task.plan
        and bool(match and _RESOLVED.match(match["text"]))
    )


def opened(
    request: EscalationRequest,
    to: str,
    name: EscalationId,
    escalation: EscalationProgress | None,
    known: EscalationLog,
) -> dict[str, Any]:
    """Return the line that reports a blocked task; after the last round trip, to the user."""
    is_over = (
        escalation is not None
        and escalation.round_trips >= known.rules.max_round_trips
        and _may_reopen(escalation)
    )
    target = Role.USER if is_over or request.fails else None
    move = "fail" if request.fails else ""
    if is_over:
        move = "stop"
    department = known.department_of(name, request.agent)
    path = path_of(role_of(request.agent), known.mode)
    above = target or (path[1] if len(path) > 1 else Role.SENIOR)
    attempt = escalation.attempt + int(_may_reopen(escalation)) if escalation else 1
    return _line(request, "open", to or name_in(above, department)) | _given(mv=move, att=attempt)


def raised(
    request: EscalationRequest, to: str, escalation: EscalationProgress | None
) -> dict[str, Any]:
    """Return the line that hands an escalation to the next level up."""
    above = escalation.above(escalation.holder) if escalation else None
    target = to or (
        name_in(above, escalation.department) if escalation and above else Role.USER.value
    )
    question = request.reason or (escalation.question if escalation else "")
    return _line(request._replace(reason=question), "escalated", target) | _given(
        att=escalation.attempt if escalation else None
    )


def resolved(
    request: EscalationRequest, to: str, escalation: EscalationProgress | None
) -> dict[str, Any]:
    """Return the line that decides, passes a decision on, or says that the task goes on."""
    decision = (escalation.decision if escalation else "") or request.decision
    attempt = _given(att=escalation.attempt if escalation else None)
    if request.shown_by:
        target = to or (
            name_in(escalation.path[1], escalation.department) if escalation else "senior"
        )
        return (
            _line(request, "resolved", target)
            | attempt
            | {"res": decision or "none", "ref": request.shown_by}
            | ({"mv": OVER} if request.is_over else {})
        )
    below = (
        name_in(escalation.below(escalation.holder), escalation.department) if escalation else "dev"
    )
    new = request.decision or decision
    passed = _line(request._replace(decision=new), "escalated", to or below)
    return passed | attempt | _given(dec=new, todo=list(request.instructions))


def called(
    spelled: str, escalation: EscalationProgress | None, name: EscalationId, known: EscalationLog
) -> str:
    """Return a speaker's name in the department of the task: `senior` may mean `fe-senior`."""
    role = role_of(spelled)
    department = escalation.department if escalation else known.department_of(name)
    return (
        spelled
        if role is None or department_said(spelled) or role is Role.USER
        else name_in(role, department)
    )


def _may_reopen(escalation: EscalationProgress) -> bool:
    return escalation.is_told or escalation.standing is EscalationStage.RESOLVED


_BEYOND = "beyond the authority of the asking role"
_WITHIN = "within the authority of the deciding role"


def _line(request: EscalationRequest, state: str, target: str) -> dict[str, Any]:
    line = {
        "agent": request.agent,
        "reason": request.reason or request.decision or "as decided",
        "sb": request.boundary or (_WITHIN if request.decision or request.shown_by else _BEYOND),
        "tgt": target,
        "sev": request.severity,
        "st": state,
    }
    return line | _given(
        ev=list(request.evidence), rec=request.recommendation, opts=list(request.options)
    )


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def timed_out(escalation: EscalationProgress, late: Timeout, dt: str) -> dict[str, Any]:
    """Return the line that hands up after silence, or reminds the silent level; `dt`: when."""
    silent = name_in(late.level, escalation.department)
    is_reminder = late.to is late.level
    asker = (
        escalation.below(escalation.holder)
        if escalation.holder is not escalation.origin
        else escalation.path[1]
    )
    return {
        "id": str(escalation.id),
        "dt": dt,
        "agent": name_in(asker, escalation.department) if is_reminder else silent,
        "reason": f"{silent} was silent for {late.elapsed_s} s",
        "sb": "timeout protection: silence decides nothing",
        "tgt": name_in(late.to, escalation.department),
        "sev": escalation.severity,
        "st": "escalated",
        "att": late.attempt,
        "mv": "remind" if is_reminder else "timeout",
        "rec": recommended(escalation, late),
    }


def resumed(escalation: EscalationProgress, commit: str, dt: str) -> dict[str, Any]:
    """Return the line that ends an escalation because a commit continues the task; `dt`: when."""
    return {
        "id": str(escalation.id),
        "dt": dt,
        "agent": name_in(escalation.origin, escalation.department),
        "reason": "the task continues",
        "sb": "seen in a commit",
        "tgt": name_in(escalation.path[1], escalation.department),
        "sev": escalation.severity,
        "st": "resolved",
        "att": escalation.attempt,
        "res": escalation.decision or "as claimed",
        "ref": commit,
    }
