"""From the sources of a section to its rows, each with its origins. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.authority.access import Target, may_read
from yolo_fs.contexts.selection import Chosen, ContextSource, ContextSources, Origin, records_of
from yolo_fs.core.ids import SHORT
from yolo_fs.protocol.contexts import Column, Feed, Section
from yolo_fs.protocol.roster import AGENT_BY_NAME

_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_LABEL = re.compile(r"\s*(?:[-*]\s+)?\*\*(?P<label>[^*:]+):?\*\*:?\s*(?P<text>.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|[0-9]+[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.+)")

Numbered = tuple[int, str]
"""Number of a line, from 1, and its text."""


def below(lines: Sequence[str], heading: str) -> Iterator[Numbered]:
    """Yield the lines below the first matching heading, up to the next one of its level."""
    rank = 0
    for number, line in enumerate(lines, 1):
        if match := _HEADING.match(line):
            if rank and len(match[1]) <= rank:
                return
            if not rank and re.match(heading, match[2], re.IGNORECASE):
                rank = len(match[1])
                continue
        if rank:
            yield number, line


def of_phase(lines: Sequence[str], number: str) -> tuple[Numbered, ...]:
    """Return the block of a phase. `number`: two digits."""
    return tuple(below(lines, rf"phase\s+0*{int(number)}\b"))


def said(block: Sequence[Numbered], label: str) -> Iterator[Numbered]:
    """Yield the text after a label such as `**Goal:**`, and the list below it."""
    is_open = False
    for number, line in block:
        if match := _LABEL.match(line):
            is_open = match["label"].strip().lower().startswith(label.lower())
            if is_open and match["text"].strip():
                yield number, match["text"].strip()
        elif is_open and (item := _ITEM.match(line)):
            yield number, item["text"].strip()
        elif line.strip():
            is_open = False


Scalar = str | int | float | bool

ROADMAP = f"{PLANNING_ROOT}/ROADMAP.md"
_REQUIREMENT = re.compile(
    r"\W*(?P<id>[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*-[0-9]+)\b[\s*:.)\]|–—-]*(?P<title>.*)"
)


class Row(NamedTuple):
    """One line of a section before it is written."""

    values: tuple[Scalar, ...]
    origins: tuple[Origin, ...] = ()
    is_heading: bool = True
    """Whether it is kept when prose is cut to its headings."""
    rule: str = ""
    """The rule behind it, if no file is its origin."""


def rows_of(section: Section, gathered: ContextSources, chosen: Chosen) -> tuple[Row, ...]:
    """Return the rows of a section in the order of their sources, without duplicates."""
    rows = dict.fromkeys(_FEEDS[section.feed](section, gathered, chosen))
    return tuple(rows)[: section.most or None]


def flat(value: Any) -> Scalar:
    """Return a value of a record as one value of a row: lists are joined by `;`."""
    match value:
        case None:
            return ""
        case str() | int() | float():
            return value
        case list():
            return ";".join(str(flat(each)) for each in value)
        case Mapping():
            return " ".join(
                str(each) for each in value.values() if isinstance(each, str | int | float)
            )
    return str(value)


def value_at(record: Mapping[str, Any], key: str) -> Any:
    """Return the value of a record at a key with dots for nested keys, or None."""
    value: Any = record
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _records(section: Section, gathered: ContextSources, chosen: Chosen) -> Iterator[Row]:
    for source in chosen.sources:
        for record in records_of(section, gathered, source):
            values = tuple(_cell(record.value, column, source) for column in chosen.columns)
            if values:
                yield Row(values, (source.at(record.line),))


def _cell(record: Mapping[str, Any], column: Column, source: ContextSource) -> Scalar:
    cell = next(
        (value for key in column.keys if (value := value_at(record, key)) is not None), None
    )
    if cell is None and column.keys == ("plan",):
        return str(source.plan or "")
    return flat(cell)


def _extract_items(section: Section, gathered: ContextSources, chosen: Chosen) -> Iterator[Row]:
    """Yield each item once, with every line that names it as its origins."""
    named: dict[Scalar, list[Origin]] = {}
    for source in chosen.sources:
        for record in records_of(section, gathered, source):
            for column in chosen.columns:
                for item in value_at(record.value, column.keys[0]) or ():
                    named.setdefault(flat(item), []).append(source.at(record.line))
    yield from (Row((item,), tuple(dict.fromkeys(origins))) for item, origins in named.items())


def _counts(section: Section, gathered: ContextSources, chosen: Chosen) -> Iterator[Row]:
    last = {
        str(record.value.get("id")): (record.value, source.at(record.line))
        for source in chosen.sources
        for record in records_of(section, gathered, source)
    }
    if last:
        resolved = sum(value.get("st") == "resolved" for value, _ in last.values())
        text = f"open={len(last) - resolved} resolved={resolved}"
        yield Row((text,), tuple(origin for _, origin in last.values()), rule=section.source)


def _text(_: Section, __: ContextSources, chosen: Chosen) -> Iterator[Row]:
    for source in chosen.sources:
        for number, line in enumerate(source.lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                yield Row(
                    (line.rstrip(),), (source.at(number),), is_heading=not line.startswith(" ")
                )


def _extract_heading(section: Section, gathered: ContextSources, chosen: Chosen) -> Iterator[Row]:
    """Yield the text of a planning file below a heading, unless artifacts replace it."""
    _, heading, instead = section.of
    if any(chosen_source.kind == instead for chosen_source in chosen.sources):
        return
    for source in chosen.sources:
        for number, line in below(source.lines, re.escape(heading)):
            if line.strip():
                yield Row((line.strip(),), (source.at(number),))


def _phase(section: Section, gathered: ContextSources, chosen: Chosen) -> Iterator[Row]:
    for source in chosen.sources:
        for number, text in said(of_phase(source.lines, gathered.phase.number), section.of[-1]):
            yield Row((text,), (source.at(number),))


def _extract_requirements(
    section: Section, gathered: ContextSources, chosen: Chosen
) -> Iterator[Row]:
    """Yield the requirements; only the phase's own if a readable roadmap names them."""
    wanted = frozenset(_read_requirement_ids(gathered))
    with_records = tuple(source for source in chosen.sources if source.records)
    if with_records:
        rows = [*_records(section, gathered, chosen._replace(sources=with_records))]
    else:
        matches = (
            (source.at(number), _REQUIREMENT.match(line))
            for source in chosen.sources
            for number, line in enumerate(source.lines, 1)
        )
        rows = [Row((found["id"], found["title"].strip()), (at,)) for at, found in matches if found]
    own = [row for row in rows if row.values[0] in wanted]
    yield from own or rows


_ID = re.compile(
    r"([A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*-[0-9]+)"
    r"|[A-Z][A-Z0-9]*+(?:-[A-Z0-9]++)*+"  # a word that is none
)


def _read_requirement_ids(gathered: ContextSources) -> Iterator[str]:
    if may_read(gathered.actor, Target(ROADMAP)).allowed:
        for source in gathered.sources:
            for _, text in (
                said(of_phase(source.lines, gathered.phase.number), "Req")
                if source.path == ROADMAP
                else ()
            ):
                yield from filter(None, _ID.findall(text))


def _extract_conventions(_: Section, __: ContextSources, chosen: Chosen) -> Iterator[Row]:
    for source in chosen.sources:
        seen = 0
        for entry in _listed(source):
            values = tuple(flat(entry.get(column.keys[0])) for column in chosen.columns)
            seen = next(
                (
                    at
                    for at in range(seen, len(source.lines))
                    if _is_written_in(values[-1], source.lines[at])
                ),
                seen,
            )
            yield Row(
                values, tuple(source.at(number) for number in _lines_of(values, source, seen))
            )


def _listed(source: ContextSource) -> Iterator[Mapping[str, Any]]:
    for record in source.records:
        for listed in record.value.values():
            yield from (
                (entry for entry in listed if isinstance(entry, Mapping))
                if isinstance(listed, list)
                else ()
            )


def _lines_of(values: Sequence[Scalar], source: ContextSource, near: int) -> tuple[int, ...]:
    """Return the numbers of the lines with these values, each as near as possible to `near`."""
    order = sorted(range(len(source.lines)), key=lambda at: (abs(at - near), at))
    numbers = (
        next((at + 1 for at in order if _is_written_in(value, source.lines[at])), near + 1)
        for value in values
    )
    return tuple(sorted(set(numbers)))


def _is_written_in(value: Scalar, line: str) -> bool:
    return json.dumps(value) in line or json.dumps(value, ensure_ascii=False) in line


def _files(_: Section, __: ContextSources, chosen: Chosen) -> Iterator[Row]:
    yield from (Row((f"@{path}",), (Origin(path),)) for path in chosen.paths)


def _names(_: Section, __: ContextSources, chosen: Chosen) -> Iterator[Row]:
    yield from (Row((path.rpartition("/")[2],), (Origin(path),)) for path in chosen.paths)


def _commits(_: Section, gathered: ContextSources, __: Chosen) -> Iterator[Row]:
    for oid, subject in gathered.commits:
        yield Row((oid[:SHORT], subject), (Origin("", 0, oid),))


def _tools(section: Section, gathered: ContextSources, _: Chosen) -> Iterator[Row]:
    agent = AGENT_BY_NAME.get(gathered.actor.name)
    if agent and agent.tools:
        only = " (read-only)" if agent.read_only else ""
        yield Row((", ".join(agent.tools) + only,), rule=section.source)


_FEEDS: Mapping[Feed, Callable[[Section, ContextSources, Chosen], Iterator[Row]]] = {
    Feed.RECORDS: _records,
    Feed.ITEMS: _extract_items,
    Feed.COUNTS: _counts,
    Feed.TEXT: _text,
    Feed.HEADING: _extract_heading,
    Feed.PHASE: _phase,
    Feed.REQUIREMENTS: _extract_requirements,
    Feed.CONVENTIONS: _extract_conventions,
    Feed.FILES: _files,
    Feed.NAMES: _names,
    Feed.COMMITS: _commits,
    Feed.TOOLS: _tools,
}
