"""What a Lead and its teammates tell each other, and what the Lead notes for itself.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from typing import Annotated, Literal

from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import (
    Commit,
    Count,
    Field,
    IsoInstant,
    Percent,
    PhaseNumber,
    PlanName,
    Positive,
    RelativePath,
    TaskName,
    Text,
    fault,
    invariant,
)
from yolo_fs.schemas.messages.message import (
    TEAMMATE,
    Direction,
    Message,
    TaskStatus,
    Texts,
    exceeds,
)
from yolo_fs.schemas.names import DepartmentName, StepKey

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
    """The Lead's record of a department's circuit breaker, which decides on fallback; never
    sent.
    """

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
    """A Dev has committed a task; for the Lead's accounting, where `dev_progress` is for the
    Senior.
    """

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
    """What the Lead collects from `task_complete` messages in order to write a plan's summary;
    never sent.
    """

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


class PhaseProgress(Message, sender="lead", receiver="orchestrator"):
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
    """Share of the phase that is done, 0 to 100."""
    blockers: Texts
    """What blocks the work."""
    eta: str
    """When the phase should be done, in any form; empty when unknown."""

    @invariant
    def complete_plans_are_plans(self) -> object:
        """`plans_complete` ≤ `plans_total`."""
        return exceeds(self, "plans_complete", "plans_total")

    @invariant
    def all_is_all_plans(self) -> object:
        """`percent_complete` 100 says that every plan is."""
        if self.percent_complete < 100 or self.plans_complete >= self.plans_total:
            return None
        said = f"percent_complete is 100 with {self.plans_complete} of {self.plans_total} plans"
        return fault(Reason.TOTALS_DISAGREE, said, expected="less", at="/percent_complete")


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
    """How the teammate stands."""
    pending_work: Texts
    """What is not done."""
    artifacts_committed: bool
    """Whether everything it wrote is committed."""
