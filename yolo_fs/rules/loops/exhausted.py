"""Loops that are used up: what whoever has to escalate them would say. Pure. See
docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator

from yolo_fs.ids import PlanId, TaskRef
from yolo_fs.protocol.chains import QA_REMEDIES
from yolo_fs.protocol.departments import name_in
from yolo_fs.protocol.names import Role
from yolo_fs.rules.escalations.entries import as_committed
from yolo_fs.rules.escalations.messages import EscalationRequest
from yolo_fs.rules.evidence.facts import Plan, plans_of
from yolo_fs.rules.loops.facts import Loop, LoopFacts, LoopProgress
from yolo_fs.rules.loops.repairs import (
    LIMIT_REACHED,
    code_reviews,
    gate_remediations,
    qa_remediations,
)
from yolo_fs.rules.loops.reviews import ESCALATED

_ESCALATES = {
    (Loop.CODE_REVIEW, ESCALATED): Role.SENIOR,
    (Loop.QA, QA_REMEDIES[-1].occasion): Role.LEAD,
    (Loop.POST_TASK, LIMIT_REACHED): Role.DEV,
    (Loop.POST_PLAN, LIMIT_REACHED): Role.DEV,
}
"""Loop and state in which it is used up → who escalates it."""


def exhausted(facts: LoopFacts) -> Iterator[EscalationRequest]:
    """Yield the escalations that the loops of a phase ask for and the committed log does not
    have.
    """
    for one in (*code_reviews(facts), *qa_remediations(facts), *gate_remediations(facts)):
        role = _ESCALATES.get((one.kind, one.state))
        if role is None or (role is Role.LEAD and one.next.endswith(Role.ARCHITECT)):
            continue
        if found := _task_of(facts, one, role):
            plan, task = found
            yield EscalationRequest(
                agent=name_in(role, plan.department),
                reason=f"{one.kind.value} {one.of}: {one.state}, no round is left",
                boundary=one.what,
                evidence=(f"{one.round} rounds, the last one failed",),
                recommendation="decide whether to accept it, to change the design, or to try "
                "once more",
                severity="blocking",
                task=task,
            )


def _task_of(facts: LoopFacts, one: LoopProgress, role: Role) -> tuple[Plan, str] | None:
    """Return the plan of a loop, and the task to escalate; None while one of that role is open
    there already.
    """
    task, plan = TaskRef.parse(one.of), PlanId.parse(one.of)
    plans = [
        each
        for each in plans_of(facts.phase)
        if each.id in (plan, task.plan if task else None) or each.department == one.of
    ]
    ids = {each.id for each in plans}
    open_ = [
        each for each in as_committed(facts.phase) if each.is_open and each.id.task.plan in ids
    ]
    if any(each.origin is role for each in open_):
        return None
    taken = {str(each.id.task) for each in open_}
    named = (
        (each, f"{each.id}/{line.get('id')}")
        for each in plans
        for line in each.tasks
        if task is None or str(task) == f"{each.id}/{line.get('id')}"
    )
    return next(((each, name) for each, name in named if name not in taken), None)
