"""What Scouts found, what agents asked for, and what is kept for later phases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from yolo_fs.schemas.base import Form, IsoDate, NotedInstant, OneLine, Text, Wire

Confidence = Literal["high", "medium", "low"]
Requester = Literal["dev", "senior", "tester", "lead", "architect", "critic", "orchestrator"]
"""Protocol 1.3 lists five; document 000 (`research_request`) adds the Lead and the Architect."""
RequestType = Literal["blocking", "informational"]


class ResearchFinding(Wire):
    """One finding of a Scout."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "directive": "q", "source": "src", "findings": "finding", "relevance": "rel",
    }  # fmt: skip
    accepts: ClassVar[Mapping[str, Form]] = {
        "dt": Form.MOMENT_AS_DAY,
        "resolved_at": Form.DAY_AS_MOMENT,
    }

    q: Text
    """Question."""
    src: Literal["web", "docs", "codebase"]
    """Source of the answer."""
    finding: Text
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


class Request(Wire):
    """A request that waits for its Scout: the router appends it without an answer."""

    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.MOMENT_AS_DAY}

    q: Text
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


class ArchivedFinding(Wire):
    """A finding kept for the phases to come."""

    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.DAY_AS_MOMENT}

    q: Text
    """Question."""
    finding: Text
    """Answer."""
    conf: Confidence
    """Confidence in it."""
    phase: OneLine
    """Phase that it comes from."""
    dt: NotedInstant
    """Moment it was archived."""
    src: Literal["scout", "architect", "lead"]
    """Agent that it comes from."""
