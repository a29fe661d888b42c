"""The status of a gate as a value, and the view of a phase that gates and waits use. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Finding, safe
from yolo_fs.escalations.log import EscalationProgress
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.phase.progress import DepartmentStatus, PhaseStatus
from yolo_fs.protocol.gates import INTEGRATION


@dataclass(frozen=True, slots=True)
class MissingEvidence:
    """One piece of evidence that a gate lacks."""

    what: str
    file: str
    """File that would carry it, in the phase directory."""
    line: int = 0
    """Line that contradicts it; 0 when there is none yet."""
    command: str = ""
    """What to type to see or to supply it."""
    owed_by: str = ""
    """Department whose Lead has to act, where the line names one that works on the phase."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.what} ({place})"

    @property
    def with_command(self) -> str:
        """The same, and what to type; each escaped for a terminal."""
        return f"{safe(str(self))}  → {safe(self.command)}" if self.command else safe(str(self))


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
    def standing(self) -> str:
        """Whether it is open, in words."""
        if self.is_open:
            return "open"
        return "closed" if self.blocking else "closed, not blocking"

    @property
    def holds_sign_off(self) -> bool:
        """Whether a phase may not be signed off for it; integration may come after that."""
        return self.blocking and not self.is_open and self.name != INTEGRATION

    @property
    def why_closed(self) -> str:
        """Why it is closed, by the first missing piece; one that is open has none."""
        return f"gate {self.name} is closed: {self.missing[0]}"

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


CheckResult = tuple[str, tuple[MissingEvidence, ...]]
"""`pass`, `fail` or `skip`, and what fails the check."""


class GateSource(Protocol):
    """The view of a phase that gates and waits use.

    `Phase` implements it, in a layer above them.
    """

    @property
    def id(self) -> PhaseId: ...
    @property
    def facts(self) -> PhaseFacts: ...
    @property
    def folded(self) -> PhaseStatus: ...
    @property
    def behind(self) -> tuple[DepartmentStatus, ...]: ...
    @property
    def gates(self) -> tuple[GateStatus, ...]: ...
    @property
    def integration_checks(self) -> Mapping[str, CheckResult]: ...
    @property
    def escalations(self) -> tuple[EscalationProgress, ...]: ...
    @property
    def false_claims(self) -> tuple[Finding, ...]: ...
