"""Reads and replaces small JSON files, and locks them for one change.

The one importer of filelock. A file changes only by a rename, so a reader needs no lock; a lock
stands on a separate file that is never unlinked, and is flock(2), as flock(1) in the protocol's
shell scripts uses it. See docs/faults.md#f42 to #f47.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import sys
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, NoReturn

from yolo_fs.edges import failpoint
from yolo_fs.edges.files import Content, is_plain_file, names_in, read
from yolo_fs.edges.readers import look_closely, quick_decoder
from yolo_fs.edges.system import is_running, lock_timeout, open_locked, package_stamp
from yolo_fs.edges.text_checks import Limits
from yolo_fs.reasons import Exit, Reason, YoloError, safe

OWN = 0o600
"""Mode of our own files."""
SHARED = 0o644
"""Mode of files that agents and scripts read as well."""

_SIZE_LIMIT_BYTES = 8 * 1024 * 1024
_BLOCK_BYTES = 1 << 16
_LIMITS = Limits(max_file_bytes=_SIZE_LIMIT_BYTES)
_POLL_S = 0.01
_BEGAN_NS = time.time_ns()
_TEMPORARY = re.compile(r"\..+\.yolo-tmp\.(?P<pid>[0-9]{1,10})\.[0-9a-f]+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Damaged:
    """What `read_json` returns for a file that is there but holds no JSON object."""

    reason: Reason
    detail: str


class RefusedError(ValueError):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def read_json(path: str) -> dict[str, Any] | Damaged | None:
    """Return the object in the file, None without a file, `Damaged` for anything else."""
    try:
        return _parsed(_bytes_of(path))
    except RefusedError as refusal:
        return Damaged(refusal.reason, refusal.detail)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Damaged(Reason.UNREADABLE, error.strerror or str(error))


class ListedFolder(NamedTuple):
    """A folder, listed once: most of what may lie there does not."""

    path: str
    names: tuple[str, ...]
    """Sorted."""

    @classmethod
    def at(cls, path: str) -> ListedFolder:
        """List a folder; one that cannot be read holds nothing."""
        return cls(path, tuple(names_in(path)))

    def read_json(self, name: str) -> dict[str, Any] | Damaged | None:
        """Read a file of it as `read_json` does."""
        return read_json(os.path.join(self.path, name)) if name in self.names else None


def _bytes_of(path: str) -> bytes:
    data = b""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb", buffering=0) as file:
        # By blocks: a buffer as large as the limit costs more than all the rest.
        while len(data) <= _SIZE_LIMIT_BYTES and (block := file.read(_BLOCK_BYTES)):
            data += block
    if len(data) > _SIZE_LIMIT_BYTES:
        raise RefusedError(Reason.FILE_TOO_LARGE, f"more than {_SIZE_LIMIT_BYTES} bytes")
    return data


def open_regular(path: str, flags: int, mode: int = OWN) -> int:
    """Open without following a link or waiting for a pipe. See docs/faults.md#f45 and #f50."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as error:
        # ELOOP: a link. EISDIR and ENXIO: a directory or a socket or pipe opened for writing.
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise RefusedError(Reason.NOT_REGULAR, error.strerror or str(error)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RefusedError(Reason.NOT_REGULAR, Reason.NOT_REGULAR.sentence)
    return descriptor


def _parsed(data: bytes) -> dict[str, Any]:
    if not data.strip():
        raise RefusedError(Reason.EMPTY_FILE, Reason.EMPTY_FILE.sentence)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(Reason.NOT_UTF8, f"byte {error.start}") from None
    try:
        return quick_decoder(data, _LIMITS)(text.strip())
    except ValueError:
        value, faults = look_closely(text, _LIMITS)
    if faults:
        fault = faults[0].fault
        raise RefusedError(fault.reason, fault.message or fault.reason.sentence)
    return dict(value)


def recall(path: str, of: str) -> Any:
    """Return what `remember` left there of the same thing, by the same code; else None."""
    found = read(*os.path.split(path), _SIZE_LIMIT_BYTES)
    seal, _, told = found.data.partition(b"\n") if isinstance(found, Content) else (b"", b"", b"")
    return json.loads(told) if seal == _seal(of, told) else None


def remember(path: str, of: str, value: object) -> None:
    """Leave a value to the next process, which does without where that cannot be done."""
    told = json.dumps(value, separators=(",", ":")).encode()
    is_odd = os.path.lexists(path) and not is_plain_file(path)
    if not is_odd and len(told) < _SIZE_LIMIT_BYTES:
        with contextlib.suppress(YoloError):
            write_atomic(path, _seal(of, told), b"\n", told, durable=False)


def _seal(of: str, told: bytes) -> bytes:
    return f"{of} {_code():08x} {zlib.crc32(told):08x}".encode()


@cache
def _code() -> int:
    """Return what tells the code of this process from any other: a process that has lived longer
    than the code that is installed shares nothing.
    """
    # Other folders that modules come from, the user's own among them, change all the time.
    stamps = package_stamp(one for one in sys.path if one.endswith("-packages"))
    is_older = any(changed_ns > _BEGAN_NS for *_, changed_ns in stamps)
    return zlib.crc32(os.urandom(8) if is_older else repr(stamps).encode())


def private_directory(path: str) -> None:
    """Make the directory, or make it private; never its parents, which are not ours.

    See docs/faults.md#f36.
    """
    with environment(path):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid():
                raise YoloError(
                    Reason.FOREIGN_OWNER,
                    f"{path} belongs to user {found.st_uid}",
                    exit_code=Exit.NOT_HERE,
                )
            if stat.S_IMODE(found.st_mode) & 0o077:
                os.fchmod(descriptor, 0o700)
        finally:
            os.close(descriptor)


def write_json(
    path: str,
    value: dict[str, Any],
    *,
    durable: bool = True,
    mode: int = OWN,
    last_check: Callable[[], object] = bool,
) -> None:
    """Replace the file by the value, as `write_atomic` does."""
    write_atomic(path, _text(value), durable=durable, mode=mode, last_check=last_check)


def write_text(path: str, text: str, *, durable: bool = True, mode: int = SHARED) -> None:
    """Replace the file by the text, as `write_json` does."""
    write_atomic(path, text.encode("utf-8"), durable=durable, mode=mode)


def _text(value: Mapping[str, Any]) -> bytes:
    """Return a line for each key: readable as by `indent`, which json does slowly, in Python."""
    lines = (f"  {_ENCODER.encode(key)}: {_ENCODER.encode(value[key])}" for key in value)
    return ("{\n" + ",\n".join(lines) + "\n}\n" if value else "{}\n").encode("utf-8")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def write_atomic(
    path: str,
    *parts: bytes | memoryview,
    durable: bool = True,
    mode: int = OWN,
    last_check: Callable[[], object] = bool,
) -> None:
    """Replace the file by a rename: a reader sees the old content or the new, also after a crash.

    `last_check`: called when all is written but the name; where it raises, nothing is replaced.

    Raises:
        YoloError: NO_SPACE, STORAGE_FAILED, and whatever the check raises; the file is as it was.
    """
    _rename_over(path, *parts, durable=durable, mode=mode, last_check=last_check)
    if durable:
        _sync_name(path)


def link_atomic(path: str, target: bytes) -> None:
    """Put a link that leads to `target` in place of whatever file or link is there.

    Raises:
        YoloError: NO_SPACE, STORAGE_FAILED; what was there is as it was.
    """
    temporary = _temporary(path)
    with environment(path):
        os.symlink(target, temporary)
        try:
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise


def _temporary(path: str) -> str:
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.join(directory, f".{name}.yolo-tmp.{os.getpid()}.{os.urandom(4).hex()}")


def _sync_name(path: str) -> None:
    with environment(path):
        sync_directory(os.path.dirname(os.path.abspath(path)))


def _rename_over(
    path: str,
    *parts: bytes | memoryview,
    durable: bool,
    mode: int,
    last_check: Callable[[], object] = bool,
) -> None:
    """Replace the file; when durable, its data is on the disk then, but not yet its name."""
    temporary = _temporary(path)
    with environment(path):
        try:
            failpoint.reach("store.begun")
            _write_new(temporary, *parts, durable=durable, mode=mode)
            failpoint.reach("store.written")
            last_check()
            os.replace(temporary, path)
            failpoint.reach("store.named")
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def _write_new(path: str, *parts: bytes | memoryview, durable: bool, mode: int) -> None:
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode
    )
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fchmod(descriptor, mode)
        if durable:
            os.fsync(descriptor)


def sync_directory(directory: str) -> None:
    """Make the names in a directory durable."""
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
    """Remove what killed writers left, and only that; return how many. See docs/faults.md#f47."""
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        os.scandir(directory) as entries,
    ):
        return sum(_reaped(entry, older_than_s) for entry in entries)
    return 0


def _reaped(entry: os.DirEntry[str], older_than_s: float) -> bool:
    spelled = _TEMPORARY.fullmatch(entry.name)
    if (
        spelled is None
        or not entry.is_file(follow_symlinks=False)
        or is_running(int(spelled["pid"]))
    ):
        return False
    try:
        if time.time() - entry.stat(follow_symlinks=False).st_mtime < older_than_s:
            return False
        os.unlink(entry.path)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def environment(path: str) -> Iterator[None]:
    """Turn what the operating system refuses into a `YoloError`."""
    try:
        yield
    except RefusedError as refusal:
        _refuse(path, refusal)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = Reason.NO_SPACE if full else Reason.STORAGE_FAILED
        message = f"{safe(path)}: {error.strerror or error}"
        hint = "free space or check permissions"
        if error.errno == errno.EROFS:
            hint = "this process may only read there; run it outside of the agent's sandbox"
        raise YoloError(reason, message, hint=hint, exit_code=Exit.TRY_AGAIN) from error


def _refuse(path: str, refusal: RefusedError) -> NoReturn:
    hint = "look at what it is, then remove it; it is made again as needed"
    raise YoloError(
        refusal.reason, f"{safe(path)}: {refusal.detail}", hint=hint, exit_code=Exit.NOT_HERE
    ) from None


class UnnamedFile:
    """Bytes on the disk that only this process and its forks can find, and that end with them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size_bytes = 0
        weakref.finalize(self, os.close, descriptor)

    @classmethod
    def below(cls, directory: str) -> UnnamedFile | None:
        """Return an empty one; None where the system, or that file system, has no such thing."""
        with contextlib.suppress(OSError, AttributeError):
            return cls(os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, OWN))
        return None

    def append(self, data: bytes | memoryview) -> bool:
        """Add bytes, and return whether the disk took them all; else it is as it was."""
        with contextlib.suppress(OSError):
            if os.pwrite(self._descriptor, data, self._size_bytes) == len(data):
                self._size_bytes += len(data)
                return True
        return False

    def read(self, begin: int, count: int) -> bytes:
        """Return some of the bytes. Raises YoloError(STORAGE_FAILED)."""
        with environment("a file without a name"):
            found = os.pread(self._descriptor, count, begin)
            if len(found) < count:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        return found


def update(
    path: str,
    lock: str,
    fn: Callable[[dict[str, Any] | Damaged | None], dict[str, Any] | None],
    timeout_s: float = 10.0,
    *,
    durable: bool = True,
    mode: int = OWN,
) -> dict[str, Any] | None:
    """Change the file under the lock: `fn` is given what `read_json` returns, and returns the new
    value.

    Returns what was written; None from `fn` means no change, and is returned. The lock file stays.
    Raises: YoloError(LOCK_TIMEOUT), naming the holder if the kernel tells.
    """
    with locked(lock, timeout_s, mode):
        new = fn(read_json(path))
        if new is None:
            return None
        _rename_over(path, _text(new), durable=durable, mode=mode)
    # The next holder need not wait until the disk has our new name as well: names reach it in
    # order.
    if durable:
        _sync_name(path)
    return new


@contextlib.contextmanager
def locked(lock: str, timeout_s: float, mode: int = OWN) -> Iterator[None]:
    """Hold the lock file while the context lasts; it stays. Raises YoloError(LOCK_TIMEOUT)."""
    with environment(lock):
        release = _take_free(lock, mode) or _wait_for(lock, timeout_s, mode)
    try:
        yield
    finally:
        release()


def _take_free(lock: str, mode: int) -> Callable[[], object] | None:
    """Take a free lock by the flock(2) of filelock, in a tenth of its time; None if it is held."""
    with contextlib.suppress(OSError):  # filelock explains a file system without locks
        descriptor = open_locked(
            lock, lambda path: open_regular(path, os.O_RDWR | os.O_CREAT, mode)
        )
        if descriptor is not None:
            return partial(os.close, descriptor)
    return None


def _wait_for(lock: str, timeout_s: float, mode: int) -> Callable[[], object]:
    import filelock  # 35 ms: only those who wait pay for it

    _refuse_odd_lock(lock)
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
        raise YoloError(Reason.NETWORK_FILESYSTEM, why, exit_code=Exit.NOT_HERE) from error
    return held.release


def _refuse_odd_lock(lock: str) -> None:
    """Refuse what filelock would open or make for us: a pipe, and missing parents (F36)."""
    try:
        found = os.lstat(lock)
    except FileNotFoundError:
        os.stat(os.path.dirname(os.path.abspath(lock)))
        return
    if not stat.S_ISREG(found.st_mode):
        raise RefusedError(Reason.NOT_REGULAR, Reason.NOT_REGULAR.sentence)


def place_file(root: str, path: str, data: bytes, expected: bytes | None) -> Reason | None:
    """Let the file `path` below `root` have this content; return why that cannot be, or None.

    `expected`: what it has to hold now; None where there must be no file. It survives a power loss
    after `sync_file`.

    Raises:
        YoloError: NO_SPACE, STORAGE_FAILED.
    """
    target = os.path.join(root, path)
    temporary = _temporary(target)
    with environment(path):
        if not _make_folders(root, os.path.dirname(path)):
            return Reason.NOT_REGULAR
        try:
            _write_new(temporary, data, durable=False, mode=SHARED)
            if expected is None:
                os.link(temporary, target)
            elif _content_of(root, path, len(expected)) == expected:
                os.replace(temporary, target)
            else:
                return Reason.BEING_WRITTEN
        except FileExistsError:
            return Reason.BEING_WRITTEN
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
    return None


def sync_file(root: str, path: str) -> None:
    """Let a file and its name survive a power loss; one that is gone meanwhile needs nothing."""
    with contextlib.suppress(OSError):
        descriptor = os.open(os.path.join(root, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_directory(os.path.dirname(os.path.join(root, path)))


def _content_of(root: str, path: str, size_bytes: int) -> bytes | None:
    found = read(root, path, size_bytes)
    if not isinstance(found, Content) or found.being_written:
        return None
    return found.data


def _make_folders(root: str, folder: str) -> bool:
    """Make the folders of a path; return whether each of them is a folder and no link."""
    place = root
    for part in filter(None, folder.split("/")):
        place = os.path.join(place, part)
        with contextlib.suppress(FileExistsError):
            if not os.path.lexists(place):  # what is there is not made: that locks what it lies in
                os.mkdir(place)
        if os.path.islink(place) or not os.path.isdir(place):
            return False
    return True
