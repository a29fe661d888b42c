"""Who waits for whom in a phase: every circle is named, and every wait for something that nobody will supply.

Names of the graph: departments (`frontend`: its part is done), plans (`01-02`), tasks (`01-02/T3`), gates
(`gate:ux-complete`), escalations (`ESC-01-02-T3`), blocking research requests (`research:fe-research.jsonl:3`) and
agents (`fe-lead`: somebody of that name is there and free to answer). A wait is met only when what it waits for is
there, so every circle is a deadlock.
Source: protocol 3.1, 3.4, 4.2, 4.4; document 000 (`research_request`, `dept-handoff.jsonl`); document 002
("Multi-Department Structure", "Escalation Chain").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from yolo_fs.ids import EscalationId, PlanId, TaskRef
from yolo_fs.protocol.departments import WORKING, name_in
from yolo_fs.protocol.gates import WAVE_GATES, WaveGate
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.protocol.roster import AGENT_BY_NAME, plain_name
from yolo_fs.rules.phase.deadlock import BY_NAME, Alarm, Deadlock, Orphan, Wait, cycles, orphans, shown
from yolo_fs.rules.phase.evidence import PlanProgress, PlanStanding
from yolo_fs.rules.phase.facts import Filed, PhaseFacts, Plan, plans_of, texts
from yolo_fs.rules.phase.gates import gates_of
from yolo_fs.rules.phase.gateview import Missing
from yolo_fs.rules.phase.progress import DepartmentProgress, PhaseProgress
from yolo_fs.rules.phase.waves import routing, waves

__all__ = ["Alarm", "Deadlock", "Orphan", "Wait", "alarms", "cycles", "orphans", "suppliers", "waits_of"]


def alarms(facts: PhaseFacts, progress: PhaseProgress) -> tuple[Alarm, ...]:
    """Return every deadlock and every orphan wait of a phase; nothing while all that waits can be met."""
    found = waits_of(facts, progress)
    return (*cycles(found), *orphans(found, suppliers(facts, progress)))


# --- from facts to waits ---


def waits_of(facts: PhaseFacts, progress: PhaseProgress) -> tuple[Wait, ...]:
    """Return who waits for what, sorted; the order in which artifacts arrived makes no difference."""
    scene = _Scene(facts, progress)
    found = {
        *_of_departments(scene),
        *_of_plans(scene),
        *_of_gates(scene),
        *_of_escalations(scene),
        *_of_research(scene),
        *_of_handoffs(scene),
    }
    found |= {*_of_stuck_plans(scene, found), *_of_agents_to_come(scene, found)}
    return tuple(sorted(found, key=BY_NAME))


def suppliers(facts: PhaseFacts, progress: PhaseProgress) -> frozenset[str]:
    """Return the names that somebody supplies, now or when his turn comes."""
    active = facts.switches.departments
    plans = {str(plan.id) for one in progress.departments for plan in one.plans}
    gates = {f"gate:{gate.name}" for gate in gates_of(facts, progress)}
    agents = {name for name, row in AGENT_BY_NAME.items() if row.department in (None, Dept.SHARED, *active)}
    if not facts.switches.config.research_requests.enabled:
        agents.discard(Role.SCOUT)
    return frozenset({*active, *plans, *_plans_elsewhere(facts), *gates, *agents, *_OUTSIDERS})


_OUTSIDERS = (Role.USER, Role.GO, "orchestrator")
"""Who answers without being in the roster. Source: document 002 ("Rules", 5); document 000 (`research_request`)."""
_CONFIG = "config.json"


def _plans_elsewhere(facts: PhaseFacts) -> Iterator[str]:
    """Yield the plans of other phases that are asked for: the facts of one phase do not tell which there are."""
    for plan in plans_of(facts):
        yield from (f"{item.get('p')}-{item.get('n')}" for item in plan.foreign if item.get("p") != plan.id.phase)


@dataclass(frozen=True)
class _Scene:
    """A phase, and what several kinds of waits ask of it."""

    facts: PhaseFacts
    progress: PhaseProgress

    @cached_property
    def behind(self) -> tuple[DepartmentProgress, ...]:
        """Departments whose part is not done."""
        return tuple(one for one in self.progress.departments if not one.is_complete)

    @cached_property
    def unfinished(self) -> tuple[tuple[PlanProgress, Plan, str], ...]:
        """Plans of active departments that are not complete: how far, what they say, in which file."""
        files = {filed.place.plan: filed.place.name for filed in self.facts.of_kind("plan")}
        written = {plan.id: plan for plan in plans_of(self.facts)}
        plans = (plan for one in self.progress.departments for plan in one.plans if not plan.is_done)
        return tuple((plan, written[plan.id], files[plan.id]) for plan in plans)

    @cached_property
    def department_of(self) -> Mapping[PlanId, Dept]:
        """Plan → its department."""
        return {plan.id: plan.department for plan in plans_of(self.facts)}

    @cached_property
    def closed(self) -> Mapping[str, tuple[Missing, ...]]:
        """Gates of the phase that are closed → what they lack."""
        return {gate.name: gate.missing for gate in gates_of(self.facts, self.progress) if not gate.is_open}

    @cached_property
    def entrances(self) -> Mapping[Dept, WaveGate]:
        """Departments that have not begun to implement → the closed gate in front of their wave."""
        begun = {one.department for one in self.progress.departments if _has_begun(one)}
        return {dept: gate for dept, gate in _wave_gates(self.facts) if dept not in begun and self._is_closed(gate)}

    def _is_closed(self, gate: WaveGate) -> bool:
        return gate.gate in self.closed if gate.gate else any(one.department is gate.department for one in self.behind)


def _has_begun(one: DepartmentProgress) -> bool:
    return any(plan.standing is not PlanStanding.PENDING for plan in one.plans)


def _wave_gates(facts: PhaseFacts) -> Iterator[tuple[Dept, WaveGate]]:
    """Yield each department of a later wave with the gate behind the wave before. Source: protocol 3.1."""
    config = facts.switches.config
    flags = {row.name.value: getattr(config.departments, row.name.value) for row in WORKING}
    route = routing({"departments": flags, "department_workflow": config.department_workflow})
    for before, after in pairwise(waves(route)):
        gate = next(row for row in WAVE_GATES if row.name == before.gate)
        yield from ((dept, gate) for dept in after.departments if dept in facts.switches.departments)


def _gate(row: WaveGate) -> str:
    return f"gate:{row.gate or row.name}"


def _of_departments(scene: _Scene) -> Iterator[Wait]:
    for one in scene.behind:
        if gate := scene.entrances.get(one.department):
            yield Wait(one.department, _gate(gate), "its wave begins behind it", _CONFIG)
    for plan, _, file in scene.unfinished:
        yield Wait(plan.department, str(plan.id), "its plan is not complete", file)


def _of_plans(scene: _Scene) -> Iterator[Wait]:
    for plan, written, file in scene.unfinished:
        name = str(plan.id)
        if gate := scene.entrances.get(plan.department):
            yield Wait(name, _gate(gate), f"{plan.department} begins behind it", _CONFIG)
        for need in plan.blocked_by:
            key = "d" if need in written.needs else "xd"
            yield Wait(name, need, f"`{key}` names it", f"{file}:1", f"take {shown(need)} out of `{key}` in {file}")
        yield from _of_tasks(plan, written, file)


def _of_tasks(plan: PlanProgress, written: Plan, file: str) -> Iterator[Wait]:
    """Yield what tasks wait for that run in a circle; the order of all others is no news."""
    stuck = {f"T{task.ref.number}" for task in plan.tasks if not task.layer and not task.commit}
    for line, task in enumerate(written.tasks, 2):
        for need in texts(task.get("td")):
            if {name := str(task.get("id")), need} <= stuck:
                remedy = f"take {need} out of `td` of {name} in {file}"
                yield Wait(f"{plan.id}/{name}", f"{plan.id}/{need}", "`td` names it", f"{file}:{line}", remedy)


def _of_gates(scene: _Scene) -> Iterator[Wait]:
    """Yield which departments, or which of their Leads, owe a closed gate its evidence."""
    for name, missing in scene.closed.items():
        if name == "api-contract":
            yield from _of_contracts(scene, missing)
        elif name == "ux-complete":
            yield Wait(f"gate:{name}", Dept.UIUX, missing[0].what, missing[0].file)
        else:
            yield from (_owed(f"gate:{name}", one) for one in scene.behind)
    for gate in scene.entrances.values():
        yield from (
            _owed(_gate(gate), one) for one in scene.behind if not gate.gate and one.department is gate.department
        )


def _owed(gate: str, one: DepartmentProgress) -> Wait:
    assert one.current is not None
    return Wait(gate, one.department, f"{one.department} is at {one.current.step.key}", one.current.step.outputs[-1])


def _of_contracts(scene: _Scene, missing: tuple[Missing, ...]) -> Iterator[Wait]:
    """Yield whose word is missing: that of the side which was spoken to, or of both where no side is named."""
    lines = scene.facts.lines_of("api-contracts")
    for lack in missing:
        if lack.line or not lines:
            direction = lines[lack.line - 1].get("direction") if lack.line else None
            where = f"{lack.file}:{lack.line}" if lack.line else lack.file
            for lead in _ANSWERED_BY.get(str(direction), ("fe-lead", "lead")):
                yield Wait("gate:api-contract", lead, lack.what, where, f"agree on it in {lack.file}")


_ANSWERED_BY: Mapping[str, tuple[str, ...]] = {"frontend_to_backend": ("lead",), "backend_to_frontend": ("fe-lead",)}
"""Direction of a contract → who answers it. Source: document 000 (`api_contract`)."""


@dataclass(frozen=True, slots=True)
class _Escalation:
    """A pending escalation as the newest word on it says."""

    id: str
    task: TaskRef
    holder: str
    agent: str
    """Who escalated it last; empty where only the execution state knows of it."""
    is_blocking: bool
    where: str


def _of_escalations(scene: _Scene) -> Iterator[Wait]:
    behind = {one.department for one in scene.behind}
    for one in _pending(scene.facts):
        department = scene.department_of.get(one.task.plan, Dept.BACKEND)
        waiters = {str(one.task): "it is blocked until that is resolved"}
        if department in behind:
            waiters[department] = "no escalation may be pending at the end of implementation"
        if one.is_blocking and one.agent:
            waiters[_agent(one.agent, department)] = "it escalated that and cannot go on"
        yield from (Wait(waiter, one.id, why, one.where) for waiter, why in waiters.items())
        remedy = f"resolve {one.id} in escalation.jsonl (`st` resolved, the decision in `res`)"
        yield Wait(one.id, _agent(one.holder, department), "it holds the escalation", one.where, remedy)


def _pending(facts: PhaseFacts) -> Iterator[_Escalation]:
    """Yield escalations that the log leaves open, or that only the execution state has. Source: protocol 4.2, 4.4."""
    logged = {
        str(line.get("id")): (f"{filed.place.name}:{number}", line)
        for filed in facts.of_kind("escalation")
        for number, line in enumerate(filed.lines, 1)
    }
    entries = {
        str(entry.get("id")): (filed.place.name, entry)
        for filed in facts.of_kind("execution-state")
        for line in filed.lines
        for entry in line.get("escalations") or ()
        if entry.get("status") == "pending"
    }
    for name in sorted(logged.keys() | entries.keys()):
        found = EscalationId.parse(name)
        where, line = logged.get(name, ("", {}))
        if found is None or found.task.plan.phase != facts.phase.number or line.get("st") == "resolved":
            continue
        held, entry = entries.get(name, ("", {}))
        moved = str(entry.get("last_escalated_at", "")) > str(line.get("dt", ""))
        yield _Escalation(
            name,
            found.task,
            holder=str(entry.get("level") if moved else line.get("tgt")),
            agent=str(line.get("agent", "")),
            is_blocking=line.get("sev") == "blocking",
            where=held if moved else where,
        )


def _agent(spelled: str, department: Dept) -> str:
    """Return the agent whom a department means."""
    return name_in(plain_name(spelled), department)


def _of_research(scene: _Scene) -> Iterator[Wait]:
    """Yield blocking requests without an answer: whom they pause, and the Scout whom they wait for."""
    asked = scene.facts.of_kind("research")
    answered = {line.get("q") for filed in asked for line in filed.lines if line.get("src") != "pending"}
    for filed in asked:
        for number, line in enumerate(filed.lines, 1):
            if line.get("src") != "pending" or line.get("rt") != "blocking" or line.get("q") in answered:
                continue
            file = filed.place.name
            name, where = f"research:{file}:{number}", f"{file}:{number}"
            yield from (
                Wait(waiter, name, "it asked, and cannot go on", where) for waiter in _paused(scene, filed, line)
            )
            remedy = f"write the finding into {file}, or make the request informational"
            yield Wait(name, Role.SCOUT, "it is to be answered", where, remedy)


def _paused(scene: _Scene, filed: Filed, line: Mapping[str, Any]) -> Iterator[str]:
    """Yield the agent that asked, and the task or plan that it asked for where the line names one."""
    named = [str(line.get(key, "")) for key in ("task", "plan_id", "brief_for")]
    tasks = [found for name in named if (found := TaskRef.parse(name))]
    plans = [task.plan for task in tasks] or [plan for name in named if (plan := PlanId.parse(name))]
    own = Dept(filed.place.department)
    yield _agent(str(line.get("ra")), scene.department_of.get(plans[0], own) if plans else own)
    yield from map(str, tasks or plans)


def _of_handoffs(scene: _Scene) -> Iterator[Wait]:
    """Yield departments that were handed something with blockers; a later handoff replaces an earlier one."""
    latest = {
        (str(line.get("from_dept")), str(line.get("to_dept"))): (f"{filed.place.name}:{number}", line)
        for filed in scene.facts.of_kind("dept-handoff")
        for number, line in enumerate(filed.lines, 1)
    }
    behind = {one.department.value for one in scene.behind}
    for (giver, taker), (where, line) in latest.items():
        if line.get("blockers") and taker in behind:
            remedy = f"hand over from {giver} to {taker} again, without blockers"
            yield Wait(taker, giver, "its handoff has blockers", where, remedy)


def _of_stuck_plans(scene: _Scene, found: Collection[Wait]) -> Iterator[Wait]:
    """Yield plans that wait for one of their tasks because the task waits for more than its turn."""
    stuck = {task for wait in found if (task := TaskRef.parse(wait.waiter))}
    files = {plan.id: file for plan, _, file in scene.unfinished}
    yield from (
        Wait(str(task.plan), str(task), "its task cannot go on", files[task.plan])
        for task in stuck
        if task.plan in files
    )


def _of_agents_to_come(scene: _Scene, found: Collection[Wait]) -> Iterator[Wait]:
    """Yield agents whom somebody waits for and who come with their department, when its wave begins."""
    present = set(scene.department_of.values())
    for name in {wait.on for wait in found} & AGENT_BY_NAME.keys():
        department = AGENT_BY_NAME[name].department
        gate = scene.entrances.get(department) if department else None
        if gate and department not in present:
            yield Wait(name, _gate(gate), f"{department} begins behind it", _CONFIG)
