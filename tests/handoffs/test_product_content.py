"""An envelope says something wherever the document asks for content, and not more than it asks for."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.core.reasons import Fault, Level, Reason
from yolo_fs.handoffs.envelopes import CORE, MAY_BE_EMPTY, SENTENCES, read, sentences_in
from yolo_fs.schemas.layout import Strictness

RUN = sorted((Path(__file__).parents[2] / "fixtures/product").glob("[0-9]*.json"))
NOW = datetime(2026, 11, 20, tzinfo=UTC)


def places(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the place of each text and each list of a value."""
    if isinstance(value, str | list):
        yield at, value
    pairs = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else pairs:
        yield from places(inner, f"{at}/{key}")


def faults_with(whole: dict[str, Any], at: str, new: Any, **mode: bool) -> list[Fault]:
    """Return what is wrong at a place of an envelope once it says something else."""
    changed: Any = copy.deepcopy(whole)
    inside = changed
    *way, last = at.split("/")[1:]
    for step in way:
        inside = inside[int(step) if isinstance(inside, list) else step]
    inside[int(last) if isinstance(inside, list) else last] = new
    return [one for one in read(changed, "-", NOW, Strictness(**mode))[1] if one.at == at]


@pytest.mark.proves("003:380")
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_no_text_of_a_handoff_may_be_blank(path: Path) -> None:
    whole = json.loads(path.read_text(encoding="utf-8"))

    for at, value in places(whole):
        if isinstance(value, str) and not at.endswith("/brand_guidelines"):
            for blank in (
                "",
                "   ",
                "\t\n",
                "\u200b\u200b",
                "...",
                "…",
                "string (2-3 sentences)",
                "string",
                "<what it is>",
            ):
                found = faults_with(whole, at, blank)
                assert any(one.level is Level.ERROR for one in found), (at, blank)


@pytest.mark.proves("003:380")
@pytest.mark.parametrize("text", ["TBD", "todo", "To be decided."])
def test_a_text_that_says_that_it_is_still_open_is_told(text: str) -> None:
    whole = json.loads(RUN[2].read_text(encoding="utf-8"))
    at = "/payload/market_research_summary/market_opportunity"
    (found,) = faults_with(whole, at, text)
    assert (found.reason, found.level) == (Reason.EMPTY_VALUE, Level.WARNING)
    assert faults_with(whole, at, f"{text} is no name. It is said here.") == []


@pytest.mark.proves("003:380")
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_an_empty_list_is_refused_where_nothing_would_be_handed_over_and_told_elsewhere(
    path: Path,
) -> None:
    whole = json.loads(path.read_text(encoding="utf-8"))

    for at, value in places(whole["payload"], "/payload"):
        key = at.rpartition("/")[2]
        if isinstance(value, list) and key not in MAY_BE_EMPTY and key != "personas":
            (found,) = faults_with(whole, at, [])
            assert found.reason is Reason.EMPTY_VALUE
            assert (found.level is Level.ERROR) == (key in CORE), at
            (strict,) = faults_with(whole, at, [], strict=True)
            assert strict.level is Level.ERROR


@pytest.mark.proves("003:102")
def test_a_text_has_as_many_sentences_as_its_field_asks_for() -> None:
    tried = set()
    for path in RUN:
        whole = json.loads(path.read_text(encoding="utf-8"))
        for at, _ in places(whole["payload"], "/payload"):
            key = (at.split("/")[-2], at.split("/")[-1])
            if key in SENTENCES:
                tried.add(key)
                assert faults_with(whole, at, "It is 12.5 % faster. It is. So it is!") == []
                (found,) = faults_with(whole, at, "It is. " * 10)
                assert (found.reason, found.level) == (Reason.TOO_LONG, Level.WARNING)
                assert found.message == "10 sentences"
                few = faults_with(whole, at, "It is one.")
                told = [(one.reason, one.level, one.message) for one in few]
                is_short = SENTENCES[key][0] > 1
                assert told == [(Reason.OUT_OF_RANGE, Level.WARNING, "1 sentence")] * is_short
    assert tried == set(SENTENCES)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One.", 1),
        ("One without a mark", 1),
        ("One. Two", 2),
        ("Teams, e.g. those in Rome, pay $1.5M. They stay.", 2),
        ("Who? Growers! They said: “We pay.” And so they did.", 4),
        ("Grows 12.5 % a year… Then more.", 2),
    ],
)
def test_sentences_are_counted_as_a_reader_counts_them(text: str, count: int) -> None:
    assert sentences_in(text) == count
