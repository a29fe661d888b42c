"""What an agent of a run is told: its act, what that needs, and nothing that is not so."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.phases import COMMITS, Content, complete, facts
from yolo_fs.company.brief import brief_of
from yolo_fs.phase.acts import Act, acts_of
from yolo_fs.phase.phase import Phase

BEFORE_QA: Content = {
    name: lines
    for name, lines in complete().items()
    if name
    not in ("verification.jsonl", "qa-code.jsonl", "security-audit.jsonl", "../../state.json")
}
BEFORE_WORK: Content = {
    name: lines
    for name, lines in BEFORE_QA.items()
    if not name.endswith(
        (".summary.jsonl", "test-results.jsonl", "code-review.jsonl", "docs.jsonl")
    )
}
INTENT = "let people log in"


def first(content: Content) -> tuple[Phase, Act]:
    phase = Phase(facts(content, commits=COMMITS if content is BEFORE_QA else {}))
    return phase, acts_of(phase)[0]


def lines_of(
    content: Content,
    *,
    reasons: Sequence[str] = (),
    can_commit: bool = True,
    lacks: Sequence[str] | None = None,
) -> list[str]:
    phase, act = first(content)
    act = act if lacks is None else act._replace(lacks=tuple(lacks))
    return brief_of(phase, act, INTENT, reasons, can_commit=can_commit).splitlines()


def test_a_dev_has_its_specification_and_not_the_intent() -> None:
    told = lines_of(BEFORE_WORK)
    assert "You are yolo-dev. Phase 01-auth, step implementation." in told
    assert not any(INTENT in line for line in told)
    assert any("use RS256" in line for line in told)


def test_everybody_else_is_told_the_intent() -> None:
    assert f"Intent: {INTENT}" in lines_of(BEFORE_QA)


def test_a_dev_is_told_to_commit_its_source_unless_its_host_does() -> None:
    commit = "    yolo-fs commit --task 01-01/T1 --type feat -m 'what was done'"
    instead = "Commit nothing: your source is committed for you once you end."
    told, told_where_it_cannot = lines_of(BEFORE_WORK), lines_of(BEFORE_WORK, can_commit=False)
    assert commit in told and instead not in told
    assert instead in told_where_it_cannot and commit not in told_where_it_cannot


def test_an_artifact_is_said_to_be_committed_where_one_is_to_be_written() -> None:
    for_you = "Files below .yolo-planning/ are committed for you once they are valid."
    assert for_you in lines_of(BEFORE_QA)
    assert for_you not in lines_of(BEFORE_WORK)


def test_who_has_a_task_is_told_how_to_ask_and_who_has_none_is_not() -> None:
    ask = "    yolo-fs escalate open --task 01-01/T1 --from dev --reason …"
    assert ask in lines_of(BEFORE_WORK)
    assert not any("escalate" in line for line in lines_of(BEFORE_QA))


def test_only_who_judges_what_came_later_is_told_to_judge_again() -> None:
    again = "Judge again, with the time: an unchanged file is not a new verdict."
    older = "verification.jsonl is older than source of 01-01 (aaaaaaa)"
    assert again in lines_of(BEFORE_QA, lacks=[older])
    assert again not in lines_of(BEFORE_QA, lacks=["no valid verification.jsonl"])


def test_the_next_try_is_told_why_the_last_one_was_not_enough() -> None:
    title = "Your last try was not enough:"
    told = lines_of(BEFORE_QA, reasons=["nothing was written"])
    assert told[told.index(title) + 1] == "- nothing was written"
    assert title not in lines_of(BEFORE_QA)
