"""Reads and replaces small JSON files.

The one writer of whatever we put into a work tree or into `.git/yolo-fs`. A file changes only by a
rename, so a reader needs no lock; `file_locks` locks it for one change.

A writer names a file, and the folder `root` that it lies below. From there each folder on the way
is opened individually, no link is followed, and no part may spell `.git`. Without a root the file
lies in a folder of our own, which has to be a real folder of this user. See docs/dev/faults.md#f50.
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
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, NoReturn, TypeVar

from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.system import failpoint
from yolo_fs.system.files import Content, names_in, open_folder, parts_to_write, read
from yolo_fs.system.readers import look_closely, quick_decoder
from yolo_fs.system.system import is_running, package_stamp
from yolo_fs.system.text_checks import Limits
from yolo_fs.system.warm_path import (
    OWN_FOLDER,
    ForeignFolderError,
    make_folder,
    open_or_create,
    open_own,
    owners_of,
)

OWN = 0o600
"""Mode of our own files."""
SHARED = 0o644
"""Mode of files that agents and scripts read as well."""
NO_SECOND_NAMES = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK)
"""Errors of a file system without hard links, or without any between these two folders."""

_SIZE_LIMIT_BYTES = 8 * 1024 * 1024
_BLOCK_BYTES = 1 << 16
_LIMITS = Limits(max_file_bytes=_SIZE_LIMIT_BYTES)
_UNFOLLOWED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BEGAN_NS = time.time_ns()
_T = TypeVar("_T")
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
    return unless_damaged(lambda: _parsed(_read_bytes(path)))


def unless_damaged(read: Callable[[], _T]) -> _T | Damaged | None:
    """Return what is read, None without a file, and why it cannot be read as a value."""
    try:
        return read()
    except RefusedError as refusal:
        return Damaged(refusal.reason, refusal.detail)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Damaged(Reason.UNREADABLE, error.strerror or str(error))


class ListedFolder(NamedTuple):
    """A folder, listed once: most of the files that may be in it are absent."""

    path: str
    names: tuple[str, ...]
    """Sorted."""

    @classmethod
    def at(cls, path: str) -> ListedFolder:
        """List a folder; an unreadable one is empty."""
        return cls(path, tuple(names_in(path)))

    def read_json(self, name: str) -> dict[str, Any] | Damaged | None:
        """Read a file of it as `read_json` does."""
        return read_json(os.path.join(self.path, name)) if name in self.names else None


def _read_bytes(path: str) -> bytes:
    data = b""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb", buffering=0) as file:
        # By blocks: a buffer as large as the limit costs more than all the rest.
        while len(data) <= _SIZE_LIMIT_BYTES and (block := file.read(_BLOCK_BYTES)):
            data += block
    if len(data) > _SIZE_LIMIT_BYTES:
        raise RefusedError(Reason.FILE_TOO_LARGE, f"more than {_SIZE_LIMIT_BYTES} bytes")
    return data


@contextlib.contextmanager
def opened(path: str, root: str | None = None, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the open folder that a file lies in, and its name there; see the module.

    `make`: create missing folders below the root.

    Raises:
        RefusedError: NOT_REGULAR, PATH_ESCAPES, FOREIGN_OWNER, UNSAFE_REPOSITORY.
        OSError: there is no such folder.
    """
    if root is None:
        place, name = os.path.split(os.path.abspath(path))
        folder = _own(place)
    else:
        *folders, name = _below(path, root)
        with _refuse_links():
            folder = open_folder(root, folders, make=make)
    try:
        yield folder, name
    finally:
        os.close(folder)


@contextlib.contextmanager
def _refuse_links() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        detail = "a link, or something that is not a folder, is on the way to it"
        raise RefusedError(Reason.NOT_REGULAR, detail) from None


def _below(path: str, root: str) -> list[str]:
    start = root.rstrip("/") + "/"
    parts = parts_to_write(path.removeprefix(start)) if path.startswith(start) else None
    if parts is None:
        expected = "a path below the folder that it belongs to, without `.git` and `..`"
        raise RefusedError(Reason.PATH_ESCAPES, f"expected {expected}")
    return parts


def _own(place: str) -> int:
    # No other folder is made private: it may be one of the user's.
    status = os.stat(place)
    is_private = status.st_uid in owners_of(place) and not status.st_mode & 0o077
    if os.path.basename(place) != OWN_FOLDER and not is_private:
        raise RefusedError(Reason.UNSAFE_REPOSITORY, f"{safe(place)} is open to others")
    return _open_private(place)


def _open_private(place: str) -> int:
    try:
        with _refuse_links():
            return open_own(place)
    except ForeignFolderError as error:
        raise RefusedError(Reason.FOREIGN_OWNER, str(error)) from None


def open_regular(path: str, flags: int, mode: int = OWN, root: str | None = None) -> int:
    """Open without following a link or waiting for a pipe. See docs/dev/faults.md#f45 and #f50.

    A file for writing is reached as in `opened`.
    """
    try:
        if flags & (os.O_WRONLY | os.O_RDWR):
            with opened(path, root) as (folder, name):
                descriptor = open_or_create(folder, name, flags | _UNFOLLOWED, mode)
        else:
            descriptor = os.open(path, flags | _UNFOLLOWED, mode)
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


def is_odd(path: str) -> bool:
    """Return whether something is at a path that is no file: nothing of ours then replaces it."""
    with contextlib.suppress(OSError):
        return not stat.S_ISREG(os.lstat(path).st_mode)
    return False


@cache
def code_stamp() -> int:
    """Return a stamp that identifies the code of this process.

    A process older than the installed code shares no cache.
    """
    # Other folders that modules come from, the user's own among them, change all the time.
    stamps = package_stamp(folder for folder in sys.path if folder.endswith("-packages"))
    is_older = any(changed_ns > _BEGAN_NS for *_, changed_ns in stamps)
    return zlib.crc32(os.urandom(8) if is_older else repr(stamps).encode())


def private_directory(path: str) -> None:
    """Make the directory, or make it private; never its parents, which are not ours.

    See docs/dev/faults.md#f36.

    Raises:
        YoloError: NOT_REGULAR, FOREIGN_OWNER, STORAGE_FAILED.
    """
    above = os.path.dirname(path)
    with environment(path):
        if os.path.basename(above) == OWN_FOLDER:  # a link there leads into a folder of others
            os.close(_open_private(above))
        with contextlib.suppress(FileExistsError):
            make_folder(path, 0o700)
        os.close(_open_private(path))


def write_json(
    path: str,
    value: dict[str, Any],
    *,
    root: str | None = None,
    durable: bool = True,
    mode: int = OWN,
    last_check: Callable[[], object] = bool,
) -> None:
    """Replace the file by the value, as `write_atomic` does."""
    write_atomic(
        path, json_text(value), root=root, durable=durable, mode=mode, last_check=last_check
    )


def write_text(
    path: str, text: str, *, root: str | None = None, durable: bool = True, mode: int = SHARED
) -> None:
    """Replace the file by the text, as `write_json` does."""
    write_atomic(path, text.encode("utf-8"), root=root, durable=durable, mode=mode)


def json_text(value: Mapping[str, Any]) -> bytes:
    """Return JSON with a line for each key.

    It is as readable as with `indent`, which json does slowly, in Python.
    """
    lines = (f"  {_ENCODER.encode(key)}: {_ENCODER.encode(value[key])}" for key in value)
    return ("{\n" + ",\n".join(lines) + "\n}\n" if value else "{}\n").encode("utf-8")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def write_atomic(
    path: str,
    *parts: bytes | memoryview,
    root: str | None = None,
    durable: bool = True,
    mode: int = OWN,
    last_check: Callable[[], object] = bool,
) -> None:
    """Replace the file by a rename: a reader sees the old content or the new, also after a crash.

    `root`: the folder that it lies below; None where it is ours alone. `last_check`: called when
    only the rename is left; if it raises, nothing is replaced.

    Raises:
        YoloError: NO_SPACE, STORAGE_FAILED, NOT_REGULAR, PATH_ESCAPES, FOREIGN_OWNER, and whatever
            the check raises; the file is as it was.
    """
    rename_over(path, *parts, root=root, durable=durable, mode=mode, last_check=last_check)
    if durable:
        sync_name(path, root)


def link_atomic(path: str, target: bytes, *, root: str) -> None:
    """Put a link that leads to `target` in place of whatever file or link is there.

    Raises:
        YoloError: as `write_atomic`; what was there is as it was.
    """
    with environment(path), opened(path, root) as (folder, name):
        temporary = temporary_name(name)
        os.symlink(target, temporary, dir_fd=folder)
        try:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise


def make_folders(path: str, *, root: str) -> None:
    """Create a folder and its missing parents.

    Raises:
        YoloError: as `write_atomic`.
    """
    with environment(path), opened(os.path.join(path, "_"), root, make=True):
        pass


def remove(path: str, *, root: str | None = None) -> None:
    """Remove a file or a link. Raises FileNotFoundError, and YoloError as `write_atomic`."""
    try:
        with opened(path, root) as (folder, name):
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        raise
    except (OSError, RefusedError):
        with environment(path):
            raise


def remove_folder(folder: str) -> None:
    """Remove a folder with its content; of a link, only the link. Raises as `remove`."""
    with environment(folder):
        if os.path.islink(folder):
            os.unlink(folder)
        else:
            import shutil  # 4 ms

            shutil.rmtree(folder)


def remove_empty_folders(folder: str, top: str) -> None:
    """Remove a folder and its parents, up to and including `top`, as long as they are empty."""
    while folder == top or folder.startswith(f"{top}/"):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        folder = os.path.dirname(folder)


def move(path: str, target: str, *, root: str | None = None) -> None:
    """Give a file another name, below the same root. Raises as `remove`."""
    try:
        with opened(path, root) as (source, name), opened(target, root) as (folder, new):
            os.rename(name, new, src_dir_fd=source, dst_dir_fd=folder)
    except FileNotFoundError:
        raise
    except (OSError, RefusedError):
        with environment(path):
            raise


def temporary_name(name: str) -> str:
    """Return the name of a draft of a file, which `reap_temporaries` knows."""
    return f".{name}.yolo-tmp.{os.getpid()}.{os.urandom(4).hex()}"


def sync_name(path: str, root: str | None) -> None:
    """Put the name of a file on the disk."""
    with environment(path), opened(path, root) as (folder, _):
        _sync(folder)


def rename_over(
    path: str,
    *parts: bytes | memoryview,
    root: str | None,
    durable: bool,
    mode: int,
    last_check: Callable[[], object] = bool,
) -> None:
    """Replace the file. If durable, its data is on the disk then, but not yet its name."""
    with environment(path), opened(path, root) as (folder, name):
        temporary = temporary_name(name)
        try:
            failpoint.reach("store.begun")
            _write_new(folder, temporary, *parts, durable=durable, mode=mode)
            failpoint.reach("store.written")
            last_check()
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            failpoint.reach("store.named")
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def _write_new(
    folder: int, name: str, *parts: bytes | memoryview, durable: bool, mode: int
) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _UNFOLLOWED
    descriptor = open_or_create(folder, name, flags, mode)
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
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(directory: int) -> None:
    try:
        os.fsync(directory)
    except OSError as error:
        # Some file systems cannot sync a directory and order the rename themselves.
        if error.errno != errno.EINVAL:
            raise


def reap_temporaries(directory: str) -> int:
    """Remove what killed writers left, and only that; return how many.

    See docs/dev/faults.md#f47.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        folder = os.open(directory, flags)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    try:
        with os.scandir(folder) as entries:
            return sum(_reap_temporary(folder, entry) for entry in entries)
    finally:
        os.close(folder)


def _reap_temporary(folder: int, entry: os.DirEntry[str]) -> bool:
    spelled = _TEMPORARY.fullmatch(entry.name)
    if (
        spelled is None
        or not entry.is_file(follow_symlinks=False)
        or is_running(int(spelled["pid"]))
    ):
        return False
    try:
        os.unlink(entry.name, dir_fd=folder)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def environment(path: str) -> Iterator[None]:
    """Turn errors of the operating system into a `YoloError`."""
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
    hint = _HINTS.get(refusal.reason, "give another place")
    raise YoloError(
        refusal.reason, f"{safe(path)}: {refusal.detail}", hint=hint, exit_code=Exit.NOT_HERE
    ) from None


_HINTS = {
    Reason.NOT_REGULAR: "check what it is, then remove it; it is recreated as needed",
    Reason.FOREIGN_OWNER: "let its owner remove it, or hand it over with chown",
    Reason.UNSAFE_REPOSITORY: "make it private with 'chmod 700'",
}


def place_file(root: str, path: str, data: bytes, expected: bytes | None) -> Reason | None:
    """Give the file `path` below `root` this content; return why that is impossible, or None.

    Missing folders are created. `expected`: what it has to hold now; None where there must be no
    file. It survives a power loss after `sync_file`.

    Raises:
        YoloError: NO_SPACE, STORAGE_FAILED.
    """
    with environment(path):
        try:
            with opened(os.path.join(root, path), root, make=True) as (folder, name):
                return None if _is_placed(folder, name, data, expected) else Reason.BEING_WRITTEN
        except RefusedError as refusal:
            return refusal.reason


def _is_placed(folder: int, name: str, data: bytes, expected: bytes | None) -> bool:
    temporary = temporary_name(name)
    try:
        _write_new(folder, temporary, data, durable=False, mode=SHARED)
        if expected is None:
            return _place_new(folder, name, temporary, data)
        if _content_of(folder, name, len(expected)) == expected:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            return True
        return False
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)


def _place_new(folder: int, name: str, temporary: str, data: bytes) -> bool:
    """Give a written file its name where there is none, and return whether it has it: unlike a
    rename, it never overwrites.
    """
    with contextlib.suppress(FileExistsError):
        try:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            if error.errno not in NO_SECOND_NAMES:
                raise
            _write_new(folder, name, data, durable=False, mode=SHARED)
        return True
    return False


def sync_file(root: str, path: str) -> None:
    """Make a file and its name durable. One that is gone meanwhile needs nothing."""
    with (
        contextlib.suppress(OSError, RefusedError),
        opened(os.path.join(root, path), root) as (folder, name),
    ):
        descriptor = os.open(name, os.O_RDONLY | _UNFOLLOWED, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _sync(folder)


def _content_of(folder: int, name: str, size_bytes: int) -> bytes | None:
    content = read(folder, name, size_bytes)
    if not isinstance(content, Content) or content.being_written:
        return None
    return content.data
