"""What agents found, concluded and decided: critique, debug reports, decisions.

See docs/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from yolo_fs.schemas.base import SHOULD, Field, FindingName, Form, NotedInstant, OneLine, Text, Wire

Confidence = Annotated[
    int,
    Field(
        ge=0,
        le=100,
        examples=[85],
        description="a whole number from 0 to 100",
        json_schema_extra=SHOULD,
    ),
]
Round = Annotated[
    int, Field(ge=1, le=3, examples=[1], description="round 1, 2 or 3", json_schema_extra=SHOULD)
]


class CritiqueFinding(Wire):
    """One finding of the Critic about a phase that is not designed yet."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "category": "cat", "severity": "sev", "finding": "q", "title": "q", "desc": "q",
        "detail": "ctx", "recommendation": "sug", "rec": "sug",
    }  # fmt: skip
    accepts: ClassVar[Mapping[str, Form]] = {"cf": Form.SHARE_AS_PERCENT}

    id: FindingName
    """Finding id."""
    cat: Literal["gap", "risk", "improvement", "question", "alternative"]
    """Category."""
    sev: Literal["critical", "major", "minor"]
    """Severity."""
    q: Text
    """Question: the finding itself."""
    ctx: Text
    """Context: why it matters here."""
    sug: Text
    """Suggestion."""
    st: Literal["open", "addressed", "deferred", "rejected"]
    """Status; the Architect flips it."""
    cf: Confidence | None = None
    """Confidence of the round in percent."""
    rd: Round | None = None
    """Round of the critique that found it."""


class DebugReport(Wire):
    """One hypothesis and what speaks for and against it: the message `debugger_report` without its
    envelope.
    """

    accepts: ClassVar[Mapping[str, Form]] = {
        "evidence_for": Form.OBJECT_AS_TEXT,
        "evidence_against": Form.OBJECT_AS_TEXT,
    }

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


class LoggedDecision(Wire):
    """One decision that an agent took on the way."""

    accepts: ClassVar[Mapping[str, Form]] = {"ts": Form.DAY_AS_MOMENT, "alts": Form.OBJECT_AS_TEXT}

    ts: NotedInstant
    """Timestamp."""
    agent: OneLine
    """Agent that decided."""
    dec: Text
    """Decision."""
    reason: Text
    """Reason."""
    task: str = ""
    """Task that it was taken for."""
    alts: list[Text] = Field(default_factory=list)
    """Alternatives that were considered."""
