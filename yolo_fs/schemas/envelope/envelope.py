"""The master envelope, the table of the payload that each route carries, and what was chosen after
an error handoff.

See docs/dev/sources.md#document-003.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from yolo_fs.core.reasons import Fault, Level, Reason
from yolo_fs.schemas.base import Field, Shape
from yolo_fs.schemas.check import check
from yolo_fs.schemas.envelope import reports, requests
from yolo_fs.schemas.formats import IsoInstant, Percent, Positive, RelativePath, Text
from yolo_fs.schemas.layout import Strictness
from yolo_fs.schemas.packet import Guid

WayName = Literal["retry", "ask", "skip", "abort"]
"""The document's four ways, in its order."""


class NextState(Shape):
    """How the workflow stands once a way is taken."""

    status: Literal["running", "waiting", "complete", "aborted"]
    """What the workflow does."""
    agent_type: AgentType | None
    """Who acts next, if anyone."""
    phase_to_execute: Text | None
    """What is executed; null when nothing is."""
    attempt: Positive
    """Number of that agent's attempt."""
    degraded: list[Text]
    """Phases whose output is missing from here on."""
    phases_completed: list[Text]
    """Phases that are over."""
    phases_remaining: list[Text]
    """Phases to come."""
    progress_percentage: Percent
    """Progress."""


class Choice(Shape):
    """One choice."""

    error: RelativePath
    """File of the error handoff."""
    way: WayName
    """Way that was taken."""
    chosen_at: IsoInstant
    """When."""
    leads_to: NextState
    """State that follows."""


class Choices(Shape):
    """`choices_[session-id].json`: all choices of a session, oldest first."""

    session_id: Guid
    """Session."""
    choices: list[Choice]
    """Choices."""


AgentType = Literal[
    "user", "orchestrator", "market-research", "prfaq", "prd", "prototype", "ai-framing"
]
"""The document's six, and `user`: the first of its payloads goes from the user to the orchestrator.
"""

Slug = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_]*$",
        examples=["Harbor_Ledger"],
        description="letters and digits with underscores, no spaces",
    ),
]
"""Part of every file name of the document's "File Storage Convention"."""


class SourceAgent(Shape):
    """Who hands over."""

    agent_type: AgentType
    """Kind of agent."""
    phase_completed: Text
    """What it has done."""
    execution_time_ms: Annotated[int | float, Field(ge=0, examples=[84200])]
    """How long that took."""


class TargetAgent(Shape):
    """Agent that continues."""

    agent_type: Text
    """Kind of agent; together with the source it must be a route of `PAYLOADS`."""
    phase_to_execute: Text
    """What it shall do."""


class CreatedArtifact(Shape):
    """A file that the source made."""

    type: Literal["markdown", "html", "json"]
    """Kind of file."""
    path: RelativePath
    """Path from the project's root."""
    description: Text
    """What it holds."""


class Artifacts(Shape):
    """Files that go with the handoff."""

    created: list[CreatedArtifact]
    """Files that the source made."""
    referenced: list[RelativePath]
    """Earlier files that the target may need."""


class WorkflowState(Shape):
    """How far the product is."""

    is_ai_ml_product: bool
    """Whether the AI framing takes part."""
    execution_mode: Literal["full-approval", "streamlined"]
    """Whether each phase is approved."""
    phases_completed: list[Text]
    """Phases that are over."""
    phases_remaining: list[Text]
    """Phases to come."""
    progress_percentage: Percent
    """Progress."""


class Envelope(Shape):
    """The structure of every communication between agents."""

    handoff_version: Literal["1.0"]
    """Version of the document."""
    timestamp: IsoInstant
    """When it was sent."""
    session_id: Guid
    """Session."""
    product_name: Text
    """Name of the product."""
    product_name_slug: Slug
    """The name, fit for a file name."""
    source_agent: SourceAgent
    """Who hands over."""
    target_agent: TargetAgent
    """Agent that continues."""
    artifacts: Artifacts
    """Files that go with it."""
    payload: dict[str, Any]
    """What the route carries; `payload_shape` tells its shape."""
    workflow_state: WorkflowState
    """How far the product is."""


PAYLOADS: Mapping[tuple[str, str], type[Shape]] = {
    ("user", "orchestrator"): requests.InitialInput,
    ("orchestrator", "market-research"): requests.MarketResearchRequest,
    ("market-research", "orchestrator"): reports.MarketResearchReport,
    ("orchestrator", "ai-framing"): requests.AiFramingRequest,
    ("ai-framing", "orchestrator"): reports.AiFramingReport,
    ("orchestrator", "prfaq"): requests.PrfaqRequest,
    ("prfaq", "orchestrator"): reports.PrfaqReport,
    ("orchestrator", "prd"): requests.PrdRequest,
    ("prd", "orchestrator"): reports.PrdReport,
    ("orchestrator", "prototype"): requests.PrototypeRequest,
    ("prototype", "orchestrator"): reports.PrototypeReport,
}
"""Payload of each route, source first."""


def read_envelope(
    value: Mapping[str, Any], mode: Strictness = Strictness()
) -> tuple[Envelope | None, tuple[Fault, ...]]:
    """Return the envelope, or None when it or its payload is wrong, with the faults of both."""
    shaped, faults = check(Envelope, value, mode)
    faults += payload_faults(value, mode)
    if any(fault.level is Level.ERROR for fault in faults) or not isinstance(shaped, Envelope):
        return None, faults
    return shaped, faults


def payload_shape(value: Mapping[str, Any]) -> type[Shape] | None:
    """Return the shape that an envelope's payload must have, or None when its route is unknown."""
    payload = value.get("payload")
    if isinstance(payload, Mapping) and "error" in payload:
        return reports.ErrorReport
    return PAYLOADS.get(route_of(value))


def payload_faults(value: Mapping[str, Any], mode: Strictness = Strictness()) -> tuple[Fault, ...]:
    """Return what is wrong with the payload, by the route of its envelope."""
    payload = value.get("payload")
    if not isinstance(payload, Mapping):
        return ()
    shape = payload_shape(value)
    if shape is None:
        return _check_route(value)
    _, faults = check(shape, payload, mode)
    return tuple(fault._replace(at=f"/payload{fault.at}") for fault in faults)


def _check_route(value: Mapping[str, Any]) -> tuple[Fault, ...]:
    source, target = route_of(value)
    targets = [there for here, there in PAYLOADS if here == source]
    if not targets or not target:
        return ()
    message = f"nothing is handed from {source!r} to {target!r}"
    return (Fault(Reason.UNKNOWN_VALUE, "/target_agent/agent_type", message, " or ".join(targets)),)


def route_of(value: Mapping[str, Any]) -> tuple[str, str]:
    """Return the source and the target of an envelope; empty for one that is no text."""
    return _agent_type_of(value.get("source_agent")), _agent_type_of(value.get("target_agent"))


def _agent_type_of(agent: object) -> str:
    kind = agent.get("agent_type") if isinstance(agent, Mapping) else None
    return kind if isinstance(kind, str) else ""
