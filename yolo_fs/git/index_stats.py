"""Fills in an index entry what git remembers of a file's last look: `--index-info` leaves it out.

Commands that do not look again, such as `git diff-index`, `git subtree` and `git sparse-checkout`,
take a file without it for a changed one. See docs/dev/faults.md#f32.
"""

from __future__ import annotations

import os
import re
import struct
import time
from collections import Counter
from collections.abc import Mapping

from yolo_fs.git.object_format import ObjectFormat
from yolo_fs.system.files import MOST_BYTES, content_of
from yolo_fs.system.store import open_regular

_MODE = struct.Struct(">24xI12x")
_FORGOTTEN = re.compile(re.escape(bytes(26)) + rb"\x81[\xa4\xed]" + re.escape(bytes(12)))
"""The start of the entry of a file that nothing is remembered of: its mode between empty words."""
_STAT = struct.Struct(">10I")
_WORD = 0xFFFFFFFF
_LONGEST_NAME = 0xFFF
_TICK_NS = 10_000_000
"""The clock of file times lags behind by at most this."""
_VERSION_4 = b"DIRC\0\0\0\4"


def remember_files(
    index: str, root: str, entries: Mapping[str, str], object_format: ObjectFormat, *, durable: bool
) -> None:
    """Note in an index that no git uses yet how the files are that still have these blobs.

    An entry that is not exactly as `--index-info` writes it stays, and so does an index of more
    than 64 MiB. The index is dated before the look, so that git looks again into files that are as
    young. `entries`: path → blob.

    Raises OSError.
    """
    data = bytearray(content_of(index, MOST_BYTES))
    end = len(data) - object_format.size
    if end <= 0:
        return
    dated_ns = time.time_ns() - _TICK_NS
    noted = list[int]()
    for at, path in _find_forgotten(data, entries):
        if status := _look(os.path.join(root, path), entries[path], object_format):
            _STAT.pack_into(data, at, *_words(status, _MODE.unpack_from(data, at)[0]))
            noted.append(at)
    if noted:
        descriptor = open_regular(index, os.O_RDWR)
        try:
            for at in noted:
                os.pwrite(descriptor, data[at : at + _STAT.size], at)
            if any(data[end:]):  # else index.skipHash
                os.pwrite(descriptor, object_format.checksum(memoryview(data)[:end]), end)
            os.utime(descriptor, ns=(dated_ns, dated_ns))
            if durable:  # as git does with what becomes an index
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _look(path: str, blob: str, object_format: ObjectFormat) -> os.stat_result | None:
    """Return how a file is, if it has this blob before and after the look."""
    try:
        before = os.lstat(path)
        content = content_of(path)
        after = os.lstat(path)
    except OSError:
        return None
    is_same = (before.st_ino, before.st_mtime_ns, before.st_ctime_ns, before.st_size) == (
        after.st_ino, after.st_mtime_ns, after.st_ctime_ns, len(content),
    )  # fmt: skip
    return after if is_same and object_format.hash_object("blob", content).oid == blob else None


def _find_forgotten(index: bytearray, entries: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return where the entries begin that nothing is remembered of, each with its path."""
    by_key = dict[bytes, list[str]]()
    for path, blob in entries.items():
        name_bytes = min(len(os.fsencode(path)), _LONGEST_NAME)
        key = bytes.fromhex(blob) + struct.pack(">H", name_bytes)
        by_key.setdefault(key, []).append(path)
    key_bytes = len(next(iter(by_key), b""))
    prefix_bytes = 1 if index.startswith(_VERSION_4) else 0  # then a name lacks its beginning
    places = list[tuple[int, str]]()
    for match in _FORGOTTEN.finditer(index):
        at = match.end()
        name_at = at + key_bytes + prefix_bytes
        rest = bytes(index[name_at : index.find(b"\0", name_at)])
        for path in by_key.get(bytes(index[at : at + key_bytes]), ()):
            name = os.fsencode(path)
            if name.endswith(rest) if prefix_bytes else name == rest:
                places.append((match.start(), path))
    times = Counter(path for _, path in places)
    return [(at, path) for at, path in places if times[path] == 1]


def _words(status: os.stat_result, mode: int) -> list[int]:
    times = (status.st_ctime_ns, status.st_mtime_ns)
    seconds = [part for time_ns in times for part in divmod(time_ns, 1_000_000_000)]
    place = (status.st_dev, status.st_ino, mode, status.st_uid, status.st_gid, status.st_size)
    return [word & _WORD for word in (*seconds, *place)]
