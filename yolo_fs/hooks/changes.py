"""Texts that a call of a tool puts into files. Pure.

A command of a shell is not among them, except for a patch: the daemon judges what it leaves behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from yolo_fs.core.tool_calls import command_in
from yolo_fs.hooks.touches import PATCHED_FILE

_PAIRS = (("old_string", "new_string"), ("oldText", "newText"), ("old_str", "new_str"))
_WHOLE = ("content", "contents", "text", "file_text", "newText", "new_string", "new_str", "data")
_MOST = 1_000


class Change(NamedTuple):
    """A text that a tool writes."""

    new: str
    old: str = ""
    """What it replaces; empty for a whole file and for lines that are added."""
    path: str = ""
    """The file, as spelled; empty for each that the call writes."""


def changes_of(given: Mapping[str, Any]) -> Iterator[Change]:
    """Yield what a tool's input writes, in its order."""
    if command := command_in(given):
        yield from _patched(command)
        return
    left: list[Any] = [given]
    for _ in range(_MOST):
        if not left:
            return
        value = left.pop(0)
        if isinstance(value, list):
            left = [*value, *left]
        elif isinstance(value, Mapping):
            yield from _of_object(value)
            left += [each for each in value.values() if isinstance(each, Mapping | list)]


def _of_object(given: Mapping[str, Any]) -> Iterator[Change]:
    for old, new in _PAIRS:
        if isinstance(given.get(old), str) and isinstance(given.get(new), str):
            yield Change(given[new], given[old])
            return
    for key in _WHOLE:
        if isinstance(text := given.get(key), str):
            yield Change(text)


def _patched(command: str) -> Iterator[Change]:
    """Yield the lines that a patch adds to each file."""
    headers = list(PATCHED_FILE.finditer(command))
    for header, following in zip_longest(headers, headers[1:]):
        end = following.start() if following else len(command)
        lines = command[header.end() : end].splitlines()
        added = "\n".join(line[1:] for line in lines if line.startswith("+"))
        yield Change(added, path=header[1].rstrip(" \t\r"))


def text_after(before: str, changes: Iterable[Change]) -> str:
    """Return what a file holds after changes, with all it held where they replace it as a whole."""
    text = before
    for change in changes:
        text = text.replace(change.old, change.new) if change.old else f"{text}\n{change.new}\n"
    return text
