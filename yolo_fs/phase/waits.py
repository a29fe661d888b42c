"""The graph of who waits for whom in a phase.

Every cycle is reported as a deadlock, and so is every wait for something that nobody will supply.

Names in the graph: departments (`frontend`: its part is done), plans of this phase and of those
that it waits for (`01-02`, and `fe-01-02` where several departments have that number), tasks
(`01-02/T3`), gates (`gate:ux-complete`), escalations (`ESC-01-02-T3`), blocking research requests
(`research:fe-research.jsonl:3`) and agents (`fe-lead`: an agent of that name is there and free to
answer). A wait is met only when its target is there.
The graph algorithms are linear except for one sort, and not recursive. See
docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from operator import attrgetter
from typing import Any

from yolo_fs.core.ids import PlanId, TaskRef
from yolo_fs.core.reasons import safe
from yolo_fs.escalations.log import ENTRIES, LOG, EscalationProgress, EscalationStage
from yolo_fs.evidence.dependencies import (
    dependencies_across,
    find_meant,
    is_elsewhere,
    owners_of_plans,
)
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts, Plan, plans_of, texts
from yolo_fs.evidence.plan_status import PlanStanding, PlanStatus
from yolo_fs.phase.gate_status import GateSource, MissingEvidence
from yolo_fs.phase.progress import DepartmentStatus
from yolo_fs.phase.waves import dispatched, waves
from yolo_fs.protocol.departments import (
    DEPARTMENT_BY_NAME,
    SHARED_NAMES,
    WORKING,
    Dept,
    Role,
    name_in,
)
from yolo_fs.protocol.gates import GATE_BY_NAME, WAVE_GATES, Owed, WaveGate
from yolo_fs.protocol.roster import AGENT_BY_NAME, plain_name

CONFIG = "config.json"
"""Where the waves are configured."""
REVIEW = "owner-review.jsonl"
"""Where the Owner of a phase orders them otherwise."""


def waits_of(phase: GateSource) -> tuple[Wait, ...]:
    """Return who waits for what, sorted. The order of arrival makes no difference."""
    sources = _WaitSources(phase)
    waits = {
        *sources.of_departments(),
        *sources.of_plans(),
        *sources.of_plans_elsewhere(),
        *sources.of_gates(),
        *sources.of_escalations(),
        *sources.of_research(),
        *sources.of_handoffs(),
    }
    waits |= {*sources.of_stuck_plans(waits), *sources.of_agents_to_come(waits)}
    return tuple(sorted(waits, key=BY_NAME))


def suppliers(phase: GateSource) -> frozenset[str]:
    """Return the names that somebody supplies, now or when their turn comes."""
    facts = phase.facts
    active = facts.options.departments
    plans = {name_plan(facts, plan.id, plan.department) for plan in phase.folded.plans}
    gates = {f"gate:{gate.name}" for gate in phase.gates}
    agents = {
        name
        for name, row in AGENT_BY_NAME.items()
        if row.department in (None, *SHARED_NAMES, *active)
    }
    if not facts.options.config.research_requests.enabled:
        agents.discard(Role.SCOUT)
    return frozenset({*active, *plans, *_find_plans_elsewhere(facts), *gates, *agents, *_OUTSIDERS})


def name_plan(facts: PhaseFacts, plan: PlanId | str, department: Dept) -> str:
    """Return the graph's name of a department's plan: its number, and after the department's prefix
    where several departments have a plan of that number.
    """
    owners = facts.ask(owners_of_plans).get(str(plan), ())
    is_shared = department in owners and len(owners) > 1
    return f"{DEPARTMENT_BY_NAME[department].prefix if is_shared else ''}{plan}"


def name_task(facts: PhaseFacts, task: TaskRef, department: Dept) -> str:
    """Return the graph's name of a department's task."""
    return f"{name_plan(facts, task.plan, department)}/T{task.number}"


def plan_named(name: str) -> PlanId | None:
    """Return the plan of the graph's name; None if it names none."""
    prefix = next((row.prefix for row in WORKING if row.prefix and name.startswith(row.prefix)), "")
    return PlanId.parse(name.removeprefix(prefix))


_OUTSIDERS = (Role.USER, Role.GO, "orchestrator")
"""Agents that answer without being in the roster."""


def _find_plans_elsewhere(facts: PhaseFacts) -> Iterator[str]:
    """Yield the plans of other phases, and those that are asked for and are not there: the phase
    that lacks one tells of it.
    """
    for plan, owners in facts.ask(owners_of_plans).items():
        if is_elsewhere(facts, plan):
            yield from (name_plan(facts, plan, owner) for owner in owners)
    for each in plans_of(facts):
        yield from (name for name in each.elsewhere if is_elsewhere(facts, name))


@dataclass(frozen=True)
class _WaitSources:
    """Yields the waits of a phase, one method for each kind of evidence."""

    phase: GateSource

    @cached_property
    def unfinished(self) -> tuple[tuple[PlanStatus, Plan, str], ...]:
        """Incomplete plans of active departments: (state, content of the file, location)."""
        files = {
            (artifact.place.department, artifact.place.plan): artifact.place.name
            for artifact in self.phase.facts.of_kind("plan")
        }
        written = {(plan.department, plan.id): plan for plan in plans_of(self.phase.facts)}
        plans = (plan for plan in self.phase.folded.plans if not plan.is_done)
        keyed = ((plan, (plan.department, plan.id)) for plan in plans)
        return tuple((plan, written[key], files[key]) for plan, key in keyed)

    def _name(self, plan: PlanStatus) -> str:
        return name_plan(self.phase.facts, plan.id, plan.department)

    def _name_task(self, task: TaskRef, department: Dept) -> str:
        return name_task(self.phase.facts, task, department)

    def _owner(self, plan: PlanId, asker: Dept) -> Dept:
        """Return whose plan an asker means: its own department's, else the one that has it."""
        return next(iter(find_meant(self.phase.facts, str(plan), asker)), asker)

    @cached_property
    def closed(self) -> Mapping[str, tuple[MissingEvidence, ...]]:
        """Gates of the phase that are closed → what they lack."""
        return {gate.name: gate.missing for gate in self.phase.gates if not gate.is_open}

    @cached_property
    def entrances(self) -> Mapping[Dept, WaveGate]:
        """Departments that have not begun to implement → the closed gate in front of their wave."""
        begun = {
            status.department for status in self.phase.folded.departments if _has_begun(status)
        }
        return {
            dept: gate
            for dept, gate in _wave_gates(self.phase.facts)
            if dept not in begun and self._is_closed(gate)
        }

    @property
    def orders(self) -> str:
        """The file that orders the waves."""
        return REVIEW if self.phase.facts.options.order else CONFIG

    def _is_closed(self, gate: WaveGate) -> bool:
        return (
            gate.gate in self.closed
            if gate.gate
            else any(status.department is gate.department for status in self.phase.behind)
        )

    def of_departments(self) -> Iterator[Wait]:
        for status in self.phase.behind:
            if gate := self.entrances.get(status.department):
                yield Wait(
                    status.department,
                    _name_gate(gate),
                    "its wave begins after that gate",
                    self.orders,
                )
        for plan, _, file in self.unfinished:
            yield Wait(plan.department, self._name(plan), "its plan is not complete", file)

    def of_plans(self) -> Iterator[Wait]:
        for plan, written, file in self.unfinished:
            name = self._name(plan)
            if gate := self.entrances.get(plan.department):
                yield Wait(
                    name, _name_gate(gate), f"{plan.department} begins after that gate", self.orders
                )
            for need in plan.blocked_by:
                key = "d" if need in written.needs else "xd"
                for needed in self._names_needed(need, plan.department):
                    yield Wait(
                        name,
                        needed,
                        f"`{key}` names it",
                        f"{file}:1",
                        f"remove {shown(need)} from `{key}` in {file}",
                    )
            yield from _of_tasks(plan, written, file, name)

    def _names_needed(self, need: str, department: Dept) -> Iterator[str]:
        """Yield the names of the plans that a department means by a number."""
        facts = self.phase.facts
        meant = find_meant(facts, need, department)
        yield from [name_plan(facts, need, owner) for owner in meant] or [need]

    def of_plans_elsewhere(self) -> Iterator[Wait]:
        """Yield what plans wait for across phases."""
        facts = self.phase.facts
        unfinished = [(plan.department, str(plan.id)) for plan, _, _ in self.unfinished]
        for each in dependencies_across(facts, unfinished):
            (waiting, plan), (owner, need) = each.waiter, each.on
            yield Wait(
                name_plan(facts, plan, waiting),
                name_plan(facts, need, owner),
                f"`{each.key}` names it",
                f"{each.file}:1",
                f"remove {need} from `{each.key}` in {each.file}",
            )

    def of_gates(self) -> Iterator[Wait]:
        """Yield which departments, or which of their Leads, owe evidence to a closed gate."""
        for name, missing in self.closed.items():
            row = GATE_BY_NAME.get(name)
            yield from OWING[row.owed_by if row else Owed.BEHIND](self, name, missing)
        for gate in self.entrances.values():
            yield from (
                _wait_of_gate(_name_gate(gate), status)
                for status in self.phase.behind
                if not gate.gate and status.department is gate.department
            )

    def owed_behind(self, gate: str, _: tuple[MissingEvidence, ...]) -> Iterator[Wait]:
        yield from (_wait_of_gate(f"gate:{gate}", status) for status in self.phase.behind)

    def owed_by_required(self, gate: str, missing: tuple[MissingEvidence, ...]) -> Iterator[Wait]:
        for department in GATE_BY_NAME[gate].requires:
            yield Wait(f"gate:{gate}", department, missing[0].what, missing[0].file)

    def owed_by_unanswered(self, gate: str, missing: tuple[MissingEvidence, ...]) -> Iterator[Wait]:
        """Yield whose answer is missing: the side that was asked, or both if none is named."""
        lines = self.phase.facts.lines_of("api-contracts")
        for lack in missing:
            if lack.line or not lines:
                where = f"{lack.file}:{lack.line}" if lack.line else lack.file
                both = reversed(GATE_BY_NAME[gate].requires)
                for side in [Dept(lack.owed_by)] if lack.owed_by else both:
                    lead = name_in(Role.LEAD, side)
                    remedy = f"agree on it in {lack.file}"
                    yield Wait(f"gate:{gate}", lead, lack.what, where, remedy)

    def of_escalations(self) -> Iterator[Wait]:
        """Yield who waits for an open escalation, and whom it waits for."""
        behind = {status.department for status in self.phase.behind}
        for escalation in self.phase.escalations:
            if (
                not escalation.is_open
                or escalation.id.task.plan.phase != self.phase.facts.phase.number
            ):
                continue
            task, last = escalation.id.task, escalation.history[-1]
            department = self._owner(task.plan, escalation.department)
            where = f"{LOG}:{last.number}" if last.number else ENTRIES
            waiters = {self._name_task(task, department): "it is blocked until that is resolved"}
            if escalation.is_told:  # who goes on with it waits for nobody
                waiters = {}
            if department in behind:
                waiters[department] = "no escalation may be pending at the end of implementation"
            if (
                escalation.severity == "blocking"
                and escalation.standing is EscalationStage.RISING
                and last.number
            ):
                waiters[_agent(last.agent, department)] = (
                    "it raised that escalation and cannot continue"
                )
            yield from (
                Wait(waiter, str(escalation.id), why, where) for waiter, why in waiters.items()
            )
            remedy = f"resolve it: 'yolo-fs escalate resolve {escalation.id}'"
            yield Wait(
                str(escalation.id),
                _find_answerer(escalation, department),
                "it holds the escalation",
                where,
                remedy,
            )

    def of_research(self) -> Iterator[Wait]:
        """Yield blocking requests without an answer: whom they pause, and the Scout."""
        requests = self.phase.facts.of_kind("research")
        lines = self.phase.facts.lines_of("research")
        answered = {line.get("q") for line in lines if line.get("src") != "pending"}
        for artifact in requests:
            for number, line in enumerate(artifact.lines, 1):
                if (
                    line.get("src") != "pending"
                    or line.get("rt") != "blocking"
                    or line.get("q") in answered
                ):
                    continue
                file = artifact.place.name
                name, where = f"research:{file}:{number}", f"{file}:{number}"
                yield from (
                    Wait(waiter, name, "it asked, and cannot continue", where)
                    for waiter in self._find_paused(artifact, line)
                )
                remedy = f"write the finding into {file}, or make the request informational"
                yield Wait(name, Role.SCOUT, "it is to be answered", where, remedy)

    def _find_paused(self, artifact: CommittedArtifact, line: Mapping[str, Any]) -> Iterator[str]:
        """Yield the agent that asked, and the task or plan that it asked for, if named."""
        named = [str(line.get(key, "")) for key in ("task", "plan_id", "brief_for")]
        tasks = [reference for name in named if (reference := TaskRef.parse(name))]
        plans = [task.plan for task in tasks] or [
            plan for name in named if (plan := PlanId.parse(name))
        ]
        own = Dept(artifact.place.department)
        owner = self._owner(plans[0], own) if plans else own
        yield _agent(str(line.get("ra")), owner)
        facts = self.phase.facts
        yield from (self._name_task(task, self._owner(task.plan, own)) for task in tasks)
        if not tasks:
            yield from (name_plan(facts, plan, self._owner(plan, own)) for plan in plans)

    def of_handoffs(self) -> Iterator[Wait]:
        """Yield departments that received blockers. A later handoff replaces an earlier one."""
        latest = {
            (str(line.get("from_dept")), str(line.get("to_dept"))): (
                f"{artifact.place.name}:{number}",
                line,
            )
            for artifact in self.phase.facts.of_kind("dept-handoff")
            for number, line in enumerate(artifact.lines, 1)
        }
        behind = {status.department.value for status in self.phase.behind}
        for (giver, taker), (where, line) in latest.items():
            if line.get("blockers") and taker in behind:
                remedy = f"hand over from {giver} to {taker} again, without blockers"
                yield Wait(taker, giver, "its handoff has blockers", where, remedy)

    def of_stuck_plans(self, waits: Collection[Wait]) -> Iterator[Wait]:
        """Yield plans that wait for one of their tasks, which waits for more than its turn."""
        files = {self._name(plan): file for plan, _, file in self.unfinished}
        for task in {wait.waiter for wait in waits}:
            plan = task.partition("/")[0]
            if plan in files and plan != task:
                yield Wait(plan, task, "its task cannot continue", files[plan])

    def of_agents_to_come(self, waits: Collection[Wait]) -> Iterator[Wait]:
        """Yield awaited agents that come when their department's wave begins."""
        present = {plan.department for plan in plans_of(self.phase.facts)}
        for name in {wait.on for wait in waits} & AGENT_BY_NAME.keys():
            department = AGENT_BY_NAME[name].department
            gate = self.entrances.get(department) if department else None
            if gate and department not in present:
                yield Wait(
                    name, _name_gate(gate), f"{department} begins after that gate", self.orders
                )


def _has_begun(status: DepartmentStatus) -> bool:
    return any(plan.standing is not PlanStanding.PENDING for plan in status.plans)


def _wave_gates(facts: PhaseFacts) -> Iterator[tuple[Dept, WaveGate]]:
    """Yield each department of a later wave with the gates behind the wave before."""
    route = dispatched(facts.options)
    for before, after in pairwise(waves(route)):
        gates = [row for row in WAVE_GATES if row.department in before.departments]
        behind = [dept for dept in after.departments if dept in facts.options.departments]
        yield from product(behind, gates)


def _name_gate(row: WaveGate) -> str:
    return f"gate:{row.gate or row.name}"


def _of_tasks(plan: PlanStatus, written: Plan, file: str, plan_name: str) -> Iterator[Wait]:
    """Yield the waits of tasks that form a cycle. The order of all other tasks is not reported."""
    stuck = {f"T{task.ref.number}" for task in plan.tasks if not task.layer and not task.commit}
    for line, task in enumerate(written.tasks, 2):
        for need in texts(task.get("td")):
            if {name := str(task.get("id")), need} <= stuck:
                remedy = f"remove {need} from `td` of {name} in {file}"
                yield Wait(
                    f"{plan_name}/{name}",
                    f"{plan_name}/{need}",
                    "`td` names it",
                    f"{file}:{line}",
                    remedy,
                )


def _wait_of_gate(gate: str, status: DepartmentStatus) -> Wait:
    assert status.current is not None
    return Wait(
        gate,
        status.department,
        f"{status.department} is at {status.current.step.key}",
        status.current.step.outputs[-1],
    )


OWING: Mapping[Owed, Callable[[_WaitSources, str, tuple[MissingEvidence, ...]], Iterator[Wait]]] = {
    Owed.BEHIND: _WaitSources.owed_behind,
    Owed.REQUIRED: _WaitSources.owed_by_required,
    Owed.UNANSWERED: _WaitSources.owed_by_unanswered,
}


def _find_answerer(escalation: EscalationProgress, department: Dept) -> str:
    """Return whose answer is awaited: the holder's, or while it rises, the asked agent's, if
    any.
    """
    target = escalation.history[-1].target
    return (
        _agent(target, department)
        if target and escalation.standing is EscalationStage.RISING
        else escalation.agent
    )


def _agent(spelled: str, department: Dept) -> str:
    """Return the agent that a department means by a name."""
    return name_in(plain_name(spelled), department)


_SHOWN_NAME = 80
"""Characters of a name that an alarm shows; agents choose some of them."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One edge: the waiter cannot continue before something else is there."""

    waiter: str
    """Name of what waits."""
    on: str
    """Name of what it waits for."""
    why: str
    """What it needs from there."""
    where: str
    """File of the phase that says so, with the line where one line does: `name:line`."""
    remedy: str = ""
    """What a person may do to end it; empty where only what it waits for can."""

    def __str__(self) -> str:
        return f"{shown(self.waiter)} waits for {self.need}"

    @property
    def is_at_gate(self) -> bool:
        """Whether it waits for a gate to open."""
        return self.on.startswith("gate:")

    @property
    def need(self) -> str:
        """What it waits for, why, and where that stands."""
        return f"{shown(self.on)} ({self.why}, {self.where})"


BY_NAME = attrgetter("waiter", "on", "why", "where", "remedy")
"""Total order of waits, so that the order of arrival makes no difference."""


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Waits that form a cycle, starting with the smallest name."""

    waits: tuple[Wait, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Its members. Each waits for the next, the last for the first."""
        return tuple(wait.waiter for wait in self.waits)

    def __str__(self) -> str:
        ways = tuple(dict.fromkeys(wait.remedy for wait in self.waits if wait.remedy))
        circle = ", which waits for ".join(wait.need for wait in self.waits)
        return f"deadlock: {shown(self.names[0])} waits for {circle}{_advice(ways)}"


@dataclass(frozen=True, slots=True)
class Orphan:
    """A wait for something that nobody will ever supply."""

    wait: Wait

    @property
    def names(self) -> tuple[str, ...]:
        """Who waits."""
        return (self.wait.waiter,)

    def __str__(self) -> str:
        ways = (self.wait.remedy,) if self.wait.remedy else ()
        return f"orphan wait: {self.wait}, but {_explain_absence(self.wait.on)}{_advice(ways)}"


Alarm = Deadlock | Orphan


def shown(name: str) -> str:
    """Return a name as an alarm shows it: escaped and cut."""
    return safe(name, _SHOWN_NAME)


def _advice(ways: tuple[str, ...]) -> str:
    if not ways:
        return ""
    return f". To break it, {'do one of these: ' if len(ways) > 1 else ''}{'; or '.join(ways)}"


def _explain_absence(name: str) -> str:
    """Return why nobody supplies this name."""
    if name == Role.SCOUT:
        return "research on demand is turned off in config.json"
    if PlanId.parse(name):
        return "no active department has a valid plan of that number committed"
    if name in {row.name.value for row in WORKING}:
        return "that department is not active"
    if name in AGENT_BY_NAME:
        return "no such agent works on this phase"
    return "nothing has that name"


def alarms_of(phase: GateSource, waits: Collection[Wait]) -> tuple[Alarm, ...]:
    """Return every deadlock of a phase, and every wait of it for something that nobody supplies.

    A circle of other phases alone is their alarm.
    """
    plans_elsewhere = {*_find_plans_elsewhere(phase.facts)}
    own = (circle for circle in cycles(waits) if not plans_elsewhere.issuperset(circle.names))
    return (*own, *orphans(waits, suppliers(phase)))


def cycles(waits: Iterable[Wait]) -> tuple[Deadlock, ...]:
    """Return a shortest cycle through the smallest name of each strongly connected component.

    Linear in the waits after sorting. Where cycles share a component, the next one is reported once
    the first is broken.
    """
    edges: dict[tuple[str, str], Wait] = {}
    for wait in sorted(waits, key=BY_NAME):
        edges.setdefault((wait.waiter, wait.on), wait)
    graph: dict[str, list[str]] = {name: [] for pair in edges for name in pair}
    for waiter, on in edges:
        graph[waiter].append(on)
    circles = sorted(_circle(graph, knot) for knot in _find_knots(graph) if _is_tied(graph, knot))
    return tuple(Deadlock(tuple(edges[pair] for pair in _pairs(names))) for names in circles)


def orphans(waits: Iterable[Wait], known: Collection[str]) -> tuple[Orphan, ...]:
    """Return the waits for an unknown name that does not wait itself.

    A name that waits reports what it lacks.
    """
    listed = sorted(set(waits), key=BY_NAME)
    there = {*known, *(wait.waiter for wait in listed)}
    return tuple(Orphan(wait) for wait in listed if wait.on not in there)


def _find_knots(graph: Mapping[str, list[str]]) -> Iterator[frozenset[str]]:
    """Yield the strongly connected components by Kosaraju's algorithm, without recursion."""
    back: dict[str, list[str]] = {name: [] for name in graph}
    for waiter, following in graph.items():
        for on in following:
            back[on].append(waiter)
    seen: set[str] = set()
    finished = [name for root in graph for name in _walk(graph, root, seen)]
    seen = set()
    for root in reversed(finished):
        if knot := frozenset(_walk(back, root, seen)):
            yield knot


def _walk(graph: Mapping[str, list[str]], root: str, seen: set[str]) -> Iterator[str]:
    """Yield the names reachable from `root` that were not seen, in postorder."""
    if root in seen:
        return
    seen.add(root)
    path = [(root, iter(graph[root]))]
    while path:
        name, following = path[-1]
        step = next((other for other in following if other not in seen), None)
        if step is None:
            path.pop()
            yield name
        else:
            seen.add(step)
            path.append((step, iter(graph[step])))


def _is_tied(graph: Mapping[str, list[str]], knot: frozenset[str]) -> bool:
    return len(knot) > 1 or any(name in graph[name] for name in knot)


def _circle(graph: Mapping[str, list[str]], knot: frozenset[str]) -> tuple[str, ...]:
    """Return a shortest cycle through the smallest name of a component."""
    start = min(knot)
    came_from: dict[str, str] = {}
    ahead = deque([start])
    while start not in came_from:
        name = ahead.popleft()
        for on in graph[name]:
            if on in knot and on not in came_from:
                came_from[on] = name
                ahead.append(on)
    names = [came_from[start]]
    while names[-1] != start:
        names.append(came_from[names[-1]])
    return tuple(reversed(names))


def _pairs(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return zip(names, (*names[1:], names[0]), strict=True)
