"""Who waits for work to be done: departments for plans, plans and tasks for each other, gates for evidence. Pure.

See docs/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from yolo_fs.protocol.departments import name_in
from yolo_fs.protocol.gates import GATE_BY_NAME, Owed
from yolo_fs.protocol.names import Role
from yolo_fs.rules.evidence.facts import Plan, texts
from yolo_fs.rules.evidence.plans import PlanStatus
from yolo_fs.rules.phase.gateview import MissingEvidence
from yolo_fs.rules.phase.progress import DepartmentStatus
from yolo_fs.rules.phase.wait_graph import Wait, shown
from yolo_fs.rules.phase.waits_scene import CONFIG, Scene, gate_name


def of_departments(scene: Scene) -> Iterator[Wait]:
    for one in scene.behind:
        if gate := scene.entrances.get(one.department):
            yield Wait(one.department, gate_name(gate), "its wave begins behind it", CONFIG)
    for plan, _, file in scene.unfinished:
        yield Wait(plan.department, str(plan.id), "its plan is not complete", file)


def of_plans(scene: Scene) -> Iterator[Wait]:
    for plan, written, file in scene.unfinished:
        name = str(plan.id)
        if gate := scene.entrances.get(plan.department):
            yield Wait(name, gate_name(gate), f"{plan.department} begins behind it", CONFIG)
        for need in plan.blocked_by:
            key = "d" if need in written.needs else "xd"
            yield Wait(
                name,
                need,
                f"`{key}` names it",
                f"{file}:1",
                f"take {shown(need)} out of `{key}` in {file}",
            )
        yield from _of_tasks(plan, written, file)


def _of_tasks(plan: PlanStatus, written: Plan, file: str) -> Iterator[Wait]:
    """Yield what tasks wait for that run in a circle; the order of all others is no news."""
    stuck = {f"T{task.ref.number}" for task in plan.tasks if not task.layer and not task.commit}
    for line, task in enumerate(written.tasks, 2):
        for need in texts(task.get("td")):
            if {name := str(task.get("id")), need} <= stuck:
                remedy = f"take {need} out of `td` of {name} in {file}"
                yield Wait(
                    f"{plan.id}/{name}",
                    f"{plan.id}/{need}",
                    "`td` names it",
                    f"{file}:{line}",
                    remedy,
                )


def of_gates(scene: Scene) -> Iterator[Wait]:
    """Yield which departments, or which of their Leads, owe a closed gate its evidence."""
    for name, missing in scene.closed.items():
        row = GATE_BY_NAME.get(name)
        owed_by = row.owed_by if row else Owed.BEHIND
        yield from OWING[owed_by](scene, name, missing)
    for gate in scene.entrances.values():
        yield from (
            _owed(gate_name(gate), one)
            for one in scene.behind
            if not gate.gate and one.department is gate.department
        )


def _owed(gate: str, one: DepartmentStatus) -> Wait:
    assert one.current is not None
    return Wait(
        gate,
        one.department,
        f"{one.department} is at {one.current.step.key}",
        one.current.step.outputs[-1],
    )


def _owed_behind(scene: Scene, gate: str, _: tuple[MissingEvidence, ...]) -> Iterator[Wait]:
    yield from (_owed(f"gate:{gate}", one) for one in scene.behind)


def _owed_by_required(_: Scene, gate: str, missing: tuple[MissingEvidence, ...]) -> Iterator[Wait]:
    for department in GATE_BY_NAME[gate].requires:
        yield Wait(f"gate:{gate}", department, missing[0].what, missing[0].file)


def _owed_by_unanswered(
    scene: Scene, gate: str, missing: tuple[MissingEvidence, ...]
) -> Iterator[Wait]:
    """Yield whose word is missing: that of the side which was spoken to, or of both where no side is named."""
    lines = scene.facts.lines_of("api-contracts")
    for lack in missing:
        if lack.line or not lines:
            direction = lines[lack.line - 1].get("direction") if lack.line else None
            where = f"{lack.file}:{lack.line}" if lack.line else lack.file
            receiver = str(direction).partition("_to_")[2]
            sides = [name for name in GATE_BY_NAME[gate].requires if name == receiver]
            for side in sides or reversed(GATE_BY_NAME[gate].requires):
                lead = name_in(Role.LEAD, side)
                yield Wait(f"gate:{gate}", lead, lack.what, where, f"agree on it in {lack.file}")


OWING: Mapping[Owed, Callable[[Scene, str, tuple[MissingEvidence, ...]], Iterator[Wait]]] = {
    Owed.BEHIND: _owed_behind,
    Owed.REQUIRED: _owed_by_required,
    Owed.UNANSWERED: _owed_by_unanswered,
}
