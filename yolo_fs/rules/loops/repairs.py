"""Work that failed and is repaired: code review, QA remediation, the gates after a task and a plan,
and the Product Owner's verdict. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from yolo_fs.protocol.chains import QA_REMEDIES
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, name_in
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.protocol.workflow import LIMIT_BY_KEY
from yolo_fs.rules.evidence.facts import PhaseFacts, Plan, Version, plans_of, texts
from yolo_fs.rules.loops.facts import Loop, LoopFacts, LoopProgress, Metrics
from yolo_fs.rules.loops.reviews import (
    ACCEPTED,
    AT_ARCHITECT,
    ESCALATED,
    Review,
    cycles_left,
    cycles_of,
    escalations_over,
    reviews_of,
    stage_of,
    was_escalated,
)

# --- code review ----------------------------------------------------------------------------------


def code_reviews(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield the review of each plan that has a summary or a review."""
    for plan in plans_of(facts.phase):
        reviews = reviews_of(facts, str(plan.id), plan.department)
        summary = next(
            (filed for filed in facts.phase.of_kind("summary") if filed.place.plan == plan.id), None
        )
        if reviews or summary:
            begun_s = min((one.at_s for one in facts.history(summary)), default=0) if summary else 0
            yield _review(facts, plan, reviews, begun_s)


def _review(facts: LoopFacts, plan: Plan, reviews: list[Review], begun_s: int) -> LoopProgress:
    name = str(plan.id)
    stage = stage_of(facts, name, reviews)
    triggered = stage.state in (ESCALATED, ACCEPTED, AT_ARCHITECT) or was_escalated(
        facts, name, Role.LEAD
    )
    starts = [begun_s or (reviews[0].at_s if reviews else 0), *(one.at_s for one in reviews)]
    metrics = Metrics(
        cycle_count=cycles_of(reviews),
        finding_severity_distribution=dict(
            Counter(severity for one in reviews for severity, _ in one.findings)
        ),
        time_per_cycle=tuple(
            max(0, one.at_s - start) for one, start in zip(reviews, starts, strict=False)
        ),
        escalation_triggered=triggered,
    )
    agent, left = (
        name_in(stage.role, plan.department) if stage.role else "",
        cycles_left(facts, name, reviews),
    )
    return LoopProgress(
        Loop.CODE_REVIEW, name, stage.state, cycles_of(reviews), left, agent, stage.what, metrics
    )


# --- QA remediation -------------------------------------------------------------------------------

_QA_MOST = int(LIMIT_BY_KEY["qa.max_cycles"].value)


def qa_remediations(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield the remediation of each department that has been verified."""
    for department in facts.phase.switches.departments:
        runs = {kind: _runs(facts, kind, department) for kind in ("verification", "qa-code")}
        if any(runs.values()):
            yield _remediation(facts, department, runs)


def _runs(facts: LoopFacts, kind: str, department: Dept) -> list[tuple[str, Version]]:
    """Return (result, version) of each verification of a kind."""
    return [(str(one.lines[0].get("r")), one) for one in facts.of(kind, department) if one.lines]


def _remediation(
    facts: LoopFacts, department: Dept, runs: Mapping[str, list[tuple[str, Version]]]
) -> LoopProgress:
    failing = [kind for kind, found in runs.items() if found and found[-1][0] == "FAIL"]
    # The chain counts each verification for itself: what another one failed is its own.
    count = max(sum(result == "FAIL" for result, _ in runs[kind]) for kind in failing or runs)
    plans = plans_of(facts.phase, department)
    most = _QA_MOST + sum(escalations_over(facts.phase, str(plan.id), Role.LEAD) for plan in plans)
    left = max(0, most - count)
    if not failing:
        return LoopProgress(Loop.QA, department.value, "passed", count, left)
    latest = max((runs[kind][-1][1] for kind in failing), key=lambda one: one.order)
    again = Role.QA_CODE if failing[0] == "qa-code" else Role.QA
    state, role, what = _qa_state(facts, department, (count, most), latest, again)
    return LoopProgress(
        Loop.QA, department.value, state, count, left, name_in(role, department), what
    )


def _qa_state(
    facts: LoopFacts, department: Dept, rounds: tuple[int, int], fail: Version, again: Role
) -> tuple[str, Role, str]:
    """Return whose turn it is after a FAIL; `rounds`: how many there were, and may be."""
    first, *_, last = QA_REMEDIES
    if facts.is_worked_on(fail.order, ""):
        return "to be verified again", again, first.moves[3].text
    if facts.is_after(fail.order, "plan", department):
        return "to be fixed", Role.DEV, first.moves[2].text
    count, most = rounds
    if count > _QA_MOST and facts.is_after(fail.order, "architecture", department):
        return "design is re-evaluated", Role.SENIOR, first.moves[1].text
    if count > most:
        lead, architect = last.moves
        plans = plans_of(facts.phase, department)
        if any(was_escalated(facts, str(one.id), Role.ARCHITECT, fail.at_s) for one in plans):
            return last.occasion, Role.ARCHITECT, architect.text
        return last.occasion, Role.LEAD, lead.text
    chain = QA_REMEDIES[min(count, _QA_MOST) - 1]
    assign, senior = chain.moves[:2]
    return chain.occasion, Role.LEAD, f"{assign.text}; then {senior.text}"


# --- gates after a task and after a plan ----------------------------------------------------------

LIMIT_REACHED = "limit reached"
_GATES = (
    (Loop.POST_TASK, "post-task", int(LIMIT_BY_KEY["post_task.max_remediations"].value)),
    (Loop.POST_PLAN, "post-plan", int(LIMIT_BY_KEY["post_plan.max_remediations"].value)),
)


def gate_remediations(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield each task and plan whose gate has failed: repaired by the Dev, and past the limit the
    Senior's matter.
    """
    departments = {str(plan.id): plan.department for plan in plans_of(facts.phase)}
    for kind, level, most in _GATES:
        runs: dict[str, list[str]] = {}
        for line in facts.phase.lines_of("qa-gate-results"):
            if line.get("gl") == level:
                name = str(line.get("plan")) + (
                    f"/{line.get('task')}" if kind is Loop.POST_TASK else ""
                )
                runs.setdefault(name, []).append(str(line.get("r")))
        for name, results in runs.items():
            if fails := results.count("FAIL"):
                department = departments.get(name.partition("/")[0], DEFAULT_DEPARTMENT)
                more = escalations_over(facts.phase, name, Role.DEV)
                is_passed = results[-1] != "FAIL"
                yield _gate(kind, name, fails, most + more, department, is_passed=is_passed)


def _gate(
    kind: Loop, name: str, fails: int, most: int, department: Dept, *, is_passed: bool
) -> LoopProgress:
    left = max(0, most - fails + 1)
    if is_passed:
        return LoopProgress(kind, name, "passed", fails, left)
    if left:
        return LoopProgress(
            kind, name, "to be repaired", fails, left, name_in(Role.DEV, department), "Dev fixes"
        )
    return LoopProgress(
        kind,
        name,
        LIMIT_REACHED,
        fails,
        0,
        name_in(Role.SENIOR, department),
        "2 task failures: Dev escalates",
    )


PATCH_TASKS = 2
"""Tasks that a patch may take."""


@dataclass(frozen=True, slots=True)
class Routed:
    """Who takes up a verdict, and with what."""

    agent: str
    inputs: tuple[str, ...]


def route_of_verdict(facts: PhaseFacts) -> Routed | None:
    """Return who takes up the last verdict; None while there is none, or when it approves."""
    verdicts = facts.lines_of("po-qa-verdict")
    said = [str(line.get("verdict")) for line in verdicts]
    if not said or said[-1] == "approve":
        return None
    if said[-1] == "patch" and said.count("patch") <= _limit("delivery.max_patch_cycles"):
        task = f"patch_request: at most {PATCH_TASKS} tasks"
        return Routed(
            name_in(Role.SENIOR, str(verdicts[-1].get("target_dept"))),
            ("po-qa-verdict.jsonl", task),
        )
    if said.count("major") <= _limit("delivery.max_major_cycles"):
        items = texts(verdicts[-1].get("re_scope_items"))
        return Routed(
            "po",
            (
                "po-qa-verdict.jsonl",
                f"major_rejection: {', '.join(items) or 'what the patches left'}",
            ),
        )
    return Routed("owner", ("po-qa-verdict.jsonl", "every cycle is used up: the user decides"))


def _limit(name: str) -> int:
    return int(LIMIT_BY_KEY[name].value)
