"""`config.json` of the planning tree: every section may be absent."""

from __future__ import annotations

from typing import Annotated, Literal

from yolo_fs.protocol.departments import BACKEND_ONLY, WORKING
from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import Field, Fraction, Percent, Positive, Text, Wire, fault, invariant
from yolo_fs.schemas.names import DepartmentName, Workflow
from yolo_fs.schemas.policy import Policy

__all__ = ["Config", "Policy"]


def _default_departments() -> dict[str, bool]:
    return {row.name.value: row.is_default for row in WORKING}


class ApprovalGates(Wire):
    """Where a person is asked before the work goes on."""

    qa_fail: bool = True
    """After failed quality assurance."""
    security_warn: bool = True
    """After a security audit that warns."""
    code_review: bool = False
    """After the code review."""
    manual_qa: bool = False
    """For a test by hand, which yields `manual-qa.jsonl`."""


class QaGates(Wire):
    """Automatic quality gates."""

    post_task: bool = True
    """After each task."""
    post_plan: bool = True
    """After each plan."""
    post_phase: bool = True
    """After the phase."""
    timeout_seconds: Positive = 300
    """Time for one gate."""
    failure_threshold: Literal["critical", "major", "minor"] = "critical"
    """Least severity that fails a gate."""


class EscalationRules(Wire):
    """Escalation."""

    timeout_seconds: Positive = 300
    """Time at one level before the next is asked."""
    auto_owner_on_timeout: bool = True
    """Whether the Owner is asked when the Architect is silent."""
    max_round_trips: Positive = 2
    """Times that one escalation may go up and come back."""
    scope_boundary_required: bool = True
    """Whether an escalation must say what it touches."""


class ReviewLoop(Wire):
    """Code review."""

    max_cycles: Positive = 2
    """Reviews of one plan before it is escalated."""


class ResearchRequests(Wire):
    """Research on demand."""

    enabled: bool = True
    """Whether agents may ask."""
    blocking_timeout_seconds: Positive = 120
    """Time that a blocking request waits."""
    max_concurrent_scouts: Positive = 4
    """Requests worked on at once."""


class ProductOwner(Wire):
    """The optional Product Owner."""

    enabled: bool = False
    """Whether steps `po` and `delivery` exist."""
    max_questionary_rounds: Positive = 3
    """Rounds of questions."""
    confidence_threshold: Fraction = 0.85
    """Confidence that ends the questions."""
    skip_on_effort: list[Text] = Field(default_factory=lambda: ["turbo"])
    """Effort profiles without a Product Owner."""
    skip_on_complexity: list[Text] = Field(default_factory=lambda: ["trivial"])
    """Complexities without a Product Owner."""
    default_rejection: Literal["patch", "major"] = "patch"
    """What a rejection without a verdict means."""


class Critique(Wire):
    """Critique."""

    enabled: bool = True
    """Whether step `critique` exists."""
    max_rounds: Positive = 3
    """Rounds of critique."""
    confidence_threshold: Percent = 85
    """Confidence that ends the rounds early."""


class IntegrationCheckSettings(Wire):
    """Checks of the integration gate."""

    api_contracts: bool = True
    """Every contract is agreed."""
    design_sync: bool = True
    """Frontend and UI/UX agree."""
    handoffs: bool = True
    """Every department has handed over."""
    tests: bool = True
    """Every department's tests pass."""


class IntegrationGate(Wire):
    """The integration gate; with several departments it always runs."""

    enabled: bool = False
    """Whether it runs with one department as well."""
    timeout_seconds: Annotated[int, Field(ge=60, le=3600, examples=[600])] = 600
    """Time to wait for the departments."""
    checks: IntegrationCheckSettings = Field(default_factory=IntegrationCheckSettings)
    """What is checked."""
    retry_on_fail: bool = False
    """Whether a failed gate is tried once more."""


class Delivery(Wire):
    """Delivery."""

    mode: Literal["auto", "manual"] = "auto"
    """Whether delivery waits for a person."""
    present_to_user: bool = True
    """Whether the result is shown."""


class ComplexityRouting(Wire):
    """Shorter paths for small work."""

    enabled: bool = True
    """Whether small work takes a shorter path."""
    trivial_confidence_threshold: Fraction = 0.85
    """Confidence from which work counts as trivial."""
    medium_confidence_threshold: Fraction = 0.7
    """Confidence from which work counts as medium."""
    fallback_path: Literal["trivial", "medium", "high"] = "high"
    """Path when the confidence is too low."""
    force_analyze_model: Text | None = None
    """Model for the analysis, a name of the roster; null leaves the choice to the profile."""
    max_trivial_files: Positive = 3
    """Most files of trivial work."""
    max_medium_tasks: Positive = 3
    """Most tasks of medium work."""

    @invariant
    def trivial_is_surer_than_medium(self) -> object:
        """Calling work trivial needs more confidence than calling it medium, where both are
        given.
        """
        keys = {"trivial_confidence_threshold", "medium_confidence_threshold"}
        trivial, medium = self.trivial_confidence_threshold, self.medium_confidence_threshold
        if trivial > medium or not keys <= self.model_fields_set:
            return None
        return fault(
            Reason.OUT_OF_RANGE,
            f"{trivial} is not above medium_confidence_threshold {medium}",
            expected=f"a number above {medium}",
            at="/trivial_confidence_threshold",
        )


class Config(Wire):
    """The whole configuration; `Config()` is the documented default."""

    effort: Literal["thorough", "balanced", "fast", "turbo"] = "balanced"
    """Effort profile: which steps are skipped."""
    autonomy: Text = "standard"
    """How much is done without asking; yolo_fs only passes it on."""
    auto_commit: bool = True
    """Whether artifacts are committed."""
    verification_tier: Literal["quick", "standard", "deep"] = "standard"
    """Depth of the verification."""
    context_compiler: bool = True
    """Whether `.ctx-{role}.toon` is compiled."""
    max_tasks_per_plan: Positive = 5
    """Most tasks of a plan."""
    agent_teams: bool = True
    """Whether several agents work at once."""
    team_mode: Literal["auto", "task", "teammate"] = "auto"
    """How agents are started."""
    model_profile: Text = "quality"
    """Profile that chooses models; yolo_fs only passes it on."""
    model_overrides: dict[str, str] = Field(default_factory=dict)
    """Model per role; yolo_fs only passes it on."""
    security_audit: bool = True
    """Whether step `security` exists."""
    approval_gates: ApprovalGates = Field(default_factory=ApprovalGates)
    """Where a person is asked."""
    departments: dict[DepartmentName, bool] = Field(default_factory=_default_departments)
    """Active departments; one that is not named works only if it is the default one."""
    department_workflow: Workflow = BACKEND_ONLY
    """How departments are dispatched."""
    cross_team_handoff: bool = True
    """Whether departments hand over by files."""
    qa_gates: QaGates = Field(default_factory=QaGates)
    """Automatic quality gates."""
    escalation: EscalationRules = Field(default_factory=EscalationRules)
    """Escalation."""
    review_loop: ReviewLoop = Field(default_factory=ReviewLoop)
    """Code review."""
    research_requests: ResearchRequests = Field(default_factory=ResearchRequests)
    """Research on demand."""
    po: ProductOwner = Field(default_factory=ProductOwner)
    """The Product Owner."""
    critique: Critique = Field(default_factory=Critique)
    """Critique."""
    integration_gate: IntegrationGate = Field(default_factory=IntegrationGate)
    """The integration gate."""
    documenter: Literal["never", "on_request", "always"] = "on_request"
    """When step `documentation` runs."""
    delivery: Delivery = Field(default_factory=Delivery)
    """Delivery."""
    complexity_routing: ComplexityRouting = Field(default_factory=ComplexityRouting)
    """Shorter paths for small work."""
    yolo_fs: Policy = Field(default_factory=Policy)
    """What the coordinator itself may do."""
