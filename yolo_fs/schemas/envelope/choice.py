"""What the orchestrator chose after an error handoff, and the state that this leads to.

See docs/sources.md#document-003.
"""

from __future__ import annotations

from typing import Literal

from yolo_fs.schemas.base import IsoInstant, Percent, Positive, RelativePath, Text, Wire
from yolo_fs.schemas.envelope.envelope import AgentType
from yolo_fs.schemas.packet import Guid

__all__ = ["Choice", "Choices", "NextState", "WayName"]

WayName = Literal["retry", "ask", "skip", "abort"]
"""The document's four ways, in its order."""


class NextState(Wire):
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


class Choice(Wire):
    """One choice."""

    error: RelativePath
    """File of the error handoff."""
    way: WayName
    """Way that was taken."""
    chosen_at: IsoInstant
    """When."""
    leads_to: NextState
    """State that follows."""


class Choices(Wire):
    """`choices_[session-id].json`: all choices of a session, oldest first."""

    session_id: Guid
    """Session."""
    choices: list[Choice]
    """Choices."""
