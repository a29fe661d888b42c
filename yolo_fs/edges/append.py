"""Appends to a log that several processes share: one at a time, whole lines only, on the disk before it counts.

The lock is flock(2) on the log itself, so there is nothing to clean up. Agents append without it:
what they left torn is never continued. See docs/faults.md#f42 to #f47 and #f53.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator

from yolo_fs.edges import failpoint
from yolo_fs.edges.store import SHARED, RefusedError, environment, open_regular
from yolo_fs.edges.system import flock_holders, process_name
from yolo_fs.reasons import Exit, Reason, YoloError, safe

_POLL_S = 0.005


class Appending:
    """A log that nobody else with the lock appends to meanwhile."""

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
        """Append one line by one `write`, synced to the disk; nothing of it stays where there is no room for all.

        Raises:
            YoloError: UNTERMINATED when somebody left the last line torn; NO_SPACE, STORAGE_FAILED.
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
                raise YoloError(
                    Reason.NO_SPACE, f"no room in {safe(self._path)}", exit_code=Exit.TRY_AGAIN
                )
            os.fsync(self._descriptor)

    def _ending(self, size_bytes: int) -> bytes:
        """Return what ends the last line: a whole object may lack its newline, anything else is torn."""
        tail = os.pread(self._descriptor, size_bytes, 0).rpartition(b"\n")[2] if size_bytes else b""
        if not tail:
            return b""
        try:
            if isinstance(json.loads(tail), dict):
                return b"\n"
        except (ValueError, RecursionError):
            pass
        hint = "Whoever wrote it ends or removes that line; then try again."
        message = f"the last line of {safe(self._path)} is torn, or is being written"
        raise YoloError(Reason.UNTERMINATED, message, hint=hint, exit_code=Exit.TRY_AGAIN)


@contextlib.contextmanager
def appending(path: str, timeout_s: float = 10.0) -> Iterator[Appending]:
    """Hold the log for reading and appending; it is made when it is missing.

    Raises:
        YoloError: LOCK_TIMEOUT naming the holder; NOT_REGULAR, HARD_LINKED for what must not be written to.
    """
    with environment(path):
        descriptor = _locked(path, time.monotonic() + timeout_s, timeout_s)
    try:
        yield Appending(path, descriptor)
    finally:
        os.close(descriptor)


def _locked(path: str, deadline: float, timeout_s: float) -> int:
    while True:
        with contextlib.suppress(
            BlockingIOError
        ):  # locked, or the daemon's lease is being given back
            descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, SHARED)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_still_at(path, descriptor):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
        if time.monotonic() >= deadline:
            raise _timeout(path, timeout_s)
        time.sleep(_POLL_S)


def _is_still_at(path: str, descriptor: int) -> bool:
    """Tell whether the path names the locked file: an editor may have put another in its place (F44)."""
    found = os.fstat(descriptor)
    if found.st_nlink > 1:
        raise RefusedError(Reason.HARD_LINKED, Reason.HARD_LINKED.sentence)
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(found, os.lstat(path))
    return False


def _timeout(path: str, timeout_s: float) -> YoloError:
    names = (
        " and ".join(process_name(pid) for pid in flock_holders(path))
        or "a process that the kernel does not name"
    )
    message = f"{safe(path)} was not free within {timeout_s:g} s: held by {names}"
    return YoloError(Reason.LOCK_TIMEOUT, message, hint="try again", exit_code=Exit.LOCK_TIMEOUT)
