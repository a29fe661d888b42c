"""Reads and replaces small JSON files, and locks them: for one change, or for a process's life.

The one importer of filelock. A file changes only by a rename, so a reader needs no lock; a lock stands on a
separate file that is never unlinked, and is flock(2), as flock(1) in the protocol's shell scripts uses it.
Source: reliability F40 to F47 and 4.2; performance 4; design 2.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn, Self

from yolo_fs import __version__
from yolo_fs.reasons import Exit, Reason, YoloError, safe

OWN = 0o600
"""Mode of our own files."""
SHARED = 0o644
"""Mode of files that agents and scripts read as well."""

_SIZE_LIMIT_BYTES = 8 * 1024 * 1024
_DIGIT_LIMIT = 20
_POLL_S = 0.01
_PROBE_S = 0.05
"""How long `hold` outwaits those who merely look at the lock (`holder`)."""
_TEMPORARY = re.compile(r"\..+\.yolo-tmp\.(?P<pid>[0-9]{1,10})\.[0-9a-f]+", re.DOTALL)

# --- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Damaged:
    """What `read_json` returns for a file that is there but holds no JSON object."""

    reason: Reason
    detail: str


class _RefusedError(ValueError):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def read_json(path: str) -> dict[str, Any] | Damaged | None:
    """Return the object in the file, None when there is no file, `Damaged` when there is anything else."""
    try:
        return _parsed(_bytes_of(path))
    except _RefusedError as refusal:
        return Damaged(refusal.reason, refusal.detail)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Damaged(Reason.UNREADABLE, error.strerror or str(error))


def _bytes_of(path: str) -> bytes:
    with os.fdopen(_open_regular(path, os.O_RDONLY), "rb") as file:
        data = file.read(_SIZE_LIMIT_BYTES + 1)
    if len(data) > _SIZE_LIMIT_BYTES:
        raise _RefusedError(Reason.FILE_TOO_LARGE, f"more than {_SIZE_LIMIT_BYTES} bytes")
    return data


def _open_regular(path: str, flags: int, mode: int = OWN) -> int:
    """Open without following a link or waiting for a pipe. Source: reliability F45, F50."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as error:
        # ELOOP: a link. EISDIR and ENXIO: a directory or a socket or pipe opened for writing.
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _RefusedError(Reason.NOT_REGULAR, error.strerror or str(error)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _RefusedError(Reason.NOT_REGULAR, Reason.NOT_REGULAR.sentence)
    return descriptor


def _parsed(data: bytes) -> dict[str, Any]:
    if not data.strip():
        raise _RefusedError(Reason.EMPTY_FILE, Reason.EMPTY_FILE.sentence)
    try:
        value = _DECODER.decode(data.decode("utf-8"))
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except _RefusedError:
        raise
    except UnicodeDecodeError as error:
        raise _RefusedError(Reason.NOT_UTF8, f"byte {error.start}") from None
    except UnicodeEncodeError:
        raise _RefusedError(Reason.LONE_SURROGATE, Reason.LONE_SURROGATE.sentence) from None
    except RecursionError:
        raise _RefusedError(Reason.NESTING_TOO_DEEP, Reason.NESTING_TOO_DEEP.sentence) from None
    except ValueError as error:
        raise _RefusedError(Reason.JSON_PARSE_ERROR, str(error)) from None
    if not isinstance(value, dict):
        raise _RefusedError(Reason.NOT_AN_OBJECT, f"a JSON {type(value).__name__}")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        raise _RefusedError(Reason.DUPLICATE_KEY, next(repr(name) for name in value if names.count(name) > 1))
    return value


def _integer(digits: str) -> int:
    if len(digits) > _DIGIT_LIMIT:
        raise _RefusedError(Reason.NUMBER_TOO_LARGE, f"a number of {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _RefusedError(Reason.NOT_FINITE, digits[:_DIGIT_LIMIT])
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_int=_integer, parse_float=_finite, parse_constant=_finite
)

# --- writing ---------------------------------------------------------------------------------------------------------


def private_directory(path: str) -> None:
    """Make the directory, or make it private; never its parents, for those are somebody else's.

    Source: reliability 4.2, F36.
    """
    with _environment(path):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid():
                raise YoloError(Reason.FOREIGN_OWNER, f"{path} belongs to user {found.st_uid}", exit_code=Exit.NOT_HERE)
            if stat.S_IMODE(found.st_mode) & 0o077:
                os.fchmod(descriptor, 0o700)
        finally:
            os.close(descriptor)


def write_json(path: str, value: dict[str, Any], *, durable: bool = True, mode: int = OWN) -> None:
    """Replace the file by the value: whoever reads sees the old content or the new, also after a crash."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    _replace(path, text.encode("utf-8"), durable=durable, mode=mode)


def _replace(path: str, data: bytes, *, durable: bool, mode: int) -> None:
    directory, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(directory, f".{name}.yolo-tmp.{os.getpid()}.{secrets.token_hex(4)}")
    with _environment(path):
        try:
            _write_new(temporary, data, durable=durable, mode=mode)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if durable:
            _sync_directory(directory)


def _write_new(path: str, data: bytes, *, durable: bool, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(descriptor, mode)
        if durable:
            os.fsync(descriptor)


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems cannot sync a directory and order the rename themselves.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def reap_temporaries(directory: str, older_than_s: float) -> int:
    """Remove what killed writers left, and nothing else; return how many. Source: reliability F47."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as entries:
        return sum(_reaped(entry, older_than_s) for entry in entries)
    return 0


def _reaped(entry: os.DirEntry[str], older_than_s: float) -> bool:
    spelled = _TEMPORARY.fullmatch(entry.name)
    if spelled is None or not entry.is_file(follow_symlinks=False) or _is_process(int(spelled["pid"])):
        return False
    try:
        if time.time() - entry.stat(follow_symlinks=False).st_mtime < older_than_s:
            return False
        os.unlink(entry.path)
    except OSError:
        return False
    return True


def _is_process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def _environment(path: str) -> Iterator[None]:
    """Turn what the operating system refuses into a `YoloError`."""
    try:
        yield
    except _RefusedError as refusal:
        _refuse(path, refusal)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = Reason.NO_SPACE if full else Reason.STORAGE_FAILED
        message = f"{safe(path)}: {error.strerror or error}"
        raise YoloError(reason, message, hint="free space or check permissions", exit_code=Exit.TRY_AGAIN) from error


def _refuse(path: str, refusal: _RefusedError) -> NoReturn:
    hint = "look at what it is, then remove it; it is made again as needed"
    raise YoloError(refusal.reason, f"{safe(path)}: {refusal.detail}", hint=hint, exit_code=Exit.NOT_HERE) from None


# --- a lock for one change -------------------------------------------------------------------------------------------


def update(
    path: str,
    lock: str,
    fn: Callable[[dict[str, Any] | Damaged | None], dict[str, Any] | None],
    timeout_s: float = 10.0,
    *,
    durable: bool = True,
    mode: int = OWN,
) -> dict[str, Any] | None:
    """Change the file under the lock: `fn` is given what `read_json` returns, and returns the new value.

    Returns what was written; None from `fn` means no change, and is returned. The lock file stays.
    Raises: YoloError(LOCK_TIMEOUT), naming the holder if the kernel tells.
    """
    with _locked(lock, timeout_s, mode):
        new = fn(read_json(path))
        if new is not None:
            write_json(path, new, durable=durable, mode=mode)
        return new


@contextlib.contextmanager
def _locked(lock: str, timeout_s: float, mode: int) -> Iterator[None]:
    import filelock  # 35 ms: only those who lock pay for it

    with _environment(lock):
        _refuse_odd_lock(lock)
        held = filelock.FileLock(
            lock, timeout=timeout_s, mode=mode, poll_interval=_POLL_S, fallback_to_soft=False, preserve_lock_file=True
        )
        try:
            held.acquire()
        except filelock.Timeout:
            raise _timeout(lock, timeout_s) from None
        except (OSError, NotImplementedError) as error:
            if isinstance(error, OSError) and error.errno not in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK):
                raise
            raise YoloError(Reason.NETWORK_FILESYSTEM, f"{safe(lock)}: {error}", exit_code=Exit.NOT_HERE) from error
    try:
        yield
    finally:
        held.release()


def _refuse_odd_lock(lock: str) -> None:
    """Refuse what filelock would open or make for us: a pipe, and missing parent directories (F36)."""
    try:
        found = os.lstat(lock)
    except FileNotFoundError:
        os.stat(os.path.dirname(os.path.abspath(lock)))
        return
    if not stat.S_ISREG(found.st_mode):
        raise _RefusedError(Reason.NOT_REGULAR, Reason.NOT_REGULAR.sentence)


def _timeout(lock: str, timeout_s: float) -> YoloError:
    names = " and ".join(_named(pid) for pid in _lockers(lock)) or "a process that the kernel does not name"
    return YoloError(
        Reason.LOCK_TIMEOUT,
        f"{safe(lock)} was not free within {timeout_s:g} s: held by {names}",
        hint="end or resume that process, then try again; never delete the lock file",
        exit_code=Exit.LOCK_TIMEOUT,
    )


def _named(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return f"process {pid} ({safe(file.read().strip())})"
    except OSError:
        return f"process {pid}"


def _lockers(lock: str) -> tuple[int, ...]:
    """Return the pids that hold a flock on the file, as far as /proc/locks tells (not on btrfs or overlayfs)."""
    try:
        found = os.stat(lock, follow_symlinks=False)
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file]
    except OSError:
        return ()
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return tuple(int(row[4]) for row in rows if row[1] == "FLOCK" and row[5] == place and int(row[4]) > 0)


# --- a lock for life -------------------------------------------------------------------------------------------------


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
        return self.boot_id == _boot_id() and _is_process(self.pid) and self.start_time == _start_time(self.pid)


UNKNOWN_HOLDER = Holder(pid=0, started_at="", start_time=None, boot_id="", version="")
"""Somebody holds the lock and has not said who."""


class Held:
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


def hold(path: str) -> Held | None:
    """Take the lock for life, or return None at once when somebody has it.

    flock(2) itself, not filelock: the descriptor is ours to write to, to compare and to hand to git, and
    filelock gives the lock up in a forked child. Both, and flock(1), exclude each other.
    """
    with _environment(path):
        deadline = time.monotonic() + _PROBE_S
        while True:
            descriptor = _open_regular(path, os.O_RDWR | os.O_CREAT)
            try:
                if _is_locked_by(descriptor, path):
                    _sign(descriptor)
                    return Held(path, descriptor)
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
        return _identity_of(os.stat(path, follow_symlinks=False)) == _identity_of(os.fstat(descriptor))
    return False


def _refuse_foreign(descriptor: int) -> None:
    """Refuse a file that is not ours alone, since our name will be written over its content (F45)."""
    found = os.fstat(descriptor)
    if found.st_nlink > 1:
        raise _RefusedError(Reason.HARD_LINKED, Reason.HARD_LINKED.sentence)
    if found.st_uid != os.geteuid():
        raise _RefusedError(Reason.FOREIGN_OWNER, Reason.FOREIGN_OWNER.sentence)


def _identity_of(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _sign(descriptor: int) -> None:
    """Say in the lock file who holds it. A full disk must not cost us the lock: it is information only."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    me = Holder(os.getpid(), started_at, _start_time(os.getpid()), _boot_id(), __version__)
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(me)).encode() + b"\n", 0)


def holder(path: str) -> Holder | None:
    """Return who holds the lock now, `UNKNOWN_HOLDER` if nobody says so, None if it is free."""
    try:
        with _environment(path):
            descriptor = _open_regular(path, os.O_RDONLY)
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
            "start_time": int() | None as start_time,
            "boot_id": str(boot_id),
            "version": str(version),
        }:
            return Holder(pid, started_at, start_time, boot_id, version)
    pids = _lockers(path)
    return Holder(pids[0], "", _start_time(pids[0]), _boot_id(), "") if pids else UNKNOWN_HOLDER


def _start_time(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
