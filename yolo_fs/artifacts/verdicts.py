"""The values that rules exchange: places, verdicts and surroundings.

Layers pass these types to each other, never a dict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from yolo_fs.artifacts.table import Artifact
from yolo_fs.core.ids import PhaseId, PlanId
from yolo_fs.core.labelled import Labelled
from yolo_fs.core.reasons import Fault, Finding, Reason
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT

Located = tuple[int, Fault]
"""A line number (0: the whole file) and what is wrong there."""


class ArtifactPath(NamedTuple):
    """Which artifact a path is, and its place in the protocol."""

    path: str
    """POSIX path relative to the repository root."""
    artifact: Artifact
    phase: PhaseId | None = None
    plan: PlanId | None = None
    """The plan in the file name."""
    department: str = DEFAULT_DEPARTMENT

    @property
    def folder(self) -> str:
        """The directory of the artifact."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The file name."""
        return self.path.rpartition("/")[2]

    @property
    def is_of_another_phase(self) -> bool:
        """Whether its name is that of a plan of another phase than its directory."""
        own, named = self.phase, self.plan
        return own is not None and named is not None and own.number != named.phase


class PlanFacts(NamedTuple):
    """Facts about a plan for the checks of other artifacts."""

    wave: int | float
    needs: tuple[str, ...]
    """Plans that it depends on."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context in which the references of one artifact are checked."""

    plans: Mapping[str, PlanFacts] = field(default_factory=dict)
    """Plan id → facts, of every other readable plan of the phase."""
    commits: Mapping[str, bool] = field(default_factory=dict)
    """Commit hash → whether the repository has it, for the hashes that the artifact mentions."""
    present: frozenset[str] = frozenset()
    """Ids of the plans with a file beside it, readable or not."""
    tasks: frozenset[str] = frozenset()
    """`NN-MM/Tk` of each task of the plans whose tasks the artifact names."""
    findings: frozenset[str] = frozenset()
    """Ids of the findings in the critiques beside it."""


# A verdict is the result of one check of a path. Every candidate has exactly one.


@dataclass(frozen=True, slots=True)
class Accepted:
    """Valid, and to be committed under this subject."""

    place: ArtifactPath
    data: bytes
    blob: str
    subject: str
    trailers: tuple[tuple[str, str], ...]
    warnings: tuple[Finding, ...] = ()
    needs: tuple[str, ...] = ()
    """Ids of the plans that it depends on."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Invalid: never committed, never edited; its author is told."""

    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """Valid, but not to be committed at this time or place; checked again automatically."""

    reason: Reason
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not to be judged yet: it is still being written, incomplete or too recently changed."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Committed:
    """The branch has this content."""

    blob: str
    reason: Reason = Reason.UNCHANGED
    """UNCHANGED; INDEX_DIVERGED when the user has staged another version."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Committed, but gone from the work tree. Deletions are never committed."""

    reason: Reason = Reason.DELETED


@dataclass(frozen=True, slots=True)
class Ignored:
    """Not an artifact."""

    reason: Reason = Reason.NOT_AN_ARTIFACT


Verdict = Accepted | Rejected | Held | Waiting | Committed | Missing | Ignored


class CandidateState(Labelled):
    """Where a candidate stands, with what that means."""

    COMMITTED = "committed", "on the branch, even if it is deleted from the work tree"
    PENDING = "pending", "it will be checked again in a moment"
    HELD = "held", "valid, but git or the configuration stands in the way"
    REJECTED = "rejected", "invalid; each error is shown with its place"
