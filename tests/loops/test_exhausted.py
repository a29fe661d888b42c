"""A loop that is used up asks for its escalation, once, by whoever has to escalate."""

from __future__ import annotations

import pytest

from tests.loops.test_rounds import NAMES, facts_of, read
from yolo_fs.loops.rounds import exhausted

ESCALATES = {
    "escalated to the Lead": "senior",
    "3rd QA FAIL": "lead",
    "QA FAIL 4": "lead",
    "limit reached": "dev",
}
"""State in which a loop is used up → who escalates it."""


@pytest.mark.parametrize("name", NAMES)
def test_what_is_used_up_is_escalated_and_nothing_else(name: str) -> None:
    case = read(name)
    found = list(exhausted(facts_of(case)))
    assert [one.agent for one in found] == [
        ESCALATES[one["state"]]
        for one in case["expected"]
        if one["state"] in ESCALATES and one["next"] != "architect"
    ]
    assert all(one.task and one.reason and one.evidence and one.recommendation for one in found)
