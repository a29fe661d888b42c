"""Reports of the Debugger. See docs/sources.md#document-000 and #document-002."""

from __future__ import annotations

from typing import Literal

from yolo_fs.schemas.base import Text, Wire


class DebugReport(Wire):
    """One hypothesis and what speaks for and against it: the message `debugger_report` without its envelope."""

    hypothesis: Text
    """Hypothesis."""
    evidence_for: list[Text]
    """What speaks for it."""
    evidence_against: list[Text]
    """What speaks against it."""
    confidence: Literal["high", "medium", "low"]
    """Confidence in it."""
    recommended_fix: str
    """Recommended fix; empty when the hypothesis was dropped."""
