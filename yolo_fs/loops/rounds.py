"""Evaluates each loop of a phase. Pure.

It tells who is next, how many rounds are left, and which escalation a used-up loop asks for. See
docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from yolo_fs.authority.actors import name_at_work
from yolo_fs.core.ids import PlanId, TaskRef
from yolo_fs.escalations.fold import as_committed
from yolo_fs.escalations.lines import EscalationRequest
from yolo_fs.escalations.log import EscalationProgress
from yolo_fs.evidence.facts import Plan, is_blocking, plans_of, section
from yolo_fs.loops.facts import Loop, LoopFacts, LoopProgress
from yolo_fs.loops.repairs import (
    ESCALATED,
    LIMIT_REACHED,
    MAJOR_MOST,
    PATCH_MOST,
    code_reviews,
    end_of_security_fail,
    gate_remediations,
    has_patch_failed,
    qa_remediations,
    verdicts_of,
)
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept, Role, name_in
from yolo_fs.protocol.gates import QA_REMEDIES
from yolo_fs.protocol.workflow import LIMIT_BY_KEY

PATCH_FAILED = "patch failed"
PATCHES_USED_UP = "patches used up"
CLARIFIED_AGAIN = "clarified again"
AFTER_REWORK = frozenset({"planned again", "patched", "re-worked", "integrated again"})
"""States of a patch or re-scoping in which the departments' own steps decide who acts next."""
_FEEDBACK_MOST = int(LIMIT_BY_KEY["delivery.max_feedback_rounds"].value)


def loops(facts: LoopFacts) -> tuple[LoopProgress, ...]:
    """Return every loop of a phase that has begun."""
    return tuple(loop for source in SOURCES for loop in source(facts))


def _progress_of_questionary(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield the clarification of the scope: each version of discovery.json is one round."""
    config = facts.phase.options.config.po
    rounds = list(facts.of("discovery"))
    is_approved = any(
        line.get("status") == "PO-APPROVED" for line in facts.phase.lines_of("scope-document")
    )
    if not config.enabled or not (rounds or is_approved or facts.phase.of_kind("analysis")):
        return
    count = len(rounds)
    left = max(0, config.max_questionary_rounds - count)
    after = (Role.ROADMAP, "plans the roadmap")
    if facts.phase.of_kind("roadmap-plan"):
        after = (Role.PO, "approves the scope")
    sure = _confidence_of(rounds[-1].lines[0]) if rounds and rounds[-1].lines else 0.0
    if is_approved:
        yield LoopProgress(Loop.QUESTIONARY, "scope", "scope approved", count, left)
    elif count and sure >= config.confidence_threshold:
        yield LoopProgress(Loop.QUESTIONARY, "scope", "clear enough", count, left, *after)
    elif not left:
        yield LoopProgress(Loop.QUESTIONARY, "scope", "rounds used up", count, 0, *after)
    else:
        what = f"asks in round {count + 1}"
        yield LoopProgress(
            Loop.QUESTIONARY, "scope", "to be clarified", count, left, Role.QUESTIONARY, what
        )


def _confidence_of(line: Mapping[str, Any]) -> float:
    confidence = next((line[key] for key in ("confidence", "scope_confidence") if key in line), 0)
    return float(confidence) if isinstance(confidence, int | float) else 0.0


def _critique(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield the Critic's rounds. They end at the confidence threshold or after the last round.

    Findings that name no round form no loop.
    """
    config = facts.phase.options.config.critique
    for artifact in facts.phase.of_kind("critique") if config.enabled else ():
        rated = [line for line in artifact.lines if isinstance(line.get("rd"), int)]
        if not rated:
            continue
        number = max(line["rd"] for line in rated)
        sure = max(
            (
                line["cf"]
                for line in rated
                if line["rd"] == number and isinstance(line.get("cf"), int)
            ),
            default=0,
        )
        left = max(0, config.max_rounds - number)
        name = artifact.place.department
        if sure >= config.confidence_threshold:
            yield LoopProgress(Loop.CRITIQUE, name, "confident", number, left)
        elif not left:
            yield LoopProgress(Loop.CRITIQUE, name, "rounds used up", number, 0)
        else:
            what = f"another round: {sure} % sure, {config.confidence_threshold} % are required"
            yield LoopProgress(
                Loop.CRITIQUE, name, "not sure enough", number, left, Role.CRITIC, what
            )


def _delivery(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield the patch and major cycles, as the Product Owner's verdicts record them."""
    verdicts = verdicts_of(facts)
    decisions = [str(line.get("verdict")) for line, _ in verdicts]
    if patches := decisions.count("patch"):
        yield _progress_of_patch(facts, verdicts[-1], patches)
    if majors := decisions.count("major"):
        yield _progress_of_major(facts, verdicts[-1], majors)


def _progress_of_patch(
    facts: LoopFacts, last: tuple[Mapping[str, Any], int], count: int
) -> LoopProgress:
    line, order = last
    left = max(0, PATCH_MOST - count)
    target = str(line.get("target_dept") or "")
    if line.get("verdict") != "patch":
        return LoopProgress(
            Loop.PATCH, target or "delivery", f"ended by {line.get('verdict')}", count, left
        )
    what = "If patch fails, escalate to Major path"
    if count > PATCH_MOST:
        return LoopProgress(Loop.PATCH, target, PATCHES_USED_UP, count, 0, Role.PO, what)
    if has_patch_failed(facts):
        return LoopProgress(Loop.PATCH, target, PATCH_FAILED, count, 0, Role.PO, what)
    working = facts.phase.options.departments
    named = Dept(target) if target in set(Dept) else DEFAULT_DEPARTMENT
    is_off = named is DEFAULT_DEPARTMENT and named not in working
    state, name, what = _turn_after_patch(facts, order, working[0] if is_off else named)
    return LoopProgress(Loop.PATCH, target, state, count, left, name, what)


def _turn_after_patch(facts: LoopFacts, order: int, department: Dept) -> tuple[str, str, str]:
    if turn := _turn_after_work(facts, order, "patched", department):
        return turn
    if facts.is_after(order, "plan", department):
        return "specified again", name_in(Role.DEV, department), "Dev implements"
    return (
        "to be patched",
        name_in(Role.SENIOR, department),
        "Senior re-specs the fix, Dev implements",
    )


def _turn_after_work(
    facts: LoopFacts, order: int, done: str, department: Dept | None = None
) -> tuple[str, str, str] | None:
    """Return whose turn it is once source was committed after a verdict; None before.

    `department`: whose source counts; None for any.
    """
    if facts.is_after(order, "integration-gate-result"):
        return "integrated again", Role.PO, "gives its verdict"
    if not facts.is_worked_on(order, department):
        return None
    options = facts.phase.options
    is_gated = options.several_departments or options.config.integration_gate.enabled
    if not (is_gated or facts.phase.of_kind("integration-gate-result")):
        return done, Role.PO, "gives its verdict"
    what = "re-run integration gate for the specific failing checks only"
    return done, Role.INTEGRATION_GATE, what


def _progress_of_major(
    facts: LoopFacts, last: tuple[Mapping[str, Any], int], count: int
) -> LoopProgress:
    line, order = last
    left = max(0, MAJOR_MOST - count)
    if line.get("verdict") != "major":
        ended = f"ended by {line.get('verdict')}"
        return LoopProgress(Loop.MAJOR, "delivery", ended, count, left)
    if count > MAJOR_MOST:
        owner = Role.OWNER if facts.phase.options.several_departments else Role.GO
        return LoopProgress(
            Loop.MAJOR, "delivery", "re-scoping used up", count, 0, owner, "asks the user"
        )
    return LoopProgress(Loop.MAJOR, "delivery", *_turn_after_major(facts, order, count, left))


def _turn_after_major(
    facts: LoopFacts, order: int, count: int, left: int
) -> tuple[str, int, int, str, str]:
    """Return how far re-scoping is. Questionary, PO, Lead and Dev act in turn."""
    if turn := _turn_after_work(facts, order, "re-worked"):
        state, name, what = turn
        return state, count, left, name, what
    for kind, state, role, what in _RE_SCOPING:
        if facts.is_after(order, kind):
            return state, count, left, name_at_work(role, facts.phase.options), what
    return "to be re-scoped", count, left, Role.QUESTIONARY, "PO Mode 0"


_RE_SCOPING = (
    ("plan", "planned again", Role.DEV, "does what was re-scoped"),
    ("scope-document", "scoped again", Role.LEAD, "plans what was re-scoped"),
    ("discovery", CLARIFIED_AGAIN, Role.PO, "approves the scope"),
)
"""(artifact kind written after the verdict, state, next role, what that role does). Latest kind
first."""


def _progress_of_feedback(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield the rounds of user feedback, as the execution state counts them."""
    entry = section(section(facts.phase.execution_state(), "steps"), "delivery")
    count = entry.get("feedback_rounds", 0)
    if not count:
        return
    left = max(0, _FEEDBACK_MOST - count)
    if entry.get("status") == "complete":
        yield LoopProgress(Loop.FEEDBACK, "delivery", "delivered", count, left)
    elif left:
        yield LoopProgress(
            Loop.FEEDBACK, "delivery", "with the Product Owner", count, left, Role.PO, "answers it"
        )
    else:
        yield LoopProgress(
            Loop.FEEDBACK, "delivery", "rounds used up", count, 0, Role.GO, "the user decides"
        )


def _research(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Yield each research request with its state.

    It is answered, served from the archive, under way, waiting for a Scout, or given up.
    """
    config = facts.phase.options.config.research_requests
    archive = {
        _question(line)
        for line in facts.phase.lines_of("research-archive")
        if line.get("conf") == "high"
    }
    for artifact in facts.phase.of_kind("research"):
        answered = {_question(line) for line in artifact.lines if line.get("src") != "pending"}
        requests = {
            _question(line): line for line in artifact.lines if line.get("src") == "pending"
        }
        ahead = 0
        for question, line in requests.items():
            asked_s = next(
                version.at_s
                for version in facts.history(artifact)
                if any(_question(x) == question for x in version.lines)
            )
            progress = _request(facts, Dept(artifact.place.department), line, facts.now_s - asked_s)
            if question in answered:
                progress = LoopProgress(Loop.RESEARCH, str(line.get("q")), "answered", 1, 0)
            elif question in archive:
                what = "delivers the archived answer"
                progress = LoopProgress(
                    Loop.RESEARCH, str(line.get("q")), "in the archive", 1, 0, Role.GO, what
                )
            elif progress.next == Role.SCOUT and ahead >= config.max_concurrent_scouts:
                progress = LoopProgress(
                    Loop.RESEARCH, progress.of, "queued", 0, 1, Role.SCOUT, "when a Scout is free"
                )
            ahead += progress.next == Role.SCOUT
            yield progress


def _request(
    facts: LoopFacts, department: Dept, line: Mapping[str, Any], waited_s: int
) -> LoopProgress:
    question, limit_s = (
        str(line.get("q")),
        facts.phase.options.config.research_requests.blocking_timeout_seconds,
    )
    if not is_blocking(line):
        return LoopProgress(
            Loop.RESEARCH,
            question,
            "informational",
            0,
            1,
            Role.SCOUT,
            "the agent continues with an assumption",
        )
    if waited_s > limit_s:
        asker = next((role for role in Role if role.value == line.get("ra")), None)
        name = name_in(asker, department) if asker else str(line.get("ra"))
        what = f"continues with an assumption: no answer within {limit_s} s"
        return LoopProgress(Loop.RESEARCH, question, "degraded", 0, 0, name, what)
    return LoopProgress(
        Loop.RESEARCH, question, "blocking", 0, 1, Role.SCOUT, "the agent waits for the answer"
    )


def _question(line: Mapping[str, Any]) -> str:
    return " ".join(str(line.get("q", "")).split()).casefold()


SOURCES = (
    _progress_of_questionary, _critique, code_reviews, qa_remediations, gate_remediations,
    _research, _delivery, _progress_of_feedback,
)  # fmt: skip
"""In the order of the workflow."""


_ESCALATES = {
    (Loop.CODE_REVIEW, ESCALATED): Role.SENIOR,
    (Loop.QA, QA_REMEDIES[-1].moves[0].text): Role.LEAD,
    (Loop.POST_TASK, LIMIT_REACHED): Role.DEV,
    (Loop.POST_PLAN, LIMIT_REACHED): Role.DEV,
}
"""(loop, state or move in which it is used up) → role that escalates it."""


def exhausted(facts: LoopFacts) -> Iterator[EscalationRequest]:
    """Yield the escalations that a phase's loops require and the committed log lacks."""
    for loop in (*code_reviews(facts), *qa_remediations(facts), *gate_remediations(facts)):
        role = _ESCALATES.get((loop.kind, loop.state)) or _ESCALATES.get((loop.kind, loop.what))
        if role is None:
            continue
        if target := _task_of(facts, loop, role):
            plan, task = target
            yield EscalationRequest(
                agent=name_in(role, plan.department),
                reason=f"{_about(loop)}{loop.state}, no round is left",
                boundary=loop.what,
                evidence=(f"{loop.round} rounds, the last one failed",),
                recommendation="decide whether to accept it, to change the design, or to try "
                "once more",
                severity="blocking",
                task=task,
            )


def settled(facts: LoopFacts) -> Iterator[tuple[EscalationProgress, str, str]]:
    """Yield each open escalation whose question is over by now, what it was about, and its end."""
    over = [
        progress for progress in (*code_reviews(facts), *qa_remediations(facts)) if progress.is_over
    ]
    for escalation in as_committed(facts.phase):
        if not escalation.is_open:
            continue
        department = escalation.department
        if loop := loop_of(escalation, over):
            yield escalation, f"{loop.kind.value} {loop.of}", loop.state
        elif _is_security_fail(escalation) and (end := end_of_security_fail(facts, department)):
            yield escalation, f"security FAIL {department}", end


def _is_security_fail(escalation: EscalationProgress) -> bool:
    return escalation.origin is Role.SECURITY and escalation.last_round[0].move == "fail"


def loop_of(escalation: EscalationProgress, loops: Iterable[LoopProgress]) -> LoopProgress | None:
    """Return the loop that a Senior's or Lead's escalation is about; None for any other."""
    reason = escalation.last_round[0].reason
    about = (
        loop
        for loop in loops
        if reason.startswith(_about(loop)) and loop.department in (None, escalation.department)
    )
    return next(about, None) if escalation.origin is not Role.DEV else None


def _about(loop: LoopProgress) -> str:
    return f"{loop.kind.value} {loop.of}: "


def _task_of(facts: LoopFacts, loop: LoopProgress, role: Role) -> tuple[Plan, str] | None:
    """Return a loop's plan and the task to escalate; None while the role has an open escalation."""
    task, plan = TaskRef.parse(loop.of), PlanId.parse(loop.of)
    plans = [
        each
        for each in plans_of(facts.phase)
        if loop.department in (None, each.department)
        and (each.id in (plan, task.plan if task else None) or each.department == loop.of)
    ]
    ids = {each.id for each in plans}
    known = {
        (each.department, str(each.id.task)): each
        for each in as_committed(facts.phase)
        if each.id.task.plan in ids
    }
    if any(
        each.is_open and each.origin is role and loop.department in (None, each.department)
        for each in known.values()
    ):
        return None
    every = ((each, f"{each.id}/{line.get('id')}") for each in plans for line in each.tasks)
    named = [(each, name) for each, name in every if task is None or str(task) == name]

    def escalation_of(candidate: tuple[Plan, str]) -> EscalationProgress | None:
        plan, task = candidate
        return known.get((plan.department, task))

    free = [each for each in named if not (open_ := escalation_of(each)) or not open_.is_open]
    return min(free, key=lambda each: _rank_task(escalation_of(each), loop), default=None)


def _rank_task(known: EscalationProgress | None, loop: LoopProgress) -> int:
    """Order tasks: first that of this loop, then those never escalated, then others."""
    if known is None:
        return 1
    return 0 if loop_of(known, (loop,)) else 2
