"""Findings of the Critic about a phase that is not designed yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from yolo_fs.schemas.base import Field, FindingName, Text, Wire

Confidence = Annotated[
    int, Field(ge=0, le=100, examples=[85], description="a whole number from 0 to 100")
]
Round = Annotated[int, Field(ge=1, le=3, examples=[1], description="round 1, 2 or 3")]


class CritiqueFinding(Wire):
    """One finding."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "category": "cat", "severity": "sev", "finding": "q", "desc": "q", "title": "q", "detail": "ctx",
        "recommendation": "sug", "rec": "sug",
    }  # fmt: skip

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
