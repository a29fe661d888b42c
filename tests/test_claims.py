"""Claims of tasks: overlapping files are met in order, by one Dev after the other."""

from __future__ import annotations

import random

import pytest

from yolo_fs.core.ids import TaskRef
from yolo_fs.tasks.claims import Claim, claim_statuses, overlap


def claim(agent: str, task: str, *files: str) -> Claim:
    found = TaskRef.parse(task)
    assert found is not None
    return Claim(agent, found, files, "2026-02-17T10:30:00Z")


ONE = claim("dev-1", "01-01/T1", "src/a.ts", "src/b.ts")
TWO = claim("dev-2", "01-01/T2", "src/c.ts", "src/b.ts")
THREE = claim("dev-3", "01-02/T1", "src/c.ts")


def granted(*claims: Claim) -> list[bool]:
    return [one.is_granted for one in claim_statuses(claims)]


@pytest.mark.proves("000:394a")
def test_the_second_of_two_overlapping_claims_is_refused_with_holder_and_file() -> None:
    first, second = claim_statuses([ONE, TWO])
    assert first.is_granted
    assert (second.is_granted, second.behind, second.file) == (False, ONE, "src/b.ts")
    asked = "dev-2 waits for 01-01/T2: dev-1 has src/b.ts for 01-01/T1"
    assert str(second) == f"{asked} since {ONE.claimed_at}"
    assert str(first) == "dev-1 has 01-01/T1"


def test_it_gets_its_turn_when_the_first_is_done() -> None:
    assert granted(TWO) == [True]


def test_nobody_overtakes_somebody_who_waits() -> None:
    assert granted(ONE, TWO, THREE) == [True, False, False]
    assert claim_statuses([ONE, TWO, THREE])[2].behind == TWO
    assert granted(TWO, THREE) == [True, False]


def test_a_dev_may_claim_several_tasks_of_the_same_file() -> None:
    assert granted(ONE, claim("dev-1", "01-01/T3", "src/a.ts")) == [True, True]


def test_a_task_has_one_dev() -> None:
    assert granted(ONE, claim("dev-2", "01-01/T1", "other.ts")) == [True, False]


@pytest.mark.parametrize(
    ("ours", "theirs", "met"),
    [
        ("src/a.ts", "src/a.ts", True),
        ("src/a.ts", "src", True),
        ("src/", "src/a.ts", True),
        ("./src/x/../a.ts", "src/a.ts", True),
        (".", "src/a.ts", True),
        ("src/a.ts", "src/a", False),
        ("src/a.ts", "src/a.tsx", False),
        ("srcs", "src", False),
    ],
)
def test_files_meet_where_one_is_or_holds_the_other(ours: str, theirs: str, met: bool) -> None:
    assert bool(overlap([ours], [theirs])) is met
    assert bool(overlap([theirs], [ours])) is met


def test_granted_claims_never_share_a_file_and_the_first_is_always_granted() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(200):
        claims = [
            claim(
                f"dev-{number}",
                f"01-01/T{number}",
                *chance.sample("abcdefgh", chance.randint(1, 3)),
            )
            for number in range(1, 9)
        ]
        found = claim_statuses(claims)
        files = [file for one in found if one.is_granted for file in one.claim.files]
        assert len(files) == len(set(files)) and found[0].is_granted
        assert all(one.is_granted or one.file in one.claim.files for one in found)
