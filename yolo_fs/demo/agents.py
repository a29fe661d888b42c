"""How agents' tools write files: the manners that a watcher of files has to live with."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from yolo_fs.demo.story import Manner

Rest = Callable[[], object]
"""Called wherever a writer takes its time."""


def write(path: str, data: bytes, manner: Manner, rest: Rest) -> None:
    """Bring the file at `path` to hold `data`, or as much of it as the manner gets done."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    MANNERS[manner](path, data, rest)


def _plain(path: str, data: bytes, _: Rest) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _rename(path: str, data: bytes, rest: Rest) -> None:
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.tmp")
    _plain(beside, data, rest)
    rest()
    os.replace(beside, path)


def _lines(path: str, data: bytes, rest: Rest) -> None:
    with open(path, "ab", buffering=0) as file:
        for line in data.splitlines(keepends=True):
            file.write(line)
            rest()


def _slow(path: str, data: bytes, rest: Rest) -> None:
    cut = middle_of_a_line(data)
    with open(path, "wb", buffering=0) as file:
        file.write(data[:cut])
        rest()
        file.write(data[cut:])


def _torn(path: str, data: bytes, rest: Rest) -> None:
    _plain(path, data[: middle_of_a_line(data)], rest)


def _rest(path: str, data: bytes, _: Rest) -> None:
    with open(path, "ab") as file:
        file.write(data[os.path.getsize(path) :])


def _rewrite(path: str, data: bytes, rest: Rest) -> None:
    with open(path, "r+b", buffering=0) as file:
        file.truncate()
        rest()
        file.write(data)


MANNERS: Mapping[Manner, Callable[[str, bytes, Rest], None]] = {
    Manner.PLAIN: _plain,
    Manner.RENAME: _rename,
    Manner.LINES: _lines,
    Manner.SLOW: _slow,
    Manner.TORN: _torn,
    Manner.REST: _rest,
    Manner.REWRITE: _rewrite,
}


def middle_of_a_line(data: bytes) -> int:
    """Return an offset within the second line, or within the first when there is no other."""
    start = data.find(b"\n") + 1
    if start in (0, len(data)):
        start = 0
    end = data.find(b"\n", start)
    return start + (end - start) // 2
