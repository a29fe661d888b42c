"""git objects built in process: named, written loose or as one pack, durable before acknowledged.

See docs/faults.md#f04 and #f09.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from yolo_fs.edges import failpoint
from yolo_fs.edges.git.conversation import Conversation, GitError
from yolo_fs.edges.git.object_format import GitObject, ObjectFormat, deflated, pack_of
from yolo_fs.edges.git.runner import Git
from yolo_fs.edges.store import sync_directory
from yolo_fs.reasons import Exit, Reason, YoloError

PACK_FROM = 8
"""Pending artifacts from which one pack beats loose objects."""

_SYNCS_AT_ONCE = 8

_FULL = (errno.ENOSPC, errno.EDQUOT)


class _Draft(NamedTuple):
    descriptor: int
    temporary: str
    final: str


class ObjectStore:
    """Reads objects through one `cat-file --batch`, and writes them itself."""

    def __init__(
        self,
        git: Git,
        directory: str,
        object_format: ObjectFormat,
        *,
        durable: bool = True,
        shared: int = 0,
    ):
        """Store objects in `directory`; `shared` are the permissions that others are given beside the user's umask."""
        self._git = git
        self._directory = directory
        self.object_format = object_format
        self.is_durable = durable
        """Whether what is written survives power loss."""
        self._shared = shared
        self._syncers = ThreadPoolExecutor(_SYNCS_AT_ONCE, thread_name_prefix="sync")
        self._pack = ""
        """The pack that was written last."""
        self._reader: Conversation | None = None

    # --- reading ---

    def read(self, name: str) -> GitObject | None:
        """Return the object that a name (an id or a revision) refers to, or None when there is none."""
        try:
            return self._ask(name)
        except YoloError:
            self.close()  # a helper that outlived a repack or a config change may be wrong: ask a fresh one once
        try:
            return self._ask(name)
        except GitError as error:
            self.close()
            if "promisor remote" in error.said:  # a partial clone lacks it, and we fetch nothing
                return None
            raise

    def end(self) -> None:
        """End the reading process and the threads."""
        self.close()
        self._syncers.shutdown()

    def close(self) -> None:
        """End the reading process."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _ask(self, name: str) -> GitObject | None:
        if self._reader is None:
            self._reader = self._git.converse("cat-file", "--batch")
        self._reader.ask(os.fsencode(name) + b"\n")
        header = self._reader.line().split(b" ")
        if header[-1] in (b"missing", b"ambiguous") or len(header) != 3:
            return None
        body = self._reader.exactly(int(header[2]) + 1)[:-1]
        return GitObject(header[0].decode(), header[1].decode(), body)

    # --- writing ---

    def write(self, objects: Sequence[GitObject], *, packed: bool) -> None:
        """Store objects; once this returns they survive a crash, and power loss when durable.

        Raises:
            YoloError: NO_SPACE or STORAGE_FAILED; nothing refers to what was written so far.
        """
        try:
            failpoint.reach("objects.begun")
            if packed:
                self._write_pack(objects)
            else:
                self._write_loose(objects)
            failpoint.reach("objects.durable")
        except OSError as error:
            reason = Reason.NO_SPACE if error.errno in _FULL else Reason.STORAGE_FAILED
            raise YoloError(
                reason, f"objects: {error.strerror}", exit_code=Exit.TRY_AGAIN
            ) from error

    def is_stored(self, objects: Sequence[GitObject], *, packed: bool) -> bool:
        """Return whether what `write` stored is still on the disk; a reader that has it open would not notice."""
        if packed:
            return os.path.exists(self._pack)
        return all(
            os.path.exists(f"{self._directory}/{each.oid[:2]}/{each.oid[2:]}") for each in objects
        )

    def _write_loose(self, objects: Iterable[GitObject]) -> None:
        """Write all, sync all, name all, sync their folders: the waits for the disk overlap, the order stays."""
        unique = {object_.oid: object_ for object_ in objects}.values()
        with contextlib.ExitStack() as cleanup:
            drafts = [draft for object_ in unique if (draft := self._draft(object_, cleanup))]
            failpoint.reach("objects.written")
            self._sync_all(os.fsync, [draft.descriptor for draft in drafts])
            failpoint.reach("objects.synced")
            for draft in drafts:
                os.rename(draft.temporary, draft.final)
        failpoint.reach("objects.named")
        folders = {f"{self._directory}/{object_.oid[:2]}" for object_ in unique}
        self._sync_all(sync_directory, [*folders, self._directory])

    def _sync_all(self, sync: Callable[[Any], None], things: Sequence[Any]) -> None:
        if self.is_durable:
            list(self._syncers.map(sync, things))

    def _draft(self, object_: GitObject, cleanup: contextlib.ExitStack) -> _Draft | None:
        """Write one object under a temporary name, or see to it that the one that is there stays; then None."""
        folder = f"{self._directory}/{object_.oid[:2]}"
        final = f"{folder}/{object_.oid[2:]}"
        whole = b"%s %d\0" % (object_.kind.encode(), len(object_.body)) + object_.body
        if _is_sound(final, whole):
            self._keep(final)
            return None
        temporary = f"{folder}/tmp_obj_yolo{secrets.token_hex(8)}"  # git's own prefix, so that its prune knows it
        descriptor = self._create(temporary, folder)
        cleanup.callback(_discard, temporary)
        cleanup.callback(os.close, descriptor)
        _write_all(descriptor, deflated(whole))
        return _Draft(descriptor, temporary, final)

    def _keep(self, path: str) -> None:
        """Make an object that is there young, so that a running prune spares it (F09), and durable."""
        os.utime(path)
        if self.is_durable:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _create(self, path: str, folder: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        mode = 0o444 | (self._shared & 0o044)
        try:
            return os.open(path, flags, mode)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(
                    folder
                )  # never its parent: a store that is gone must not be made anew (F36)
                if self._shared:
                    os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) | self._shared)
            return os.open(path, flags, mode)

    def _write_pack(self, objects: Sequence[GitObject]) -> None:
        unique = {object_.oid: object_ for object_ in objects}
        pack = pack_of(unique.values(), self.object_format)
        answer = self._git.run("index-pack", "--stdin", "--threads=1", given=pack)
        stored = answer.out.split()[-1].decode()
        if stored != pack[-self.object_format.size :].hex():
            raise YoloError(Reason.STORAGE_FAILED, "the stored pack is not the pack that was sent")
        self._pack = f"{self._directory}/pack/pack-{stored}.pack"
        failpoint.reach("objects.packed")
        if self.is_durable:
            sync_directory(f"{self._directory}/pack")


def _discard(path: str) -> None:
    """Remove a temporary file that got no name of its own."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def _is_sound(path: str, whole: bytes) -> bool:
    """Return whether a loose object is there and holds what it is named after; power loss leaves others (F04)."""
    try:
        with open(path, "rb") as file:
            return zlib.decompress(file.read()) == whole
    except (OSError, zlib.error):
        return False


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
