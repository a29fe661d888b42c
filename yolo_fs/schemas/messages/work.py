"""What the working chain tells its next level: critique, the Dev's own reports, what a review asks
to change, and the verification of a plan, of its code and of its security.

See docs/dev/sources.md#document-000.
"""

from __future__ import annotations

from typing import Annotated, Literal

from yolo_fs.core.reasons import Reason
from yolo_fs.schemas.base import Field, Shape, exceeds, fault, invariant
from yolo_fs.schemas.formats import Count, PhaseNumber, PlanName, RelativePath, TaskPath, Text
from yolo_fs.schemas.messages.message import (
    AuditResult,
    CheckResult,
    Cycle,
    Direction,
    Message,
    SomeTexts,
    TaskStatus,
    Texts,
    foreign_task,
)


class CritiqueResult(Message, sender="critic", receiver="lead"):
    """Brainstorm and gap-analysis findings for a phase, produced before architecture begins.

    The Critic has no Write tool: the Lead writes critique.jsonl from these findings and commits it.
    """

    type: Literal["critique_result"]
    phase: PhaseNumber
    """Phase that was examined."""
    findings: Count
    """Number of findings of every severity."""
    critical: Count
    """Number of critical findings."""
    major: Count
    """Number of major findings."""
    minor: Count
    """Number of minor findings."""
    categories: list[Literal["gap", "risk", "improvement", "question", "alternative"]]
    """Categories that occur; `alternative` is the fifth category of critique.jsonl."""
    artifact: RelativePath
    """critique.jsonl of the phase, relative to the planning root."""
    committed: bool
    """Whether the artifact is committed; the Critic itself cannot commit."""

    @invariant
    def findings_are_the_sum_of_the_severities(self) -> object:
        """`findings` = `critical` + `major` + `minor`: every finding has exactly one severity."""
        total = self.critical + self.major + self.minor
        if self.findings == total:
            return None
        message = f"findings is {self.findings}, but critical + major + minor is {total}"
        return fault(Reason.TOTALS_DISAGREE, message, expected=str(total), at="/findings")


class TestPlanResult(Message, sender="tester", receiver="senior"):
    """Results of authoring the tests of the RED phase."""

    type: Literal["test_plan_result"]
    plan_id: PlanName
    """Plan whose tasks were tested."""
    tasks_tested: Count
    """Number of tasks that now have tests."""
    tasks_skipped: Count
    """Number of tasks without a `ts` field, left out."""
    total_tests: Count
    """Number of test cases written."""
    all_red: bool
    """Whether every test fails, as it must before implementation."""
    artifact: RelativePath
    """test-plan.jsonl of the phase, relative to the planning root."""
    committed: bool
    """Whether tests and test plan are committed."""

    @invariant
    def red_tests_are_there(self) -> object:
        """`all_red` of tasks that were tested says that there are tests."""
        if not (self.all_red and self.tasks_tested and not self.total_tests):
            return None
        message = f"all_red is true, tasks_tested {self.tasks_tested}, total_tests 0"
        return fault(
            Reason.TOTALS_DISAGREE, message, expected="the tests that fail", at="/total_tests"
        )


class ArchitectureDecision(Shape):
    """One architecture decision."""

    decision: Text
    """What was decided."""
    rationale: Text
    """Why."""
    alternatives: Texts
    """What was considered and not taken."""


class Risk(Shape):
    """One risk of an architecture."""

    risk: Text
    """What may go wrong."""
    impact: Text
    """Severity of the risk, such as `high`; the document lists no other values."""
    mitigation: Text
    """What is done about it."""


class ArchitectureDesign(Message, sender="architect", receiver="lead", direction=Direction.DOWN):
    """Architecture decisions and system design for a phase."""

    type: Literal["architecture_design"]
    phase: PhaseNumber
    """Phase that was designed."""
    artifact: RelativePath
    """architecture.toon of the phase, relative to the planning root."""
    decisions: Annotated[
        list[ArchitectureDecision], Field(min_length=1, description="at least one decision")
    ]
    """Decisions taken, each with its reason."""
    risks: list[Risk]
    """Risks seen, each with its mitigation."""
    committed: bool
    """Whether the artifact is committed."""


class SeniorSpec(Message, sender="senior", receiver="lead"):
    """Notice, after Design Review, that the specs of a plan have been enriched."""

    type: Literal["senior_spec"]
    plan_id: PlanName
    """Plan whose tasks now carry `spec` and `ts`."""
    tasks_enriched: Count
    """Number of tasks enriched."""
    concerns: Texts
    """What the Lead should know before implementation."""
    committed: bool
    """Whether the enriched plan is committed."""


class DevProgress(Message, sender="dev", receiver="senior"):
    """Status update after a task."""

    type: Literal["dev_progress"]
    task: TaskPath
    """Task that was worked on."""
    plan_id: PlanName
    """Plan of the task."""
    commit: Annotated[
        str,
        Field(
            pattern=r"^([0-9a-f]{7,64})?$",
            examples=["abc1234"],
            description="commit hash, 7 digits or more; empty when nothing was committed",
        ),
    ]
    """Commit of the task; empty when a partial or failed task has none."""
    status: TaskStatus
    """How far the task came."""
    concerns: Texts
    """What the Senior should know, such as a changed interface."""

    @invariant
    def task_is_of_the_plan(self) -> object:
        """`task` NN-MM/Tk names a task of `plan_id`."""
        return foreign_task(self.task, self.plan_id)

    @invariant
    def complete_task_has_a_commit(self) -> object:
        """A `complete` task names its `commit`: each task is committed before it is reported."""
        if self.commit or self.status != "complete":
            return None
        return fault(
            Reason.EMPTY_VALUE,
            "a complete task names no commit",
            expected="commit hash, such as abc1234",
            at="/commit",
        )


class DevBlocker(Message, sender="dev", receiver="senior"):
    """Escalation of a Dev who is blocked and cannot proceed."""

    type: Literal["dev_blocker"]
    task: TaskPath
    """Task that is blocked."""
    plan_id: PlanName
    """Plan of the task."""
    blocker: Text
    """What blocks the work."""
    needs: Text
    """What would remove it."""
    attempted: SomeTexts
    """What was tried, as evidence."""

    @invariant
    def task_is_of_the_plan(self) -> object:
        """`task` NN-MM/Tk names a task of `plan_id`."""
        return foreign_task(self.task, self.plan_id)


class ReviewInstruction(Shape):
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
    """Exact fix instructions; the Dev follows them without interpretation of their own."""

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


class CheckCounts(Shape):
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


class CheckFailure(Shape):
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

    @invariant
    def a_fail_has_a_failed_check(self) -> object:
        """A FAIL counts at least one failed check."""
        if self.result != "FAIL" or self.checks.failed:
            return None
        message, expected = "FAIL, but checks.failed is 0", "the number of checks that failed"
        return fault(Reason.STATE_CONFLICT, message, expected=expected, at="/checks/failed")


class SuiteCounts(Shape):
    """How the test suite ended."""

    passed: Count
    """Number of tests that passed."""
    failed: Count
    """Number of tests that failed."""
    skipped: Count
    """Number of tests that were not run."""


class LintCounts(Shape):
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
