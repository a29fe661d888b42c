"""Records meet as a plain model says: per record, three ways."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from yolo_fs.artifacts.table import ARTIFACTS, by_kind
from yolo_fs.team.reconcile import merge_lines, merge_texts

MERGES = int(os.environ.get("YOLO_MERGES", "1000"))
"""`YOLO_MERGES=10000 .venv/bin/pytest tests/team` tries as many as are promised."""

State = dict[str, Any]
GAPS, DECISIONS = (row for row in ARTIFACTS if row.kind in ("gaps", "decisions"))


def edited(rng: random.Random, base: State) -> State:
    """Return a version in which some records were changed, taken away or added."""
    version = {name: value for name, value in base.items() if rng.random() > 0.1}
    for name in version:
        if rng.random() < 0.2:
            version[name] = rng.randrange(3)
    for _ in range(rng.randrange(3)):
        version[f"G-{rng.randrange(12)}"] = rng.randrange(3)
    return version


def lines_of(rng: random.Random, version: State) -> list[str]:
    keys = ["id", "v"]
    rng.shuffle(keys)
    return [
        json.dumps({key: {"id": name, "v": value}[key] for key in keys})
        for name, value in version.items()
    ]


def modelled(base: State, ours: State, theirs: State) -> tuple[State, set[str]]:
    """Return what the records come to, and which of them both changed differently."""
    result: State = {}
    conflicts = set()
    for name in {*base, *ours, *theirs}:
        before, here, there = (version.get(name) for version in (base, ours, theirs))
        if before != here != there != before:
            conflicts.add(name)
        chosen = there if here == before else here
        if chosen is not None:
            result[name] = chosen
    return result, conflicts


def read(lines: tuple[str, ...]) -> State:
    records = [json.loads(line) for line in lines]
    assert len({record["id"] for record in records}) == len(records)
    return {record["id"]: record["v"] for record in records}


def test_any_three_versions_come_to_what_the_model_says() -> None:
    for seed in range(MERGES):
        rng = random.Random(seed)
        base = {f"G-{n}": rng.randrange(3) for n in rng.sample(range(12), rng.randrange(8))}
        ours, theirs = edited(rng, base), edited(rng, base)
        texts = [lines_of(rng, version) for version in (base, ours, theirs)]
        expected, conflicts = modelled(base, ours, theirs)

        merged = merge_lines(GAPS, *texts)

        assert set(merged.conflicts) == conflicts, f"seed {seed}"
        if not conflicts:
            assert read(merged.lines) == expected, f"seed {seed}"
            assert merge_lines(GAPS, texts[0], merged.lines, texts[2]) == merged, seed
            other_way = merge_lines(GAPS, texts[0], texts[2], texts[1])
            assert read(other_way.lines) == expected, f"seed {seed}"


def test_any_two_logs_become_their_union_in_the_order_of_time() -> None:
    for seed in range(MERGES):
        rng = random.Random(seed)
        entries = [json.dumps({"dt": f"2026-01-01T00:00:{n:02}Z", "n": n}) for n in range(20)]
        base = entries[: rng.randrange(5)]
        rest = entries[len(base) :]
        ours = base + [line for line in rest if rng.random() < 0.4]
        theirs = base + [line for line in rest if rng.random() < 0.4]

        merged = merge_lines(DECISIONS, base, ours, theirs)

        assert list(merged.lines) == sorted({*ours, *theirs}), f"seed {seed}"
        assert merge_lines(DECISIONS, base, merged.lines, theirs) == merged, f"seed {seed}"


@pytest.mark.parametrize("row", ARTIFACTS, ids=lambda row: row.kind)
def test_a_side_that_changed_nothing_never_conflicts(row: Any) -> None:
    base, fresh = b'{"id":"1"}\n', b'{"id":"2"}\n'

    assert merge_texts(row, base, base, fresh) == fresh
    assert merge_texts(row, base, fresh, base) == fresh
    assert merge_texts(row, base, fresh, fresh) == fresh


def test_a_side_that_only_ended_its_last_line_changed_nothing() -> None:
    for kind in ("gaps", "research"):
        row = by_kind(kind)
        assert row is not None

        assert merge_texts(row, b'{"id":"1"}\n', b'{"id":"1"}', b"") == b""
        assert merge_texts(row, b'{"id":"1"}\n', b"", b'{"id":"1"}') == b""


@pytest.mark.parametrize(
    "theirs",
    [
        b"[" * 100_000 + b"\n",
        b'{"id":"1","id',
        b"\xff\n",
        b'["1"]\n',
        b'{"id":"1"}\n\n{"id":"3"}\n',
    ],
)
def test_what_is_no_list_of_records_is_not_mixed(theirs: bytes) -> None:
    gaps = by_kind("gaps")
    assert gaps is not None

    assert merge_texts(gaps, b"", b'{"id":"2"}\n', theirs) is None


def test_a_file_that_has_an_id_twice_is_not_mixed() -> None:
    twice = ['{"id":"1","v":1}', '{"id":"1","v":2}']

    assert merge_lines(GAPS, [], twice, ['{"id":"2"}']).conflicts == ("1",)
