"""Facts about the team's loops, and the progress of one of them.

A file that is rewritten in each round does not show the rounds before; its versions in history do.
See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from yolo_fs.evidence.facts import (
    NOWHERE,
    CommittedArtifact,
    PhaseFacts,
    Version,
    Work,
    drop_restored,
    is_work_of,
    left_by_reverts,
    plans_of,
)
from yolo_fs.protocol.decisions import ASSIGN
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.roster import MEASURES, plain_name
from yolo_fs.schemas.contradictions import contradicted

WITH_ROUNDS = frozenset({
    "discovery", "critique", "plan", "summary", "research", "code-review", "verification",
    "qa-code", "po-qa-verdict", "integration-gate-result", "architecture", "scope-document",
    "security-audit", "decisions",
})  # fmt: skip
"""Kinds of artifacts whose history shows rounds."""

_GOES_ON: Mapping[str, tuple[str, frozenset[str]] | None] = {
    "discovery": None,
    "code-review": ("r", frozenset({"changes_requested"})),
    "verification": ("r", frozenset({"FAIL"})),
    "qa-code": ("r", frozenset({"FAIL"})),
    "research": ("src", frozenset({"pending"})),
    "po-qa-verdict": ("verdict", frozenset({"patch", "major"})),
    "integration-gate-result": ("r", frozenset({"FAIL"})),
    "security-audit": ("r", frozenset({"FAIL"})),
}
"""Kind → the key and its values that keep a loop going; None: the artifact's existence does."""


def goes_on(artifact: CommittedArtifact) -> bool:
    """Return whether an artifact keeps a loop going: what it asks for is still to be done."""
    kind = artifact.place.artifact.kind
    if kind not in _GOES_ON:
        return False
    asks = _GOES_ON[kind]
    if asks is None or any(line.get(asks[0]) in asks[1] for line in artifact.lines):
        return True
    return any(contradicted(kind, artifact.lines))


ROUNDS_OF: Mapping[str, tuple[str, ...]] = {
    "discovery": ("discovery",),
    "code-review": (
        "code-review", "summary", "architecture", "decisions", "verification", "qa-code",
    ),
    "verification": ("verification", "qa-code", "plan", "architecture", "decisions"),
    "qa-code": ("verification", "qa-code", "plan", "architecture", "decisions"),
    "research": ("research",),
    "integration-gate-result": ("integration-gate-result", "decisions"),
    "security-audit": ("security-audit", "decisions"),
    "po-qa-verdict": (
        "po-qa-verdict",
        "integration-gate-result",
        "discovery",
        "scope-document",
        "plan",
    ),
}  # fmt: skip
"""Kind that keeps a loop going → kinds whose versions show its progress."""

_OF_FORMER = {
    kind: tuple(row.key for row in MEASURES if row.of == kind) for kind in ("plan", "summary")
}
"""Kinds with many versions → the keys that are needed of a former version."""


def of_former(kind: str, lines: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
    """Return what the rules need of a former version: a long history must fit into memory."""
    keys = _OF_FORMER.get(kind)
    return (
        lines
        if keys is None
        else tuple({key: line[key] for key in keys if key in line} for line in lines[:1])
    )


class Loop(StrEnum):
    """Something that is repeated until it is good, or until the limit."""

    CODE_REVIEW = "code review"
    QA = "QA remediation"
    POST_TASK = "post-task gate"
    POST_PLAN = "post-plan gate"
    CRITIQUE = "critique"
    QUESTIONARY = "questionary"
    PATCH = "patch"
    MAJOR = "major"
    FEEDBACK = "delivery feedback"
    RESEARCH = "research request"


class DecidedFact(NamedTuple):
    """Who decided something, and when."""

    agent: str
    order: int
    """Place in history; last, where the past of the decision is not known."""
    position: int
    """On the branch; NOWHERE, where that is not known."""


class Metrics(NamedTuple):
    """The four metrics of a code review."""

    cycle_count: int
    finding_severity_distribution: Mapping[str, int]
    """Severity → number of findings, over all cycles."""
    time_per_cycle: tuple[int, ...]
    """Seconds from the summary, or from the review before, to each review."""
    escalation_triggered: bool


@dataclass(frozen=True, slots=True)
class LoopProgress:
    """Progress of one loop."""

    kind: Loop
    of: str
    """Its subject: a plan, task, department or question."""
    state: str
    round: int
    """Rounds so far."""
    rounds_left: int
    next: str = ""
    """Agent whose turn it is; empty when the loop is over."""
    what: str = ""
    """What that agent does, in the documents' words where they have any."""
    metrics: Metrics | None = None
    tasks: tuple[str, ...] = ()
    """Tasks that a Lead has assigned in it, `NN-MM/Tk`."""
    department: Dept | None = None
    """Whose work it is; None where it is the phase's."""

    @property
    def is_over(self) -> bool:
        """Whether no agent has to do anything."""
        return not self.next

    def __str__(self) -> str:
        turn = f", next {self.next}: {self.what}" if self.next else ""
        return (
            f"{self.kind.value} {self.of}: {self.state} (round {self.round}, "
            f"{self.rounds_left} left){turn}"
        )

    JSON_KEYS: ClassVar = {
        "loop": "kind",
        **{key: key for key in ("of", "state", "round", "rounds_left", "next", "what", "metrics")},
    }


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """Everything that the rules of loops may know."""

    phase: PhaseFacts
    now_s: int
    versions: Mapping[str, Sequence[Version]] = field(default_factory=dict)
    """Path → its versions, oldest first; a missing path has one, the content of the facts."""
    work: tuple[Work, ...] = ()
    """Oldest first."""

    def history(self, artifact: CommittedArtifact) -> Sequence[Version]:
        """Return the versions of an artifact, oldest first; the last is what the branch has. By a
        revert, nobody says again what was said before.
        """
        past = drop_restored(self.versions.get(artifact.place.path) or ())
        is_former = artifact.place.artifact.kind in _OF_FORMER
        if past and (is_former or past[-1].lines == artifact.lines):
            return past
        order = past[-1].order + 1 if past else 0
        return (*past, Version(artifact.lines, artifact.at_s, order, artifact.position))

    def of(self, kind: str, department: Dept | None = None) -> Iterator[Version]:
        """Yield the versions of all artifacts of a kind, file by file."""
        for artifact in self.phase.of_kind(kind, department):
            yield from self.history(artifact)

    def unread(self, kind: str, department: Dept | None = None) -> Iterator[Version]:
        """Yield the versions of a kind whose contents this clone does not have."""
        for artifact in self.phase.of_kind(kind, department):
            yield from self.phase.unread.get(artifact.place.path, ())

    def decisions(self, kind: str, of: str) -> Iterator[DecidedFact]:
        """Yield each decision on something, as of the first commit that has it."""
        for line, version in self._decided():
            if (line.get("kind"), line.get("of")) == (kind, of):
                agent = plain_name(str(line.get("agent")))
                yield DecidedFact(agent, version.order, version.position)

    def has_seen(self, decided: DecidedFact, order: int, position: int) -> bool:
        """Return whether a decision came after a verdict, and not on a branch beside it."""
        is_beside = decided.position != NOWHERE and self.phase.is_later(position, decided.position)
        return decided.order >= order and not is_beside

    def assigned(self, order: int, agent: str, tasks: Collection[str]) -> tuple[str, ...]:
        """Return which of some tasks an agent ordered again after a moment of history: what a
        decision of that kind is of, or the task of one without a kind, as the reference writes it.
        """
        named = (
            str(line.get("of" if line.get("kind") else "task"))
            for line, version in self._decided()
            if version.order > order
            and (line.get("kind") or ASSIGN) == ASSIGN
            and plain_name(str(line.get("agent"))) == agent
        )
        return tuple(dict.fromkeys(task for task in named if task in tasks))

    def _decided(self) -> Iterator[tuple[Mapping[str, Any], Version]]:
        for artifact in self.phase.of_kind("decisions"):
            past = self.versions.get(artifact.place.path) or (
                Version(artifact.lines, artifact.at_s, sys.maxsize),
            )
            known: Sequence[Mapping[str, Any]] = ()
            for version in past:
                yield from ((line, version) for line in version.lines if line not in known)
                known = version.lines

    def is_after(self, order: int, kind: str, department: Dept | None = None) -> bool:
        """Return whether an artifact of a kind was written after a moment of history."""
        return any(version.order > order for version in self.of(kind, department))

    def is_worked_on(
        self,
        after: int,
        department: Dept | None = None,
        plan: str = "",
        *,
        before: int = sys.maxsize,
    ) -> bool:
        """Return whether source was committed between two moments, and not taken back by a revert:
        of a department (of any, if None), and of one of its plans (of any, if empty).
        """
        return bool(self.work_within(after, department, plan, before=before))

    def work_within(
        self,
        after: int,
        department: Dept | None = None,
        plan: str = "",
        *,
        before: int = sys.maxsize,
    ) -> list[Work]:
        """Return the source commits of `is_worked_on`."""
        return left_by_reverts(
            work
            for work in self.work
            if after < work.position < before
            and plan in ("", work.plan)
            and (department is None or is_work_of(work, department, plans_of(self.phase)))
        )


def loop_facts(facts: PhaseFacts) -> LoopFacts:
    """Return the input of the loops, as of the commit's own time."""
    return LoopFacts(facts, facts.at_s, facts.versions, facts.work)
