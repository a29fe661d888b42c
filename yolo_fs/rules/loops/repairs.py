"""Work that failed and is repaired: code review, QA remediation and the gates after a task and a plan. Pure.

Source: document 002 ("Code Review Chain", "QA Remediation Chain"), protocol 2.1 ("Review/QA limits").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.ids import EscalationId
from yolo_fs.protocol.chains import CHANGE_CLASSES, QA_REMEDIES, REVIEW_REMEDIES, Weight
from yolo_fs.protocol.departments import name_in
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.protocol.workflow import LIMIT_BY_KEY
from yolo_fs.rules.loops.facts import Loop, LoopFacts, LoopProgress, Metrics
from yolo_fs.rules.phase.facts import Plan, plans_of

_SEVERITIES = {severity: row.weight for row in CHANGE_CLASSES for severity in row.severities}
_CLASSIFY, _MINOR, _MAJOR, _CYCLE_2, _LEAD = REVIEW_REMEDIES

# --- code review -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Review:
    """One review of a plan."""

    verdict: str
    cycle: int
    findings: tuple[tuple[str, str], ...]
    """(severity, issue) of each."""
    day: str
    at_s: int
    order: int

    @property
    def weight(self) -> Weight:
        """How grave its findings are together."""
        grave = any(_SEVERITIES.get(severity) is Weight.MAJOR for severity, _ in self.findings)
        return Weight.MAJOR if grave or not self.findings else Weight.MINOR

    def is_same(self, other: Review) -> bool:
        """Tell whether a later version of the file only repeats this review."""
        return (self.verdict, self.cycle, self.findings, self.day) == (
            other.verdict, other.cycle, other.findings, other.day,
        )  # fmt: skip


def code_reviews(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield the review of each plan that has a summary or a review."""
    for plan in plans_of(facts.phase):
        reviews = reviews_of(facts, plan)
        summary = next((filed for filed in facts.phase.of_kind("summary") if filed.place.plan == plan.id), None)
        if reviews or summary:
            begun_s = min((one.at_s for one in facts.history(summary)), default=0) if summary else 0
            yield _review(facts, plan, reviews, begun_s)


def reviews_of(facts: LoopFacts, plan: Plan) -> list[Review]:
    """Return the reviews of a plan in the order in which they were committed."""
    found: list[Review] = []
    for version in facts.of("code-review", plan.department):
        for header, body in _blocks(version.lines, str(plan.id)):
            findings = tuple((str(line.get("sev")), str(line.get("issue"))) for line in body)
            cycle = header.get("cycle")
            number = cycle if isinstance(cycle, int) else 1
            one = Review(str(header.get("r")), number, findings, str(header.get("dt")), version.at_s, version.order)
            if any(one.is_same(other) for other in found):
                continue
            if found and _is_revised(facts, found[-1], one, str(plan.id)):
                found.pop()
            found.append(one)
    return found


def _is_revised(facts: LoopFacts, before: Review, after: Review, plan: str) -> bool:
    """Tell whether a review was only written anew: its cycle is the same, and nobody worked in between."""
    between = any(one.plan == plan and before.order < one.order < after.order for one in facts.work)
    return before.cycle == after.cycle and before.order != after.order and not between


def _blocks(
    lines: Iterable[Mapping[str, Any]], plan: str
) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Yield each verdict on a plan with its findings; several plans and cycles may share the file."""
    header: Mapping[str, Any] | None = None
    body: list[Mapping[str, Any]] = []
    for line in [*lines, {"r": None}]:
        if "r" not in line:
            body += [line] if line.get("plan") in (None, plan) else []
            continue
        if header is not None:
            yield header, body
        header, body = (line if line.get("plan") == plan else None), []


def _review(facts: LoopFacts, plan: Plan, reviews: list[Review], begun_s: int) -> LoopProgress:
    cycles = max((len(reviews), *(one.cycle for one in reviews)))
    left = max(0, facts.phase.switches.config.review_loop.max_cycles - cycles)
    state, role, what = _review_state(facts, plan, reviews, left)
    triggered = state in (_ESCALATED, _ACCEPTED, _ARCHITECT) or _was_escalated(facts, plan, Role.LEAD)
    starts = [begun_s or (reviews[0].at_s if reviews else 0), *(one.at_s for one in reviews)]
    metrics = Metrics(
        cycle_count=cycles,
        finding_severity_distribution=dict(Counter(severity for one in reviews for severity, _ in one.findings)),
        time_per_cycle=tuple(max(0, one.at_s - start) for one, start in zip(reviews, starts, strict=False)),
        escalation_triggered=triggered,
    )
    name = name_in(role, plan.department) if role else ""
    return LoopProgress(Loop.CODE_REVIEW, str(plan.id), state, cycles, left, name, what, metrics)


_APPROVED = "approved"
_AFTER_FIX = "approved after the fix"
_ESCALATED = "escalated to the Lead"
_ACCEPTED = "accepted with known issues"
_ARCHITECT = "escalated to the Architect"
_State = tuple[str, Role | None, str]


def _review_state(facts: LoopFacts, plan: Plan, reviews: list[Review], left: int) -> _State:
    if not reviews:
        return "waits for its review", Role.SENIOR, _CLASSIFY.moves[0].text
    last = reviews[-1]
    if last.verdict == "approve":
        return _APPROVED, None, ""
    is_fixed = facts.is_worked_on(last.order, str(plan.id))
    if last.weight is Weight.MINOR:
        fix, approve = _MINOR.moves
        return (_AFTER_FIX, None, approve.text) if is_fixed else ("minor findings", Role.DEV, fix.text)
    if not left:
        return _after_last_cycle(facts, plan)
    fix, again = _MAJOR.moves
    return ("to be reviewed again", Role.SENIOR, again.text) if is_fixed else ("major findings", Role.DEV, fix.text)


def _after_last_cycle(facts: LoopFacts, plan: Plan) -> _State:
    if _was_escalated(facts, plan, Role.ARCHITECT):
        return _ARCHITECT, Role.ARCHITECT, _LEAD.moves[0].text
    if any(_accepts(line, plan) for line in facts.phase.lines_of("decisions")):
        return _ACCEPTED, None, _LEAD.moves[0].text
    return _ESCALATED, Role.LEAD, f"{_CYCLE_2.moves[0].text}. {_LEAD.occasion}: {_LEAD.moves[0].text}"


def _accepts(line: Mapping[str, Any], plan: Plan) -> bool:
    said = f"{line.get('task', '')} {line.get('dec', '')}"
    is_lead = str(line.get("agent", "")).lower().removeprefix("yolo-").endswith(Role.LEAD)
    return is_lead and str(plan.id) in said and "accept" in said.lower()


def _was_escalated(facts: LoopFacts, plan: Plan, to: Role) -> bool:
    """Tell whether the log has an escalation of a task of this plan that went up to a role."""
    for line in facts.phase.lines_of("escalation"):
        name = EscalationId.parse(str(line.get("id")))
        target = str(line.get("tgt", "")).lower().removeprefix("yolo-")
        if name and name.task.plan == plan.id and target.endswith(to):
            return True
    return False


# --- QA remediation --------------------------------------------------------------------------------------------------

_QA_MOST = int(LIMIT_BY_KEY["qa.max_cycles"].value)


def qa_remediations(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield the remediation of each department that has been verified."""
    for department in facts.phase.switches.departments:
        runs = {kind: _runs(facts, kind, department) for kind in ("verification", "qa-code")}
        if any(runs.values()):
            yield _remediation(facts, department, runs)


def _runs(facts: LoopFacts, kind: str, department: Dept) -> list[tuple[str, int]]:
    """Return (result, order) of each verification of a kind."""
    return [(str(one.lines[0].get("r")), one.order) for one in facts.of(kind, department) if one.lines]


def _remediation(facts: LoopFacts, department: Dept, runs: Mapping[str, list[tuple[str, int]]]) -> LoopProgress:
    fails = {kind: [order for result, order in found if result == "FAIL"] for kind, found in runs.items()}
    count = max(map(len, fails.values()))
    left = max(0, _QA_MOST - count)
    failing = [kind for kind, found in runs.items() if found and found[-1][0] == "FAIL"]
    if not failing:
        return LoopProgress(Loop.QA, department.value, "passed", count, left)
    latest = max(runs[kind][-1][1] for kind in failing)
    state, role, what = _qa_state(facts, department, count, latest, failing[0])
    return LoopProgress(Loop.QA, department.value, state, count, left, name_in(role, department), what)


def _qa_state(facts: LoopFacts, department: Dept, count: int, since: int, kind: str) -> tuple[str, Role, str]:
    first = QA_REMEDIES[0].moves
    chain = QA_REMEDIES[min(count, len(QA_REMEDIES)) - 1]
    if count > _QA_MOST:
        lead, architect = chain.moves
        is_there = any(_was_escalated(facts, plan, Role.ARCHITECT) for plan in plans_of(facts.phase, department))
        return (chain.occasion, Role.ARCHITECT, architect.text) if is_there else (chain.occasion, Role.LEAD, lead.text)
    if facts.is_worked_on(since, ""):
        again = Role.QA_CODE if kind == "qa-code" else Role.QA
        return "to be verified again", again, first[3].text
    if facts.is_after(since, "plan", department):
        return "to be fixed", Role.DEV, first[2].text
    assign, senior = chain.moves[:2]
    return chain.occasion, Role.LEAD, f"{assign.text}; then {senior.text}"


# --- gates after a task and after a plan -----------------------------------------------------------------------------

_GATES = (
    (Loop.POST_TASK, "post-task", int(LIMIT_BY_KEY["post_task.max_remediations"].value)),
    (Loop.POST_PLAN, "post-plan", int(LIMIT_BY_KEY["post_plan.max_remediations"].value)),
)


def gate_remediations(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield each task and plan whose gate has failed: repaired by the Dev, and past the limit the Senior's matter."""
    departments = {str(plan.id): plan.department for plan in plans_of(facts.phase)}
    for kind, level, most in _GATES:
        runs: dict[str, list[str]] = {}
        for line in facts.phase.lines_of("qa-gate-results"):
            if line.get("gl") == level:
                name = str(line.get("plan")) + (f"/{line.get('task')}" if kind is Loop.POST_TASK else "")
                runs.setdefault(name, []).append(str(line.get("r")))
        for name, results in runs.items():
            if fails := results.count("FAIL"):
                department = departments.get(name.partition("/")[0], Dept.BACKEND)
                yield _gate(kind, name, fails, most, department, is_passed=results[-1] != "FAIL")


def _gate(kind: Loop, name: str, fails: int, most: int, department: Dept, *, is_passed: bool) -> LoopProgress:
    left = max(0, most - fails + 1)
    if is_passed:
        return LoopProgress(kind, name, "passed", fails, left)
    if left:
        return LoopProgress(kind, name, "to be repaired", fails, left, name_in(Role.DEV, department), "Dev fixes")
    return LoopProgress(
        kind, name, "limit reached", fails, 0, name_in(Role.SENIOR, department), "2 task failures: Dev escalates"
    )
