"""How a context is written: sections as lines of TOON, each with its origin. Pure.

The text of a value is asked of the caller, for only the house's TOON library knows what has to be
quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from yolo_fs.protocol.contexts import Column, Cut, Section, SectionForm
from yolo_fs.rules.context.extractors import Row, Scalar
from yolo_fs.rules.context.sources import Origin

Write = Callable[[Scalar], str]
"""Returns a value as it stands in a row, an item or behind a key."""

INDENT = "  "


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a context."""

    text: str
    origins: tuple[Origin, ...] = ()
    rule: str = ""
    """What says it, where no file does."""
    values: tuple[Scalar, ...] = ()
    """What it quotes of its origins."""


@dataclass(frozen=True, slots=True)
class Block:
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


def lines_of(block: Block, cut: Cut, write: Write) -> Iterator[Line]:
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
        yield Line(text, row.origins, row.rule, row.values)
        return
    yield Line(_HEADS[form](block), rule=section.source)
    for row in block.rows:
        yield Line(INDENT + _BODIES[form](row, write), row.origins, row.rule, row.values)


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


def text_of(lines: Sequence[Line]) -> str:
    """Return the file that the lines make."""
    return "".join(f"{line.text}\n" for line in lines)
