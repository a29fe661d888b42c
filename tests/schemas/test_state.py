"""State files: the examples, and what their writers differ in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.core.reasons import Level, Reason
from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.check import check
from yolo_fs.schemas.layout import Strictness
from yolo_fs.schemas.state import (
    DeptStatus,
    EscalationState,
    ExecutionState,
    Orchestration,
    StateFile,
)

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples" / "states"
SHAPES: dict[str, type[Shape]] = {
    "dept-status": DeptStatus,
    "execution-state": ExecutionState,
    "orchestration": Orchestration,
    "state": StateFile,
    "escalation-state": EscalationState,
}
DEPT_STATUS_KEYS = [
    "dept",
    "status",
    "step",
    "started_at",
    "updated_at",
    "plans_complete",
    "plans_total",
    "error",
]


def named(path: Path) -> str:
    return f"{path.parent.parent.name}/{path.stem}"


def example(kind: str, name: str) -> dict[str, Any]:
    return json.loads((EXAMPLES / kind / "ok" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/ok/*.json")), ids=named)
def test_good_state_has_no_fault(path: Path) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    shaped, faults = check(SHAPES[path.parent.parent.name], value, Strictness(strict=True))
    assert shaped is not None
    assert faults == ()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/ok/*.json")), ids=named)
def test_good_state_is_written_as_it_was_read(path: Path) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    shaped, _ = check(SHAPES[path.parent.parent.name], value)
    assert shaped is not None
    assert shaped.model_dump(exclude_unset=True) == value


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/bad/*.json")), ids=named)
def test_bad_state_fails_for_the_reason_in_its_name(path: Path) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    shaped, faults = check(SHAPES[path.parent.parent.name], value)
    assert shaped is None
    assert next(f.reason for f in faults if f.level is Level.ERROR) == Reason.of(
        path.stem.partition("__")[0]
    )


@pytest.mark.parametrize("kind", SHAPES)
def test_every_kind_has_its_examples(kind: str) -> None:
    assert len(list((EXAMPLES / kind / "ok").glob("*.json"))) >= 2
    assert len(list((EXAMPLES / kind / "bad").glob("*.json"))) >= 3


def test_department_status_begins_with_its_eight_keys_and_needs_only_them() -> None:
    assert list(DeptStatus.model_fields)[:8] == DEPT_STATUS_KEYS
    assert [
        name for name, field in DeptStatus.model_fields.items() if field.is_required()
    ] == DEPT_STATUS_KEYS


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"plan": "05-01"}, False),
        ({"task": "05-02/T4"}, False),
        ({"id": "ESC-05-02-T30"}, False),
        ({"id": "ESC-05-02-T30", "task": "05-02/T30"}, True),
    ],
)
def test_escalation_names_one_task_three_times(change: dict[str, str], good: bool) -> None:
    value = example("execution-state", "running_with_escalation")
    value["escalations"][0] |= change
    shaped, faults = check(ExecutionState, value)
    assert (shaped is not None) is good
    expected = [] if good else [(Reason.NAME_MISMATCH, "/escalations/0/id")]
    assert [(fault.reason, fault.at) for fault in faults] == expected


def test_one_wrong_word_is_one_finding() -> None:
    value = example("dept-status", "uiux_running") | {"step": "coding"}
    _, faults = check(DeptStatus, value)
    assert [(fault.reason, fault.at) for fault in faults] == [(Reason.UNKNOWN_VALUE, "/step")]
