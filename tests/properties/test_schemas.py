"""The exported JSON Schemas and the program give the same verdict on every line, save for what is listed.

What a schema cannot say is `BEYOND_JSON_SCHEMA`, printed by `schema show`; and 1.0 is an integer
to JSON Schema alone.
"""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.fuzz import mutations
from tests.fuzz.mutations import Specimen
from tests.fuzz.trial import compare, judge
from tests.properties.profile import tried
from yolo_fs.artifacts.catalogue import all_kinds, find_kind
from yolo_fs.schemas.layout import Format, Record

JSON_KINDS = [kind for kind in all_kinds() if kind.format in (Format.JSON, Format.JSONL)]
GOOD = {
    kind.name: [one for one in mutations.valid_lines() if one.kind == kind.name]
    for kind in JSON_KINDS
}
SCHEMAS = dict(mutations.schemas())
SEEDS = some.integers(0, 2**64 - 1)


def agree(kind_name: str, specimen: Specimen, chance: random.Random) -> bool | None:
    """Assert that both say the same of one line; return whether it is right, or None when it has no schema."""
    kind = find_kind(kind_name)
    assert kind is not None
    lines = [json.loads(line) for line in specimen.data.splitlines()]
    at = chance.randrange(len(lines))
    value = mutations.change(chance, lines[at]) if chance.random() < 0.7 else lines[at]
    if not isinstance(value, dict):
        return None
    verdict = judge(kind, Record(at + 1, value), value if at == 0 else lines[0])
    if verdict is None:
        return None
    assert list(compare(*verdict, value)) == [], value
    return not verdict[1]


@pytest.mark.parametrize("name", sorted(GOOD))
@tried(3)
@given(seed=SEEDS)
def test_a_mutated_example_has_one_verdict(name: str, seed: int) -> None:
    chance = random.Random(seed)
    agree(name, chance.choice(GOOD[name]), chance)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
@tried(2)
@given(seed=SEEDS)
def test_a_line_made_up_from_a_schema_has_one_verdict(name: str, seed: int) -> None:
    chance = random.Random(seed)
    kind = find_kind(name) or find_kind(name.rpartition("/")[0])
    assert kind is not None
    value = mutations.from_schema(chance, SCHEMAS[name])
    if isinstance(value, dict) and "front matter" not in kind.format:
        agree(kind.name, Specimen(kind.name, json.dumps(value).encode()), chance)


def test_the_generator_makes_right_lines_and_wrong_ones() -> None:
    chance = random.Random(1)
    verdicts = [
        agree(name, chance.choice(GOOD[name]), chance) for name in sorted(GOOD) for _ in range(8)
    ]

    assert verdicts.count(True) > len(verdicts) / 5
    assert verdicts.count(False) > len(verdicts) / 5
