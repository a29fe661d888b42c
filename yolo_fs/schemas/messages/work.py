"""From critique to the Dev's own reports: what the working chain tells its next level.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from typing import Annotated, Literal

from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import (
    Count,
    Field,
    PhaseNumber,
    PlanName,
    RelativePath,
    TaskPath,
    Text,
    Wire,
    fault,
    invariant,
)
from yolo_fs.schemas.messages.message import (
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
        said = f"all_red is true, tasks_tested {self.tasks_tested}, total_tests 0"
        return fault(
            Reason.TOTALS_DISAGREE, said, expected="the tests that fail", at="/total_tests"
        )


class ArchitectureDecision(Wire):
    """One architecture decision."""

    decision: Text
    """What was decided."""
    rationale: Text
    """Why."""
    alternatives: Texts
    """What was considered and not taken."""


class Risk(Wire):
    """One risk of an architecture."""

    risk: Text
    """What may go wrong."""
    impact: Text
    """How grave it would be, such as `high`; the document lists no other values."""
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
