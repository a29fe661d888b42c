"""The log of escalations. See docs/dev/sources.md#document-002.

The nine keys of the protocol come first; the optional ones after them say what each level of the
round trip adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from yolo_fs.core.reasons import Reason
from yolo_fs.schemas.base import Field, Form, Shape, fault, invariant
from yolo_fs.schemas.formats import EscalationName, IsoInstant, OneLine, Positive, Statement, Text


class EscalationLine(Shape):
    """One station of an escalation; its later stations repeat the id with a later `dt`."""

    accepts: ClassVar[Mapping[str, Form]] = {
        "dt": Form.DAY_AS_MOMENT,
        "ev": Form.OBJECT_AS_TEXT,
        "opts": Form.OBJECT_AS_TEXT,
    }

    id: EscalationName
    """Escalation id."""
    dt: IsoInstant
    """Moment."""
    agent: OneLine
    """Agent that escalates."""
    reason: Statement
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
    att: Positive | None = None
    """Attempt: how many times the task was reported as blocked under this id, with this time."""
    mv: Literal["timeout", "remind", "fail", "stop", "over"] | None = None
    """Move that the other keys do not show: `timeout` when a level did not answer and the next is
    asked, `remind` when no other level may be asked, `fail` for a security FAIL, which skips the
    chain, `stop` when the round trips are used up, `over` when the review or the QA that a Senior
    or a Lead reported is finished.
    """
    ev: list[Text] | None = None
    """Evidence: what was seen or tried."""
    rec: Text | None = None
    """Recommendation."""
    opts: list[Text] | None = Field(default=None, examples=[["Keep the cache", "Ask each time"]])
    """Options to choose from, 2 or 3, from the Architect upward."""
    dec: Statement | None = None
    """Decision on its way down, on lines that are not resolved yet."""
    todo: list[Text] | None = None
    """Instructions that the decision comes with; `action_items` of document 000."""
    ref: OneLine | None = None
    """What shows that the task continues: a commit, or `dev_progress`; on resolved lines."""

    @invariant
    def options_are_few(self) -> object:
        """The deciding level gets two or three options."""
        if self.opts is None or len(self.opts) in (2, 3):
            return None
        return fault(
            Reason.OUT_OF_RANGE, f"{len(self.opts)} options", expected="2 or 3 options", at="/opts"
        )

    @invariant
    def resolution_belongs_to_resolved(self) -> object:
        """`res` stands on resolved lines, and on them alone."""
        if self.st == "resolved" and not self.res.strip():
            return fault(
                Reason.MISSING_KEY,
                "'res' is absent",
                expected="the decision, when st is resolved",
                at="/res",
            )
        if self.st != "resolved" and self.res:
            return fault(
                Reason.STATE_CONFLICT,
                f"a resolution while st is {self.st}",
                expected="st resolved, or no res",
                at="/res",
            )
        return None


class EscalationMessageLine(Shape):
    """The `escalation` message in the place of the log's line: the two are different shapes."""

    issue: Any = None
    """Key of the message."""
    evidence: Any = None
    """Key of the message."""
    recommendation: Any = None
    """Key of the message."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        """Return whether a line is the message."""
        return "issue" in value and "reason" not in value

    @invariant
    def is_another_shape(self) -> object:
        """Explain how the message becomes a line."""
        return fault(
            Reason.RIVAL_SHAPE,
            "this is the shape of the `escalation` message",
            expected="id, dt, agent (from), reason (issue), sb, tgt (to), sev (severity), st",
        )
