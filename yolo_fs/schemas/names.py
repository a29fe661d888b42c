"""The closed lists of names that shapes take from the protocol's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from yolo_fs.protocol.decisions import DECISION_KINDS
from yolo_fs.protocol.departments import WORKFLOWS, WORKING_NAMES
from yolo_fs.protocol.gates import GATES
from yolo_fs.protocol.workflow import STEPS

_DEPARTMENTS = tuple(name.value for name in WORKING_NAMES)
_STEPS = tuple(row.key for row in STEPS)

if TYPE_CHECKING:  # mypy takes no literal that a table closes
    DecisionKindOrNone = str
    DepartmentName = str
    DepartmentNameOrNone = str
    GateName = str
    StepKey = str
    StepKeyOrNone = str
    StepKeyOrPlan = str
    StatefulStep = str
    Workflow = str
else:
    DecisionKindOrNone = Literal["", *(row.kind for row in DECISION_KINDS)]
    DepartmentName = Literal[_DEPARTMENTS]
    DepartmentNameOrNone = Literal[*_DEPARTMENTS, ""]
    GateName = Literal[tuple(row.name for row in GATES)]
    StepKey = Literal[_STEPS]
    StepKeyOrNone = Literal[*_STEPS, ""]
    StepKeyOrPlan = Literal[*_STEPS, "plan"]
    StatefulStep = Literal[*_STEPS, "post_task_qa", "post_plan_qa"]
    Workflow = Literal[WORKFLOWS]
