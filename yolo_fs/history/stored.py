"""The forms in which the index of a branch stores spans of positions, changes and text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""First and last position of each of several stretches of the branch, in order."""


def span(first: int, last: int) -> Spans:
    """Return the positions from one to another; none if the last comes before the first."""
    return ((first, last),) if first <= last else ()


def intersect(some: Spans, others: Spans) -> Spans:
    """Return the positions that lie in a span of both."""
    common: list[tuple[int, int]] = []
    left, right = list(reversed(some)), list(reversed(others))
    while left and right:
        (begin, end), (start, stop) = left[-1], right[-1]
        common += span(max(begin, start), min(end, stop))
        (left if end < stop else right).pop()
    return tuple(common)


def read_spans(text: str) -> Spans:
    """Return the spans that `write_spans` has written."""
    pairs = (each.partition("-") for each in text.split())
    return tuple((int(first), int(last)) for first, _, last in pairs)


def write_spans(spans: Spans) -> str:
    """Return spans as text, such as `3-5 9-9`."""
    return " ".join(f"{first}-{last}" for first, last in spans)


@lru_cache(maxsize=4096)
def read_changes(changes: bytes) -> tuple[tuple[str, str], ...]:
    """Return letter and path of each change that `write_changes` has written."""
    return tuple((each[:1], each[1:]) for each in to_text(changes).split("\0")) if changes else ()


def write_changes(changes: Iterable[tuple[str, str]]) -> bytes:
    """Return changes, letter and path, as bytes."""
    return b"\0".join(to_bytes(letter + path) for letter, path in changes)


def to_bytes(text: str) -> bytes:
    """Return text as bytes, also a path that is not UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """Return the text that `to_bytes` was given."""
    return data.decode("utf-8", "surrogatepass")
