"""A lock held for a process's life: the kernel's flock is the truth, what stands in the file is information.

See docs/faults.md#f40, #f41 and #f43 to #f45.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Self

from yolo_fs import __version__
from yolo_fs.edges.store import RefusedError, environment, open_regular, read_json
from yolo_fs.edges.system import boot_id, flock_holders, is_running, start_time
from yolo_fs.reasons import Reason, YoloError

_PROBE_S = 0.05
"""How long `hold` outwaits those who merely look at the lock (`holder`)."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who says, inside the lock file, that it holds the lock. The lock is the truth, this is information (F41)."""

    pid: int
    started_at: str
    """UTC, ISO 8601 with Z."""
    start_time: int | None
    """Start of the process in clock ticks since boot, which tells a reused pid."""
    boot_id: str
    version: str
    """Version of yolo_fs."""

    def is_alive(self) -> bool:
        """Tell whether this very process still runs; if not, a child that it gave the lock to holds it (F02)."""
        return (
            self.boot_id == boot_id()
            and is_running(self.pid)
            and self.start_time == start_time(self.pid)
        )


UNKNOWN_HOLDER = Holder(pid=0, started_at="", start_time=None, boot_id="", version="")
"""Somebody holds the lock and has not said who."""


class HeldLock:
    """A lock held until `release` or the end of the process, and of every child that was given `fd`."""

    __slots__ = ("_identity", "fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        """Take over an open descriptor that is locked."""
        self.path = path
        self.fd = fd
        """For `pass_fds`: the lock then outlives us until that child ends."""
        self._identity = _identity_of(os.fstat(fd))

    def still_mine(self) -> bool:
        """Tell whether the path still names the locked file; a holder that says no must end (F40, F44)."""
        if self.fd < 0:
            return False
        try:
            return _identity_of(os.stat(self.path, follow_symlinks=False)) == self._identity
        except OSError:
            return False

    def release(self) -> None:
        """Let go. Only closes: unlocking would take the lock from a child that still needs it."""
        descriptor, self.fd = self.fd, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def hold(path: str) -> HeldLock | None:
    """Take the lock for life, or return None at once when somebody has it.

    flock(2) itself, not filelock: the descriptor is ours to write to, to compare and to hand to git, and
    filelock gives the lock up in a forked child. Both, and flock(1), exclude each other.
    """
    with environment(path):
        deadline = time.monotonic() + _PROBE_S
        while True:
            descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
            try:
                if _is_locked_by(descriptor, path):
                    _sign(descriptor)
                    return HeldLock(path, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
            if time.monotonic() >= deadline:
                return None
            time.sleep(_PROBE_S / 20)


def _is_locked_by(descriptor: int, path: str) -> bool:
    """Lock the descriptor and tell whether that worked and the path still names the same file (F44)."""
    _refuse_foreign(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    with contextlib.suppress(FileNotFoundError):
        return _identity_of(os.stat(path, follow_symlinks=False)) == _identity_of(
            os.fstat(descriptor)
        )
    return False


def _refuse_foreign(descriptor: int) -> None:
    """Refuse a file that is not ours alone, since our name will be written over its content (F45)."""
    found = os.fstat(descriptor)
    if found.st_nlink > 1:
        raise RefusedError(Reason.HARD_LINKED, Reason.HARD_LINKED.sentence)
    if found.st_uid != os.geteuid():
        raise RefusedError(Reason.FOREIGN_OWNER, Reason.FOREIGN_OWNER.sentence)


def _identity_of(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _sign(descriptor: int) -> None:
    """Say in the lock file who holds it. A full disk must not cost us the lock: it is information only."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    me = Holder(os.getpid(), started_at, start_time(os.getpid()), boot_id(), __version__)
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(me)).encode() + b"\n", 0)


def holder(path: str) -> Holder | None:
    """Return who holds the lock now, `UNKNOWN_HOLDER` if nobody says so, None if it is free."""
    try:
        with environment(path):
            descriptor = open_regular(path, os.O_RDONLY)
    except YoloError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _signature(path)
    finally:
        os.close(descriptor)
    return None


def _signature(path: str) -> Holder:
    match read_json(path):
        case {
            "pid": int(pid),
            "started_at": str(started_at),
            "start_time": int() | None as started,
            "boot_id": str(boot),
            "version": str(version),
        }:
            return Holder(pid, started_at, started, boot, version)
    pids = flock_holders(path)
    return Holder(pids[0], "", start_time(pids[0]), boot_id(), "") if pids else UNKNOWN_HOLDER
