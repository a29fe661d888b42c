"""Locks by flock(2): try once, or wait; the locked file must still be the one that the path
names.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable

from yolo_fs.edges.system import flock_holders, process_name
from yolo_fs.reasons import Exit, Reason, YoloError, safe


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file unless another process has locked it.

    Closing the file releases the lock.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_locked(path: str, opener: Callable[[str], int]) -> int | None:
    """Open and lock a file; None when it is locked already, or was replaced meanwhile.

    Whoever replaces a lock file would let two processes lock "the same" path. See
    docs/faults.md#f44.
    """
    try:
        descriptor = opener(path)
    except BlockingIOError:
        return None  # a lease on the file is just being released
    try:
        if try_lock(descriptor) and is_same_file(descriptor, path):
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def wait_lock(
    path: str, opener: Callable[[str], int], timeout_s: float, poll_s: float
) -> int | None:
    """Open and lock a file as soon as it is free; None when it was not free in time."""
    deadline = time.monotonic() + timeout_s
    while (descriptor := open_locked(path, opener)) is None:
        if time.monotonic() >= deadline:
            return None
        time.sleep(poll_s)
    return descriptor


def is_same_file(descriptor: int, path: str) -> bool:
    """Return whether a path, unless it is a link, names an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def lock_timeout(path: str, timeout_s: float, hint: str) -> YoloError:
    """Return the error for a lock that was not free in time; it names the holders where the kernel
    does.
    """
    holders = [process_name(pid) for pid in flock_holders(path)]
    names = " and ".join(holders) or "a process that the kernel does not name"
    message = f"{safe(path)} was not free within {timeout_s:g} s: held by {names}"
    return YoloError(Reason.LOCK_TIMEOUT, message, hint=hint, exit_code=Exit.LOCK_TIMEOUT)
