"""The background daemon: a detached `run`, found through its lock, or a service.

A service is a systemd unit or a launchd job of the user's session, as text and as a file. This
never enables or starts a service: it reports the one command that does. See docs/dev/faults.md#f41
and #f42.
"""

from __future__ import annotations

import hashlib
import os
import plistlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import ClassVar, NamedTuple

from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.system import IS_LINUX
from yolo_fs.system.lock import Holder, holder
from yolo_fs.system.store import environment, move, open_regular, write_text
from yolo_fs.system.warm_path import user_folder
from yolo_fs.workspace.own_files import HEALTH, lock_path, log_path
from yolo_fs.workspace.settings import load

LOG_BYTES = 1 << 20
"""Bytes; a larger log is rotated when a daemon starts."""
LOGS_KEPT = 5
"""Logs in all: the current one and four older ones."""
LOCK_PATIENCE_S = 60.0
"""Most seconds from a daemon's start to its lock; a loaded machine needs more than one."""
POLL_S = 0.02
FOLLOW_S = 0.2
_TAIL_BYTES = 1 << 20
_OF_A_SERVICE = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS")
"""Variables that systemd sets for the process that it has started."""


class Launched(NamedTuple):
    """A started daemon that has not reported that it is ready."""

    process: subprocess.Popen[bytes]
    log_start: int
    """Size of the log before its first line."""


def running(repository: Repository) -> Holder | None:
    """Return the daemon that watches this work tree, or None."""
    return holder(lock_path(repository))


def launch(repository: Repository) -> Launched:
    """Start a daemon in a new session that inherits only the log.

    No double fork: a supervisor can still see it, and the new session has no terminal.
    It does not get a service manager's variables, which are for this process alone.
    """
    load(repository.root)  # a broken configuration is told here, not in a log
    repository.make_own_dir()
    rotate(log_path(repository))
    with environment(log_path(repository)):
        log = open_regular(log_path(repository), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        # -P: files in the user's repository must not be imported instead of us.
        command = command_of_daemon(repository.root)
        process = subprocess.Popen(
            command,
            cwd=repository.root,
            env={name: value for name, value in os.environ.items() if name not in _OF_A_SERVICE},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        return Launched(process, os.fstat(log).st_size)
    finally:
        os.close(log)


def watch(repository: Repository) -> Holder | Launched:
    """Return the daemon that watches this work tree, or one that was started for it.

    The latter has its lock, or has ended. A daemon that finds another one ends with 0. If that one
    was about to end, such as the daemon of a run that is over, nobody watches then: it is started
    again.
    """
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        if other := wait_for_heirs(repository):
            return other
        launched = launch(repository)
        is_locked = wait_locked(repository, launched)
        found_another = launched.process.returncode == Exit.DONE
        if is_locked or not found_another or time.monotonic() >= deadline:
            return launched


def wait_locked(repository: Repository, launched: Launched) -> bool:
    """Wait until the launched daemon holds its lock, so that `stop` finds it; False if it ended."""

    def holds() -> bool:
        holder = running(repository)
        return holder is not None and holder.pid == launched.process.pid

    _wait(lambda: launched.process.poll() is not None or holds(), LOCK_PATIENCE_S)
    return launched.process.poll() is None


def wait_ready(repository: Repository, pid: int, timeout_s: float) -> bool:
    """Wait until the daemon with the lock has done its first scan; return False if it ended.

    Raises:
        YoloError: DEADLINE_PASSED; the daemon goes on.
    """

    def has_ended() -> bool:
        holder = running(repository)
        return holder is None or holder.pid != pid

    if not _wait(lambda: _is_ready(repository, pid) or has_ended(), timeout_s):
        raise YoloError(
            Reason.DEADLINE_PASSED,
            f"process {pid} has not finished its first scan within {timeout_s:g} s; it continues",
            hint="See 'yolo-fs logs'.",
        )
    return not has_ended()


def _is_ready(repository: Repository, pid: int) -> bool:
    match HEALTH.read(repository):
        case {"pid": int(recorded_pid), "running": True}:
            return recorded_pid == pid
    return False


def said_since(repository: Repository, launched: Launched) -> list[str]:
    """Return the last lines that the launched daemon wrote."""
    lines = _from(log_path(repository), launched.log_start).decode("utf-8", "replace")
    return lines.splitlines()[-10:]


def stop(repository: Repository, timeout_s: float) -> int | None:
    """End the daemon of this work tree, wait until its lock is free, and return its pid; None where
    none runs.

    Raises:
        YoloError: NOT_RUNNING, when something else holds its lock; DEADLINE_PASSED, when it still
            ends.
    """
    holder = running(repository)
    if holder is None:
        return None
    end(repository, holder, timeout_s)
    return holder.pid


def end(repository: Repository, holder: Holder, timeout_s: float) -> None:
    """End this daemon, and no other that watches the work tree by now; wait for its lock.

    Raises:
        YoloError: as `stop`.
    """
    _signal(holder)
    if not _wait(lambda: running(repository) != holder, timeout_s):
        raise YoloError(
            Reason.DEADLINE_PASSED,
            f"process {holder.pid} still finishes the work in hand after {timeout_s:g} s",
            hint="Wait, or run 'yolo-fs stop' again, which ends it at once.",
        )


def wait_for_heirs(repository: Repository, timeout_s: float = 10.0) -> Holder | None:
    """Return the daemon of this work tree, once the last git child of a killed one has ended.

    Such a child keeps the lock until it ends (F02), and a start at that moment would be refused.
    """
    holder = running(repository)
    if holder and holder.pid and not (holder.is_elsewhere or holder.is_alive()):
        _wait(lambda: running(repository) != holder, timeout_s)
        return running(repository)
    return holder


_TO_END = (signal.SIGTERM, signal.SIGCONT)
"""A process that was stopped, as by Ctrl-Z, does not see TERM until it is continued."""


def _signal(holder: Holder) -> None:
    """End the process that holds the lock, never one that reuses its pid."""
    if not holder.pid:
        raise YoloError(
            Reason.NOT_RUNNING,
            "an unknown process holds the daemon's lock",
            hint="Find it with 'fuser' or 'lsof' on .git/yolo-fs/daemon.lock.",
        )
    if holder.is_elsewhere:
        raise YoloError(
            Reason.ALREADY_RUNNING,
            f"the daemon is {holder}, which cannot be reached from here",
            hint="Stop it there.",
            exit_code=Exit.NOT_HERE,
        )
    with suppress(ProcessLookupError):
        if not IS_LINUX or not hasattr(os, "pidfd_open"):
            for each in _TO_END:
                if holder.is_alive():
                    os.kill(holder.pid, each)
            return
        process = os.pidfd_open(holder.pid)
        try:
            if holder.is_alive():  # asked again now that the descriptor pins the process
                for each in _TO_END:
                    signal.pidfd_send_signal(process, each)
        finally:
            os.close(process)


def _wait(is_done: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not is_done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def rotate(path: str) -> None:
    """Rotate a large log: `daemon.log.1` is the newest of the old ones."""
    with suppress(FileNotFoundError):
        if os.stat(path, follow_symlinks=False).st_size < LOG_BYTES:
            return
        names = [path, *(f"{path}.{number}" for number in range(1, LOGS_KEPT))]
        for newer, older in reversed(tuple(pairwise(names))):
            with suppress(FileNotFoundError):
                move(newer, older)


def tail(path: str, count: int) -> list[str]:
    """Return the last lines of the log; none when there is no log."""
    lines, _ = _tail(path, count)
    return lines


def follow(path: str, count: int) -> Iterator[str]:
    """Yield the last lines of the log and each further one, also across a rotation; never ends."""
    lines, position = _tail(path, count)
    yield from lines
    identity = _inode_of(path)
    rest = b""
    while True:
        if _inode_of(path) != identity:
            identity, position = _inode_of(path), 0
        data = _from(path, position)
        position += len(data)
        *whole, rest = (rest + data).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole)
        if not data:
            time.sleep(FOLLOW_S)


def _tail(path: str, count: int) -> tuple[list[str], int]:
    """Return the last whole lines, and the offset of the line after them."""
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


def _inode_of(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0


MARK = "Written by `yolo-fs service install`; it is replaced by the next one."
_HASH_DIGITS = 8


class System(StrEnum):
    """Supervisor of services."""

    SYSTEMD = "systemd"
    LAUNCHD = "launchd"

    @classmethod
    def of_this_machine(cls) -> System:
        """Return the supervisor that this operating system comes with."""
        return cls.LAUNCHD if sys.platform == "darwin" else cls.SYSTEMD


@dataclass(frozen=True, slots=True)
class Unit:
    """A service file."""

    name: str
    """Its name for the supervisor."""
    path: str
    """Where the supervisor looks for it."""
    text: str
    enable: str
    """The command that starts it now and at each login."""
    disable: str
    """The command that stops it permanently."""
    enabled_mark: str = ""
    """A file that exists while the service is enabled; empty if there is none."""

    JSON_KEYS: ClassVar = {key: key for key in ("name", "path", "enable", "disable")}

    def refuse_enabled(self) -> None:
        """Refuse to go on while it is enabled.

        Raises:
            YoloError: STATE_CONFLICT.
        """
        if self.enabled_mark and os.path.lexists(self.enabled_mark):
            message, hint = f"{self.name} is still enabled", f"First run: {self.disable}"
            raise YoloError(Reason.STATE_CONFLICT, message, hint=hint)


def can_be_served(root: str) -> bool:
    """Return whether a service file can hold the path of a work tree."""
    return not any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF for char in root)


def unit_for(root: str, log: str, system: System) -> Unit:
    """Return the service that watches the work tree `root`.

    launchd keeps no journal, so it writes to `log`.

    Raises:
        YoloError: BAD_NAME, for a path that a service file cannot hold.
    """
    if not can_be_served(root):
        raise YoloError(
            Reason.BAD_NAME,
            f"{safe(root)} holds characters that no service file can hold",
            exit_code=Exit.NOT_HERE,
        )
    return _make_systemd_unit(root) if system is System.SYSTEMD else _make_launchd_unit(root, log)


def _name(root: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", os.path.basename(root).lower()).strip("-") or "repository"
    return f"{slug[:40]}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:_HASH_DIGITS]}"


def command_of_daemon(root: str, *options: str) -> list[str]:
    """Return the command line of the daemon.

    It reads file names as UTF-8, whatever the locale says, as git does.
    """
    return [sys.executable, "-X", "utf8", "-P", "-m", "yolo_fs", "run", *options, "-C", root]


_SYSTEMD = """\
# {mark}
[Unit]
Description=yolo-fs in {description}
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
ExecStart={command}
Restart=on-failure
RestartSec=5
# Not a repository (3) and a broken configuration (78) do not mend themselves.
RestartPreventExitStatus=2 3 78
TimeoutStartSec=300
TimeoutStopSec=60
# TERM is for the daemon alone: a git that it has started may finish.
KillMode=mixed

[Install]
WantedBy=default.target
"""


def _make_systemd_unit(root: str) -> Unit:
    folder = os.path.join(user_folder("XDG_CONFIG_HOME", ".config"), "systemd", "user")
    name = f"yolo-fs-{_name(root)}.service"
    text = _SYSTEMD.format(
        mark=MARK,
        description=root.replace("%", "%%"),
        command=" ".join(_quoted(word) for word in command_of_daemon(root)),
    )
    return Unit(
        name,
        os.path.join(folder, name),
        text,
        enable=f"systemctl --user daemon-reload && systemctl --user enable --now {name}",
        disable=f"systemctl --user disable --now {name}",
        enabled_mark=os.path.join(folder, "default.target.wants", name),
    )


def _quoted(word: str) -> str:
    """Quote a word for `ExecStart=`: specifiers, variables and quotes become plain text."""
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(char, escaped)
    return f'"{word}"'


def _make_launchd_unit(root: str, log: str) -> Unit:
    name = f"dev.yolo-fs.{_name(root)}"
    path = os.path.join(os.path.expanduser("~/Library/LaunchAgents"), f"{name}.plist")
    job = {
        "Label": name,
        "ProgramArguments": command_of_daemon(root),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
        "ThrottleInterval": 10,
        "StandardErrorPath": log,
    }
    text = plistlib.dumps(job, sort_keys=False).decode()
    return Unit(
        name,
        path,
        text.replace("<plist ", f"<!-- {MARK} -->\n<plist ", 1),
        enable=f'launchctl bootstrap gui/{os.getuid()} "{path}"',
        disable=f"launchctl bootout gui/{os.getuid()}/{name}",
    )


def install(unit: Unit) -> str:
    """Write the file; return `installed`, `updated` or `already_installed`.

    Raises:
        YoloError: STATE_CONFLICT, when the file is somebody else's; STORAGE_FAILED.

    """
    present = _present(unit)
    if present == unit.text:
        return "already_installed"
    try:
        os.makedirs(os.path.dirname(unit.path), exist_ok=True)
    except OSError as error:
        raise _failed(unit, error) from error
    write_text(unit.path, unit.text, root=os.path.dirname(unit.path))
    return "installed" if present is None else "updated"


def uninstall(unit: Unit) -> str:
    """Remove the file; return `uninstalled` or `not_installed`.

    Raises:
        YoloError: STATE_CONFLICT, when it is still enabled or somebody else's; STORAGE_FAILED.

    """
    if _present(unit) is None:
        return "not_installed"
    unit.refuse_enabled()
    try:
        os.unlink(unit.path)
    except OSError as error:
        raise _failed(unit, error) from error
    return "uninstalled"


def _present(unit: Unit) -> str | None:
    try:
        with open(unit.path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(unit, error) from error
    if MARK not in text:
        raise YoloError(
            Reason.STATE_CONFLICT, f"{unit.path} is not ours", hint="Move it away, then try again."
        )
    return text


def _failed(unit: Unit, error: OSError) -> YoloError:
    return YoloError(
        Reason.STORAGE_FAILED,
        f"{unit.path}: {error.strerror or error}",
        hint="Check its permissions; 'yolo-fs service print' shows the text.",
    )
