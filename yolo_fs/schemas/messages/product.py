"""The Product Owner's verdict after integration, what follows from it, and the user's feedback.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from yolo_fs.protocol.departments import ANY_OF_WORKING
from yolo_fs.reasons import Fault, Reason
from yolo_fs.schemas.base import Field, Fraction, Text, Wire, fault, invariant
from yolo_fs.schemas.messages.message import Direction, Message, SomeDepartments, SomeTexts, Texts
from yolo_fs.schemas.names import DepartmentName, DepartmentNameOrNone


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


class VerdictFinding(Wire):
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

    approve goes on to `user_presentation`, patch to `patch_request`, major to `major_rejection`.
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
                return _rival_fault(shape)
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


def _rival_fault(shape: OlderVerdictForm) -> Fault:
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
