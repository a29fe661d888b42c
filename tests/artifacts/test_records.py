"""A version that lacks what somebody else committed is known from one that says it otherwise."""

from __future__ import annotations

import random
from typing import Any

import pytest

from yolo_fs.artifacts.records import keeps_records, lost_records, superseded_in
from yolo_fs.artifacts.table import ARTIFACTS, Artifact

REWRITES = 10_000
KEPT = [row for row in ARTIFACTS if keeps_records(row)]


def record(artifact: Artifact, name: int, says: int) -> dict[str, Any]:
    named = {field: f"{field}-{name}" for field in artifact.named_by or ("id",)}
    return {**named, "says": says}


@pytest.mark.parametrize("artifact", KEPT, ids=lambda row: row.kind)
def test_of_many_writers_each_lost_record_is_named_and_no_changed_one(artifact: Artifact) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    dice, branch, made = random.Random(seed), [], 0
    read: list[list[dict[str, Any]]] = [[] for _ in range(8)]
    lost_at_all = 0
    for _ in range(REWRITES // len(KEPT)):
        writer = dice.randrange(dice.randint(2, 8))
        if dice.random() < 0.6:  # the others write over what they did not read
            read[writer] = [dict(one) for one in branch]
        mine = read[writer]
        if mine and not artifact.append_only and dice.random() < 0.5:
            dice.choice(mine)["says"] = dice.random()
        else:
            made += 1
            mine = [*mine, record(artifact, made, writer)]
        dice.shuffle(mine)
        key = (lambda one: str(one)) if artifact.append_only else named(artifact)
        wanted = {key(one) for one in branch} - {key(one) for one in mine}
        found = [*lost_records(artifact, branch, mine)]
        assert {key(branch[one.line - 1]) for one in found} == wanted
        lost_at_all += len(found)
        if not found:
            branch = [dict(one) for one in mine]
    assert lost_at_all, "somebody wrote over somebody"


def named(artifact: Artifact) -> Any:
    fields = artifact.named_by or ("id",)
    return lambda one: tuple(one[field] for field in fields)


def test_a_decision_lets_one_record_of_one_file_go() -> None:
    decided = [
        {"kind": "supersede", "of": "critique.jsonl:C1"},
        {"kind": "supersede", "of": "fe-critique.jsonl:C2"},
        {"kind": "accept", "of": "critique.jsonl:C3"},
        {"dec": "supersede critique.jsonl:C4"},
    ]
    assert superseded_in(decided, "critique.jsonl") == {"C1"}
