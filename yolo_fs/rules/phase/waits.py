"""Who waits for whom in a phase: every circle is named, and every wait for something that nobody
will supply.

Names of the graph: departments (`frontend`: its part is done), plans (`01-02`), tasks (`01-02/T3`),
gates (`gate:ux-complete`), escalations (`ESC-01-02-T3`), blocking research requests
(`research:fe-research.jsonl:3`) and agents (`fe-lead`: somebody of that name is there and free to
answer). A wait is met only when what it waits for is there, so every circle is a deadlock. See
docs/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from yolo_fs.ids import PlanId, TaskRef
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, SHARED_NAMES, WORKING, name_in
from yolo_fs.protocol.gates import GATE_BY_NAME, WAVE_GATES, Owed, WaveGate
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.protocol.roster import AGENT_BY_NAME, plain_name
from yolo_fs.rules.escalations.log import ENTRIES, LOG
from yolo_fs.rules.escalations.state import EscalationProgress, EscalationStage
from yolo_fs.rules.evidence.facts import Filed, PhaseFacts, Plan, plans_of, texts
from yolo_fs.rules.evidence.plans import PlanStanding, PlanStatus
from yolo_fs.rules.phase.gate_sources import MissingEvidence
from yolo_fs.rules.phase.progress import DepartmentStatus
from yolo_fs.rules.phase.wait_graph import BY_NAME, Wait, shown
from yolo_fs.rules.phase.waves import dispatch, waves

if TYPE_CHECKING:
    from yolo_fs.rules.phase.phase import Phase

CONFIG = "config.json"
"""Where the waves are configured."""


def waits_of(phase: Phase) -> tuple[Wait, ...]:
    """Return who waits for what, sorted; the order in which artifacts arrived makes no
    difference.
    """
    sources = _WaitSources(phase)
    found = {
        *sources.of_departments(),
        *sources.of_plans(),
        *sources.of_gates(),
        *sources.of_escalations(),
        *sources.of_research(),
        *sources.of_handoffs(),
    }
    found |= {*sources.of_stuck_plans(found), *sources.of_agents_to_come(found)}
    return tuple(sorted(found, key=BY_NAME))


def suppliers(phase: Phase) -> frozenset[str]:
    """Return the names that somebody supplies, now or when their turn comes."""
    facts = phase.facts
    active = facts.switches.departments
    plans = {str(plan.id) for plan in phase.folded.plans}
    gates = {f"gate:{gate.name}" for gate in phase.gates}
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
    """Yield the plans of other phases that are asked for: the facts of one phase do not tell which
    there are.
    """
    for plan in plans_of(facts):
        yield from (
            f"{item.get('p')}-{item.get('n')}"
            for item in plan.foreign
            if item.get("p") != plan.id.phase
        )


@dataclass(frozen=True)
class _WaitSources:
    """Yields the waits of a phase, one method for each kind of evidence."""

    phase: Phase

    @cached_property
    def unfinished(self) -> tuple[tuple[PlanStatus, Plan, str], ...]:
        """Plans of active departments that are not complete: how far, what they say, in which
        file.
        """
        files = {filed.place.plan: filed.place.name for filed in self.phase.facts.of_kind("plan")}
        written = {plan.id: plan for plan in plans_of(self.phase.facts)}
        plans = (plan for plan in self.phase.folded.plans if not plan.is_done)
        return tuple((plan, written[plan.id], files[plan.id]) for plan in plans)

    @cached_property
    def department_of(self) -> Mapping[PlanId, Dept]:
        """Plan → its department."""
        return {plan.id: plan.department for plan in plans_of(self.phase.facts)}

    @cached_property
    def closed(self) -> Mapping[str, tuple[MissingEvidence, ...]]:
        """Gates of the phase that are closed → what they lack."""
        return {gate.name: gate.missing for gate in self.phase.gates if not gate.is_open}

    @cached_property
    def entrances(self) -> Mapping[Dept, WaveGate]:
        """Departments that have not begun to implement → the closed gate in front of their wave."""
        begun = {one.department for one in self.phase.folded.departments if _has_begun(one)}
        return {
            dept: gate
            for dept, gate in _wave_gates(self.phase.facts)
            if dept not in begun and self._is_closed(gate)
        }

    def _is_closed(self, gate: WaveGate) -> bool:
        return (
            gate.gate in self.closed
            if gate.gate
            else any(one.department is gate.department for one in self.phase.behind)
        )

    def of_departments(self) -> Iterator[Wait]:
        for one in self.phase.behind:
            if gate := self.entrances.get(one.department):
                yield Wait(one.department, _gate_name(gate), "its wave begins behind it", CONFIG)
        for plan, _, file in self.unfinished:
            yield Wait(plan.department, str(plan.id), "its plan is not complete", file)

    def of_plans(self) -> Iterator[Wait]:
        for plan, written, file in self.unfinished:
            name = str(plan.id)
            if gate := self.entrances.get(plan.department):
                yield Wait(name, _gate_name(gate), f"{plan.department} begins behind it", CONFIG)
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

    def of_gates(self) -> Iterator[Wait]:
        """Yield which departments, or which of their Leads, owe a closed gate its evidence."""
        for name, missing in self.closed.items():
            row = GATE_BY_NAME.get(name)
            yield from OWING[row.owed_by if row else Owed.BEHIND](self, name, missing)
        for gate in self.entrances.values():
            yield from (
                _owed(_gate_name(gate), one)
                for one in self.phase.behind
                if not gate.gate and one.department is gate.department
            )

    def owed_behind(self, gate: str, _: tuple[MissingEvidence, ...]) -> Iterator[Wait]:
        yield from (_owed(f"gate:{gate}", one) for one in self.phase.behind)

    def owed_by_required(self, gate: str, missing: tuple[MissingEvidence, ...]) -> Iterator[Wait]:
        for department in GATE_BY_NAME[gate].requires:
            yield Wait(f"gate:{gate}", department, missing[0].what, missing[0].file)

    def owed_by_unanswered(self, gate: str, missing: tuple[MissingEvidence, ...]) -> Iterator[Wait]:
        """Yield whose word is missing: the side that was spoken to, or both where no side is
        named.
        """
        lines = self.phase.facts.lines_of("api-contracts")
        for lack in missing:
            if lack.line or not lines:
                direction = lines[lack.line - 1].get("direction") if lack.line else None
                where = f"{lack.file}:{lack.line}" if lack.line else lack.file
                receiver = str(direction).partition("_to_")[2]
                sides = [row.name for row in WORKING if row.name == receiver]
                for side in sides or reversed(GATE_BY_NAME[gate].requires):
                    lead = name_in(Role.LEAD, side)
                    remedy = f"agree on it in {lack.file}"
                    yield Wait(f"gate:{gate}", lead, lack.what, where, remedy)

    def of_escalations(self) -> Iterator[Wait]:
        """Yield who waits for an escalation that is open, and whom it waits for."""
        behind = {one.department for one in self.phase.behind}
        for one in self.phase.escalations:
            if not one.is_open or one.id.task.plan.phase != self.phase.facts.phase.number:
                continue
            department, last = (
                self.department_of.get(one.id.task.plan, DEFAULT_DEPARTMENT),
                one.history[-1],
            )
            where = f"{LOG}:{last.number}" if last.number else ENTRIES
            waiters = {str(one.id.task): "it is blocked until that is resolved"}
            if department in behind:
                waiters[department] = "no escalation may be pending at the end of implementation"
            if (
                one.severity == "blocking"
                and one.standing is EscalationStage.RISING
                and last.number
            ):
                waiters[_agent(last.agent, department)] = "it escalated that and cannot go on"
            yield from (Wait(waiter, str(one.id), why, where) for waiter, why in waiters.items())
            remedy = f"resolve it: 'yolo-fs escalate resolve {one.id}'"
            yield Wait(
                str(one.id), _spoken_to(one, department), "it holds the escalation", where, remedy
            )

    def of_research(self) -> Iterator[Wait]:
        """Yield blocking requests without an answer: whom they pause, and the Scout whom they wait
        for.
        """
        asked = self.phase.facts.of_kind("research")
        lines = self.phase.facts.lines_of("research")
        answered = {line.get("q") for line in lines if line.get("src") != "pending"}
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
                    for waiter in self._paused(filed, line)
                )
                remedy = f"write the finding into {file}, or make the request informational"
                yield Wait(name, Role.SCOUT, "it is to be answered", where, remedy)

    def _paused(self, filed: Filed, line: Mapping[str, Any]) -> Iterator[str]:
        """Yield the agent that asked, and the task or plan that it asked for where the line names
        one.
        """
        named = [str(line.get(key, "")) for key in ("task", "plan_id", "brief_for")]
        tasks = [found for name in named if (found := TaskRef.parse(name))]
        plans = [task.plan for task in tasks] or [
            plan for name in named if (plan := PlanId.parse(name))
        ]
        own = Dept(filed.place.department)
        yield _agent(str(line.get("ra")), self.department_of.get(plans[0], own) if plans else own)
        yield from map(str, tasks or plans)

    def of_handoffs(self) -> Iterator[Wait]:
        """Yield departments that were handed something with blockers; a later handoff replaces an
        earlier one.
        """
        latest = {
            (str(line.get("from_dept")), str(line.get("to_dept"))): (
                f"{filed.place.name}:{number}",
                line,
            )
            for filed in self.phase.facts.of_kind("dept-handoff")
            for number, line in enumerate(filed.lines, 1)
        }
        behind = {one.department.value for one in self.phase.behind}
        for (giver, taker), (where, line) in latest.items():
            if line.get("blockers") and taker in behind:
                remedy = f"hand over from {giver} to {taker} again, without blockers"
                yield Wait(taker, giver, "its handoff has blockers", where, remedy)

    def of_stuck_plans(self, found: Collection[Wait]) -> Iterator[Wait]:
        """Yield plans that wait for one of their tasks because the task waits for more than its
        turn.
        """
        stuck = {task for wait in found if (task := TaskRef.parse(wait.waiter))}
        files = {plan.id: file for plan, _, file in self.unfinished}
        yield from (
            Wait(str(task.plan), str(task), "its task cannot go on", files[task.plan])
            for task in stuck
            if task.plan in files
        )

    def of_agents_to_come(self, found: Collection[Wait]) -> Iterator[Wait]:
        """Yield agents whom somebody waits for and who come with their department, when its wave
        begins.
        """
        present = set(self.department_of.values())
        for name in {wait.on for wait in found} & AGENT_BY_NAME.keys():
            department = AGENT_BY_NAME[name].department
            gate = self.entrances.get(department) if department else None
            if gate and department not in present:
                yield Wait(name, _gate_name(gate), f"{department} begins behind it", CONFIG)


def _has_begun(one: DepartmentStatus) -> bool:
    return any(plan.standing is not PlanStanding.PENDING for plan in one.plans)


def _wave_gates(facts: PhaseFacts) -> Iterator[tuple[Dept, WaveGate]]:
    """Yield each department of a later wave with the gates behind the wave before."""
    config = facts.switches.config
    route = dispatch(config.model_dump(mode="json", include={"departments", "department_workflow"}))
    for before, after in pairwise(waves(route)):
        gates = [row for row in WAVE_GATES if row.department in before.departments]
        behind = [dept for dept in after.departments if dept in facts.switches.departments]
        yield from product(behind, gates)


def _gate_name(row: WaveGate) -> str:
    return f"gate:{row.gate or row.name}"


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


def _owed(gate: str, one: DepartmentStatus) -> Wait:
    assert one.current is not None
    return Wait(
        gate,
        one.department,
        f"{one.department} is at {one.current.step.key}",
        one.current.step.outputs[-1],
    )


OWING: Mapping[Owed, Callable[[_WaitSources, str, tuple[MissingEvidence, ...]], Iterator[Wait]]] = {
    Owed.BEHIND: _WaitSources.owed_behind,
    Owed.REQUIRED: _WaitSources.owed_by_required,
    Owed.UNANSWERED: _WaitSources.owed_by_unanswered,
}


def _spoken_to(one: EscalationProgress, department: Dept) -> str:
    """Return whose answer is awaited: the holder; while it rises, whomever it was put to, though
    that be nobody.
    """
    asked = one.history[-1].target
    return (
        _agent(asked, department) if asked and one.standing is EscalationStage.RISING else one.agent
    )


def _agent(spelled: str, department: Dept) -> str:
    """Return the agent whom a department means."""
    return name_in(plain_name(spelled), department)
