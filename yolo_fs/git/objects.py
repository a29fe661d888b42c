"""git objects: read through one `cat-file`, written as a kept pack, durable when acknowledged.

`git gc`, `git repack -ad` and `git prune` spare the objects of a pack with a `.keep` beside it. So
nothing of ours is removed before a branch names it, and nothing has to wait for them. See
docs/dev/faults.md#f04 and #f09.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.git.conversation import Conversation
from yolo_fs.git.failures import BRINGS_BACK, GitError
from yolo_fs.git.object_format import (
    GitObject,
    ObjectFormat,
    Pack,
    pack_of,
)
from yolo_fs.git.runner import Git
from yolo_fs.system import failpoint
from yolo_fs.system.files import Stamp, stamp_at
from yolo_fs.system.store import environment, sync_directory, temporary_name

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

KEEP_NOTE = b"yolo-fs\n"
"""Content of our `.keep` files. It distinguishes our packs from the user's, also after a crash."""

_SYNCS_AT_ONCE = 2
_ASKED_AHEAD = 64
"""Objects in one request, which has to fit into a pipe: otherwise we and git would deadlock."""

MOST_BYTES = {"blob": 64 << 20, "tree": 16 << 20, "commit": 4 << 20, "tag": 1 << 20}
"""Larger objects are not read: a push of a few kilobytes may unpack to any size.
A larger commit is read up to this limit: no branch can go on without its tree and its parents.
"""
_AHEAD_BYTES = 16 << 20
"""Bytes of the requested objects that are read before the first of them is used."""
_SIZES_KEPT = 10_000

COLLECTED_WITHIN_S = 60.0
"""How long a `git gc` acts on its listing at most; a killed one may have left its lock."""
_SETTLED_WITHIN_S = 0.5
_ENDINGS = (".idx", ".pack", ".keep")
_POLL_S = 0.05


class _Head(NamedTuple):
    """Header that git sends before an object."""

    kind: str
    size: int


class _DoubtfulPack(NamedTuple):
    """A pack that got its name while a `git gc` was running."""

    pack: Pack
    collection: Stamp | None
    since: float
    """Monotonic time."""


class _Draft(NamedTuple):
    descriptor: int
    temporary: str
    final: str

    def name(self) -> None:
        """Rename the file into place, whatever a power loss left under its name."""
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
        """Store in `directory`; `shared`: permissions for others beyond the user's umask."""
        self._git = git
        self.object_format = object_format
        self.is_durable = durable
        """Whether what is written survives power loss."""
        self._ask_shared = shared
        self.pack_folder = f"{directory}/pack"
        self.packs_written = 0
        """Packs written by this process; every git has to search each one until it is merged."""
        self._reader: Conversation | None = None
        self._sizes: Conversation | None = None
        self._is_wary = False
        """Whether sizes are requested before reading, since an object was too large."""
        self._too_large: dict[str, int] = {}
        """Name → size of the objects that were too large for the last caller."""
        self._in_doubt: dict[str, _DoubtfulPack] = {}

    def read(self, name: str, most_bytes: int = MOST_BYTES["blob"]) -> GitObject | None:
        """Return the object of a name (an id or a revision), or None if it is missing or too large.

        The limit is that of its kind, for a blob `most_bytes`; `unread` tells which case it is.
        """
        (git_object,) = self.read_many([name], most_bytes)
        return git_object

    def read_many(
        self, names: Sequence[str], most_bytes: int = MOST_BYTES["blob"]
    ) -> Iterator[GitObject | None]:
        """Yield the object of each name, as `read` returns it; many are asked for at once."""
        at = 0
        while at < len(names):
            some = names[at : at + _ASKED_AHEAD]
            objects = self._read_some(some, most_bytes)
            for name in takewhile(objects.__contains__, some):
                yield objects[name]
                at += 1

    def unread(self, what: str, name: str) -> YoloError:
        """Return the error for an object that `read` has not returned.

        It is FILE_TOO_LARGE with its size, or else OBJECT_MISSING.
        """
        if size := self._too_large.get(name):
            hint = "Its author has to make it smaller; nothing of it was read."
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
            (head,) = self._read_heads([name])
        except YoloError:  # a fresh git is asked once more, as of contents
            self.close()
            (head,) = self._read_heads([name])
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
        """Return whether an object is within its limit; if it is not, record its size."""
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
        """Return the first of these objects, as many as may be in memory at once.

        After an error a fresh git is asked: a process that outlived a repack, or a change of the
        configuration, may be wrong.
        """
        try:
            return self._ask(names, most_bytes)
        except YoloError:
            self.close()
        objects: dict[str, GitObject | None] = {}
        for name in names:
            try:
                objects |= self._ask([name], most_bytes)
            except GitError as error:
                self.close()
                if "promisor remote" not in error.said:
                    raise
                objects[name] = None  # a partial clone lacks it, and we fetch nothing
        return objects

    def _ask(self, names: Sequence[str], most_bytes: int) -> dict[str, GitObject | None]:
        objects: dict[str, GitObject | None] = {name: None for name in names if "\n" in name}
        left, size = [name for name in names if name not in objects], 0
        if self._is_wary:
            for name, head in zip(left, self._read_heads(left), strict=True):
                if head is None or not self._may_read(name, head, most_bytes):
                    objects[name] = None
            left = [name for name in left if name not in objects]
        while left:
            if self._reader is None:
                self._reader = self._git.converse("cat-file", "--batch")
            self._reader.ask(_lines(left))
            for name in left:
                oid, head = _head(self._reader)
                objects[name] = None
                if head and head.kind == "commit" and head.size > MOST_BYTES["commit"]:
                    body = self._reader.exactly(MOST_BYTES["commit"])
                    objects[name] = GitObject(oid, head.kind, body)
                    self._stop_reading()
                    break
                if head and not self._may_read(name, head, most_bytes):
                    self._is_wary = True
                    self._stop_reading()
                    break
                if head:
                    body = self._reader.exactly(head.size + 1)[:-1]
                    objects[name] = GitObject(oid, head.kind, body)
                    size += len(body)
                if size > _AHEAD_BYTES and name != left[-1]:
                    self._stop_reading()
                    return objects
            left = [name for name in left if name not in objects]
        return objects

    def _stop_reading(self) -> None:
        """End a reading process that still has output."""
        if self._reader is not None:
            self._reader.kill()
        self._reader = None

    def _read_heads(self, names: Sequence[str]) -> list[_Head | None]:
        """Return kind and size of objects without reading them; None for missing ones."""
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
    def hold_packs_back(self) -> Iterator[None]:
        """Hand over no pack to the user's gc while objects are written that no branch names yet.

        The lock is on the folder of packs itself, so that no extra file is needed in it.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        with environment("objects"):
            try:
                descriptor = os.open(self.pack_folder, flags)
            except FileNotFoundError:
                # Never its parent: a store that is gone must not be created again (F36).
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
        """Store objects so that every git finds them; return a function that syncs their names.

        No ref may be moved to them before that function has returned.

        Raises:
            YoloError: as `write`, like what is returned.
        """
        self.restore()
        unique = {object_.oid: object_ for object_ in objects}.values()
        pack = pack_of(unique, self.object_format)
        with environment("objects"):
            failpoint.reach("objects.begun")
            wait = self._write_guarded(pack)

        def settle() -> None:
            with environment("objects"):
                wait()
            failpoint.reach("objects.durable")

        return settle

    def collection(self) -> Stamp | None:
        """Return an identifier of the `git gc` that is running here; None if there is none."""
        objects = os.path.dirname(self.pack_folder)
        return stamp_at(f"{os.path.dirname(objects)}/gc.pid")

    def has_ended(self, collection: Stamp | None, since: float) -> bool:
        """Return whether a `git gc`, seen at `since` (monotonic), can no longer remove anything."""
        if collection is None:
            return True
        is_late = time.monotonic() - since > COLLECTED_WITHIN_S
        return is_late or collection != self.collection()

    def restore(self) -> bool:
        """Rewrite packs that a `git gc` removed after a partial listing.

        Return whether any is still in doubt. gc lists the folder in pieces. If a pack gets its name
        in a part that is already listed, gc sees the index without the pack, and takes index and
        note for garbage. A repack may have listed the pack without its note by then, so it is
        written under another name. See docs/dev/faults.md#f09.

        Raises:
            YoloError: NO_SPACE or STORAGE_FAILED; it is tried again with the next call.
        """
        for name, doubt in list(self._in_doubt.items()):
            is_over = self.has_ended(doubt.collection, doubt.since)
            if not self._is_whole(name):
                again = self.object_format.checksum(doubt.pack.name.encode())
                with environment("objects"):
                    self._write_guarded(doubt.pack._replace(name=again.hex()))()
                for ending in _ENDINGS:
                    discard(f"{self.pack_folder}/{name}{ending}")
                is_over = True
            if is_over:
                self.release(name)
        return bool(self._in_doubt)

    def keep(self, name: str) -> None:
        """Place our note beside an existing pack, so that git collects nothing of it."""
        with contextlib.ExitStack() as cleanup, environment("objects"):
            self._draft(f"{self.pack_folder}/{name}.keep", KEEP_NOTE, cleanup).name()

    def release(self, name: str) -> None:
        """Stop tracking a pack: its objects are in another one."""
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
        """Write, sync, then rename: the note first, so that no repack sees the pack without it.

        Returns a function that waits until the names are synced, too.
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
        temporary = f"{folder}/{temporary_name(name)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o444)
        cleanup.callback(discard, temporary)
        cleanup.callback(os.close, descriptor)
        if self._shared:
            os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | self._shared)
        _write_all(descriptor, data)
        return _Draft(descriptor, temporary, final)


def missing_error(what: str) -> YoloError:
    """Return the error for an object that should exist but cannot be read."""
    return YoloError(
        Reason.OBJECT_MISSING,
        f"{what} cannot be read",
        hint=f"'git fsck' names what is missing. {BRINGS_BACK}",
    )


def discard(path: str) -> None:
    """Remove a file of ours that is no longer needed; failing to do so is harmless."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _lines(names: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(name) + b"\n" for name in names)


def _head(reader: Conversation) -> tuple[str, _Head | None]:
    """Read git's header of an object; return the id, and kind and size, None if it is missing."""
    header = reader.line().split(b" ")
    if header[-1] in (b"missing", b"ambiguous") or len(header) != 3:
        return "", None
    return header[0].decode(), _Head(header[1].decode(), int(header[2]))
