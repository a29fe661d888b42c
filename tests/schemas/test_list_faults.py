"""What is said of a list that is none, that lacks, or that is empty tells how the list has to look: it can be obeyed."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest

import yolo_fs.schemas
from yolo_fs.core.reasons import Fault, Reason
from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.check import check
from yolo_fs.schemas.config import Config
from yolo_fs.schemas.plain_values import shape_of

for _module in pkgutil.walk_packages(yolo_fs.schemas.__path__, "yolo_fs.schemas."):
    importlib.import_module(_module.name)


def shapes(base: type[Shape] = Shape) -> Iterator[type[Shape]]:
    for shape in base.__subclasses__():
        if shape.__module__.startswith("yolo_fs."):
            yield shape
        yield from shapes(shape)


LISTS = [
    (shape, name)
    for shape in dict.fromkeys(shapes())
    for name, field in shape.model_fields.items()
    if any(get_origin(kind) is list for kind in (field.annotation, *get_args(field.annotation)))
]


def key_of(shape: type[Shape], name: str) -> str:
    return shape.model_fields[name].alias or name


def faults_at(shape: type[Shape], key: str, value: Any) -> list[Fault]:
    given = {} if value is None else {key: value}
    _, faults = check(shape, given)
    return [fault for fault in faults if fault.at == f"/{key}"]


def example_in(fault: Fault) -> Any:
    """Return the list that the text of a fault gives as an example; None where it gives none."""
    _, found, example = fault.expected.partition("such as ")
    return json.loads(example) if found else None


def test_there_are_as_many_lists_as_shapes_have() -> None:
    assert len(LISTS) > 150


@pytest.mark.parametrize(("shape", "name"), LISTS, ids=lambda part: getattr(part, "__name__", part))
@pytest.mark.parametrize("given", ["tests/a.py", 7, True, {"a": 1}, None, []], ids=json.dumps)
def test_what_is_expected_of_a_list_is_a_list_and_its_example_is_one_that_is_taken(
    shape: type[Shape], name: str, given: Any
) -> None:
    key = key_of(shape, name)
    found = faults_at(shape, key, given)
    if given == [] or (given is None and not shape.model_fields[name].is_required()):
        found = [fault for fault in found if fault.reason is Reason.EMPTY_VALUE]
    else:
        assert len(found) == 1, found
    for fault in found:
        assert fault.expected.startswith("a list of "), fault.expected
        example = example_in(fault)
        if example is not None:
            assert isinstance(example, list) and example
            of_list = [each for each in faults_at(shape, key, example) if each.at == f"/{key}"]
            assert of_list == []
            below = [
                each for each in check(shape, {key: example})[1] if each.at.startswith(f"/{key}/")
            ]
            assert below == [], (example, below)


@pytest.mark.parametrize(("shape", "name"), LISTS, ids=lambda part: getattr(part, "__name__", part))
@pytest.mark.parametrize("given", ["T1", 7, {"a": 1}], ids=json.dumps)
def test_what_is_expected_of_a_member_is_no_list_and_its_example_is_a_member_that_is_taken(
    shape: type[Shape], name: str, given: Any
) -> None:
    key = key_of(shape, name)
    for fault in check(shape, {key: [given]})[1]:
        if fault.at != f"/{key}/0" or fault.reason is not Reason.WRONG_TYPE:
            continue
        assert not fault.expected.startswith(("a list", "at least")), fault.expected
        if "such as {" in fault.expected:
            faults = check(shape, {key: [example_in(fault)]})[1]
            assert [each for each in faults if each.at.startswith(f"/{key}/0")] == []


def test_what_is_expected_of_a_value_of_a_map_is_no_map() -> None:
    _, faults = check(shape_of(Config), {"departments": {"frontend": "yes"}})
    assert [(each.at, each.expected) for each in faults] == [
        ("/departments/frontend", "true or false")
    ]


def test_a_text_in_place_of_a_list_is_called_a_text() -> None:
    from yolo_fs.schemas.lines.integration import PlannedTests

    (fault,) = faults_at(PlannedTests, "tf", "tests/a.py")
    assert fault.message == "got the text 'tests/a.py'"
    assert fault.expected == 'a list of paths, such as ["src/auth.ts"]'
