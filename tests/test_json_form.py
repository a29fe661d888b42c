"""Values become JSON in one way: enums, moments, ids, dataclasses with and without keys of their own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

import pytest

from yolo_fs.core.ids import PhaseId
from yolo_fs.core.json_form import to_json
from yolo_fs.protocol.departments import Dept


@dataclass(frozen=True, slots=True)
class Leaf:
    name: str
    parts: tuple[str, ...] = ()


class Row(NamedTuple):
    name: str
    who: Dept


@dataclass(frozen=True, slots=True)
class Branch:
    leaf: Leaf | None
    hidden: int = 7

    JSON_KEYS: ClassVar = {"leaf_name": "leaf.name", "count": "count"}

    @property
    def count(self) -> int:
        return 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (Dept.UIUX, "uiux"),
        ({Dept.UIUX: (1, 2.5)}, {"uiux": [1, 2.5]}),
        (datetime(2026, 2, 19, 8, tzinfo=UTC), "2026-02-19T08:00:00Z"),
        (PhaseId("01", "auth"), "01-auth"),
        ([Leaf("a", ("b",))], [{"name": "a", "parts": ["b"]}]),
        ([Row("a", Dept.UIUX)], [{"name": "a", "who": "uiux"}]),
        (Branch(Leaf("a")), {"leaf_name": "a", "count": 2}),
        (Branch(None), {"leaf_name": None, "count": 2}),
    ],
)
def test_each_kind_of_value_has_one_form(value: Any, expected: Any) -> None:
    assert to_json(value) == expected


def test_a_value_without_a_form_is_refused() -> None:
    with pytest.raises(TypeError, match="no JSON for object"):
        to_json([object()])
