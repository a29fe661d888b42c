"""Gathers what the rules of loops ask for: the versions that artifacts had, and who worked on which plan, in order.

Source: document 002 ("Code Review Chain": metric collection points); design 1 ("Files + git are the only truth").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from yolo_fs.edges.git.history import LONG_S
from yolo_fs.edges.git.repository import Repository
from yolo_fs.rules.loops.facts import LoopFacts, LoopProgress
from yolo_fs.rules.loops.rounds import loops
from yolo_fs.rules.phase.correlation import purpose_of
from yolo_fs.rules.phase.facts import PhaseFacts, Version, Work
from yolo_fs.services.team import Team

KINDS = frozenset({
    "discovery", "critique", "plan", "summary", "research", "code-review", "verification", "qa-code",
    "po-qa-verdict", "integration-gate-result",
})  # fmt: skip
"""Artifacts whose past tells of rounds."""


class _Logged(NamedTuple):
    order: int
    at_s: int
    plan: str
    """The plan that the subject of a source commit names; empty for all others."""


def loops_of(repository: Repository, team: Team, facts: PhaseFacts, tip: str, now_s: int) -> tuple[LoopProgress, ...]:
    """Return where the loops of a phase stand as of a commit."""
    return loops(loop_facts(repository, team, facts, tip, now_s))


def loop_facts(repository: Repository, team: Team, facts: PhaseFacts, tip: str, now_s: int) -> LoopFacts:
    """Return the facts of a phase's loops as of a commit."""
    log = _log(repository, tip)
    paths = sorted(filed.place.path for filed in facts.filed if filed.place.artifact.kind in KINDS)
    versions = {path: tuple(_versions(team, path, tip, log)) for path in paths}
    work = tuple(Work(one.plan, one.at_s, one.order) for one in log.values() if one.plan)
    return LoopFacts(facts, now_s, versions, work)


def _log(repository: Repository, tip: str) -> dict[str, _Logged]:
    """Return the commits of the branch, oldest first."""
    form = "--format=%H%x00%ct%x00%s"
    answer = repository.git.run("log", "--reverse", form, "--end-of-options", tip, "--", timeout_s=LONG_S)
    found = {}
    for order, line in enumerate(answer.out.decode("utf-8", "replace").splitlines(), 1):
        oid, at, subject = line.split("\0", 2)
        found[oid] = _Logged(order, int(at), _plan_named(subject))
    return found


def _plan_named(subject: str) -> str:
    purpose = purpose_of(subject)
    return str(purpose.plan or "") if purpose and not purpose.step else ""


def _versions(team: Team, path: str, tip: str, log: Mapping[str, _Logged]) -> Iterator[Version]:
    for oid, lines in team.versions(path, tip):
        yield Version(lines, log[oid].at_s, log[oid].order)
