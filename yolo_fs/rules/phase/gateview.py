"""A gate as it is seen: what it lacks, what it rests on, and what its predicates look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from yolo_fs.rules.evidence.facts import PhaseFacts
from yolo_fs.rules.phase.progress import PhaseStatus


@dataclass(frozen=True, slots=True)
class MissingEvidence:
    """One piece of evidence that a gate lacks."""

    what: str
    file: str
    """File that would carry it, in the phase directory."""
    line: int = 0
    """Line that says otherwise; 0 when there is none yet."""
    command: str = ""
    """What to type to see or to supply it."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.what} ({place})"


@dataclass(frozen=True, slots=True)
class GateStatus:
    """One gate of one phase."""

    name: str
    missing: tuple[MissingEvidence, ...]
    evidence: tuple[tuple[str, str], ...]
    """(path, commit) of what it rests on."""
    blocking: bool = True

    @property
    def is_open(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    @property
    def rests_on(self) -> list[dict[str, str]]:
        """The evidence with its keys."""
        return [{"path": path, "commit": commit} for path, commit in self.evidence]

    JSON_KEYS: ClassVar = {
        "gate": "name",
        "open": "is_open",
        "blocking": "blocking",
        "missing": "missing",
        "evidence": "rests_on",
    }


@dataclass(frozen=True, slots=True)
class GateView:
    """What the predicates of a gate look at."""

    facts: PhaseFacts
    progress: PhaseStatus


def evidence_of(facts: PhaseFacts, kinds: set[str]) -> tuple[tuple[str, str], ...]:
    """Return (path, commit) of the committed artifacts of some kinds, in the order of the kinds."""
    return tuple(
        (filed.place.path, filed.commit)
        for kind in sorted(kinds)
        for filed in facts.of_kind(kind)
        if filed.commit
    )
