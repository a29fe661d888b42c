"""How a file is laid out and read, before anybody asks which shape it has."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple


class Format(StrEnum):
    """How the bytes of a file are laid out; the value is what people read."""

    JSON = "one JSON object"
    JSONL = "JSONL: one JSON object per line"
    FRONT_MATTER = "Markdown whose front matter is a handoff packet"
    TOON = "TOON"
    TEXT = "text"


class Record(NamedTuple):
    """One strict JSON object and the line that it stands on (from 1)."""

    line: int
    value: dict[str, Any]


class Strictness(NamedTuple):
    """How strictly shapes are read."""

    strict: bool = False
    """Unknown keys reject instead of warn."""
    legacy: bool = False
    """Known old spellings warn instead of reject."""


UNFINISHED = "(Fill this in, then remove this line.)"
"""The last line of a new file, until its author has filled it in."""


def is_skeleton(data: bytes) -> bool:
    """Return whether a file is new, and its author has not filled it in."""
    return data.endswith(f"{UNFINISHED}\n".encode())


def spelling_of(key: str) -> str:
    """Return the letters of a key, the same of `test_files`, `testFiles` and `Test-Files`."""
    return "".join(filter(str.isalnum, key)).casefold()
