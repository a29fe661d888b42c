"""Messages that are left as files: from phase to phase, and from department to department.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import (
    Count,
    Form,
    IsoInstant,
    NotedPath,
    PhaseNumber,
    Text,
    Wire,
    fault,
    invariant,
)
from yolo_fs.schemas.messages.message import Direction, Message, Texts
from yolo_fs.schemas.names import DepartmentName


class PhaseHandoff(
    Message, sender="orchestrator", receiver=("critic", "architect"), direction=Direction.FORWARD
):
    """Key outputs, decisions and open items of a phase, for the next one; one line of
    phase-handoff.jsonl.
    """

    accepts: ClassVar[Mapping[str, Form]] = {
        "from_phase": Form.PHASE,
        "to_phase": Form.PHASE,
        "dt": Form.DAY_AS_MOMENT,
        "decisions": Form.OBJECT_AS_TEXT,
        "open_items": Form.OBJECT_AS_TEXT,
        "artifacts": Form.OBJECT_AS_PATH,
        "research_refs": Form.OBJECT_AS_TEXT,
    }

    type: Literal["phase_handoff"]
    from_phase: PhaseNumber
    """Source phase."""
    to_phase: PhaseNumber
    """Target phase."""
    dt: IsoInstant
    """Timestamp."""
    decisions: Texts
    """Key decisions carried forward."""
    open_items: Texts
    """Deferred or unresolved items."""
    artifacts: list[NotedPath]
    """Names of the files produced."""
    research_refs: Texts
    """References into the research archive."""
    escalations_resolved: Count
    """Number of escalations resolved."""
    escalations_pending: Count
    """Number of escalations still pending."""

    @invariant
    def next_phase_comes_later(self) -> object:
        """`to_phase` > `from_phase`: the handoff goes to a phase that follows."""
        if self.to_phase > self.from_phase:
            return None
        return fault(
            Reason.STATE_CONFLICT,
            f"phase {self.to_phase} does not follow phase {self.from_phase}",
            expected="a phase after " + self.from_phase,
            at="/to_phase",
        )


class Contract(Wire):
    """One API or component contract."""

    name: Text
    """What it is about."""
    spec: Text
    """Where it is specified: a file, and an entry in it after `#`."""


class DeptHandoff(Message, sender="lead", receiver="lead", direction=Direction.ACROSS):
    """Artifacts and contracts of a department on which another depends; one line of
    dept-handoff.jsonl.
    """

    accepts: ClassVar[Mapping[str, Form]] = {
        "dt": Form.DAY_AS_MOMENT,
        "artifacts": Form.OBJECT_AS_PATH,
        "blockers": Form.OBJECT_AS_TEXT,
    }

    type: Literal["dept_handoff"]
    from_dept: DepartmentName
    """Source department."""
    to_dept: DepartmentName
    """Target department."""
    dt: IsoInstant
    """Timestamp."""
    artifacts: list[NotedPath]
    """Names of the files shared."""
    contracts: list[Contract]
    """API and component contracts; the integration gate checks that each is satisfied."""
    blockers: Texts
    """Unresolved blockers; the integration gate fails while there are any."""
    notes: str
    """The Lead's commentary; may be empty."""

    @invariant
    def departments_differ(self) -> object:
        """`to_dept` is another department than `from_dept`."""
        if self.to_dept != self.from_dept:
            return None
        message = f"{self.from_dept} hands off to itself"
        return fault(Reason.SELF_REFERENCE, message, expected="another department", at="/to_dept")
