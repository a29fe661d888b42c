"""Loops over work that is reviewed or has failed; used by loop and step alike. Pure.

These are reviews of a plan, code review, QA remediation, the gates after a task and a plan, and the
Product Owner's verdict.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from yolo_fs.core.reasons import FETCH_LACKING
from yolo_fs.escalations.fold import as_committed
from yolo_fs.escalations.log import EscalationProgress
from yolo_fs.evidence.facts import (
    NOWHERE,
    PhaseFacts,
    Plan,
    Version,
    paths_in,
    plans_of,
    texts,
    touches,
)
from yolo_fs.evidence.failures import owner_lacks
from yolo_fs.evidence.judged import came_later, later_than
from yolo_fs.loops.facts import DecidedFact, Loop, LoopFacts, LoopProgress, Metrics, loop_facts
from yolo_fs.protocol.decisions import ACCEPT, ACCEPT_RISK
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept, Role, name_in
from yolo_fs.protocol.gates import CHANGE_CLASSES, QA_REMEDIES, REVIEW_REMEDIES, Weight
from yolo_fs.protocol.workflow import LIMIT_BY_KEY
from yolo_fs.schemas.contradictions import contradicted

_SEVERITIES = {severity: row.weight for row in CHANGE_CLASSES for severity in row.severities}
_CLASSIFY, _MINOR, _MAJOR, _CYCLE_2, _LEAD = REVIEW_REMEDIES


class Review(NamedTuple):
    """One review of a plan."""

    verdict: str
    cycle: int
    findings: tuple[tuple[str, str], ...]
    """Severity and issue of each."""
    day: str
    at_s: int
    order: int
    position: int = NOWHERE
    """Place of its commit in the order of the branch."""
    contradicted_by: str = ""
    """What an approval says against itself; empty if nothing."""

    @property
    def is_approval(self) -> bool:
        """Whether it approves; beside what is to be mended, no word of it does."""
        return self.verdict == "approve" and not self.contradicted_by

    @property
    def weight(self) -> Weight:
        """Severity of its findings taken together."""
        grave = any(_SEVERITIES.get(severity) is Weight.MAJOR for severity, _ in self.findings)
        is_major = grave or self.contradicted_by or not self.findings
        return Weight.MAJOR if is_major else Weight.MINOR

    def is_same(self, other: Review) -> bool:
        """Return whether a later version of the file only repeats this review."""
        same = ("verdict", "cycle", "findings", "day", "contradicted_by")
        return all(getattr(self, key) == getattr(other, key) for key in same)


def reviews_of(facts: LoopFacts, plan: Plan) -> list[Review]:
    """Return the reviews of a plan in the order in which they were committed."""
    reviews: list[Review] = []
    unheard: list[Review] = []
    kept: list[Review] = []
    for version in facts.of("code-review", plan.department):
        kept = []
        for header, body in _blocks(version.lines, str(plan.id)):
            findings = tuple((str(line.get("sev")), str(line.get("issue"))) for line in body)
            cycle = header.get("cycle")
            number = cycle if isinstance(cycle, int) else 1
            review = Review(
                str(header.get("r")),
                number,
                findings,
                str(header.get("dt")),
                version.at_s,
                version.order,
                version.position,
                _contradiction_in(facts.phase, version, (header, *body)),
            )
            kept.append(review)
            if any(review.is_same(other) for other in (*reviews, *unheard)):
                continue
            if _is_for_others(facts, plan, reviews, review):
                unheard.append(review)
                continue
            if reviews and _is_revised(facts, reviews[-1], review, plan):
                reviews.pop()
            reviews.append(review)
    while reviews and kept and not any(map(reviews[-1].is_same, kept)):
        if any(
            review.order > reviews[-1].order and any(map(review.is_same, kept))
            for review in unheard
        ):
            break  # the file has what was written over it
        reviews.pop()  # a revert took it back
    return reviews


def _is_for_others(facts: LoopFacts, plan: Plan, before: Sequence[Review], review: Review) -> bool:
    """Return whether a review approves, without anything new, what the last cycle refused: from
    then on the Lead or the Architect decides. What happened between two reviews of one commit, as
    after a squash, nobody can tell.
    """
    if not before or not review.is_approval or before[-1].weight is Weight.MINOR:
        return False
    last = before[-1]
    if (
        last.is_approval
        or last.order == review.order
        or cycles_left(facts, plan, before, review.at_s)
    ):
        return False
    is_designed = any(
        last.order < version.order <= review.order for version in facts.of("architecture")
    )
    return not is_designed and not _is_worked_on_between(facts, last, review, plan)


def _contradiction_in(
    facts: PhaseFacts, version: Version, review: Sequence[Mapping[str, Any]]
) -> str:
    """Return what a review says against itself, unless it was signed off."""
    if facts.is_signed(version.position):
        return ""
    return next((contradiction.what for contradiction in contradicted("code-review", review)), "")


def _is_revised(facts: LoopFacts, before: Review, after: Review, plan: Plan) -> bool:
    """Return whether a review was only rewritten: the same cycle, and no work in between."""
    between = _is_worked_on_between(facts, before, after, plan)
    return before.cycle == after.cycle and before.order != after.order and not between


def _is_worked_on_between(facts: LoopFacts, before: Review, after: Review, plan: Plan) -> bool:
    return facts.is_worked_on(before.order, plan.department, str(plan.id), before=after.order)


def _blocks(
    lines: Iterable[Mapping[str, Any]], plan: str
) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Yield each verdict on a plan with its findings; plans and cycles may share the file."""
    header: Mapping[str, Any] | None = None
    body: list[Mapping[str, Any]] = []
    for line in [*lines, {"r": None}]:
        if "r" not in line:
            body += [line] if line.get("plan") in (None, plan) else []
            continue
        if header is not None:
            yield header, body
        header, body = (line if str(line.get("plan")) == plan else None), []


class ReviewStage(NamedTuple):
    """Stage of one plan's review."""

    state: str
    role: Role | None
    """Whose turn it is; None when it is over."""
    what: str
    """What that role does, as printed in the document."""


APPROVED = "approved"
OLDER = "older than"
AFTER_FIX = "approved after the fix"
ESCALATED = "escalated to the Lead"
ACCEPTED = "accepted with known issues"
AT_ARCHITECT = "escalated to the Architect"


def stage_of(facts: LoopFacts, plan: Plan, reviews: Sequence[Review]) -> ReviewStage:
    """Return a review's stage: minor findings ask for a fix, major ones for a new review."""
    if not reviews:
        return ReviewStage("waits for its review", Role.SENIOR, _CLASSIFY.moves[0].text)
    last, name = reviews[-1], str(plan.id)
    if last.is_approval:
        return _unless_older(facts, plan, last.position, ReviewStage(APPROVED, None, ""))
    is_fixed = facts.is_worked_on(last.order, plan.department, name)
    if last.weight is Weight.MINOR:
        fix, approve = _MINOR.moves
        if not is_fixed:
            return ReviewStage("minor findings", Role.DEV, fix.text)
        over = ReviewStage(AFTER_FIX, None, approve.text)
        return _unless_older(facts, plan, _fixed_at(facts, plan, last), over)
    is_late = cycles_of(reviews) >= facts.phase.options.config.review_loop.max_cycles
    if is_late and (accepted := _acceptance(facts, plan, last)):
        over = ReviewStage(ACCEPTED, None, _LEAD.moves[0].text)
        return _unless_older(facts, plan, accepted.position, over)
    if not cycles_left(facts, plan, reviews) and (stage := _stage_after_cycles(facts, plan, last)):
        return stage
    fix, again = _MAJOR.moves
    return (
        ReviewStage("to be reviewed again", Role.SENIOR, again.text)
        if is_fixed
        else ReviewStage("major findings", Role.DEV, fix.text)
    )


def _unless_older(facts: LoopFacts, plan: Plan, position: int, stage: ReviewStage) -> ReviewStage:
    """Return a stage in which a review is over, or that what came after `position` reopens it."""
    later = later_than(facts.phase, "code-review", position, plan.department, str(plan.id))
    if thing := next(later, None):
        return ReviewStage(
            f"{OLDER} {thing.what}",
            Role.SENIOR,
            "reviews it again, in a new line with the next cycle",
        )
    return stage


def _fixed_at(facts: LoopFacts, plan: Plan, last: Review) -> int:
    """Return where on the branch the fix of minor findings ends: where QA takes it up.

    A fix may be several commits, so nothing else tells it from what comes later.
    """
    first = facts.work_within(last.order, plan.department, str(plan.id))[0]
    taken_up = (
        verdict.position
        for kind in ("verification", "qa-code")
        for verdict in facts.of(kind, plan.department)
        if verdict.position > first.position != NOWHERE
    )
    return min(taken_up, default=NOWHERE)


def cycles_of(reviews: Sequence[Review]) -> int:
    """Return the number of review cycles of a plan."""
    return max((len(reviews), *(review.cycle for review in reviews)))


def cycles_left(
    facts: LoopFacts, plan: Plan, reviews: Sequence[Review], at_s: int = sys.maxsize
) -> int:
    """Return how many cycles are left: each escalation of the Senior that was answered by `at_s`
    adds one.
    """
    most = facts.phase.options.config.review_loop.max_cycles
    more = escalations_over(facts.phase, str(plan.id), plan.department, Role.SENIOR, at_s)
    return max(0, most + more - cycles_of(reviews))


def escalations_over(
    facts: PhaseFacts, of: str, department: Dept, origin: Role, at_s: int = sys.maxsize
) -> int:
    """Return how many escalations of a department's task or plan by a role have been answered by a
    moment.
    """
    return sum(
        escalation.attempt - (not _is_answered(escalation, at_s))
        for escalation in as_committed(facts)
        if escalation.origin is origin
        and escalation.department == department
        and of in (str(escalation.id.task), str(escalation.id.task.plan))
    )


def _is_answered(escalation: EscalationProgress, at_s: int) -> bool:
    """Return whether the blocked agent had got the last answer by a moment."""
    answered = escalation.last_round[-1].at
    is_late = answered is not None and answered.timestamp() > at_s
    return not is_late and (not escalation.is_open or escalation.is_told)


def _stage_after_cycles(facts: LoopFacts, plan: Plan, last: Review) -> ReviewStage | None:
    """Return whose decision is awaited; None once the Architect has changed the design."""
    text = _LEAD.moves[0].text
    if not was_escalated(facts, plan, Role.ARCHITECT, last.at_s):
        return ReviewStage(
            ESCALATED,
            Role.LEAD,
            f"{_CYCLE_2.moves[0].text}. {_LEAD.occasion}: {text} "
            f"(yolo-fs decide accept {plan.id}, or yolo-fs escalate raise)",
        )
    if facts.is_after(last.order, "architecture"):
        return None
    return ReviewStage(AT_ARCHITECT, Role.ARCHITECT, text)


def _acceptance(facts: LoopFacts, plan: Plan, last: Review) -> DecidedFact | None:
    """Return the last decision by which the plan's Lead accepted it as the last review found it.

    Only a structured record counts: no free text is searched for words.
    """
    lead = name_in(Role.LEAD, plan.department)
    accepted = [
        decided
        for decided in facts.decisions(ACCEPT, str(plan.id))
        if decided.agent == lead and facts.has_seen(decided, last.order, last.position)
    ]
    return accepted[-1] if accepted else None


def was_escalated(facts: LoopFacts, plan: Plan, to: Role, since_s: int = 0) -> bool:
    """Return whether a Senior or a Lead escalated a plan up to a role, not before `since_s`.

    What a Dev reports is a blocker of its task, not a failed review.
    """
    return any(
        (escalation.id.task.plan, escalation.department) == (plan.id, plan.department)
        and escalation.origin is not Role.DEV
        and (not (began := escalation.last_round[0].at) or began.timestamp() >= since_s)
        and any(each.to is to for each in escalation.last_round)
        for escalation in as_committed(facts.phase)
    )


def unfinished_reviews(
    facts: PhaseFacts, department: Dept | None
) -> Iterator[tuple[str, str, str]]:
    """Yield (plan, verdict, state) of each plan whose last review in force is not settled.

    Every verdict line counts, not only the first (docs/dev/sources.md#c21). A plan's last verdict
    is the one in force. Withdrawing a plan withdraws its review, too.
    """
    known = loop_facts(facts)
    lines = [
        line for artifact in facts.of_kind("code-review", department) for line in artifact.lines
    ]
    plans = {str(plan.id): plan for plan in plans_of(facts, department)}
    for plan in dict.fromkeys(str(line.get("plan")) for line in lines if "r" in line):
        if plan not in plans:
            continue
        reviews = reviews_of(known, plans[plan])
        stage = stage_of(known, plans[plan], reviews)
        if reviews and stage.role is not None:  # none: another department speaks of it
            last = reviews[-1]
            yield plan, last.contradicted_by or last.verdict, stage.state


def code_reviews(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield the review of each plan that has a summary or a review."""
    for plan in plans_of(facts.phase):
        reviews = reviews_of(facts, plan)
        summary = next(
            (
                artifact
                for artifact in facts.phase.of_kind("summary", plan.department)
                if artifact.place.plan == plan.id
            ),
            None,
        )
        if reviews or summary:
            begun_s = (
                min((version.at_s for version in facts.history(summary)), default=0)
                if summary
                else 0
            )
            yield _progress_of_review(facts, plan, reviews, begun_s)


def _progress_of_review(
    facts: LoopFacts, plan: Plan, reviews: list[Review], begun_s: int
) -> LoopProgress:
    name = str(plan.id)
    stage = stage_of(facts, plan, reviews)
    triggered = stage.state in (ESCALATED, ACCEPTED, AT_ARCHITECT) or was_escalated(
        facts, plan, Role.LEAD
    )
    starts = [begun_s or (reviews[0].at_s if reviews else 0), *(review.at_s for review in reviews)]
    metrics = Metrics(
        cycle_count=cycles_of(reviews),
        finding_severity_distribution=dict(
            Counter(severity for review in reviews for severity, _ in review.findings)
        ),
        time_per_cycle=tuple(
            max(0, review.at_s - start) for review, start in zip(reviews, starts, strict=False)
        ),
        escalation_triggered=triggered,
    )
    agent, left = (
        name_in(stage.role, plan.department) if stage.role else "",
        cycles_left(facts, plan, reviews),
    )
    return LoopProgress(
        Loop.CODE_REVIEW,
        name,
        stage.state,
        cycles_of(reviews),
        left,
        agent,
        stage.what,
        metrics,
        department=plan.department,
    )


RISK_ACCEPTED = "the user accepted the risk"


def end_of_security_fail(facts: LoopFacts, department: Dept) -> str:
    """Return how the FAIL of a security audit ended; empty while there is one to decide on."""
    audits = list(facts.of("security-audit", department))
    if audits and all(line.get("r") != "FAIL" for line in audits[-1].lines):
        return "passed"
    return RISK_ACCEPTED if _is_risk_accepted(facts, department, audits) else ""


def _is_risk_accepted(facts: LoopFacts, department: Dept, audits: Sequence[Version]) -> bool:
    """Return whether the user accepted what some audits have found, and had all of them."""
    return any(
        decided.agent == Role.USER
        and all(facts.has_seen(decided, audit.order, audit.position) for audit in audits)
        for decided in facts.decisions(ACCEPT_RISK, department)
    )


def is_security_decided(facts: PhaseFacts, department: Dept) -> bool:
    """Return whether an escalation of a department's Security was answered."""
    return any(
        escalation.origin is Role.SECURITY
        and escalation.decision
        and escalation.department == department
        for escalation in as_committed(facts)
    )


class PassedAudit(NamedTuple):
    """An audit that does not say FAIL, after one that nothing has answered."""

    says: str
    is_known: bool
    """Whether the one before said FAIL; otherwise this clone lacks it, and it may have."""

    def __str__(self) -> str:
        before, then = "a FAIL", "the user decides"
        if not self.is_known:
            before, then = "an audit that this clone lacks", f"'{FETCH_LACKING}' brings it"
        sentence = f"security says {self.says} after {before}"
        return f"{sentence}, and nothing was changed in between: {then}"


def passed_without_answer(facts: PhaseFacts, department: Dept) -> PassedAudit | None:
    """Return the audit that no longer says FAIL, though nothing was changed and the user was not
    asked; None for none. Security stops a phase and does not let it go on.
    """
    known = loop_facts(facts)
    audits = sorted(known.of("security-audit", department), key=lambda audit: audit.order)
    failed = [audit for audit in audits if any(line.get("r") == "FAIL" for line in audit.lines)]
    last = audits[-1] if audits else None
    if last is None or last in failed or facts.is_signed(last.position):
        return None
    lacking = known.unread("security-audit", department)
    stopping = max((*failed, *lacking), key=lambda audit: audit.order, default=None)
    if stopping is None:
        return None
    is_answered = (
        known.is_worked_on(stopping.order, department, before=last.order)
        or _is_risk_accepted(known, department, [stopping])
        or is_security_decided(facts, department)
    )
    result = str(next((line.get("r") for line in last.lines if "r" in line), ""))
    return None if is_answered else PassedAudit(result, stopping in failed)


_QA_MOST = int(LIMIT_BY_KEY["qa.max_cycles"].value)


def qa_remediations(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield the remediation of each department that has been verified."""
    for department in facts.phase.options.departments:
        runs = {kind: _runs(facts, kind, department) for kind in ("verification", "qa-code")}
        if any(runs.values()):
            yield _progress_of_remediation(facts, department, runs)


def _runs(facts: LoopFacts, kind: str, department: Dept) -> list[tuple[str, Version]]:
    """Return (result, version) of each verification of a kind."""
    return [
        (str(version.lines[0].get("r")), version)
        for version in facts.of(kind, department)
        if version.lines
    ]


def _progress_of_remediation(
    facts: LoopFacts, department: Dept, runs: Mapping[str, list[tuple[str, Version]]]
) -> LoopProgress:
    failing = [kind for kind, history in runs.items() if history and history[-1][0] == "FAIL"]
    # Failures are counted per kind of verification: those of one kind do not add to another's.
    count = max(sum(result == "FAIL" for result, _ in runs[kind]) for kind in failing or runs)
    plans = plans_of(facts.phase, department)
    most = _QA_MOST + sum(
        escalations_over(facts.phase, str(plan.id), department, Role.LEAD) for plan in plans
    )
    left = max(0, most - count)
    if not failing:
        return LoopProgress(Loop.QA, department.value, "passed", count, left, department=department)
    latest = max((runs[kind][-1][1] for kind in failing), key=lambda version: version.order)
    again = Role.QA_CODE if failing[0] == "qa-code" else Role.QA
    tasks = {f"{plan.id}/{task.get('id')}" for plan in plans for task in plan.tasks}
    assigned = facts.assigned(latest.order, name_in(Role.LEAD, department), tasks)
    state, role, what = _state_after_fail(
        facts, department, (count, most), latest, again, is_assigned=bool(assigned)
    )
    name, agent = department.value, name_in(role, department)
    return LoopProgress(
        Loop.QA, name, state, count, left, agent, what, tasks=assigned, department=department
    )


def _state_after_fail(
    facts: LoopFacts,
    department: Dept,
    rounds: tuple[int, int],
    fail: Version,
    again: Role,
    *,
    is_assigned: bool,
) -> tuple[str, Role, str]:
    """Return whose turn it is after a FAIL. `rounds`: rounds used, and rounds allowed."""
    first, *_, last = QA_REMEDIES
    if facts.is_worked_on(fail.order, department):
        return "to be verified again", again, first.moves[3].text
    if facts.is_after(fail.order, "plan", department):
        return "to be fixed", Role.DEV, first.moves[2].text
    count, most = rounds
    if count > _QA_MOST and facts.is_after(fail.order, "architecture", department):
        return "design is re-evaluated", Role.SENIOR, first.moves[1].text
    if count > most:
        lead, architect = last.moves
        occasion = last.occasion if count == _QA_MOST + 1 else f"QA FAIL {count}"
        plans = plans_of(facts.phase, department)
        if any(was_escalated(facts, plan, Role.ARCHITECT, fail.at_s) for plan in plans):
            return occasion, Role.ARCHITECT, architect.text
        return occasion, Role.LEAD, lead.text
    chain = QA_REMEDIES[min(count, _QA_MOST) - 1]
    assign, senior = chain.moves[:2]
    if is_assigned:
        return "assigned", Role.SENIOR, senior.text
    occasion = chain.occasion
    if count > _QA_MOST:
        occasion = ANSWERED
    elif chain is first and again is Role.QA:
        occasion = "QA FAIL"  # the row is named after the other verifier, whom it is for as well
    return occasion, Role.LEAD, f"{assign.text}; then {senior.text}"


ANSWERED = "answered after the last round"
"""State of a remediation that goes on because somebody above has decided."""
LIMIT_REACHED = "limit reached"
TASK_FAILURES = 2
"""Failures of a task at which the Dev escalates (docs/dev/sources.md#document-002)."""
_GATES = (
    (Loop.POST_TASK, "post-task", TASK_FAILURES),
    (Loop.POST_PLAN, "post-plan", int(LIMIT_BY_KEY["post_plan.max_remediations"].value) + 1),
)
"""Loop, level of the gate, and the number of the failure that exhausts it."""


def gate_remediations(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield each task and plan whose gate failed.

    The Dev repairs it; past the limit, the Senior does.
    """
    for kind, level, most in _GATES:
        runs: dict[tuple[Dept, str], list[str]] = {}
        for line in facts.phase.lines_of("qa-gate-results"):
            if line.get("gl") == level:
                name = str(line.get("plan")) + (
                    f"/{line.get('task')}" if kind is Loop.POST_TASK else ""
                )
                is_wrong = any(contradicted("qa-gate-results", [line]))
                key = _department_of_gate(facts.phase, line), name
                runs.setdefault(key, []).append("FAIL" if is_wrong else str(line.get("r")))
        for (department, name), results in runs.items():
            if fails := results.count("FAIL"):
                more = escalations_over(facts.phase, name, department, Role.DEV)
                is_passed = results[-1] != "FAIL"
                yield _gate(kind, name, fails, most + more, department, is_passed=is_passed)


def _department_of_gate(facts: PhaseFacts, line: Mapping[str, Any]) -> Dept:
    """Return whose plan a gate tried: where departments share its number, the files tell."""
    plans = [plan for plan in plans_of(facts) if str(plan.id) == str(line.get("plan"))]
    tried = frozenset(paths_in(line.get("f")))
    touched = [plan for plan in plans if touches(plan.files, tried)]
    return next((plan.department for plan in (*touched, *plans)), DEFAULT_DEPARTMENT)


def _gate(
    kind: Loop, name: str, fails: int, most: int, department: Dept, *, is_passed: bool
) -> LoopProgress:
    left = max(0, most - fails)
    progress = LoopProgress(kind, name, "passed", fails, left, department=department)
    if is_passed:
        return progress
    if left:
        dev = name_in(Role.DEV, department)
        return replace(progress, state="to be repaired", next=dev, what="Dev fixes")
    senior = name_in(Role.SENIOR, department)
    what = "2 task failures: Dev escalates"
    return replace(progress, state=LIMIT_REACHED, rounds_left=0, next=senior, what=what)


PATCH_MOST = int(LIMIT_BY_KEY["delivery.max_patch_cycles"].value)
MAJOR_MOST = int(LIMIT_BY_KEY["delivery.max_major_cycles"].value)
PATCH_TASKS = 2
"""Tasks that a patch may have at most."""


class Routed(NamedTuple):
    """Who acts on a verdict, and with what."""

    agent: str
    inputs: tuple[str, ...]


def verdicts_of(facts: LoopFacts) -> list[tuple[Mapping[str, Any], int]]:
    """Return each verdict of the Product Owner with when it was given, the oldest first."""
    verdicts: list[tuple[Mapping[str, Any], int]] = []
    before: tuple[Mapping[str, Any], ...] = ()
    for version in facts.of("po-qa-verdict"):
        known = [*before]
        for line in version.lines:
            if line in known:
                known.remove(line)
            else:
                verdicts.append((line, version.order))
        before = version.lines
    return verdicts


def has_patch_failed(facts: LoopFacts) -> bool:
    """Return whether the integration gate says FAIL after a patch of those that are still open.

    From then on only a verdict of major goes on: another patch is none.
    """
    given = verdicts_of(facts)
    ends = (*(order for _, order in given[1:]), sys.maxsize)
    runs = [version for version in facts.of("integration-gate-result") if version.lines]
    for (line, order), end in reversed([*zip(given, ends, strict=True)]):
        if line.get("verdict") != "patch":
            return False
        after = [version for version in runs if order < version.order < end]
        if after and after[-1].lines[-1].get("r") == "FAIL":
            return True
    return False


def route_of_verdict(facts: PhaseFacts) -> Routed | None:
    """Return who acts on the last verdict.

    None while there is none, while it has to be given again, and once what it approves is
    delivered.
    """
    verdicts = facts.lines_of("po-qa-verdict")
    decisions = [str(line.get("verdict")) for line in verdicts]
    if not decisions:
        return None
    if decisions[-1] == "approve":
        is_late = any(came_later(facts, "po-qa-verdict", None))
        return Routed("owner", _DELIVERED) if not is_late and owner_lacks(facts) else None
    is_left = decisions.count("patch") <= PATCH_MOST
    if decisions[-1] == "patch" and is_left and not has_patch_failed(loop_facts(facts)):
        task = f"patch_request: at most {PATCH_TASKS} tasks"
        return Routed(
            name_in(Role.SENIOR, str(verdicts[-1].get("target_dept"))),
            ("po-qa-verdict.jsonl", task),
        )
    if decisions.count("major") <= MAJOR_MOST:
        items = texts(verdicts[-1].get("re_scope_items"))
        return Routed(
            "po",
            (
                "po-qa-verdict.jsonl",
                f"major_rejection: {', '.join(items) or 'what the patches left'}",
            ),
        )
    return Routed("owner", ("po-qa-verdict.jsonl", "every cycle is used up: the user decides"))


_DELIVERED = ("po-qa-verdict.jsonl", "integration-gate-result.jsonl")
