"""RefUpdater move by compare-and-swap through one long-running `git update-ref --stdin`.

See docs/faults.md#f02, #f03, #f08 and #f24.
"""

from __future__ import annotations

import contextlib
import os
from contextlib import AbstractContextManager

from yolo_fs.edges import failpoint
from yolo_fs.edges.git.conversation import Conversation, GitError
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.in_place import ScratchRecord
from yolo_fs.edges.store import sync_directory
from yolo_fs.edges.system import boot_id, is_running, start_time
from yolo_fs.reasons import Exit, Reason, YoloError

REFLOG_MESSAGE = "yolo-fs"
"""How our moves of a branch are told from the user's in the reflog."""
REFTABLE_LOCK = "reftable/tables.list.lock"
"""What locks every ref of a repository whose refs are no files."""
_NO_REFLOG = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.logAllRefUpdates",
    "GIT_CONFIG_VALUE_0": "false",
}


class RefUpdater:
    """Moves branches of one repository."""

    def __init__(self, repository: Repository, *, durable: bool = True, is_private: bool = False):
        """Move branches, or a private ref: one without a reflog, which a lock of ours lets one
        process move.
        """
        self._repository = repository
        self._durable = durable
        self._is_private = is_private
        self._helper: Conversation | None = None
        name = "kept-ref-lock" if is_private else "ref-locks"
        self._notes = _LockNotes(f"{repository.own_dir}/{name}")

    def move(
        self,
        ref: str,
        new: str,
        old: str | None,
        within: AbstractContextManager[object] = contextlib.nullcontext(),
    ) -> None:
        """Let `ref` point at `new` if it still points at `old` (None: if it does not exist yet).

        `within`: entered when the ref is locked and nothing but the move itself is left; may
        refuse.

        Raises:
            YoloError: BRANCH_MOVED when it points elsewhere by now, REF_LOCKED when another git
                holds its lock, NO_SPACE or GIT_FAILED. After every failure the ref is read again:
                a move that was made and then reported as failed counts as made (F08).
        """
        has_file = os.path.isfile(
            f"{self._repository.common_dir}/{ref}"
        )  # asked first: it may be born meanwhile
        if old is None and has_file and self._repository.tip(ref) is None:
            raise YoloError(
                Reason.BRANCH_BROKEN, hint="See 'yolo-fs doctor'.", exit_code=Exit.GIT_FAILED
            )
        try:
            zero = self._repository.object_format.zero
            self._transact(ref, b"update", new, old or zero, within=within)
        except YoloError as error:
            self.close()
            # a killed helper leaves them, and the next would wait forever
            self.clear_own_stale_locks()
            if self._repository.tip(ref) != new:
                raise _told_apart(error) from None
        if self._durable:
            self._make_name_durable(ref, is_new=old is None)
        failpoint.reach("refs.durable")

    def renew(self) -> None:
        """Replace the helper: one that lives long keeps every pack open that it has ever seen."""
        if self._helper is not None:
            self.close()
            self._start()

    def delete(self, ref: str, old: str) -> None:
        """Delete a private ref if it still points at `old`. Raises as `move`."""
        try:
            self._transact(ref, b"delete", old)
        except YoloError as error:
            self.close()
            self.clear_own_stale_locks()
            raise _told_apart(error) from None

    def close(self) -> None:
        """End the helper process; an unfinished transaction is dropped by git."""
        if self._helper is not None:
            self._helper.close()
            self._helper = None

    def clear_own_stale_locks(self) -> tuple[str, ...]:
        """Remove ref locks that a dead helper of ours left, and only those; return their paths
        (F24).
        """
        stale = self._notes.stale()
        for path in stale:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return stale

    def own_stale_locks(self) -> tuple[str, ...]:
        """Return the ref locks that are provably ours and whose holder is dead."""
        return self._notes.stale()

    def _transact(
        self,
        ref: str,
        change: bytes,
        *values: str,
        within: AbstractContextManager[object] = contextlib.nullcontext(),
    ) -> None:
        helper = self._helper or self._start()
        failpoint.reach("refs.begun")
        command = b" ".join([change, os.fsencode(ref), *(value.encode() for value in values)])
        helper.ask(b"start\n%s\nprepare\n" % command)
        for step in (b"start: ok", b"prepare: ok"):
            _expect(helper, step)
        failpoint.reach("refs.prepared")
        is_plain = self._repository.has_plain_refs
        lock, head = (f"{ref}.lock", "HEAD.lock") if is_plain else (REFTABLE_LOCK, REFTABLE_LOCK)
        # A private ref is not what HEAD names: a HEAD.lock is the user's.
        heads = () if self._is_private else (f"{self._repository.git_dir}/{head}",)
        self._notes.write(helper.pid, (f"{self._repository.common_dir}/{lock}", *heads))
        failpoint.reach("refs.noted")
        with within:
            helper.ask(b"commit\n")
            _expect(helper, b"commit: ok")
            failpoint.reach("refs.moved")

    def _start(self) -> Conversation:
        reflog = () if self._is_private else ("--create-reflog", "-m", REFLOG_MESSAGE)
        more = _NO_REFLOG if self._is_private else {}
        self._helper = self._repository.git.converse("update-ref", *reflog, "--stdin", more=more)
        return self._helper

    def _make_name_durable(self, ref: str, *, is_new: bool) -> None:
        """Git syncs the ref's content, not the directory that the finished ref was renamed in."""
        name = ref if self._repository.has_plain_refs else REFTABLE_LOCK
        folder = os.path.dirname(f"{self._repository.common_dir}/{name}")
        top = f"{self._repository.common_dir}/refs"
        with contextlib.suppress(OSError):
            sync_directory(folder)
            while is_new and folder.startswith(top + "/"):
                folder = os.path.dirname(folder)
                sync_directory(folder)


def _expect(helper: Conversation, said: bytes) -> None:
    if (answer := helper.line()) != said:
        raise YoloError(
            Reason.GIT_FAILED, f"update-ref answered {answer!r}", exit_code=Exit.GIT_FAILED
        )


def _told_apart(error: YoloError) -> YoloError:
    """Return the error of a failed move with the reason that git's words amount to."""
    said = error.said if isinstance(error, GitError) else ""
    if "reference broken" in said:
        return YoloError(
            Reason.BRANCH_BROKEN,
            error.message,
            hint="See 'yolo-fs doctor'.",
            exit_code=Exit.GIT_FAILED,
        )
    if any(
        words in said
        for words in (" but expected ", "reference already exists", "unable to resolve")
    ):
        return YoloError(Reason.BRANCH_MOVED, error.message, exit_code=Exit.TRY_AGAIN)
    if "cannot lock references" in said or (".lock" in said and "File exists" in said):
        return YoloError(Reason.REF_LOCKED, error.message, exit_code=Exit.TRY_AGAIN)
    return error


class _LockNotes:
    """Remembers which ref locks our helper holds, so that after its death they can be proved
    ours.
    """

    def __init__(self, path: str):
        self._note = ScratchRecord(path)

    def write(self, pid: int, locks: tuple[str, ...]) -> None:
        held = [[path, mark] for path in dict.fromkeys(locks) if (mark := _mark(path))]
        self._note.write({"pid": pid, "started": start_time(pid), "boot": boot_id(), "locks": held})

    def stale(self) -> tuple[str, ...]:
        note = self._note.read()
        try:
            alive = (
                note["boot"] == boot_id()
                and note["started"] == start_time(note["pid"])
                and is_running(note["pid"])
            )
            return (
                () if alive else tuple(path for path, mark in note["locks"] if mark == _mark(path))
            )
        except (OSError, ValueError, KeyError, TypeError):
            return ()


def _mark(path: str) -> list[int]:
    """Return what tells one lock file from the next: inode numbers are used again at once, change
    times are not.
    """
    try:
        facts = os.lstat(path)
    except OSError:
        return []
    return [facts.st_dev, facts.st_ino, facts.st_ctime_ns]
