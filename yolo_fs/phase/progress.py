"""The fold: from the facts of a phase to its state.

Pure. All code that shows or decides progress calls it.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from yolo_fs.core.ids import SHORT, PhaseId
from yolo_fs.core.reasons import safe
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.evidence.failures import contradictions_in, unreadable, withdrawn_from
from yolo_fs.evidence.judged import JUDGED_BY, came_later
from yolo_fs.evidence.plan_status import PlanStanding, PlanStatus, plan_progress
from yolo_fs.loops.repairs import route_of_verdict
from yolo_fs.phase.stepgates import (
    Passed,
    entry_lacks,
    exit_lacks,
    post_phase_failure,
    stage_outcome,
)
from yolo_fs.phase.view import PHASE_STEPS, View, skip_rule
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept, Role, name_in
from yolo_fs.protocol.gates import Outcome
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.protocol.workflow import SIGN_OFF_COMMAND, STEPS, Skip, Step


class StepStanding(StrEnum):
    """Where a step stands."""

    PENDING = "pending"
    """Its entry gate is closed."""
    READY = "ready"
    """Its entry gate is open; nothing of it exists yet."""
    WAITING = "waiting"
    """It would be ready, but its department waits at a gate between departments."""
    RUNNING = "running"
    """Part of it exists."""
    SKIPPED = "skipped"
    COMPLETE = "complete"


class StepStatus(NamedTuple):
    """One step of one department, or of the phase."""

    step: Step
    standing: StepStanding
    by: str = ""
    """The commit that completed it, or the rule that skipped it."""
    missing: tuple[str, ...] = ()
    """What keeps it from beginning, or from being complete."""

    @property
    def is_passed(self) -> bool:
        """Whether later steps may go on."""
        return self.standing in (StepStanding.SKIPPED, StepStanding.COMPLETE)

    @property
    def sentence(self) -> str:
        """Where it stands and by what, such as `complete by 3e90086f3faf`."""
        if not self.by:
            return self.standing.value
        if self.standing is StepStanding.SKIPPED:
            return f"skipped: {safe(self.by)}"
        return f"{self.standing.value} by {self.by[:SHORT]}"


def count_steps(steps: Sequence[StepStatus]) -> tuple[int, int]:
    """Return how many steps are complete, and how many there are to complete.

    A step that is skipped is neither. One that blocks nobody may be left out: it counts once it is
    complete.
    """
    done = sum(step.standing is StepStanding.COMPLETE for step in steps)
    left = sum(step.step.blocking and not step.is_passed for step in steps)
    return done, done + left


class Next(NamedTuple):
    """Who is to do what now."""

    step: str
    agent: str
    """Name of the agent, such as `fe-senior`."""
    inputs: tuple[str, ...]
    task: str = ""
    """`NN-MM/Tk` where the step is done task by task."""
    why: str = ""
    """The loop, escalation or stop that makes it this agent's move; empty where the step alone
    does."""
    command: str = ""
    """Command that performs the step; empty where an agent writes the artifact."""
    act: str = ""
    """What is to be done, where the step does not say it: `answers ESC-01-01-T2 (blue or red)`."""

    @property
    def deed(self) -> str:
        """What is to be done, as a verb of the agent: `does research`."""
        task = f" {safe(self.task)}" if self.task else ""
        return self.act or f"does {self.step.replace('_', ' ')}{task}"

    @property
    def sentence(self) -> str:
        """Who does what, in words."""
        return f"{self.agent} {self.deed}"


class DepartmentStatus(NamedTuple):
    """How far one department is."""

    department: Dept
    steps: tuple[StepStatus, ...]
    plans: tuple[PlanStatus, ...]
    stage: Outcome
    """Decision of the gate between Architect and Lead."""
    next: Next | None
    """None when its part is done, or when it waits."""
    blockers: tuple[str, ...]
    """What only others can resolve."""

    @property
    def current(self) -> StepStatus | None:
        """The first blocking step that is not passed."""
        return next(
            (step for step in self.steps if not step.is_passed and step.step.blocking), None
        )

    @property
    def is_complete(self) -> bool:
        """Whether all that the phase waits for is done."""
        return self.current is None

    @property
    def plans_complete(self) -> int:
        """Number of plans that are proved to be done."""
        return sum(plan.is_done for plan in self.plans)

    @property
    def percent(self) -> int:
        """Share of the plans that are done, 0-100, rounded down."""
        if not self.plans:
            return 100 if self.is_complete else 0
        return 100 * self.plans_complete // len(self.plans)


class PhaseStatus(NamedTuple):
    """How far a phase is."""

    phase: PhaseId
    departments: tuple[DepartmentStatus, ...]
    steps: tuple[StepStatus, ...]
    """The steps that the phase has once."""
    next: Next | None

    @property
    def is_complete(self) -> bool:
        """Whether the phase is signed off, and delivered where that is asked for."""
        return all(step.is_passed for step in self.steps)

    @property
    def is_finished(self) -> bool:
        """Whether it needs no attention; a sign-off that overrides a department does."""
        return self.is_complete and all(status.is_complete for status in self.departments)

    @property
    def headline(self) -> str:
        """How far it is, in one line."""
        return f"phase {self.summary}"

    @property
    def summary(self) -> str:
        """How far it is, in a list of phases."""
        standing = "complete" if self.is_finished else f"at {self.step}"
        done = f"{sum(plan.is_done for plan in self.plans)} of {len(self.plans)} plans complete"
        return f"{self.phase}: {standing} ({done}, {self.percent} %)"

    @property
    def step(self) -> str:
        """Key of the step that the phase is at; the last one when it is complete."""
        for step in self.steps[:1]:
            if not step.is_passed:
                return step.step.key
        behind = list(filter(None, (department.current for department in self.departments)))
        if behind:
            return min(behind, key=lambda step: float(step.step.number)).step.key
        open_ = [step.step.key for step in self.steps[1:] if not step.is_passed]
        done = [step.step.key for step in self.steps if step.standing is StepStanding.COMPLETE]
        if open_:
            return open_[0]
        return done[-1] if done else self.steps[-1].step.key

    @property
    def plans(self) -> tuple[PlanStatus, ...]:
        """The plans of all departments."""
        return tuple(plan for department in self.departments for plan in department.plans)

    @property
    def every_step(self) -> tuple[StepStatus, ...]:
        """The steps of all departments, and those that the phase has once."""
        return (*self.steps, *(step for status in self.departments for step in status.steps))

    @property
    def percent(self) -> int:
        """Share of all plans that are done, 0-100, rounded down."""
        plans = self.plans
        return 100 * sum(plan.is_done for plan in plans) // len(plans) if plans else 0

    def with_waiting(self, behind: Mapping[Dept, str]) -> PhaseStatus:
        """Return the same phase, with no step of a waiting department called ready.

        `behind`: department → what it waits for, in words.
        """
        departments = tuple(
            status._replace(steps=tuple(_waiting(step, why) for step in status.steps))
            if why
            else status
            for status in self.departments
            for why in (behind.get(status.department, ""),)
        )
        return self._replace(departments=departments)

    def as_shown(self) -> PhaseStatus:
        """Return the same phase for people: once it is complete, what did not block it is skipped.

        A document that comes later completes the step all the same.
        """
        if not self.is_complete:
            return self
        departments = tuple(
            status._replace(steps=tuple(map(_left_out, status.steps)))
            for status in self.departments
        )
        return self._replace(departments=departments, steps=tuple(map(_left_out, self.steps)))

    def behind_gates(self, closed: Sequence[str], turn: Next) -> PhaseStatus:
        """Return the same phase while gates are closed: incomplete, even with everything else done.

        `turn`: who owes the first missing piece.
        """
        steps = tuple(
            StepStatus(step.step, StepStanding.RUNNING, missing=tuple(closed))
            if step.step.key == "signoff" and self.is_complete
            else step
            for step in self.steps
        )
        return self._replace(steps=steps, next=turn)


def _left_out(step: StepStatus) -> StepStatus:
    if step.step.blocking or step.is_passed:
        return step
    return StepStatus(step.step, StepStanding.SKIPPED, "the phase is complete without it")


def _waiting(step: StepStatus, why: str) -> StepStatus:
    if step.standing is not StepStanding.READY:
        return step
    return StepStatus(step.step, StepStanding.WAITING, missing=(why, *step.missing))


def fold(facts: PhaseFacts) -> PhaseStatus:
    """Return where the phase stands. The order in which artifacts arrived makes no difference."""
    whole = View(facts, None)
    before = tuple(_walk(whole, (step for step in STEPS if step.key == "po"), frozenset()))
    start = passed_steps(before)
    departments = tuple(_department(facts, dept, start) for dept in facts.options.departments)
    shared = frozenset.intersection(*(passed_steps(status.steps) for status in departments))
    after = tuple(
        _walk(
            whole,
            (step for step in STEPS if step.key in PHASE_STEPS and step.key != "po"),
            start | shared,
        )
    )
    turn = _turn_of_phase(departments, before, after)
    return PhaseStatus(facts.phase, departments, before + after, _turn_after_verdict(facts, turn))


def _department(facts: PhaseFacts, department: Dept, start: Passed) -> DepartmentStatus:
    view = View(facts, department)
    steps = tuple(_walk(view, (step for step in STEPS if step.key not in PHASE_STEPS), start))
    plans = plan_progress(facts, department)
    stage = stage_outcome(view)
    return DepartmentStatus(
        department,
        steps,
        plans,
        stage,
        _add_handoff(facts, _turn_of_department(view, steps, plans)),
        tuple(_blockers(view, steps, plans)),
    )


def _walk(view: View, steps: Iterable[Step], passed: Passed) -> Iterator[StepStatus]:
    for step in steps:
        status = _step(view, step, passed)
        if status.is_passed:
            passed |= {step.key}
        yield status


def _step(view: View, step: Step, passed: Passed) -> StepStatus:
    closed = tuple(lack for gate in step.entry for lack in entry_lacks(view, gate, passed))
    lacking = (
        *(lack for gate in step.exit for lack in exit_lacks(view, gate)),
        *unreadable(view.facts, step.key, view.department),
    )
    if not closed and not lacking:
        return StepStatus(step, StepStanding.COMPLETE, _proof(view, step))
    rule = skip_rule(view, step)
    if rule and not (closed and rule == Skip.EXISTS):  # a file made out of turn opens no gate
        return StepStatus(step, StepStanding.SKIPPED, rule)
    if closed:
        return StepStatus(step, StepStanding.PENDING, missing=closed)
    return StepStatus(
        step,
        StepStanding.RUNNING if _has_begun(view, step) else StepStanding.READY,
        missing=lacking,
    )


def _proof(view: View, step: Step) -> str:
    """Return the commit of the last artifact that completed the step."""
    committed = view.of_step(step) or view.of("plan")
    return next((artifact.commit for artifact in reversed(committed) if artifact.commit), "")


def _has_begun(view: View, step: Step) -> bool:
    if step.key == "design_review":
        return any(task.get("spec") for plan in view.plan_files for task in plan.tasks)
    if step.key == "implementation":
        return any(plan.standing is not PlanStanding.PENDING for plan in view.plans)
    return bool(view.of_step(step))


def passed_steps(steps: Iterable[StepStatus]) -> Passed:
    """Return the keys of the steps that no longer block anybody."""
    return frozenset(step.step.key for step in steps if step.is_passed)


def _blockers(
    view: View, steps: Iterable[StepStatus], plans: Iterable[PlanStatus]
) -> Iterator[str]:
    for step in steps:
        if step.step.key == "security" and any("FAIL" in lack for lack in step.missing):
            yield "security FAIL: hard stop, only the user decides"
    for plan in plans:
        if plan.blocked_by and plan.standing is PlanStanding.PENDING:
            yield f"plan {plan.id} waits for {', '.join(plan.blocked_by)}"
        if plan.standing is PlanStanding.FAILED:
            yield f"plan {plan.id} failed"
    yield from unreadable(view.facts, "", view.department)
    yield from (lack for step in steps for lack in step.missing if "approval_gates." in lack)


def _turn_of_department(
    view: View, steps: tuple[StepStatus, ...], plans: tuple[PlanStatus, ...]
) -> Next | None:
    """Return the agent of the first open step. A person starts those that work only on request."""
    on_request = view.config.documenter == "on_request"
    for step in steps:
        if step.step.key == "documentation" and on_request:
            continue
        if step.standing in (StepStanding.READY, StepStanding.RUNNING):
            department = view.department or DEFAULT_DEPARTMENT
            if step.step.key == "implementation":
                task, why = _task(plans)
                why = why or _explain_reopening(view, step.step)
                return _next_in(step.step, department)._replace(task=task, why=why)
            return _next_in(
                step.step,
                department,
                _find_owing_role(view, step.step),
                _explain_reopening(view, step.step),
            )
    is_due = "code_review" in (passed := passed_steps(steps)) and "qa" not in passed
    if is_due and (why := next(post_phase_failure(view), "")):
        lead = name_in(Role.LEAD, view.department or DEFAULT_DEPARTMENT)
        return Next("qa", lead, (".qa-gate-results.jsonl",), why=why)
    return None


def _find_owing_role(view: View, step: Step) -> Role:
    """Return which role of a step still has to write its part, or has to write it again.

    It is the first role while all or none have written.
    """
    made = {name.partition(".")[0] for name in step.outputs}
    for role in step.agents:
        own = {name.partition(".")[0] for name in AGENT_BY_NAME[role].produces} & made
        if any(not view.of(kind) or any(_objections(view, kind)) for kind in own):
            return role
    return step.agents[0]


def _objections(view: View, kind: str) -> Iterator[str]:
    """Yield why a verdict has to be given again: what contradicts it, and what came after it."""
    if kind not in JUDGED_BY:
        return
    for artifact in view.of(kind):
        for contradiction in contradictions_in(view.facts, artifact):
            yield f"{artifact.place.name}: {contradiction.what}"
    for why in came_later(view.facts, kind, view.department):
        yield f"{why} ({_NEW_BYTES})"


def _explain_reopening(view: View, step: Step) -> str:
    """Return what cannot be read or was taken back, or why a step's verdict does not count; empty
    for nothing.
    """
    kinds = [name.partition(".")[0] for name in step.outputs]
    reasons = chain(
        unreadable(view.facts, step.key, view.department),
        withdrawn_from(view.facts, step.key, view.department),
        (why for kind in kinds for why in _objections(view, kind)),
    )
    return next(reasons, "")


_NEW_BYTES = (
    "a verdict only counts again if its file changes; the same verdict on the same day needs the "
    'time: "dt":"2026-02-19T10:30:00Z", or one more line if it has no dt'
)


def _turn_after_verdict(facts: PhaseFacts, turn: Next | None) -> Next | None:
    """Return who acts: at the delivery, whoever the last verdict sends the work to.

    At the sign-off, add its command.
    """
    if turn and turn.step == "signoff":
        return turn._replace(command=SIGN_OFF_COMMAND.format(phase=facts.spelled))
    routed = route_of_verdict(facts) if turn and turn.step == "delivery" else None
    return Next("delivery", routed.agent, routed.inputs) if routed else turn


_TAKE_OVER = frozenset({"critique", "architecture"})
"""Steps that receive the handoff of the phase before."""


def _add_handoff(facts: PhaseFacts, turn: Next | None) -> Next | None:
    if turn is None or not facts.handed_over or turn.step not in _TAKE_OVER:
        return turn
    return turn._replace(inputs=(*turn.inputs, facts.handed_over))


def _turn_of_phase(
    departments: tuple[DepartmentStatus, ...],
    before: tuple[StepStatus, ...],
    after: tuple[StepStatus, ...],
) -> Next | None:
    for step in before:
        if step.standing is StepStanding.PENDING:
            return _next_in(step.step, DEFAULT_DEPARTMENT, role=Role.ANALYZE)
        if not step.is_passed:
            return _next_in(step.step, DEFAULT_DEPARTMENT)
    first = next((status.next for status in departments if status.next), None)
    if first:
        return first
    leading = departments[0].department
    return next((_next_in(step.step, leading) for step in after if step.standing in _OPEN), None)


_OPEN = (StepStanding.READY, StepStanding.RUNNING)


def _next_in(step: Step, department: Dept, role: Role | None = None, why: str = "") -> Next:
    return Next(step.key, name_in(role or step.agents[0], department), step.inputs, why=why)


def _task(plans: tuple[PlanStatus, ...]) -> tuple[str, str]:
    """Return the lowest open wave's first task without a commit, and what its summary lacks."""
    return next(tasks_of_wave(plans), ("", ""))


def tasks_of_wave(plans: Iterable[PlanStatus]) -> Iterator[tuple[str, str]]:
    """Yield of each plan of the lowest open wave its first task without a commit, or else its
    summary, with what the summary lacks.
    """
    able = [plan for plan in plans if not (plan.is_done or plan.blocked_by)]
    lowest = min((plan.wave for plan in able), default=0)
    for plan in sorted(able, key=lambda plan: plan.id):
        if plan.wave == lowest:
            tasks = sorted(plan.tasks, key=lambda task: (task.layer, task.ref))
            first = next((str(task.ref) for task in tasks if not task.commit), f"{plan.id} summary")
            yield first, "; ".join(plan.missing)
