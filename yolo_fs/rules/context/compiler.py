"""Compiles the context of one agent from what was gathered, and cuts it to its budget. Pure.

The same sources give the same bytes. Sections are cut in the documented order first, then at whole
lines; the context itself says what was cut. See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from yolo_fs.protocol.contexts import CONTEXT_BY_ROLE, FOR_ALL, GOAL, Cut, Section, budget_of
from yolo_fs.protocol.departments import DEPARTMENTS
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.rules.authz.access import may_read
from yolo_fs.rules.authz.actors import Actor
from yolo_fs.rules.authz.targets import Target
from yolo_fs.rules.context.extractors import ROADMAP, Row, rows_of
from yolo_fs.rules.context.render import Block, Line, Write, at_cut, lines_of, text_of
from yolo_fs.rules.context.selection import choose
from yolo_fs.rules.context.sources import ContextSources, Withheld
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
    """Return the context cut no further than the budget asks.

    `budget`: tokens of the whole file, the note included.
    """
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
    """Return what blocks take at least: much is known to be too large before a byte of it is
    written.
    """
    rows = (row for one in blocks for row in one.rows)
    return sum(len(str(value)) for row in rows for value in row.values)


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


# --- by whole lines ---


def _by_lines(head: Sequence[Line], blocks: Sequence[Block], budget: int, write: Write) -> Fitted:
    """Return as much as fits after every documented cut: the vital sections first, of each as many
    lines as fit.
    """
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
    """Return a block without the rows that are larger than all the budget: those behind them may
    still fit.
    """
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
    """Return what is left of a budget that does not even hold the note: the head, and how many
    notes there were.
    """
    counted = Line(f"left_out: {len(left_out)}", rule=_SAID)
    lines = (*head, counted)
    while lines and not _fits(lines, budget):
        lines = lines[:-1]
    return Fitted(lines, Cut.LINES, left_out)


_HEADER = "the reference scripts"
_SHORT_NAMES = {
    row.name: row.prefix.rstrip("-") or row.name.value for row in DEPARTMENTS if not row.is_default
}
"""What the header calls the departments; it does not name the default one."""


@dataclass(frozen=True, slots=True)
class CompiledContext:
    """A compiled context."""

    agent: str
    """Short name, such as `fe-lead`."""
    lines: tuple[Line, ...]
    budget: int
    """Tokens."""
    cut: Cut
    left_out: tuple[LeftOut, ...] = ()
    withheld: tuple[Withheld, ...] = ()

    @property
    def text(self) -> str:
        """The file."""
        return text_of(self.lines)

    @property
    def tokens(self) -> int:
        """Its size."""
        return tokens(self.text)


def compile_context(
    gathered: ContextSources, write: Write, budget: int | None = None
) -> CompiledContext:
    """Return the context of the agent that was gathered for.

    `budget`: tokens; None for the agent's own.

    Raises:
        YoloError: UNKNOWN_NAME for somebody whom no context is compiled for.
    """
    name = agent_of(gathered.actor)
    sections, withheld = _blocks(gathered)
    most = budget_of(name) if budget is None else budget
    found: Fitted = fit(tuple(_head(gathered, write)), sections, most, write)
    return CompiledContext(
        name, found.lines, most, found.cut, found.left_out, tuple(dict.fromkeys(withheld))
    )


def agent_of(actor: Actor) -> str:
    """Return the short name that an actor's context is filed under.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    if actor.role not in CONTEXT_BY_ROLE or actor.agent is None:
        known = (name for name, row in AGENT_BY_NAME.items() if row.role in CONTEXT_BY_ROLE)
        hint = f"There are {', '.join(known)}."
        message = f"no context is compiled for {safe(actor.name)}"
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint, exit_code=Exit.USAGE)
    return actor.name


def _head(gathered: ContextSources, write: Write) -> Iterator[Line]:
    yield Line(f"phase: {write(str(gathered.phase))}", rule=_HEADER)
    if gathered.plan:
        yield Line(f"plan: {write(str(gathered.plan))}", rule=_HEADER)
    agent = AGENT_BY_NAME[gathered.actor.name]
    if agent.department in _SHORT_NAMES:
        yield Line(f"department: {_SHORT_NAMES[agent.department]}", rule=_HEADER)


def _blocks(gathered: ContextSources) -> tuple[list[Block], list[Withheld]]:
    blocks: list[Block] = []
    withheld: list[Withheld] = []
    own = gathered.actor.department
    for section in (GOAL, *CONTEXT_BY_ROLE[gathered.actor.role].sections, *FOR_ALL):
        if section.departments and own not in section.departments:
            continue
        block, kept_back = _block(section, gathered)
        withheld += kept_back
        blocks += [block] if block.rows else []
    return blocks, withheld


def _block(section: Section, gathered: ContextSources) -> tuple[Block, tuple[Withheld, ...]]:
    chosen = choose(section, gathered)
    rows = rows_of(section, gathered, chosen)
    if section is GOAL and not rows and may_read(gathered.actor, Target(ROADMAP)).allowed:
        rows = (Row(("Not available",), rule=_HEADER),)
    return Block(section, chosen.columns, rows), chosen.withheld
