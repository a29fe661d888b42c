"""Gathers what the rules of loops ask for: the versions that artifacts had, and who worked on which plan, in order.

Source: document 002 ("Code Review Chain": metric collection points); design 1 ("Files + git are the only truth").
"""

from __future__ import annotations

from collections.abc import Iterator

from yolo_fs.edges.git.repository import Repository
from yolo_fs.rules.loops.facts import WITH_ROUNDS, LoopFacts, LoopProgress
from yolo_fs.rules.loops.rounds import loops
from yolo_fs.rules.phase.facts import PhaseFacts, Version, Work, plans_of
from yolo_fs.services.team import Team


def loops_of(repository: Repository, team: Team, facts: PhaseFacts, now_s: int) -> tuple[LoopProgress, ...]:
    """Return where the loops of a phase stand, whose facts `team` has gathered last."""
    return loops(loop_facts(repository, team, facts, now_s))


def loop_facts(repository: Repository, team: Team, facts: PhaseFacts, now_s: int) -> LoopFacts:
    """Return the facts of a phase's loops, as of the commit whose facts `team` has gathered last."""
    paths = sorted(filed.place.path for filed in facts.filed if filed.place.artifact.kind in WITH_ROUNDS)
    versions = {path: tuple(_versions(repository, team, path)) for path in paths}
    plans = [str(plan.id) for plan in plans_of(facts)]
    work = (Work(plan, one.at_s, one.height) for plan in plans for one in team.chronicle.work_on(plan))
    return LoopFacts(facts, now_s, versions, tuple(sorted(work, key=lambda one: one.order)))


def _versions(repository: Repository, team: Team, path: str) -> Iterator[Version]:
    """Yield the contents that an artifact had; a merge that only brings one in from elsewhere gives it none."""
    before = ""
    for commit in team.chronicle.past_of(path):
        blob = repository.blob_at(commit.oid, path)
        if blob and blob != before and (lines := team.lines_at(path, blob)):
            yield Version(lines, commit.at_s, commit.height)
        before = blob or before
