"""Facts about the machine: this boot, its processes, its file systems, whether it reports changes.

Also locks by flock(2): try once, or wait, while the locked file must still be the one that the path
names.
"""

from __future__ import annotations

import fcntl
import os
import platform
import resource
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import NamedTuple

from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.system import IS_LINUX, PROC

NETWORK_FILESYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.s3fs"}
)
"""Where flock cannot be trusted. See docs/dev/faults.md#f46."""
_FIRST_SPACE = "pid:[4026531836]"
"""The PID namespace that contains all others: the kernel's number for it is fixed."""


class Degraded(NamedTuple):
    """Why events are missing, so that only the periodic scan finds changes."""

    reason: Reason
    detail: str
    hint: str = ""


def package_stamp(beside: Iterable[str]) -> tuple[tuple[str, int, int, int, int], ...]:
    """Return a stamp of all files of ours and of folders of packages; the ctime is last."""
    ours = os.walk(os.path.dirname(os.path.dirname(__file__)))
    folders = (entry for entry in ours if not entry[0].endswith("__pycache__"))
    files = [f"{folder}/{name}" for folder, _, names in folders for name in names]
    stamps = []
    for path in (*files, *beside):
        with suppress(OSError):
            status = os.stat(path)
            stamps.append(
                (path, status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)
            )
    return tuple(stamps)


def process_space() -> int:
    """Return an identity of this PID namespace; 0 where there is none.

    Another container has another one.
    """
    try:
        return os.stat(f"{PROC}/self/ns/pid").st_ino
    except OSError:
        return 0


def boot_id() -> str:
    """Return the identity of this boot; empty where the system has none."""
    try:
        with open(f"{PROC}/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def machine_id() -> str:
    """Return an identity of this machine: machine-id(5), or its name where it has none."""
    with suppress(OSError), open("/etc/machine-id") as file:
        return file.read(256).strip()
    return platform.node()


def start_time(pid: int) -> int | None:
    """Return when a process started, in ticks since boot, or None.

    It identifies a pid's process.
    """
    return _said_of(pid, 19)


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None where it is unknown."""
    return _said_of(pid, 1)


def _said_of(pid: int, at: int) -> int | None:
    field = _field_of(pid, at)
    return int(field) if field.lstrip(b"-").isdigit() else None


def _field_of(pid: int, at: int) -> bytes:
    """Return a field of /proc/PID/stat, counted from the state letter; empty without one."""
    with suppress(OSError, IndexError), open(f"{PROC}/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[at]
    return b""


def filesystem_type(path: str) -> str:
    """Return the type of the file system that a path lies on; empty when it cannot be told."""
    best, type_ = "", ""
    wanted = os.path.realpath(path).rstrip("/") + "/"
    try:
        with open(f"{PROC}/self/mountinfo") as file:
            for line in file:
                fields, _, rest = line.partition(" - ")
                point = fields.split(" ")[4].replace("\\040", " ").rstrip("/") + "/"
                if wanted.startswith(point) and len(point) >= len(best):
                    best, type_ = point, rest.split(" ")[0]
    except (OSError, IndexError):
        return ""
    return type_


def return_free_memory() -> None:
    """Return free memory to the system: glibc keeps it, and more and more in a long life.

    Other C libraries have no malloc_trim(3), and are left alone.
    """
    import ctypes  # commands end before it is worth while

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


_DESCRIPTORS = 4_096
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, even if this process is stopped.

    On systems other than Linux nothing happens: there a process has to notice by itself.
    """
    import ctypes

    if IS_LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def begin_clean(folder: str) -> None:
    """Undo what this process has inherited from a shell and would limit it for weeks.

    That is its folder, which may go; soft limits; a umask under which its user cannot read what it
    writes.
    """
    os.chdir(folder)
    os.umask(os.umask(0o077) & 0o077)
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
        soft, hard = resource.getrlimit(limit)
        wanted = hard
        if limit == resource.RLIMIT_NOFILE and hard == resource.RLIM_INFINITY:
            wanted = max(soft, _DESCRIPTORS)  # macOS refuses more than a limit of its own
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (wanted, hard))


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped, as by SIGSTOP; one in a debugger is not."""
    return _field_of(pid, 0) == b"T"


def is_running(pid: int) -> bool:
    """Return whether a process exists. A zombie does not count."""
    if _field_of(pid, 0) in (b"Z", b"X"):
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def wait_for_end(pids: Iterable[int], timeout_s: float) -> None:
    """Wait so long, or until one of these processes has ended; a zombie has."""
    if not hasattr(os, "pidfd_open"):
        time.sleep(timeout_s)
        return
    ends = select.poll()
    with ExitStack() as opened:
        for pid in pids:
            with suppress(OSError):
                descriptor = os.pidfd_open(pid)
                opened.callback(os.close, descriptor)
                ends.register(descriptor, select.POLLIN)
        ends.poll(1000 * timeout_s)


def commands() -> Iterator[tuple[str, list[bytes]]]:
    """Yield the id of each process and the words of its command, from /proc or else from ps."""
    if not os.path.isdir(PROC):
        for line in told_by("ps", "-A", "-ww", "-o", "pid=", "-o", "args="):
            number, *words = line.split()
            yield number.decode(), words
        return
    for pid in filter(str.isdigit, os.listdir(PROC)):
        if words := command_of(pid):
            yield pid, words


def command_of(pid: str) -> list[bytes]:
    """Return the words of a process's command from /proc; none where it has ended."""
    with suppress(OSError), open(f"{PROC}/{pid}/cmdline", "rb") as file:
        return file.read(4096).split(b"\0")
    return []


def sees_every_process() -> bool:
    """Return whether no process of this machine is hidden from us.

    A container hides processes, and so does the option `hidepid` of /proc.
    """
    try:
        space = os.readlink(f"{PROC}/self/ns/pid")
        with open(f"{PROC}/1/cmdline", "rb"):
            return space == _FIRST_SPACE
    except OSError:
        return False


def working_folder(pid: str) -> str:
    """Return the working directory of a process; empty where unknown.

    Without /proc, lsof is asked.
    """
    if not os.path.isdir(PROC):
        lines = told_by("lsof", "-a", "-p", pid, "-d", "cwd", "-F", "n")
        return os.fsdecode(b"".join(line[1:] for line in lines if line.startswith(b"n/")))
    with suppress(OSError):
        return os.path.realpath(os.readlink(f"{PROC}/{pid}/cwd"))
    return ""


def told_by(*command: str) -> list[bytes]:
    """Return the lines that a system program prints; none where the program is missing."""
    from subprocess import DEVNULL, PIPE, SubprocessError, run

    with suppress(OSError, SubprocessError):
        done = run(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, timeout=10, check=False)
        return done.stdout.splitlines()
    return []


def process_name(pid: int) -> str:
    try:
        with open(f"{PROC}/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return f"process {pid} ({safe(file.read().strip())})"
    except OSError:
        return f"process {pid}"


def flock_holders(lock: str) -> tuple[int, ...]:
    """Return the pids that hold a flock on the file, if /proc/locks tells (not on btrfs)."""
    try:
        status = os.stat(lock, follow_symlinks=False)
        with open(f"{PROC}/locks", encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file]
    except OSError:
        return ()
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return tuple(
        int(row[4]) for row in rows if row[1] == "FLOCK" and row[5] == place and int(row[4]) > 0
    )


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

    Replacing a lock file would let two processes lock "the same" path. See docs/dev/faults.md#f44.
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
    """Return the error for a lock that was not free in time, with the holders if known."""
    holders = [process_name(pid) for pid in flock_holders(path)]
    names = " and ".join(holders) or "a process that the kernel does not name"
    message = f"{safe(path)} was not free within {timeout_s:g} s: held by {names}"
    return YoloError(Reason.LOCK_TIMEOUT, message, hint=hint)
