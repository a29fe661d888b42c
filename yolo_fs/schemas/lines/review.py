"""What people and agents say about finished code: review, gaps, documentation, manual QA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from yolo_fs.schemas.base import SHOULD, Field, Form, Shape, may_lack
from yolo_fs.schemas.formats import (
    Count,
    IsoDate,
    LineNumber,
    NotedPath,
    OneLine,
    PlanName,
    Statement,
    Text,
)

Cycle = Annotated[
    int,
    Field(ge=1, le=3, examples=[1], description="review cycle 1, 2 or 3", json_schema_extra=SHOULD),
]
ManualTestName = Annotated[
    str,
    Field(
        pattern=r"^MQ-[1-9][0-9]*$",
        examples=["MQ-1"],
        description="manual test id",
        json_schema_extra=SHOULD,
    ),
]


class ReviewVerdict(Shape):
    """The first line of a review.

    Several reviews may share a file, each with its own verdict line.
    """

    renamed_keys: ClassVar[Mapping[str, str]] = {"plans": "plan"}
    accepts: ClassVar[Mapping[str, Form]] = {
        "plan": Form.SEVERAL_PLANS,
        "dt": Form.MOMENT_AS_DAY,
        "sg_promoted": Form.OBJECT_AS_TEXT,
    }

    plan: PlanName
    """Plan that was reviewed."""
    r: Literal["approve", "changes_requested"]
    """Result."""
    cycle: Cycle
    """Review cycle."""
    dt: IsoDate
    """Day of the review."""
    tdd: Literal["pass", "fail", "skip"] | None = None
    """Whether tests came before code."""
    sg_reviewed: Count | None = None
    """Number of the Dev's suggestions that were looked at."""
    sg_promoted: list[Text] = Field(default_factory=list)
    """Suggestions that became work."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        """Return whether a line begins a review rather than reports a finding."""
        return "r" in value or "cycle" in value


class ReviewFinding(Shape):
    """One finding of a review."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "file": "f",
        "line": "ln",
        "finding": "issue",
        "fix": "sug",
    }
    accepts: ClassVar[Mapping[str, Form]] = {"plan": Form.SHORT_PLAN}

    plan: PlanName | None = None
    """Plan of the finding, where several share the file."""
    f: NotedPath
    """File."""
    ln: LineNumber
    """Line number from 1; 0 when the finding concerns the whole file."""
    sev: Literal["critical", "major", "minor", "nit"]
    """Severity."""
    issue: Statement
    """What is wrong."""
    sug: Text
    """Suggestion."""


class DocEntry(Shape):
    """One piece of documentation that was written."""

    type: Literal["api", "script", "adr", "changelog"]
    """Type of documentation."""
    path: NotedPath
    """File that it went into."""
    content: Statement
    """Summary of its content."""
    section: Text
    """Section of the file."""
    sev: Literal["warn", "error"] | None = None
    """Severity, when the entry reports a fault of the documentation."""


class ManualTest(Shape):
    """One thing that the user tried."""

    id: ManualTestName
    """Manual test id."""
    desc: Statement
    """What was tried."""
    r: Literal["pass", "fail"]
    """Result."""
    notes: str = may_lack()
    """What the user said about it."""


class ManualQa(Shape):
    """The only line of a manual QA: what the user tried, and how it went."""

    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.MOMENT_AS_DAY}

    r: Literal["PASS", "FAIL", "PARTIAL"]
    """Result."""
    tests: list[ManualTest] = Field(min_length=1, json_schema_extra=SHOULD)
    """What was tried."""
    dt: IsoDate
    """Day of the test."""


class Gap(Shape):
    """One difference between what the plan promises and what the code does."""

    id: OneLine
    """Gap id."""
    sev: Literal["critical", "major", "minor"]
    """Severity."""
    desc: Statement
    """What is missing."""
    exp: Text
    """Expected."""
    act: Text
    """Actual."""
    st: Literal["open", "fixed", "accepted"]
    """Status; the Dev flips it."""
    res: str = ""
    """Resolution; empty while the gap is open."""
    retry_context: Text = ""
    """What the next attempt must know."""
