"""Compiles the context of one agent from gathered sources, cuts it to its budget, writes it, and
proves what was written. Pure.

The same sources give the same bytes. Sections are cut in the documented order first, then at whole
lines; the context itself lists what was cut. Every line names its origin. The caller supplies the
text of a value, because only this project's TOON library knows what has to be quoted. See
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
from yolo_fs.core.reasons import Finding, Reason, YoloError, safe
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
    """The missing columns or lines, or the whole section."""
    cut: Cut

    @property
    def why(self) -> str:
        """The step of the documented order that removed it."""
        return self.cut.label

    JSON_KEYS: ClassVar = {"section": "section", "what": "what", "why": "why"}


class Fitted(NamedTuple):
    """A context within its budget."""

    lines: tuple[ContextLine, ...]
    cut: Cut
    """The last cut that was needed."""
    left_out: tuple[LeftOut, ...]


def fit(head: Sequence[ContextLine], blocks: Sequence[Block], budget: int, write: Write) -> Fitted:
    """Return the context with no more cuts than the budget requires.

    `budget`: tokens of the whole file, the note included.
    """
    for cut in tuple(Cut)[:-1]:
        kept = [left for block in blocks if (left := at_cut(block, cut))]
        if _least_bytes_of(kept) <= budget * BYTES_PER_TOKEN:
            fitted = _written(head, kept, tuple(_list_losses(blocks, cut)), cut, write)
            if _fits(fitted.lines, budget):
                return fitted
    return _fit_by_lines(head, blocks, budget, write)


def _fits(lines: Sequence[ContextLine], budget: int) -> bool:
    return tokens(text_of(lines)) <= budget


def _least_bytes_of(blocks: Iterable[Block]) -> int:
    """Return the minimum size of blocks, to reject most that are too large before they are
    written.
    """
    rows = (row for block in blocks for row in block.rows)
    return sum(len(str(value)) for row in rows for value in row.values)


def _written(
    head: Sequence[ContextLine],
    blocks: Iterable[Block],
    left_out: tuple[LeftOut, ...],
    cut: Cut,
    write: Write,
) -> Fitted:
    body = [line for block in blocks for line in lines_of(block, cut, write)]
    return Fitted((*head, *body, *_note(left_out, write)), cut, left_out)


def _note(left_out: Sequence[LeftOut], write: Write) -> Iterator[ContextLine]:
    if left_out:
        yield ContextLine(f"left_out[{len(left_out)}]{{section,what,why}}:", rule=_SAID)
    for omission in left_out:
        yield ContextLine(
            f"  {write(omission.section)},{write(omission.what)},{write(omission.why)}", rule=_SAID
        )


def _list_losses(blocks: Iterable[Block], cut: Cut) -> Iterator[LeftOut]:
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
        return ", ".join(column.name for column in before.columns if column not in after.columns)
    lost = len(before.rows) - len(after.rows)
    return f"{lost} of {len(before.rows)} lines" if lost else ""


def _fit_by_lines(
    head: Sequence[ContextLine], blocks: Sequence[Block], budget: int, write: Write
) -> Fitted:
    """Return as much as fits after all documented cuts: vital sections first, line by line."""
    last = Cut.PRIOR
    lost = tuple(_list_losses(blocks, last))
    cuttable = [_drop_giant_rows(left, budget) for block in blocks if (left := at_cut(block, last))]
    sizes = {block.section.key: len(left.rows) for block in blocks if (left := at_cut(block, last))}
    kept = {block.section.key: 0 for block in cuttable}

    def trial() -> Fitted:
        short = tuple(
            LeftOut(key, f"{size - kept[key]} of {size} lines", Cut.LINES)
            for key, size in sizes.items()
            if kept[key] < size
        )
        some = [
            Block(block.section, block.columns, block.rows[: kept[block.section.key]])
            for block in cuttable
        ]
        return _written(
            head, [block for block in some if block.rows], (*lost, *short), Cut.LINES, write
        )

    for block in sorted(cuttable, key=lambda block: not block.section.is_vital):
        _keep_most_rows(block, kept, lambda: _fits(trial().lines, budget))
    fitted = trial()
    return fitted if _fits(fitted.lines, budget) else _fit_head(head, fitted.left_out, budget)


def _drop_giant_rows(block: Block, budget: int) -> Block:
    """Return a block without rows that exceed the whole budget: later rows may still fit."""
    most = budget * BYTES_PER_TOKEN
    rows = tuple(row for row in block.rows if sum(len(str(value)) for value in row.values) <= most)
    return Block(block.section, block.columns, rows)


def _keep_most_rows(block: Block, kept: dict[str, int], fits: Callable[[], bool]) -> None:
    """Keep as many rows of a block as fit beside those already kept."""
    low, high = 0, len(block.rows)
    while low < high:
        middle = (low + high + 1) // 2
        kept[block.section.key] = middle
        low, high = (middle, high) if fits() else (low, middle - 1)
    kept[block.section.key] = low


def _fit_head(head: Sequence[ContextLine], left_out: tuple[LeftOut, ...], budget: int) -> Fitted:
    """Return the head and the number of notes, for a budget too small for the notes themselves."""
    counted = ContextLine(f"left_out: {len(left_out)}", rule=_SAID)
    lines = (*head, counted)
    while lines and not _fits(lines, budget):
        lines = lines[:-1]
    return Fitted(lines, Cut.LINES, left_out)


_SHORT_NAMES = {
    row.name: row.prefix.rstrip("-") or row.name.value for row in DEPARTMENTS if not row.is_default
}
"""Names of departments in the header, which omits the default one."""


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
        """Its size in tokens."""
        return tokens(self.text)


def compile_context(
    gathered: ContextSources, write: Write, budget: int | None = None
) -> CompiledContext:
    """Return the context of the agent whose sources these are.

    `budget`: tokens; None for the agent's own.

    Raises:
        YoloError: UNKNOWN_NAME for somebody whom no context is compiled for.
    """
    name = agent_of(gathered.actor)
    sections, withheld = _blocks(gathered)
    most = budget_of(name) if budget is None else budget
    fitted: Fitted = fit(tuple(_head(gathered, write)), sections, most, write)
    return CompiledContext(
        name, fitted.lines, most, fitted.cut, fitted.left_out, tuple(dict.fromkeys(withheld))
    )


def agent_of(actor: Actor) -> str:
    """Return the short name of an actor's context.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    if actor.role not in CONTEXT_BY_ROLE or actor.agent is None:
        known = (name for name, row in AGENT_BY_NAME.items() if row.role in CONTEXT_BY_ROLE)
        hint = f"Known agents: {', '.join(known)}."
        message = f"no context is compiled for {safe(actor.name)}"
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint)
    return actor.name


def _head(gathered: ContextSources, write: Write) -> Iterator[ContextLine]:
    yield ContextLine(f"phase: {write(str(gathered.phase))}", rule=_SAID)
    if gathered.plan:
        yield ContextLine(f"plan: {write(str(gathered.plan))}", rule=_SAID)
    agent = AGENT_BY_NAME[gathered.actor.name]
    if agent.department in _SHORT_NAMES:
        yield ContextLine(f"department: {_SHORT_NAMES[agent.department]}", rule=_SAID)


def _blocks(gathered: ContextSources) -> tuple[list[Block], list[Withheld]]:
    blocks: list[Block] = []
    withheld: list[Withheld] = []
    own = gathered.actor.department
    for section in (GOAL, *CONTEXT_BY_ROLE[gathered.actor.role].sections, *FOR_ALL):
        if section.departments and own not in section.departments:
            continue
        block, kept_back = _build_block(section, gathered)
        withheld += kept_back
        blocks += [block] if block.rows else []
    return blocks, withheld


def _build_block(section: Section, gathered: ContextSources) -> tuple[Block, tuple[Withheld, ...]]:
    chosen = choose(section, gathered)
    rows = rows_of(section, gathered, chosen)
    if section is GOAL and not rows and may_read(gathered.actor, Target(ROADMAP)).allowed:
        rows = (Row(("Not available",), rule=_SAID),)
    return Block(section, chosen.columns, rows), chosen.withheld


Write = Callable[[Scalar], str]
"""Returns a value as text for a row, an item or after a key."""

INDENT = "  "


class ContextLine(NamedTuple):
    """One line of a context."""

    text: str
    origins: tuple[Origin, ...] = ()
    rule: str = ""
    """The rule behind the line, if no file is its origin."""
    values: tuple[Scalar, ...] = ()
    """Values that it quotes from its origins."""


class Block(NamedTuple):
    """One section with its rows."""

    section: Section
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def at_cut(block: Block, cut: Cut) -> Block | None:
    """Return what remains of a block after a cut; None if nothing does."""
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
    """Yield the lines of a block after a cut."""
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


def _head_of_table(block: Block) -> str:
    columns = ",".join(column.name for column in block.columns)
    return f"{block.section.key}[{len(block.rows)}]{{{columns}}}:"


_HEADS: Mapping[SectionForm, Callable[[Block], str]] = {
    SectionForm.TABLE: _head_of_table,
    SectionForm.LIST: lambda block: f"{block.section.key}[{len(block.rows)}]:",
    SectionForm.NESTED: lambda block: f"{block.section.key}:",
}
_BODIES: Mapping[SectionForm, Callable[[Row, Write], str]] = {
    SectionForm.TABLE: lambda row, write: ",".join(map(write, row.values)),
    SectionForm.LIST: lambda row, write: f"- {write(row.values[0])}",
    SectionForm.NESTED: lambda row, _: str(row.values[0]),
}


def text_of(lines: Sequence[ContextLine]) -> str:
    """Return the text of the file with these lines."""
    return "".join(f"{line.text}\n" for line in lines)


Fetch = Callable[[Origin], str | None]
"""Returns the source line of an origin, or the file's name for a whole file; None if it is gone."""


def unproved_lines(compiled: CompiledContext, actor: Actor, fetch: Fetch) -> Iterator[Finding]:
    """Yield a finding for each line of a context that its origins do not prove."""
    for number, line in enumerate(compiled.lines, 1):
        if not (line.origins or line.rule):
            yield _doubt(number, "its source is unknown")
        for origin in line.origins:
            answer = may_read(actor, Target(origin.path)) if origin.path else None
            if answer and not answer.allowed:
                yield Finding(
                    Reason.OUT_OF_LANE, line=number, message=f"from {origin}: {answer.rule}"
                )
        if line.origins and (lost := _unsaid(line, fetch)):
            where = ", ".join(map(str, line.origins))
            yield _doubt(number, f"{where} does not have {lost!r}")


def differences(compiled: CompiledContext, lines: Sequence[str], path: str) -> Iterator[Finding]:
    """Yield where the file on disk differs from what its sources give. `lines`: its lines."""
    wanted = [line.text for line in compiled.lines]
    for number in range(max(len(wanted), len(lines))):
        actual = lines[number] if number < len(lines) else None
        due = wanted[number] if number < len(wanted) else None
        if actual != due:
            message = (
                "no source gives this line"
                if actual not in wanted
                else "the line is elsewhere by now"
            )
            if actual is None:
                message = "a line is missing"
            hint = f"'yolo-fs context compile {compiled.agent}' writes it again."
            yield Finding(
                Reason.CONTEXT_STALE, path, number + 1, "", message, due or "no such line", hint
            )
            return


def _doubt(number: int, message: str) -> Finding:
    return Finding(Reason.CONTEXT_UNPROVED, line=number, message=message)


def _unsaid(line: ContextLine, fetch: Fetch) -> Scalar | None:
    """Return the first value of a line that none of its origins contains."""
    texts = [text for origin in line.origins if (text := fetch(origin)) is not None]
    if not texts:
        return str(line.origins[0])
    if line.rule:  # counted by a rule: what is cited is what was counted
        return None
    names = " ".join(origin.path for origin in line.origins)
    return next(
        (
            value
            for value in line.values
            if not any(_contains(text, str(value), names) for text in texts)
        ),
        None,
    )


def _contains(text: str, value: str, names: str) -> bool:
    """Return whether a source line contains a value: in its JSON, else in its text or its name."""
    nodes = set(_values_in(text))
    by_name = PLAN.fullmatch(value) is not None and value in names
    return value == "" or by_name or (value in nodes if nodes else value.removeprefix("@") in text)


def _values_in(text: str) -> Iterator[str]:
    """Yield every value of a JSON line in the form of a row."""
    try:
        value = parse(text.strip().rstrip(","), len(text))
    except ValueError:
        try:  # a line of a JSON document on many lines
            value = parse(f"{{{text.strip().rstrip(',')}}}", len(text) + 2)
        except ValueError:
            return
    pending: list[Any] = [value]
    while pending:
        node = pending.pop()
        yield str(flat(node))
        if isinstance(node, dict):
            pending += node.values()
        elif isinstance(node, list):
            pending += node
