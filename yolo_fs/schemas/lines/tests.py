"""Tests written before the code, and how they went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import (
    Count,
    Field,
    Form,
    IsoDate,
    PlanName,
    RelativePath,
    TaskName,
    Text,
    Wire,
    fault,
    invariant,
)
from yolo_fs.schemas.names import DepartmentName


class PlannedTests(Wire):
    """The RED tests of one task."""

    accepts: ClassVar[Mapping[str, Form]] = {"plan": Form.SHORT_PLAN}

    id: TaskName
    """Task id."""
    plan: PlanName | None = None
    """Plan of the task, where one file serves several plans."""
    tf: list[RelativePath]
    """Test files."""
    tc: Count
    """Test count."""
    red: bool
    """All of them fail, as they must before the code exists."""
    desc: Text
    """What they test."""


class TaskTests(Wire):
    """How the tests of one task went."""

    id: TaskName
    """Task id."""
    ps: Count
    """Passed."""
    fl: Count
    """Failed."""
    tf: list[RelativePath]
    """Test files."""


class PlanTests(Wire):
    """How the tests of one plan went."""

    accepts: ClassVar[Mapping[str, Form]] = {
        "plan": Form.SHORT_PLAN,
        "dt": Form.MOMENT_AS_DAY,
    }

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
    tasks: list[TaskTests] = Field(min_length=1)
    """The same, task by task."""

    @invariant
    def every_test_is_counted(self) -> object:
        """`ps` and `fl` add up to `tc`."""
        if self.ps + self.fl == self.tc:
            return None
        return fault(
            Reason.TOTALS_DISAGREE,
            f"{self.ps} passed + {self.fl} failed is not {self.tc}",
            expected="ps + fl = tc",
            at="/tc",
        )

    @invariant
    def tasks_add_up(self) -> object:
        """The tasks' counts add up to the plan's."""
        passed, failed = sum(task.ps for task in self.tasks), sum(task.fl for task in self.tasks)
        if (passed, failed) == (self.ps, self.fl):
            return None
        return fault(
            Reason.TOTALS_DISAGREE,
            f"the tasks have {passed} passed and {failed} failed, the plan {self.ps} and {self.fl}",
            expected="the sums of the tasks' ps and fl",
            at="/tasks",
        )
