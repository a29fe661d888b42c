"""What passes between departments, and between them and the Owner.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import (
    SHOULD,
    Count,
    Field,
    Form,
    PhaseNumber,
    RelativePath,
    Wire,
    fault,
    invariant,
    may_lack,
)
from yolo_fs.schemas.messages.message import (
    Departments,
    Direction,
    Message,
    SomeDepartments,
    Texts,
    exceeds,
)
from yolo_fs.schemas.names import DepartmentName

GateResult = Literal["PASS", "FAIL", "PARTIAL", "SKIPPED"]
SecurityResult = Literal["PASS", "FAIL", "WARN", "SKIPPED"]


class DesignArtifacts(Wire):
    """The files of a design, relative to the planning root."""

    design_tokens: RelativePath
    """design-tokens.jsonl."""
    component_specs: RelativePath
    """component-specs.jsonl."""
    user_flows: RelativePath
    """user-flows.jsonl."""


class DesignHandoff(
    Message,
    sender="lead",
    sender_departments=("uiux",),
    receiver="lead",
    receiver_departments=("frontend", "backend"),
    direction=Direction.ACROSS,
):
    """Design artifacts, ready to be built on; sent once the 11 steps of UI/UX are done."""

    accepts: ClassVar[Mapping[str, Form]] = {
        "phase": Form.PHASE,
        "acceptance_criteria": Form.OBJECT_AS_TEXT,
    }

    type: Literal["design_handoff"]
    phase: PhaseNumber
    """Phase that was designed."""
    department: Literal["uiux"]
    """Department that designed it."""
    artifacts: DesignArtifacts
    """Where the design stands."""
    ready_components: Texts
    """Components that may be built."""
    deferred: Texts
    """Components that are left for later."""
    acceptance_criteria: Texts
    """What must hold when they are built."""
    status: Literal["complete"]
    """Always `complete`: the handoff is produced when the workflow is."""

    @invariant
    def deferred_components_are_not_ready(self) -> object:
        """No component is in both `ready_components` and `deferred`."""
        for index, component in enumerate(self.deferred):
            if component in self.ready_components:
                return fault(
                    Reason.STATE_CONFLICT,
                    f"{component!r} is both ready and deferred",
                    expected="a component in one of the two lists",
                    at=f"/deferred/{index}",
                )
        return None


class Endpoint(Wire):
    """One call of an API."""

    method: Annotated[
        str,
        Field(
            pattern=r"^[A-Z]+$",
            examples=["POST"],
            description="an HTTP method in upper case",
            json_schema_extra=SHOULD,
        ),
    ]
    """HTTP method."""
    path: Annotated[
        str,
        Field(pattern=r"^/\S*$", examples=["/auth/login"], description="a path that begins with /"),
    ]
    """Path of the URL."""
    request: dict[str, Any] = may_lack()
    """Keys of the request body with their types."""
    response: dict[str, Any] = may_lack()
    """Keys of the response body with their types."""


class ApiContract(
    Message,
    sender="lead",
    sender_departments=("frontend", "backend"),
    receiver="lead",
    receiver_departments=("frontend", "backend"),
    direction=Direction.ACROSS,
):
    """API contract under negotiation between Frontend and Backend, in both directions."""

    type: Literal["api_contract"]
    direction_: Literal["frontend_to_backend", "backend_to_frontend"] = Field(alias="direction")
    """Who speaks to whom."""
    endpoints: Annotated[list[Endpoint], Field(min_length=1, description="at least one endpoint")]
    """The calls that the contract covers."""
    status: Literal["proposed", "agreed", "implemented"]
    """How far the contract is."""


class DepartmentResult(Message, sender="lead", receiver="owner"):
    """Completion report of a department, for the Owner's sign-off."""

    type: Literal["department_result"]
    department: DepartmentName
    """Department that reports."""
    phase: PhaseNumber
    """Phase that it worked on."""
    result: Literal["PASS", "PARTIAL", "FAIL"]
    """The verdict."""
    plans_completed: Count
    """Number of plans done."""
    plans_total: Count
    """Number of plans in the phase."""
    qa_result: GateResult
    """Verdict of `qa_result`, or SKIPPED where the step was skipped (document 002, step 9)."""
    security_result: SecurityResult
    """Verdict of `security_audit`, or SKIPPED where the step was skipped (document 002, step
    10)."""
    tdd_coverage: Literal["red_green", "green_only", "no_tests"]
    """How the tests came about, in the words of the summary's `tst`."""

    @invariant
    def completed_plans_are_plans(self) -> object:
        """`plans_completed` ≤ `plans_total`."""
        return exceeds(self, "plans_completed", "plans_total")

    @invariant
    def passing_department_has_all_plans(self) -> object:
        """A department that says PASS has all of its plans done."""
        if self.result != "PASS" or self.plans_completed == self.plans_total:
            return None
        message = f"PASS with {self.plans_completed} of {self.plans_total} plans"
        return fault(Reason.STATE_CONFLICT, message, expected="PARTIAL, or all plans", at="/result")


class OwnerReview(Message, sender="owner", receiver="lead", direction=Direction.DOWN):
    """The Owner's review of the critique: departments, their order, priorities."""

    type: Literal["owner_review"]
    phase: PhaseNumber
    """Phase under review."""
    departments_needed: SomeDepartments
    """Departments that take part; a phase needs at least one."""
    dispatch_order: Departments
    """The same departments, in the order in which they start."""
    priorities: Texts
    """What comes first."""
    risks: Texts
    """What may go wrong between departments."""

    @invariant
    def every_needed_department_is_dispatched(self) -> object:
        """`dispatch_order` names each of `departments_needed` once, and no other."""
        if sorted(self.dispatch_order) == sorted(self.departments_needed):
            return None
        return fault(
            Reason.STATE_CONFLICT,
            f"dispatched are {', '.join(self.dispatch_order) or 'none'}",
            expected="an order of " + ", ".join(self.departments_needed),
            at="/dispatch_order",
        )


class OwnerSignoff(Message, sender="owner", receiver="lead", direction=Direction.DOWN):
    """The Owner's final decision on a phase, after all departments are complete."""

    type: Literal["owner_signoff"]
    phase: PhaseNumber
    """Phase that is decided on."""
    decision: Literal["SHIP", "HOLD"]
    """The decision."""
    departments_approved: Departments
    """Departments whose work is approved; may be none on HOLD."""
    integration_qa: GateResult
    """Verdict of the integration gate, or SKIPPED where it is switched off."""
    notes: str
    """What else there is to say; may be empty."""
