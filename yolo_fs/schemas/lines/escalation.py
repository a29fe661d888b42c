"""The log of escalations. Source: protocol 1.3 (row `escalation`), 4.4 and 10 #2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import EscalationName, IsoInstant, OneLine, Text, Wire, fault, invariant


class EscalationLine(Wire):
    """One station of an escalation; its later stations repeat the id with a later `dt`."""

    id: EscalationName
    """Escalation id."""
    dt: IsoInstant
    """Moment."""
    agent: OneLine
    """Agent that escalates."""
    reason: Text
    """Why it cannot go on."""
    sb: Text
    """Scope boundary: why the matter is outside of its authority."""
    tgt: OneLine
    """Target: the role it turns to."""
    sev: Literal["blocking", "major", "minor"]
    """Severity."""
    st: Literal["open", "escalated", "resolved"]
    """Status."""
    res: str = ""
    """Resolution, on resolved lines only."""

    @invariant
    def resolution_belongs_to_resolved(self) -> object:
        """`res` stands on resolved lines, and on them alone."""
        if self.st == "resolved" and not self.res.strip():
            return fault(Reason.MISSING_KEY, "'res' is absent", expected="the decision, when st is resolved", at="/res")
        if self.st != "resolved" and self.res:
            return fault(
                Reason.STATE_CONFLICT,
                f"a resolution while st is {self.st}",
                expected="st resolved, or no res",
                at="/res",
            )
        return None


class EscalationMessageLine(Wire):
    """The `escalation` message in the place of the log's line: the two are different shapes."""

    issue: Any = None
    """Key of the message."""
    evidence: Any = None
    """Key of the message."""
    recommendation: Any = None
    """Key of the message."""

    @classmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        """Tell whether a line is the message."""
        return "issue" in value and "reason" not in value

    @invariant
    def is_another_shape(self) -> object:
        """Explain how the message becomes a line."""
        return fault(
            Reason.RIVAL_SHAPE,
            "this is the shape of the `escalation` message",
            expected="id, dt, agent (from), reason (issue), sb, tgt (to), sev (severity), st",
        )
