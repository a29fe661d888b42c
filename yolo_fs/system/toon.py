"""Reads TOON documents, such as architecture.toon, strictly, and writes them, by its library."""

from __future__ import annotations

import re
from typing import Any

from yolo_fs.core.reasons import Level, Reason, safe
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

_INDENT = 2
_PROSE = "the text has no section"
_SECTIONS = "TOON, sections such as `risks[1]: it is late`", "write it with a TOON library"


def read_toon(data: bytes, path: str, limits: Limits = Limits()) -> Reading:
    """Read a TOON document that is an object: one record, of line 1. Raises nothing."""
    report = FindingList(path)
    text = decode(data, limits, report)
    if text is None or text.refused:
        return finish(report, text)
    lines = text.whole()
    examine_controls(lines, report)
    if examine_conflicts(lines, report):
        return finish(report, text)
    if (deep := _find_deep_line(lines, limits.max_depth)) is not None:
        report.add(Reason.NESTING_TOO_DEEP, deep, f"deeper than {limits.max_depth} levels")
        return finish(report, text)
    value = _value("\n".join(lines), limits, report)
    if value is not None and not isinstance(value, dict):
        report.add(Reason.NOT_AN_OBJECT, 1, _PROSE, advice=_SECTIONS)
    return finish(report, text, [Record(1, value)] if isinstance(value, dict) else [])


def write_toon(value: dict[str, Any]) -> str:
    """Return an object as a TOON document."""
    # Importing it costs as much as the rest of a command, so only commands that meet TOON pay for
    # it.
    import toon_format

    text: str = toon_format.dumps(value)
    return text + "\n"


def write_value(value: str | int | float | bool) -> str:
    """Return a value as written in a row, an item or after a key of a TOON document, on one line.

    Characters that a terminal would act upon or hide are escaped, so that `read_toon` finds no
    control character.
    """
    import toon_format

    plain = (
        value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    )  # lone surrogates cannot be encoded
    text: str = toon_format.dumps([plain]).removeprefix("[1]: ")
    if text.isprintable():
        return text
    shown = text if text.startswith('"') else f'"{text}"'
    return "".join(char if char.isprintable() else _escaped(char) for char in shown)


def _escaped(char: str) -> str:
    """Return the escape of an invisible character; TOON has none beyond the first plane."""
    if safe(char) == char:
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\{safe(char)}"


def _value(text: str, limits: Limits, report: FindingList) -> Any:
    """Return the decoded value, or None with its finding."""
    import toon_format

    try:
        value = toon_format.loads(
            text, strict=True, indent_size=_INDENT, parse_int=_bounded(limits.max_digits)
        )
    except toon_format.ToonDecodeError as error:
        if (value := _parse_reindented(text, limits)) is not None:
            message = "the indentation is not two spaces for each level"
            report.add(Reason.UNTIDY_FORM, error.line or 0, message, level=Level.WARNING)
            return value
        reason = (
            Reason.NUMBER_TOO_LARGE
            if error.msg == Reason.NUMBER_TOO_LARGE.value
            else Reason.TOON_INVALID
        )
        report.add(reason, error.line or 0, "" if reason is Reason.NUMBER_TOO_LARGE else error.msg)
        is_torn = error.msg.startswith("Unterminated")
        return _sections(text) if reason is Reason.TOON_INVALID and not is_torn else None
    except Exception as error:
        # A third-party decoder on untrusted bytes: no exception of it may end the daemon.
        report.add(Reason.TOON_INVALID, 0, f"{type(error).__name__} while reading it")
        return None
    if value is None:
        report.add(Reason.NOT_AN_OBJECT, 1, _PROSE, advice=_SECTIONS)
    return value


def _parse_reindented(text: str, limits: Limits) -> dict[str, Any] | None:
    """Return the content of a document whose levels are clear, but not indented by two spaces
    each.
    """
    import toon_format

    levels = [0]
    lines = []
    for line in text.split("\n"):
        if not line.strip():
            lines.append("")
            continue
        width = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip(" "))
        while width < levels[-1]:
            levels.pop()
        if width > levels[-1]:
            levels.append(width)
        lines.append(" " * _INDENT * (len(levels) - 1) + line.strip(" \t"))
    try:
        value = toon_format.loads(
            "\n".join(lines),
            strict=True,
            indent_size=_INDENT,
            parse_int=_bounded(limits.max_digits),
        )
    except Exception:  # as above
        return None
    return value if isinstance(value, dict) else None


_SECTION = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?(?:\{[^}]*\})?:[ \t]*(.*)")


def _sections(text: str) -> dict[str, Any] | None:
    """Return the lines below each key of the first level, as texts, for who needs no more."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.split("\n"):
        match = _SECTION.fullmatch(line)
        if match:
            current = sections.setdefault(match[1], [])
            current += [match[2]] if match[2] else []
        elif line.strip():
            current.append(line.strip())
    return dict(sections) or None


def _bounded(max_digits: int) -> Any:
    def parse_int(token: str) -> int:
        if len(token.removeprefix("-")) > max_digits:
            raise ValueError(Reason.NUMBER_TOO_LARGE.value)
        return int(token)

    return parse_int


def _find_deep_line(lines: list[str], max_depth: int) -> int | None:
    """Return the first line that is indented, or opens nested field groups, beyond the limit."""
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip(" "))
        if indent > max_depth * _INDENT or line.count("{") > max_depth:
            return number
    return None
