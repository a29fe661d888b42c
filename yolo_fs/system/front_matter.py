"""Reads the front matter of HANDOFF.md strictly: text under each key of `handoff:`, no other YAML.

Only PyYAML's event stream is used, so `no` stays "no", `0123` stays "0123" and no value refers to
another. Every character of the front matter must then belong to a key or its value, so that nothing
hides in a comment. See docs/dev/faults.md#f54.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

from yolo_fs.core.reasons import Reason
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


def _packet(lines: Sequence[str], report: FindingList) -> dict[str, str] | None:
    """Return the packet, or None when it has any fault."""
    faults = [
        (number, *fault)
        for number, line in enumerate(lines, 2)
        for fault in _faults_of_characters(line)
    ]
    for number, reason, message in faults:
        report.add(reason, number, message)
    return None if faults else _Packet(lines, report).read()


def _faults_of_characters(line: str) -> Iterator[tuple[Reason, str]]:
    if (tab := line.find("\t")) >= 0:
        yield Reason.YAML_TAB, f"a tab at column {tab + 1}"
    if match := _INVISIBLE.search(line):
        yield Reason.CONTROL_CHARACTER, f"U+{ord(match[0]):04X} at column {match.start() + 1}"


class _Span(NamedTuple):
    """Where something begins and ends."""

    row: int
    column: int
    end_row: int
    end_column: int


class _Member(NamedTuple):
    """A key and its value, by position. The value of `handoff` itself is elsewhere."""

    key: _Span
    value: _Span | None
    name: str


@dataclass(slots=True)
class _Packet:
    """Follows the events of one front matter and collects its members, or the faults."""

    lines: Sequence[str]
    report: FindingList
    texts: dict[str, str] = field(default_factory=dict)
    tops: list[str] = field(default_factory=list)
    members: list[_Member] = field(default_factory=list)
    faults: set[tuple[Reason, int, str]] = field(default_factory=set)
    depth: int = 0
    refused_depth: int = 0
    """Depth of the collection that was rejected as a whole; 0 for none."""
    key: yaml.ScalarEvent | None = None
    """The key whose value comes next."""

    def read(self) -> dict[str, str] | None:
        try:
            for event in yaml.parse("\n".join([*self.lines, ""]), Loader=yaml.SafeLoader):
                self._take(event)
                if self.depth > MAX_DEPTH or self.report.is_full:
                    return None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._fault(Reason.YAML_INVALID, mark.line if mark else 0, error.problem or "")
        except Exception as error:
            # PyYAML lets others through, such as OverflowError for "\UFFFFFFFF"; none may end the
            # daemon.
            self._fault(Reason.YAML_INVALID, 0, f"{type(error).__name__} while reading it")
        self._conclude()
        return None if self.faults else self.texts

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent() if event.explicit:
                self._fault(Reason.SECOND_DOCUMENT, _span(event).row, "")
            case yaml.DocumentEndEvent() if event.explicit:
                self._reject_feature(event, "a document end `...`")
            case yaml.AliasEvent():
                self._reject_feature(event, f"an alias `*{event.anchor}`")
                self.key = None
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()
            case yaml.ScalarEvent():
                self._scalar(event)

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        self._reject_decorations(event)
        self.depth += 1
        if fault := self._fault_of_collection(event):
            self._fault(*fault)
            self.refused_depth = self.refused_depth or self.depth
        if self.depth == 2 and self.key is not None:
            self.members.append(_Member(_span(self.key), None, self.key.value))
        self.key = None

    def _fault_of_collection(
        self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent
    ) -> tuple[Reason, int, str] | None:
        row, is_mapping = _span(event).row, isinstance(event, yaml.MappingStartEvent)
        if event.flow_style:
            return (
                Reason.YAML_FEATURE,
                row,
                "a flow mapping `{…}`" if is_mapping else "a flow sequence `[…]`",
            )
        if not is_mapping:
            return Reason.FRONT_MATTER_SHAPE, row, "a list"
        if self.depth == 2 and self.key is None:
            return Reason.FRONT_MATTER_SHAPE, row, "a mapping as a key"
        return (
            (Reason.FRONT_MATTER_SHAPE, row, "a mapping within the packet")
            if self.depth > 2
            else None
        )

    def _close(self) -> None:
        self.depth -= 1
        self.key = None
        if self.depth < self.refused_depth:
            self.refused_depth = 0

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._reject_decorations(event)
        if event.style in _BLOCK:
            self._reject_feature(event, f"a block scalar `{event.style}`")
        if self.depth == 0:
            self._fault(
                Reason.FRONT_MATTER_SHAPE, _span(event).row, "a single value, not a mapping"
            )
        elif self.refused_depth:
            return
        elif self.key is None:
            self._take_key(event)
        else:
            self._take_value(self.key, event)
            self.key = None

    def _take_key(self, event: yaml.ScalarEvent) -> None:
        self.key = event
        if event.value == "<<" and not event.style:
            self._reject_feature(event, "a merge key `<<`")
        if not event.value or _NOT_ONE_LINE.search(event.value) or _SURROGATE.search(event.value):
            self._fault(
                Reason.FRONT_MATTER_SHAPE,
                _span(event).row,
                "a key that is empty or cannot be shown",
            )
        if event.value in (self.tops if self.depth == 1 else self.texts):
            self._fault(
                Reason.DUPLICATE_KEY,
                _span(event).row,
                f"the key {event.value!r} is used twice",
                event.value,
            )
        if self.depth == 1:
            self.tops.append(event.value)

    def _take_value(self, key: yaml.ScalarEvent, event: yaml.ScalarEvent) -> None:
        row, name = _span(key).row, key.value
        if self.depth == 1:
            self._fault(Reason.FRONT_MATTER_SHAPE, row, f"{name!r} holds no mapping", name)
            return
        if match := _SURROGATE.search(event.value):
            self._fault(Reason.LONE_SURROGATE, row, f"U+{ord(match[0]):04X} in the value", name)
        if event.style not in _BLOCK and (match := _NOT_ONE_LINE.search(event.value)):
            self._fault(Reason.CONTROL_CHARACTER, row, f"U+{ord(match[0]):04X} in the value", name)
        self.members.append(_Member(_span(key), _span(event), name))
        self.texts[name] = event.value

    def _reject_decorations(self, event: yaml.NodeEvent) -> None:
        if event.anchor is not None:
            self._reject_feature(event, f"an anchor `&{event.anchor}`")
        if (tag := getattr(event, "tag", None)) is not None:
            self._reject_feature(event, f"a tag `{tag}`")

    def _conclude(self) -> None:
        """Reject what the events do not show: comments, explicit keys, values on several lines."""
        if not self.faults:
            for row, message in self._find_unaccounted_rows():
                is_feature = message.startswith(("a comment", "an explicit key"))
                self._fault(
                    Reason.YAML_FEATURE if is_feature else Reason.FRONT_MATTER_SHAPE, row, message
                )
        if not self.faults and (self.tops != ["handoff"] or not self.texts):
            named = ", ".join(repr(top) for top in self.tops) or "nothing"
            self._fault(Reason.FRONT_MATTER_SHAPE, 0, f"it holds {named}")

    def _find_unaccounted_rows(self) -> Iterator[tuple[int, str]]:
        """Yield the rows that have more than one key, a colon and one value."""
        members = {member.key.row: member for member in self.members}
        for row, line in enumerate(self.lines):
            if row not in members:
                if line.strip():
                    yield row, _describe_leftover(line)
                continue
            key, value, name = members[row]
            if key.end_row != row or (value and (value.row, value.end_row) != (row, row)):
                yield row, f"the value of {name!r} is not on the line of its key"
            elif before := line[: key.column].strip():
                yield row, f"an explicit key `{before}`"
            elif value and line[key.end_column : value.column].strip() != ":":
                yield row, _describe_leftover(line[key.end_column : value.column])
            elif (rest := line[value.end_column if value else key.end_column :].strip()) != (
                "" if value else ":"
            ):
                yield row, _describe_leftover(rest.removeprefix(":"))

    def _reject_feature(self, event: yaml.Event, what: str) -> None:
        self._fault(Reason.YAML_FEATURE, _span(event).row, what)

    def _fault(self, reason: Reason, row: int, message: str, key: str = "") -> None:
        if (reason, row, message) in self.faults:
            return
        self.faults.add((reason, row, message))
        pointer = "/" + key.replace("~", "~0").replace("/", "~1") if key else ""
        self.report.add(
            reason, row + 2, message, at=f"/handoff{pointer}" if key and self.depth > 1 else pointer
        )


def _describe_leftover(text: str) -> str:
    shown = text.strip()[:40]
    return f"a comment `{shown}`" if shown.startswith("#") else f"{shown!r} belongs to no key"


def _span(event: yaml.Event) -> _Span:
    start, end = event.start_mark, event.end_mark
    return (
        _Span(start.line, start.column, end.line, end.column)
        if start and end
        else _Span(0, 0, 0, 0)
    )
