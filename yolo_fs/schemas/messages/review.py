"""Code review: what the Senior tells the Dev to change, and the verdict for the Lead.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from typing import Annotated, Literal

from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import Count, Field, PlanName, RelativePath, Text, Wire, fault, invariant
from yolo_fs.schemas.messages.message import Cycle, Direction, Message, Texts, exceeds


class ReviewInstruction(Wire):
    """One instruction of a review."""

    f: RelativePath
    """File, relative to the repository root."""
    ln: Count
    """Line number from 1; 0 for the file as a whole, as in code-review.jsonl."""
    issue: Text
    """What is wrong there."""
    fix: Text
    """What exactly to do about it."""


class CodeReviewChanges(Message, sender="senior", receiver="dev", direction=Direction.DOWN):
    """Exact fix instructions; the Dev follows them precisely, without interpretation of their
    own.
    """

    type: Literal["code_review_changes"]
    plan_id: PlanName
    """Plan that was reviewed."""
    cycle: Cycle
    """Review cycle, from 1."""
    changes: Annotated[
        list[ReviewInstruction],
        Field(min_length=1, description="a list of at least one instruction"),
    ]
    """The instructions; a request for changes names at least one."""
    must_fix: Texts
    """Instructions that block approval, as `f:ln`."""
    rerun_tests: bool
    """Whether the tests must be run again after the fix."""

    @invariant
    def must_fix_points_at_changes(self) -> object:
        """Each entry of `must_fix` is the `f:ln` of one of `changes`, where its fix stands."""
        places = {f"{change.f}:{change.ln}" for change in self.changes}
        for index, entry in enumerate(self.must_fix):
            if entry not in places:
                return fault(
                    Reason.UNKNOWN_REFERENCE,
                    f"no change has the place {entry!r}",
                    expected="one of " + ", ".join(sorted(places)),
                    at=f"/must_fix/{index}",
                )
        return None


class CodeReviewResult(Message, sender="senior", receiver="lead"):
    """Verdict of the code review of a plan."""

    type: Literal["code_review_result"]
    plan_id: PlanName
    """Plan that was reviewed."""
    result: Literal["approve", "changes_requested"]
    """The verdict."""
    cycle: Cycle
    """Review cycle, from 1."""
    findings_count: Count
    """Number of findings of every severity."""
    critical: Count
    """Number of critical findings among them."""
    artifact: RelativePath
    """code-review.jsonl of the phase, relative to the planning root."""
    committed: bool
    """Whether the artifact is committed."""

    @invariant
    def critical_is_part_of_the_findings(self) -> object:
        """`critical` ≤ `findings_count`: the critical findings are counted among the findings."""
        return exceeds(self, "critical", "findings_count")
