"""Reads JSONL and JSON files strictly: every fault of a file with its line and place, never an
exception.

jsonlines reads the lines, with our decoder. See docs/faults.md#f53.
"""

from __future__ import annotations

from typing import Any

from yolo_fs.edges.strict_json import debris, look_closely, quick_decoder
from yolo_fs.edges.text_checks import (
    BYTE_ORDER_MARK,
    FindingList,
    Limits,
    Reading,
    Text,
    decode,
    finish,
    read_text,
)
from yolo_fs.reasons import Fault, Level, Reason
from yolo_fs.schemas.layout import Record

__all__ = ["Limits", "Reading", "Record", "read_lines", "read_object", "read_text"]


def read_lines(data: bytes, path: str, limits: Limits = Limits()) -> Reading:
    """Read a JSONL file: one object per line.

    A last line without newline is reported; it is read when it is a whole object, whose last brace
    proves that nothing of it is missing.
    """
    report = FindingList(path)
    text = _json_text(data, limits, report)
    if text is None:
        return finish(report, None)
    if _is_one_value_on_many_lines(text, limits):
        message = f"one JSON value is spread over {len(text.lines)} lines"
        report.add(Reason.JSON_PARSE_ERROR, 1, message)
        return finish(report, text)
    records = _records(data, text, limits, report)
    if text.torn and len(text.lines) + 1 not in text.refused:
        value, faults = look_closely(text.tail, limits)
        if not faults and isinstance(value, dict):
            number = len(text.lines) + 1
            report.add(Reason.UNTERMINATED, number, level=Level.WARNING)
            return Reading((*records, Record(number, value)), report.findings(), torn=False)
    return finish(report, text, records)


def read_object(data: bytes, path: str, limits: Limits = Limits()) -> Reading:
    """Read a file that is one JSON object, on as many lines as it likes: a single record, of line
    1.

    A complete object without a final newline is a warning and not torn: its last brace proves that
    nothing is missing.
    """
    report = FindingList(path)
    text = _json_text(data, limits, report)
    if text is None or text.refused:
        return finish(report, text)
    lines = text.whole()
    value, faults = look_closely("\n".join(lines), limits)
    if faults:
        wreck = [(row, fault) for row, line in enumerate(lines) if (fault := debris(line))]
        for row, fault in wreck or faults:
            report.add_fault(row + 1, fault)
        return finish(report, text)
    if text.torn:
        report.add(Reason.UNTERMINATED, len(lines), level=Level.WARNING)
    return Reading((Record(1, value),), report.findings(), torn=False)


def _json_text(data: bytes, limits: Limits, report: FindingList) -> Text | None:
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
    reader = jsonlines.Reader(_shielded(data, text.lines), loads=quick_decoder(data, limits))
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
    report.add_lines(Reason.BLANK_LINE, blank, Level.WARNING)
    return records


def _object(number: int, line: str, limits: Limits, report: FindingList) -> dict[str, Any] | None:
    """Return the object of a line that the quick decoder did not vouch for, or report its
    faults.
    """
    value: dict[str, Any] | None
    value, faults = look_closely(line, limits)
    for _, fault in faults:
        report.add_fault(number, fault)
    return value


def _shielded(data: bytes, lines: list[str]) -> list[str]:
    """Return the lines so that jsonlines does not strip a mark or separator, which is a fault, from
    their start.
    """
    if BYTE_ORDER_MARK not in data and b"\x1e" not in data:
        return lines
    return [f" {line}" if line.startswith(("\ufeff", "\x1e")) else line for line in lines]


def _is_one_value_on_many_lines(text: Text, limits: Limits) -> bool:
    """Recognise a pretty-printed object, or an array of objects, which deserves one finding and not
    one per line.
    """
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
