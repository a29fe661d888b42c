"""A handoff is delivered, read, acknowledged, acted upon: each with its time, each due after the one before."""

from __future__ import annotations

import random

import pytest

from yolo_fs.rules.handoffs.life import STAGES, Delivery, Life, Moment, Sign, Stage, lives, overdue

DEADLINE_S = 100
UX_TO_FE = Delivery("dept-handoff.jsonl", 1, "uiux", "frontend", Moment(1000, 5), "abc1234")
CONTRACT = Delivery(
    "api-contracts.jsonl", 2, "frontend", "backend", Moment(1000, 5), "abc1234", needs_answer=True
)
ANSWERED = "api-contracts.jsonl:2"


def sign(
    stage: Stage, at_s: int, receiver: str = "frontend", about: str = "", order: int = 1 << 62
) -> Sign:
    return Sign(receiver, stage, Moment(at_s, order), f"shown at {at_s}", about)


def life(*signs: Sign, delivery: Delivery = UX_TO_FE) -> Life:
    (one,) = lives([delivery], signs, DEADLINE_S)
    return one


def times(one: Life) -> list[int | None]:
    return [station.at_s for station in one.stations]


def test_each_stage_has_its_time_its_deadline_and_its_proof() -> None:
    one = life(sign(Stage.READ, 1010), sign(Stage.ACKNOWLEDGED, 1050), sign(Stage.ACTED_UPON, 1090))
    assert [(s.stage, s.at_s, s.due_s, s.by) for s in one.stations] == [
        (Stage.DELIVERED, 1000, None, "abc1234"),
        (Stage.READ, 1010, 1100, "shown at 1010"),
        (Stage.ACKNOWLEDGED, 1050, 1110, "shown at 1050"),
        (Stage.ACTED_UPON, 1090, 1150, "shown at 1090"),
    ]


def test_a_handoff_that_nobody_touched_is_delivered_and_waits_to_be_read() -> None:
    one = life()
    assert (one.stage, times(one)) == (Stage.DELIVERED, [1000, None, None, None])
    assert [station.due_s for station in one.stations] == [None, 1100, None, None]


@pytest.mark.parametrize("stage", STAGES[1:])
def test_a_stage_proves_those_before_it(stage: Stage) -> None:
    one = life(sign(stage, 1040))
    assert one.stage is stage
    assert times(one)[1 : STAGES.index(stage) + 1] == [1040] * STAGES.index(stage)


def test_the_earliest_proof_counts() -> None:
    assert times(life(sign(Stage.READ, 1090), sign(Stage.READ, 1020), sign(Stage.ACTED_UPON, 1030)))[1:] == [
        1020, 1030, 1030,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        sign(Stage.ACTED_UPON, 999),
        sign(Stage.ACTED_UPON, 1000, order=4),
        sign(Stage.ACTED_UPON, 1000, order=5),
        sign(Stage.ACTED_UPON, 1040, receiver="backend"),
        sign(Stage.ACTED_UPON, 1040, about="dept-handoff.jsonl:2"),
    ],
    ids=[
        "earlier",
        "earlier commit of the same second",
        "the same commit",
        "somebody else",
        "another handoff",
    ],
)
def test_what_came_before_or_concerns_others_proves_nothing(other: Sign) -> None:
    assert life(other).stage is Stage.DELIVERED


def test_a_later_commit_of_the_same_second_counts() -> None:
    assert life(sign(Stage.ACTED_UPON, 1000, order=6)).stage is Stage.ACTED_UPON


@pytest.mark.parametrize(
    ("signs", "now_s", "waits_for", "late_s"),
    [
        ([], 1100, None, 0),
        ([], 1101, Stage.READ, 1),
        ([sign(Stage.READ, 1090)], 1190, None, 0),
        ([sign(Stage.READ, 1090)], 1200, Stage.ACKNOWLEDGED, 10),
        ([sign(Stage.ACKNOWLEDGED, 1500)], 1601, Stage.ACTED_UPON, 1),
        ([sign(Stage.ACTED_UPON, 9000)], 99999, None, 0),
    ],
)
def test_a_stage_is_overdue_after_its_deadline(
    signs: list[Sign], now_s: int, waits_for: Stage | None, late_s: int
) -> None:
    found = overdue([life(*signs)], now_s)
    assert [(one.stage, now_s - one.due_s) for one in found] == (
        [(waits_for, late_s)] if waits_for else []
    )


def test_the_most_overdue_comes_first_and_says_who_waits_for_whom() -> None:
    older = Delivery("design-handoff.jsonl", 0, "uiux", "backend", Moment(500), "def5678")
    found = overdue(lives([UX_TO_FE, older], [], DEADLINE_S), 2000)
    assert [str(one) for one in found] == [
        "uiux → backend: not read, which was due 1970-01-01T00:10:00Z (design-handoff.jsonl)",
        "uiux → frontend: not read, which was due 1970-01-01T00:18:20Z (dept-handoff.jsonl:1)",
    ]


# --- contracts ---


def test_a_contract_is_not_answered_by_other_work() -> None:
    work = [
        sign(stage, 1040, receiver="backend") for stage in (Stage.ACKNOWLEDGED, Stage.ACTED_UPON)
    ]
    assert life(*work, delivery=CONTRACT).stage is Stage.DELIVERED
    assert life(sign(Stage.READ, 1040, receiver="backend"), delivery=CONTRACT).stage is Stage.READ


def test_a_contract_is_answered_by_its_own_line_even_in_the_same_commit() -> None:
    agreed = sign(Stage.ACKNOWLEDGED, 1000, receiver="", about=ANSWERED, order=5)
    implemented = sign(Stage.ACTED_UPON, 1070, receiver="", about=ANSWERED)
    assert times(life(agreed, delivery=CONTRACT)) == [1000, 1000, 1000, None]
    assert times(life(agreed, implemented, delivery=CONTRACT)) == [1000, 1000, 1000, 1070]


# --- as a whole ---


def test_stages_never_go_backwards_and_the_order_of_signs_makes_no_difference() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(500):
        signs = [
            sign(rng.choice(STAGES[1:]), rng.randrange(990, 1100)) for _ in range(rng.randrange(6))
        ]
        one = life(*signs)
        reached = [at_s for at_s in times(one) if at_s is not None]
        assert times(one)[: len(reached)] == reached == sorted(reached)
        rng.shuffle(signs)
        assert times(life(*signs)) == times(one)
