"""An artifact of many wrong lines gets as many findings as people can read, and one for all the rest."""

from __future__ import annotations

import time

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.examine import MAX_FINDINGS, Understood, understand
from yolo_fs.schemas.layout import Record, Strictness

PLACE = classify(".yolo-planning/phases/02-pay/decisions.jsonl")


def wrong(lines: int) -> Understood:
    assert PLACE is not None
    value = {"q": "x", "f": "y", "src": "z"}
    records = [Record(number, value) for number in range(1, lines + 1)]
    return understand(PLACE, records, Strictness())


def test_findings_are_bounded_and_say_so() -> None:
    few, many = wrong(1_000), wrong(20_000)
    assert few.faults == many.faults
    assert len(many.faults) <= 2 * (MAX_FINDINGS + 1)
    assert not many.is_sound
    assert any("more than" in fault.message for _, fault in many.faults)


def test_a_hundred_times_the_lines_do_not_cost_a_hundred_times_a_finding() -> None:
    def cost(lines: int) -> float:
        began = time.process_time()
        wrong(lines)
        return time.process_time() - began

    wrong(100)
    per_line_of_few = min(cost(50) for _ in range(3)) / 50
    per_line_of_many = min(cost(50_000) for _ in range(2)) / 50_000
    assert per_line_of_many < per_line_of_few / 2
