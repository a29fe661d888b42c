"""One phase of the branch: what history proves of it, and everything that follows from that; above
all who has to act. Pure.

Whoever shows or decides where the team is asks a `Phase`. Each answer is computed when it is first
asked for, and kept. The fold names the first open step; a loop, an escalation or a stop says who in
it has to move. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import place_of_name
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Finding, safe, shortened
from yolo_fs.escalations.fold import as_committed, open_of
from yolo_fs.escalations.log import EscalationProgress, EscalationStage
from yolo_fs.evidence.facts import (
    OWNERS_DECISION,
    Filed,
    PhaseFacts,
    Switches,
    failures_of,
    plans_of,
)
from yolo_fs.handoffs.contents import faults_of_handoffs, handoff_into
from yolo_fs.loops.facts import Loop, LoopFacts, LoopProgress
from yolo_fs.loops.rounds import AFTER_REWORK, PATCH_FAILED, loop_of, loops
from yolo_fs.phase.gate_status import CheckResult, GateStatus
from yolo_fs.phase.gates import (
    gates_of,
    integration_checks_of,
    sentinels_of,
    sign_off,
)
from yolo_fs.phase.progress import DepartmentStatus, Next, PhaseStatus, fold
from yolo_fs.phase.view import View
from yolo_fs.phase.waits import Alarm, Wait, cycles, orphans, suppliers, waits_of
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept, Role, name_in
from yolo_fs.protocol.gates import GATE_BY_NAME, QA_REMEDIES, Decision, Outcome, Owed
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.protocol.workflow import STEP_BY_KEY


@dataclass(frozen=True)
class Phase:
    """One phase as of one commit."""

    facts: PhaseFacts

    @property
    def id(self) -> PhaseId:
        return self.facts.phase

    @cached_property
    def folded(self) -> PhaseStatus:
        """How far its steps are, each by its own evidence: what the gates ask."""
        return fold(self.facts)

    @cached_property
    def progress(self) -> PhaseStatus:
        """How far its steps, departments and plans are; never complete behind a closed gate."""
        status = self.folded
        closed = [gate for gate in self.gates if gate.blocking and not gate.is_open]
        if closed and (status.is_complete or self._is_past_departments):
            missing = [f"gate {gate.name} is closed: {gate.missing[0]}" for gate in closed]
            status = status.behind_gates(missing, asked_by_gate(closed[0]))
        if status.is_complete:  # what nobody waits for, such as documentation, is asked of nobody
            idle = tuple(one._replace(next=None) for one in status.departments)
            return status._replace(departments=idle, next=None)
        waiting = {
            Dept(wait.waiter): f"waits for {wait.need}"
            for wait in reversed(self.waits)
            if wait.waiter in self._behind_gates
        }
        turned = with_turns(self.facts, status, self._behind_gates, self.alarms)
        return turned.with_waiting(waiting)

    @property
    def _is_past_departments(self) -> bool:
        """Whether only steps of the whole phase are left, which closed gates or a FAIL hold up."""
        step = self.folded.next.step if self.folded.next else ""
        return step == "integration_gate" or (step == "signoff" and any(failures_of(self.facts)))

    @property
    def _behind_gates(self) -> dict[Dept, GateStatus | None]:
        """The departments that wait at a gate; None where another department ends at it."""
        gates = {f"gate:{gate.name}": gate for gate in self.gates}
        active = set(self.facts.switches.departments)
        found = [one for one in self.waits if one.waiter in active and one.on.startswith("gate:")]
        return {Dept(one.waiter): gates.get(one.on) for one in found}

    @property
    def free_departments(self) -> frozenset[Dept]:
        """The departments that no closed gate holds up."""
        return frozenset(self.facts.switches.departments) - self._behind_gates.keys()

    @property
    def is_complete(self) -> bool:
        """Whether the phase is signed off, and delivered where that is asked for."""
        return self.progress.is_complete

    @cached_property
    def behind(self) -> tuple[DepartmentStatus, ...]:
        """Departments whose part is not done."""
        return tuple(one for one in self.folded.departments if not one.is_complete)

    def held_up(self, department: Dept) -> tuple[str, ...]:
        """Return what keeps a department from going on that only somebody else can do away with:
        verdicts, escalations, and the gate that its wave waits for.
        """
        one = next(one for one in self.progress.departments if one.department is department)
        escalations = (
            f"{each.id} is {each.standing}: {each.agent} holds it"
            for each in open_of(self.facts, department)
            if not each.is_told
        )
        gates = (
            f"waits for {wait.on}: {wait.why}"
            for wait in self.waits
            if wait.waiter == department and wait.on.startswith("gate:")
        )
        return tuple(dict.fromkeys((*one.blockers, *escalations, *gates)))

    @cached_property
    def gates(self) -> tuple[GateStatus, ...]:
        """The gates of its departments, and the integration gate."""
        return gates_of(self)

    @cached_property
    def integration_checks(self) -> dict[str, CheckResult]:
        """Each check across departments: pass, fail or skip, with what fails it."""
        return integration_checks_of(self)

    @cached_property
    def sign_off(self) -> tuple[Decision, str]:
        """What the Owner is to decide by the matrix, and why."""
        return sign_off(self)

    @cached_property
    def sentinels(self) -> dict[str, str]:
        """The sentinel files that the evidence proves: file name → exact content."""
        return sentinels_of(self)

    @cached_property
    def waits(self) -> tuple[Wait, ...]:
        """Who waits for what, sorted."""
        return waits_of(self)

    @cached_property
    def alarms(self) -> tuple[Alarm, ...]:
        """Every deadlock, and every wait for something that nobody supplies."""
        return (*cycles(self.waits), *orphans(self.waits, suppliers(self)))

    @cached_property
    def escalations(self) -> tuple[EscalationProgress, ...]:
        """Who holds which escalation, as of the commit's own time."""
        return as_committed(self.facts)

    @cached_property
    def false_claims(self) -> tuple[Finding, ...]:
        """What handoffs claim and the branch does not have."""
        return faults_of_handoffs(self.facts)

    def work_out(self) -> None:
        """Work out whatever may be asked of the phase, for processes that are forked from here."""
        for part in type(self).__mro__:
            for name, member in vars(part).items():
                if isinstance(member, cached_property):
                    getattr(self, name)


Phases = Sequence[Phase]
"""Phases in the order of their numbers."""


def not_begun(phase: PhaseId, others: Phases, switches: Switches) -> Phase:
    """Return a phase of which the branch has nothing yet; `others`: those that it has."""
    switches = switches.of_phase(())
    if not others:
        return Phase(PhaseFacts(phase, (), switches))
    filed = [one for other in others for one in other.facts.filed]
    before = others[-1].facts
    return Phase(
        PhaseFacts(
            phase,
            tuple(one for one in before.filed if one.place.phase is None),
            switches,
            handed_over=handoff_into(phase, filed),
            earlier_plans=before.earlier_plans,
            at_s=before.at_s,
            home=before.home,
        )
    )


def with_filed(phases: Phases, filed: Iterable[Filed]) -> Phases:
    """Return the phases as they are once the branch has these artifacts of phases as well, as far
    as the known commits tell: a summary may name one that nobody has asked for.
    """
    found = {phase.id: phase for phase in phases}
    for one in filed:
        if one.place.phase is None:
            found = {key: _with(phase, one) for key, phase in found.items()}
        elif one.place.phase in found:
            found[one.place.phase] = _with(found[one.place.phase], one)
        elif phases:
            begun = not_begun(one.place.phase, phases, phases[-1].facts.switches)
            found[one.place.phase] = Phase(replace(begun.facts.with_filed(one), at_s=one.at_s))
    return tuple(found[key] for key in sorted(found))


def _with(phase: Phase, filed: Filed) -> Phase:
    return Phase(phase.facts.with_filed(filed))


_LOOPS_OF_STEP = {
    "po": (Loop.QUESTIONARY,),
    "implementation": (Loop.POST_TASK, Loop.POST_PLAN),
    "code_review": (Loop.CODE_REVIEW,),
    "qa": (Loop.QA,),
    "delivery": (Loop.FEEDBACK, Loop.MAJOR, Loop.PATCH),
}
"""Step → the loops that say who has to act in it, the first that is not over."""
_STEP_OF_LOOP = {kind: step for step, kinds in _LOOPS_OF_STEP.items() for kind in kinds} | {
    Loop.CRITIQUE: "critique",
    Loop.RESEARCH: "research",
}
"""Where an escalation of the loop takes place."""

ACCEPT_RISK = "accept_risk"
"""Kind of the decision by which the user accepts what a security audit has found."""
SURE_OF_INTENT = 0.6
"""Least confidence of an analysis, 0-1, that is acted on without asking the user."""

_PAUSING = frozenset({"blocking", "queued"})
"""States of a request for research whose asker waits for the answer."""


def with_turns(
    facts: PhaseFacts,
    folded: PhaseStatus,
    behind: Mapping[Dept, GateStatus | None],
    alarms: Sequence[Alarm],
) -> PhaseStatus:
    """Return the phase with who has to act in it.

    `behind`: departments that wait at a gate, and that gate, where it is more than another's
    completion; nobody is sent past it.
    """
    open_ = tuple(one for one in loops(loop_facts(facts)) if not one.is_over)
    turns = _Turns(facts, open_, alarms)
    if unsure := _unsure(facts, folded):
        nobody = tuple(one._replace(next=None) for one in folded.departments)
        return folded._replace(departments=nobody, next=unsure)
    if folded.next is not None and folded.next.step == "po":
        waiting = tuple(one._replace(next=None) for one in folded.departments)
        return folded._replace(departments=waiting, next=turns.of_phase(folded.next))
    departments = tuple(one._replace(next=turns.of_department(one)) for one in folded.departments)
    able = sorted((one for one in departments if one.next), key=_dispatched(facts))
    free = [one for one in able if one.department not in behind]
    gates = [gate for one in able if (gate := behind.get(one.department))]
    if free or (able and not gates):
        asked = (free or able)[0].next
    elif gates:
        asked = asked_by_gate(gates[0])
    else:
        asked = turns.of_phase(folded.next) if folded.next else None
    asked = turns.of_delivery() or asked
    if asked and asked.step == "integration_gate":
        asked = _after_failed_patch(open_) or _mends_integration(facts) or asked
    return folded._replace(departments=departments, next=asked)


def _after_failed_patch(open_: Sequence[LoopProgress]) -> Next | None:
    """A patch that fails is no matter of the gate any more: the Product Owner scopes anew."""
    failed = (one for one in open_ if one.kind is Loop.PATCH and one.state == PATCH_FAILED)
    inputs = ("po-qa-verdict.jsonl", "integration-gate-result.jsonl")
    return next((Next("delivery", one.next, inputs, why=str(one)) for one in failed), None)


def _mends_integration(facts: PhaseFacts) -> Next | None:
    """After a FAIL the Lead of the file that shows it acts, the Owner where there is none; the gate
    runs again once something of it was committed.
    """
    for filed in facts.of_kind("integration-gate-result"):
        last = filed.lines[-1] if filed.lines else {}
        since = [one.at_s for kind in _INTEGRATED for one in facts.of_kind(kind)]
        is_mended = any(at_s > filed.at_s for at_s in since)
        is_mended |= any(one.at_s >= filed.at_s for one in facts.work)
        if last.get("r") != "FAIL" or is_mended:
            return None
        failure: Mapping[str, Any] = next(iter(last.get("failures") or ()), {})
        file, detail = str(failure.get("file") or ""), str(failure.get("detail") or "")
        place = place_of_name(file.rpartition("/")[2])
        several = facts.switches.several_departments
        agent = Role.OWNER.value if several else Role.LEAD.value
        if place:
            agent = name_in(Role.LEAD, place.artifact.made_by or place.department)
        why = f"the integration gate says FAIL: {safe(detail) or 'without a reason'}"
        asked = Next("integration_gate", agent, (filed.place.name,), why=why)
        return _assigned_after(facts, asked) if place or not several else asked
    return None


def _assigned_after(facts: PhaseFacts, asked: Next) -> Next:
    """Return a Lead's turn after a FAIL with its command, or, once it has assigned a task, the
    Dev's.
    """
    known = loop_facts(facts)
    failed = max((one.order for one in known.of("integration-gate-result")), default=0)
    department = AGENT_BY_NAME[asked.agent].department or DEFAULT_DEPARTMENT
    tasks = tasks_of(facts, department)
    if known.is_assigned(failed, asked.agent, tasks):
        return asked._replace(agent=name_in(Role.DEV, department))
    command = assigning(asked.agent, tasks)
    return asked._replace(command=command)


def tasks_of(facts: PhaseFacts, department: Dept) -> tuple[str, ...]:
    """Return the tasks of a department's plans, `NN-MM/Tk`."""
    plans = plans_of(facts, department)
    return tuple(f"{plan.id}/{one.get('id')}" for plan in plans for one in plan.tasks)


def assigning(lead: str, tasks: Sequence[str]) -> str:
    """Return the command by which a Lead has a task done again; empty where there is none."""
    return f"yolo-fs decide assign {tasks[0]} --as {lead} --reason …" if tasks else ""


_INTEGRATED = ("api-contracts", "component-specs", "design-tokens", "user-flows",
               "design-handoff", "dept-handoff", "test-results", "summary")  # fmt: skip
"""Kinds that the integration gate compares."""


def _unsure(facts: PhaseFacts, folded: PhaseStatus) -> Next | None:
    """The user is asked what is meant, while nothing was built on an analysis that is in doubt."""
    line = next(iter(facts.lines_of("analysis")), {})
    confidence = line.get("confidence")
    begun = any(one.steps[0].is_passed for one in folded.departments)
    if begun or not isinstance(confidence, int | float) or confidence >= SURE_OF_INTENT:
        return None
    why = (
        f"the analysis is {confidence} sure of the intent; below {SURE_OF_INTENT} the user is asked"
    )
    return Next("po", Role.USER, ("analysis.json",), why=why)


def _dispatched(facts: PhaseFacts) -> Callable[[DepartmentStatus], int]:
    """Return the place of a department in the order that the Owner's last review sets."""
    order = facts.switches.order
    return lambda one: order.index(one.department) if one.department in order else len(order)


def asked_by_gate(gate: GateStatus, at: int = 0) -> Next:
    """Return who owes what keeps a gate closed: the file's writer, else the opener's Lead.

    `at`: which of the missing pieces.
    """
    lack, row = gate.missing[at], GATE_BY_NAME.get(gate.name)
    place = place_of_name(lack.file)
    department = DEFAULT_DEPARTMENT
    if place:
        department = place.artifact.made_by or Dept(place.department)
    step = STEP_BY_KEY[place.artifact.step if place and place.artifact.step else "signoff"]
    if row and row.owed_by is Owed.REQUIRED and department not in row.requires:
        department = row.requires[0]
    why = f"gate {gate.name} is closed: {lack}"
    return Next(step.key, name_in(step.agents[0], department), (lack.file,), why=why)


def _lacks_task(asked: Next) -> bool:
    """Return whether a department is to implement, and each of its plans waits for another."""
    return asked.step == "implementation" and not asked.task


def act_of(one: EscalationProgress) -> tuple[str, str]:
    """Return what whoever holds an escalation is to do, and the command for it; none where the
    task itself goes on.
    """
    decide = f"yolo-fs escalate resolve {one.id} --by {one.agent} --decision …"
    if one.holder is Role.USER:
        decide = f"yolo-fs answer {one.id} {'CHOICE' if one.options else '--text TEXT'}"
    if one.is_told and one.origin is Role.SENIOR:
        return f"specifies {one.id.task} anew by the decision: {safe(one.decision, 200)}", ""
    if one.is_told:
        return f"goes on with {one.id.task}: {safe(one.decision, 200)}", ""
    if one.standing is EscalationStage.DESCENDING:
        below = name_in(one.below(one.holder), one.department)
        return f"passes the decision {safe(one.decision, 200)!r} on to {below}", decide
    choice = f" ({' or '.join(safe(each, 80) for each in one.options)})" if one.options else ""
    return f"answers {one.id}{choice}: {safe(one.question, 200)}", decide


def loop_facts(facts: PhaseFacts) -> LoopFacts:
    """Return what the loops ask for, as of the commit's own time."""
    return LoopFacts(facts, facts.at_s, facts.versions, facts.work)


class _Turns(NamedTuple):
    facts: PhaseFacts
    loops: tuple[LoopProgress, ...]
    """Those that somebody has to go on with."""
    alarms: Sequence[Alarm]

    def of_phase(self, asked: Next) -> Next:
        """Return whose move it is in a step that the phase has once."""
        if asked.why:
            return asked
        loop = next(self._of_step(asked.step), None)
        if loop is not None:
            return asked._replace(agent=loop.next, why=str(loop))
        if failure := next(failures_of(self.facts), None):
            agent = Role.OWNER if failure.step == OWNERS_DECISION else asked.agent
            return asked._replace(agent=agent, why=failure.what, command="")
        return asked

    def of_delivery(self) -> Next | None:
        """Return whose move it is while the work is scoped or patched anew after a verdict; what it
        comes to is judged by the steps as ever.
        """
        for loop in self.loops:
            if loop.kind in (Loop.MAJOR, Loop.PATCH) and loop.state not in AFTER_REWORK:
                return Next("delivery", loop.next, STEP_BY_KEY["delivery"].inputs, why=str(loop))
        return None

    def of_department(self, status: DepartmentStatus) -> Next | None:
        """Return whose move it is in a department; None when its part is done, or when it waits."""
        candidates = (
            self._held(status),
            self._stopped(status),
            self._criticised(status),
            self._researched(status),
            self._looped(status),
        )
        found = next((one for one in candidates if one), status.next)
        return (
            self._unblocked(status)
            if found and found == status.next and _lacks_task(found)
            else found
        )

    def _held(self, status: DepartmentStatus) -> Next | None:
        """Whoever holds an escalation of the department has to answer it."""
        for one in open_of(self.facts, status.department):
            loop = loop_of(one, self.loops) if one.is_told else None
            if loop and self._is_taken_up(one, status.department):
                step = _STEP_OF_LOOP[loop.kind]
                return Next(step, loop.next, STEP_BY_KEY[step].inputs, why=str(loop))
            why = f"escalation {one.id} is {one.standing}: {one.agent} holds it"
            act, command = act_of(one)
            task, inputs = str(one.id.task), ("escalation.jsonl",)
            return Next("implementation", one.agent, inputs, task, why, command, act)
        return None

    def _is_taken_up(self, one: EscalationProgress, department: Dept) -> bool:
        """Return whether what was decided of a Senior's escalation goes on in its loop: once the
        Senior has specified the work anew, or somebody has done it.
        """
        told_s = int(one.since.timestamp())
        done_s = (
            *(plan.at_s for plan in self.facts.of_kind("plan", department)),
            *(work.at_s for work in self.facts.work),
        )
        return one.origin is not Role.SENIOR or max(done_s, default=0) >= told_s

    def _stopped(self, status: DepartmentStatus) -> Next | None:
        current = status.current
        if current is None:
            return None
        if current.step.key == "security" and any(
            failures_of(self.facts, "security", status.department)
        ):
            if why := self._audits_again(status.department):
                auditor = name_in(Role.SECURITY, status.department)
                return Next("security", auditor, current.step.inputs, why=why)
            why = "security FAIL: hard stop, only the user decides"
            return Next("security", Role.USER, ("security-audit.jsonl",), why=why)
        if current.step.key == "planning" and status.stage is not Outcome.GO:
            check = f"'yolo-fs workflow check {current.step.key}'"
            lacks = shortened(current.missing, 3, shown_by=check, between="; ")
            why = f"stage gate {status.stage}: {lacks}"
            if status.stage is Outcome.KILL:
                return Next("architecture", Role.USER, ("architecture.toon",), why=why)
            architect = name_in(Role.ARCHITECT, status.department)
            return Next("architecture", architect, ("critique.jsonl",), why=why)
        return None

    def _audits_again(self, department: Dept) -> str:
        """Return why Security looks again at what it failed; empty while the user has to decide.

        The user accepts the risk by a record, or decides on the escalation of Security, whereupon
        the work is mended.
        """
        known = loop_facts(self.facts)
        failed = max((one.order for one in known.of("security-audit", department)), default=0)
        accepted = known.decisions(ACCEPT_RISK, department)
        if any(agent == Role.USER and order >= failed for agent, order in accepted):
            return "the user accepted the risk"
        is_decided = any(
            one.origin is Role.SECURITY and one.decision and one.department == department
            for one in as_committed(self.facts)
        )
        if is_decided and known.is_worked_on(failed, department):
            return "the user decided, and work was committed since the audit"
        return ""

    def _criticised(self, status: DepartmentStatus) -> Next | None:
        """The Critic goes on until it is sure or out of rounds, while no design builds on it."""
        current = status.current
        if current is None or current.step.key not in ("research", "architecture"):
            return None
        filed = next(iter(View(self.facts, status.department).of("critique")), None)
        for loop in self.loops:
            if filed and loop.kind is Loop.CRITIQUE and loop.of == filed.place.department:
                return Next("critique", loop.next, STEP_BY_KEY["critique"].inputs, why=str(loop))
        return None

    def _researched(self, status: DepartmentStatus) -> Next | None:
        """The Scout answers before anything else while an agent of the department waits for it."""
        waiting = [
            line.get("q")
            for line in self.facts.lines_of("research", status.department)
            if line.get("src") == "pending"
        ]
        for loop in self.loops:
            if loop.kind is Loop.RESEARCH and loop.of in waiting and loop.state in _PAUSING:
                return Next("research", Role.SCOUT, ("research.jsonl",), why=str(loop))
        return None

    def _looped(self, status: DepartmentStatus) -> Next | None:
        current = status.current
        if current is None or status.next is None:
            return None
        plans = {str(plan.id) for plan in status.plans}
        for loop in self._of_step(current.step.key):
            if loop.of == status.department or loop.of.partition("/")[0] in plans:
                failed = failures_of(self.facts, current.step.key, status.department)
                inputs = dict.fromkeys((*current.step.inputs, *(one.file for one in failed)))
                asked = Next(current.step.key, loop.next, tuple(inputs), why=str(loop))
                return asked._replace(command=self._assigning(loop, status.department))
        return None

    def _assigning(self, loop: LoopProgress, department: Dept) -> str:
        """Return the command by which a Lead assigns what QA has failed; empty for other turns."""
        lead = name_in(Role.LEAD, department)
        is_to_assign = loop.kind is Loop.QA and loop.what.startswith(QA_REMEDIES[0].moves[0].text)
        if not is_to_assign or loop.next != lead:
            return ""
        return assigning(lead, tasks_of(self.facts, department))

    def _unblocked(self, status: DepartmentStatus) -> Next | None:
        """Who ends an endless wait: the Lead; None where others only have to go on."""
        names = {status.department.value, *(str(plan.id) for plan in status.plans)}
        for alarm in self.alarms:
            if plans := sorted(names & set(alarm.names) & {str(plan.id) for plan in status.plans}):
                lead = name_in(Role.LEAD, status.department)
                return Next("implementation", lead, (f"{plans[0]}.plan.jsonl",), why=str(alarm))
        return None

    def _of_step(self, step: str) -> Iterator[LoopProgress]:
        wanted = _LOOPS_OF_STEP.get(step, ())
        for kind in wanted:
            yield from (loop for loop in self.loops if loop.kind is kind)
