"""A second opinion on JSONL files: which lines are strict objects, and whether the file has a fault. No product code.

Bytes are split at LF alone and each line is taken by itself; whether it is an object is said by a
recogniser of RFC 8259 that was written by hand. See docs/dev/faults.md#f16 and #f53.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.system.recogniser import accepts

MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Rules:
    """How much a file may ask. See docs/dev/faults.md#f50 and #f53."""

    line_bytes: int = 1 << 20
    file_bytes: int = 8 << 20
    depth: int = 64
    digits: int = 20
    lines: int = 100_000
    brackets: int = 500_000


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a file holds, and whether nothing is wrong with it."""

    objects: dict[int, dict[str, Any]]
    """By the number of their line, from 1."""
    is_sound: bool


REFUSED = Opinion({}, is_sound=False)


def read_lines(data: bytes, rules: Rules = Rules()) -> Opinion:
    """Return the objects of a JSONL file. Raises nothing."""
    if _is_out_of_bounds(data, rules):
        return REFUSED
    is_marked = data.startswith(MARK)
    *lines, tail = data.removeprefix(MARK).split(b"\n")
    if not tail and _is_one_value(lines, rules):
        return REFUSED
    objects = {
        number: value for number, line in enumerate(lines, 1) for value in _object(line, rules)
    }
    last = list(_object(tail, rules)) if tail else []
    objects |= {len(lines) + 1: value for value in last}
    is_torn = bool(tail) and not last
    is_sound = not (is_marked or is_torn or b"\r" in data) and all(
        number in objects or not line.strip(b" \t") for number, line in enumerate(lines, 1)
    )
    return Opinion(objects, is_sound)


def is_object(data: bytes, rules: Rules = Rules()) -> bool:
    """Return whether a JSON file is one strict object, on as many lines as it likes; the last may lack its LF."""
    if _is_out_of_bounds(data, rules) or data.startswith(MARK) or b"\r" in data:
        return False
    lines = data.split(b"\n")
    return max(map(len, lines)) <= rules.line_bytes and accepts(data, rules.depth, rules.digits)


def _is_out_of_bounds(data: bytes, rules: Rules) -> bool:
    return (
        not data.strip(b" \t\n\r\v\f")
        or len(data) > rules.file_bytes
        or data.count(b"\n") > rules.lines
        or data.count(b"{") + data.count(b"[") > rules.brackets
    )


def _object(line: bytes, rules: Rules) -> Iterator[dict[str, Any]]:
    """Yield the object that a line is, if it is one; a CR before its LF is the file's fault and not the line's."""
    bare = line.removesuffix(b"\r")
    if len(bare) <= rules.line_bytes and accepts(bare, rules.depth, rules.digits):
        yield json.loads(bare)


def _is_one_value(lines: list[bytes], rules: Rules) -> bool:
    """Return whether the file is a value that somebody spread over its lines: one fault, and no record."""
    if len(lines) < 2 or lines[0].strip(b" \t\r") not in (b"{", b"["):
        return False
    text = b"\n".join(line.removesuffix(b"\r") for line in lines)
    if (
        b"\0" in text
        or b"\r" in text
        or max(map(len, lines)) > rules.line_bytes
        or _depth(text) > rules.depth
    ):
        return False
    try:
        json.loads(text, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return True


def _depth(text: bytes) -> int:
    """Return how deep brackets nest outside strings, in a single pass over the bytes."""
    depth = deepest = 0
    is_string = is_escaped = False
    for byte in text:
        if is_string:
            is_string = is_escaped or byte != 0x22
            is_escaped = not is_escaped and byte == 0x5C
        elif byte == 0x22:
            is_string = True
        elif byte in b"[{":
            deepest = max(deepest, depth := depth + 1)
        elif byte in b"]}":
            depth -= 1
    return deepest
