"""git objects, named by their content with SHA-1 or SHA-256, and packs of them, built in process.

In a pack each tree is the difference to the tree that it replaces, the rest is whole: a chain of
commits changes one name in the same few trees again and again. See gitformat-pack(5).
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple


class GitObject(NamedTuple):
    """One object, named by its content."""

    oid: str
    kind: str
    """`blob`, `tree` or `commit`."""
    body: bytes
    base: str = ""
    """Id of the tree that this one replaces, where it does."""


class ObjectFormat(NamedTuple):
    """The hash that names the objects of a repository: `sha1` or `sha256`."""

    algorithm: str

    @property
    def size(self) -> int:
        """Length of a raw object id in bytes."""
        return 32 if self.algorithm == "sha256" else 20

    @property
    def zero(self) -> str:
        """The id of nothing, in hex."""
        return "0" * (2 * self.size)

    def checksum(self, data: bytes | bytearray) -> bytes:
        """Return the checksum that git puts at the end of its files."""
        return hashlib.new(self.algorithm, data, usedforsecurity=False).digest()

    def hash_object(self, kind: str, body: bytes, base: str = "") -> GitObject:
        """Return the object that this body is."""
        digest = hashlib.new(
            self.algorithm, b"%s %d\0" % (kind.encode(), len(body)), usedforsecurity=False
        )
        digest.update(body)
        return GitObject(digest.hexdigest(), kind, body, base)


_TYPES = {"commit": 1, "tree": 2, "blob": 3}
_OFFSET_DELTA = 6
_INDEX_SIGN = b"\377tOc" + struct.pack(">I", 2)
_NAMES_FROM = len(_INDEX_SIGN) + 4 * 256
"""Behind the counts: how many names begin with each byte or a lower one."""
_FOUND_ONE_BY_ONE = 16
"""Names that are looked for in a large index one by one: a set of all of its names costs more."""
_LONGEST_CHAIN = 50
"""Differences upon differences; the depth at which git itself stops."""
_LONGEST_INSERT = 127
_LONGEST_COPY = 0xFFFF
_COPY = bytes([0b1011_1111])
"""Copy, with four bytes of offset and two of size."""
_FAR = 1 << 31
"""Offsets from which an index keeps them in a table of their own."""
_TINY = 128
"""Bytes up to which compressing gains nothing: half of a tree's entry is a hash."""
_SMALL = 8192
"""Bytes up to which a window of that size compresses as well as zlib's 32 KB, which cost 40 µs to
set up."""


class Pack(NamedTuple):
    """A pack and what git finds its objects by."""

    name: str
    """The checksum of the pack, in hex, as git names its files after."""
    data: bytes
    idx: bytes
    """Where each object is. See gitformat-pack(5), version 2."""


class _IndexEntry(NamedTuple):
    oid: bytes
    checksum: int
    offset: int


def pack_of(objects: Iterable[GitObject], object_format: ObjectFormat) -> Pack:
    """Return a pack of the objects; each object's base comes before it, or is in the repository."""
    pack = bytearray(12)
    entries: list[_IndexEntry] = []
    offsets: dict[str, int] = {}
    depths: dict[str, int] = {}
    bodies: dict[str, bytes] = {}
    for each in objects:
        at, depth = len(pack), depths.get(each.base, _LONGEST_CHAIN) + 1
        # git takes a difference of less than four bytes for a broken one.
        if depth <= _LONGEST_CHAIN and each.body:
            stored = _difference(each.body, bodies[each.base], at - offsets[each.base])
        else:
            depth = 0
            stored = _head(_TYPES[each.kind], len(each.body)) + deflated(each.body)
        pack += stored
        entries.append(_IndexEntry(bytes.fromhex(each.oid), zlib.crc32(stored), at))
        offsets[each.oid], depths[each.oid], bodies[each.oid] = at, depth, each.body
    pack[:12] = b"PACK" + struct.pack(">II", 2, len(offsets))
    checksum = object_format.checksum(pack)
    return Pack(
        checksum.hex(), bytes(pack) + checksum, _index(sorted(entries), checksum, object_format)
    )


class PackIndex:
    """Which objects a pack has, by an index of version 2; of another, it has none.

    It is read a piece at a time, for a large pack has hundreds of thousands of objects, and it is
    not mapped: cut short under a map it would end the process. See gitformat-pack(5).
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int):
        """Read how many there are; `read`: its bytes, so many from there on; `size`: of an id."""
        self._read = read
        self._size = size
        head = read(0, _NAMES_FROM)
        counts = head.removeprefix(_INDEX_SIGN) if head.startswith(_INDEX_SIGN) else b""
        self._counts: array[int] = array("I", struct.unpack(">256I", counts.ljust(4 * 256, b"\0")))

    @property
    def is_empty(self) -> bool:
        """Whether it has no id, as one that is cut short before the first."""
        return not self._counts[255]

    def has_all_of(self, other: PackIndex) -> bool:
        """Return whether this one has every id that another has; what was cut off is nowhere."""
        pairs = zip((0, *other._counts), other._counts, strict=False)
        there = [first for first, (before, count) in enumerate(pairs) if count > before]
        return not other.is_empty and all(self._has_those(other, first) for first in there)

    def _names(self, first: int) -> tuple[int, bytes]:
        """Return how many names come before those that begin with a byte, and these."""
        before = self._counts[first - 1] if first else 0
        count, size = max(0, self._counts[first] - before), self._size
        return before, self._read(_NAMES_FROM + before * size, count * size)

    def _find(self, name: bytes, names: bytes) -> int:
        """Return where among names, one behind the other, a whole one stands; -1 for nowhere."""
        at = names.find(name) if len(name) == self._size else -1
        while at > 0 and at % self._size:
            at = names.find(name, at + 1)
        return at

    def _has_those(self, other: PackIndex, first: int) -> bool:
        theirs = other._ids(first)
        if len(theirs) > _FOUND_ONE_BY_ONE:
            return theirs <= self._ids(first)
        _, names = self._names(first)
        return all(self._find(name, names) >= 0 for name in theirs)

    def _ids(self, first: int) -> set[bytes]:
        before, names = self._names(first)
        size = self._size
        end = (self._counts[first] - before) * size
        return {names[at : at + size] for at in range(0, end, size)}


def _index(entries: Sequence[_IndexEntry], pack: bytes, object_format: ObjectFormat) -> bytes:
    """Return the index of a pack, given its checksum."""
    counts = [0] * 256
    for entry in entries:
        counts[entry.oid[0]] += 1
    far = [entry.offset for entry in entries if entry.offset >= _FAR]
    places = (
        _FAR | far.index(entry.offset) if entry.offset >= _FAR else entry.offset
        for entry in entries
    )
    index = b"".join(
        (
            _INDEX_SIGN,
            struct.pack(">256I", *accumulate(counts)),
            *(entry.oid for entry in entries),
            struct.pack(f">{len(entries)}I", *(entry.checksum for entry in entries)),
            struct.pack(f">{len(entries)}I", *places),
            struct.pack(f">{len(far)}Q", *far),
            pack,
        )
    )
    return index + object_format.checksum(index)


def deflated(data: bytes) -> bytes:
    """Return data as zlib stores it, fast."""
    if len(data) <= _TINY:
        return (
            b"\x78\x01\x01"
            + struct.pack("<HH", len(data), 0xFFFF - len(data))
            + data
            + struct.pack(">I", zlib.adler32(data))
        )
    if len(data) > _SMALL:
        return zlib.compress(data, 1)
    small_window = zlib.compressobj(1, zlib.DEFLATED, 13, 5)
    return small_window.compress(data) + small_window.flush()


def _difference(body: bytes, base: bytes, distance: int) -> bytes:
    said = _size(len(base)) + _size(len(body)) + _instructions(body, base)
    return _head(_OFFSET_DELTA, len(said)) + _distance(distance) + deflated(said)


def _instructions(body: bytes, base: bytes) -> bytes:
    """Say: copy what both begin with, insert what is new, copy what both end with."""
    shorter = min(len(body), len(base))
    begin = _agree(lambda size: body[:size] == base[:size], shorter)
    end = _agree(lambda size: body[len(body) - size :] == base[len(base) - size :], shorter - begin)
    fresh = body[begin : len(body) - end]
    pieces = [fresh[at : at + _LONGEST_INSERT] for at in range(0, len(fresh), _LONGEST_INSERT)]
    inserts = b"".join(bytes([len(piece)]) + piece for piece in pieces)
    return _copy(0, begin) + inserts + _copy(len(base) - end, end)


def _agree(holds: Callable[[int], bool], most: int) -> int:
    """Return the largest size, 0 to `most`, at which two bodies agree, as at each below it."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if holds(middle):
            least = middle
        else:
            most = middle - 1
    return least


def _copy(offset: int, size: int) -> bytes:
    """Return the instructions that copy from the base; one copies 65,535 bytes at most."""
    said = b""
    while size:
        some = min(size, _LONGEST_COPY)
        said += _COPY + struct.pack("<IH", offset, some)
        offset, size = offset + some, size - some
    return said


def _head(type_: int, size: int) -> bytes:
    head, byte, size = bytearray(), (type_ << 4) | (size & 0x0F), size >> 4
    while size:
        head.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    return bytes(head) + bytes([byte])


def _size(size: int) -> bytes:
    said = bytearray()
    while size > 0x7F:
        said.append(0x80 | (size & 0x7F))
        size >>= 7
    return bytes(said) + bytes([size])


def _distance(distance: int) -> bytes:
    """Return the distance back: most significant bits first, each further byte from one more."""
    said = [distance & 0x7F]
    while distance := distance >> 7:
        distance -= 1
        said.append(0x80 | (distance & 0x7F))
    return bytes(reversed(said))
