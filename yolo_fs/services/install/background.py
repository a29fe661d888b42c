"""The daemon in the background: a detached `run`, found again through its lock.

See docs/faults.md#f41 and #f42.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from yolo_fs.edges import IS_LINUX
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.lock import Holder, holder
from yolo_fs.edges.store import environment, open_regular, private_directory
from yolo_fs.reasons import Exit, Reason, YoloError
from yolo_fs.services.workspace.own_files import HEALTH
from yolo_fs.services.workspace.places import lock_path, log_path
from yolo_fs.services.workspace.settings import load

LOG_BYTES = 1 << 20
"""A log larger than this is set aside when a daemon starts."""
LOGS_KEPT = 5
"""Logs in all: the one that is written to and four older ones."""
LOCK_PATIENCE_S = 10.0
"""How long a daemon may take from its start to its lock; a loaded machine needs a second."""
POLL_S = 0.02
FOLLOW_S = 0.2
_TAIL_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Launched:
    """A daemon that was started and has not said yet that it is ready."""

    process: subprocess.Popen[bytes]
    log_start: int
    """Size of the log before its first line."""


def running(repository: Repository) -> Holder | None:
    """Return who watches this work tree, or None."""
    return holder(lock_path(repository))


def launch(repository: Repository) -> Launched:
    """Start a daemon of its own session, with nothing of ours but the log.

    No double fork: whoever supervises us can still see it, and it is nobody's controlling process
    anyway.
    """
    load(repository.root)  # a broken configuration is told here, not in a log
    private_directory(repository.own_dir)
    rotate(log_path(repository))
    with environment(log_path(repository)):
        log = open_regular(log_path(repository), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        # -P: what lies in the user's repository must not be imported instead of us.
        command = [sys.executable, "-P", "-m", "yolo_fs", "run", "-C", repository.root]
        process = subprocess.Popen(
            command,
            cwd=repository.root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        return Launched(process, os.fstat(log).st_size)
    finally:
        os.close(log)


def wait_locked(repository: Repository, launched: Launched) -> bool:
    """Wait until the launched daemon holds its lock, so that `stop` finds it; False when it ended
    instead.
    """

    def holds() -> bool:
        found = running(repository)
        return found is not None and found.pid == launched.process.pid

    _wait(lambda: launched.process.poll() is not None or holds(), LOCK_PATIENCE_S)
    return launched.process.poll() is None


def wait_ready(repository: Repository, pid: int, timeout_s: float) -> bool:
    """Wait until the daemon that holds the lock has done its first scan; False when it ended
    instead.

    Raises:
        YoloError: DEADLINE_PASSED; the daemon goes on.

    """

    def has_ended() -> bool:
        found = running(repository)
        return found is None or found.pid != pid

    if not _wait(lambda: _is_ready(repository, pid) or has_ended(), timeout_s):
        raise YoloError(
            Reason.DEADLINE_PASSED,
            f"process {pid} has not finished its first scan within {timeout_s:g} s; it goes on",
            hint="See 'yolo-fs logs'.",
            exit_code=Exit.TRY_AGAIN,
        )
    return not has_ended()


def _is_ready(repository: Repository, pid: int) -> bool:
    match HEALTH.read(repository):
        case {"pid": int(found), "running": True}:
            return found == pid
    return False


def said_since(repository: Repository, launched: Launched, count: int = 10) -> list[str]:
    """Return the last lines that the launched daemon wrote."""
    lines = _from(log_path(repository), launched.log_start).decode("utf-8", "replace")
    return lines.splitlines()[-count:]


def stop(repository: Repository, timeout_s: float) -> int:
    """End the daemon of this work tree, wait until its lock is free, and return its pid.

    Raises:
        YoloError: NOT_RUNNING; DEADLINE_PASSED, when it still ends.
    """
    found = running(repository)
    if found is None:
        raise YoloError(
            Reason.NOT_RUNNING, hint="Start it with 'yolo-fs start'.", exit_code=Exit.NOT_HERE
        )
    _signal(found)
    if not _wait(lambda: running(repository) != found, timeout_s):
        raise YoloError(
            Reason.DEADLINE_PASSED,
            f"process {found.pid} still finishes the work in hand after {timeout_s:g} s",
            hint="Wait, or run 'yolo-fs stop' again, which ends it at once.",
            exit_code=Exit.TRY_AGAIN,
        )
    return found.pid


def wait_for_heirs(repository: Repository, timeout_s: float = 10.0) -> Holder | None:
    """Return who watches this work tree, after a daemon that was killed has lost its last git
    child.

    Such a child keeps the lock until it ends (F02), and a start at that moment would be refused.
    """
    found = running(repository)
    if found and found.pid and not found.is_alive():
        _wait(lambda: running(repository) != found, timeout_s)
        return running(repository)
    return found


def _signal(found: Holder) -> None:
    """Send TERM to the very process that holds the lock, never to one that has its number by
    now.
    """
    if not found.pid:
        raise YoloError(
            Reason.NOT_RUNNING,
            "something holds the daemon's lock and does not say who it is",
            hint="Find it with 'fuser' or 'lsof' on .git/yolo-fs/daemon.lock.",
            exit_code=Exit.NOT_HERE,
        )
    with suppress(ProcessLookupError):
        if not IS_LINUX or not hasattr(os, "pidfd_open"):
            if found.is_alive():
                os.kill(found.pid, signal.SIGTERM)
            return
        process = os.pidfd_open(found.pid)
        try:
            if found.is_alive():  # asked again now that the descriptor pins the process
                signal.pidfd_send_signal(process, signal.SIGTERM)
        finally:
            os.close(process)


def _wait(is_done: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not is_done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


# --- the log ---


def rotate(path: str) -> None:
    """Set a large log aside: `daemon.log.1` is the newest of the old ones."""
    with suppress(FileNotFoundError):
        if os.stat(path, follow_symlinks=False).st_size < LOG_BYTES:
            return
        names = [path, *(f"{path}.{number}" for number in range(1, LOGS_KEPT))]
        for newer, older in reversed(tuple(pairwise(names))):
            with suppress(FileNotFoundError):
                os.replace(newer, older)


def tail(path: str, count: int) -> list[str]:
    """Return the last lines of the log; none when there is no log."""
    lines, _ = _tail(path, count)
    return lines


def follow(path: str, count: int) -> Iterator[str]:
    """Yield the last lines of the log and each further one, also across a rotation; never ends."""
    lines, position = _tail(path, count)
    yield from lines
    identity = _inode(path)
    rest = b""
    while True:
        if _inode(path) != identity:
            identity, position = _inode(path), 0
        data = _from(path, position)
        position += len(data)
        *whole, rest = (rest + data).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole)
        if not data:
            time.sleep(FOLLOW_S)


def _tail(path: str, count: int) -> tuple[list[str], int]:
    """Return the last whole lines and where the line after them begins."""
    with suppress(FileNotFoundError):
        size = os.stat(path).st_size
        start = max(0, size - _TAIL_BYTES)
        data = _from(path, start)
        end = data.rfind(b"\n") + 1
        lines = data[:end].decode("utf-8", "replace").splitlines()
        return lines[-count:] if count else [], start + end
    return [], 0


def _from(path: str, position: int) -> bytes:
    try:
        with environment(path), open(open_regular(path, os.O_RDONLY), "rb") as log:
            log.seek(position)
            return log.read(_TAIL_BYTES + 1)
    except YoloError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return b""
        raise


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0
