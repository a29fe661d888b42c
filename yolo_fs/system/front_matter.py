"""Reads the front matter of HANDOFF.md strictly: text under each key of `handoff:`, no other YAML.

Only PyYAML's event stream is used, so `no` stays "no", `0123` stays "0123" and no value refers to
another. Every character of the front matter must then belong to a key or its value, so that nothing
hides in a comment. See docs/dev/faults.md#f54.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import yaml

from yolo_fs.core.reasons import Reason, pointer_to
from yolo_fs.schemas.layout import Record
from yolo_fs.system.text_checks import (
    FindingList,
    Limits,
    Reading,
    decode,
    examine_conflicts,
    examine_controls,
    finish,
)

FENCE = "---"
MAX_FRONT_MATTER_CHARS = 64 << 10
MAX_DEPTH = 8
"""Levels of YAML that are read before giving up; accepted input has two."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
"""Includes the line breaks that YAML knows and other readers do not: U+0085, U+2028, U+2029."""
_NOT_ONE_LINE = re.compile(f"{_INVISIBLE.pattern}|[\t\n]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLOCK = ("|", ">")


def read_front_matter(data: bytes, path: str, limits: Limits = Limits()) -> Reading:
    """Read Markdown that begins with a handoff packet.

    The packet is one record `{"handoff": {key: text}}`, of line 1. The rest of the Markdown is
    examined as text only. Raises nothing.
    """
    report = FindingList(path)
    text = decode(data, limits, report)
    if text is None or text.refused or examine_conflicts(text.whole(), report):
        return finish(report, text)
    lines = text.whole()
    end = _end(lines, report)
    examine_controls(lines[end:], report, first=end + 1)
    packet = _packet(lines[1 : end - 1], report) if end else None
    return finish(report, text, [] if packet is None else [Record(1, {"handoff": packet})])


def _end(lines: Sequence[str], report: FindingList) -> int:
    """Return the number of lines of the front matter with both fences; 0 without any to read."""
    if lines[0] != FENCE:
        report.add(Reason.FRONT_MATTER_MISSING, 1, _explain_missing(lines))
        return 0
    if FENCE not in lines[1:]:
        report.add(Reason.FRONT_MATTER_UNCLOSED, 1, _explain_unclosed(lines))
        return 0
    end = lines.index(FENCE, 1) + 1
    if sum(map(len, lines[:end])) > MAX_FRONT_MATTER_CHARS:
        report.add(Reason.FRONT_MATTER_SHAPE, 1, f"longer than {MAX_FRONT_MATTER_CHARS} characters")
        return 0
    body = next((number for number, line in enumerate(lines[end:], end + 1) if line.strip()), 0)
    if body and lines[body - 1].startswith("handoff:"):
        report.add(Reason.SECOND_DOCUMENT, body)
        return 0
    return end


def _explain_missing(lines: Sequence[str]) -> str:
    if lines[0].strip() == FENCE:
        return "there are blanks beside the `---` of the first line"
    return "`---` comes further down" if FENCE in lines else "there is no `---`"


def _explain_unclosed(lines: Sequence[str]) -> str:
    near = next(
        (number for number, line in enumerate(lines[1:], 2) if line.strip() in (FENCE, "...")), 0
    )
    return f"line {near} is not exactly `---`" if near else "no second `---` follows"


class _Fault(NamedTuple):
    """What is wrong in one line."""

    row: int
    """From 0, below the first fence."""
    reason: Reason
    message: str
    at: str = ""


def _packet(lines: Sequence[str], report: FindingList) -> dict[str, str] | None:
    """Return the packet, or None when it has any fault."""
    texts: dict[str, str] = {}
    faults = {fault for row, line in enumerate(lines) for fault in _faults_of_characters(row, line)}
    scalars: dict[int, list[yaml.ScalarEvent]] = defaultdict(list)
    if not faults:
        faults |= {*_faults_of_yaml(lines, scalars)}
        faults |= {*_faults_of_keys(scalars)}
    if not faults:
        faults = {*_read_lines(lines, scalars, texts)}
    for row, reason, message, at in sorted(faults):
        report.add(reason, row + 2, message, at=at)
    return None if faults else texts


def _faults_of_characters(row: int, line: str) -> Iterator[_Fault]:
    if (tab := line.find("\t")) >= 0:
        yield _Fault(row, Reason.YAML_TAB, f"a tab at column {tab + 1}")
    if match := _INVISIBLE.search(line):
        message = f"U+{ord(match[0]):04X} at column {match.start() + 1}"
        yield _Fault(row, Reason.CONTROL_CHARACTER, message)


def _faults_of_yaml(
    lines: Sequence[str], scalars: dict[int, list[yaml.ScalarEvent]]
) -> Iterator[_Fault]:
    """Yield what is no YAML, or more than one plain mapping of it has; fill `scalars`: row → those
    that begin there.
    """
    depth = 0
    try:
        for event in yaml.parse("\n".join([*lines, ""]), Loader=yaml.SafeLoader):
            row = event.start_mark.line if event.start_mark else 0
            if isinstance(event, yaml.DocumentStartEvent) and event.explicit:
                yield _Fault(row, Reason.SECOND_DOCUMENT, "")
                return
            for feature in _features_of(event):
                yield _Fault(row, Reason.YAML_FEATURE, feature)
            if isinstance(event, yaml.ScalarEvent):
                scalars[row].append(event)
                if depth < 2 and len(scalars) > 1:
                    yield _Fault(row, Reason.FRONT_MATTER_SHAPE, "a text beside `handoff:`")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                return
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        yield _Fault(mark.line if mark else 0, Reason.YAML_INVALID, error.problem or "")
    except Exception as error:
        # PyYAML lets others through, such as OverflowError for "\UFFFFFFFF"; none may end the
        # daemon.
        yield _Fault(0, Reason.YAML_INVALID, f"{type(error).__name__} while reading it")


def _features_of(event: yaml.Event) -> Iterator[str]:
    match event:
        case yaml.DocumentEndEvent() if event.explicit:
            yield "a document end `...`"
        case yaml.AliasEvent():
            yield f"an alias `*{event.anchor}`"
            return
        case yaml.MappingStartEvent() if event.flow_style:
            yield "a flow mapping `{…}`"
        case yaml.SequenceStartEvent() if event.flow_style:
            yield "a flow sequence `[…]`"
        case yaml.ScalarEvent() if event.style in _BLOCK:
            yield f"a block scalar `{event.style}`"
    if anchor := getattr(event, "anchor", None):
        yield f"an anchor `&{anchor}`"
    if tag := getattr(event, "tag", None):
        yield f"a tag `{tag}`"


def _faults_of_keys(scalars: Mapping[int, Sequence[yaml.ScalarEvent]]) -> Iterator[_Fault]:
    """Yield the faults of the first text of each line, the key, and those of its value."""
    seen: set[tuple[int, str]] = set()
    for row, (key, *values) in sorted(scalars.items()):
        column, name = _columns(key)[0], key.value
        at = pointer_to("handoff", name) if column else pointer_to(name)
        if name == "<<" and not key.style:
            yield _Fault(row, Reason.YAML_FEATURE, "a merge key `<<`")
        if not name or _NOT_ONE_LINE.search(name) or _SURROGATE.search(name):
            message = "a key that is empty or cannot be shown"
            yield _Fault(row, Reason.FRONT_MATTER_SHAPE, message)
        elif (column, name) in seen:
            yield _Fault(row, Reason.DUPLICATE_KEY, f"the key {name!r} is used twice", at)
        seen.add((column, name))
        for value in values:
            if match := _SURROGATE.search(value.value):
                message = f"U+{ord(match[0]):04X} in the value"
                yield _Fault(row, Reason.LONE_SURROGATE, message, at)
            if value.style not in _BLOCK and (match := _NOT_ONE_LINE.search(value.value)):
                message = f"U+{ord(match[0]):04X} in the value"
                yield _Fault(row, Reason.CONTROL_CHARACTER, message, at)


def _read_lines(
    lines: Sequence[str], scalars: Mapping[int, Sequence[yaml.ScalarEvent]], texts: dict[str, str]
) -> Iterator[_Fault]:
    """Fill `texts` from lines that have a key, a colon and a value each, below `handoff:`; yield
    what else there is.
    """
    written = [row for row, line in enumerate(lines) if line.strip()]
    for row in written:
        own = scalars.get(row, ())
        fault = _fault_of_line(lines[row], own, is_top=row == written[0])
        if fault:
            yield fault._replace(row=row)
        elif row != written[0]:
            texts[own[0].value] = own[1].value
    if len(written) < 2:
        yield _Fault(0, Reason.FRONT_MATTER_SHAPE, "there is no `handoff:` with a key below it")


def _fault_of_line(
    line: str, scalars: Sequence[yaml.ScalarEvent], *, is_top: bool
) -> _Fault | None:
    """Return what else a line has than a key, a colon and a value, or at the top `handoff:`."""
    reason = Reason.FRONT_MATTER_SHAPE
    if len(scalars) != (1 if is_top else 2):
        return _describe_leftover(line)
    key, last = scalars[0], scalars[-1]
    if last.end_mark and last.start_mark and last.end_mark.line != last.start_mark.line:
        return _Fault(0, reason, f"the value of {key.value!r} continues in the next line")
    (begin, colon_at), (value_at, end) = _columns(key), _columns(last)
    before, rest = line[:begin].strip(), line[end:].strip()
    if before:
        return _Fault(0, Reason.YAML_FEATURE if is_top else reason, f"an explicit key `{before}`")
    if is_top:
        is_whole = rest == ":" and key.value == "handoff"
        return None if is_whole else _describe_leftover(rest.removeprefix(":") or line)
    if line[colon_at:value_at].strip() != ":":
        return _describe_leftover(line[colon_at:value_at])
    return _describe_leftover(rest) if rest else None


def _describe_leftover(text: str) -> _Fault:
    shown = text.strip()[:40]
    if shown.startswith("#"):
        return _Fault(0, Reason.YAML_FEATURE, f"a comment `{shown}`")
    message = f"{shown!r} is no `key: value` below `handoff:`"
    return _Fault(0, Reason.FRONT_MATTER_SHAPE, message)


def _columns(event: yaml.Event) -> tuple[int, int]:
    """Return where an event begins and ends in its line."""
    start, end = event.start_mark, event.end_mark
    return (start.column, end.column) if start and end else (0, 0)
