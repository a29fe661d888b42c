"""Who waits for whom in a phase: every circle is named, and every wait for something that nobody will supply.

Names of the graph: departments (`frontend`: its part is done), plans (`01-02`), tasks (`01-02/T3`),
gates (`gate:ux-complete`), escalations (`ESC-01-02-T3`), blocking research requests
(`research:fe-research.jsonl:3`) and agents (`fe-lead`: somebody of that name is there and free to
answer). A wait is met only when what it waits for is there, so every circle is a deadlock. See
docs/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from yolo_fs.ids import TaskRef
from yolo_fs.protocol.departments import SHARED_NAMES
from yolo_fs.protocol.names import Role
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.rules.evidence.facts import PhaseFacts, plans_of
from yolo_fs.rules.phase.gates import gates_of
from yolo_fs.rules.phase.progress import PhaseStatus
from yolo_fs.rules.phase.wait_graph import BY_NAME, Alarm, Deadlock, Orphan, Wait, cycles, orphans
from yolo_fs.rules.phase.waits_for_answers import of_escalations, of_handoffs, of_research
from yolo_fs.rules.phase.waits_for_work import of_departments, of_gates, of_plans
from yolo_fs.rules.phase.waits_scene import CONFIG, Scene, gate_name

__all__ = [
    "Alarm",
    "Deadlock",
    "Orphan",
    "Wait",
    "alarms",
    "cycles",
    "orphans",
    "suppliers",
    "waits_of",
]


def alarms(facts: PhaseFacts, progress: PhaseStatus) -> tuple[Alarm, ...]:
    """Return every deadlock and every orphan wait of a phase; nothing while all that waits can be met."""
    found = waits_of(facts, progress)
    return (*cycles(found), *orphans(found, suppliers(facts, progress)))


# --- from facts to waits ---


def waits_of(facts: PhaseFacts, progress: PhaseStatus) -> tuple[Wait, ...]:
    """Return who waits for what, sorted; the order in which artifacts arrived makes no difference."""
    scene = Scene(facts, progress)
    found = {
        *of_departments(scene),
        *of_plans(scene),
        *of_gates(scene),
        *of_escalations(scene),
        *of_research(scene),
        *of_handoffs(scene),
    }
    found |= {*_of_stuck_plans(scene, found), *_of_agents_to_come(scene, found)}
    return tuple(sorted(found, key=BY_NAME))


def suppliers(facts: PhaseFacts, progress: PhaseStatus) -> frozenset[str]:
    """Return the names that somebody supplies, now or when his turn comes."""
    active = facts.switches.departments
    plans = {str(plan.id) for one in progress.departments for plan in one.plans}
    gates = {f"gate:{gate.name}" for gate in gates_of(facts, progress)}
    agents = {
        name
        for name, row in AGENT_BY_NAME.items()
        if row.department in (None, *SHARED_NAMES, *active)
    }
    if not facts.switches.config.research_requests.enabled:
        agents.discard(Role.SCOUT)
    return frozenset({*active, *plans, *_plans_elsewhere(facts), *gates, *agents, *_OUTSIDERS})


_OUTSIDERS = (Role.USER, Role.GO, "orchestrator")
"""Who answers without being in the roster."""


def _plans_elsewhere(facts: PhaseFacts) -> Iterator[str]:
    """Yield the plans of other phases that are asked for: the facts of one phase do not tell which there are."""
    for plan in plans_of(facts):
        yield from (
            f"{item.get('p')}-{item.get('n')}"
            for item in plan.foreign
            if item.get("p") != plan.id.phase
        )


def _of_stuck_plans(scene: Scene, found: Collection[Wait]) -> Iterator[Wait]:
    """Yield plans that wait for one of their tasks because the task waits for more than its turn."""
    stuck = {task for wait in found if (task := TaskRef.parse(wait.waiter))}
    files = {plan.id: file for plan, _, file in scene.unfinished}
    yield from (
        Wait(str(task.plan), str(task), "its task cannot go on", files[task.plan])
        for task in stuck
        if task.plan in files
    )


def _of_agents_to_come(scene: Scene, found: Collection[Wait]) -> Iterator[Wait]:
    """Yield agents whom somebody waits for and who come with their department, when its wave begins."""
    present = set(scene.department_of.values())
    for name in {wait.on for wait in found} & AGENT_BY_NAME.keys():
        department = AGENT_BY_NAME[name].department
        gate = scene.entrances.get(department) if department else None
        if gate and department not in present:
            yield Wait(name, gate_name(gate), f"{department} begins behind it", CONFIG)
