"""An artifact of many wrong lines gets as many findings as people can read, and one for all the rest."""

from __future__ import annotations

import time

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.examine import MAX_FINDINGS, Understood, run_checks, understand
from yolo_fs.artifacts.verdicts import Surroundings
from yolo_fs.core.reasons import Reason
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


def test_each_of_many_tasks_with_one_id_is_told_another_that_is_free() -> None:
    place = classify(".yolo-planning/phases/02-pay/02-01.plan.jsonl")
    assert place is not None
    names = ["T7", "T1", "T7", "T1", "T1", "T" + "9" * 5_000, *("T1" for _ in range(20_000))]
    header = {"p": "02", "n": "01", "t": "Pay", "w": 1, "d": [], "mh": {}, "obj": "x", "auto": True}
    task = {"tp": "auto", "a": "do it", "f": ["a.py"], "v": "true", "done": "ok"}
    tasks = (task | {"id": name, "a": f"do {at}"} for at, name in enumerate(names))
    records = [Record(number, each) for number, each in enumerate((header, *tasks), start=1)]
    faults = [fault for _, fault in run_checks(place, records, Surroundings())]
    told = [fault.expected for fault in faults if fault.reason is Reason.DUPLICATE_ID]
    assert told[:3] == [f"an id of its own, such as {free}" for free in ("T8", "T9", "T10")]
    assert len(told) > 50 and len(set(told)) == len(told)
