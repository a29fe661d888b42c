"""How agents' tools write files: at once, by rename, line by line, torn in the middle of a line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

Rest = Callable[[], object]
"""Called wherever a writer takes its time."""


def write(path: str, data: bytes, manner: str, rest: Rest) -> None:
    """Write `data` to the file at `path` as `MANNERS` says; `torn` writes only a part of it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    MANNERS[manner](path, data, rest)


def _at_once(path: str, data: bytes, _: Rest) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _by_rename(path: str, data: bytes, rest: Rest) -> None:
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.tmp")
    _at_once(beside, data, rest)
    rest()
    os.replace(beside, path)


def _line_by_line(path: str, data: bytes, rest: Rest) -> None:
    with open(path, "ab", buffering=0) as file:
        for line in data.splitlines(keepends=True):
            file.write(line)
            rest()


def _with_a_pause(path: str, data: bytes, rest: Rest) -> None:
    middle = _middle_of_a_line(data)
    with open(path, "wb", buffering=0) as file:
        file.write(data[:middle])
        rest()
        file.write(data[middle:])


def _torn(path: str, data: bytes, rest: Rest) -> None:
    _at_once(path, data[: _middle_of_a_line(data)], rest)


def _the_rest(path: str, data: bytes, _: Rest) -> None:
    with open(path, "ab") as file:
        file.write(data[os.path.getsize(path) :])


def _in_place(path: str, data: bytes, rest: Rest) -> None:
    with open(path, "r+b", buffering=0) as file:
        file.truncate()
        rest()
        file.write(data)


MANNERS: Mapping[str, Callable[[str, bytes, Rest], None]] = {
    "plain": _at_once,
    "rename": _by_rename,
    "lines": _line_by_line,
    "slow": _with_a_pause,
    "torn": _torn,
    "rest": _the_rest,
    "rewrite": _in_place,
}
"""`manner` of a play's `write` action → what it does; `rest` completes a file that was torn."""


def _middle_of_a_line(data: bytes) -> int:
    """Return an offset within the second line, or within the first when there is no other."""
    start = data.find(b"\n") + 1
    if start in (0, len(data)):
        start = 0
    end = data.find(b"\n", start)
    return start + (end - start) // 2
