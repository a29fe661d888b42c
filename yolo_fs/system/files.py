"""The only module that opens files of the work tree.

It opens nothing outside it, nothing but regular files, and nothing half-written. It also walks a
tree again at the cost of what changed in it.

Every path is walked folder by folder from the root's descriptor, and no link is ever followed. A
folder that is swapped for a link meanwhile therefore leads nowhere. See docs/dev/faults.md#f14,
#f16, #f18, #f50 and #f52.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from io import FileIO
from operator import attrgetter
from typing import NamedTuple, Self

from yolo_fs.core.ids import spells_git
from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.system import IS_LINUX, failpoint
from yolo_fs.system.warm_path import make_folder

Root = int | str | bytes
"""The folder that every path starts from: an open descriptor, or a trusted path."""

MAX_FOLDERS = 64
"""Deeper folders are not entered: each look walks from the root, so the cost grows with the square
of the depth."""

_ROOT_UID = 0
"""Whom everybody has to trust: a container's daemon writes as root into the tree of its user."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK_BYTES = 1 << 20
RACY_NS = 2_000_000_000
"""A file younger than this when it was read may change without its stamp showing it. See
docs/dev/faults.md#f18."""
_SET_LEASE_SIGNAL = 10
"""F_SETSIG of Linux, which the standard library does not name."""


class Stamp(NamedTuple):
    """What changes when a file does. Equal stamps prove nothing within the clock's grain (F18)."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls._make(
            (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        )

    def is_racy(self, read_at_ns: int) -> bool:
        """Return whether what was read then (wall clock) may have changed without a new stamp."""
        return read_at_ns - max(self.mtime_ns, self.ctime_ns) <= RACY_NS


def stamp_at(path: str, *, by_link: bool = True) -> Stamp | None:
    """Return the stamp of the file at a path, also through a last link; None without one."""
    try:
        return Stamp.of(os.stat(path, follow_symlinks=by_link))
    except (OSError, ValueError):
        return None


def identity_at(path: str) -> tuple[int, int] | None:
    """Return device and inode of whatever is at a path itself; None when there is nothing."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class Writer(Enum):
    """Whether any process has the file open for writing."""

    NONE = "none"
    SOME = "some"
    UNKNOWN = "unknown"
    """The file system grants no leases, or this is not Linux: nothing is proven."""


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of one file as they were at one look."""

    data: bytes
    stamp: Stamp
    """Taken after the last byte was read."""
    being_written: bool
    """The file changed during the read, or a process has it open for writing."""
    writer: Writer
    is_executable: bool
    """Its owner may run it."""


class FileEntry(NamedTuple):
    """Anything in the work tree that is not a folder to descend into."""

    path: str
    """POSIX path relative to the root; bytes that are not UTF-8 stand as lone surrogates."""
    stamp: Stamp
    refused: Reason | None = None
    """None for a regular file; otherwise why it cannot be read as one."""


def read(root: Root, relative: str | bytes, limit_bytes: int) -> Content | Finding:
    """Return the content of a regular file below `root`, or what is in its place. Raises nothing.

    A lease shows whether a process is writing. It is released at once. A writer that arrives in
    these two microseconds causes a signal that the system ignores by default.
    """
    path = os.fsdecode(relative)
    if (parts := _parts(path)) is None:
        return _finding(Reason.PATH_ESCAPES, path, "not a relative path below the root")
    try:
        owner_uid = os.stat(root).st_uid
        with _folder(root, parts[:-1]) as parent:
            return _read_in(parent, parts[-1], path, owner_uid, limit_bytes)
    except (OSError, ValueError) as error:
        return _finding(_reason_for_error(error), path, _explain(error))


def link_target(root: Root, relative: str) -> bytes | None:
    """Return the target of a link below `root`, unfollowed; None without a link."""
    try:
        parts = _parts(relative) or []
        with _folder(root, parts[:-1]) as parent:
            return os.fsencode(os.readlink(parts[-1], dir_fd=parent))
    except (OSError, ValueError, IndexError):
        return None


def stamp_of(root: Root, relative: str | bytes) -> Stamp | Finding:
    """Return the stamp of whatever is at a path, without opening it. Raises nothing."""
    path = os.fsdecode(relative)
    if (parts := _parts(path)) is None:
        return _finding(Reason.PATH_ESCAPES, path, "not a relative path below the root")
    try:
        with _folder(root, parts[:-1]) as parent:
            return Stamp.of(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False))
    except (OSError, ValueError) as error:
        return _finding(_reason_for_error(error), path, _explain(error))


Wanted = Callable[[str], object]
"""Tells by its path whether a file is requested."""


def always(_path: str) -> bool:
    """Ask for every file."""
    return True


def never(_path: str) -> bool:
    """Ask for no file."""
    return False


def walk(root: Root, relative: str | bytes = "", wanted: Wanted = always) -> Iterator[FileEntry]:
    """Yield every file below a folder, sorted within each folder.

    Whatever is not a file is yielded with the reason. Links are never followed. What vanishes
    during the walk is left out. A folder that cannot be entered is an entry itself, so that nothing
    is skipped silently.

    `wanted`: selects files by their path; the others are not examined.
    """
    pending = [os.fsdecode(relative)]
    with FolderReader(root) as reader:
        while pending:
            entries, folders = reader.read(pending.pop(), wanted)
            yield from entries
            pending.extend(reversed(folders))


class FolderReader:
    """Lists folders below a root, one after another; see `walk`.

    The parent of the last folder stays open, because the next folder is mostly beside it.
    """

    def __init__(self, root: Root):
        self._root = root
        self._above: tuple[Sequence[str], int] | None = None
        """The names that lead to the open folder, and its descriptor."""

    def read(self, folder: str, wanted: Wanted = always) -> tuple[list[FileEntry], list[str]]:
        """Return the entries of a folder that are `wanted`, and the folders in it, sorted."""
        parts = _parts(folder) if folder else []
        if parts is None:
            return [], []
        if len(parts) > MAX_FOLDERS:
            return _blocked(self._root, folder, Reason.UNREADABLE), []
        try:
            with self._opened(parts) as fd, os.scandir(fd) as listing:
                return _split_listing(folder, listing, wanted)
        except (OSError, ValueError) as error:
            return _blocked(self._root, folder, _reason_for_error(error)), []

    @contextmanager
    def _opened(self, parts: Sequence[str]) -> Iterator[int]:
        above, name = (parts[:-1], parts[-1]) if parts else ([], ".")
        if self._above is None or self._above[0] != above:
            self._close()
            self._above = above, open_folder(self._root, above)
        fd = _open_below(self._above[1], name)
        try:
            yield fd
        finally:
            os.close(fd)

    def _close(self) -> None:
        if self._above is not None:
            os.close(self._above[1])
            self._above = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


def ignore_lease_breaks() -> None:
    """Ignore SIGIO, the default signal of a lease break, which would end the process.

    `read` asks for another signal, so this is a second safeguard. Call it once from the main
    thread.
    """
    signal.signal(signal.SIGIO, signal.SIG_IGN)


# --- reading ---


def _read_in(
    parent: int, name: str, path: str, owner_uid: int, limit_bytes: int
) -> Content | Finding:
    while True:
        # Opening a device, or a pipe that a writer waits at, has side effects: check before
        # opening, and again after.
        seen = os.stat(name, dir_fd=parent, follow_symlinks=False)
        refused = _refused(seen, path, owner_uid, limit_bytes)
        if refused and not _is_linked_to_draft(refused, parent, name, seen):
            return refused
        fd = os.open(name, _FILE, dir_fd=parent)
        try:
            before = os.fstat(fd)
            if before.st_nlink == 0 < seen.st_nlink:
                continue  # another file has its name since it was opened, or none has
            refused = _refused(before, path, owner_uid, limit_bytes)
            if refused and not _is_linked_to_draft(refused, parent, name, before):
                return refused
            return _content(fd, before, path, limit_bytes)
        finally:
            os.close(fd)


def _content(fd: int, before: os.stat_result, path: str, limit_bytes: int) -> Content | Finding:
    data = _read_to_limit(fd, before.st_size, limit_bytes)
    failpoint.reach("files.read")
    if len(data) > limit_bytes:
        return _too_large(path, len(data), limit_bytes)
    writer = _writer(fd)
    status = os.fstat(fd)
    stamp = Stamp.of(status)
    changed = stamp != Stamp.of(before) or stamp.size != len(data)
    is_executable = bool(status.st_mode & stat.S_IXUSR)
    return Content(data, stamp, changed or writer is Writer.SOME, writer, is_executable)


def _read_to_limit(fd: int, size: int, limit_bytes: int) -> bytes:
    """Return the file's content, at most one byte more than the limit, whatever size it reports."""
    chunks: list[bytes] = []
    left = limit_bytes + 1
    step = min(max(size + 1, 4096), _CHUNK_BYTES)
    while left > 0 and (chunk := os.read(fd, min(left, step))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def _writer(fd: int) -> Writer:
    """Return whether a process has the file open for writing, as shown by a read lease."""
    if not IS_LINUX or not hasattr(fcntl, "F_SETLEASE"):
        return Writer.UNKNOWN
    try:
        # The default, SIGIO, ends a process that does not handle it; SIGURG is ignored by default.
        fcntl.fcntl(fd, _SET_LEASE_SIGNAL, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return Writer.SOME
    except OSError:
        return Writer.UNKNOWN
    return Writer.NONE


def _refused(status: os.stat_result, path: str, owner_uid: int, limit_bytes: int) -> Finding | None:
    if not stat.S_ISREG(status.st_mode):
        return _finding(
            Reason.NOT_REGULAR, path, f"a {_kind(status.st_mode)} is where a file must be"
        )
    if status.st_nlink > 1:  # some file systems count none
        return _finding(Reason.HARD_LINKED, path, f"the file has {status.st_nlink} names")
    if status.st_uid not in (owner_uid, os.geteuid(), _ROOT_UID):
        return _finding(Reason.FOREIGN_OWNER, path, f"the file belongs to user {status.st_uid}")
    if status.st_size > limit_bytes:
        return _too_large(path, status.st_size, limit_bytes)
    return None


def _is_linked_to_draft(refused: Finding, parent: int, name: str, status: os.stat_result) -> bool:
    """Return whether the second name of a file is the draft that we have just made it from.

    A file that must not be there yet is placed by a link, and the draft is removed a moment later.
    """
    if refused.reason is not Reason.HARD_LINKED or status.st_nlink != 2:
        return False
    drafts = (each for each in os.listdir(parent) if each.startswith(f".{name}.yolo-tmp."))
    for draft in drafts:
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(draft, dir_fd=parent, follow_symlinks=False), status):
                return True
    return os.stat(name, dir_fd=parent, follow_symlinks=False).st_nlink == 1


_KINDS = {
    stat.S_IFLNK: "symbolic link",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
    stat.S_IFDIR: "folder",
}


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "thing of an unknown kind")


# --- walking ---

_NAME = attrgetter("name")


@contextmanager
def _folder(root: Root, parts: Sequence[str]) -> Iterator[int]:
    fd = open_folder(root, parts)
    try:
        yield fd
    finally:
        os.close(fd)


def open_folder(root: Root, parts: Sequence[str], *, make: bool = False) -> int:
    """Open a folder below the root without following any link.

    `make`: create missing folders. Raises OSError: NotADirectoryError for a link.
    """
    fd = os.dup(root) if isinstance(root, int) else os.open(root, _FOLDER)
    for part in parts:
        try:
            below = _open_or_make(fd, part) if make else _open_below(fd, part)
        finally:
            os.close(fd)
        fd = below
    return fd


def _open_or_make(parent: int, name: str) -> int:
    # An existing folder is not created: the attempt would lock its parent.
    with suppress(FileNotFoundError):
        return _open_below(parent, name)
    with suppress(FileExistsError):
        make_folder(name, 0o775, parent=parent)  # a umask of 000 lets nobody else write
    return _open_below(parent, name)


def _open_below(parent: int, name: str) -> int:
    return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)


def _split_listing(
    folder: str, listing: Iterable[os.DirEntry[str]], wanted: Wanted
) -> tuple[list[FileEntry], list[str]]:
    entries: list[FileEntry] = []
    folders: list[str] = []
    for item in sorted(listing, key=_NAME):
        path = f"{folder}/{item.name}" if folder else item.name
        try:
            if item.is_dir(follow_symlinks=False):
                folders.append(path)
            elif wanted(path):
                status = item.stat(follow_symlinks=False)
                regular = stat.S_ISREG(status.st_mode)
                entries.append(
                    FileEntry(path, Stamp.of(status), None if regular else Reason.NOT_REGULAR)
                )
        except FileNotFoundError:
            continue
    return entries, folders


def _blocked(root: Root, folder: str, reason: Reason) -> list[FileEntry]:
    """Return the entry of a folder that cannot be entered; none when it has vanished."""
    stamp = stamp_of(root, folder)
    return [FileEntry(folder, stamp, reason)] if isinstance(stamp, Stamp) else []


# --- findings ---


def _parts(path: str) -> list[str] | None:
    parts = path.split("/")
    return None if {"", ".", ".."} & set(parts) else parts


def parts_to_write(path: str) -> list[str] | None:
    """Return the components of a path below a root; None where nothing may be written."""
    parts = _parts(path)
    return None if parts is None or "\0" in path or any(map(spells_git, parts)) else parts


_REASONS = {
    errno.ENOENT: Reason.FILE_MISSING,
    errno.ELOOP: Reason.NOT_REGULAR,
    errno.ENOTDIR: Reason.NOT_REGULAR,
    errno.ENXIO: Reason.NOT_REGULAR,
    errno.ENODEV: Reason.NOT_REGULAR,
    errno.EAGAIN: Reason.BEING_WRITTEN,
}
"""EAGAIN: another process holds a write lease, which `O_NONBLOCK` does not wait for."""


def _reason_for_error(error: OSError | ValueError) -> Reason:
    if isinstance(error, OSError):
        return _REASONS.get(error.errno or 0, Reason.UNREADABLE)
    return Reason.BAD_NAME


def _explain(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return "the name holds a NUL or cannot be encoded"
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return "a link, or something that is not a folder, is on the way to the file"
    return error.strerror or "the system gave no reason"


def _too_large(path: str, size_bytes: int, limit_bytes: int) -> Finding:
    return _finding(
        Reason.FILE_TOO_LARGE, path, f"{size_bytes} bytes or more; the limit is {limit_bytes}"
    )


_ADVICE = {
    Reason.FILE_MISSING: ("a file at this path", "write it, or correct the path"),
    Reason.NOT_REGULAR: ("a regular file, in real folders", "replace it with a plain file"),
    Reason.HARD_LINKED: ("a file with one name", "copy it, then rename the copy over it"),
    Reason.FOREIGN_OWNER: (
        "a file of the user who owns the work tree",
        "let its owner hand it over with chown",
    ),
    Reason.FILE_TOO_LARGE: ("a file within the limit", "split it, or refer to the data instead"),
    Reason.UNREADABLE: ("a file that can be read", "check its permissions and the disk"),
    Reason.PATH_ESCAPES: (
        "a relative path without `..`, such as phases/01-auth/critique.jsonl",
        "correct the path",
    ),
    Reason.BAD_NAME: ("a name without NUL", "rename the file"),
    Reason.BEING_WRITTEN: ("a file that no process is writing", "nothing: it is checked again"),
}


@lru_cache(maxsize=1024)  # a daemon asks every second for files that are not there
def _finding(reason: Reason, path: str, message: str) -> Finding:
    expected, hint = _ADVICE[reason]
    return Finding(reason, path, message=message, expected=expected, hint=hint)


def names_in(folder: str, prefix: str = "") -> list[str]:
    """Return the sorted names in a folder that begin with `prefix`; none when it is unreadable."""
    try:
        return sorted(name for name in os.listdir(folder) if name.startswith(prefix))
    except OSError:
        return []


def is_below(path: str, folder: str) -> bool:
    """Return whether a path lies in a folder or names it, also where case makes no difference."""
    if f"{path}/".casefold().startswith(f"{folder}/".casefold()):
        return True
    wanted = identity_at(folder)
    while wanted and path != os.path.dirname(path):
        if identity_at(path) == wanted:
            return True
        path = os.path.dirname(path)
    return False


def open_plain(path: str) -> int:
    """Open a regular file for reading, also behind a link. Never wait for anything else there.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, Reason.NOT_REGULAR.sentence)
    return descriptor


MOST_BYTES = 64 << 20
"""Maximum size of a file of git or of the user that is read whole. None comes near it."""


def content_of(path: str, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the content of a file of git or of the user.

    It is empty where the file cannot be read, is not regular, or is larger than `most_bytes`.
    """
    try:
        with FileIO(open_plain(path)) as file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > most_bytes else file.read(size + 1)
            if len(data) > size:  # it grows, or is one of the kernel's, which tell no size
                data += file.read(most_bytes + 1 - len(data))
    except (OSError, ValueError):
        return b""
    return data if data and len(data) <= most_bytes else b""


def is_endless(path: str, most_bytes: int = 1 << 30) -> bool:
    """Return whether reading from a path may never end: a named pipe, a device, or a file of more
    than `most_bytes`, which on a disk may need no room at all.

    The null device ends at once, and stands for an empty file.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    if stat.S_ISREG(status.st_mode):
        return status.st_size > most_bytes
    is_device = stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)
    return stat.S_ISFIFO(status.st_mode) or (
        is_device and not os.path.samestat(status, os.stat(os.devnull))
    )


def odd_names_in(folder: str) -> list[str]:
    """Return the paths in a folder at which there is neither a file nor a folder itself."""
    try:
        with os.scandir(folder) as entries:
            return [
                entry.path
                for entry in entries
                if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False))
            ]
    except OSError:
        return []


def is_plain_file(path: str) -> bool:
    """Return whether a path is a regular file itself, not a link to one."""
    return os.path.isfile(path) and not os.path.islink(path)


# --- walking again ---


class _Hollow(NamedTuple):
    """A folder that contains only folders.

    A folder with files is read at each walk: files change in place.
    """

    facts: tuple[int, int, int, int, int]
    """Fields of its stamp, taken before the folder was read."""
    folders: list[str]


class ScanCache:
    """Remembers which folders hold no file, and reads these again only after a change."""

    def __init__(self, root: str):
        self._root = root
        self._hollow: dict[str, dict[str, _Hollow]] = {}
        """Start of a walk → the hollow folders below it."""

    def walk(self, start: str, in_the_way: Wanted = never) -> Iterator[FileEntry]:
        """Yield what `files.walk` yields, and each folder that stands where a file must be.

        `in_the_way`: selects these folders by their path.
        """
        known, hollows = self._hollow.get(start, {}), dict[str, _Hollow]()
        pending = [start]
        with FolderReader(self._root) as reader:
            while pending:
                folder = pending.pop()
                hollow, facts = known.get(folder), self._facts(folder)
                if facts and in_the_way(folder):
                    yield FileEntry(folder, Stamp(*facts), Reason.NOT_REGULAR)
                if hollow and hollow.facts == facts:
                    hollows[folder] = hollow
                    pending += reversed(hollow.folders)
                    continue
                at_ns = time.time_ns()
                entries, folders = reader.read(folder)
                yield from entries
                if facts and not entries and not Stamp(*facts).is_racy(at_ns):
                    hollows[folder] = _Hollow(facts, folders)
                pending.extend(reversed(folders))
        self._hollow[start] = hollows

    def _facts(self, folder: str) -> tuple[int, int, int, int, int] | None:
        # A link on the way may lead elsewhere; the result only tells whether it is still the same
        # folder. Only the fields of a stamp are kept: there may be twenty thousand.
        try:
            now = os.lstat(f"{self._root}/{folder}")
        except (OSError, ValueError):
            return None
        return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns
