"""Fills in an index entry what git remembers of a file's last look: `--index-info` leaves it out.

Commands that do not look again, such as `git diff-index`, `git subtree` and `git sparse-checkout`,
take a file without it for a changed one. See docs/dev/faults.md#f32.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping

from yolo_fs.git.object_format import ObjectFormat
from yolo_fs.system.files import MOST_BYTES, content_of
from yolo_fs.system.store import open_regular

_MODE = struct.Struct(">24xI12x")
"""The start of an entry that nothing is remembered of: the mode between ten empty words."""
_STAT = struct.Struct(">10I")
_WORD = 0xFFFFFFFF
_LONGEST_NAME = 0xFFF
_TICK_NS = 10_000_000
"""The clock of file times lags behind by at most this."""
_VERSION_4 = b"DIRC\0\0\0\4"


def remember_files(
    index: str, root: str, entries: Mapping[str, str], object_format: ObjectFormat
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
    for path, blob in entries.items():
        status = _look(os.path.join(root, path), blob, object_format)
        at = _find(data, path, bytes.fromhex(blob)) if status else None
        if status and at is not None:
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


def _find(body: bytearray, path: str, blob: bytes) -> int | None:
    """Return where the one entry of a path begins; None unless nothing is remembered there."""
    name = os.fsencode(path)
    key = blob + struct.pack(">H", min(len(name), _LONGEST_NAME))
    prefix_bytes = 1 if body.startswith(_VERSION_4) else 0  # then a name lacks its beginning
    found: list[int] = []
    at = body.find(key)
    while at >= 0:
        start, end = at - _STAT.size, at + len(key) + prefix_bytes
        rest = bytes(body[end : body.find(b"\0", end)])
        is_ours = name.endswith(rest) if prefix_bytes else name == rest
        if start > 0 and is_ours and _is_empty(body[start:at]):
            found.append(start)
        at = body.find(key, at + 1)
    return found[0] if len(found) == 1 else None


def _is_empty(entry: bytearray) -> bool:
    return _MODE.pack(*_MODE.unpack(entry)) == entry


def _words(status: os.stat_result, mode: int) -> list[int]:
    times = (status.st_ctime_ns, status.st_mtime_ns)
    seconds = [part for time_ns in times for part in divmod(time_ns, 1_000_000_000)]
    place = (status.st_dev, status.st_ino, mode, status.st_uid, status.st_gid, status.st_size)
    return [word & _WORD for word in (*seconds, *place)]
