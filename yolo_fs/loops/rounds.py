"""Where each loop of a phase stands, who is next in it, how many rounds are left, and what whoever
has to escalate a used-up one would say. Pure.

See docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from yolo_fs.core.ids import PlanId, TaskRef
from yolo_fs.escalations.fold import as_committed
from yolo_fs.escalations.lines import EscalationRequest
from yolo_fs.escalations.log import EscalationProgress
from yolo_fs.evidence.facts import Plan, is_blocking, plans_of
from yolo_fs.loops.facts import Loop, LoopFacts, LoopProgress
from yolo_fs.loops.repairs import (
    ESCALATED,
    LIMIT_REACHED,
    code_reviews,
    gate_remediations,
    qa_remediations,
)
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept, Role, name_in
from yolo_fs.protocol.gates import QA_REMEDIES
from yolo_fs.protocol.workflow import LIMIT_BY_KEY

_PATCH_MOST = int(LIMIT_BY_KEY["delivery.max_patch_cycles"].value)
_MAJOR_MOST = int(LIMIT_BY_KEY["delivery.max_major_cycles"].value)
PATCH_FAILED = "patch failed"
AFTER_REWORK = frozenset({"planned again", "patched", "re-worked", "integrated again"})
"""States of a patch and of a re-scoping in which the steps of the departments lead on."""
_FEEDBACK_MOST = int(LIMIT_BY_KEY["delivery.max_feedback_rounds"].value)


def loops(facts: LoopFacts) -> tuple[LoopProgress, ...]:
    """Return every loop of a phase that has begun."""
    return tuple(one for source in SOURCES for one in source(facts))


def _questionary(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Clarification of the scope: each version of discovery.json is a round of questions."""
    config = facts.phase.switches.config.po
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
    sure = _confidence(rounds[-1].lines[0]) if rounds and rounds[-1].lines else 0.0
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


def _confidence(line: Mapping[str, Any]) -> float:
    found = next((line[key] for key in ("confidence", "scope_confidence") if key in line), 0)
    return float(found) if isinstance(found, int | float) else 0.0


def _critique(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Rounds of the Critic: over at the threshold of confidence, or after the last; findings that
    name no round are no loop.
    """
    config = facts.phase.switches.config.critique
    for filed in facts.phase.of_kind("critique") if config.enabled else ():
        rated = [line for line in filed.lines if isinstance(line.get("rd"), int)]
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
        name = filed.place.department
        if sure >= config.confidence_threshold:
            yield LoopProgress(Loop.CRITIQUE, name, "confident", number, left)
        elif not left:
            yield LoopProgress(Loop.CRITIQUE, name, "rounds used up", number, 0)
        else:
            what = f"another round: {sure} % sure, {config.confidence_threshold} % are asked for"
            yield LoopProgress(
                Loop.CRITIQUE, name, "not sure enough", number, left, Role.CRITIC, what
            )


def _delivery(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Patch and major cycles, as the verdicts of the Product Owner tell them."""
    verdicts: list[tuple[Mapping[str, Any], int]] = []
    for version in facts.of("po-qa-verdict"):
        known = [line for line, _ in verdicts]
        verdicts += [(line, version.order) for line in version.lines if line not in known]
    said = [str(line.get("verdict")) for line, _ in verdicts]
    if patches := said.count("patch"):
        yield _patch(facts, verdicts[-1], patches)
    if majors := said.count("major"):
        yield _major(facts, verdicts[-1], majors)


def _patch(facts: LoopFacts, last: tuple[Mapping[str, Any], int], count: int) -> LoopProgress:
    line, order = last
    left = max(0, _PATCH_MOST - count)
    target = str(line.get("target_dept") or "")
    if line.get("verdict") != "patch":
        return LoopProgress(
            Loop.PATCH, target or "delivery", f"ended by {line.get('verdict')}", count, left
        )
    what = "If patch fails, escalate to Major path"
    if count > _PATCH_MOST:
        return LoopProgress(Loop.PATCH, target, "patches used up", count, 0, Role.PO, what)
    if _has_integrated(facts, order, "FAIL"):
        return LoopProgress(Loop.PATCH, target, PATCH_FAILED, count, 0, Role.PO, what)
    state, name, what = _patch_turn(
        facts, order, Dept(target) if target in set(Dept) else DEFAULT_DEPARTMENT
    )
    return LoopProgress(Loop.PATCH, target, state, count, left, name, what)


def _has_integrated(facts: LoopFacts, order: int, result: str) -> bool:
    """Return whether the integration gate was run after a moment, and ended so."""
    runs = [one for one in facts.of("integration-gate-result") if one.order > order and one.lines]
    return bool(runs) and runs[-1].lines[-1].get("r") == result


def _patch_turn(facts: LoopFacts, order: int, department: Dept) -> tuple[str, str, str]:
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
    """Return whose turn it is once source, of a department or of any, was committed after a
    verdict; None before.
    """
    if facts.is_after(order, "integration-gate-result"):
        return "integrated again", Role.PO, "gives its verdict"
    if not facts.is_worked_on(order, department):
        return None
    switches = facts.phase.switches
    is_gated = switches.several_departments or switches.config.integration_gate.enabled
    if not (is_gated or facts.phase.of_kind("integration-gate-result")):
        return done, Role.PO, "gives its verdict"
    what = "re-run integration gate for the specific failing checks only"
    return done, Role.INTEGRATION_GATE, what


def _major(facts: LoopFacts, last: tuple[Mapping[str, Any], int], count: int) -> LoopProgress:
    line, order = last
    left = max(0, _MAJOR_MOST - count)
    if line.get("verdict") != "major":
        ended = f"ended by {line.get('verdict')}"
        return LoopProgress(Loop.MAJOR, "delivery", ended, count, left)
    if count > _MAJOR_MOST:
        owner = Role.OWNER if facts.phase.switches.several_departments else Role.GO
        return LoopProgress(
            Loop.MAJOR, "delivery", "re-scoping used up", count, 0, owner, "asks the user"
        )
    return LoopProgress(Loop.MAJOR, "delivery", *_major_turn(facts, order, count, left))


def _major_turn(
    facts: LoopFacts, order: int, count: int, left: int
) -> tuple[str, int, int, str, str]:
    """Return how far the work is scoped anew: by Questionary, PO, Lead and Dev in turn."""
    if turn := _turn_after_work(facts, order, "re-worked"):
        state, name, what = turn
        return state, count, left, name, what
    for kind, state, role, what in _RE_SCOPING:
        if facts.is_after(order, kind):
            return state, count, left, role, what
    return "to be re-scoped", count, left, Role.QUESTIONARY, "PO Mode 0"


_RE_SCOPING = (
    ("plan", "planned again", Role.DEV, "does what was re-scoped"),
    ("scope-document", "scoped again", Role.LEAD, "plans what was re-scoped"),
    ("discovery", "clarified again", Role.PO, "approves the scope"),
)
"""Kind that was written after the verdict → what that says, and whose turn it is; the last one
first."""


def _feedback(facts: LoopFacts) -> Iterator[LoopProgress]:
    """Rounds of the user's feedback, which the execution state counts."""
    steps = facts.phase.execution_state().get("steps")
    entry = steps.get("delivery") if isinstance(steps, dict) else None
    count = entry.get("feedback_rounds", 0) if isinstance(entry, dict) else 0
    if not isinstance(entry, dict) or not count:
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
    """Each request: answered, served from the archive, under way, waiting for a Scout, given up."""
    config = facts.phase.switches.config.research_requests
    archive = {
        _question(line)
        for line in facts.phase.lines_of("research-archive")
        if line.get("conf") == "high"
    }
    for filed in facts.phase.of_kind("research"):
        answered = {_question(line) for line in filed.lines if line.get("src") != "pending"}
        requests = {_question(line): line for line in filed.lines if line.get("src") == "pending"}
        ahead = 0
        for question, line in requests.items():
            asked_s = next(
                one.at_s
                for one in facts.history(filed)
                if any(_question(x) == question for x in one.lines)
            )
            found = _request(facts, Dept(filed.place.department), line, facts.now_s - asked_s)
            if question in answered:
                found = LoopProgress(Loop.RESEARCH, str(line.get("q")), "answered", 1, 0)
            elif question in archive:
                what = "delivers the archived answer"
                found = LoopProgress(
                    Loop.RESEARCH, str(line.get("q")), "in the archive", 1, 0, Role.GO, what
                )
            elif found.next == Role.SCOUT and ahead >= config.max_concurrent_scouts:
                found = LoopProgress(
                    Loop.RESEARCH, found.of, "queued", 0, 1, Role.SCOUT, "when a Scout is free"
                )
            ahead += found.next == Role.SCOUT
            yield found


def _request(
    facts: LoopFacts, department: Dept, line: Mapping[str, Any], waited_s: int
) -> LoopProgress:
    question, limit_s = (
        str(line.get("q")),
        facts.phase.switches.config.research_requests.blocking_timeout_seconds,
    )
    if not is_blocking(line):
        return LoopProgress(
            Loop.RESEARCH,
            question,
            "informational",
            0,
            1,
            Role.SCOUT,
            "the agent goes on with an assumption",
        )
    if waited_s > limit_s:
        asker = next((role for role in Role if role.value == line.get("ra")), None)
        name = name_in(asker, department) if asker else str(line.get("ra"))
        what = f"goes on with an assumption: no answer within {limit_s} s"
        return LoopProgress(Loop.RESEARCH, question, "degraded", 0, 0, name, what)
    return LoopProgress(
        Loop.RESEARCH, question, "blocking", 0, 1, Role.SCOUT, "the agent waits for the answer"
    )


def _question(line: Mapping[str, Any]) -> str:
    return " ".join(str(line.get("q", "")).split()).casefold()


SOURCES = (
    _questionary,
    _critique,
    code_reviews,
    qa_remediations,
    gate_remediations,
    _research,
    _delivery,
    _feedback,
)
"""In the order of the workflow."""


_ESCALATES = {
    (Loop.CODE_REVIEW, ESCALATED): Role.SENIOR,
    (Loop.QA, QA_REMEDIES[-1].occasion): Role.LEAD,
    (Loop.POST_TASK, LIMIT_REACHED): Role.DEV,
    (Loop.POST_PLAN, LIMIT_REACHED): Role.DEV,
}
"""Loop and state in which it is used up → who escalates it."""


def exhausted(facts: LoopFacts) -> Iterator[EscalationRequest]:
    """Yield the escalations that a phase's loops ask for and the committed log lacks."""
    for one in (*code_reviews(facts), *qa_remediations(facts), *gate_remediations(facts)):
        role = _ESCALATES.get((one.kind, one.state))
        if role is None or (role is Role.LEAD and one.next.endswith(Role.ARCHITECT)):
            continue
        if found := _task_of(facts, one, role):
            plan, task = found
            yield EscalationRequest(
                agent=name_in(role, plan.department),
                reason=f"{_about(one)}{one.state}, no round is left",
                boundary=one.what,
                evidence=(f"{one.round} rounds, the last one failed",),
                recommendation="decide whether to accept it, to change the design, or to try "
                "once more",
                severity="blocking",
                task=task,
            )


def settled(facts: LoopFacts) -> Iterator[tuple[EscalationProgress, LoopProgress]]:
    """Yield the open escalations of loops that are over by now, each with its loop."""
    over = [one for one in (*code_reviews(facts), *qa_remediations(facts)) if one.is_over]
    for one in as_committed(facts.phase):
        loop = loop_of(one, over) if one.is_open else None
        if loop:
            yield one, loop


def loop_of(one: EscalationProgress, loops: Iterable[LoopProgress]) -> LoopProgress | None:
    """Return which loop an escalation of a Senior or a Lead is about; None for any other."""
    said = one.last_round[0].reason
    about = (loop for loop in loops if said.startswith(_about(loop)))
    return next(about, None) if one.origin is not Role.DEV else None


def _about(loop: LoopProgress) -> str:
    return f"{loop.kind.value} {loop.of}: "


def _task_of(facts: LoopFacts, one: LoopProgress, role: Role) -> tuple[Plan, str] | None:
    """Return the plan of a loop, and the task to escalate; None while that role has one open."""
    task, plan = TaskRef.parse(one.of), PlanId.parse(one.of)
    plans = [
        each
        for each in plans_of(facts.phase)
        if each.id in (plan, task.plan if task else None) or each.department == one.of
    ]
    ids = {each.id for each in plans}
    known = {
        str(each.id.task): each for each in as_committed(facts.phase) if each.id.task.plan in ids
    }
    if any(each.is_open and each.origin is role for each in known.values()):
        return None
    every = ((each, f"{each.id}/{line.get('id')}") for each in plans for line in each.tasks)
    named = [(each, name) for each, name in every if task is None or str(task) == name]
    free = [one for one in named if one[1] not in known or not known[one[1]].is_open]
    return min(free, key=lambda named: _round_of(known.get(named[1]), one), default=None)


def _round_of(known: EscalationProgress | None, loop: LoopProgress) -> int:
    """Order tasks: first that of this loop, then those never escalated, then others."""
    if known is None:
        return 1
    return 0 if loop_of(known, (loop,)) else 2
