"""What holds of a whole object is checked beside every other fault of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from yolo_fs.core.reasons import Fault, Grade, Reason
from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.check import check
from yolo_fs.schemas.lines.escalation import EscalationLine
from yolo_fs.schemas.lines.findings import LoggedDecision
from yolo_fs.schemas.lines.integration import PlanTests
from yolo_fs.schemas.lines.product import RoadmapPlan
from yolo_fs.schemas.lines.quality import CodeQuality, SecurityAuditLine

DECISION = {
    "ts": "2026-02-20T10:00:00Z", "agent": "lead", "dec": "accept 01-01", "reason": "known", "kind": "accept",
    "of": "01-01",
}  # fmt: skip
AUDIT = {"r": "FAIL", "findings": 2, "critical": 1, "dt": "2026-02-20"}
QUALITY = {
    "r": "PASS", "tests": {"ps": 1, "fl": 0, "sk": 0}, "lint": {"err": 0, "warn": 0}, "dt": "2026-02-20",
    "tdd": {"covered": 1, "total": 2},
}  # fmt: skip
TASK = {"id": "T1", "ps": 1, "fl": 0, "tf": ["tests/a.py"]}
TESTS = {
    "plan": "01-01", "dept": "backend", "phase": "green", "tc": 1, "ps": 1, "fl": 0, "dt": "2026-02-20",
    "tasks": [TASK],
}  # fmt: skip
ESCALATED = {
    "id": "ESC-01-01-T1", "dt": "2026-02-20T10:00:00Z", "agent": "dev", "reason": "which key?", "sb": "dev",
    "tgt": "senior", "sev": "blocking", "st": "open",
}  # fmt: skip
DAY = {"dt": "20.2.26"}
BOTH = [
    (LoggedDecision, DECISION, {"reason": ""}, {"ts": "yesterday"}, "/reason"),
    (LoggedDecision, DECISION, {"reason": ""}, {}, "/reason"),
    (SecurityAuditLine, AUDIT, {"critical": 3}, DAY, "/critical"),
    (CodeQuality, QUALITY, {"tdd": {"covered": 3, "total": 2}}, DAY, "/tdd/covered"),
    (CodeQuality, QUALITY, {"tdd": {"covered": 3, "total": 2}}, {"tests": {"ps": 1, "fl": 0}}, "/tdd/covered"),
    (PlanTests, TESTS, {"ps": 2}, DAY, "/tc"),
    (PlanTests, TESTS, {"tasks": [TASK | {"ps": 0, "fl": 1}]}, DAY, "/tasks"),
    (PlanTests, TESTS, {"ps": 2, "tasks": [TASK | {"fl": 1}]}, {}, "/tasks"),
    (EscalationLine, ESCALATED, {"st": "resolved"}, {"dt": "yesterday"}, "/res"),
    (EscalationLine, ESCALATED, {"opts": ["only this"]}, {"sev": "grave"}, "/opts"),
]  # fmt: skip
"""(shape, what is right, what breaks its invariant, another fault, place of the invariant's)."""


def faults_of(shape: type[Shape], value: Mapping[str, Any]) -> tuple[Fault, ...]:
    return check(shape, value)[1]


@pytest.mark.parametrize(("shape", "right", "wrong", "other", "at"), BOTH)
def test_another_fault_hides_no_broken_invariant(
    shape: type[Shape], right: dict[str, Any], wrong: dict[str, Any], other: dict[str, Any], at: str
) -> None:
    assert at not in [fault.at for fault in faults_of(shape, right | other)]
    alone, both = faults_of(shape, right | wrong), faults_of(shape, right | wrong | other)
    (expected,) = [fault for fault in alone if fault.at == at]
    assert [fault for fault in both if fault.at == at] == [expected]


def test_an_accepted_plan_without_a_reason_is_an_error_in_one_line() -> None:
    (found,) = faults_of(LoggedDecision, DECISION | {"reason": ""})
    assert (found.reason, found.grade) == (Reason.EMPTY_VALUE, Grade.MUST)


@pytest.mark.parametrize("wrong", ["two", None, [1], {}], ids=repr)
def test_an_invariant_says_nothing_of_a_value_of_another_type(wrong: Any) -> None:
    assert [fault.at for fault in faults_of(SecurityAuditLine, AUDIT | {"findings": wrong})] == [
        "/findings"
    ]


def test_a_broken_invariant_hides_no_other() -> None:
    phases = [{"id": "a", "depends_on": ["b", "c"]}, {"id": "b", "depends_on": ["a"]}]
    faults = faults_of(RoadmapPlan, {"phases": phases})
    assert [fault.reason for fault in faults] == [Reason.UNKNOWN_REFERENCE, Reason.DEPENDENCY_CYCLE]


def test_an_invariant_counts_the_members_that_are_sound() -> None:
    wrong = [{"id": "a", "depends_on": 7}, {"id": "b", "depends_on": ["x"]}]
    places = [fault.at for fault in faults_of(RoadmapPlan, {"phases": wrong})]
    assert places == ["/phases/0/depends_on"]


@pytest.mark.parametrize(
    ("kind", "of", "is_told"),
    [
        ("accept", "01-02", False), ("accept", "", True), ("accept", "plan 01-02", True), ("accept", "01-02/T1", True),
        ("assign", "01-02/T1", False), ("assign", "T1", True), ("assign", "01-02", True),
        ("accept_risk", "frontend", False), ("accept_risk", "01-02", True),
        ("approve", "backend:code_review", False), ("approve", "code_review", True), ("approve", "backend:qa", True),
        ("supersede", "critique.jsonl:C3", False), ("supersede", "C3", True), ("", "", False), ("", "anything", False),
    ],
)  # fmt: skip
def test_a_decision_of_a_kind_is_about_what_it_can_decide(
    kind: str, of: str, is_told: bool
) -> None:
    faults = faults_of(LoggedDecision, DECISION | {"kind": kind, "of": of})
    told = [fault for fault in faults if fault.at == "/of"]
    assert [fault.grade for fault in told] == [Grade.MUST] * is_told


@pytest.mark.parametrize(
    ("agent", "kind", "of", "is_told"),
    [
        ("lead", "accept", "01-02", False), ("yolo-fe-lead", "accept", "01-02", False), ("qa", "accept", "01-02", True),
        ("wizard", "assign", "01-02/T1", True), ("lead", "accept_risk", "backend", True),
        ("user", "accept_risk", "backend", False), ("critic", "supersede", "critique.jsonl:C3", False),
        ("dev", "", "", False),
    ],
)  # fmt: skip
def test_a_decision_by_whoever_may_not_take_it_is_warned_of(
    agent: str, kind: str, of: str, is_told: bool
) -> None:
    faults = faults_of(LoggedDecision, DECISION | {"agent": agent, "kind": kind, "of": of})
    assert [(fault.at, fault.grade) for fault in faults] == [("/agent", Grade.SHOULD)] * is_told
