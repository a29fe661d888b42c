"""What a review asks to change, its verdict; the verification of a plan, of its code and of its
security.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from typing import Annotated, Literal

from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import Count, Field, PlanName, RelativePath, Text, Wire, fault, invariant
from yolo_fs.schemas.messages.message import (
    AuditResult,
    CheckResult,
    Cycle,
    Direction,
    Message,
    Texts,
    exceeds,
)


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


class CheckCounts(Wire):
    """How many checks were made, and how they ended."""

    passed: Count
    """Number of checks that passed."""
    failed: Count
    """Number of checks that failed."""
    total: Count
    """Number of checks made."""

    @invariant
    def passed_and_failed_make_the_total(self) -> object:
        """`passed` + `failed` = `total`."""
        made = self.passed + self.failed
        if made == self.total:
            return None
        message = f"total is {self.total}, but passed + failed is {made}"
        return fault(Reason.TOTALS_DISAGREE, message, expected=str(made), at="/total")


class CheckFailure(Wire):
    """One check that failed."""

    check: Text
    """What was checked."""
    expected: Text
    """What should have been found."""
    actual: str
    """What was found; empty when it was nothing."""
    evidence: Text
    """Where that can be seen."""


class QaResult(Message, sender="qa", receiver="lead"):
    """Results of the verification of plans."""

    type: Literal["qa_result"]
    tier: Literal["quick", "standard", "deep"]
    """How deep the verification went."""
    result: CheckResult
    """The verdict."""
    checks: CheckCounts
    """The counts behind the verdict."""
    failures: list[CheckFailure]
    """Failed checks worth telling; not necessarily all of them."""
    artifact: RelativePath
    """verification.jsonl of the phase, relative to the planning root."""
    committed: bool
    """Whether the artifact is committed."""

    @invariant
    def failures_are_failed_checks(self) -> object:
        """`failures` lists no more entries than `checks.failed` counts."""
        if len(self.failures) <= self.checks.failed:
            return None
        return fault(
            Reason.TOTALS_DISAGREE,
            f"{len(self.failures)} failures are listed, but checks.failed is {self.checks.failed}",
            expected=f"at most {self.checks.failed}",
            at="/failures",
        )


class SuiteCounts(Wire):
    """How the test suite ended."""

    passed: Count
    """Number of tests that passed."""
    failed: Count
    """Number of tests that failed."""
    skipped: Count
    """Number of tests that were not run."""


class LintCounts(Wire):
    """What the linter found."""

    errors: Count
    """Number of errors."""
    warnings: Count
    """Number of warnings."""


class QaCodeResult(Message, sender="qa-code", receiver="lead"):
    """Results of the verification of code, by QA in code mode."""

    type: Literal["qa_code_result"]
    result: CheckResult
    """The verdict."""
    tests: SuiteCounts
    """How the tests ended."""
    lint: LintCounts
    """What the linter found."""
    findings_count: Count
    """Number of findings of every severity."""
    critical: Count
    """Number of critical findings among them."""
    artifact: RelativePath
    """qa-code.jsonl of the phase, relative to the planning root."""
    committed: bool
    """Whether the artifact is committed."""

    @invariant
    def critical_is_part_of_the_findings(self) -> object:
        """`critical` ≤ `findings_count`: the critical findings are counted among the findings."""
        return exceeds(self, "critical", "findings_count")


class SecurityAudit(Message, sender="security", receiver="lead"):
    """Results of a security audit; FAIL is a hard stop."""

    type: Literal["security_audit"]
    result: AuditResult
    """The verdict."""
    findings: Count
    """Number of findings of every severity."""
    critical: Count
    """Number of critical findings among them."""
    categories: list[Literal["secrets", "owasp", "deps", "config"]]
    """Categories that were examined."""
    artifact: RelativePath
    """security-audit.jsonl of the phase, relative to the planning root."""
    committed: bool
    """Whether the artifact is committed."""

    @invariant
    def critical_is_part_of_the_findings(self) -> object:
        """`critical` ≤ `findings`: the critical findings are counted among the findings."""
        return exceeds(self, "critical", "findings")
