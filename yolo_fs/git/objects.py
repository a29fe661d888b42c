"""git objects: read through one `cat-file`, written as one kept pack, durable before acknowledged.

`git gc`, `git repack -ad` and `git prune` spare what a pack with a `.keep` beside it holds, so
nothing of ours is taken before a branch names it, and nothing has to wait for them. See
docs/dev/faults.md#f04 and #f09.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.git.object_format import (
    GitObject,
    ObjectFormat,
    Pack,
    pack_of,
)
from yolo_fs.git.runner import Conversation, Git, GitError
from yolo_fs.system import failpoint
from yolo_fs.system.files import Stamp, stamp_at
from yolo_fs.system.store import sync_directory

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

KEEP_NOTE = b"yolo-fs\n"
"""What a `.keep` of ours says. It is what tells our packs from the user's, also after a crash."""

_SYNCS_AT_ONCE = 2
_ASKED_AHEAD = 64
"""Objects in one question, which has to fit into a pipe, or we and git would each wait for the
other to read."""

MOST_BYTES = {"blob": 64 << 20, "tree": 16 << 20, "commit": 4 << 20, "tag": 1 << 20}
"""Larger objects are not read: whoever pushes one of a few kilobytes decides how large it unpacks.
Of a commit so much is read: no branch can go on without its tree and its parents.
"""
_AHEAD_BYTES = 16 << 20
"""Of the objects that are asked for at once, so much is read before the first of them is used."""
_SIZES_KEPT = 10_000
_FULL = (errno.ENOSPC, errno.EDQUOT)


COLLECTED_WITHIN_S = 60.0
"""How long a `git gc` acts on what it has listed, at most; its lock may be left by a killed one."""
_SETTLED_WITHIN_S = 0.5
_ENDINGS = (".idx", ".pack", ".keep")
_POLL_S = 0.05


class _Head(NamedTuple):
    """What git says of an object before it sends it."""

    kind: str
    size: int


class _DoubtfulPack(NamedTuple):
    """A pack that was named while a `git gc` was at work."""

    pack: Pack
    collection: Stamp | None
    since: float
    """On the monotonic clock."""


class _Draft(NamedTuple):
    descriptor: int
    temporary: str
    final: str

    def name(self) -> None:
        """Give the file its name, whatever a power loss left under it."""
        os.replace(self.temporary, self.final)


class ObjectStore:
    """Reads objects through one `cat-file --batch`, and writes packs itself."""

    def __init__(
        self,
        git: Git,
        directory: str,
        object_format: ObjectFormat,
        *,
        durable: bool = True,
        shared: Callable[[], int] = lambda: 0,
    ):
        """Store in `directory`; `shared`: permissions that others get beside the user's umask."""
        self._git = git
        self.object_format = object_format
        self.is_durable = durable
        """Whether what is written survives power loss."""
        self._ask_shared = shared
        self.pack_folder = f"{directory}/pack"
        self.packs_written = 0
        """By this process; every git has to look into each of them until it is merged."""
        self._reader: Conversation | None = None
        self._sizes: Conversation | None = None
        self._is_wary = False
        """Whether sizes are asked for before anything is read: one was too large."""
        self._too_large: dict[str, int] = {}
        """Name → size of what was larger than whoever asked last can take."""
        self._in_doubt: dict[str, _DoubtfulPack] = {}

    def read(self, name: str, most_bytes: int = MOST_BYTES["blob"]) -> GitObject | None:
        """Return the object that a name (an id or a revision) refers to, or None: it is missing, or
        larger than its kind may be, a blob than `most_bytes`; `unread` tells which.
        """
        (found,) = self.read_many([name], most_bytes)
        return found

    def read_many(
        self, names: Sequence[str], most_bytes: int = MOST_BYTES["blob"]
    ) -> Iterator[GitObject | None]:
        """Yield the object of each name, as `read` returns it; many are asked for at once."""
        at = 0
        while at < len(names):
            some = names[at : at + _ASKED_AHEAD]
            found = self._read_some(some, most_bytes)
            for name in takewhile(found.__contains__, some):
                yield found[name]
                at += 1

    def unread(self, what: str, name: str) -> YoloError:
        """Return the error of an object that `read` has not returned: FILE_TOO_LARGE with its size,
        else OBJECT_MISSING.
        """
        if size := self._too_large.get(name):
            hint = "Its author makes it smaller; nothing of it was read."
            return YoloError(
                Reason.FILE_TOO_LARGE,
                f"{what}: {size} bytes",
                hint=hint,
                exit_code=Exit.FINDINGS,
            )
        return missing_error(what)

    def size_of(self, name: str) -> int | None:
        """Return the size of an object in bytes without reading it; None when it is missing."""
        try:
            (head,) = self._heads([name])
        except YoloError:  # a fresh git is asked once more, as of contents
            self.close()
            (head,) = self._heads([name])
        return head.size if head else None

    def end(self) -> None:
        """End the reading process and the threads."""
        self.close()
        if "_syncers" in vars(self):
            self._syncers.shutdown()

    def close(self) -> None:
        """End the reading processes."""
        for reader in (self._reader, self._sizes):
            if reader is not None:
                reader.close()
        self._reader = self._sizes = None

    def _may_read(self, name: str, head: _Head, most_bytes: int) -> bool:
        """Return whether an object is within its limit, and note of another how large it is."""
        if head.kind == "commit":
            return True
        limit = most_bytes if head.kind == "blob" else MOST_BYTES.get(head.kind, 0)
        self._too_large.pop(name, None)
        if head.size > limit:
            if len(self._too_large) >= _SIZES_KEPT:
                self._too_large.clear()
            self._too_large[name] = head.size
        return head.size <= limit

    def _read_some(self, names: Sequence[str], most_bytes: int) -> dict[str, GitObject | None]:
        """Return the first of these objects, so many as may stand in memory at once.

        A fresh git is asked once more: one that outlived a repack, or a change of the
        configuration, may be wrong.
        """
        try:
            return self._ask(names, most_bytes)
        except YoloError:
            self.close()
        found: dict[str, GitObject | None] = {}
        for name in names:
            try:
                found |= self._ask([name], most_bytes)
            except GitError as error:
                self.close()
                if "promisor remote" not in error.said:
                    raise
                found[name] = None  # a partial clone lacks it, and we fetch nothing
        return found

    def _ask(self, names: Sequence[str], most_bytes: int) -> dict[str, GitObject | None]:
        found: dict[str, GitObject | None] = {name: None for name in names if "\n" in name}
        left, size = [name for name in names if name not in found], 0
        if self._is_wary:
            for name, head in zip(left, self._heads(left), strict=True):
                if head is None or not self._may_read(name, head, most_bytes):
                    found[name] = None
            left = [name for name in left if name not in found]
        while left:
            if self._reader is None:
                self._reader = self._git.converse("cat-file", "--batch")
            self._reader.ask(_lines(left))
            for name in left:
                oid, head = _head(self._reader)
                found[name] = None
                if head and head.kind == "commit" and head.size > MOST_BYTES["commit"]:
                    body = self._reader.exactly(MOST_BYTES["commit"])
                    found[name] = GitObject(oid, head.kind, body)
                    self._stop_reading()
                    break
                if head and not self._may_read(name, head, most_bytes):
                    self._is_wary = True
                    self._stop_reading()
                    break
                if head:
                    body = self._reader.exactly(head.size + 1)[:-1]
                    found[name] = GitObject(oid, head.kind, body)
                    size += len(body)
                if size > _AHEAD_BYTES and name != left[-1]:
                    self._stop_reading()
                    return found
            left = [name for name in left if name not in found]
        return found

    def _stop_reading(self) -> None:
        """End a reading process that has more to say."""
        if self._reader is not None:
            self._reader.kill()
        self._reader = None

    def _heads(self, names: Sequence[str]) -> list[_Head | None]:
        """Return kind and size of objects that are not read; None for those that are missing."""
        if self._sizes is None:
            self._sizes = self._git.converse("cat-file", "--batch-check")
        self._sizes.ask(_lines(names))
        return [_head(self._sizes)[1] for _ in names]

    @cached_property
    def _syncers(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor  # most commands write nothing

        return ThreadPoolExecutor(_SYNCS_AT_ONCE, thread_name_prefix="sync")

    @cached_property
    def _shared(self) -> int:
        return self._ask_shared() & 0o044

    @contextlib.contextmanager
    def unnamed(self) -> Iterator[None]:
        """Hand no pack over to the user's gc while objects are written that no branch names yet.

        The lock is on the folder of packs itself: no file is needed in a folder of the user's.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        with storage_errors("objects"):
            try:
                descriptor = os.open(self.pack_folder, flags)
            except FileNotFoundError:
                # Never its parent: a store that is gone must not be made anew (F36).
                os.mkdir(self.pack_folder)
                descriptor = os.open(self.pack_folder, flags)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    def write(self, objects: Sequence[GitObject]) -> None:
        """Store objects: they survive a crash, every pruning, and power loss when durable.

        Raises:
            YoloError: NO_SPACE or STORAGE_FAILED; nothing refers to what was written so far.
        """
        self.begin_to_write(objects)()

    def begin_to_write(self, objects: Sequence[GitObject]) -> Callable[[], None]:
        """Store objects so that every git finds them, and return what waits until their names are
        durable as well: no ref may be moved to them before.

        Raises:
            YoloError: as `write`, like what is returned.
        """
        self.restore()
        unique = {object_.oid: object_ for object_ in objects}.values()
        pack = pack_of(unique, self.object_format)
        with storage_errors("objects"):
            failpoint.reach("objects.begun")
            wait = self._write_guarded(pack)

        def settle() -> None:
            with storage_errors("objects"):
                wait()
            failpoint.reach("objects.durable")

        return settle

    def collection(self) -> Stamp | None:
        """Return what tells a `git gc` that is at work here from the next one; None without any."""
        objects = os.path.dirname(self.pack_folder)
        return stamp_at(f"{os.path.dirname(objects)}/gc.pid")

    def has_ended(self, collection: Stamp | None, since: float) -> bool:
        """Return whether a `git gc`, seen at `since` (monotonic), takes nothing away any more."""
        if collection is None:
            return True
        is_late = time.monotonic() - since > COLLECTED_WITHIN_S
        return is_late or collection != self.collection()

    def restore(self) -> bool:
        """Write again what a `git gc` removed because it had listed a pack by halves; return
        whether any is still in doubt.

        It lists the folder in pieces. Where it finds an index, and the pack got its name behind
        its back, it takes index and note for litter. A repack may have listed the pack without its
        note by then, so it is written under another name. See docs/dev/faults.md#f09.

        Raises:
            YoloError: NO_SPACE or STORAGE_FAILED; it is tried again with the next call.
        """
        for name, doubt in list(self._in_doubt.items()):
            is_over = self.has_ended(doubt.collection, doubt.since)
            if not self._is_whole(name):
                again = self.object_format.checksum(doubt.pack.name.encode())
                with storage_errors("objects"):
                    self._write_guarded(doubt.pack._replace(name=again.hex()))()
                for ending in _ENDINGS:
                    discard(f"{self.pack_folder}/{name}{ending}")
                is_over = True
            if is_over:
                self.release(name)
        return bool(self._in_doubt)

    def keep(self, name: str) -> None:
        """Lay our note beside a pack that is there, so that git collects nothing of it."""
        with contextlib.ExitStack() as cleanup, storage_errors("objects"):
            self._draft(f"{self.pack_folder}/{name}.keep", KEEP_NOTE, cleanup).name()

    def release(self, name: str) -> None:
        """Leave a pack alone: its objects stand in another."""
        self._in_doubt.pop(name, None)

    def settle(self) -> None:
        """Restore what a `git gc` is about to remove, before this process ends."""
        until = time.monotonic() + _SETTLED_WITHIN_S
        while self.restore() and time.monotonic() < until:
            time.sleep(_POLL_S)

    def _write_guarded(self, pack: Pack) -> Callable[[], object]:
        name = f"pack-{pack.name}"
        at_work = self.collection()
        wait = self._write_pack(pack)
        if at_work is None:
            at_work = self.collection()
        if at_work or not self._is_whole(name):
            self._in_doubt[name] = _DoubtfulPack(pack, at_work, time.monotonic())
        return wait

    def _is_whole(self, name: str) -> bool:
        return all(os.path.exists(f"{self.pack_folder}/{name}{ending}") for ending in _ENDINGS)

    def _write_pack(self, pack: Pack) -> Callable[[], object]:
        """Write, sync, then name: the note first, so that no repack sees the pack without it.

        Returns what waits until the names are synced, too.
        """
        place = f"{self.pack_folder}/pack-{pack.name}"
        with contextlib.ExitStack() as cleanup:
            drafts = [
                self._draft(f"{place}{ending}", data, cleanup)
                for ending, data in ((".pack", pack.data), (".idx", pack.idx))
            ]
            failpoint.reach("objects.written")
            if self.is_durable:
                list(self._syncers.map(os.fsync, [draft.descriptor for draft in drafts]))
            failpoint.reach("objects.synced")
            self._draft(f"{place}.keep", KEEP_NOTE, cleanup).name()
            for draft in drafts:
                draft.name()
        self.packs_written += 1
        failpoint.reach("objects.named")
        if not self.is_durable:
            return lambda: None
        return self._syncers.submit(sync_directory, self.pack_folder).result

    def _draft(self, final: str, data: bytes, cleanup: contextlib.ExitStack) -> _Draft:
        """Write a file under a temporary name of ours: a prune removes those of git (`tmp_`)."""
        folder, name = os.path.split(final)
        temporary = f"{folder}/.{name}.yolo-tmp.{os.getpid()}.{os.urandom(4).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o444)
        cleanup.callback(discard, temporary)
        cleanup.callback(os.close, descriptor)
        if self._shared:
            os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | self._shared)
        _write_all(descriptor, data)
        return _Draft(descriptor, temporary, final)


@contextlib.contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn what the operating system refuses while `what` is written into a `YoloError`."""
    try:
        yield
    except OSError as error:
        raise storage_error(what, error) from error


def storage_error(what: str, error: OSError) -> YoloError:
    """Return the error that what the operating system refused amounts to."""
    reason = Reason.NO_SPACE if error.errno in _FULL else Reason.STORAGE_FAILED
    return YoloError(reason, f"{what}: {error.strerror}", exit_code=Exit.TRY_AGAIN)


def missing_error(what: str) -> YoloError:
    """Return the error of an object that should be there and cannot be read."""
    return YoloError(
        Reason.OBJECT_MISSING,
        f"{what} cannot be read",
        hint="See 'yolo-fs doctor'.",
        exit_code=Exit.GIT_FAILED,
    )


def discard(path: str) -> None:
    """Remove a file of ours that is no longer needed; one that stays does no harm."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _lines(names: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(name) + b"\n" for name in names)


def _head(reader: Conversation) -> tuple[str, _Head | None]:
    """Return the id, and kind and size, that git says before an object; none if it is missing."""
    header = reader.line().split(b" ")
    if header[-1] in (b"missing", b"ambiguous") or len(header) != 3:
        return "", None
    return header[0].decode(), _Head(header[1].decode(), int(header[2]))
