"""What a context is compiled from, and the word on where each of its lines comes from. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from yolo_fs.ids import PhaseId, PlanId
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.rules.authz.actors import Actor
from yolo_fs.schemas.layout import Record

SHORT = 12
"""Digits of a commit where people read it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something stands."""

    path: str
    """POSIX path relative to the repository; empty for a commit itself."""
    line: int = 0
    """From 1; 0 for the file as a whole: that it is there."""
    commit: str = ""
    """The commit that has it, where the work tree says otherwise; the commit itself where there is
    no path.
    """

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        if not self.commit:
            return place
        return f"{place}@{self.commit[:SHORT]}" if place else f"commit {self.commit[:SHORT]}"


@dataclass(frozen=True)
class ContextSource:
    """One file that may feed a context: valid as it stands, or as the branch has it."""

    path: str
    """POSIX path relative to the repository."""
    records: tuple[Record, ...] = ()
    lines: tuple[str, ...] = ()
    """Its text, line by line."""
    commit: str = ""
    """The commit whose version this is; empty when it is the work tree's."""

    @cached_property
    def place(self) -> Place | None:
        """Which artifact it is, if any."""
        return classify(self.path)

    @property
    def kind(self) -> str:
        """Kind of the artifact; empty when it is none."""
        return self.place.artifact.kind if self.place else ""

    @property
    def plan(self) -> PlanId | None:
        """The plan that its name spells."""
        return self.place.plan if self.place else None

    def at(self, line: int = 0) -> Origin:
        """Return the origin of one of its lines."""
        return Origin(self.path, line, self.commit)


@dataclass(frozen=True)
class ContextSources:
    """Everything that one context may be made of, before anybody asks what its reader may see."""

    phase: PhaseId
    actor: Actor
    sources: tuple[ContextSource, ...] = ()
    there: frozenset[str] = frozenset()
    """Paths of the files that exist, for references."""
    done: frozenset[PlanId] = frozenset()
    """Plans of the phase that nobody works on any more."""
    plan: PlanId | None = None
    """The one plan that it is for; None for all that are worked on."""
    commits: tuple[tuple[str, str], ...] = ()
    """The last commits, newest first: name and subject."""

    @property
    def folder(self) -> str:
        """The directory of the phase."""
        return f"{PLANNING_ROOT}/phases/{self.phase}"


@dataclass(frozen=True, slots=True)
class Withheld:
    """Something that would feed a section, and must not."""

    section: str
    what: str
    """A path, or the columns of a table."""
    rule: str
    """The rule that keeps it back, with its source."""
