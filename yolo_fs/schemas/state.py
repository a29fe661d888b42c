"""The state files: department status, execution state, orchestration, project state, pending
escalations.

All are projections that yolo_fs can compute anew; other writers exist, so keys that only some of
them write are optional here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from yolo_fs.core.reasons import Reason
from yolo_fs.schemas.base import AfterValidator, Field, Shape, fault, invariant
from yolo_fs.schemas.formats import (
    Count,
    EscalationName,
    IsoDate,
    IsoInstant,
    Percent,
    PhaseNumber,
    PlanName,
    Positive,
    TaskPath,
    Text,
    real_instant,
)
from yolo_fs.schemas.names import (
    DepartmentName,
    GateName,
    StatefulStep,
    StepKey,
    StepKeyOrNone,
    StepKeyOrPlan,
    Workflow,
)

Moment = Annotated[
    str,
    Field(
        pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
        r"(Z|[+-][0-9]{2}:[0-9]{2}))?$",
        examples=["2026-02-19T08:00:00Z"],
        description="a timestamp with its time zone, or nothing",
    ),
    AfterValidator(lambda text: text and real_instant(text)),
]
"""An instant, or `""` for what has not happened."""
CurrentTask = Annotated[
    str,
    Field(
        pattern=r"^([0-9]{2}-[0-9]{2}/T[1-9][0-9]*)?$",
        examples=["01-02/T3"],
        description="task reference NN-MM/Tk, or nothing",
    ),
]


class Projected(Shape):
    """What yolo_fs adds to a file that it keeps true."""

    declared: dict[str, Any] = Field(default_factory=dict)
    """Declared values that the evidence does not confirm, by key; shown as drift."""
    projected: str = ""
    """Checksum of the rest of the file: while it matches, the file is as we wrote it."""


class DeptStatus(Shape):
    """`.dept-status-{dept}.json`: eight keys in this order, then what newer writers add."""

    dept: DepartmentName
    """Department."""
    status: Literal["pending", "running", "complete", "failed"]
    """Status of its work."""
    step: StepKeyOrNone
    """Step that it is at; empty before the first."""
    started_at: Moment
    """First write; survives later ones."""
    updated_at: IsoInstant
    """Last write."""
    plans_complete: Count
    """Plans whose summary is complete."""
    plans_total: Count
    """Plans of the department."""
    error: str
    """First problem, or empty."""
    percent_complete: Percent | None = None
    """Share of the work done."""
    blockers: list[Text] | None = None
    """What holds it up."""
    eta: str | None = None
    """When it should be done, in free words."""
    seq: Count | None = None
    """Number of the write; yolo_fs counts it up, so a reader can detect old content."""
    declared: dict[str, Any] | None = None
    """What the department said of itself, by key; shown as drift where the evidence differs."""
    held_up: list[Text] | None = None
    """Blockers that follow from the evidence, not from the department's declaration."""


class PlanState(Shape):
    """One plan in the execution state."""

    id: PlanName
    """Plan id."""
    title: str
    """Title of the plan."""
    wave: Positive
    """Wave that it belongs to."""
    status: Literal["pending", "complete"]
    """Complete once its summary says so."""
    dept: DepartmentName | None = None
    """Department, where several work on the phase."""


class StepState(Shape):
    """One step in the execution state."""

    status: Literal["pending", "running", "complete", "skipped"]
    """Status of the step."""
    started_at: Moment = ""
    """When it began."""
    completed_at: Moment = ""
    """When it was done."""
    skipped_at: Moment = ""
    """When it was skipped."""
    artifact: str = ""
    """What it produced; real files hold paths, prose and nothing."""
    reason: str = ""
    """Why it was skipped."""
    verdict: Literal["approve", "patch", "major", ""] = ""
    """Verdict of `delivery`."""
    feedback_rounds: Annotated[int, Field(ge=0, le=2, examples=[1])] = 0
    """Rounds of feedback that `delivery` took."""


class DepartmentState(Shape):
    """One department in the execution state: the mirror of its status file."""

    status: Literal["pending", "running", "complete", "failed"]
    """Status of its work."""
    step: StepKeyOrNone
    """Step that it is at."""


class EscalationEntry(Shape):
    """One escalation in the execution state."""

    id: EscalationName
    """`ESC-NN-MM-Tk`; with `fe-` or `ux-` for another department's task of that number."""
    task: TaskPath
    """Blocked task."""
    plan: PlanName
    """Its plan."""
    severity: Literal["blocking", "major", "minor"]
    """Severity."""
    status: Literal["pending", "resolved"]
    """Resolved only after the Dev resumes."""
    level: Literal["senior", "lead", "architect", "owner", "user"]
    """Who holds it now."""
    escalated_at: IsoInstant
    """First report."""
    last_escalated_at: IsoInstant
    """Last move to another level; timeouts count from here."""
    resolved_at: Moment = ""
    """When it was resolved."""
    round_trips: Count = 0
    """Times that it went up and came back."""
    resolution: str = ""
    """Decision text."""

    @invariant
    def names_agree(self) -> object:
        """The id, the task and the plan name one task."""
        plan, _, number = self.task.partition("/")
        if self.plan == plan and self.id.endswith(f"-{plan}-{number}"):
            return None
        return fault(
            Reason.NAME_MISMATCH,
            f"{self.id}, task {self.task} and plan {self.plan} are not one",
            expected=f"ESC-{plan}-{number} of plan {plan}",
            at="/id",
        )


class ExecutionState(Projected):
    """`.execution-state.json`."""

    phase: Count
    """Number of the phase."""
    phase_name: Text
    """Name of the phase, with or without its number."""
    status: Literal["running", "complete"]
    """Whether the phase still runs."""
    started_at: Moment
    """When the phase began."""
    step: StepKey
    """Step that the phase is at."""
    plans: list[PlanState]
    """The plans of the phase."""
    steps: dict[StatefulStep, StepState]
    """Any subset of the steps, and the two quality gates that can be skipped."""
    completed_at: Moment = ""
    """When the phase was done; only then present."""
    wave: Count = 1
    """Smallest wave with unfinished plans."""
    total_waves: Count = 1
    """Largest wave."""
    escalations: list[EscalationEntry] = Field(default_factory=list)
    """Escalations of the phase; the implementation cannot end while one is pending."""
    departments: dict[DepartmentName, DepartmentState] = Field(default_factory=dict)
    """Departments of the phase."""
    current_task: CurrentTask = ""
    """Task that is being worked on."""
    correlation_id: str = ""
    """Id that joins log records; free."""
    team_mode: str = ""
    """Team mode that the phase runs in."""
    multi_dept: bool = False
    """Whether several departments work on the phase."""


class DepartmentProgress(Shape):
    """One department in the orchestration."""

    status: Literal["pending", "running", "complete", "failed"]
    """Status of its work."""
    step: StepKeyOrNone
    """Step that it is at; empty before the first."""
    started: Moment
    """When it began."""
    completed: Moment
    """When it was done."""
    updated_at: Moment = ""
    """Last change; only some writers add it."""


class GateProgress(Shape):
    """One gate in the orchestration."""

    status: Literal["pending", "passed", "failed", "timeout"]
    """Status of the gate."""
    passed_at: Moment
    """When it passed."""


class WaveState(Shape):
    """Departments that are spawned at once."""

    id: Positive
    """Number of the wave, from 1."""
    depts: list[DepartmentName]
    """Departments of the wave."""
    gate: Text
    """Gate that ends it."""


class ClosingStage(Shape):
    """One of the closing stages in the orchestration."""

    status: Text
    """`pending` at first, later its result."""


class Orchestration(Projected):
    """`.phase-orchestration.json`."""

    phase: PhaseNumber
    """Number of the phase, two digits."""
    multi_dept: bool
    """Whether several departments work on the phase."""
    workflow: Workflow
    """How the departments are dispatched."""
    departments: dict[DepartmentName, DepartmentProgress]
    """Active departments."""
    gates: dict[GateName, GateProgress]
    """Gates between them."""
    integration_qa: ClosingStage
    """Integration checks."""
    security: ClosingStage
    """Security audits."""
    owner_signoff: ClosingStage
    """The Owner's SHIP or HOLD."""
    started_at: IsoInstant
    """When the phase began."""
    timeout_minutes: Positive
    """How long a gate is waited for."""
    waves: list[WaveState] = Field(default_factory=list)
    """Which Leads are spawned together, in order."""


class StateFile(Projected):
    """`state.json`."""

    ms: Text
    """Milestone."""
    ph: Count
    """Phase."""
    tt: Count
    """Phases in total."""
    st: Literal["planning", "executing", "verifying", "complete"]
    """Status."""
    step: StepKeyOrPlan
    """Step; `plan` is what one hook writes for `planning`."""
    pr: Percent
    """Progress."""
    started: IsoDate
    """Day of the start."""


class PendingEscalation(Shape):
    """An escalation that waits."""

    agent: Text
    """Who escalated."""
    reason: Text
    """Why."""
    severity: Literal["blocking", "major", "minor", "medium"]
    """Severity; the reference writer uses `medium` when none is given."""
    target: Text
    """Who is asked."""
    phase: PhaseNumber
    """Phase, two digits."""
    created_at: IsoInstant
    """When it was written."""
    status: Literal["pending"]
    """Always `pending`."""


class ResolvedEscalation(PendingEscalation):
    """An escalation that is over."""

    status: Literal["resolved"]  # type: ignore[assignment]
    """Always `resolved`."""
    resolved_at: IsoInstant
    """When it was resolved."""
    resolution: Text
    """Decision text."""


class EscalationState(Shape):
    """`.escalation-state.json`: what survives a lost session."""

    pending: list[PendingEscalation]
    """Escalations that wait."""
    resolved: list[ResolvedEscalation]
    """Escalations that are over."""
