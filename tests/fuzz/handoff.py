"""A second opinion on HANDOFF.md: the one form of front matter that is accepted, as a grammar by hand. No YAML, no
product code.

    file  = "---" LF blank* head member+ "---" LF body          member = indent key " "* ":" [" "+ value] " "* LF
    head  = " "* "handoff" " "* ":" " "* LF                     key, value = plain | 'single' | "double"

See docs/dev/faults.md#f54.
"""

from __future__ import annotations

import re
import unicodedata

from tests.fuzz.reference import MARK, Rules

MAX_CHARS = 64 << 10
MAX_KEY_CHARS = 1024


class RefusedError(Exception):
    """The file has another form."""


def read_handoff(data: bytes, rules: Rules = Rules()) -> dict[str, str] | None:
    """Return the packet of a file, or None. Raises nothing."""
    try:
        lines = _lines(data, rules)
        end = _fenced(lines)
        _examine_body(lines[end + 1 :])
        return _packet(lines[1:end])
    except (RefusedError, UnicodeDecodeError):
        return None


def _refuse_if(wrong: object) -> None:
    if wrong:
        raise RefusedError


def _lines(data: bytes, rules: Rules) -> list[str]:
    _refuse_if(not data or len(data) > rules.file_bytes or data.count(b"\n") > rules.lines)
    _refuse_if(data.startswith(MARK) or b"\r" in data or b"\0" in data or not data.endswith(b"\n"))
    _refuse_if(any(len(line) > rules.line_bytes for line in data.split(b"\n")))
    lines = data.decode().split("\n")[:-1]
    _refuse_if(any(_is_conflict(line) for line in lines))
    return lines


def _is_conflict(line: str) -> bool:
    return line[:7] in ("<<<<<<<", "|||||||", ">>>>>>>") and line[7:8] in ("", " ")


def _fenced(lines: list[str]) -> int:
    """Return the index of the closing fence."""
    _refuse_if(lines[0] != "---" or "---" not in lines[1:])
    end = lines.index("---", 1)
    _refuse_if(sum(len(line) for line in lines[: end + 1]) > MAX_CHARS)
    return end


def _examine_body(lines: list[str]) -> None:
    _refuse_if(any(_is_control(char) for line in lines for char in line))
    said = [line for line in lines if line.strip()]
    _refuse_if(said and said[0].startswith("handoff:"))


def _is_control(char: str) -> bool:
    """Tell what no line of prose may hold: controls, foreign line breaks, and what turns the direction of text."""
    if char == "\t":
        return False
    turns = unicodedata.bidirectional(char) in (
        "LRE",
        "RLE",
        "LRO",
        "RLO",
        "PDF",
        "LRI",
        "RLI",
        "FSI",
        "PDI",
    )
    return turns or unicodedata.category(char) in ("Cc", "Zl", "Zp")


_UNSEEN = frozenset(
    "\u200b\u200e\u200f\u2060\u2061\u2062\u2063\u2064\u2065\u2066\u2067\u2068\u2069\ufeff"
)


def _is_unseen(char: str) -> bool:
    return char == "\t" or _is_control(char) or char in _UNSEEN


def _is_printable(char: str) -> bool:
    """Tell what YAML 1.1, 5.1 lets into a stream."""
    code = ord(char)
    return (
        0x20 <= code <= 0x7E
        or code == 0x85
        or 0xA0 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or code > 0xFFFF
    )


# --- members ---------------------------------------------------------------------------------------------------------


def _packet(lines: list[str]) -> dict[str, str]:
    for line in lines:
        _refuse_if(any(_is_unseen(char) or not _is_printable(char) for char in line))
    head, *members = [line for line in lines if line.strip(" ")] or [""]
    indent, name, value = _member(head)
    _refuse_if((name, value) != ("handoff", None) or not members)
    packet: dict[str, str] = {}
    depth = len(members[0]) - len(members[0].lstrip(" "))
    for line in members:
        here, key, text = _member(line)
        _refuse_if(here != depth or here <= indent or key in packet)
        packet[key] = text or ""
    return packet


def _member(line: str) -> tuple[int, str, str | None]:
    """Return indentation, key and value of a line; None for a value that is not written."""
    start = len(line) - len(line.lstrip(" "))
    key, is_plain, at = _scalar(line, start)
    _refuse_if(not key or (is_plain and key == "<<"))
    at = _skip(line, at)
    _refuse_if(line[at : at + 1] != ":" or at - start > MAX_KEY_CHARS)
    begin = _skip(line, at + 1)
    if begin == len(line):
        return start, key, None
    _refuse_if(begin == at + 1)
    value, is_plain, end = _scalar(line, begin)
    _refuse_if(_skip(line, end) != len(line))
    return start, key, value


def _skip(line: str, at: int) -> int:
    while line[at : at + 1] == " ":
        at += 1
    return at


def _scalar(line: str, at: int) -> tuple[str, bool, int]:
    """Return the text of a scalar, whether it is plain, and where it ends."""
    match line[at : at + 1]:
        case '"':
            text, end = _double(line, at + 1)
        case "'":
            text, end = _single(line, at + 1)
        case _:
            return _plain(line, at)
    _refuse_if(any(_is_unseen(char) or "\ud800" <= char <= "\udfff" for char in text))
    return text, False, end


_INDICATORS = frozenset("-?:,[]{}#&*!|>'\"%@`")


def _plain(line: str, at: int) -> tuple[str, bool, int]:
    first, second = line[at : at + 1], line[at + 1 : at + 2]
    _refuse_if(
        first in ("", " ")
        or (first in _INDICATORS and not (first in "-?:" and second not in ("", " ")))
    )
    _refuse_if(at == 0 and line[:3] in ("---", "...") and line[3:4] in ("", " "))
    end = at
    while end < len(line):
        char, after = line[end], line[end + 1 : end + 2]
        if (char == ":" and after in ("", " ")) or (
            char == "#" and line[end - 1 : end] == " " and end > at
        ):
            break
        end += 1
    text = line[at:end].rstrip(" ")
    return text, True, at + len(text)


def _single(line: str, at: int) -> tuple[str, int]:
    found = re.compile(r"((?:[^']|'')*)'").match(line, at)
    if not found:
        raise RefusedError
    return found[1].replace("''", "'"), found.end()


_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", " ": " ",
    '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_SIZES = {"x": 2, "u": 4, "U": 8}


def _double(line: str, at: int) -> tuple[str, int]:
    text = ""
    while (char := line[at : at + 1]) != '"':
        _refuse_if(not char)
        at += 1
        if char != "\\":
            text += char
            continue
        kind = line[at : at + 1]
        at += 1
        if kind in _SIZES:
            digits = line[at : at + _SIZES[kind]]
            _refuse_if(
                not re.fullmatch(f"[0-9A-Fa-f]{{{_SIZES[kind]}}}", digits)
                or int(digits, 16) > 0x10FFFF
            )
            text += chr(int(digits, 16))
            at += _SIZES[kind]
        else:
            _refuse_if(kind not in _ESCAPES)
            text += _ESCAPES[kind]
    return text, at + 1
