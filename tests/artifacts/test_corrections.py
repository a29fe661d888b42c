"""What the words of a plan say of its summary, and those of a task of each other."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.corrections import Correction, corrected
from yolo_fs.schemas import lines
from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.fields import listed_values
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


def shapes_with_severity() -> Iterator[tuple[type[Shape], tuple[str, ...]]]:
    """Yield each shape of a record that must have a severity, with its scale, the gravest first."""
    for module in pkgutil.iter_modules(lines.__path__):
        for shape in vars(importlib.import_module(f"{lines.__name__}.{module.name}")).values():
            is_shape = isinstance(shape, type) and issubclass(shape, Shape)
            severity = shape.model_fields.get("sev") if is_shape else None
            if severity and severity.is_required():
                yield shape, listed_values(severity)


SCALES = dict(shapes_with_severity())


def lightest(word: str) -> int:
    """Return the lowest place that a word has in any scale of the protocol."""
    return max(scale.index(word) for scale in SCALES.values() if word in scale)


@pytest.mark.parametrize("shape", SCALES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("word", sorted({word for scale in SCALES.values() for word in scale}))
def test_a_severity_of_another_scale_is_never_made_lighter(shape: type[Shape], word: str) -> None:
    """A scale's own words stay, such as the `high` of a security finding."""
    scale = SCALES[shape]
    fixed = corrected(shape, {"sev": word}, by("03-05.summary.jsonl"))["sev"]
    assert fixed == word or (word not in scale and scale.index(fixed) <= lightest(word))


@pytest.mark.parametrize("word", ["warning", "error"])
@pytest.mark.parametrize("shape", SCALES, ids=lambda shape: shape.__name__)
def test_how_grave_a_word_of_no_scale_is_its_author_decides(shape: type[Shape], word: str) -> None:
    assert corrected(shape, {"sev": word}, by("03-05.summary.jsonl"))["sev"] == word
