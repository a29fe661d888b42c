"""A lock held for a process's life. The kernel's flock decides; the file's content only informs.

See docs/dev/faults.md#f40, #f41 and #f43 to #f45.
"""

from __future__ import annotations

import contextlib
import json
import os
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, Self

from yolo_fs import __version__
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.system.store import RefusedError, environment, open_regular, read_json
from yolo_fs.system.system import (
    boot_id,
    flock_holders,
    is_running,
    is_same_file,
    process_space,
    start_time,
    try_lock,
    wait_lock,
)
from yolo_fs.system.warm_path import owners_of

_PROBE_S = 0.05
"""How long `hold` waits: `holder` locks the file for an instant to see whether it is free."""
_SLOW_PROBE_S = 2.0
"""The same where the process that the file names is gone: on a busy machine, the instant for which
`holder` locks the file lasts longer.
"""


class Holder(NamedTuple):
    """The process that the lock file names.

    Only the lock itself proves anything. See docs/dev/faults.md#f41.
    """

    pid: int
    started_at: str
    """UTC, ISO 8601 with Z."""
    start_time: int | None
    """Start of the process in clock ticks since boot, to recognise a reused pid."""
    boot_id: str
    version: str
    """Version of yolo_fs."""
    space: int = 0
    """PID namespace of the process; 0 where it is unknown."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether it runs in another container: its pid is valid only there."""
        return bool(self.space) and self.space != process_space()

    def __str__(self) -> str:
        if not self.pid:
            return "an unknown process"
        return f"process {self.pid}{' of another container' if self.is_elsewhere else ''}"

    def is_alive(self) -> bool:
        """Return whether this very process still runs; if not, a child holds the lock.

        See docs/dev/faults.md#f02.
        """
        return (
            self.boot_id == boot_id()
            and not self.is_elsewhere
            and is_running(self.pid)
            and self.start_time == start_time(self.pid)
        )


UNKNOWN_HOLDER = Holder(pid=0, started_at="", start_time=None, boot_id="", version="")
"""A holder that the lock file does not name."""


class HeldLock:
    """A lock held until `release`, or until all processes that have `fd` have ended."""

    __slots__ = ("fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        """Take over an open descriptor that is locked."""
        self.path = path
        self.fd = fd
        """For `pass_fds`: the lock then outlives us until that child ends."""

    def still_mine(self) -> bool:
        """Return whether the path still names the locked file; if not, the holder must end.

        See docs/dev/faults.md#f40 and docs/dev/faults.md#f44.
        """
        try:
            return self.fd >= 0 and is_same_file(self.fd, self.path)
        except OSError:
            return False

    def release(self) -> None:
        """Release by closing; unlocking would take the lock from a child that still needs it."""
        descriptor, self.fd = self.fd, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def hold(path: str, root: str | None = None) -> HeldLock | None:
    """Take the lock for the process's life, or return None when another process has it.

    `root`: the folder that it lies below; None for a folder of our own.

    This uses flock(2) itself, not filelock: our descriptor can be written to, compared and passed
    to git, and filelock drops the lock in a forked child. Both, and flock(1), exclude each other.
    """
    opener = partial(_open_own, root=root)
    with environment(path):
        descriptor = wait_lock(path, opener, _PROBE_S, _PROBE_S / 20)
        if descriptor is None and not _is_another_alive(_read_holder(path)):
            descriptor = wait_lock(path, opener, _SLOW_PROBE_S, _PROBE_S / 20)
    if descriptor is None:
        return None
    _write_holder(descriptor)
    return HeldLock(path, descriptor)


def _is_another_alive(named: Holder) -> bool:
    return named.is_elsewhere or (named.pid != os.getpid() and named.is_alive())


def _open_own(path: str, root: str | None) -> int:
    """Open a file that is ours alone, since our name will replace its content.

    See docs/dev/faults.md#f45.
    """
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT, root=root)
    status = os.fstat(descriptor)
    reason = None
    if status.st_nlink > 1:
        reason = Reason.HARD_LINKED
    elif status.st_uid not in owners_of(path):
        reason = Reason.FOREIGN_OWNER
    if reason:
        os.close(descriptor)
        raise RefusedError(reason, reason.sentence)
    return descriptor


def _write_holder(descriptor: int) -> None:
    """Write who holds the lock.

    A full disk must not cost us the lock: the content is information only.
    """
    started_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    started = start_time(os.getpid())
    me = Holder(os.getpid(), started_at, started, boot_id(), __version__, process_space())
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(me._asdict()).encode() + b"\n", 0)


def holder(path: str) -> Holder | None:
    """Return who holds the lock, `UNKNOWN_HOLDER` if the file names nobody, None if it is free."""
    try:
        with environment(path):
            descriptor = open_regular(path, os.O_RDONLY)
    except YoloError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise
    try:
        is_free = try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)
    return None if is_free else _read_holder(path)


def _read_holder(path: str) -> Holder:
    match read_json(path):
        case {
            "pid": int(pid),
            "started_at": str(started_at),
            "start_time": int() | None as started,
            "boot_id": str(boot),
            "version": str(version),
            **more,
        }:
            space = more.get("space")
            known = space if isinstance(space, int) else 0
            return Holder(pid, started_at, started, boot, version, known)
    pids = flock_holders(path)
    return Holder(pids[0], "", start_time(pids[0]), boot_id(), "") if pids else UNKNOWN_HOLDER
