"""Who waits for somebody's word: an escalation, a blocking research request, a handoff without blockers. Pure.

See docs/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from yolo_fs.ids import PlanId, TaskRef
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, name_in
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.protocol.roster import plain_name
from yolo_fs.rules.escalations.entries import as_committed
from yolo_fs.rules.escalations.log import ENTRIES, LOG
from yolo_fs.rules.escalations.progress import EscalationProgress, Standing
from yolo_fs.rules.evidence.facts import Filed
from yolo_fs.rules.phase.wait_graph import Wait
from yolo_fs.rules.phase.waits_scene import Scene


def of_escalations(scene: Scene) -> Iterator[Wait]:
    """Yield who waits for an escalation that is open, and whom it waits for."""
    behind = {one.department for one in scene.behind}
    for one in as_committed(scene.facts):
        if not one.is_open or one.id.task.plan.phase != scene.facts.phase.number:
            continue
        department, last = (
            scene.department_of.get(one.id.task.plan, DEFAULT_DEPARTMENT),
            one.history[-1],
        )
        where = f"{LOG}:{last.number}" if last.number else ENTRIES
        waiters = {str(one.id.task): "it is blocked until that is resolved"}
        if department in behind:
            waiters[department] = "no escalation may be pending at the end of implementation"
        if one.severity == "blocking" and one.standing is Standing.RISING and last.number:
            waiters[_agent(last.agent, department)] = "it escalated that and cannot go on"
        yield from (Wait(waiter, str(one.id), why, where) for waiter, why in waiters.items())
        remedy = f"resolve it: 'yolo-fs escalate resolve {one.id}'"
        yield Wait(
            str(one.id), _spoken_to(one, department), "it holds the escalation", where, remedy
        )


def _spoken_to(one: EscalationProgress, department: Dept) -> str:
    """Return whose answer is awaited: the holder; while it rises, whomever it was put to, though that be nobody."""
    asked = one.history[-1].target
    return _agent(asked, department) if asked and one.standing is Standing.RISING else one.agent


def _agent(spelled: str, department: Dept) -> str:
    """Return the agent whom a department means."""
    return name_in(plain_name(spelled), department)


def of_research(scene: Scene) -> Iterator[Wait]:
    """Yield blocking requests without an answer: whom they pause, and the Scout whom they wait for."""
    asked = scene.facts.of_kind("research")
    answered = {
        line.get("q") for filed in asked for line in filed.lines if line.get("src") != "pending"
    }
    for filed in asked:
        for number, line in enumerate(filed.lines, 1):
            if (
                line.get("src") != "pending"
                or line.get("rt") != "blocking"
                or line.get("q") in answered
            ):
                continue
            file = filed.place.name
            name, where = f"research:{file}:{number}", f"{file}:{number}"
            yield from (
                Wait(waiter, name, "it asked, and cannot go on", where)
                for waiter in _paused(scene, filed, line)
            )
            remedy = f"write the finding into {file}, or make the request informational"
            yield Wait(name, Role.SCOUT, "it is to be answered", where, remedy)


def _paused(scene: Scene, filed: Filed, line: Mapping[str, Any]) -> Iterator[str]:
    """Yield the agent that asked, and the task or plan that it asked for where the line names one."""
    named = [str(line.get(key, "")) for key in ("task", "plan_id", "brief_for")]
    tasks = [found for name in named if (found := TaskRef.parse(name))]
    plans = [task.plan for task in tasks] or [
        plan for name in named if (plan := PlanId.parse(name))
    ]
    own = Dept(filed.place.department)
    yield _agent(str(line.get("ra")), scene.department_of.get(plans[0], own) if plans else own)
    yield from map(str, tasks or plans)


def of_handoffs(scene: Scene) -> Iterator[Wait]:
    """Yield departments that were handed something with blockers; a later handoff replaces an earlier one."""
    latest = {
        (str(line.get("from_dept")), str(line.get("to_dept"))): (
            f"{filed.place.name}:{number}",
            line,
        )
        for filed in scene.facts.of_kind("dept-handoff")
        for number, line in enumerate(filed.lines, 1)
    }
    behind = {one.department.value for one in scene.behind}
    for (giver, taker), (where, line) in latest.items():
        if line.get("blockers") and taker in behind:
            remedy = f"hand over from {giver} to {taker} again, without blockers"
            yield Wait(taker, giver, "its handoff has blockers", where, remedy)
