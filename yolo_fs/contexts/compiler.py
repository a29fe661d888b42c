"""Compiles the context of one agent from what was gathered, cuts it to its budget, writes it, and
proves what was written. Pure.

The same sources give the same bytes. Sections are cut in the documented order first, then at whole
lines; the context itself says what was cut. Every line names its origin. The text of a value is
asked of the caller, for only the house's TOON library knows what has to be quoted. See
docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from yolo_fs.authority.access import Target, may_read
from yolo_fs.authority.actors import Actor
from yolo_fs.contexts.extractors import ROADMAP, Row, Scalar, flat, rows_of
from yolo_fs.contexts.selection import ContextSources, Origin, Withheld, choose
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.ids import PLAN
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, safe
from yolo_fs.phase.report import tokens
from yolo_fs.protocol.contexts import (
    CONTEXT_BY_ROLE,
    FOR_ALL,
    GOAL,
    Column,
    Cut,
    Section,
    SectionForm,
    budget_of,
)
from yolo_fs.protocol.departments import DEPARTMENTS
from yolo_fs.protocol.roster import AGENT_BY_NAME

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


class Fitted(NamedTuple):
    """A context within its budget."""

    lines: tuple[ContextLine, ...]
    cut: Cut
    """How far it had to be cut."""
    left_out: tuple[LeftOut, ...]


def fit(head: Sequence[ContextLine], blocks: Sequence[Block], budget: int, write: Write) -> Fitted:
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


def _fits(lines: Sequence[ContextLine], budget: int) -> bool:
    return tokens(text_of(lines)) <= budget


def _least_bytes(blocks: Iterable[Block]) -> int:
    """Return what blocks take at least: much is too large before a byte of it is written."""
    rows = (row for one in blocks for row in one.rows)
    return sum(len(str(value)) for row in rows for value in row.values)


def _written(
    head: Sequence[ContextLine],
    blocks: Iterable[Block],
    left_out: tuple[LeftOut, ...],
    cut: Cut,
    write: Write,
) -> Fitted:
    body = [line for one in blocks for line in lines_of(one, cut, write)]
    return Fitted((*head, *body, *_note(left_out, write)), cut, left_out)


def _note(left_out: Sequence[LeftOut], write: Write) -> Iterator[ContextLine]:
    if left_out:
        yield ContextLine(f"left_out[{len(left_out)}]{{section,what,why}}:", rule=_SAID)
    for one in left_out:
        yield ContextLine(f"  {write(one.section)},{write(one.what)},{write(one.why)}", rule=_SAID)


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


def _by_lines(
    head: Sequence[ContextLine], blocks: Sequence[Block], budget: int, write: Write
) -> Fitted:
    """Return as much as fits after each documented cut: vital sections first, line by line."""
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
    """Return a block without rows larger than all the budget: those behind them may still fit."""
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


def _only_told(head: Sequence[ContextLine], left_out: tuple[LeftOut, ...], budget: int) -> Fitted:
    """Return what is left of a budget too small for the note: the head, and how many notes."""
    counted = ContextLine(f"left_out: {len(left_out)}", rule=_SAID)
    lines = (*head, counted)
    while lines and not _fits(lines, budget):
        lines = lines[:-1]
    return Fitted(lines, Cut.LINES, left_out)


_HEADER = "the reference scripts"
_SHORT_NAMES = {
    row.name: row.prefix.rstrip("-") or row.name.value for row in DEPARTMENTS if not row.is_default
}
"""What the header calls the departments; it does not name the default one."""


class CompiledContext(NamedTuple):
    """A compiled context."""

    agent: str
    """Short name, such as `fe-lead`."""
    lines: tuple[ContextLine, ...]
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


def _head(gathered: ContextSources, write: Write) -> Iterator[ContextLine]:
    yield ContextLine(f"phase: {write(str(gathered.phase))}", rule=_HEADER)
    if gathered.plan:
        yield ContextLine(f"plan: {write(str(gathered.plan))}", rule=_HEADER)
    agent = AGENT_BY_NAME[gathered.actor.name]
    if agent.department in _SHORT_NAMES:
        yield ContextLine(f"department: {_SHORT_NAMES[agent.department]}", rule=_HEADER)


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


Write = Callable[[Scalar], str]
"""Returns a value as it stands in a row, an item or behind a key."""

INDENT = "  "


class ContextLine(NamedTuple):
    """One line of a context."""

    text: str
    origins: tuple[Origin, ...] = ()
    rule: str = ""
    """What says it, where no file does."""
    values: tuple[Scalar, ...] = ()
    """What it quotes of its origins."""


class Block(NamedTuple):
    """One section with all that feeds it."""

    section: Section
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def at_cut(block: Block, cut: Cut) -> Block | None:
    """Return what a cut leaves of a block; None when that is nothing."""
    section = block.section
    if section.cut is not None and cut >= section.cut:
        headings = tuple(row for row in block.rows if row.is_heading)
        is_text = section.form in (SectionForm.NESTED, SectionForm.LIST)
        return Block(section, block.columns, headings) if is_text and headings else None
    kept = [at for at, column in enumerate(block.columns) if column.cut is None or cut < column.cut]
    if len(kept) == len(block.columns):
        return block
    rows = tuple(
        Row(tuple(row.values[at] for at in kept), row.origins, row.is_heading, row.rule)
        for row in block.rows
    )
    return Block(section, tuple(block.columns[at] for at in kept), _once(rows)) if kept else None


def _once(rows: Sequence[Row]) -> tuple[Row, ...]:
    first: dict[tuple[Scalar, ...], Row] = {}
    for row in rows:
        first.setdefault(row.values, row)
    return tuple(first.values())


def lines_of(block: Block, cut: Cut, write: Write) -> Iterator[ContextLine]:
    """Yield the lines of a block that was cut this far."""
    section, key = block.section, block.section.key
    is_cut = section.cut is not None and cut >= section.cut
    form = SectionForm.LIST if section.form is SectionForm.NESTED and is_cut else section.form
    if form is SectionForm.VALUE:
        row = block.rows[0]
        text = (
            f"{key}: {', '.join(map(str, row.values))}"
            if not row.values
            else f"{key}: {write(row.values[0])}"
        )
        yield ContextLine(text, row.origins, row.rule, row.values)
        return
    yield ContextLine(_HEADS[form](block), rule=section.source)
    for row in block.rows:
        yield ContextLine(INDENT + _BODIES[form](row, write), row.origins, row.rule, row.values)


_HEADS: Mapping[SectionForm, Callable[[Block], str]] = {
    SectionForm.TABLE: lambda block: (
        f"{block.section.key}[{len(block.rows)}]{{{','.join(one.name for one in block.columns)}}}:"
    ),
    SectionForm.LIST: lambda block: f"{block.section.key}[{len(block.rows)}]:",
    SectionForm.NESTED: lambda block: f"{block.section.key}:",
}
_BODIES: Mapping[SectionForm, Callable[[Row, Write], str]] = {
    SectionForm.TABLE: lambda row, write: ",".join(map(write, row.values)),
    SectionForm.LIST: lambda row, write: f"- {write(row.values[0])}",
    SectionForm.NESTED: lambda row, _: str(row.values[0]),
}


def text_of(lines: Sequence[ContextLine]) -> str:
    """Return the file that the lines make."""
    return "".join(f"{line.text}\n" for line in lines)


Fetch = Callable[[Origin], str | None]
"""Returns the source line that an origin names, or the file's name for the whole; None if gone."""


def unproved_lines(compiled: CompiledContext, actor: Actor, fetch: Fetch) -> Iterator[Finding]:
    """Yield what a context cannot prove, line by line."""
    for number, line in enumerate(compiled.lines, 1):
        if not (line.origins or line.rule):
            yield _doubt(number, "nothing says where it comes from")
        for origin in line.origins:
            answer = may_read(actor, Target(origin.path)) if origin.path else None
            if answer and not answer.allowed:
                yield Finding(
                    Reason.OUT_OF_LANE, line=number, message=f"from {origin}: {answer.rule}"
                )
        if line.origins and (lost := _unsaid(line, fetch)):
            where = ", ".join(map(str, line.origins))
            yield _doubt(number, f"{where} does not say {lost!r}")


def differences(compiled: CompiledContext, found: Sequence[str], path: str) -> Iterator[Finding]:
    """Yield where the file on disk is not what its sources give. `found`: its lines."""
    wanted = [line.text for line in compiled.lines]
    for number in range(max(len(wanted), len(found))):
        said = found[number] if number < len(found) else None
        due = wanted[number] if number < len(wanted) else None
        if said != due:
            message = (
                "no source gives this line"
                if said not in wanted
                else "the line stands elsewhere by now"
            )
            if said is None:
                message = "a line is missing"
            hint = f"'yolo-fs context compile {compiled.agent}' writes it anew."
            yield Finding(
                Reason.CONTEXT_STALE, path, number + 1, "", message, due or "no such line", hint
            )
            return


def _doubt(number: int, message: str) -> Finding:
    return Finding(Reason.CONTEXT_UNPROVED, line=number, message=message)


def _unsaid(line: ContextLine, fetch: Fetch) -> Scalar | None:
    """Return the first value of a line that no origin of it says."""
    texts = [text for origin in line.origins if (text := fetch(origin)) is not None]
    if not texts:
        return str(line.origins[0])
    if line.rule:  # counted by a rule: what is cited is what was counted
        return None
    names = " ".join(origin.path for origin in line.origins)
    return next(
        (one for one in line.values if not any(_says(text, str(one), names) for text in texts)),
        None,
    )


def _says(text: str, value: str, names: str) -> bool:
    """Return whether a source line says a value: in its JSON, else in its words or its name."""
    nodes = set(_nodes(text))
    by_name = PLAN.fullmatch(value) is not None and value in names
    return value == "" or by_name or (value in nodes if nodes else value.removeprefix("@") in text)


def _nodes(text: str) -> Iterator[str]:
    """Yield every value of a JSON line as a row would write it."""
    try:
        value = parse(text.strip().rstrip(","), len(text))
    except ValueError:
        try:  # a line of a JSON document on many lines
            value = parse(f"{{{text.strip().rstrip(',')}}}", len(text) + 2)
        except ValueError:
            return
    pending: list[Any] = [value]
    while pending:
        one = pending.pop()
        yield str(flat(one))
        if isinstance(one, dict):
            pending += one.values()
        elif isinstance(one, list):
            pending += one
