"""Files that are written in place: a log shared by several processes, and a note to the next run.

One process at a time appends to a log, whole lines only, synced before they count. The lock is
flock(2) on the log itself, so there is nothing to clean up. Agents append without it: a line that
they left torn is never continued. See docs/dev/faults.md#f42 to #f47 and #f53.

A note is written often, read after a crash, and ignored if damaged. It is overwritten in place:
replacing a file by a rename makes ext4 write it out at once, which costs more than the objects of a
commit. A checksum tells a whole note from a torn one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from yolo_fs.core.foreign_json import parse
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.system import failpoint
from yolo_fs.system.store import SHARED, RefusedError, environment, open_regular
from yolo_fs.system.system import lock_timeout, wait_lock

_POLL_S = 0.005
_NOTE_BYTES = 8 << 20
"""A longer note is not ours."""


class Appending:
    """A log that is locked for appending."""

    def __init__(self, path: str, descriptor: int) -> None:
        """Take over an open descriptor that is locked."""
        self._path = path
        self._descriptor = descriptor

    def read(self, limit_bytes: int) -> bytes:
        """Return what the log holds now.

        Raises:
            YoloError: FILE_TOO_LARGE.
        """
        size_bytes = os.fstat(self._descriptor).st_size
        if size_bytes > limit_bytes:
            message = f"{safe(self._path)} is larger than {limit_bytes} bytes"
            raise YoloError(Reason.FILE_TOO_LARGE, message, exit_code=Exit.UNREADABLE)
        return os.pread(self._descriptor, size_bytes, 0)

    def add(self, line: bytes) -> None:
        """Append one line by one `write` and sync it; a partial write is removed again.

        Raises:
            YoloError: UNTERMINATED when the last line is torn; NO_SPACE, STORAGE_FAILED.
        """
        with environment(self._path):
            size_bytes = os.fstat(self._descriptor).st_size
            data = self._ending(size_bytes) + line + b"\n"
            try:
                failpoint.reach("append.begun")
                whole = os.write(self._descriptor, data) == len(data)
                failpoint.reach("append.written")
            except OSError:
                os.ftruncate(self._descriptor, size_bytes)
                raise
            if not whole:
                os.ftruncate(self._descriptor, size_bytes)
                raise YoloError(Reason.NO_SPACE, f"no room in {safe(self._path)}")
            os.fsync(self._descriptor)

    def add_record(self, record: Mapping[str, Any]) -> None:
        """Append one object as a line of JSONL. Raises as `add`."""
        import jsonlines  # only those who write a record pay for it

        line = io.BytesIO()
        jsonlines.Writer(line, compact=True).write(record)
        self.add(line.getvalue().removesuffix(b"\n"))

    def _ending(self, size_bytes: int) -> bytes:
        """Return what has to be appended to end the last line: nothing, or its newline.

        Only a complete object may lack its newline; anything else is torn, and refused.
        """
        tail = os.pread(self._descriptor, size_bytes, 0).rpartition(b"\n")[2] if size_bytes else b""
        if not tail:
            return b""
        try:
            if isinstance(parse(tail, len(tail)), dict):
                return b"\n"
        except ValueError:
            pass
        hint = "Its author completes or removes that line; then try again."
        message = f"the last line of {safe(self._path)} is torn, or is being written"
        raise YoloError(Reason.UNTERMINATED, message, hint=hint, exit_code=Exit.TRY_AGAIN)


class UnwrittenLog(Appending):
    """A log that does not exist yet, in memory alone: shows the result of an append."""

    def __init__(self) -> None:
        """Begin empty."""
        self._data = b""

    def read(self, limit_bytes: int) -> bytes:
        """Return what was added."""
        return self._data

    def add(self, line: bytes) -> None:
        """Keep a line."""
        self._data += line + b"\n"


@contextlib.contextmanager
def appending(
    path: str, timeout_s: float = 10.0, *, root: str | None = None
) -> Iterator[Appending]:
    """Hold the log for reading and appending; create it if it is missing.

    `root`: the folder that it lies below; None for a folder of our own.

    Raises:
        YoloError: LOCK_TIMEOUT naming the holder; NOT_REGULAR, HARD_LINKED, PATH_ESCAPES for what
            must not be written to.
    """
    with environment(path):
        descriptor = wait_lock(path, partial(_open, root=root), timeout_s, _POLL_S)
    if descriptor is None:
        raise lock_timeout(path, timeout_s, hint="try again")
    try:
        yield Appending(path, descriptor)
    finally:
        os.close(descriptor)


def _open(path: str, root: str | None) -> int:
    descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, SHARED, root)
    if os.fstat(descriptor).st_nlink > 1:
        os.close(descriptor)
        raise RefusedError(Reason.HARD_LINKED, Reason.HARD_LINKED.sentence)
    return descriptor


class ScratchRecord:
    """One value of JSON in a file of ours."""

    def __init__(self, path: str):
        self._path = path

    def write(self, value: object) -> None:
        """Keep a value for the next start after a crash. Disk errors are ignored."""
        text = json.dumps(value, separators=(",", ":")).encode()
        line = b"%08x %s\n" % (zlib.crc32(text), text)
        with contextlib.suppress(OSError, RefusedError):
            descriptor = open_regular(self._path, os.O_WRONLY | os.O_CREAT)
            try:
                if os.fstat(descriptor).st_nlink == 1:  # a hard link: the file is not ours alone
                    os.pwrite(descriptor, line, 0)
            finally:
                os.close(descriptor)

    def read(self) -> Any:
        """Return the last written value; None when there is none, or it is incomplete."""
        with contextlib.suppress(OSError, RefusedError, ValueError, RecursionError):
            with os.fdopen(open_regular(self._path, os.O_RDONLY), "rb") as file:
                line = file.readline(_NOTE_BYTES)
            checksum, _, text = line.rstrip(b"\n").partition(b" ")
            if int(checksum, 16) == zlib.crc32(text):
                return parse(text, len(text))
        return None
