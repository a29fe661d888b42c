"""A handoff is delivered, read, acknowledged, acted upon: each with its time, each due after the one before."""

from __future__ import annotations

import random

import pytest

from yolo_fs.handoffs.lifecycle import (
    STAGES,
    DeliveredHandoff,
    HandoffLifecycle,
    HandoffStage,
    Moment,
    ReceiverSign,
    lifecycles,
    overdue,
)

DEADLINE_S = 100
UX_TO_FE = DeliveredHandoff("dept-handoff.jsonl", 1, "uiux", "frontend", Moment(1000, 5), "abc1234")
CONTRACT = DeliveredHandoff(
    "api-contracts.jsonl", 2, "frontend", "backend", Moment(1000, 5), "abc1234", needs_answer=True
)
ANSWERED = "api-contracts.jsonl:2"


def sign(
    stage: HandoffStage,
    at_s: int,
    receiver: str = "frontend",
    about: str = "",
    order: int = 1 << 62,
) -> ReceiverSign:
    return ReceiverSign(receiver, stage, Moment(at_s, order), f"shown at {at_s}", about)


def life(*signs: ReceiverSign, delivery: DeliveredHandoff = UX_TO_FE) -> HandoffLifecycle:
    (one,) = lifecycles([delivery], signs, DEADLINE_S)
    return one


def times(one: HandoffLifecycle) -> list[int | None]:
    return [station.at_s for station in one.stations]


def test_each_stage_has_its_time_its_deadline_and_its_proof() -> None:
    one = life(
        sign(HandoffStage.READ, 1010),
        sign(HandoffStage.ACKNOWLEDGED, 1050),
        sign(HandoffStage.ACTED_UPON, 1090),
    )
    assert [(s.stage, s.at_s, s.due_s, s.by) for s in one.stations] == [
        (HandoffStage.DELIVERED, 1000, None, "abc1234"),
        (HandoffStage.READ, 1010, 1100, "shown at 1010"),
        (HandoffStage.ACKNOWLEDGED, 1050, 1110, "shown at 1050"),
        (HandoffStage.ACTED_UPON, 1090, 1150, "shown at 1090"),
    ]


def test_a_handoff_that_nobody_touched_is_delivered_and_waits_to_be_read() -> None:
    one = life()
    assert (one.stage, times(one)) == (HandoffStage.DELIVERED, [1000, None, None, None])
    assert [station.due_s for station in one.stations] == [None, 1100, None, None]


@pytest.mark.parametrize("stage", STAGES[1:])
def test_a_stage_proves_those_before_it(stage: HandoffStage) -> None:
    one = life(sign(stage, 1040))
    assert one.stage is stage
    assert times(one)[1 : STAGES.index(stage) + 1] == [1040] * STAGES.index(stage)


def test_the_earliest_proof_counts() -> None:
    assert times(life(sign(HandoffStage.READ, 1090), sign(HandoffStage.READ, 1020), sign(HandoffStage.ACTED_UPON, 1030)))[1:] == [
        1020, 1030, 1030,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        sign(HandoffStage.ACTED_UPON, 999),
        sign(HandoffStage.ACTED_UPON, 1000, order=4),
        sign(HandoffStage.ACTED_UPON, 1000, order=5),
        sign(HandoffStage.ACTED_UPON, 1040, receiver="backend"),
        sign(HandoffStage.ACTED_UPON, 1040, about="dept-handoff.jsonl:2"),
    ],
    ids=[
        "earlier",
        "earlier commit of the same second",
        "the same commit",
        "somebody else",
        "another handoff",
    ],
)
def test_what_came_before_or_concerns_others_proves_nothing(other: ReceiverSign) -> None:
    assert life(other).stage is HandoffStage.DELIVERED


def test_a_later_commit_of_the_same_second_counts() -> None:
    assert life(sign(HandoffStage.ACTED_UPON, 1000, order=6)).stage is HandoffStage.ACTED_UPON


@pytest.mark.parametrize(
    ("signs", "now_s", "waits_for", "late_s"),
    [
        ([], 1100, None, 0),
        ([], 1101, HandoffStage.READ, 1),
        ([sign(HandoffStage.READ, 1090)], 1190, None, 0),
        ([sign(HandoffStage.READ, 1090)], 1200, HandoffStage.ACKNOWLEDGED, 10),
        ([sign(HandoffStage.ACKNOWLEDGED, 1500)], 1601, HandoffStage.ACTED_UPON, 1),
        ([sign(HandoffStage.ACTED_UPON, 9000)], 99999, None, 0),
    ],
)
def test_a_stage_is_overdue_after_its_deadline(
    signs: list[ReceiverSign], now_s: int, waits_for: HandoffStage | None, late_s: int
) -> None:
    found = overdue([life(*signs)], now_s)
    assert [(one.stage, now_s - one.due_s) for one in found] == (
        [(waits_for, late_s)] if waits_for else []
    )


def test_the_most_overdue_comes_first_and_says_who_waits_for_whom() -> None:
    older = DeliveredHandoff("design-handoff.jsonl", 0, "uiux", "backend", Moment(500), "def5678")
    found = overdue(lifecycles([UX_TO_FE, older], [], DEADLINE_S), 2000)
    assert [str(one) for one in found] == [
        "uiux → backend: not read, which was due 1970-01-01T00:10:00Z (design-handoff.jsonl)",
        "uiux → frontend: not read, which was due 1970-01-01T00:18:20Z (dept-handoff.jsonl:1)",
    ]


# --- contracts ---


def test_a_contract_is_not_answered_by_other_work() -> None:
    work = [
        sign(stage, 1040, receiver="backend")
        for stage in (HandoffStage.ACKNOWLEDGED, HandoffStage.ACTED_UPON)
    ]
    assert life(*work, delivery=CONTRACT).stage is HandoffStage.DELIVERED
    assert (
        life(sign(HandoffStage.READ, 1040, receiver="backend"), delivery=CONTRACT).stage
        is HandoffStage.READ
    )


def test_a_contract_is_answered_by_its_own_line_even_in_the_same_commit() -> None:
    agreed = sign(HandoffStage.ACKNOWLEDGED, 1000, receiver="", about=ANSWERED, order=5)
    implemented = sign(HandoffStage.ACTED_UPON, 1070, receiver="", about=ANSWERED)
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
