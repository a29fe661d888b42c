"""What passes between departments, and between them and the Owner: the Product Owner's verdict
after integration, what follows from it, and the user's feedback included; and messages that are
left as files, from phase to phase and from department to department.

See docs/dev/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from yolo_fs.core.reasons import Fault, Reason
from yolo_fs.protocol.departments import ANY_OF_WORKING
from yolo_fs.schemas.base import SHOULD, Field, Form, Shape, exceeds, fault, invariant, may_lack
from yolo_fs.schemas.formats import (
    Count,
    Fraction,
    IsoInstant,
    NotedPath,
    PhaseNumber,
    RelativePath,
    Text,
)
from yolo_fs.schemas.messages.message import (
    Departments,
    Direction,
    Message,
    SomeDepartments,
    SomeTexts,
    Texts,
)
from yolo_fs.schemas.names import DepartmentName, DepartmentNameOrNone

GateResult = Literal["PASS", "FAIL", "PARTIAL", "SKIPPED"]
SecurityResult = Literal["PASS", "FAIL", "WARN", "SKIPPED"]


class DesignArtifacts(Shape):
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
    """State of the design."""
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


class Endpoint(Shape):
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
    """Verdict of `security_audit`; SKIPPED where the step was skipped (document 002, step 10)."""
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
    """Further notes; may be empty."""


class OlderVerdictForm(NamedTuple):
    """An older shape of the verdict: how to tell it, and what became of its keys."""

    marks: frozenset[str]
    """Keys that only this shape has."""
    verdicts: Mapping[str, str]
    """Value of `r` → value of `verdict`."""
    telling: tuple[str, ...]
    """Values of `r` that no other kind of verdict uses, so that they tell the shape alone."""
    keys: str
    """What became of the other keys."""


RIVALS = (
    OlderVerdictForm(
        frozenset({"scope_match", "action"}),
        {"accept": "approve", "patch": "patch", "major": "major"},
        ("accept", "patch", "major"),
        "scope_match -> scope_confidence (0 to 1); findings[] cat -> check, sev -> result, "
        "desc and fix -> detail, "
        "with dept; phase and action fall away; target_dept and re_scope_items are added",
    ),
    OlderVerdictForm(
        frozenset({"scope_alignment", "verdict_note", "missing", "extra"}),
        {"PASS": "approve", "PATCH": "patch", "FAIL": "major"},
        ("PATCH",),
        "scope_alignment -> scope_confidence (0 to 1); missing -> re_scope_items on major, "
        "else findings[].detail; "
        "extra and verdict_note -> findings[].detail; target_dept and re_scope_items are added",
    ),
)


class VerdictFinding(Shape):
    """One check that failed."""

    check: Text
    """Name of the check."""
    result: Literal["fail"]
    """Always `fail`: only failing checks are listed."""
    dept: DepartmentName
    """Department that the failure belongs to."""
    detail: Text
    """What is wrong."""


class PoQaVerdict(Message, sender="po", receiver="orchestrator"):
    """Verdict on the integrated work, measured against the scope.

    approve leads to `user_presentation`, patch to `patch_request`, major to `major_rejection`.
    """

    type: Literal["po_qa_verdict"]
    verdict: Literal["approve", "patch", "major"]
    """approve: all pass; patch: minor gaps; major: vision misalignment."""
    findings: list[VerdictFinding]
    """Failing checks."""
    target_dept: DepartmentNameOrNone
    """Department responsible for fixes, on patch only; empty for approve and major."""
    re_scope_items: Texts
    """Items that need re-scoping, on major only; empty for approve and patch."""
    scope_confidence: Fraction
    """Confidence in scope coverage, 0 to 1."""
    dt: Annotated[
        str,
        Field(
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2}))?$",
            examples=["2026-02-19T08:00:00Z"],
            description="a day, or a timestamp with its time zone",
        ),
    ] = ""
    """Optional: when the verdict was given."""

    @classmethod
    def rival(cls, value: Mapping[str, Any]) -> Fault | None:
        """Return the fault of one of the two older shapes, with the mapping into this one."""
        if "verdict" in value or "r" not in value:
            return None
        for shape in RIVALS:
            if value.keys() & shape.marks or value["r"] in shape.telling:
                return _fault_for_rival_shape(shape)
        return None

    @invariant
    def only_a_patch_has_a_target(self) -> object:
        """`target_dept` names a department on patch, and is empty on approve and major."""
        if self.verdict == "patch" and not self.target_dept:
            return fault(
                Reason.EMPTY_VALUE,
                "a patch has no target",
                expected=ANY_OF_WORKING,
                at="/target_dept",
            )
        if self.verdict != "patch" and self.target_dept:
            return fault(
                Reason.STATE_CONFLICT,
                f"{self.verdict} has the target {self.target_dept!r}",
                expected="an empty text unless the verdict is patch",
                at="/target_dept",
            )
        return None

    @invariant
    def only_a_major_verdict_re_scopes(self) -> object:
        """`re_scope_items` is empty on approve and patch."""
        if self.verdict == "major" or not self.re_scope_items:
            return None
        return fault(
            Reason.STATE_CONFLICT,
            f"{self.verdict} has items to re-scope",
            expected="an empty list unless the verdict is major",
            at="/re_scope_items",
        )

    @invariant
    def major_verdict_says_what_to_re_scope(self) -> object:
        """`re_scope_items` says on major what is missed or has to be set anew."""
        if self.verdict != "major" or self.re_scope_items:
            return None
        message, expected = "major re-scopes nothing", "a list of at least one text"
        return fault(Reason.EMPTY_VALUE, message, expected=expected, at="/re_scope_items")


def _fault_for_rival_shape(shape: OlderVerdictForm) -> Fault:
    verdicts = ", ".join(f"{old} -> {new}" for old, new in shape.verdicts.items())
    return Fault(
        Reason.RIVAL_SHAPE,
        "/r",
        "an older shape of po_qa_verdict",
        f'type "po_qa_verdict"; r -> verdict ({verdicts}); {shape.keys}',
    )


class PatchRequest(
    Message, sender="po", via="orchestrator", receiver="senior", direction=Direction.DOWN
):
    """Targeted fix of at most two tasks, when the verdict is patch."""

    type: Literal["patch_request"]
    target_dept: DepartmentName
    """Department whose Senior gets the request."""
    failing_checks: SomeTexts
    """Names of the integration checks that failed; they alone are run again."""
    fix_instructions: Text
    """What needs to be fixed, in terms of the product, not of the code."""
    scope_ref: Text
    """Section of the scope document that covers the failing area."""
    max_tasks: Annotated[
        int, Field(ge=1, le=2, examples=[2], description="a whole number from 1 to 2")
    ]
    """Tasks that the patch may take; hard cap 2."""


class MajorRejection(
    Message, sender="po", via="orchestrator", receiver="questionary", direction=Direction.DOWN
):
    """Request to re-scope, when the verdict is major."""

    type: Literal["major_rejection"]
    re_scope_items: SomeTexts
    """Scope items that need re-definition or were missed; the input of the re-scoping."""
    affected_depts: SomeDepartments
    """Departments that run all 11 steps again; at least one."""
    rationale: Text
    """Why the misalignment needs re-scoping."""
    original_scope_ref: Text
    """Sections of the scope document, for traceability."""


class FeedbackResponse(
    Message, sender="user", via="orchestrator", receiver="po", direction=Direction.ENTRY
):
    """The user's answer to the delivery presentation, wrapped by the orchestrator."""

    type: Literal["feedback_response"]
    response: Literal["approve", "request_changes", "reject"]
    """approve: ship it; request_changes: minor adjustments; reject: fundamental issues."""
    comments: str
    """The user's own words; may be empty."""
    change_requests: Texts
    """Changes asked for; empty for approve."""
    scope_ref: Text
    """Version of the scope document."""

    @invariant
    def approval_asks_for_no_changes(self) -> object:
        """`change_requests` is empty on approve."""
        if self.response != "approve" or not self.change_requests:
            return None
        return fault(
            Reason.STATE_CONFLICT,
            "an approval asks for changes",
            expected="an empty list, or the response request_changes",
            at="/change_requests",
        )


class PhaseHandoff(
    Message, sender="orchestrator", receiver=("critic", "architect"), direction=Direction.FORWARD
):
    """Key outputs, decisions and open items for the next phase; a line of phase-handoff.jsonl."""

    accepts: ClassVar[Mapping[str, Form]] = {
        "from_phase": Form.PHASE,
        "to_phase": Form.PHASE,
        "dt": Form.DAY_AS_MOMENT,
        "decisions": Form.OBJECT_AS_TEXT,
        "open_items": Form.OBJECT_AS_TEXT,
        "artifacts": Form.OBJECT_AS_PATH,
        "research_refs": Form.OBJECT_AS_TEXT,
    }

    type: Literal["phase_handoff"]
    from_phase: PhaseNumber
    """Source phase."""
    to_phase: PhaseNumber
    """Target phase."""
    dt: IsoInstant
    """Timestamp."""
    decisions: Texts
    """Key decisions carried forward."""
    open_items: Texts
    """Deferred or unresolved items."""
    artifacts: list[NotedPath]
    """Names of the files produced."""
    research_refs: Texts
    """References into the research archive."""
    escalations_resolved: Count
    """Number of escalations resolved."""
    escalations_pending: Count
    """Number of escalations still pending."""

    @invariant
    def next_phase_comes_later(self) -> object:
        """`to_phase` > `from_phase`: the handoff goes to a phase that follows."""
        if self.to_phase > self.from_phase:
            return None
        return fault(
            Reason.STATE_CONFLICT,
            f"phase {self.to_phase} does not follow phase {self.from_phase}",
            expected="a phase after " + self.from_phase,
            at="/to_phase",
        )


class Contract(Shape):
    """One API or component contract."""

    name: Text
    """What it is about."""
    spec: Text
    """Where it is specified: a file, and an entry in it after `#`."""


class DeptHandoff(Message, sender="lead", receiver="lead", direction=Direction.ACROSS):
    """Artifacts and contracts on which another department depends; a line of dept-handoff.jsonl."""

    accepts: ClassVar[Mapping[str, Form]] = {
        "dt": Form.DAY_AS_MOMENT,
        "artifacts": Form.OBJECT_AS_PATH,
        "blockers": Form.OBJECT_AS_TEXT,
    }

    type: Literal["dept_handoff"]
    from_dept: DepartmentName
    """Source department."""
    to_dept: DepartmentName
    """Target department."""
    dt: IsoInstant
    """Timestamp."""
    artifacts: list[NotedPath]
    """Names of the files shared."""
    contracts: list[Contract]
    """API and component contracts; the integration gate checks that each is satisfied."""
    blockers: Texts
    """Unresolved blockers; the integration gate fails while there are any."""
    notes: str
    """The Lead's commentary; may be empty."""

    @invariant
    def departments_differ(self) -> object:
        """`to_dept` is another department than `from_dept`."""
        if self.to_dept != self.from_dept:
            return None
        message = f"{self.from_dept} hands off to itself"
        return fault(Reason.SELF_REFERENCE, message, expected="another department", at="/to_dept")
