"""The only parser of JSON from outside, other than files of the protocol: from hosts, team members,
servers, and whoever had the repository before.

Size and nesting are checked before parsing: the standard decoder fails on deep nesting, and accepts
a number of any length. Only the standard library, because hooks use it.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost a third of what a hook may cost
    from typing import Any

MOST_DEPTH = 64
"""Maximum nesting of objects and arrays."""
MOST_DIGITS = 20
"""Maximum number of digits of an integer."""
TOKENS = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]'
"""Strings, and opening and closing brackets."""


def parse(data: bytes | str, most_bytes: int, most_depth: int = MOST_DEPTH) -> Any:
    """Return the value. For a duplicate key the last value counts; too long a number becomes text.

    Raises:
        ValueError: it is no JSON, larger than `most_bytes`, nested deeper than `most_depth`, or has
            a number that is not finite.
    """
    if len(data) > most_bytes:
        raise ValueError(f"{len(data)} bytes; the limit is {most_bytes}")
    text = data if isinstance(data, str) else data.decode("utf-8-sig", "surrogatepass")
    if place_too_deep(text, most_depth) is not None:
        raise ValueError(f"nested deeper than {most_depth}")
    try:
        return json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_refuse)
    except RecursionError as error:  # whoever called is deep already
        raise ValueError("nested too deep") from error


def place_too_deep(text: str, most_depth: int) -> int | None:
    """Return where nesting exceeds a limit, found in linear time; None if it does not."""
    if text.count("{") + text.count("[") <= most_depth:
        return None
    import re

    depth = 0
    for token in re.finditer(TOKENS, text, re.DOTALL):
        first = token[0][0]
        depth += (first in "{[") - (first in "]}")
        if depth > most_depth:
            return token.start()
    return None


def _whole(token: str) -> int | str:
    return int(token) if len(token) <= MOST_DIGITS else token


def _finite(token: str) -> float:
    value = float(token)
    if value - value != 0:
        raise ValueError(f"{token[:MOST_DIGITS]} is not finite")
    return value


def _refuse(token: str) -> float:
    raise ValueError(f"{token} is no JSON")
