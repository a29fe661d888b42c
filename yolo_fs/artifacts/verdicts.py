"""The values that rules speak in: places, verdicts and surroundings.

No dict stands between two floors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from yolo_fs.artifacts.table import Artifact
from yolo_fs.core.ids import PhaseId, PlanId
from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT


class Place(NamedTuple):
    """Which artifact a path is, and its place in the protocol."""

    path: str
    """POSIX path relative to the repository root."""
    artifact: Artifact
    phase: PhaseId | None = None
    plan: PlanId | None = None
    """The plan that the file name spells."""
    department: str = DEFAULT_DEPARTMENT

    @property
    def folder(self) -> str:
        """The directory of the artifact."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The file name."""
        return self.path.rpartition("/")[2]


class PlanFacts(NamedTuple):
    """What other artifacts may ask of a plan."""

    wave: int | float
    needs: tuple[str, ...]
    """Plans that it depends on."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known around one artifact when its references are checked."""

    plans: Mapping[str, PlanFacts] = field(default_factory=dict)
    """Plan id → facts, of every readable plan of the phase but this one."""
    commits: Mapping[str, bool] = field(default_factory=dict)
    """Commit hash → whether the repository has it, for the hashes that the artifact mentions."""
    present: frozenset[str] = frozenset()
    """Ids of the plans that have a file beside it, readable or not."""


# The verdict is the result of one look at a path. Every candidate has exactly one.


@dataclass(frozen=True, slots=True)
class Accepted:
    """Valid, and to be committed under this subject."""

    place: Place
    data: bytes
    blob: str
    subject: str
    trailers: tuple[tuple[str, str], ...]
    warnings: tuple[Finding, ...] = ()
    needs: tuple[str, ...] = ()
    """Ids of the plans that it depends on."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Invalid: never committed, never edited; its writer is told."""

    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """Valid, but the moment or the place is not right; checked again automatically."""

    reason: Reason
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not to be judged yet."""

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
    """No artifact."""

    reason: Reason = Reason.NOT_AN_ARTIFACT


Verdict = Accepted | Rejected | Held | Waiting | Committed | Missing | Ignored
