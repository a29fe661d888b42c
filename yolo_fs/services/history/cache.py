"""The history_index on disk: what one reading of a branch found, in a form that is used without being parsed.

A cache and nothing else: it is checksummed, it says which tip it is of, and whatever is wrong with
it, there is none. Commits lie sorted by their names in columns of fixed width, so that one of
20,000 is found without making the others.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from yolo_fs import __version__

_MAGIC = f"yolo-fs history_index 3 {__version__} {sys.byteorder} {array('I').itemsize}".encode()
"""Begins every archive. The version stands in it because what a subject means is derived, and may change with it."""
_OURS = "!"
"""Begins the text of a coordination commit."""


@dataclass(frozen=True, slots=True)
class IndexedCommit:
    """One commit, as far as anybody asks for it."""

    oid: str
    at_s: int
    """Committer time, seconds since the epoch."""
    height: int
    """Length of the longest way to a root: a descendant's is greater, whatever the clocks said."""
    is_ours: bool
    """Whether a coordinator made it."""
    subject: str
    changes: tuple[tuple[str, str], ...]
    """(status letter, path) of each path that differs from the first parent."""

    @property
    def rank(self) -> tuple[int, int, str]:
        """Where it stands in the one order of a history, however that was read."""
        return (self.height, self.at_s, self.oid)


Names = Mapping[str, Mapping[str, str]]
"""Name of an index (`path`, `task`, …) → its keys → commits."""


@dataclass(frozen=True, slots=True)
class Archive:
    """The commits of one tip."""

    tip: str = ""
    """The commit whose history this is; empty for none."""
    cut_off: str = ""
    """Where the history was cut off when it was read (a shallow clone); another cut is another history."""
    names: Names = field(default_factory=dict)
    width: int = 40
    """Letters of a commit's name."""
    oids: str = ""
    """All names, sorted, one after the other."""
    at: Sequence[int] = ()
    heights: Sequence[int] = ()
    ours: Sequence[int] = ()
    """Which of them a coordinator made, oldest first."""
    ends: Sequence[int] = ()
    """Where the text of each ends."""
    texts: bytes | memoryview = b""
    """Subject and changes of each."""

    def __len__(self) -> int:
        return len(self.ends)

    def oid(self, position: int) -> str:
        """Return the name at a position."""
        return self.oids[position * self.width : (position + 1) * self.width]

    def named(self, name: str) -> tuple[int, ...]:
        """Return the positions of the first two commits that an abbreviated hash names."""
        at = bisect_left(range(len(self)), name, key=self.oid)
        return tuple(
            place for place in range(at, min(at + 2, len(self))) if self.oid(place).startswith(name)
        )

    def at_position(self, position: int) -> IndexedCommit:
        """Return the commit at a position."""
        begin = self.ends[position - 1] if position else 0
        text = bytes(self.texts[begin : self.ends[position]]).decode("utf-8", "surrogateescape")
        subject, *changes = text.split("\0")
        pairs = tuple((change[0], change[1:]) for change in changes)
        is_ours = subject[:1] == _OURS
        return IndexedCommit(
            self.oid(position),
            self.at[position],
            self.heights[position],
            is_ours,
            subject[1:],
            pairs,
        )

    def own(self) -> Iterator[IndexedCommit]:
        """Yield the coordination commits, oldest first."""
        return (self.at_position(position) for position in self.ours)

    def all(self) -> Iterator[IndexedCommit]:
        """Yield all commits."""
        return (self.at_position(position) for position in range(len(self)))


# --- bytes -----------------------------------------------------------------------------------------------------------


def pack(tip: str, cut_off: str, commits: Iterable[IndexedCommit], names: Names) -> bytes:
    """Return the bytes of an archive of these commits. `names`: index → key → name of a commit."""
    listed = sorted(commits, key=lambda one: one.oid)
    place = {one.oid: position for position, one in enumerate(listed)}
    texts = [_text(one) for one in listed]
    ends, end = array("I"), 0
    for text in texts:
        end += len(text)
        ends.append(end)
    own = sorted((one for one in listed if one.is_ours), key=lambda one: one.rank)
    parts = (
        "".join(one.oid for one in listed).encode(),
        array("q", [one.at_s for one in listed]).tobytes(),
        array("I", [one.height for one in listed]).tobytes(),
        array("I", [place[one.oid] for one in own]).tobytes(),
        ends.tobytes(),
        b"".join(texts),
        _json(
            {index: {key: place[oid] for key, oid in keys.items()} for index, keys in names.items()}
        ),
    )
    width = len(listed[0].oid) if listed else 0
    head = _json(
        {"tip": tip, "cut_off": cut_off, "width": width, "sizes": [len(part) for part in parts]}
    )
    body = b"\n".join((head, b"".join(parts)))
    return b"%s %08x\n%s" % (_MAGIC, zlib.crc32(body), body)


def unpack(data: bytes) -> Archive | None:
    """Return the archive, or None when these are not the bytes of one, as written by this very version."""
    begin = len(_MAGIC) + len(" 01234567\n")
    body = memoryview(data)[begin:]  # megabytes, of which nothing is copied without need
    if data[:begin] != b"%s %08x\n" % (_MAGIC, zlib.crc32(body)):
        return None
    end = data.index(b"\n", begin)
    said = json.loads(data[begin:end])
    names, at, heights, ours, ends, texts, indexes = _parts(
        memoryview(data)[end + 1 :], said["sizes"]
    )
    oids = str(names, "ascii")
    return Archive(
        tip=said["tip"],
        cut_off=said["cut_off"],
        names=_named(json.loads(str(indexes, "utf-8", "surrogateescape")), oids, said["width"]),
        width=said["width"],
        oids=oids,
        at=_numbers("q", at),
        heights=_numbers("I", heights),
        ours=_numbers("I", ours),
        ends=_numbers("I", ends),
        texts=texts,
    )


def _named(numbered: Mapping[str, Mapping[str, int]], oids: str, width: int) -> Names:
    return {
        index: {key: oids[place * width : (place + 1) * width] for key, place in keys.items()}
        for index, keys in numbered.items()
    }


def _text(one: IndexedCommit) -> bytes:
    mark = _OURS if one.is_ours else " "
    changes = (letter + path for letter, path in one.changes)
    return "\0".join((mark + one.subject, *changes)).encode("utf-8", "surrogateescape")


def _parts(sections: memoryview, sizes: Sequence[int]) -> Iterator[memoryview]:
    begin = 0
    for size in sizes:
        yield sections[begin : begin + size]
        begin += size


def _numbers(kind: str, data: memoryview) -> array[int]:
    found: array[int] = array(kind)
    found.frombytes(data)
    return found


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogateescape"
    )
