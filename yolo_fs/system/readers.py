"""The strict readers of all file formats, among them JSON and JSONL.

They report every fault of a file with its line and place, and never raise.

Each value is read in two steps: a quick decoder that accepts only what is certainly right, and a
close look at the rest. jsonlines reads the lines, with our decoder.

The close look returns the value, or every fault with its place. The standard decoder alone accepts
NaN, overflow, duplicate keys and lone surrogates, and crashes on deep nesting. See
docs/dev/faults.md#f53.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from yolo_fs.core.foreign_json import place_too_deep
from yolo_fs.core.reasons import Fault, Level, Reason, errors, pointer_to
from yolo_fs.schemas.layout import Format, Record
from yolo_fs.system.text_checks import (
    BYTE_ORDER_MARK,
    CONFLICT,
    MAX_FINDINGS,
    FindingList,
    Limits,
    Reading,
    Text,
    decode,
    finish,
    read_text,
)


class NotVouchedForError(ValueError):
    """The quick decoder leaves a text to the close look."""


class Located(NamedTuple):
    """A fault and its row in the text, from 0."""

    row: int
    fault: Fault


# --- the quick decoder ---

_KEYS_MOST = 1_000
"""Most keys that are shared. More would be the writers' own, whose number has no limit."""
_KEYS: dict[str, str] = {}

_ZEROS = bytes(ord("0") if char in b"0123456789" else char for char in range(256))
_MAYBE_LONE = re.compile(
    r"\\\\u"  # an escaped backslash makes what follows look like an escape
    r"|\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])"
    r"|\\u[dD][c-fC-F]..(?<!\\u[dD][89abAB]..\\u[dD]...)"
)


def quick_decoder(data: bytes, limits: Limits) -> Callable[[str | bytes], dict[str, Any]]:
    """Return a decoder for lines of `data` that raises `ValueError` unless one is surely right."""
    has_surrogates = b"\\" in data and (b"\\ud" in data or b"\\uD" in data)
    has_long_numbers = b"0" * (limits.max_digits + 1) in data.translate(_ZEROS)
    raw_decode = _build_decoder(_short(limits.max_digits) if has_long_numbers else int).raw_decode

    def loads(line: str | bytes) -> dict[str, Any]:
        text = str(line)
        if _find_deep_nesting(text, limits.max_depth):
            raise NotVouchedForError
        if has_surrogates and _MAYBE_LONE.search(text):
            raise NotVouchedForError
        try:
            value, end = raw_decode(text)
        except (RecursionError, MemoryError) as error:
            raise NotVouchedForError from error
        if end != len(text) or type(value) is not dict:
            raise NotVouchedForError
        return value

    return loads


def _build_decoder(parse_int: Callable[[str], int]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_require_unique_keys,
        parse_float=_finite,
        parse_constant=_refuse,
        parse_int=parse_int,
    )


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = {_shared(key): member for key, member in pairs}
    if len(value) != len(pairs):
        raise NotVouchedForError
    return value


def _shared(key: str) -> str:
    """Return the one string for a key: the same few are in each line of thousands of artifacts."""
    return _KEYS.setdefault(key, key) if len(_KEYS) < _KEYS_MOST else _KEYS.get(key, key)


def _finite(token: str) -> float:
    value = float(token)
    if value - value != 0:
        raise NotVouchedForError
    return value


def _refuse(token: str) -> int:
    raise NotVouchedForError(token)


def _short(max_digits: int) -> Callable[[str], int]:
    return lambda token: int(token) if len(token) <= max_digits else _refuse(token)


# --- the close look ---

"""Error of a line that does not begin like JSON."""


class _Object(list[tuple[str, Any]]):
    """The members of an object, including duplicates."""


class _Number(NamedTuple):
    """A number, or what the standard decoder takes for one, as it is written."""

    text: str


_FAITHFUL = json.JSONDecoder(
    object_pairs_hook=_Object, parse_float=_Number, parse_int=_Number, parse_constant=_Number
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN_CHARS = 64


def look_closely(text: str, limits: Limits) -> tuple[Any, list[Located]]:
    """Return the JSON object in a text, or None and every fault of it."""
    if known := debris(text) or _find_deep_nesting(text, limits.max_depth):
        return None, [Located(0, known)]
    try:
        tree = _FAITHFUL.decode(text)
        faults = [
            Located(0, fault) for fault in islice(_faults(tree, "", limits), MAX_FINDINGS + 1)
        ]
        if not faults and not isinstance(tree, _Object):
            faults = [Located(0, Fault(Reason.NOT_AN_OBJECT, message=f"it is {_kind(tree)}"))]
        return None if faults else json.loads(text), faults
    except json.JSONDecodeError as error:
        return None, [Located(error.lineno - 1, _fault_for_syntax(error))]
    except RecursionError:
        return None, [Located(0, Fault(Reason.NESTING_TOO_DEEP))]
    except (MemoryError, ValueError) as error:
        return None, [
            Located(
                0,
                Fault(Reason.JSON_PARSE_ERROR, message=f"{type(error).__name__} while reading it"),
            )
        ]


def debris(line: str) -> Fault | None:
    """Recognise text that is not meant as JSON at all."""
    if line.startswith(("```", "~~~")):
        return Fault(Reason.FENCED_JSON)
    if CONFLICT.match(line) or line == "=======":
        return Fault(Reason.CONFLICT_MARKER)
    if line.startswith("\ufeff"):
        return Fault(Reason.BYTE_ORDER_MARK, message="a byte order mark at column 1")
    return None


def _find_deep_nesting(text: str, max_depth: int) -> Fault | None:
    """Recognise nesting beyond the limit in linear time, before a recursive parser sees it."""
    at = place_too_deep(text, max_depth)
    if at is None:
        return None
    column = at - text.rfind("\n", 0, at)
    return Fault(Reason.NESTING_TOO_DEEP, message=f"deeper than {max_depth} at column {column}")


_TYPOGRAPHIC_QUOTES = "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"


def _fault_for_syntax(error: json.JSONDecodeError) -> Fault:
    seen = error.doc[error.pos : error.pos + 1]
    if error.msg.startswith("Invalid control character") or seen == "\x1e":
        return Fault(Reason.CONTROL_CHARACTER, message=f"U+{ord(seen):04X} at column {error.colno}")
    if seen and seen in _TYPOGRAPHIC_QUOTES:
        quotes = f"the typographic quotation mark {seen} at column {error.colno}"
        return Fault(
            Reason.JSON_PARSE_ERROR,
            message=quotes,
            expected='"',
            hint="write straight quotes around each key and text",
        )
    message = "another value follows the first" if error.msg == "Extra data" else error.msg
    excerpt = _excerpt_at(error)
    return Fault(Reason.JSON_PARSE_ERROR, message=f"{message} at column {error.colno}{excerpt}")


def _excerpt_at(error: json.JSONDecodeError) -> str:
    """Return what stands where a text stops being JSON; nothing of one with a credential."""
    from yolo_fs.core.credentials import redact  # compiles patterns that few processes need

    start = error.doc.rfind("\n", 0, error.pos) + 1
    line = error.doc[start:].partition("\n")[0]
    excerpt = line[error.pos - start :]
    if not excerpt or redact(line) != line:
        return ""
    return (
        f": {excerpt!r}" if len(excerpt) <= _EXCERPT_CHARS else f": {excerpt[:_EXCERPT_CHARS]!r}…"
    )


_EXCERPT_CHARS = 32


def _faults(value: Any, at: str, limits: Limits) -> Iterator[Fault]:
    match value:
        case _Number(text=token):
            yield from _faults_of_number(token, at, limits)
        case _Object():
            yield from _faults_of_object(value, at, limits)
        case list():
            for index, item in enumerate(value):
                yield from _faults(item, f"{at}/{index}", limits)
        case str() if surrogate := _SURROGATE.search(value):
            yield Fault(Reason.LONE_SURROGATE, at, f"\\u{ord(surrogate[0]):04x} has no partner")


def _faults_of_object(members: _Object, at: str, limits: Limits) -> Iterator[Fault]:
    seen: set[str] = set()
    for key, item in members:
        here = at + pointer_to(key[:_SHOWN_CHARS])
        if key in seen:
            yield Fault(
                Reason.DUPLICATE_KEY,
                here,
                f"the key {json.dumps(key[:_SHOWN_CHARS])} is used twice",
            )
        if surrogate := _SURROGATE.search(key):
            yield Fault(
                Reason.LONE_SURROGATE, here, f"\\u{ord(surrogate[0]):04x} has no partner in a key"
            )
        seen.add(key)
        yield from _faults(item, here, limits)


def _faults_of_number(token: str, at: str, limits: Limits) -> Iterator[Fault]:
    digits = token.removeprefix("-")
    if digits in ("NaN", "Infinity"):
        yield Fault(Reason.NOT_FINITE, at, f"{token} is not JSON")
    elif not digits.isdigit():
        if abs(float(token)) == float("inf"):
            yield Fault(Reason.NOT_FINITE, at, f"{token[:_SHOWN_CHARS]} overflows")
    elif len(digits) > limits.max_digits:
        yield Fault(
            Reason.NUMBER_TOO_LARGE, at, f"{len(digits)} digits; the limit is {limits.max_digits}"
        )


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case _Number():
            return "a number"
        case str():
            return "a string"
        case _:
            return "an array"


# --- whole files ---


def read_lines(data: bytes, path: str, limits: Limits = Limits()) -> Reading:
    """Read a JSONL file: one object per line.

    A last line without a newline is reported. It is read when it is a complete object, whose last
    brace proves that nothing of it is missing.
    """
    report = FindingList(path)
    text = _decode_json_text(data, limits, report)
    if text is None:
        return finish(report, None)
    if _is_one_value_on_many_lines(text, limits):
        message = f"one JSON value is spread over {len(text.lines)} lines"
        report.add(Reason.JSON_PARSE_ERROR, 1, message)
        return finish(report, text)
    records = _records(data, text, limits, report)
    if limits.stops_at_errors and report.is_over:
        return Reading((), report.findings(), text.torn)
    if text.torn and len(text.lines) + 1 not in text.refused:
        value, faults = look_closely(text.tail, limits)
        if not faults and isinstance(value, dict):
            number = len(text.lines) + 1
            report.add(Reason.UNTERMINATED, number, level=Level.WARNING)
            return Reading((*records, Record(number, value)), report.findings(), torn=False)
    reading = finish(report, text, records)
    is_spoiled = any(each.line <= len(text.lines) for each in errors(reading.findings))
    return reading._replace(torn=reading.torn and not is_spoiled)


_ADVISED_BY_LINE = (Reason.JSON_PARSE_ERROR, Reason.NOT_AN_OBJECT)
_WHOLE = "write one whole object, and nothing else"
"""Advice for these, in a file that is no JSONL."""


def read_object(data: bytes, path: str, limits: Limits = Limits()) -> Reading:
    """Read a file that is one JSON object, on any number of lines: one record, of line 1.

    A complete object without a final newline is a warning and not torn: its last brace proves that
    nothing is missing.
    """
    report = FindingList(path)
    text = _decode_json_text(data, limits, report)
    if text is None or text.refused:
        return finish(report, text)
    lines = text.whole()
    value, faults = look_closely("\n".join(lines), limits)
    if faults:
        wreck = [(row, fault) for row, line in enumerate(lines) if (fault := debris(line))]
        for row, fault in wreck or faults:
            if fault.reason in _ADVISED_BY_LINE and not fault.hint:
                fault = fault._replace(expected="one JSON object", hint=_WHOLE)
            report.add_fault(row + 1, fault)
        return finish(report, text)
    if text.torn:
        report.add(Reason.UNTERMINATED, len(lines), level=Level.WARNING)
    return Reading((Record(1, value),), report.findings(), torn=False)


def _decode_json_text(data: bytes, limits: Limits, report: FindingList) -> Text | None:
    if (
        len(data) <= limits.max_file_bytes
        and data.count(b"{") + data.count(b"[") > limits.max_brackets
    ):
        report.add(
            Reason.FILE_TOO_LARGE,
            0,
            f"more objects and arrays than the limit of {limits.max_brackets}",
        )
        return None
    return decode(data, limits, report)


def _records(data: bytes, text: Text, limits: Limits, report: FindingList) -> list[Record]:
    import jsonlines  # a tenth of all that a command imports: only those who meet JSONL pay for it

    records: list[Record] = []
    blank: list[int] = []
    reader = jsonlines.Reader(_shield_lines(data, text.lines), loads=quick_decoder(data, limits))
    for number, line in enumerate(text.lines, 1):
        try:
            records.append(Record(number, reader.read(type=dict)))
        except jsonlines.InvalidLineError:
            if number in text.refused:
                continue
            if not line.strip(" \t"):
                blank.append(number)
            elif (value := _object(number, line, limits, report)) is not None:
                records.append(Record(number, value))
            elif limits.stops_at_errors and report.is_over:
                break
    report.add_lines(Reason.BLANK_LINE, blank, Level.WARNING)
    return records


def _object(number: int, line: str, limits: Limits, report: FindingList) -> dict[str, Any] | None:
    """Return the object of a line that the quick decoder refused, or report its faults."""
    value: dict[str, Any] | None
    value, faults = look_closely(line, limits)
    for _, fault in faults:
        report.add_fault(number, fault)
    return value


def _shield_lines(data: bytes, lines: list[str]) -> list[str]:
    """Return the lines protected from jsonlines, which strips a leading mark or separator.

    These are faults, and must be reported.
    """
    if BYTE_ORDER_MARK not in data and b"\x1e" not in data:
        return lines
    return [f" {line}" if line.startswith(("\ufeff", "\x1e")) else line for line in lines]


def _is_one_value_on_many_lines(text: Text, limits: Limits) -> bool:
    """Recognise a pretty-printed object, or an array of objects: one finding, not one per line."""
    if (
        text.torn
        or text.refused
        or len(text.lines) < 2
        or text.lines[0].strip(" \t") not in ("{", "[")
    ):
        return False
    _, faults = look_closely("\n".join(text.lines), limits)
    return not any(_breaks_syntax(fault) for _, fault in faults)


def _breaks_syntax(fault: Fault) -> bool:
    return fault.reason in (
        Reason.JSON_PARSE_ERROR,
        Reason.CONTROL_CHARACTER,
        Reason.NESTING_TOO_DEEP,
    )


# --- one reader for each format ---


def _read_front_matter(data: bytes, path: str, limits: Limits) -> Reading:
    from yolo_fs.system.front_matter import read_front_matter  # only those who meet YAML pay for it

    return read_front_matter(data, path, limits)


def _read_toon(data: bytes, path: str, limits: Limits) -> Reading:
    from yolo_fs.system.toon import read_toon

    return read_toon(data, path, limits)


READERS: Mapping[Format, Callable[[bytes, str, Limits], Reading]] = {
    Format.JSON: read_object,
    Format.JSONL: read_lines,
    Format.FRONT_MATTER: _read_front_matter,
    Format.TOON: _read_toon,
    Format.TEXT: read_text,
}

FORMAT_BY_SUFFIX: Mapping[str, Format] = {
    "md": Format.TEXT,
    "json": Format.JSON,
    "jsonl": Format.JSONL,
    "toon": Format.TOON,
}
"""Formats of files that are not artifacts."""
