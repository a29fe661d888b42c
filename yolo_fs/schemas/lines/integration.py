"""Tests written before the code and how they went; what the integration gate found, and what the
Product Owner says about it. The verdict itself is document 000's message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from yolo_fs.core.reasons import Grade, Reason
from yolo_fs.schemas.base import SHOULD, Field, Form, Shape, fault, invariant, may_lack
from yolo_fs.schemas.formats import Count, IsoDate, Name, PlanName, Statement, TaskName, WorkPath
from yolo_fs.schemas.messages.departments import PoQaVerdict
from yolo_fs.schemas.names import DepartmentName

Outcome = Literal["pass", "fail", "skip"]


class IntegrationChecks(Shape):
    """The four checks across departments."""

    api: Outcome
    """API contracts are agreed."""
    design: Outcome
    """Ready components are built."""
    handoffs: Outcome
    """Every department has handed over."""
    tests: Outcome
    """No department has a failing test."""


class IntegrationFailure(Shape):
    """Why a check failed."""

    check: Name
    """Check."""
    detail: Statement
    """What is wrong."""
    file: str = may_lack()
    """File that shows it; empty when there is none."""


class IntegrationResult(Shape):
    """The result of one run."""

    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.MOMENT_AS_DAY}

    r: Literal["PASS", "FAIL", "PARTIAL"]
    """Result."""
    checks: IntegrationChecks
    """Checks."""
    failures: list[IntegrationFailure]
    """Failures."""
    dt: IsoDate
    """Day of the run."""


class GateOutput(Shape):
    """What the gate script prints, in the place of the artifact: the two are different shapes."""

    gate: Any = None
    """Key of the output."""
    departments: Any = None
    """Key of the output."""
    cross_checks: Any = None
    """Key of the output."""
    timeout_remaining: Any = None
    """Key of the output."""
    dt: Any = None
    """Key of both."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        return "gate" in value and "r" not in value

    @invariant
    def is_another_shape(self) -> object:
        """Explain how the output becomes a line."""
        return fault(
            Reason.RIVAL_SHAPE,
            "this is the output of the gate script",
            expected="r (gate in capitals), checks (cross_checks), failures, dt",
        )


class RivalVerdict(Shape):
    """One of the two older shapes of `po_qa_verdict`, in the place of the message."""

    r: Any = None
    """Key of both rival shapes."""
    phase: Any = None
    """Key of the first."""
    scope_match: Any = None
    """Key of the first."""
    findings: Any = None
    """Key of the first."""
    action: Any = None
    """Key of the first."""
    scope_alignment: Any = None
    """Key of the second."""
    missing: Any = None
    """Key of the second."""
    extra: Any = None
    """Key of the second."""
    verdict_note: Any = None
    """Key of the second."""
    dt: Any = None
    """Key of all three."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        return PoQaVerdict.rival(value) is not None

    @invariant
    def is_another_shape(self) -> object:
        """Explain how the rival becomes a verdict."""
        rival_fault = PoQaVerdict.rival(self.model_dump(exclude_unset=True))
        return rival_fault and fault(
            rival_fault.reason,
            rival_fault.message,
            expected=rival_fault.expected,
            at=rival_fault.at,
        )


class PlannedTests(Shape):
    """The RED tests of one task."""

    accepts: ClassVar[Mapping[str, Form]] = {"plan": Form.SHORT_PLAN, "tf": Form.OBJECT_AS_PATH}

    id: TaskName
    """Task id."""
    plan: PlanName | None = None
    """Plan of the task, where one file serves several plans."""
    tf: list[WorkPath]
    """Test files."""
    tc: Count
    """Test count."""
    red: bool
    """All of them fail, as they must before the code exists."""
    desc: Statement
    """What they test."""


class TaskTests(Shape):
    """How the tests of one task went."""

    id: TaskName
    """Task id."""
    ps: Count
    """Passed."""
    fl: Count
    """Failed."""
    tf: list[WorkPath]
    """Test files."""


class PlanTests(Shape):
    """How the tests of one plan went."""

    accepts: ClassVar[Mapping[str, Form]] = {"plan": Form.SHORT_PLAN, "dt": Form.MOMENT_AS_DAY}

    plan: PlanName
    """Plan."""
    dept: DepartmentName
    """Department."""
    phase: Literal["red", "green"]
    """TDD phase: before or after the code."""
    tc: Count
    """Test count."""
    ps: Count
    """Passed."""
    fl: Count
    """Failed."""
    dt: IsoDate
    """Day of the run."""
    tasks: list[TaskTests] = Field(min_length=1, json_schema_extra=SHOULD)
    """The same, task by task."""

    @invariant
    def every_test_is_counted(self) -> object:
        """`ps` and `fl` add up to `tc`; fewer may be skipped tests."""
        if self.ps + self.fl == self.tc:
            return None
        return fault(
            Reason.TOTALS_DISAGREE,
            f"{self.ps} passed + {self.fl} failed is not {self.tc}",
            expected="ps + fl = tc",
            at="/tc",
            grade=Grade.SHOULD if self.ps + self.fl < self.tc else Grade.MUST,
        )

    @invariant
    def tasks_add_up(self) -> object:
        """The tasks' counts add up to the plan's; a test of two tasks may pass in both."""
        passed, failed = sum(task.ps for task in self.tasks), sum(task.fl for task in self.tasks)
        if not self.tasks or (passed, failed) == (self.ps, self.fl):
            return None
        return fault(
            Reason.TOTALS_DISAGREE,
            f"the tasks have {passed} passed and {failed} failed, the plan {self.ps} and {self.fl}",
            expected="the sums of the tasks' ps and fl",
            at="/tasks",
            grade=Grade.SHOULD if failed == self.fl and passed > self.ps else Grade.MUST,
        )
