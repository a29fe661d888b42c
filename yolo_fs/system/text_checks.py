"""What every text file must be before it is parsed: small, UTF-8, LF, without NUL, mark or merge
debris.

See docs/dev/faults.md#f16, #f53 and #f56.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from yolo_fs.core.reasons import Fault, Finding, Level, Reason
from yolo_fs.schemas.layout import Record

MAX_FINDINGS = 100
"""Most findings that are listed for a file. One more says that there were others."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""First bytes of a file that Windows writes as UTF-16."""
CONFLICT = re.compile(r"(?:<{7}|\|{7}|>{7})(?: |$)")
"""The lines of a git conflict, except the middle one, which may underline a Markdown heading."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LISTED_LINES = 10


class Limits(NamedTuple):
    """Limits on what a file may demand of its reader. See docs/dev/faults.md#f50 and #f53."""

    max_line_bytes: int = 1 << 20
    max_file_bytes: int = 8 << 20
    max_depth: int = 64
    """Nesting of objects and arrays."""
    max_digits: int = 20
    """Digits of a whole number."""
    max_lines: int = 100_000
    """Lines in a file. Bounds memory: a record of two bytes costs two hundred."""
    max_brackets: int = 500_000
    """Objects and arrays in a file; the opening brackets within its strings count too.

    Bounds memory as well.
    """
    stops_at_errors: bool = False
    """Whether to stop reading, and to return no record, once a file has more errors than are
    listed. Its judge needs no more, and others wait."""


class Reading(NamedTuple):
    """What a file says, and everything that is wrong with how it says it."""

    records: tuple[Record, ...]
    findings: tuple[Finding, ...]
    torn: bool
    """The file does not end in a newline, and what is whole of it can be read: it is still being
    written, or was cut."""


class Text(NamedTuple):
    """The lines of a file whose bytes have been examined."""

    lines: list[str]
    """Every line that ends in a newline, without it.

    A refused line is empty, so that line numbers stay correct."""
    refused: frozenset[int] = frozenset()
    """Numbers of the lines that have a finding already and cannot be read."""
    tail: str = ""
    """What follows the last newline."""
    torn: bool = False

    def whole(self) -> list[str]:
        """Return all lines, the torn one too."""
        return [*self.lines, self.tail] if self.torn else self.lines


class FindingList:
    """Collects the findings of one file and stops listing them after `MAX_FINDINGS`."""

    def __init__(self, path: str):
        self.path = path
        self._listed: list[Finding] = []
        self._unlisted: Finding | None = None

    @property
    def is_full(self) -> bool:
        return len(self._listed) >= MAX_FINDINGS

    @property
    def is_over(self) -> bool:
        """Whether there are errors, and more findings than are listed."""
        return self._unlisted is not None and self._unlisted.level is Level.ERROR

    def add(
        self,
        reason: Reason,
        line: int = 0,
        message: str = "",
        *,
        at: str = "",
        level: Level = Level.ERROR,
        advice: tuple[str, str] | None = None,
    ) -> None:
        """List a finding.

        `advice`: what is expected and what to do, where that differs from the reason's own.
        """
        expected, hint = advice or _ADVICE.get(reason, ("", ""))
        self._keep(Finding(reason, self.path, line, at, message, expected, hint, level))

    def add_lines(self, reason: Reason, numbers: Sequence[int], level: Level = Level.ERROR) -> None:
        """List a fault that many lines share as one finding."""
        if numbers:
            shown = ", ".join(str(number) for number in numbers[:_LISTED_LINES])
            more = (
                f" and {len(numbers) - _LISTED_LINES} more" if len(numbers) > _LISTED_LINES else ""
            )
            plural = "s" if len(numbers) > 1 else ""
            self.add(
                reason, numbers[0], f"{reason.sentence}: line{plural} {shown}{more}", level=level
            )

    def add_fault(self, line: int, fault: Fault) -> None:
        advice = (fault.expected, fault.hint) if fault.expected or fault.hint else None
        self.add(fault.reason, line, fault.message, at=fault.at, level=fault.level, advice=advice)

    def findings(self) -> tuple[Finding, ...]:
        """Return what was listed, and one finding for what was not."""
        return tuple(self._listed) if self._unlisted is None else (*self._listed, self._unlisted)

    def _keep(self, finding: Finding) -> None:
        if not self.is_full:
            self._listed.append(finding)
        elif self._unlisted is None or (self._unlisted.level, finding.level) == (
            Level.WARNING,
            Level.ERROR,
        ):
            message = (
                f"more than {MAX_FINDINGS} findings; the others are not listed, this is one of them"
            )
            hint = "correct what is listed, then look again"
            self._unlisted = Finding(
                finding.reason, self.path, finding.line, "", message, "", hint, finding.level
            )


def decode(data: bytes, limits: Limits, report: FindingList) -> Text | None:
    """Return the lines of a file, or None when it is empty or too large to be looked at."""
    content = data.removeprefix(BYTE_ORDER_MARK)
    if not content or content.isspace():
        report.add(Reason.EMPTY_FILE)
        return None
    if len(data) > limits.max_file_bytes:
        report.add(
            Reason.FILE_TOO_LARGE, 0, f"{len(data)} bytes; the limit is {limits.max_file_bytes}"
        )
        return None
    if data.count(b"\n") > limits.max_lines:
        report.add(Reason.FILE_TOO_LARGE, 0, f"more lines than the limit of {limits.max_lines}")
        return None
    if data.startswith(WIDE_MARKS) and b"\0" in data:
        report.add(Reason.NUL_BYTE, 1, "the file is UTF-16", advice=("UTF-8", "save it as UTF-8"))
        return None
    return _at_once(data, limits) or _line_by_line(data, limits, report)


def finish(report: FindingList, text: Text | None, records: Sequence[Record] = ()) -> Reading:
    """Return the reading of a file whose text, if any, has been parsed."""
    if text is None:
        return Reading((), report.findings(), torn=False)
    if text.torn:
        report.add(Reason.UNTERMINATED, len(text.lines) + 1)
    return Reading(tuple(records), report.findings(), text.torn)


def read_text(data: bytes, path: str, limits: Limits = Limits()) -> Reading:
    """Examine prose, such as Markdown: it has no records, only findings. Raises nothing."""
    report = FindingList(path)
    text = decode(data, limits, report)
    if text is not None:
        examine_controls(text.whole(), report)
        examine_conflicts(text.whole(), report)
    return finish(report, text)


def examine_controls(lines: Sequence[str], report: FindingList, first: int = 1) -> None:
    """List the control and bidirectional characters of lines; `first`: number of the first."""
    for number, line in enumerate(lines, first):
        if match := _CONTROL.search(line):
            report.add(
                Reason.CONTROL_CHARACTER,
                number,
                f"U+{ord(match[0]):04X} at column {match.start() + 1}",
            )


def examine_conflicts(lines: Sequence[str], report: FindingList) -> bool:
    """List the conflict markers of prose and return whether there are any."""
    markers = [number for number, line in enumerate(lines, 1) if CONFLICT.match(line)]
    middles = (
        [number for number, line in enumerate(lines, 1) if line == "======="] if markers else []
    )
    for number in sorted(markers + middles):
        report.add(Reason.CONFLICT_MARKER, number)
    return bool(markers)


def _at_once(data: bytes, limits: Limits) -> Text | None:
    """Return the text of a file without a fault, by passes in C; None if there may be one."""
    if b"\0" in data or b"\r" in data or data.startswith(BYTE_ORDER_MARK):
        return None
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        return None
    bytes_per_char = 1 if data.isascii() else 4
    if max(map(len, lines)) * bytes_per_char > limits.max_line_bytes:
        return None
    tail = lines.pop()
    return Text(lines, tail=tail, torn=bool(tail))


def _line_by_line(data: bytes, limits: Limits, report: FindingList) -> Text:
    start = 0
    if data.startswith(BYTE_ORDER_MARK):
        report.add(Reason.BYTE_ORDER_MARK, 1)
        start = len(BYTE_ORDER_MARK)
    pieces = data[start:].split(b"\n")
    report.add_lines(
        Reason.CARRIAGE_RETURN, [n for n, piece in enumerate(pieces, 1) if b"\r" in piece]
    )
    lines: list[str] = []
    refused: set[int] = set()
    for number, piece in enumerate(pieces, 1):
        raw = piece.removesuffix(b"\r")
        faults = list(_faults_of_bytes(raw, start, limits, is_last=number == len(pieces)))
        for fault in faults:
            report.add_fault(number, fault)
        if faults or b"\r" in raw:
            refused.add(number)
        lines.append("" if number in refused else raw.decode(errors="replace"))
        start += len(piece) + 1
    tail = lines.pop()
    return Text(lines, frozenset(refused), tail, torn=bool(pieces[-1]))


def _faults_of_bytes(raw: bytes, offset: int, limits: Limits, *, is_last: bool) -> Iterator[Fault]:
    if len(raw) > limits.max_line_bytes:
        yield Fault(
            Reason.LINE_TOO_LONG, message=f"{len(raw)} bytes; the limit is {limits.max_line_bytes}"
        )
    if (nul := raw.find(b"\0")) >= 0:
        yield Fault(Reason.NUL_BYTE, message=f"byte {nul + 1} of the line (offset {offset + nul})")
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        # A torn line may end within a character. That it is torn is reported already.
        if not (is_last and error.reason == "unexpected end of data"):
            place = f"byte {error.start + 1} of the line (offset {offset + error.start})"
            yield Fault(
                Reason.NOT_UTF8, message=f"0x{raw[error.start]:02x} at {place}: {error.reason}"
            )


_ADVICE = {
    Reason.EMPTY_FILE: ("at least one line", "write the content, or remove the file"),
    Reason.FILE_TOO_LARGE: ("a file within the limit", "split it, or refer to the data instead"),
    Reason.LINE_TOO_LONG: ("lines within the limit", ("split the record, or refer to the data "
                                                     "instead")),
    Reason.NOT_UTF8: ("UTF-8", ("save the file as UTF-8; 'iconv -f LATIN1 -t UTF-8 FILE' prints a "
                                 "Latin-1 file so")),
    Reason.BYTE_ORDER_MARK: ("UTF-8 without a byte order mark", "save the file as plain UTF-8"),
    Reason.NUL_BYTE: ("text without NUL", "write the file again: it was torn, or is UTF-16"),
    Reason.CARRIAGE_RETURN: ("Unix line ends (LF)", ("convert the file, for instance with "
                                                           "dos2unix")),
    Reason.CONTROL_CHARACTER: ("text without control characters", ("remove it, or escape it such "
                                                                  "as \\u001b in JSON")),
    Reason.CONFLICT_MARKER: ("one version of the content", ("keep the lines above ======= or those "
                                                           "below, and remove the three markers")),
    Reason.UNTERMINATED: ("a newline after the last line", ("write the rest of the last line, if "
                                                           "any, and a newline")),
    Reason.FENCED_JSON: ("bare JSON", "remove the Markdown fence"),
    Reason.BLANK_LINE: ("no blank lines", "remove them"),
    Reason.JSON_PARSE_ERROR: ("one JSON object", "write one whole object a line"),
    Reason.NESTING_TOO_DEEP: ("less nesting", "flatten the value, or write it as text"),
    Reason.NUMBER_TOO_LARGE: ("a number of ordinary size", "write it as a string"),
    Reason.NOT_FINITE: ("a finite number", "leave the key out, or write a string"),
    Reason.DUPLICATE_KEY: ("each key once", "keep one of the two"),
    Reason.LONE_SURROGATE: ("whole characters", ("write the character itself instead of half an "
                                                "escape pair")),
    Reason.NOT_AN_OBJECT: ("one JSON object", "write one whole object a line"),
    Reason.FRONT_MATTER_MISSING: ("`---` as the first line", ("begin the file with the front "
                                                             "matter")),
    Reason.FRONT_MATTER_UNCLOSED: ("a line `---` after the last key", "close the front matter"),
    Reason.FRONT_MATTER_SHAPE: ("`handoff:` and below it `  key: value` lines", ("use this form "
                                                                                "alone")),
    Reason.YAML_INVALID: ("lines such as `  objective: \"Fix it: now\"`", ("put the value in "
                                                                          "double quotes")),
    Reason.YAML_FEATURE: ("plain or quoted text as values", "put the value in double quotes"),
    Reason.YAML_TAB: ("two spaces of indentation", "replace the tab by spaces"),
    Reason.SECOND_DOCUMENT: ("one front matter", "remove the second one"),
    Reason.TOON_INVALID: ("TOON, indented by two spaces, with true counts", ("write it with a "
                                                                            "TOON library")),
}  # fmt: skip
