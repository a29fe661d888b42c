"""Messages about the team's own course: questions and their answers, research, what Scout found and
what the Debugger concluded; escalations, up one level at a time, their resolution down again, and
the warning when one waits too long; and what a Lead and its teammates tell each other, or the Lead
notes for itself.

See docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

import typing
from typing import Annotated, Literal

from yolo_fs.core.reasons import Reason
from yolo_fs.protocol.roster import AGENT_BY_NAME, plain_name, without_number
from yolo_fs.schemas.base import Field, Shape, exceeds, fault, invariant
from yolo_fs.schemas.formats import (
    Commit,
    Count,
    EscalationName,
    IsoInstant,
    Percent,
    PhaseNumber,
    PlanName,
    Positive,
    RelativePath,
    TaskName,
    Text,
)
from yolo_fs.schemas.messages.message import (
    ANY,
    TEAMMATE,
    Direction,
    Level3,
    Message,
    RequestType,
    RoleName,
    Severity,
    SomeTexts,
    TaskStatus,
    Texts,
    foreign_task,
)
from yolo_fs.schemas.names import DepartmentName, StepKey


class ScoutFinding(Shape):
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
    """blocking: the agent cannot proceed; informational: it continues with an assumption."""
    priority: Level3
    """How urgent it is."""

    @invariant
    def asker_is_an_agent(self) -> object:
        """`from` is a role of the roster; hosts that number their agents say which (`dev-1`)."""
        if without_number(plain_name(self.from_)) in AGENT_BY_NAME:
            return None
        message = f"no agent is called {self.from_!r}"
        return fault(Reason.UNKNOWN_REFERENCE, message, expected="a role of the roster", at="/from")

    @invariant
    def task_is_of_the_plan(self) -> object:
        """`task` NN-MM/Tk, when there is one, names a task of `plan_id`."""
        return foreign_task(self.task, self.plan_id)


class ResponseFinding(Shape):
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
    """Severity."""


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


InstantOrEmpty = Annotated[
    str,
    Field(
        pattern=r"^([0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
        r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2}))?$",
        examples=["2026-02-17T10:30:00Z"],
        description="a timestamp with its time zone, or empty",
    ),
]


class AgentHealthEvent(
    Message, sender="lead", receiver="lead", direction=Direction.INTERNAL, team_mode="teammate"
):
    """The Lead's record of a change in an agent's health; logged, never sent."""

    type: Literal["agent_health_event"]
    agent_id: Text
    """Agent instance, such as `dev-1`."""
    dept: DepartmentName
    """Department of the agent."""
    state: Literal["start", "idle", "stop", "disappeared"]
    """What happened."""
    timestamp: IsoInstant
    """When it happened."""
    prev_state: Literal["start", "idle", "stop", "disappeared", ""]
    """State before; empty when the agent has just been started."""
    timeout_triggered: bool
    """Whether a timeout, not the agent, caused the change."""


class CircuitBreakerState(
    Message, sender="lead", receiver="lead", direction=Direction.INTERNAL, team_mode="teammate"
):
    """The Lead's record of a department's circuit breaker; decides on fallback; never sent."""

    type: Literal["circuit_breaker_state"]
    dept: DepartmentName
    """Department that the breaker guards."""
    state: Literal["closed", "open", "half-open"]
    """closed: work flows; open: fallback; half-open: one probe is under way."""
    opened_at: InstantOrEmpty
    """When it last opened; empty when it never did."""
    failure_count: Count
    """Failures counted so far."""
    last_probe_at: InstantOrEmpty
    """When the last probe was made; empty when there was none."""

    @invariant
    def what_is_open_was_opened(self) -> object:
        """`opened_at` says when, unless `state` is `closed`."""
        if self.opened_at or self.state == "closed":
            return None
        return fault(
            Reason.EMPTY_VALUE,
            f"the breaker is {self.state}, but was never opened",
            expected="a timestamp with its time zone, such as 2026-02-17T10:30:00Z",
            at="/opened_at",
        )


class TaskClaim(Message, sender="dev", receiver="lead", team_mode="teammate"):
    """A Dev has claimed a task of the shared list; its files are taken until it is complete."""

    type: Literal["task_claim"]
    task_id: TaskName
    """Task within the plan."""
    plan_id: PlanName
    """Plan of the task."""
    files: Annotated[list[RelativePath], Field(min_length=1, description="at least one file")]
    """Files that the task will change, relative to the repository root: what a claim is for."""
    claimed_at: IsoInstant
    """When it was claimed."""


class TaskComplete(Message, sender="dev", receiver="lead", team_mode="teammate"):
    """A Dev has committed a task; for the Lead's accounts, as `dev_progress` is for the Senior."""

    type: Literal["task_complete"]
    task_id: TaskName
    """Task within the plan."""
    plan_id: PlanName
    """Plan of the task."""
    commit: Commit
    """Commit of the task; the message is sent after it."""
    files_modified: list[RelativePath]
    """Files that the commit changed, relative to the repository root."""
    status: TaskStatus
    """How far the task came, in the words of `dev_progress`."""
    deviations: Texts
    """Where the work departs from the spec."""


class SummaryAggregation(
    Message, sender="lead", receiver="lead", direction=Direction.INTERNAL, team_mode="teammate"
):
    """What the Lead collects of `task_complete` messages for a plan's summary; never sent."""

    type: Literal["summary_aggregation"]
    plan_id: PlanName
    """Plan that is summed up."""
    tasks_completed: Count
    """Number of tasks done."""
    tasks_total: Count
    """Number of tasks in the plan."""
    commit_hashes: list[Commit]
    """Commits of the tasks."""
    files_modified: list[RelativePath]
    """Files that they changed, relative to the repository root."""
    deviations: Texts
    """Where the work departs from the specs."""
    status: TaskStatus
    """How far the plan came; becomes `s` of its summary."""

    @invariant
    def completed_tasks_are_tasks(self) -> object:
        """`tasks_completed` ≤ `tasks_total`."""
        return exceeds(self, "tasks_completed", "tasks_total")

    @invariant
    def complete_plan_has_all_tasks(self) -> object:
        """A `complete` plan has all of its tasks done."""
        if self.status != "complete" or self.tasks_completed == self.tasks_total:
            return None
        message = f"complete with {self.tasks_completed} of {self.tasks_total} tasks"
        expected = "partial, or all tasks"
        return fault(Reason.STATE_CONFLICT, message, expected=expected, at="/status")


class PhaseProgress(
    Message, sender="lead", receiver="orchestrator", replaced_by=".dept-status-{dept}.json"
):
    """Progress within a phase, sent at each step for display and timeout calculation."""

    type: Literal["phase_progress"]
    department: DepartmentName
    """Department that reports."""
    phase: PhaseNumber
    """Phase that it works on."""
    step: StepKey
    """Key of the workflow step."""
    plans_complete: Count
    """Number of plans done."""
    plans_total: Count
    """Number of plans in the phase."""
    percent_complete: Percent
    """Share of the plans that are done, 0 to 100."""
    blockers: Texts
    """What blocks the work."""
    eta: str
    """When the phase should be done, in any form; empty when unknown."""

    @invariant
    def complete_plans_are_plans(self) -> object:
        """`plans_complete` ≤ `plans_total`."""
        return exceeds(self, "plans_complete", "plans_total")

    @invariant
    def percent_is_the_share_of_the_plans(self) -> object:
        """`percent_complete` is `plans_complete` of `plans_total`, however it is rounded."""
        if not self.plans_total:
            return None
        share = 100 * self.plans_complete / self.plans_total
        if abs(self.percent_complete - share) < 1:
            return None
        done = f"{self.plans_complete} of {self.plans_total} plans"
        message = f"percent_complete is {self.percent_complete:g} with {done}"
        expected = f"{share:.3g}"
        return fault(Reason.TOTALS_DISAGREE, message, expected=expected, at="/percent_complete")


class ShutdownRequest(
    Message, sender="lead", receiver=TEAMMATE, direction=Direction.DOWN, team_mode="teammate"
):
    """The Lead asks its teammates to stop, at sign-off or after an error."""

    type: Literal["shutdown_request"]
    reason: Literal["phase_complete", "timeout", "error"]
    """Why the team stops."""
    deadline_seconds: Positive
    """Seconds that a teammate has to answer."""


class ShutdownResponse(Message, sender=TEAMMATE, receiver="lead", team_mode="teammate"):
    """A teammate's answer to `shutdown_request`."""

    type: Literal["shutdown_response"]
    status: Literal["clean", "in_progress", "error"]
    """Status of the teammate."""
    pending_work: Texts
    """What is not done."""
    artifacts_committed: bool
    """Whether everything it wrote is committed."""
