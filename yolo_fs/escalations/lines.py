"""Lines of the log of escalations: those that moves, silence and commits add, the messages that
leave each level, and messages as what is to be logged. Pure.

A move has neither id nor time yet: both are known only once the log is locked. See
docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from yolo_fs.artifacts.naming import purpose_of
from yolo_fs.core.ids import GRAMMAR, EscalationId, TaskRef
from yolo_fs.escalations.fold import Timeout
from yolo_fs.escalations.log import (
    OVER,
    EscalationLog,
    EscalationProgress,
    EscalationStage,
    LogEntry,
    role_of,
)
from yolo_fs.escalations.machine import path_of
from yolo_fs.evidence.facts import texts
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Role, name_in
from yolo_fs.protocol.roster import department_said

_MAY_WARN = (Role.SENIOR, Role.LEAD, Role.ARCHITECT)
_RESOLVERS = (Role.USER, Role.OWNER, Role.ARCHITECT, Role.LEAD)


class EscalationRequest(NamedTuple):
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
    """Return the `escalation_timeout_warning` of a silent level; None for one it does not know."""
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


_RESOLVED = re.compile(r"resolve blocker\b")


def resumes(name: EscalationId, subject: str, *, is_only: bool, is_of_plan: bool = False) -> bool:
    """Return whether a commit carries on the task that is blocked.

    `is_only`: no other escalation of the plan waits for its Dev, so that a resolved blocker can be
    no other.
    `is_of_plan`: no Dev reported it, so that any work on the plan carries it on.
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
    found = GRAMMAR.fullmatch(subject)
    return (
        is_only
        and purpose.plan == name.task.plan
        and bool(found and _RESOLVED.match(found["text"]))
    )


def opened(
    said: EscalationRequest,
    to: str,
    task: TaskRef,
    one: EscalationProgress | None,
    known: EscalationLog,
) -> dict[str, Any]:
    """Return the line that reports a task as blocked; after the last round trip: to the user."""
    is_over = (
        one is not None and one.round_trips >= known.rules.max_round_trips and _may_reopen(one)
    )
    target = Role.USER if is_over or said.fails else None
    move = "fail" if said.fails else ""
    if is_over:
        move = "stop"
    department = known.departments.get(str(task.plan), DEFAULT_DEPARTMENT)
    path = path_of(role_of(said.agent), known.mode)
    above = target or (path[1] if len(path) > 1 else Role.SENIOR)
    attempt = one.attempt + int(_may_reopen(one)) if one else 1
    return _line(said, "open", to or name_in(above, department)) | _given(mv=move, att=attempt)


def raised(said: EscalationRequest, to: str, one: EscalationProgress | None) -> dict[str, Any]:
    """Return the line that hands an escalation to the next level up."""
    above = one.above(one.holder) if one else None
    target = to or (name_in(above, one.department) if one and above else Role.USER.value)
    return _line(said, "escalated", target) | _given(att=one.attempt if one else None)


def resolved(said: EscalationRequest, to: str, one: EscalationProgress | None) -> dict[str, Any]:
    """Return the line that decides, passes a decision on, or says that the task goes on."""
    decision = (one.decision if one else "") or said.decision
    attempt = _given(att=one.attempt if one else None)
    if said.shown_by:
        target = to or (name_in(one.path[1], one.department) if one else "senior")
        return (
            _line(said, "resolved", target)
            | attempt
            | {"res": decision or "none", "ref": said.shown_by}
            | ({"mv": OVER} if said.is_over else {})
        )
    below = name_in(one.below(one.holder), one.department) if one else "dev"
    new = said.decision or decision
    passed = _line(said._replace(decision=new), "escalated", to or below)
    return passed | attempt | _given(dec=new, todo=list(said.instructions))


def called(
    spelled: str, one: EscalationProgress | None, name: EscalationId, known: EscalationLog
) -> str:
    """Return a speaker's name in the department of the task: `senior` may mean `fe-senior`."""
    role = role_of(spelled)
    department = (
        one.department if one else known.departments.get(str(name.task.plan), DEFAULT_DEPARTMENT)
    )
    return (
        spelled
        if role is None or department_said(spelled) or role is Role.USER
        else name_in(role, department)
    )


def _may_reopen(one: EscalationProgress) -> bool:
    return one.is_told or one.standing is EscalationStage.RESOLVED


_BEYOND = "beyond the authority of whoever asks"
_WITHIN = "within the authority of whoever decides"


def _line(said: EscalationRequest, state: str, target: str) -> dict[str, Any]:
    line = {
        "agent": said.agent,
        "reason": said.reason or said.decision or "as decided",
        "sb": said.boundary or (_WITHIN if said.decision or said.shown_by else _BEYOND),
        "tgt": target,
        "sev": said.severity,
        "st": state,
    }
    return line | _given(ev=list(said.evidence), rec=said.recommendation, opts=list(said.options))


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def timed_out(one: EscalationProgress, late: Timeout, dt: str) -> dict[str, Any]:
    """Return the line that hands up what a level is silent about, or reminds it; `dt`: when."""
    silent = name_in(late.level, one.department)
    is_reminder = late.to is late.level
    asker = one.below(one.holder) if one.holder is not one.origin else one.path[1]
    return {
        "id": str(one.id),
        "dt": dt,
        "agent": name_in(asker, one.department) if is_reminder else silent,
        "reason": f"{silent} was silent for {late.elapsed_s} s",
        "sb": "timeout protection: silence decides nothing",
        "tgt": name_in(late.to, one.department),
        "sev": one.severity,
        "st": "escalated",
        "att": late.attempt,
        "mv": "remind" if is_reminder else "timeout",
        "rec": recommended(one, late),
    }


def resumed(one: EscalationProgress, commit: str, dt: str) -> dict[str, Any]:
    """Return the line that ends an escalation, as a commit shows that it goes on, at `dt`."""
    return {
        "id": str(one.id),
        "dt": dt,
        "agent": name_in(one.origin, one.department),
        "reason": "the task goes on",
        "sb": "seen in a commit",
        "tgt": name_in(one.path[1], one.department),
        "sev": one.severity,
        "st": "resolved",
        "att": one.attempt,
        "res": one.decision or "as claimed",
        "ref": commit,
    }
