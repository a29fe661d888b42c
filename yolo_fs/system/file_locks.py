"""Locks a file for one change, beside the scripts of the protocol.

The only module that imports filelock. A lock is on a separate file that is never unlinked, and is
flock(2), as flock(1) in the protocol's shell scripts uses it. See docs/dev/faults.md#f42 to #f47.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.system.store import (
    OWN,
    Damaged,
    RefusedError,
    environment,
    json_text,
    open_regular,
    read_json,
    rename_over,
    sync_name,
)
from yolo_fs.system.system import is_same_file, lock_timeout

if TYPE_CHECKING:
    from filelock import FileLock


_POLL_S = 0.01


def update(
    path: str,
    lock: str,
    fn: Callable[[dict[str, Any] | Damaged | None], dict[str, Any] | None],
    timeout_s: float = 10.0,
    *,
    root: str | None = None,
    durable: bool = True,
    mode: int = OWN,
) -> dict[str, Any] | None:
    """Change the file under the lock.

    `fn` receives what `read_json` returns, and returns the new value, or None for no change.
    `root`: what the file lies below, and a lock that is beside it; any other lock is ours alone.

    Return what was written, or None. The lock file stays. Raises: YoloError(LOCK_TIMEOUT), naming
    the holder if the kernel tells.
    """
    is_beside = os.path.dirname(lock) == os.path.dirname(path)
    with locked(lock, timeout_s, mode, root=root if is_beside else None):
        new = fn(read_json(path))
        if new is None:
            return None
        rename_over(path, json_text(new), root=root, durable=durable, mode=mode)
    # The next holder need not wait until the new name is on the disk, too: names reach it in order.
    if durable:
        sync_name(path, root)
    return new


@contextlib.contextmanager
def locked(
    lock: str, timeout_s: float, mode: int = OWN, *, root: str | None = None
) -> Iterator[None]:
    """Hold the lock file while the context lasts; it stays. Raises YoloError(LOCK_TIMEOUT)."""
    deadline = time.monotonic() + timeout_s
    with environment(lock):
        while (held := _held(lock, timeout_s, mode, root)) is None:
            if time.monotonic() >= deadline:
                raise lock_timeout(lock, timeout_s, "somebody replaces the lock file; try again")
    try:
        yield
    finally:
        held.release()


@contextlib.contextmanager
def _open_lock_file(lock: str, mode: int, root: str | None) -> Iterator[int]:
    """Open or create the lock file without following a link; filelock would follow it."""
    _refuse_odd_lock(lock)
    made = open_regular(lock, os.O_RDWR | os.O_CREAT, mode, root)
    try:
        yield made
    finally:
        os.close(made)


def _held(lock: str, timeout_s: float, mode: int, root: str | None) -> FileLock | None:
    """Take the lock; None when another file has replaced it meanwhile (F44)."""
    with _open_lock_file(lock, mode, root) as made:
        held = _acquire_lock(lock, timeout_s, mode)
        if is_same_file(made, lock):
            return held
        held.release()
        return None


def _acquire_lock(lock: str, timeout_s: float, mode: int) -> FileLock:
    import filelock  # 35 ms: only those who lock pay for it

    held = filelock.FileLock(
        lock,
        timeout=timeout_s,
        mode=mode,
        poll_interval=_POLL_S,
        fallback_to_soft=False,
        preserve_lock_file=True,
    )
    try:
        held.acquire()
    except filelock.Timeout:
        hint = "end or resume that process, then try again; never delete the lock file"
        raise lock_timeout(lock, timeout_s, hint) from None
    except (OSError, NotImplementedError) as error:
        lockless = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
        if isinstance(error, OSError) and error.errno not in lockless:
            raise
        why = f"{safe(lock)}: {error}"
        raise YoloError(Reason.NETWORK_FILESYSTEM, why) from error
    return held


def _refuse_odd_lock(lock: str) -> None:
    """Refuse what filelock would open or make for us: a pipe, and missing parents (F36)."""
    try:
        status = os.lstat(lock)
    except FileNotFoundError:
        os.stat(os.path.dirname(os.path.abspath(lock)))
        return
    if not stat.S_ISREG(status.st_mode):
        raise RefusedError(Reason.NOT_REGULAR, Reason.NOT_REGULAR.sentence)
