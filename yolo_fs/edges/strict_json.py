"""Strict JSON in two steps: a quick decoder that vouches only for what is surely right, and a close
look at the rest.

The close look never raises: it returns the value, or every fault with its place. The standard
decoder alone accepts NaN, overflow, duplicate keys and lone surrogates, and dies of deep nesting.
See docs/faults.md#f53.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from yolo_fs.edges.text_checks import CONFLICT, MAX_FINDINGS, Limits
from yolo_fs.reasons import Fault, Reason


class NotVouchedForError(ValueError):
    """The quick decoder leaves a text to the close look."""


class Located(NamedTuple):
    """A fault and its row in the text, from 0."""

    row: int
    fault: Fault


# --- the quick decoder ---

_ZEROS = bytes(ord("0") if char in b"0123456789" else char for char in range(256))
_MAYBE_LONE = re.compile(
    r"\\\\u"  # an escaped backslash makes what follows look like an escape
    r"|\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])"
    r"|\\u[dD][c-fC-F]..(?<!\\u[dD][89abAB]..\\u[dD]...)"
)


def quick_decoder(data: bytes, limits: Limits) -> Callable[[str | bytes], dict[str, Any]]:
    """Return a decoder for the lines of `data` that raises `ValueError` unless a line is surely
    right.
    """
    has_surrogates = b"\\" in data and (b"\\ud" in data or b"\\uD" in data)
    has_long_numbers = b"0" * (limits.max_digits + 1) in data.translate(_ZEROS)
    raw_decode = _decoder(_short(limits.max_digits) if has_long_numbers else int).raw_decode

    def loads(line: str | bytes) -> dict[str, Any]:
        text = str(line)
        if _too_deep(text, limits.max_depth):
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


def _decoder(parse_int: Callable[[str], int]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse, parse_int=parse_int
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise NotVouchedForError
    return value


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


class _Object(list[tuple[str, Any]]):
    """The members of an object, duplicates too."""


class _Number(NamedTuple):
    """A number, or what the standard decoder takes for one, as it is written."""

    text: str


_FAITHFUL = json.JSONDecoder(
    object_pairs_hook=_Object, parse_float=_Number, parse_int=_Number, parse_constant=_Number
)
_TOKENS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN_CHARS = 64


def look_closely(text: str, limits: Limits) -> tuple[Any, list[Located]]:
    """Return the JSON object in a text, or None and every fault of it."""
    if known := debris(text) or _too_deep(text, limits.max_depth):
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
        return None, [Located(error.lineno - 1, _syntax(error))]
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


def _too_deep(text: str, max_depth: int) -> Fault | None:
    """Recognise nesting beyond the limit in linear time, before a recursive parser sees it."""
    if text.count("{") + text.count("[") <= max_depth:
        return None
    depth = 0
    for token in _TOKENS.finditer(text):
        depth += _STEPS.get(token[0], 0)
        if depth > max_depth:
            column = token.start() - text.rfind("\n", 0, token.start())
            return Fault(
                Reason.NESTING_TOO_DEEP, message=f"deeper than {max_depth} at column {column}"
            )
    return None


def _syntax(error: json.JSONDecodeError) -> Fault:
    seen = error.doc[error.pos : error.pos + 1]
    if error.msg.startswith("Invalid control character") or seen == "\x1e":
        return Fault(Reason.CONTROL_CHARACTER, message=f"U+{ord(seen):04X} at column {error.colno}")
    said = "another value follows the first" if error.msg == "Extra data" else error.msg
    return Fault(Reason.JSON_PARSE_ERROR, message=f"{said} at column {error.colno}")


def _faults(value: Any, at: str, limits: Limits) -> Iterator[Fault]:
    match value:
        case _Number(text=token):
            yield from _faults_of_number(token, at, limits)
        case _Object():
            yield from _faults_of_object(value, at, limits)
        case list():
            for index, item in enumerate(value):
                yield from _faults(item, f"{at}/{index}", limits)
        case str() if found := _SURROGATE.search(value):
            yield Fault(Reason.LONE_SURROGATE, at, f"\\u{ord(found[0]):04x} has no partner")


def _faults_of_object(members: _Object, at: str, limits: Limits) -> Iterator[Fault]:
    seen: set[str] = set()
    for key, item in members:
        here = f"{at}/{key[:_SHOWN_CHARS].replace('~', '~0').replace('/', '~1')}"
        if key in seen:
            yield Fault(
                Reason.DUPLICATE_KEY,
                here,
                f"the key {json.dumps(key[:_SHOWN_CHARS])} is used twice",
            )
        if found := _SURROGATE.search(key):
            yield Fault(
                Reason.LONE_SURROGATE, here, f"\\u{ord(found[0]):04x} has no partner in a key"
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
