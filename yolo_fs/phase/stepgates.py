"""Binds each member of `EntryGate` and `ExitGate` to its predicate.

They decide when a step may begin and when it is complete. A predicate yields what is missing, one
sentence each; nothing means that it is met. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from yolo_fs.escalations.fold import open_of
from yolo_fs.evidence.facts import all_present
from yolo_fs.evidence.failures import (
    POST_PHASE,
    failures_of,
    owner_lacks,
    unreadable,
    withdrawn_from,
)
from yolo_fs.evidence.judged import came_after_sign_off, came_later
from yolo_fs.evidence.plan_status import PlanStanding, awaited_elsewhere
from yolo_fs.loops.repairs import passed_without_answer, unfinished_reviews
from yolo_fs.phase.approvals import explain_manual_qa, lack_of, owed_approval
from yolo_fs.phase.view import SHARED_KINDS, View
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME
from yolo_fs.protocol.gates import Outcome
from yolo_fs.protocol.workflow import EntryGate, ExitGate
from yolo_fs.schemas.contradictions import contradicted

Passed = frozenset[str]
"""Keys of the steps that are complete or skipped so far."""


def entry_lacks(view: View, gate: EntryGate, passed: Passed) -> tuple[str, ...]:
    """Return what keeps an entry gate closed."""
    return tuple(ENTRY[gate](view, passed))


def exit_lacks(view: View, gate: ExitGate) -> tuple[str, ...]:
    """Return what keeps an exit gate closed."""
    return tuple(EXIT[gate](view))


def stage_outcome(view: View) -> Outcome:
    """Return the decision of the gate from Architect to Lead: open critique sends the design
    back.
    """
    decided = str(
        next((line.get("stage_gate", "") for line in view.lines("architecture")), "")
    ).lower()
    if decided == Outcome.KILL.lower():
        return Outcome.KILL
    return (
        Outcome.RECYCLE
        if any(line.get("st") == "open" for line in view.lines("critique"))
        else Outcome.GO
    )


def _after(step: str) -> Callable[[View, Passed], Iterator[str]]:
    def lacks(_: View, passed: Passed) -> Iterator[str]:
        if step not in passed:
            yield f"step {step} is neither complete nor skipped"

    return lacks


def _analysis(view: View, _: Passed) -> Iterator[str]:
    if not view.facts.of_kind("analysis"):
        yield "no analysis.json"


def _check_stage_gate(view: View, _: Passed) -> Iterator[str]:
    outcome = stage_outcome(view)
    if outcome is Outcome.KILL:
        yield "the Architect decided Kill"
    for line in view.lines("critique"):
        if line.get("st") == "open":
            yield f"critique {line.get('id')} is open"


def _some_plan(view: View, _: Passed) -> Iterator[str]:
    if not view.plan_files:
        yield "no plan"


def _approved(view: View, passed: Passed) -> Iterator[str]:
    if "code_review" not in passed:
        yield from _check_review_approved(view)
        yield from _after("code_review")(view, passed)


def post_phase_failure(view: View) -> Iterator[str]:
    """Yield what the last record of the post-phase QA gate says against the phase."""
    last = next(
        (
            line
            for line in reversed(view.facts.lines_of("qa-gate-results"))
            if line.get("gl") == "post-phase"
        ),
        None,
    )
    if last is not None and last.get("r") == "FAIL":
        yield "the post-phase QA gate failed"
    for contradiction in contradicted("qa-gate-results", (last or {},)):
        yield f"the post-phase QA gate: {contradiction.what}"
    yield from withdrawn_from(view.facts, POST_PHASE)


def _check_qa_done(view: View, passed: Passed) -> Iterator[str]:
    """Require what QA waits for as well: where it is skipped, there may be nothing to audit yet."""
    yield from _after("qa")(view, passed)
    yield from _approved(view, passed)


def _check_security_done(view: View, passed: Passed) -> Iterator[str]:
    """Require QA as well as security: the audit may be switched off while QA has yet to pass."""
    yield from _after("qa")(view, passed)
    yield from _after("security")(view, passed)


def _check_signed_off(_: View, passed: Passed) -> Iterator[str]:
    """Document 002 puts it after security, the protocol after sign-off; both open it (10 #6)."""
    if not (passed & {"security", "signoff"} and "code_review" in passed):
        yield "neither security nor sign-off is done"


def _integrated(view: View, passed: Passed) -> Iterator[str]:
    """Where one department works, no gate stands between its last step and the delivery."""
    yield from _after("integration_gate")(view, passed)
    yield from _check_signed_off(view, passed)


ENTRY: Mapping[EntryGate, Callable[[View, Passed], Iterator[str]]] = {
    EntryGate.ANALYSIS: _analysis,
    EntryGate.SCOPE: _after("po"),
    EntryGate.PHASE_DIRECTORY: lambda _view, _passed: iter(()),
    EntryGate.CRITIQUE: _after("critique"),
    EntryGate.RESEARCH: _after("research"),
    EntryGate.ARCHITECTURE: _after("architecture"),
    EntryGate.STAGE_GATE: _check_stage_gate,
    EntryGate.PLANS: _some_plan,
    EntryGate.SPECS: lambda view, _: _specs(view),
    # A step that is complete has tests that are red; who skips it is asked for none.
    EntryGate.RED_TESTS: lambda _view, _passed: iter(()),
    EntryGate.SUMMARIES: lambda view, _: _summaries(view),
    EntryGate.REVIEW_APPROVED: _approved,
    EntryGate.POST_PHASE_QA: lambda view, _: post_phase_failure(view),
    EntryGate.QA_DONE: _check_qa_done,
    EntryGate.SECURITY_DONE: _check_security_done,
    EntryGate.SIGNED_OFF: _check_signed_off,
    EntryGate.INTEGRATION_DONE: _integrated,
}


def _present(kind: str, name: str) -> Callable[[View], Iterator[str]]:
    def lacks(view: View) -> Iterator[str]:
        if not view.of(kind):
            yield f"no valid {_named(view, name)}"

    return lacks


def _named(view: View, name: str) -> str:
    """Return how a file is called in the department; one that serves all needs no prefix."""
    kind = name.partition(".")[0]
    if view.department is None or kind in SHARED_KINDS:
        return name
    return f"{DEPARTMENT_BY_NAME[view.department].prefix}{name}"


def _check_scope_approved(view: View) -> Iterator[str]:
    if not any(
        line.get("status") == "PO-APPROVED" for line in view.facts.lines_of("scope-document")
    ):
        yield "no scope-document.json with status PO-APPROVED"


def _critique(view: View) -> Iterator[str]:
    """Findings without ratings count as a critique; partly rated ones are still being written."""
    lines = view.lines("critique")
    rated = [line for line in lines if line.keys() & {"cf", "rd"}]
    if not lines:
        yield f"no valid {_named(view, 'critique.jsonl')}"
    elif rated and not (all_present(lines, "cf") and all_present(lines, "rd")):
        yield "critique entries without confidence and round"


def _research(view: View) -> Iterator[str]:
    """Findings end the step; questions that wait for the Scout do not."""
    lines = view.lines("research")
    if not lines:
        yield "no valid research.jsonl"
    elif all(line.get("src") == "pending" for line in lines):
        yield "research.jsonl has questions and no finding"


def _dependencies(view: View) -> Iterator[str]:
    for plan in view.plan_files:
        for name in awaited_elsewhere(view.facts, plan):
            is_there = any(number == name for _, number in view.facts.plans_of_all)
            lacks = "which is not complete" if is_there else "and no phase has such a plan"
            yield f"plan {plan.id} needs plan {name} of another phase, {lacks}"


def _specs(view: View) -> Iterator[str]:
    if not view.plan_files:
        yield "no plan"
    for plan in view.plan_files:
        for task in plan.tasks:
            if not task.get("spec"):
                yield f"task {plan.id}/{task.get('id')} has no spec"


def _red_tests(view: View) -> Iterator[str]:
    lines = view.lines("test-plan")
    if not lines:
        yield f"no valid {_named(view, 'test-plan.jsonl')}"
    for line in lines:
        if line.get("red") is not True:
            yield f"the tests of {line.get('id')} are not red"
    tested = {str(line.get("plan")) for line in lines}
    for plan in view.plan_files if all_present(lines, "plan") else ():
        if str(plan.id) not in tested and any(task.get("ts") for task in plan.tasks):
            yield f"{_named(view, 'test-plan.jsonl')} has no test of plan {plan.id}"
            continue
        tasks = {str(task.get("id")): bool(task.get("ts")) for task in plan.tasks}
        ids = {str(line.get("id")) for line in lines if str(line.get("plan")) == str(plan.id)}
        for name in (task for task, has_tests in tasks.items() if has_tests and task not in ids):
            for other in sorted(ids - tasks.keys())[:1]:  # the tests of a task that is not there
                tests = f"{_named(view, 'test-plan.jsonl')} has tests of {plan.id}/{other}"
                yield f"{tests}, which is no task, and none of {name}"


def _summaries(view: View) -> Iterator[str]:
    if not view.plans:
        yield "no plan"
    for plan in view.plans:
        if plan.standing is PlanStanding.CLAIMED:
            yield f"plan {plan.id} is claimed: {'; '.join(plan.missing)}"
        elif not plan.is_done:
            yield f"plan {plan.id} is {plan.standing.value}"
    yield from withdrawn_from(view.facts, "implementation", view.department)


def _check_pending_escalations(view: View) -> Iterator[str]:
    """No record by itself ends an escalation: the log has to show that the task goes on."""
    yield from unreadable(view.facts, "", view.department)
    yield from withdrawn_from(view.facts, "", view.department)
    for escalation in open_of(view.facts, view.department):
        yield f"escalation {escalation.id} is {escalation.standing}: {escalation.agent} has to act"


def _check_review_approved(view: View) -> Iterator[str]:
    if not any("r" in line for line in view.lines("code-review")):
        yield f"no valid {_named(view, 'code-review.jsonl')}"
    lines = view.lines("code-review")
    reviewed = {str(line.get("plan")) for line in lines if "r" in line}
    for each in view.plan_files if lines else ():
        if str(each.id) not in reviewed:
            yield f"plan {each.id} is not reviewed"
    for plan, verdict, state in unfinished_reviews(view.facts, view.department):
        yield f"the review of plan {plan} says {verdict}: {state}"


def _check_review(view: View) -> Iterator[str]:
    lacks = tuple(_check_review_approved(view))
    yield from lacks or _approval(view, "code_review")


def _approval(view: View, step: str) -> Iterator[str]:
    """Yield what a person has yet to approve, once nothing else is lacking."""
    if view.department and (gate := owed_approval(view.facts, view.department, step)):
        yield lack_of(gate)


def _check_qa(view: View) -> Iterator[str]:
    yield from _present("verification", "verification.jsonl")(view)
    yield from _present("qa-code", "qa-code.jsonl")(view)
    yield from _find_failures(view, "qa")
    for kind in ("verification", "qa-code"):
        yield from came_later(view.facts, kind, view.department)


def _check_tested(view: View) -> Iterator[str]:
    lacks = tuple(_check_qa(view))
    yield from lacks
    if view.department and not lacks:
        yield from filter(None, [explain_manual_qa(view.facts, view.department)])


def _security(view: View) -> Iterator[str]:
    yield from _present("security-audit", "security-audit.jsonl")(view)
    yield from came_later(view.facts, "security-audit", view.department)


def _check_security_failures(view: View) -> Iterator[str]:
    yield from _find_failures(view, "security")
    if view.department and (stop := passed_without_answer(view.facts, view.department)):
        yield str(stop)


def _find_failures(view: View, step: str = "") -> Iterator[str]:
    yield from dict.fromkeys(map(str, failures_of(view.facts, step, view.department)))


def _check_state_complete(view: View) -> Iterator[str]:
    """A sign-off counts only for what existed when it was given."""
    facts, number = view.facts, int(view.facts.phase.number)
    states = [
        artifact.position
        for artifact in facts.of_kind("state")
        if any(line.get("st") == "complete" and line.get("ph") == number for line in artifact.lines)
    ]
    executions = [
        artifact.position
        for artifact in facts.of_kind("execution-state")
        if any(_says_complete(line) and line.get("phase") == number for line in artifact.lines)
    ]
    signed = [*states, *executions, *([facts.signed_off_at] if facts.signed_off else ())]
    unsigned = [tuple(came_after_sign_off(facts, position)) for position in signed]
    if not signed:
        yield f"no state.json that says phase {number} is complete"
    elif all(unsigned):
        yield f"the sign-off is older than {unsigned[-1][0]}"
    yield from _find_failures(view)
    yield from unreadable(facts)


def _says_complete(execution: Mapping[str, Any]) -> bool:
    """Return whether the phase is called complete: by evidence, or until then by a Lead."""
    declared = execution.get("declared")
    return "complete" in (
        execution.get("status"),
        declared.get("status") if isinstance(declared, dict) else None,
    )


def _delivery(view: View) -> Iterator[str]:
    last = next(reversed(view.facts.lines_of("po-qa-verdict")), None)
    if last is None:
        yield "no po-qa-verdict.jsonl"
    elif last.get("verdict") != "approve":
        yield f"the Product Owner says {last.get('verdict')}"
    later = [*came_later(view.facts, "po-qa-verdict", None)]
    yield from later
    if last and last.get("verdict") == "approve" and not later:
        yield from filter(None, [owner_lacks(view.facts)])


def _integration(view: View) -> Iterator[str]:
    last = next(reversed(view.facts.lines_of("integration-gate-result")), None)
    if last is None:
        yield "no integration-gate-result.jsonl"
    yield from _find_failures(view, "integration_gate")
    yield from came_later(view.facts, "integration-gate-result", None)


EXIT: Mapping[ExitGate, Callable[[View], Iterator[str]]] = {
    ExitGate.SCOPE_APPROVED: _check_scope_approved,
    ExitGate.CRITIQUE: _critique,
    ExitGate.RESEARCH: _research,
    ExitGate.ARCHITECTURE: _present("architecture", "architecture.toon"),
    ExitGate.EXECUTION_RUNNING: lambda view: _some_plan(view, frozenset()),
    ExitGate.DEPENDENCIES: _dependencies,
    ExitGate.SPECS: _specs,
    ExitGate.RED_TESTS: _red_tests,
    ExitGate.SUMMARIES: _summaries,
    ExitGate.NO_PENDING_ESCALATION: _check_pending_escalations,
    ExitGate.REVIEW_APPROVED: _check_review,
    ExitGate.DOCS: _present("docs", "docs.jsonl"),
    ExitGate.QA: _check_tested,
    ExitGate.SECURITY_AUDIT: _security,
    ExitGate.SECURITY_FAIL_STOPS: _check_security_failures,
    ExitGate.SECURITY_WARN_PAUSES: lambda view: _approval(view, "security"),
    ExitGate.STATE_COMPLETE: _check_state_complete,
    ExitGate.ROADMAP_UPDATED: _present("roadmap", "ROADMAP.md"),
    ExitGate.INTEGRATION_RESULT: _integration,
    ExitGate.DELIVERY_VERDICT: _delivery,
}
