"""What agents found, concluded and decided: critique, debug reports, decisions; what Scouts found,
what agents asked for, and what is kept for later phases.

See docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from yolo_fs.core.reasons import Grade, Reason
from yolo_fs.protocol.decisions import DECISION_KIND_BY_NAME
from yolo_fs.protocol.departments import Role
from yolo_fs.protocol.roster import role_of
from yolo_fs.schemas.base import SHOULD, Field, Form, Shape, fault, invariant
from yolo_fs.schemas.formats import FindingName, IsoDate, NotedInstant, OneLine, Statement, Text
from yolo_fs.schemas.names import DecisionKindOrNone

ConfidencePercent = Annotated[
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


class CritiqueFinding(Shape):
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
    q: Statement
    """Question: the finding itself."""
    ctx: Text
    """Context: why it matters here."""
    sug: Text
    """Suggestion."""
    st: Literal["open", "addressed", "deferred", "rejected"]
    """Status; the Architect flips it."""
    cf: ConfidencePercent | None = None
    """Confidence of the round in percent."""
    rd: Round | None = None
    """Round of the critique that found it."""


class DebugReport(Shape):
    """One hypothesis, what speaks for and against it: a `debugger_report` without its envelope."""

    accepts: ClassVar[Mapping[str, Form]] = {
        "evidence_for": Form.OBJECT_AS_TEXT,
        "evidence_against": Form.OBJECT_AS_TEXT,
    }

    hypothesis: Statement
    """Hypothesis."""
    evidence_for: list[Text]
    """What speaks for it."""
    evidence_against: list[Text]
    """What speaks against it."""
    confidence: Literal["high", "medium", "low"]
    """Confidence in it."""
    recommended_fix: str
    """Recommended fix; empty when the hypothesis was dropped."""


class LoggedDecision(Shape):
    """One decision that an agent took on the way."""

    accepts: ClassVar[Mapping[str, Form]] = {"ts": Form.DAY_AS_MOMENT, "alts": Form.OBJECT_AS_TEXT}

    ts: NotedInstant
    """Timestamp."""
    agent: OneLine
    """Agent that decided."""
    dec: Statement
    """Decision."""
    reason: Text
    """Reason."""
    task: str = ""
    """Task that it was taken for."""
    kind: DecisionKindOrNone = ""
    """What it decides, where evidence rests on it: `accept` lets a plan pass its review with known
    issues, `accept_risk` what a security audit has found, `approve` the work go on at an approval
    gate, `supersede` a record go; `assign` has a task done again. Free text decides nothing."""
    of: str = ""
    """The plan `NN-MM`, task, department, `DEPARTMENT:GATE`, or `FILE:RECORD`, that `kind` is
    about."""
    alts: list[Text] = Field(default_factory=list)
    """Alternatives that were considered."""

    @invariant
    def what_evidence_rests_on_is_justified(self) -> object:
        """A decision of a `kind` gives its reason."""
        if not self.kind or self.reason.strip():
            return None
        return fault(
            Reason.EMPTY_VALUE,
            f"{self.kind!r} without a reason",
            expected="a text that says why",
            at="/reason",
        )

    @invariant
    def kind_is_about_something(self) -> object:
        """A decision of a `kind` names in `of` what it is about."""
        row = DECISION_KIND_BY_NAME.get(self.kind)
        if row is None or re.fullmatch(row.of, self.of):
            return None
        reason = Reason.BAD_FORMAT if self.of else Reason.EMPTY_VALUE
        message = f"{self.kind!r} of {self.of!r} decides nothing"
        return fault(reason, message, expected=row.example, at="/of")

    @invariant
    def kind_is_decided_by_whoever_may(self) -> object:
        """A decision of a `kind` counts where the role that has the authority takes it."""
        row = DECISION_KIND_BY_NAME.get(self.kind)
        if row is None or row.by is None or role_of(self.agent) is row.by:
            return None
        whose = "the user" if row.by is Role.USER else "the Lead of the department"
        message = f"{self.agent} does not decide this: {whose} does"
        return fault(Reason.OUT_OF_LANE, message, expected=whose, at="/agent", grade=Grade.SHOULD)


Confidence = Literal["high", "medium", "low"]
Requester = Literal["dev", "senior", "tester", "lead", "architect", "critic", "orchestrator"]
"""Protocol 1.3 lists five; document 000 (`research_request`) adds the Lead and the Architect."""
RequestType = Literal["blocking", "informational"]


class ResearchFinding(Shape):
    """One finding of a Scout."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "directive": "q", "source": "src", "findings": "finding", "relevance": "rel",
    }  # fmt: skip
    accepts: ClassVar[Mapping[str, Form]] = {
        "dt": Form.MOMENT_AS_DAY,
        "resolved_at": Form.DAY_AS_MOMENT,
    }

    q: Statement
    """Question."""
    src: Literal["web", "docs", "codebase"]
    """Source of the answer."""
    finding: Statement
    """Answer."""
    conf: Confidence
    """Confidence in it."""
    dt: IsoDate
    """Day it was found."""
    rel: Text
    """Relevance: what it means for this phase."""
    brief_for: Text = ""
    """Critique finding, or agent, that the answer is for."""
    mode: Literal["pre-critic", "post-critic", "standalone"] = "standalone"
    """Moment of the research in the workflow."""
    priority: Literal["high", "medium", "low"] = "medium"
    """Priority of the request."""
    ra: Requester | None = None
    """Requesting agent."""
    rt: RequestType | None = None
    """Request type."""
    resolved_at: NotedInstant | None = None
    """Moment the request was answered."""


class Request(Shape):
    """A request that waits for its Scout: the router appends it without an answer."""

    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.MOMENT_AS_DAY}

    q: Statement
    """Question."""
    src: Literal["pending"]
    """No source yet."""
    finding: Literal[""] = ""
    """No answer yet."""
    conf: Literal[""] = ""
    """No confidence yet."""
    dt: IsoDate | None = None
    """Day of the request."""
    rel: str = ""
    """Relevance, when the requester told it."""
    brief_for: Text = ""
    """Critique finding, or agent, that the answer is for."""
    mode: Literal["pre-critic", "post-critic", "standalone"] = "standalone"
    """Moment of the research in the workflow."""
    priority: Literal["high", "medium", "low"] = "medium"
    """Priority of the request."""
    ra: Requester
    """Requesting agent."""
    rt: RequestType
    """Request type."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        """Return whether the line is a request rather than a finding."""
        return value.get("src") == "pending"


class ArchivedFinding(Shape):
    """A finding kept for the phases to come."""

    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.DAY_AS_MOMENT}

    q: Statement
    """Question."""
    finding: Statement
    """Answer."""
    conf: Confidence
    """Confidence in it."""
    phase: OneLine
    """Phase that it comes from."""
    dt: NotedInstant
    """Moment it was archived."""
    src: Literal["scout", "architect", "lead"]
    """Agent that it comes from."""
