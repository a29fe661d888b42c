"""From verdicts to actions."""

from __future__ import annotations

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.decide import Commit, Emit, decide
from yolo_fs.artifacts.verdicts import (
    Accepted,
    Committed,
    Held,
    Ignored,
    Missing,
    Rejected,
    Waiting,
)
from yolo_fs.core.reasons import Finding, Reason

PATH = ".yolo-planning/phases/01-auth/critique.jsonl"
REJECTED = Rejected((Finding(Reason.NUL_BYTE, PATH, 1),))
PLACE = classify(PATH)
assert PLACE is not None
ACCEPTED = Accepted(PLACE, b"{}\n", "0" * 40, "docs(01): critique and gap analysis", ())


def test_an_accepted_artifact_is_committed_even_if_nothing_else_changed() -> None:
    assert decide({PATH: ACCEPTED}, {PATH: ACCEPTED}) == (Commit(ACCEPTED),)


def test_a_rejection_is_told_once() -> None:
    (told,) = decide({}, {PATH: REJECTED})
    assert isinstance(told, Emit)
    assert (told.event, told.path, told.data["reason"]) == ("artifact.rejected", PATH, "nul_byte")
    assert decide({PATH: REJECTED}, {PATH: REJECTED}) == ()


def test_a_changed_reason_is_told_again() -> None:
    (told,) = decide({PATH: Held(Reason.MERGE_IN_PROGRESS)}, {PATH: Held(Reason.DETACHED_HEAD)})
    assert isinstance(told, Emit)
    assert (told.event, told.data["reason"]) == ("artifact.held", "detached_head")


def test_what_needs_no_word_gets_none() -> None:
    quiet = {"a": Waiting(Reason.SETTLING), "b": Ignored(), "c": Committed("0" * 40)}
    assert decide({}, quiet) == ()


def test_a_deletion_is_told_and_never_committed() -> None:
    (told,) = decide({PATH: Committed("0" * 40)}, {PATH: Missing()})
    assert isinstance(told, Emit)
    assert told.event == "artifact.missing"


def test_actions_keep_the_order_of_arrival() -> None:
    actions = decide({}, {"b": REJECTED, "a": ACCEPTED, "c": Missing()})
    assert [type(action) for action in actions] == [Emit, Commit, Emit]


def test_a_plan_is_committed_after_those_it_needs_whatever_came_first() -> None:
    third, first, second = _plan("01", "01-03"), _plan("02"), _plan("03", "01-02")
    seen = (
        {one.place.path: one for one in (third, first)}
        | {PATH: ACCEPTED}
        | {second.place.path: second}
    )
    assert decide({}, seen) == (Commit(first), Commit(second), Commit(ACCEPTED), Commit(third))


def _plan(number: str, *needs: str) -> Accepted:
    place = classify(f".yolo-planning/phases/01-auth/01-{number}.plan.jsonl")
    assert place is not None
    return Accepted(place, b"{}\n", "0" * 40, f"docs(01): plan 01-{number}", (), needs=needs)
