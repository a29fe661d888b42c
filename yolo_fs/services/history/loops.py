"""Gathers what the rules of loops ask for: the versions that artifacts had, and who worked on which
plan, in order.
"""

from __future__ import annotations

from yolo_fs.rules.evidence.facts import PhaseFacts, Work, plans_of
from yolo_fs.rules.loops.facts import WITH_ROUNDS, LoopFacts, LoopProgress
from yolo_fs.rules.loops.rounds import loops
from yolo_fs.services.history.team import Team


def loops_of(team: Team, facts: PhaseFacts, now_s: int) -> tuple[LoopProgress, ...]:
    """Return where the loops of a phase stand, whose facts `team` has gathered last."""
    return loops(loop_facts(team, facts, now_s))


def loop_facts(team: Team, facts: PhaseFacts, now_s: int) -> LoopFacts:
    """Return the facts of a phase's loops, as of the commit whose facts `team` has gathered last."""
    paths = sorted(
        filed.place.path for filed in facts.filed if filed.place.artifact.kind in WITH_ROUNDS
    )
    versions = {path: team.past_of(path) for path in paths}
    plans = [str(plan.id) for plan in plans_of(facts)]
    work = (
        Work(plan, one.at_s, one.height)
        for plan in plans
        for one in team.history_index.work_on(plan)
    )
    return LoopFacts(facts, now_s, versions, tuple(sorted(work, key=lambda one: one.order)))
