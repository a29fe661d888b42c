"""What the words of a plan say of its summary, and those of a task of each other."""

from __future__ import annotations

from typing import Any

import pytest

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.corrections import Correction, corrected
from yolo_fs.schemas.lines.planning import PlanTask, Summary

HEADER = {"t": "Mention the flag", "mh": {"tr": ["The page names it"], "ar": [], "kl": []}}
TASK = {
    "id": "T1",
    "tp": "auto",
    "a": "Write it",
    "f": ["README.md"],
    "v": "grep -c flag README.md",
}
SUMMARY = {"s": "complete", "tc": 1, "tt": 1, "fm": ["README.md"], "built": ["A paragraph"]}


def by(name: str, *plan: dict[str, Any]) -> Correction:
    place = classify(f".yolo-planning/phases/03-auth/{name}")
    assert place
    return Correction(place, "", of_plan=plan)


def summary_of(task: dict[str, Any], **said: Any) -> dict[str, Any]:
    return corrected(Summary, SUMMARY | said, by("03-05.summary.jsonl", HEADER, task))


def test_where_neither_plan_nor_summary_speaks_of_tests_there_are_none() -> None:
    assert summary_of(TASK)["tst"] == "no_tests"


@pytest.mark.parametrize(
    "words",
    [{"ts": "tests/readme.bats: 2 cases"}, {"v": "npm test"}, {"f": ["src/flag_test.go"]}, {"f": ["flag.spec.ts"]}],
)  # fmt: skip
def test_where_a_plan_speaks_of_tests_the_author_is_asked(words: dict[str, Any]) -> None:
    assert "tst" not in summary_of(TASK | words)


def test_where_a_summary_speaks_of_tests_the_author_is_asked() -> None:
    assert "tst" not in summary_of(TASK, dv=["Two tests are left out"])


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ({**TASK, "done": False}, {"done": TASK["v"], "done_note": False}),
        (TASK, {"done": TASK["v"]}),
        ({**TASK, "v": "", "done": True}, {"done_note": True}),
        ({"id": "T1", "done": "It is named"}, {"v": "It is named"}),
        ({**TASK, "done": "It is named"}, {"v": TASK["v"], "done": "It is named"}),
    ],
)
def test_what_shows_that_a_task_is_done_is_said_once(
    task: dict[str, Any], expected: dict[str, Any]
) -> None:
    fixed = corrected(PlanTask, task, by("03-05.plan.jsonl"))
    assert {key: fixed.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"tc": "2/3"}, (2, 3)),
        ({"tc": "2 of 3"}, (2, 3)),
        ({"tc": "2/3", "tt": 3}, (2, 3)),
        ({"tc": "2/3", "tt": "3"}, (2, 3)),
        ({"tc": "2/3", "tt": 4}, ("2/3", 4)),  # one of the two is wrong, and nobody knows which
        ({"tc": "most/3", "tt": 3}, ("most/3", 3)),
    ],
)
def test_tasks_done_of_all_are_two_numbers(
    said: dict[str, Any], expected: tuple[object, object]
) -> None:
    given = {"s": "partial", "fm": ["README.md"], "built": ["A paragraph"]}
    fixed = corrected(Summary, given | said, by("03-05.summary.jsonl"))
    assert (fixed.get("tc"), fixed.get("tt")) == expected
