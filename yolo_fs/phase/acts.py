"""The acts that a phase is ready for: who does what, and which files that writes. Pure.

`workflow next` names one turn for the phase and one for each department. The runner of agents needs
the same as a list of acts that can be done in parallel, with the paths that each one writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import classify, place_of_name
from yolo_fs.artifacts.table import ARTIFACTS, Artifact, by_kind
from yolo_fs.authority.actors import find_actor, mode_of, name_at_work
from yolo_fs.authority.writers import producers_of, writer_for
from yolo_fs.core.ids import PlanId, TaskRef, stays_inside
from yolo_fs.evidence.facts import paths_in
from yolo_fs.evidence.failures import SIGN_OFF, find_unreadable
from yolo_fs.evidence.plan_status import awaited_elsewhere, touches_nothing
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import DepartmentStatus, Next, StepStanding, tasks_of_wave
from yolo_fs.phase.turns import asked_by_gate
from yolo_fs.phase.view import PHASE_STEPS, SHARED_KINDS, View
from yolo_fs.protocol.chains import Stage
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME, SHARED_NAMES, Dept, Role, name_in
from yolo_fs.protocol.gates import GATE_BY_NAME, Owed
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.protocol.workflow import STEP_BY_KEY

_IMPLEMENTATION = "implementation"
_PERSONS = frozenset({Role.USER.value, Role.GO.value})
"""Roles that no process plays: the user, and the agent that speaks to the user."""


class Act(NamedTuple):
    """One thing to be done by one agent."""

    turn: Next
    department: Dept | None
    """None where the act is one of the whole phase."""
    plan: str = ""
    """`NN-MM`; empty where the act is about no plan."""
    writes: tuple[str, ...] = ()
    """Paths that it writes, relative to the repository; empty where a command does it."""
    lacks: tuple[str, ...] = ()
    """What keeps its step open, one sentence each."""
    writer: str = ""
    """Who writes the files, where the roster gives the agent no tool to; else empty."""

    @property
    def agent(self) -> str:
        return self.turn.agent

    @property
    def role(self) -> str:
        """What the agent does, whatever its department."""
        row = AGENT_BY_NAME.get(self.agent)
        return row.role.value if row else self.agent

    @property
    def task(self) -> str:
        """`NN-MM/Tk`; empty where the act is about no task."""
        return self.turn.task if TaskRef.parse(self.turn.task) else ""

    @property
    def commit_type(self) -> str:
        """Type of the commits that do its task: what is new, or what is mended."""
        return "feat" if self.turn.step == _IMPLEMENTATION else "fix"

    @property
    def commit(self) -> str:
        """Subject of the commit of its source, up to what was done; empty where it leaves none."""
        is_source = self.role == Role.DEV and any(classify(path) is None for path in self.writes)
        if not (is_source and self.plan):
            return ""
        task = TaskRef.parse(self.turn.task)
        of_task = f"T{task.number} " if task else ""
        return f"{self.commit_type}({self.plan}): {of_task}…"

    @property
    def example(self) -> str:
        """Command that prints a valid artifact for what it writes; empty for none."""
        return next(
            (f"yolo-fs schema example {path}" for path in self.writes if classify(path)), ""
        )

    def as_json(self) -> dict[str, Any]:
        """Return the act as every interface shows it: who does what, why, and what it writes."""
        turn = self.turn
        return {
            "agent": turn.agent,
            "sentence": turn.sentence,
            "step": turn.step,
            "task": turn.task,
            "act": turn.act,
            "why": turn.why,
            "command": turn.command,
            "inputs": list(turn.inputs),
            "writes": list(self.writes),
            "writer": self.writer,
            "commit": self.commit,
            "example": self.example,
        }

    @property
    def is_of_person(self) -> bool:
        """Whether the user has to act."""
        return self.agent in _PERSONS

    @property
    def key(self) -> tuple[str, ...]:
        """Identity of the act, whatever else changes in the phase."""
        turn = self.turn
        return (self.agent, self.department or "", turn.step, turn.task, turn.act)

    @property
    def basis(self) -> tuple[object, ...]:
        """State that changes once any part of the act is done."""
        return (*self.key, self.turn.why, self.lacks, self.writes)


def acts_of(phase: Phase, *, each_plan: bool = False) -> tuple[Act, ...]:
    """Return the acts that can be done now, in parallel. The phase's own turn comes first.

    `each_plan`: every plan of a department's wave has a Dev of its own.
    """
    progress = phase.progress
    if progress.next is None:
        return ()
    free = phase.free_departments
    turns: list[tuple[Next, Dept | None]] = [
        (status.next, status.department)
        for status in progress.departments
        if status.next and status.department in free
    ]
    if not any(turn == progress.next for turn, _ in turns):
        turns = [(progress.next, _department_of(progress.next))]
    turns.sort(key=lambda pair: pair[0] != progress.next)
    if each_plan:
        turns += [
            (turn, status.department)
            for status in progress.departments
            if status.department in free
            for turn in _turns_of_wave(phase, status)
        ]
    acts = {
        act.key: act
        for turn, department in reversed(turns)
        if (act := act_for(phase, turn, department))
    }
    return tuple(reversed(acts.values()))


def _turns_of_wave(phase: Phase, status: DepartmentStatus) -> Iterator[Next]:
    """Yield the turns of a department's Devs, of each plan that no other turn is about."""
    step = next(each for each in status.steps if each.step.key == _IMPLEMENTATION)
    if step.standing not in (StepStanding.READY, StepStanding.RUNNING):
        return
    escalated = {escalation.id.task.plan for escalation in phase.escalations if escalation.is_open}
    taken = {str(plan) for plan in escalated} | {status.next.task[:5] if status.next else ""}
    for task, why in tasks_of_wave(status.plans):
        if task[:5] not in taken:
            agent = name_in(Role.DEV, status.department)
            yield Next(_IMPLEMENTATION, agent, step.step.inputs, task, why)


def plans_laid_aside(phase: Phase) -> frozenset[PlanId]:
    """Return the plans that are done, and that no act sends anybody back to.

    A review, QA, an audit or a verdict of the Product Owner sends back to a plan that is done.
    """
    back = [act for act in acts_of(phase) if act.role in _SENT_BACK]
    return frozenset(
        plan.id
        for status in phase.progress.departments
        for plan in status.plans
        if plan.is_done
        and not any(
            act.department == status.department and act.plan in ("", str(plan.id)) for act in back
        )
    )


_SENT_BACK = frozenset({Role.SENIOR.value, Role.DEV.value})


def describe_files(act: Mapping[str, Any], spell: Callable[[str], str]) -> str:
    """Return which files an act writes, what prints a valid one, and who writes for its agent;
    empty for none. `act`: as its JSON form; `spell`: returns a path as it is shown.
    """
    paths = ", ".join(map(spell, act["writes"]))
    example = f" ('{act['example']}' prints a valid one)" if act["example"] else ""
    by = f"; {act['writer']} writes it: {act['agent']} has no tool to" if act["writer"] else ""
    return f"write: {paths}{example}{by}" if paths else ""


def act_of_stage(phase: Phase, stage: Stage, does: str, department: Dept | None = None) -> Act:
    """Return an act of a chain that no step asks for: a role writes one artifact of the phase.

    `department`: whose role; the first one at work by default.
    """
    department = department or phase.facts.options.departments[0]
    agent = name_in(stage.role, department)
    row = AGENT_BY_NAME[agent]
    artifact = by_kind(stage.kind)
    assert artifact is not None
    number = _find_free_plan_number(phase) if stage.kind == "plan" else ""
    own = None if row.department in SHARED_NAMES else department
    path = f"{phase.facts.folder}/{_file(artifact, own, number)}"
    turn = Next(stage.step, agent, STEP_BY_KEY[stage.step].inputs, act=does)
    return _with_files(phase, Act(turn, own, number), (path,))


def _find_free_plan_number(phase: Phase) -> str:
    """Return the first plan number that is unused in the phase."""
    known = {str(plan.id) for status in phase.progress.departments for plan in status.plans}
    number = 1
    while f"{phase.id.number}-{number:02}" in known:
        number += 1
    return f"{phase.id.number}-{number:02}"


def _department_of(turn: Next) -> Dept | None:
    row = AGENT_BY_NAME.get(turn.agent)
    own = row.department if row and row.department in DEPARTMENT_BY_NAME else None
    return own if own is not None and DEPARTMENT_BY_NAME[own].runs_workflow else None


def act_for(phase: Phase, turn: Next, department: Dept | None = None) -> Act:
    """Return a turn as an act. `department`: whose it is; its agent's by default."""
    department = department or _department_of(turn)
    row = AGENT_BY_NAME.get(turn.agent)
    is_shared = row is not None and row.department in SHARED_NAMES
    act = Act(turn, None if is_shared or turn.step in PHASE_STEPS else department)
    plan = _plan_of(phase, turn, department)
    lacks = tuple(_lacks(phase, turn, department))
    writes = tuple(_writes(phase, turn, department, plan))
    return _with_files(phase, act._replace(plan=plan, lacks=lacks), writes)


def _with_files(phase: Phase, act: Act, writes: tuple[str, ...]) -> Act:
    """Return an act with the files that it writes, and who writes them."""
    names = [path.rpartition("/")[2] for path in writes if classify(path)]
    agent = find_actor(act.agent, None, mode_of(phase.facts.options)) if names else None
    writer = writer_for(agent, names) if agent else None
    name = name_at_work(writer.name, phase.facts.options) if writer else ""
    return act._replace(writes=writes, writer=name)


def _lacks(phase: Phase, turn: Next, department: Dept | None) -> Iterator[str]:
    steps = phase.progress.steps
    if turn.step not in PHASE_STEPS:
        steps = next(
            (
                status.steps
                for status in phase.progress.departments
                if status.department == department
            ),
            (),
        )
    yield from (lack for step in steps if step.step.key == turn.step for lack in step.missing)


def _plan_of(phase: Phase, turn: Next, department: Dept | None) -> str:
    if turn.task:
        return turn.task[:5]
    view = View(phase.facts, department)
    plans = [str(plan.id) for plan in view.plan_files]
    named = [plan for plan in plans if plan in turn.why]
    if named:
        return named[0]
    return plans[0] if len(plans) == 1 and turn.step not in PHASE_STEPS else ""


def _writes(phase: Phase, turn: Next, department: Dept | None, plan: str) -> Iterator[str]:
    if turn.command:
        return
    folder, view = phase.facts.folder, View(phase.facts, department)
    row = AGENT_BY_NAME.get(turn.agent)
    role = row.role if row else None
    if names := tuple(_find_gate_files(phase, turn)):
        yield from (f"{folder}/{name}" for name in names)
    elif role in _LEAVES:
        yield f"{folder}/{_LEAVES[role]}"
    elif plans := tuple(_find_plans_in(turn)):
        yield from (f"{folder}/{name}" for name in plans)
    elif turn.step == "planning":
        first = f"{folder}/{_prefix(department)}{_plan_number(phase, department)}.plan.jsonl"
        yield from tuple(_find_plans_that_hold(view)) or (first,)
        yield from (f"{folder}/{name}" for name in _contract(phase, department))
    elif role is Role.DEV:
        yield from _files_of_dev(view, turn, plan, folder)
    elif role is Role.SENIOR and turn.step != "code_review":
        yield from (
            artifact.place.path
            for artifact in view.of("plan")
            if plan in ("", str(artifact.place.plan))
        )
    elif role is not None:
        kinds = tuple(_kinds(turn.step, role))
        places = (place for name in turn.inputs if (place := place_of_name(name)))
        updated = (place.name for place in places if role in place.artifact.updated_by)
        yield from (f"{folder}/{name}" for name in updated)
        yield from (f"{folder}/{_file(kind, department)}" for kind in kinds)
        if not kinds and role is Role.LEAD:  # what is scoped anew is planned anew
            yield f"{folder}/{_prefix(department)}{_plan_number(phase, department)}.plan.jsonl"
        elif not kinds and role is Role.OWNER:
            yield f"{folder}/{SIGN_OFF}"


_LEAVES = {Role.ANALYZE: "analysis.json", Role.QUESTIONARY: "discovery.json"}
"""Artifacts of roles whose product no step names."""


def _find_gate_files(phase: Phase, turn: Next) -> Iterator[str]:
    """Yield the files that a closed gate lacks, where they alone make it somebody's turn.

    An agent that writes a file which only one department makes also writes the other missing files
    that only that department makes.
    """
    gate = next(
        (candidate for candidate in phase.gates if f"gate {candidate.name} is closed" in turn.why),
        None,
    )
    if gate is None:
        return
    options = phase.facts.options
    owed = [asked_by_gate(gate, options, at) for at in range(len(gate.missing))]
    names = [
        name for owed_turn in owed if owed_turn.agent == turn.agent for name in owed_turn.inputs
    ]
    places = {name: place for name in dict.fromkeys(names) if (place := place_of_name(name))}
    makers = {place.artifact.made_by for place in places.values()} - {None}
    made = [row for row in ARTIFACTS if row.made_by in makers]
    missing = [row.file for row in made if not phase.facts.of_kind(row.kind)]
    yield from dict.fromkeys((*missing, *places))


def _find_plans_in(turn: Next) -> Iterator[str]:
    """Yield the plans among what a Lead reads in its turn: it reads only those that it changes."""
    row = AGENT_BY_NAME.get(turn.agent)
    for name in turn.inputs if row and row.role is Role.LEAD else ():
        place = place_of_name(name)
        if place and place.artifact.kind == "plan":
            yield name


def _find_plans_that_hold(view: View) -> Iterator[str]:
    """Yield the plans that hold the planning: each that cannot be read, or waits for another
    phase.
    """
    facts = view.facts
    yield from (place.path for place in find_unreadable(facts, "planning", view.department))
    waiting = {plan.id for plan in view.plan_files if any(awaited_elsewhere(facts, plan))}
    places = (artifact.place for artifact in view.of("plan"))
    yield from (place.path for place in places if place.plan in waiting)


def _contract(phase: Phase, department: Dept | None) -> Iterator[str]:
    """Yield the file with the contract between departments, until they have agreed on it."""
    for gate in phase.gates:
        row = GATE_BY_NAME.get(gate.name)
        if row and row.owed_by is Owed.UNANSWERED and department in row.requires and gate.missing:
            yield gate.missing[0].file


def _files_of_dev(view: View, turn: Next, plan: str, folder: str) -> Iterator[str]:
    """Yield the task's files; those of the plan where a review or a check sends it back."""
    if turn.step == _IMPLEMENTATION and turn.task and not TaskRef.parse(turn.task):
        kinds = [row for row in _kinds(turn.step, Role.DEV) if row.kind != "test-results"]
        if view.of("test-plan"):
            kinds = [row for row in ARTIFACTS if row.step == turn.step]
        yield from _find_undone_files(view, plan)
        yield from (f"{folder}/{_file(row, view.department, plan)}" for row in kinds)
        return
    for each in view.plan_files:
        if plan and str(each.id) != plan:
            continue
        for task in each.tasks:
            if not turn.task or turn.task == f"{each.id}/{task.get('id')}":
                yield from filter(stays_inside, paths_in(task.get("f")))


def _find_undone_files(view: View, plan: str) -> Iterator[str]:
    """Yield the files of a plan whose summary names only commits of other work."""
    lines = {
        str(artifact.place.plan): artifact.lines[0]
        for artifact in view.of("summary")
        if artifact.lines
    }
    for each in view.plan_files:
        summary = lines.get(str(each.id))
        if str(each.id) == plan and summary and touches_nothing(view.facts, each, summary):
            yield from sorted(filter(stays_inside, each.files))


def _kinds(step: str, role: Role) -> Iterator[Artifact]:
    """Yield what a role produces in a step; all that it produces where the step is another's."""
    made = {name.partition(".")[0] for name in STEP_BY_KEY[step].outputs}
    own = [row for row in ARTIFACTS if role in producers_of(row.kind)]
    of_step = [row for row in own if row.kind in made] or [row for row in own if row.step == step]
    yield from of_step or (own if len(own) == 1 else ())
    if role is Role.SCOUT and (research := by_kind("research")):
        yield research


def _file(artifact: Artifact, department: Dept | None, plan: str = "") -> str:
    prefix = "" if artifact.kind in SHARED_KINDS else _prefix(department)
    return artifact.named(prefix, plan)


def _prefix(department: Dept | None) -> str:
    return DEPARTMENT_BY_NAME[department].prefix if department else ""


def _plan_number(phase: Phase, department: Dept | None) -> str:
    """Return the number of a department's first plan, which no other department gets.

    Commits name their plan, but not its department.
    """
    order = phase.facts.options.departments
    place = order.index(department) if department in order else 0
    return f"{phase.id.number}-{place + 1:02}"
