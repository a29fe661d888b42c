"""The lines that moves, silence and commits add to the log of escalations. Pure.

A move has neither id nor time yet: both are known only once the log is locked.
See docs/sources.md#document-002.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from yolo_fs.ids import EscalationId, TaskRef
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, name_in
from yolo_fs.protocol.names import Role
from yolo_fs.protocol.roster import department_said
from yolo_fs.rules.escalations.fold import Timeout
from yolo_fs.rules.escalations.log import OVER, EscalationLog, role_of
from yolo_fs.rules.escalations.machine import path_of
from yolo_fs.rules.escalations.messages import EscalationRequest, recommended
from yolo_fs.rules.escalations.state import EscalationProgress, EscalationStage
from yolo_fs.rules.evidence.commits import purpose_of
from yolo_fs.subject import GRAMMAR

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
    """Return the line that reports a task as blocked; past the last round trip it stops at the
    user.
    """
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
    passed = _line(replace(said, decision=new), "escalated", to or below)
    return passed | attempt | _given(dec=new, todo=list(said.instructions))


def called(
    spelled: str, one: EscalationProgress | None, name: EscalationId, known: EscalationLog
) -> str:
    """Return how whoever speaks is called in the department of the task: plain `senior` may mean
    `fe-senior`.
    """
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


# --- what nobody says, and is logged all the same ---


def timed_out(one: EscalationProgress, late: Timeout, dt: str) -> dict[str, Any]:
    """Return the whole line that hands up what a level is silent about, or reminds it; `dt`: its
    moment.
    """
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
    """Return the whole line that ends an escalation, as a commit shows that the task goes on; `dt`:
    its moment.
    """
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
