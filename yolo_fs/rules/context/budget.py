"""Cuts a context to its budget: in the documented order first, then at whole lines. Pure.

What was cut is said in the context itself, so that its reader knows what to ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from yolo_fs.protocol.contexts import Cut
from yolo_fs.rules.context.render import Block, Line, Write, at_cut, lines_of, text_of
from yolo_fs.rules.report import tokens

BYTES_PER_TOKEN = 4
_SAID = "the reference scripts"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a section lost to the budget."""

    section: str
    what: str
    """The columns, lines or the whole that is missing."""
    cut: Cut

    @property
    def why(self) -> str:
        """The step of the documented order that took it."""
        return self.cut.label

    JSON_KEYS: ClassVar = {"section": "section", "what": "what", "why": "why"}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A context within its budget."""

    lines: tuple[Line, ...]
    cut: Cut
    """How far it had to be cut."""
    left_out: tuple[LeftOut, ...]


def fit(head: Sequence[Line], blocks: Sequence[Block], budget: int, write: Write) -> Fitted:
    """Return the context cut no further than the budget asks. `budget`: tokens of the whole file, the note included."""
    for cut in tuple(Cut)[:-1]:
        kept = [left for one in blocks if (left := at_cut(one, cut))]
        if _least_bytes(kept) <= budget * BYTES_PER_TOKEN:
            found = _written(head, kept, tuple(_lost_to(blocks, cut)), cut, write)
            if _fits(found.lines, budget):
                return found
    return _by_lines(head, blocks, budget, write)


def _fits(lines: Sequence[Line], budget: int) -> bool:
    return tokens(text_of(lines)) <= budget


def _least_bytes(blocks: Iterable[Block]) -> int:
    """Return what blocks take at least: much is known to be too large before a byte of it is written."""
    return sum(len(str(value)) for one in blocks for row in one.rows for value in row.values)


def _written(
    head: Sequence[Line],
    blocks: Iterable[Block],
    left_out: tuple[LeftOut, ...],
    cut: Cut,
    write: Write,
) -> Fitted:
    body = [line for one in blocks for line in lines_of(one, cut, write)]
    return Fitted((*head, *body, *_note(left_out, write)), cut, left_out)


def _note(left_out: Sequence[LeftOut], write: Write) -> Iterator[Line]:
    if left_out:
        yield Line(f"left_out[{len(left_out)}]{{section,what,why}}:", rule=_SAID)
    for one in left_out:
        yield Line(f"  {write(one.section)},{write(one.what)},{write(one.why)}", rule=_SAID)


def _lost_to(blocks: Iterable[Block], cut: Cut) -> Iterator[LeftOut]:
    """Yield what each section lost by the cuts up to this one."""
    for block in blocks:
        before: Block | None = block
        for step in tuple(Cut)[1:]:
            after = at_cut(block, step) if step <= cut else before
            if before and (what := _difference(before, after)):
                yield LeftOut(block.section.key, what, step)
            before = after


def _difference(before: Block, after: Block | None) -> str:
    if after is None:
        return f"all {len(before.rows)}"
    if len(after.columns) < len(before.columns):
        return ", ".join(one.name for one in before.columns if one not in after.columns)
    lost = len(before.rows) - len(after.rows)
    return f"{lost} of {len(before.rows)} lines" if lost else ""


# --- by whole lines --------------------------------------------------------------------------------------------------


def _by_lines(head: Sequence[Line], blocks: Sequence[Block], budget: int, write: Write) -> Fitted:
    """Return as much as fits after every documented cut: the vital sections first, of each as many lines as fit."""
    last = Cut.PRIOR
    lost = tuple(_lost_to(blocks, last))
    cuttable = [_without_giants(left, budget) for one in blocks if (left := at_cut(one, last))]
    sizes = {one.section.key: len(left.rows) for one in blocks if (left := at_cut(one, last))}
    kept = {one.section.key: 0 for one in cuttable}

    def trial() -> Fitted:
        short = tuple(
            LeftOut(key, f"{size - kept[key]} of {size} lines", Cut.LINES)
            for key, size in sizes.items()
            if kept[key] < size
        )
        some = [
            Block(one.section, one.columns, one.rows[: kept[one.section.key]]) for one in cuttable
        ]
        return _written(head, [one for one in some if one.rows], (*lost, *short), Cut.LINES, write)

    for one in sorted(cuttable, key=lambda one: not one.section.is_vital):
        _most(one, kept, lambda: _fits(trial().lines, budget))
    found = trial()
    return found if _fits(found.lines, budget) else _only_told(head, found.left_out, budget)


def _without_giants(block: Block, budget: int) -> Block:
    """Return a block without the rows that are larger than all the budget: those behind them may still fit."""
    most = budget * BYTES_PER_TOKEN
    rows = tuple(row for row in block.rows if sum(len(str(value)) for value in row.values) <= most)
    return Block(block.section, block.columns, rows)


def _most(block: Block, kept: dict[str, int], fits: Callable[[], bool]) -> None:
    """Keep as many rows of a block as fit beside what is kept already."""
    low, high = 0, len(block.rows)
    while low < high:
        middle = (low + high + 1) // 2
        kept[block.section.key] = middle
        low, high = (middle, high) if fits() else (low, middle - 1)
    kept[block.section.key] = low


def _only_told(head: Sequence[Line], left_out: tuple[LeftOut, ...], budget: int) -> Fitted:
    """Return what is left of a budget that does not even hold the note: the head, and how many notes there were."""
    counted = Line(f"left_out: {len(left_out)}", rule=_SAID)
    lines = (*head, counted)
    while lines and not _fits(lines, budget):
        lines = lines[:-1]
    return Fitted(lines, Cut.LINES, left_out)
