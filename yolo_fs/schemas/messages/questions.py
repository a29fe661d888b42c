"""Questions and their answers: research, what Scout found and what the Debugger concluded;
escalations, up one level at a time, their resolution down again, and the warning when one waits too
long.

See docs/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

import typing
from typing import Annotated, Literal

from yolo_fs.protocol.roster import AGENT_BY_NAME, plain_name
from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import (
    Count,
    EscalationName,
    Field,
    IsoInstant,
    RelativePath,
    Text,
    Wire,
    fault,
    invariant,
)
from yolo_fs.schemas.messages.message import (
    ANY,
    Direction,
    Level3,
    Message,
    RequestType,
    RoleName,
    Severity,
    SomeTexts,
    Texts,
    foreign_task,
)


class ScoutFinding(Wire):
    """One answer of Scout."""

    query: Text
    """What was asked."""
    finding: Text
    """What was found."""
    confidence: Level3
    """How sure Scout is."""


class ScoutFindings(Message, sender="scout", receiver="lead"):
    """Research findings on one topic."""

    type: Literal["scout_findings"]
    domain: Literal["tech-stack", "architecture", "quality", "concerns"]
    """Topic that was investigated."""
    findings: list[ScoutFinding]
    """What was found; may be nothing."""
    artifact: RelativePath
    """research.jsonl of the phase, relative to the planning root; the orchestrator writes it."""
    committed: bool
    """Whether the artifact is committed."""


class ResearchRequest(Message, sender=ANY, receiver="orchestrator"):
    """Research asked for by an agent that lacks external information."""

    type: Literal["research_request"]
    from_: RoleName = Field(alias="from")
    """Role of the agent that asks."""
    task: Annotated[
        str,
        Field(
            pattern=r"^([0-9]{2}-[0-9]{2}/T[1-9][0-9]*)?$",
            examples=["01-02/T3"],
            description="task reference NN-MM/Tk, or empty",
        ),
    ]
    """Task reference; empty when an Architect or Lead asks before there are tasks."""
    plan_id: Annotated[
        str,
        Field(
            pattern=r"^([0-9]{2}-[0-9]{2})?$",
            examples=["01-02"],
            description="plan id NN-MM, or empty",
        ),
    ]
    """Plan identifier; empty when an Architect or Lead asks before there are plans."""
    query: Text
    """Research question."""
    context: Text
    """Why the information is needed."""
    request_type: RequestType
    """blocking: the agent cannot proceed; informational: it goes on with an assumption."""
    priority: Level3
    """How urgent it is."""

    @invariant
    def asker_is_an_agent(self) -> object:
        """`from` is a role of the roster; hosts that number their agents say which (`dev-1`)."""
        if plain_name(self.from_).rstrip("0123456789").rstrip("-") in AGENT_BY_NAME:
            return None
        said = f"no agent is called {self.from_!r}"
        return fault(Reason.UNKNOWN_REFERENCE, said, expected="a role of the roster", at="/from")

    @invariant
    def task_is_of_the_plan(self) -> object:
        """`task` NN-MM/Tk, when there is one, names a task of `plan_id`."""
        return foreign_task(self.task, self.plan_id)


class ResponseFinding(Wire):
    """One finding, with the keys of research.jsonl."""

    q: Text
    """Question."""
    src: Literal["web", "docs", "codebase"]
    """Where the answer comes from."""
    finding: Text
    """Answer."""
    conf: Level3
    """Confidence."""


class ResearchResponse(Message, sender="orchestrator", receiver=ANY, direction=Direction.DOWN):
    """Response to a `research_request`, delivered to the agent that asked."""

    type: Literal["research_response"]
    request_from: RoleName
    """Role that asked."""
    query: Text
    """The question as it was asked, for correlation."""
    findings: list[ResponseFinding]
    """What Scout found; may be nothing."""
    request_type: RequestType
    """Echoed from the request."""
    resolved_at: IsoInstant
    """When the response was produced."""


class DebuggerReport(Message, sender="debugger", receiver="lead"):
    """What an investigation of competing hypotheses found."""

    type: Literal["debugger_report"]
    hypothesis: Text
    """Supposed cause."""
    evidence_for: Texts
    """What speaks for it."""
    evidence_against: Texts
    """What speaks against it."""
    confidence: Level3
    """How sure the Debugger is."""
    recommended_fix: str
    """What to do about it; empty when the investigation found no fix. The Lead decides."""
    artifact: RelativePath
    """debug-report.jsonl of the phase, relative to the planning root."""


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
