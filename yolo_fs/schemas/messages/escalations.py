"""Escalations: up one level at a time, their resolution down again, and the warning when one waits
too long.

See docs/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

import typing
from typing import Literal

from yolo_fs.schemas.base import Count, EscalationName, Field, Text
from yolo_fs.schemas.messages.message import Direction, Message, Severity, SomeTexts, Texts

Escalating = Literal[
    "dev", "senior", "lead", "architect", "tester", "qa", "qa-code", "security", "documenter",
    "scout", "debugger", "critic", "owner",
]  # fmt: skip
"""Who may escalate."""
EscalatedTo = Literal["senior", "lead", "architect", "owner", "user"]
"""Who may receive an escalation."""
Resolver = Literal["user", "owner", "architect", "lead"]
"""Who may resolve an escalation."""


class Escalation(
    Message, sender=typing.get_args(Escalating), receiver=typing.get_args(EscalatedTo)
):
    """An issue that the sender cannot resolve within its authority.

    Whether this sender may escalate to this receiver is a rule on routes, not part of the shape.
    """

    type: Literal["escalation"]
    from_: Escalating = Field(alias="from")
    """Role that escalates."""
    to: EscalatedTo
    """Role that it reports to; `user` is reached through the orchestrator (go.md)."""
    issue: Text
    """What cannot be resolved."""
    evidence: SomeTexts
    """What shows it. "Escalation includes evidence" (document 002, rule 7), so there is some."""
    recommendation: Text
    """What the sender would do."""
    severity: Severity
    """How grave it is."""


class EscalationResolution(
    Message,
    sender=typing.get_args(Resolver),
    receiver=typing.get_args(Escalating),
    direction=Direction.DOWN,
):
    """The decision on an escalation, on its way down to the agent that is blocked; never upward."""

    type: Literal["escalation_resolution"]
    original_escalation: EscalationName
    """`id` of the escalation in .execution-state.json."""
    decision: Text
    """The concrete choice."""
    rationale: Text
    """Why it was made, for the audit trail and for those further down."""
    action_items: Texts
    """Instructions that the Senior translates into `code_review_changes`."""
    resolved_by: Resolver
    """Who decided; the user speaks through the orchestrator (go.md)."""


class EscalationTimeoutWarning(Message, sender="lead", receiver=("architect", "owner")):
    """An escalation has waited longer than `escalation.timeout_seconds`; the next level gets it."""

    type: Literal["escalation_timeout_warning"]
    original_escalation: EscalationName
    """`id` of the escalation in .execution-state.json."""
    elapsed_seconds: Count
    """Whole seconds since `last_escalated_at` of the escalation."""
    current_level: Literal["senior", "lead", "architect"]
    """Level at which it is stalled."""
    agent_blocked: Text
    """Who waits, for people: agent name and task reference."""
    recommended_action: Text
    """What to do next."""
