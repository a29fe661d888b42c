"""The two forms of a handoff packet: text in a chat, and front matter of HANDOFF.md. Pure.

Finds, parses and writes both. See docs/dev/sources.md#document-001.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from yolo_fs.core.reasons import Fault, Finding, Reason
from yolo_fs.handoffs.lifecycle import faults_of
from yolo_fs.protocol.handoffs import PACKET_FIELDS, PACKET_HEADING
from yolo_fs.schemas.layout import Strictness

if TYPE_CHECKING:
    from yolo_fs.schemas.packet import Packet

FENCE = "---"
TOP = "/handoff"
"""Pointer to the packet within the front matter."""

_LONGEST_HEADING = 100
_NEARLY = re.compile(r"(?:[^\w=]*+=)++\s*+auto[\s_-]*+handoff\s*+=\W*+", re.IGNORECASE)
"""A misspelt heading: a packet below one must stop its receiver."""

_KEY = re.compile(r"[A-Za-z_]\w*")
_MEMBER = re.compile(r"""\s+(["']?)(?P<key>\w+)\1\s*:""")
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Characters that the parser of HANDOFF.md rejects: both forms carry the same values."""

_PLAIN = re.compile(r"[^\W_](?:[\w ./@+=(),;'-]*[\w./)])?")
"""Values that YAML reads unquoted."""

_FIELD_NAMES = frozenset(row.name for row in PACKET_FIELDS)


@dataclass(frozen=True, slots=True)
class ParsedPacket:
    """A packet as found in a text, before its values are checked."""

    path: str = ""
    """File that the text comes from, by the name that findings use for it."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Field → value."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Field → its line."""
    line: int = 0
    """Where the packet begins."""
    top: str = ""
    """Pointer to the packet: `TOP` in HANDOFF.md, empty in a chat."""
    findings: tuple[Finding, ...] = ()
    """Faults of its form."""

    def place(self, fault: Fault) -> Finding:
        """Return a fault, whose pointer is relative to the packet, as a finding with its line."""
        line = self.lines.get(fault.at.removeprefix("/").partition("/")[0], self.line)
        return fault._replace(at=self.top + fault.at).as_finding(self.path, line)


def read_chat(lines: Sequence[str], path: str = "") -> ParsedPacket:
    """Return the last packet of a chat: it supersedes the earlier ones.

    A packet ends at a blank line, at the fence of a code block, or with the text.
    """
    starts = [number for number, line in enumerate(lines, 1) if is_heading(line)]
    if not starts:
        return ParsedPacket(path, findings=(_report_missing_packet(path),))
    start = starts[-1]
    findings = [] if lines[start - 1] == PACKET_HEADING else [_report_bad_heading(path, start)]
    texts: dict[str, str] = {}
    places: dict[str, int] = {}
    for number, line in enumerate(takewhile(_is_inside, lines[start:]), start + 1):
        name, _, rest = line.partition(":")
        findings += (replace(fault, path=path, line=number) for fault in _faults_of(line, texts))
        if _KEY.fullmatch(name) and name not in texts:
            texts[name] = rest.removeprefix(" ")
            places[name] = number
    return ParsedPacket(path, texts, places, start, findings=tuple(findings))


def from_front_matter(
    texts: Mapping[str, str], lines: Sequence[str], path: str, findings: Sequence[Finding] = ()
) -> ParsedPacket:
    """Return the packet of a HANDOFF.md from its strictly parsed front matter.

    The result has the line of each field.

    `texts`: parsed values; empty when it was rejected. `findings`: those of the parser.
    """
    keys = _FIELD_NAMES | texts.keys()
    places: dict[str, int] = {}
    for number, line in enumerate(takewhile(lambda line: line != FENCE, lines[1:]), 2):
        if (match := _MEMBER.match(line)) and match["key"] in keys:
            places.setdefault(match["key"], number)
    at = {number: f"{TOP}/{key}" for key, number in places.items()}
    placed = tuple(
        finding if finding.at else replace(finding, at=at.get(finding.line, ""))
        for finding in findings
    )
    return ParsedPacket(path, texts, places, 1, TOP, placed)


def packet_of(
    written: ParsedPacket, mode: Strictness = Strictness()
) -> tuple[Packet | None, tuple[Finding, ...]]:
    """Return the packet, None when it is incomplete, and all of its faults."""
    if written.findings and not written.texts:
        return None, written.findings
    from yolo_fs.schemas.check import check
    from yolo_fs.schemas.packet import DirectivePacket, Packet

    shaped, faults = check(DirectivePacket if written.top else Packet, written.texts, mode)
    packet = shaped if isinstance(shaped, Packet) else None
    more = faults_of(packet) if packet else ()
    return packet, (*written.findings, *(written.place(fault) for fault in (*faults, *more)))


def is_heading(line: str) -> bool:
    """Return whether a line is the heading of a packet in a chat, or nearly."""
    return len(line) <= _LONGEST_HEADING and _NEARLY.fullmatch(line) is not None


def _is_inside(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("```")


def _faults_of(line: str, texts: Mapping[str, str]) -> Iterator[Finding]:
    name, colon, rest = line.partition(":")
    if hidden := _HIDDEN.search(line):
        message = f"U+{ord(hidden[0]):04X} at column {hidden.start() + 1}"
        yield Finding(
            Reason.CONTROL_CHARACTER, message=message, expected="text without it", hint="remove it"
        )
    if not colon or not _KEY.fullmatch(name):
        message, expected = (
            "the line belongs to no field",
            "one `field: value` per line, all nine without a break",
        )
        yield Finding(
            Reason.BAD_FORMAT, message=message, expected=expected, hint="put each value on one line"
        )
    elif name in texts:
        message = f"{name!r} is used more than once"
        yield Finding(
            Reason.DUPLICATE_KEY,
            "",
            0,
            f"/{name}",
            message,
            "each field once",
            "keep one of the two",
        )
    elif rest and not rest.startswith(" "):
        message, expected = "no blank follows the colon", f"`{name}: value`"
        yield Finding(
            Reason.BAD_FORMAT, "", 0, f"/{name}", message, expected, "put one blank after the colon"
        )


def _report_missing_packet(path: str) -> Finding:
    message = f"no line is `{PACKET_HEADING}`"
    hint = "ask the sender for a complete packet; 'yolo-fs handoff emit' writes one"
    return Finding(
        Reason.SECTION_MISSING, path, message=message, expected="a handoff packet", hint=hint
    )


def _report_bad_heading(path: str, line: int) -> Finding:
    message = "the heading is not spelled as agreed"
    return Finding(
        Reason.BAD_FORMAT,
        path,
        line,
        "",
        message,
        f"`{PACKET_HEADING}`",
        "ask the sender to correct it",
    )


def texts_of(packet: Packet) -> dict[str, str]:
    """Return the nine fields in their order."""
    return {row.name: getattr(packet, row.name) for row in PACKET_FIELDS}


def as_chat(packet: Packet) -> str:
    """Return the packet as it is put into a chat."""
    members = (f"{name}: {text}" for name, text in texts_of(packet).items())
    return "".join(f"{line}\n" for line in (PACKET_HEADING, *members))


def as_file(packet: Packet) -> str:
    """Return the HANDOFF.md of a packet."""
    return as_front_matter(texts_of(packet))


def as_front_matter(texts: Mapping[str, str]) -> str:
    """Return the front matter with these fields, in their order."""
    members = (f"  {name}: {_quoted(text)}" for name, text in texts.items())
    return "".join(f"{line}\n" for line in (FENCE, "handoff:", *members, FENCE))


def _quoted(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else "'" + text.replace("'", "''") + "'"
