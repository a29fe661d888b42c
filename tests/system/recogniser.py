"""A second, independent recogniser of what the strict reader accepts: RFC 8259 by hand, plus our own limits."""

from __future__ import annotations

import re

_WHITE = " \t\r\n"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_PLAIN_ESCAPES = dict(zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True))


class RefusedError(Exception):
    pass


def accepts(line: bytes, max_depth: int = 64, max_digits: int = 20) -> bool:
    """Return whether one line, without its newline, is a strict JSON object."""
    try:
        text = line.decode()
        at = _value(text, _skip(text, 0), max_depth, max_digits)
    except (RefusedError, UnicodeDecodeError):
        return False
    return text.lstrip(_WHITE).startswith("{") and _skip(text, at) == len(text) and "\r" not in text


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITE:
        at += 1
    return at


def _value(text: str, at: int, depth: int, digits: int) -> int:
    if text.startswith(("{", "["), at):
        if depth == 0:
            raise RefusedError
        read = _object if text[at] == "{" else _array
        return read(text, _skip(text, at + 1), depth - 1, digits)
    if text.startswith('"', at):
        return _string(text, at + 1)[1]
    for word in ("true", "false", "null"):
        if text.startswith(word, at):
            return at + len(word)
    return _number(text, at, digits)


def _object(text: str, at: int, depth: int, digits: int) -> int:
    keys: set[str] = set()
    while not (text.startswith("}", at) and not keys):
        if not text.startswith('"', at):
            raise RefusedError
        key, at = _string(text, at + 1)
        if key in keys:
            raise RefusedError
        keys.add(key)
        at = _expect(text, _skip(text, at), ":")
        at = _skip(text, _value(text, _skip(text, at), depth, digits))
        if text.startswith("}", at):
            break
        at = _skip(text, _expect(text, at, ","))
    return at + 1


def _array(text: str, at: int, depth: int, digits: int) -> int:
    if text.startswith("]", at):
        return at + 1
    while True:
        at = _skip(text, _value(text, at, depth, digits))
        if text.startswith("]", at):
            return at + 1
        at = _skip(text, _expect(text, at, ","))


def _string(text: str, at: int) -> tuple[str, int]:
    units: list[str] = []
    while at < len(text) and text[at] != '"':
        if text[at] < " ":
            raise RefusedError
        if text[at] != "\\":
            units.append(text[at])
            at += 1
        elif text[at + 1 : at + 2] == "u" and _HEX.fullmatch(text, at + 2, at + 6):
            units.append(chr(int(text[at + 2 : at + 6], 16)))
            at += 6
        elif text[at + 1 : at + 2] in _PLAIN_ESCAPES:
            units.append(_PLAIN_ESCAPES[text[at + 1]])
            at += 2
        else:
            raise RefusedError
    if at >= len(text):
        raise RefusedError
    try:
        return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16"), at + 1
    except UnicodeDecodeError:
        raise RefusedError from None


def _number(text: str, at: int, digits: int) -> int:
    found = _NUMBER.match(text, at)
    if not found:
        raise RefusedError
    is_whole = found[1] is None and found[2] is None
    if is_whole and len(found[0].lstrip("-")) > digits:
        raise RefusedError
    if not is_whole and float(found[0]) in (float("inf"), float("-inf")):
        raise RefusedError
    return found.end()


def _expect(text: str, at: int, char: str) -> int:
    if not text.startswith(char, at):
        raise RefusedError
    return at + 1
