"""git objects, named by their SHA-1 or SHA-256, and packs of them, built in process.

In a pack, each tree is a delta against the tree that it replaces, and other objects are stored
whole: a chain of commits changes one name in the same few trees again and again. See
gitformat-pack(5).
"""

from __future__ import annotations

import hashlib
import struct
import zlib
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
        """The null object id, in hex."""
        return "0" * (2 * self.size)

    def checksum(self, data: bytes | bytearray | memoryview) -> bytes:
        """Return the checksum that git appends to its files."""
        return hashlib.new(self.algorithm, data, usedforsecurity=False).digest()

    def hash_object(self, kind: str, body: bytes, base: str = "") -> GitObject:
        """Return the object with this body."""
        digest = hashlib.new(
            self.algorithm, b"%s %d\0" % (kind.encode(), len(body)), usedforsecurity=False
        )
        digest.update(body)
        return GitObject(digest.hexdigest(), kind, body, base)


_TYPES = {"commit": 1, "tree": 2, "blob": 3}
_OFFSET_DELTA = 6
_INDEX_SIGN = b"\377tOc" + struct.pack(">I", 2)
_LONGEST_CHAIN = 50
"""Longest chain of deltas; git itself stops at this depth."""
_LONGEST_INSERT = 127
_LONGEST_COPY = 0xFFFF
_COPY = bytes([0b1011_1111])
"""Copy, with four bytes of offset and two of size."""


class Pack(NamedTuple):
    """A pack and its index."""

    name: str
    """Checksum of the pack in hex, which git uses in its file names."""
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
        # git rejects a delta of less than four bytes as broken.
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


def _index(entries: Sequence[_IndexEntry], pack: bytes, object_format: ObjectFormat) -> bytes:
    """Return the index of a pack, given its checksum."""
    counts = [0] * 256
    for entry in entries:
        counts[entry.oid[0]] += 1
    index = b"".join(
        (
            _INDEX_SIGN,
            struct.pack(">256I", *accumulate(counts)),
            *(entry.oid for entry in entries),
            struct.pack(f">{len(entries)}I", *(entry.checksum for entry in entries)),
            # signed: an offset from 2 GiB on would need a further table, and a chunk never has it
            struct.pack(f">{len(entries)}i", *(entry.offset for entry in entries)),
            pack,
        )
    )
    return index + object_format.checksum(index)


def deflated(data: bytes) -> bytes:
    """Return data as zlib stores it, fast."""
    return zlib.compress(data, 1)


def _difference(body: bytes, base: bytes, distance: int) -> bytes:
    delta = _size(len(base)) + _size(len(body)) + _encode_delta(body, base)
    return _head(_OFFSET_DELTA, len(delta)) + _encode_distance(distance) + deflated(delta)


def _encode_delta(body: bytes, base: bytes) -> bytes:
    """Return delta instructions: copy the common start, insert the rest, copy the common end."""
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
    instructions = b""
    while size:
        some = min(size, _LONGEST_COPY)
        instructions += _COPY + struct.pack("<IH", offset, some)
        offset, size = offset + some, size - some
    return instructions


def _head(type_: int, size: int) -> bytes:
    head, byte, size = bytearray(), (type_ << 4) | (size & 0x0F), size >> 4
    while size:
        head.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    return bytes(head) + bytes([byte])


def _size(size: int) -> bytes:
    encoded = bytearray()
    while size > 0x7F:
        encoded.append(0x80 | (size & 0x7F))
        size >>= 7
    return bytes(encoded) + bytes([size])


def _encode_distance(distance: int) -> bytes:
    """Return the distance back: most significant bits first, each further byte from one more."""
    encoded = [distance & 0x7F]
    while distance := distance >> 7:
        distance -= 1
        encoded.append(0x80 | (distance & 0x7F))
    return bytes(reversed(encoded))
