"""Whose turn it is in a phase, and what they do.

The fold names the first open step. A loop, an escalation or a stop decides who has to act in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import place_of_name
from yolo_fs.authority.actors import name_at_work
from yolo_fs.core.reasons import FETCH_LACKING, safe, shortened
from yolo_fs.escalations.fold import open_of
from yolo_fs.escalations.log import EscalationProgress, act_of
from yolo_fs.evidence.dependencies import is_elsewhere
from yolo_fs.evidence.facts import (
    PhaseFacts,
    WorkflowOptions,
    left_by_reverts,
    paths_in,
    plans_of,
    touches,
)
from yolo_fs.evidence.failures import (
    OWNERS_DECISION,
    failures_of,
    find_unreadable,
    unreadable,
    withdrawn_from,
)
from yolo_fs.evidence.judged import INTEGRATED
from yolo_fs.loops.facts import Loop, LoopProgress, loop_facts
from yolo_fs.loops.repairs import (
    ESCALATED,
    RISK_ACCEPTED,
    end_of_security_fail,
    is_security_decided,
    passed_without_answer,
)
from yolo_fs.loops.rounds import (
    AFTER_REWORK,
    CLARIFIED_AGAIN,
    PATCH_FAILED,
    PATCHES_USED_UP,
    loop_of,
    loops,
)
from yolo_fs.phase.approvals import (
    MANUAL_QA,
    explain_manual_qa,
    is_test_unheard,
    lack_of,
    owed_approval,
)
from yolo_fs.phase.gate_status import GateStatus
from yolo_fs.phase.progress import DepartmentStatus, Next, PhaseStatus, StepStatus
from yolo_fs.phase.view import View
from yolo_fs.phase.waits import Alarm, name_plan
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, DEPARTMENT_BY_NAME, Dept, Role, name_in
from yolo_fs.protocol.gates import GATE_BY_NAME, QA_REMEDIES, Outcome, Owed
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.protocol.workflow import STEP_BY_KEY

_LOOPS_OF_STEP = {
    "po": (Loop.QUESTIONARY,),
    "implementation": (Loop.POST_TASK, Loop.POST_PLAN),
    "code_review": (Loop.CODE_REVIEW,),
    "qa": (Loop.QA,),
    "delivery": (Loop.FEEDBACK, Loop.MAJOR, Loop.PATCH),
}
"""Step → loops that decide who has to act in it. The first one that is not over counts."""
_STEP_OF_LOOP = {kind: step for step, kinds in _LOOPS_OF_STEP.items() for kind in kinds} | {
    Loop.CRITIQUE: "critique",
    Loop.RESEARCH: "research",
}
"""Loop → step in which its escalation takes place."""

SURE_OF_INTENT = 0.6
"""Minimum confidence of an analysis, 0-1, for acting on it without asking the user."""

_PAUSING = frozenset({"blocking", "queued"})
"""States of a research request in which the asker waits for the answer."""


def with_turns(
    facts: PhaseFacts,
    folded: PhaseStatus,
    behind: Mapping[Dept, GateStatus | None],
    alarms: Sequence[Alarm],
) -> PhaseStatus:
    """Return the phase with who has to act in it, and what each does.

    `behind`: departments that wait at a gate, with the gate where it is more than another's
    completion. Nobody is sent past it.
    """
    status_of_phase = _with_agents(facts, folded, behind, alarms)
    departments = tuple(
        status._replace(next=_say_deed(status.next)) for status in status_of_phase.departments
    )
    return status_of_phase._replace(departments=departments, next=_say_deed(status_of_phase.next))


def _with_agents(
    facts: PhaseFacts,
    folded: PhaseStatus,
    behind: Mapping[Dept, GateStatus | None],
    alarms: Sequence[Alarm],
) -> PhaseStatus:
    """Return the phase with who has to act in it, for `with_turns`."""
    open_ = tuple(loop for loop in loops(loop_facts(facts)) if not loop.is_over)
    turns = _Turns(facts, open_, alarms)
    if unsure := _turn_to_clarify_intent(facts, folded):
        nobody = tuple(status._replace(next=None) for status in folded.departments)
        return folded._replace(departments=nobody, next=unsure)
    if folded.next is not None and folded.next.step == "po":
        waiting = tuple(status._replace(next=None) for status in folded.departments)
        return folded._replace(departments=waiting, next=turns.of_phase(folded.next))
    departments = tuple(
        status._replace(next=turns.of_department(status)) for status in folded.departments
    )
    able = sorted((status for status in departments if status.next), key=_dispatched(facts))
    free = [status for status in able if status.department not in behind]
    gates = [gate for status in able if (gate := behind.get(status.department))]
    if free or (able and not gates):
        turn = (free or able)[0].next
    elif gates:
        turn = asked_by_gate(gates[0], facts.options)
    else:
        turn = turns.of_phase(folded.next) if folded.next else None
    turn = turns.of_delivery() or turn
    if turn and turn.step == "integration_gate":
        turn = _turn_after_failed_patch(open_) or _turn_to_repair_integration(facts) or turn
    return folded._replace(departments=departments, next=turn)


def _turn_after_failed_patch(open_: Sequence[LoopProgress]) -> Next | None:
    """Return the Product Owner's turn to re-scope after a failed patch: the gate no longer
    matters.
    """
    failed = (loop for loop in open_ if loop.kind is Loop.PATCH and loop.state == PATCH_FAILED)
    inputs = ("po-qa-verdict.jsonl", "integration-gate-result.jsonl")
    return next(
        (_in_words(loop, Next("delivery", loop.next, inputs, why=str(loop))) for loop in failed),
        None,
    )


def _turn_to_repair_integration(facts: PhaseFacts) -> Next | None:
    """Return who repairs a FAIL: the Lead of the file that shows it, or else the Owner.

    The gate runs again once part of the repair is committed.
    """
    for committed in facts.of_kind("integration-gate-result"):
        last = committed.lines[-1] if committed.lines else {}
        handed = (artifact.position for kind in INTEGRATED for artifact in facts.of_kind(kind))
        later = (work for work in facts.work if work.position > committed.position)
        is_handed = any(position > committed.position for position in handed)
        is_mended = is_handed or bool(left_by_reverts(later))
        if last.get("r") != "FAIL" or is_mended:
            return None
        failure: Mapping[str, Any] = next(iter(last.get("failures") or ()), {})
        file, detail = str(failure.get("file") or ""), str(failure.get("detail") or "")
        department = _department_of(facts, file)
        lead = name_in(Role.LEAD, department) if department else Role.OWNER.value
        agent = name_at_work(lead, facts.options)
        why = f"the integration gate says FAIL: {safe(detail) or 'without a reason'}"
        turn = Next("integration_gate", agent, (committed.place.name,), why=why)
        return _assign_after_fail(facts, turn) if department else turn
    return None


def _department_of(facts: PhaseFacts, file: str) -> Dept | None:
    """Return whose file it is: its maker's, or of the one department that plans to touch it."""
    if place := place_of_name(file.rpartition("/")[2]):
        return place.artifact.made_by or Dept(place.department)
    working = facts.options.departments
    theirs = {plan.department for plan in facts.plans if touches(plan.files, {file})} or working
    return next(iter(theirs)) if len(theirs) == 1 else None


def _assign_after_fail(facts: PhaseFacts, turn: Next) -> Next:
    """Return a Lead's turn after a FAIL with its command, or the Dev's once a task is assigned."""
    known = loop_facts(facts)
    failed = max((version.order for version in known.of("integration-gate-result")), default=0)
    department = AGENT_BY_NAME[turn.agent].department or DEFAULT_DEPARTMENT
    last = [
        artifact.lines[-1]
        for artifact in facts.of_kind("integration-gate-result")
        if artifact.lines
    ]
    failures = [failure for line in last for failure in line.get("failures") or ()]
    tasks = tasks_of(facts, department, failures)
    if assigned := known.assigned(failed, turn.agent, tasks):
        dev = turn._replace(agent=name_in(Role.DEV, department))
        return _about_tasks(dev, assigned, "fixes {of}")
    command = assigning(turn.agent, tasks)
    return turn._replace(command=command)


_DOES: Mapping[tuple[str, str], str] = {
    (Loop.QA, Role.LEAD): "assigns what QA has failed",
    (Loop.QA, Role.SENIOR): "specifies {of} again",
    (Loop.QA, Role.DEV): "fixes {of}",
    (Loop.QA, Role.QA): "verifies again",
    (Loop.QA, Role.QA_CODE): "verifies again",
    (Loop.CODE_REVIEW, Role.DEV): "fixes what the review of {of} has found",
    (Loop.CODE_REVIEW, Role.SENIOR): "reviews {of}",
    (Loop.CODE_REVIEW, Role.LEAD): (
        "accepts {of} with known issues, or escalates it to the Architect"
    ),
    (Loop.POST_TASK, Role.DEV): "fixes {of}",
    (Loop.POST_PLAN, Role.DEV): "fixes {of}",
    (Loop.QA, Role.ARCHITECT): "re-evaluates the design",
    (Loop.CODE_REVIEW, Role.ARCHITECT): "changes the design, or decides on {of}",
    (Loop.PATCH, Role.SENIOR): "specifies the fix of the patch",
    (Loop.PATCH, Role.DEV): "does the patch",
    (Loop.PATCH, Role.INTEGRATION_GATE): "checks again what the patch fixes",
    (Loop.PATCH, Role.PO): "gives its next verdict",
    (Loop.MAJOR, Role.QUESTIONARY): "asks about what is re-scoped",
    (Loop.FEEDBACK, Role.PO): "answers the user's feedback",
    ("po", Role.ANALYZE): "classifies the intent",
    ("po", Role.PO): "approves the scope",
    ("po", Role.USER): "clarifies the intent",
    ("architecture", Role.USER): "decides whether the work is given up",
    ("qa", Role.LEAD): "assigns what the gate has failed",
    ("qa", Role.QA): "verifies the work",
    ("qa", Role.QA_CODE): "verifies the code",
    ("security", Role.SECURITY): "audits the work",
    ("integration_gate", Role.INTEGRATION_GATE): "validates what the departments hand over",
    ("integration_gate", Role.LEAD): "assigns what the integration gate has failed",
    ("integration_gate", Role.OWNER): "decides who fixes what the integration gate has failed",
    ("delivery", Role.PO): "gives its verdict on the result",
    ("delivery", Role.OWNER): "decides on the delivery",
    ("delivery", Role.SENIOR): "specifies the fix of the patch",
    ("signoff", Role.LEAD): "signs the phase off",
}
"""What a role does in a loop or a step whose name says no deed, or that of somebody else.

`{of}`: the tasks or the plan of a loop.
"""

_SAYS_DEED = frozenset({Loop.QUESTIONARY, Loop.MAJOR, Loop.FEEDBACK})
"""Loops whose `what` is a deed already."""
_ENDS_PATCHES = frozenset({PATCH_FAILED, PATCHES_USED_UP})


def _say_deed(turn: Next | None) -> Next | None:
    """Return a turn with what its agent does, where the step's name does not say it."""
    if turn is None or turn.act or turn.task:
        return turn
    row = AGENT_BY_NAME.get(turn.agent)
    role = row.role.value if row else turn.agent
    does = _DOES.get((turn.step, role))
    return turn._replace(act=does) if does else turn


def _about_tasks(turn: Next, tasks: Sequence[str], does: str) -> Next:
    """Return a turn in words, about the tasks that a Lead has assigned."""
    of = ", ".join(map(safe, tasks))
    return turn._replace(act=does.format(of=of), task=tasks[0] if len(tasks) == 1 else turn.task)


def _in_words(loop: LoopProgress, turn: Next) -> Next:
    """Return the turn of a loop with what its agent does in it."""
    row = AGENT_BY_NAME.get(turn.agent)
    does = _DOES.get((loop.kind, row.role)) if row else None
    if does is None and loop.kind in _SAYS_DEED:
        does = loop.what
    if loop.kind is Loop.QA and loop.what == QA_REMEDIES[-1].moves[0].text:
        does = "escalates what QA has failed to the Architect"
    if loop.state in _ENDS_PATCHES:
        does = "re-scopes: patches are used up or failed"
    if does is None:
        return turn
    if loop.tasks and "{of}" in does:
        turn = _about_tasks(turn, loop.tasks, does)
        is_specified = row is not None and row.role is Role.SENIOR  # a Dev is given the spec alone
        return turn._replace(inputs=(*turn.inputs, "decisions.jsonl")) if is_specified else turn
    of = "what QA has failed" if loop.kind is Loop.QA else safe(loop.of)
    return turn._replace(act=does.format(of=of))


def tasks_of(
    facts: PhaseFacts, department: Dept, failures: Iterable[Mapping[str, Any]] = ()
) -> tuple[str, ...]:
    """Return the tasks of a department's plans, `NN-MM/Tk`: first those that a verdict's failures
    name, by themselves or by a file of theirs.
    """
    named = {
        word.strip(".:") for failure in failures for word in _BETWEEN.split(_words_of(failure))
    }
    tasks = [
        (f"{plan.id}/{task.get('id')}", touches(frozenset(paths_in(task.get("f"))), named))
        for plan in plans_of(facts, department)
        for task in plan.tasks
    ]
    tasks.sort(key=lambda task: not (task[1] or task[0] in named))
    return tuple(name for name, _ in tasks)


_BETWEEN = re.compile(r"[\s,;()'\"`]+")


def _words_of(failure: Mapping[str, Any]) -> str:
    return " ".join(value for value in failure.values() if isinstance(value, str))


def _failures_in(lines: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield what a verification says against the work, below its header."""
    for line in lines[1:]:
        if line.get("r", "fail") == "fail" and line.get("sev") != "minor":
            yield line


def accepting(lead: str, plan: str) -> str:
    """Return the command by which a Lead accepts a plan with known issues."""
    return f"yolo-fs decide accept {plan} --as {lead} --reason …"


def assigning(lead: str, tasks: Sequence[str]) -> str:
    """Return the command by which a Lead has a task done again; empty where there is none."""
    return f"yolo-fs decide assign {tasks[0]} --as {lead} --reason …" if tasks else ""


def _turn_to_clarify_intent(facts: PhaseFacts, folded: PhaseStatus) -> Next | None:
    """Return the user's turn to clarify the intent, while nothing is built on a doubtful
    analysis.
    """
    line = next(iter(facts.lines_of("analysis")), {})
    confidence = line.get("confidence")
    begun = any(status.steps[0].is_passed for status in folded.departments)
    if begun or not isinstance(confidence, int | float) or confidence >= SURE_OF_INTENT:
        return None
    why = (
        f"the analysis is {confidence} sure of the intent; below {SURE_OF_INTENT} the user is asked"
    )
    return Next("po", Role.USER, ("analysis.json",), why=why)


def _dispatched(facts: PhaseFacts) -> Callable[[DepartmentStatus], int]:
    """Return a sort key: a department's position in the Owner's last review."""
    order = facts.options.order
    return lambda status: (
        order.index(status.department) if status.department in order else len(order)
    )


def asked_by_gate(gate: GateStatus, options: WorkflowOptions, at: int = 0) -> Next:
    """Return who owes what keeps a gate closed: the department that its line names, else the file's
    writer, else the opener's Lead. A department that is off owes nothing.

    `at`: index of the missing piece.
    """
    lack, row = gate.missing[at], GATE_BY_NAME.get(gate.name)
    place = place_of_name(lack.file)
    department = DEFAULT_DEPARTMENT
    if lack.owed_by:
        department = Dept(lack.owed_by)
    elif place:
        department = place.artifact.made_by or Dept(place.department)
    step = STEP_BY_KEY[place.artifact.step if place and place.artifact.step else "signoff"]
    if row and row.owed_by is Owed.REQUIRED and department not in row.requires:
        department = row.requires[0]
    why = f"gate {gate.name} is closed: {lack}"
    act = "" if place and place.artifact.step else "settles what is open"
    agent = name_at_work(name_in(step.agents[0], department), options)
    return Next(step.key, agent, (lack.file,), why=why, act=act)


def _lacks_task(turn: Next) -> bool:
    """Return whether a department has to implement, but all of its plans wait for others."""
    return turn.step == "implementation" and not turn.task


_OF_VERDICT = ("po-qa-verdict.jsonl", *STEP_BY_KEY["delivery"].inputs)


class _Turns(NamedTuple):
    facts: PhaseFacts
    loops: tuple[LoopProgress, ...]
    """Loops that somebody has to continue."""
    alarms: Sequence[Alarm]

    def of_phase(self, turn: Next) -> Next:
        """Return whose move it is in a step that the phase has once."""
        if turn.why:
            return turn
        loop = next(self._loops_at_step(turn.step), None)
        if loop is not None:
            return _in_words(loop, turn._replace(agent=loop.next, why=str(loop)))
        if failure := next(failures_of(self.facts), None):
            agent = Role.OWNER if failure.step == OWNERS_DECISION else turn.agent
            return turn._replace(agent=agent, why=failure.what, command="")
        if why := next(unreadable(self.facts), ""):
            return turn._replace(why=why, command="")
        return turn

    def of_delivery(self) -> Next | None:
        """Return whose turn it is while work is re-scoped or patched after a verdict.

        The usual steps judge the result.
        """
        for loop in self.loops:
            if loop.kind in (Loop.MAJOR, Loop.PATCH) and loop.state not in AFTER_REWORK:
                step = "po" if loop.state == CLARIFIED_AGAIN else "delivery"
                return _in_words(loop, Next(step, loop.next, _OF_VERDICT, why=str(loop)))
        return None

    def of_department(self, status: DepartmentStatus) -> Next | None:
        """Return whose move it is in a department; None when its part is done, or when it waits."""
        candidates = (
            self._turn_to_mend(status),
            self._held(status),
            self._stopped(status),
            self._turn_of_critic(status),
            self._turn_of_scout(status),
            self._turn_of_loop(status),
        )
        turn = next((candidate for candidate in candidates if candidate), status.next)
        if turn and turn == status.next and _lacks_task(turn):
            return self._turn_to_unblock(status, turn.step)
        if turn and turn == status.next and turn.step == "planning" and status.plans:
            lacks = status.current.missing if status.current else ()
            endless = self._turn_to_unblock(status, turn.step)
            return endless or turn._replace(why=next(iter(lacks), ""))
        return turn

    def _turn_to_mend(self, status: DepartmentStatus) -> Next | None:
        """Return the user's turn while a log that no step writes cannot be read, or is gone with
        an open question: nobody can answer what it holds. So it is with a file that is named after
        another phase, as no agent takes files off the branch.
        """
        if status.current is None:
            return None
        for why in withdrawn_from(self.facts, "", status.department):
            lost = next(artifact for artifact in self.facts.withdrawn if not artifact.step)
            does, command = f"brings the last {lost.name} back", f"git log -- {lost.path}"
            return Next(status.current.step.key, Role.USER, (), "", why, command, does)
        key, logs = status.current.step.key, find_unreadable(self.facts, "", status.department)
        for log in logs:
            does = f"repairs {log.name}, or restores its last good version"
            why, command = f"{log.name} cannot be read", f"yolo-fs validate {log.path}"
            return Next(key, Role.USER, (log.name,), "", why, command, does)
        for place in find_unreadable(self.facts, None, status.department):
            if place.plan and is_elsewhere(self.facts, str(place.plan)):
                does = f"moves {place.name} to its phase, or takes it off the branch"
                why = f"{place.name} is named after phase {place.plan.phase}"
                command = f"yolo-fs validate {place.path}"
                return Next(key, Role.USER, (place.name,), "", why, command, does)
        return None

    def _held(self, status: DepartmentStatus) -> Next | None:
        """Return the turn of whoever holds an escalation of the department and has to answer it."""
        for escalation in open_of(self.facts, status.department):
            loop = loop_of(escalation, self.loops)
            if loop and escalation.is_told and self._is_taken_up(escalation, status.department):
                return self._turn_in_loop(loop, _STEP_OF_LOOP[loop.kind], status.department)
            why = (
                f"escalation {escalation.id} is {escalation.standing}: {escalation.agent} has to "
                "act"
            )
            act, command = act_of(escalation)
            if loop and loop.state == ESCALATED and escalation.holder is Role.LEAD:
                accept = accepting(escalation.agent, loop.of)
                up = f"yolo-fs escalate raise {escalation.id} --by {escalation.agent} --reason …"
                why = f"{why}; it may accept {loop.of} with known issues ({accept}), "
                why += f"or escalate it to the Architect ({up})"
            task, inputs, agent = str(escalation.id.task), ("escalation.jsonl",), escalation.agent
            if escalation.is_told and escalation.origin is Role.SECURITY:  # it changes no source
                agent = name_in(Role.DEV, status.department)
            return Next("implementation", agent, inputs, task, why, command, act)
        return None

    def _is_taken_up(self, escalation: EscalationProgress, department: Dept) -> bool:
        """Return whether the decision on a Senior's escalation continues in its loop.

        It does once the Senior has specified the work anew, or somebody has done it.
        """
        told_s = int(escalation.since.timestamp())
        done_s = (
            *(plan.at_s for plan in self.facts.of_kind("plan", department)),
            *(work.at_s for work in self.facts.work),
        )
        return escalation.origin is not Role.SENIOR or max(done_s, default=0) >= told_s

    def _stopped(self, status: DepartmentStatus) -> Next | None:
        current = status.current
        if current is None:
            return None
        if current.step.key == "security" and self._is_stopped_by_security(status.department):
            if why := self._explain_new_audit(status.department):
                auditor = name_in(Role.SECURITY, status.department)
                return Next("security", auditor, current.step.inputs, why=why)
            passed = passed_without_answer(self.facts, status.department)
            if passed and not passed.is_known:
                does = "fetches what this clone lacks"
                inputs = ("security-audit.jsonl",)
                return Next("security", Role.USER, inputs, "", str(passed), FETCH_LACKING, does)
            why = "security FAIL: hard stop, only the user decides"
            does = "decides whether what security found is accepted, or is fixed first"
            command = self._command_to_decide(f"accept-risk {status.department}")
            return Next("security", Role.USER, ("security-audit.jsonl",), "", why, command, does)
        if turn := self._ask_person(status, current):
            return turn
        if current.step.key == "planning" and status.stage is not Outcome.GO:
            check = f"'yolo-fs workflow check {current.step.key} --phase {self.facts.spelled}'"
            lacks = shortened(current.missing, 3, shown_by=check, between="; ")
            why = f"stage gate {status.stage}: {lacks}"
            if status.stage is Outcome.KILL:
                return Next("architecture", Role.USER, ("architecture.toon",), why=why)
            architect = name_in(Role.ARCHITECT, status.department)
            read = View(self.facts, status.department).of("critique")
            open_in = tuple(artifact.place.name for artifact in read)
            does = "addresses what the critique has open, and changes the design where it has to"
            return Next("architecture", architect, open_in, why=why, act=does)
        return None

    def _command_to_decide(self, what: str) -> str:
        return f"yolo-fs decide {what} --phase {self.facts.spelled} --reason …"

    def _ask_person(self, status: DepartmentStatus, current: StepStatus) -> Next | None:
        """Return the user's turn at an approval gate, or where a test by hand is asked for."""
        key, department = current.step.key, status.department
        gate = owed_approval(self.facts, department, key)
        if gate and ("FAIL" in gate.results or current.missing == (lack_of(gate),)):
            committed = (
                artifact for kind in gate.kinds for artifact in self.facts.of_kind(kind, department)
            )
            inputs = tuple(artifact.place.name for artifact in committed)
            command = self._command_to_decide(f"approve {gate.key} {department}")
            why = f"approval_gates.{gate.key} is on"
            return Next(key, Role.USER, inputs, "", why, command, gate.asks)
        why = explain_manual_qa(self.facts, department) if key == "qa" else ""
        if why and current.missing == (why,):
            name = f"{DEPARTMENT_BY_NAME[department].prefix}{MANUAL_QA}.jsonl"
            is_there = any(self.facts.of_kind(MANUAL_QA, department))
            if is_test_unheard(self.facts, department):
                does = f"verifies what {name} has found"
                return Next(key, name_in(Role.QA, department), (name,), "", why, "", does)
            command = f"yolo-fs new {name} --phase {self.facts.spelled}"
            if is_there:
                command = f"yolo-fs validate {self.facts.folder}/{name}"
            does = f"tests by hand, and writes {name}"
            return Next(key, Role.USER, current.step.inputs, "", why, command, does)
        return None

    def _is_stopped_by_security(self, department: Dept) -> bool:
        """Return whether an audit says FAIL, or said so and nothing answered it."""
        failures = failures_of(self.facts, "security", department)
        return any(not each.is_contradiction for each in failures) or bool(
            passed_without_answer(self.facts, department)
        )

    def _explain_new_audit(self, department: Dept) -> str:
        """Return why Security audits again after a FAIL; empty while the user has to decide.

        The user accepts the risk by a record, or decides on Security's escalation, after which the
        work is repaired.
        """
        known = loop_facts(self.facts)
        failed = max(
            (version.order for version in known.of("security-audit", department)), default=0
        )
        if end_of_security_fail(known, department) == RISK_ACCEPTED:
            return RISK_ACCEPTED
        is_decided = is_security_decided(self.facts, department)
        if is_decided and known.is_worked_on(failed, department):
            return "the user decided, and work was committed since the audit"
        return ""

    def _turn_of_critic(self, status: DepartmentStatus) -> Next | None:
        """Return the Critic's turn until it is sure or out of rounds, while no design builds on
        it.
        """
        current = status.current
        if current is None or current.step.key not in ("research", "architecture"):
            return None
        committed = next(iter(View(self.facts, status.department).of("critique")), None)
        for loop in self.loops:
            if committed and loop.kind is Loop.CRITIQUE and loop.of == committed.place.department:
                return Next("critique", loop.next, STEP_BY_KEY["critique"].inputs, why=str(loop))
        return None

    def _turn_of_scout(self, status: DepartmentStatus) -> Next | None:
        """Return the Scout's turn: it answers first while an agent of the department waits for
        it.
        """
        waiting = [
            line.get("q")
            for line in self.facts.lines_of("research", status.department)
            if line.get("src") == "pending"
        ]
        for loop in self.loops:
            if loop.kind is Loop.RESEARCH and loop.of in waiting and loop.state in _PAUSING:
                return Next("research", Role.SCOUT, ("research.jsonl",), why=str(loop))
        return None

    def _turn_of_loop(self, status: DepartmentStatus) -> Next | None:
        current = status.current
        if current is None or status.next is None:
            return None
        plans = {str(plan.id) for plan in status.plans}
        for loop in self._loops_at_step(current.step.key):
            is_theirs = loop.department in (None, status.department)
            is_about = loop.of == status.department or loop.of.partition("/")[0] in plans
            if is_theirs and is_about:
                return self._turn_in_loop(loop, current.step.key, status.department)
        return None

    def _turn_in_loop(self, loop: LoopProgress, step: str, department: Dept) -> Next:
        """Return the turn of a loop: who acts, on what, and by which command."""
        failed = (failure.file for failure in failures_of(self.facts, step, department))
        inputs = tuple(dict.fromkeys((*STEP_BY_KEY[step].inputs, *failed)))
        turn = _in_words(loop, Next(step, loop.next, inputs, why=str(loop)))
        if loop.state == ESCALATED:
            return turn._replace(command=accepting(turn.agent, loop.of))
        return turn._replace(command=self._command_to_assign(loop, department))

    def _command_to_assign(self, loop: LoopProgress, department: Dept) -> str:
        """Return the command by which a Lead assigns what QA has failed; empty for other turns."""
        lead = name_in(Role.LEAD, department)
        is_to_assign = loop.kind is Loop.QA and loop.what.startswith(QA_REMEDIES[0].moves[0].text)
        if not is_to_assign or loop.next != lead:
            return ""
        verdicts = (
            artifact.lines
            for kind in ("verification", "qa-code")
            for artifact in self.facts.of_kind(kind, department)
            if artifact.lines and artifact.lines[0].get("r") == "FAIL"
        )
        failures = [failure for lines in verdicts for failure in _failures_in(lines)]
        return assigning(lead, tasks_of(self.facts, department, failures))

    def _turn_to_unblock(self, status: DepartmentStatus, step: str) -> Next | None:
        """Return the Lead, who ends an endless wait; None where others only have to go on."""
        department = status.department
        prefix = DEPARTMENT_BY_NAME[department].prefix
        names = {
            name_plan(self.facts, plan.id, department): f"{prefix}{plan.id}.plan.jsonl"
            for plan in status.plans
        }
        for alarm in self.alarms:
            if files := tuple(names[name] for name in sorted(names.keys() & set(alarm.names))):
                does = "ends the wait that nobody else can end"
                return Next(step, name_in(Role.LEAD, department), files, why=str(alarm), act=does)
        return None

    def _loops_at_step(self, step: str) -> Iterator[LoopProgress]:
        wanted = _LOOPS_OF_STEP.get(step, ())
        for kind in wanted:
            yield from (loop for loop in self.loops if loop.kind is kind)
