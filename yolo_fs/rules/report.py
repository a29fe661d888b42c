"""The form of a brief: sections in the order of their weight, cut whole to a budget. Pure.

What does not fit is left out and named. Nothing in a brief is an age or a clock's time, so the same
state gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

BUDGET = 2000
"""Tokens of a brief unless somebody asks for others."""

_MOST = 20
"""Lines of one section; a phase has at most 99 plans, a session needs the first of them."""
_BYTES_PER_TOKEN = 4
_STEP = 500
"""The budget that is advised is a multiple of this."""


class ReportSection(NamedTuple):
    """One part of the brief, kept or left out as a whole."""

    key: str
    """Name for machines, and in the line that tells what was left out."""
    title: str
    """Heading for people; empty for the first lines, which need none."""
    lines: tuple[str, ...]
    data: Any
    more: int = 0
    """Entries beyond the longest list that is shown."""
    is_vital: bool = False
    """Kept whatever the budget: without it nobody can go on."""


Brief = tuple[ReportSection, ...]
Item = tuple[str, Mapping[str, Any]]
"""One entry of a list: its line, and the same for machines."""


def tokens(text: str) -> int:
    """Return the estimated number of tokens of a text: one for every four bytes of UTF-8, rounded
    up.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def cut(brief: Brief, budget: int, render: Callable[[Brief], str]) -> Brief:
    """Return the brief without the least weighty sections that do not fit the budget, as `render`
    writes it.
    """
    size = tokens(render(brief))
    if size <= budget or not brief:
        return brief
    needed = -(-size // _STEP) * _STEP
    kept = tuple(one for one in brief if one.is_vital)
    for one in brief:
        trial = tuple(each for each in brief if each in kept or each is one)
        if tokens(render((*trial, _left_out(brief, trial, needed)))) <= budget:
            kept = trial
    return (*kept, _left_out(brief, kept, needed))


def _left_out(brief: Brief, kept: Sequence[ReportSection], needed: int) -> ReportSection:
    names = [one.key for one in brief if one not in kept]
    line = f"left out: {', '.join(names)} (yolo-fs resume --budget {needed} shows all)"
    return ReportSection("left_out", "", (line,), {"sections": names, "budget": needed})


def as_text(brief: Brief) -> str:
    """Return the brief for people and for a model's context."""
    return "".join(f"{line}\n" for one in brief for line in _lines(one))


def _lines(one: ReportSection) -> Iterator[str]:
    if one.title:
        yield f"## {one.title}"
    yield from one.lines
    if one.more:
        yield f"and {one.more} more (yolo-fs status -v)"


def as_data(brief: Brief) -> dict[str, Any]:
    """Return the brief for machines: one key for each section."""
    more = {one.key: one.more for one in brief if one.more}
    return {one.key: one.data for one in brief} | ({"more": more} if more else {})


def listed(key: str, title: str, items: Iterable[Item]) -> ReportSection | None:
    """Return the section of a list, or None when it is empty."""
    found = list(items)
    shown = found[:_MOST]
    lines = tuple(f"- {line}" for line, _ in shown)
    return (
        ReportSection(key, title, lines, [dict(data) for _, data in shown], len(found) - len(shown))
        if found
        else None
    )
