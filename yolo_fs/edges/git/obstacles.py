"""Why nothing may be committed right now: the states of a repository in which it is the user's
turn.

See docs/faults.md#f06, #f07, #f23, #f25, #f26, #f35 and #f63.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from fnmatch import fnmatchcase

from yolo_fs.edges import PROC
from yolo_fs.edges.files import Stamp, stamp_at
from yolo_fs.edges.git.repository import Head, Repository, content_of
from yolo_fs.edges.lock import holder
from yolo_fs.edges.system import commands, is_running, start_time, working_folder
from yolo_fs.reasons import Reason

IN_PROGRESS = {
    "MERGE_HEAD": Reason.MERGE_IN_PROGRESS,
    "rebase-merge": Reason.REBASE_IN_PROGRESS,
    "rebase-apply": Reason.REBASE_IN_PROGRESS,
    "CHERRY_PICK_HEAD": Reason.CHERRY_PICK_IN_PROGRESS,
    "REVERT_HEAD": Reason.REVERT_IN_PROGRESS,
    "sequencer": Reason.CHERRY_PICK_IN_PROGRESS,
    "BISECT_LOG": Reason.BISECT_IN_PROGRESS,
    "index.lock": Reason.INDEX_LOCKED,
}
"""File or folder in the git directory → what its presence means, the most telling first."""

_STALE_AFTER_S = 12 * 3600
"""Time after which the note of a running commit counts as left over."""
COMMITTING = "committing"
"""File of ours that names the `git commit` that runs; our own hooks write it."""
SECTION = "YOLO-FS INTEGRATION v1"
"""What marks our part of a hook."""
_QUIET_NS = 100_000_000
"""Time after which a rewritten index no longer means that a git command is running."""


class Obstacles:
    """Finds what prevents a commit right now."""

    def __init__(
        self,
        repository: Repository,
        *,
        protected: Collection[str] = (),
        allow_detached: bool = False,
        committer_lock: str = "",
    ):
        """Find them in this repository; `committer_lock`: what a process that commits for us
        holds.
        """
        self._committer_lock = committer_lock
        self._repository = repository
        self._protected = tuple(protected)
        self._allow_detached = allow_detached
        self._index_seen: Stamp | None = None
        self._unmerged = False
        self._message_seen: int | None = None
        self._hook_seen: Stamp | None = None
        self._hook_is_silent = False

    def find(self, head: Head, now_ns: int | None = None) -> Reason | None:
        """Return the reason to hold everything, or None when a commit may be made.

        `now_ns`: wall clock; with it, an index that was rewritten a moment ago counts as locked.
        """
        present = set(os.listdir(self._repository.git_dir))
        if not self._repository.has_plain_refs:  # where these are no files, unlike MERGE_HEAD
            present |= set(filter(self._repository.tip, ("CHERRY_PICK_HEAD", "REVERT_HEAD")))
        for name, reason in IN_PROGRESS.items():
            if name in present:
                return reason
        if refusal := self._storage_refusal(self._repository.common_dir):
            return refusal
        if head.ref is None and not self._allow_detached:
            return Reason.DETACHED_HEAD
        if any(fnmatchcase(head.branch, pattern) for pattern in self._protected):
            return Reason.PROTECTED_BRANCH
        if (
            head.ref
            and head.tip is None
            and self._has_a_past(head)
            and self._repository.tip(head.ref) is None
        ):
            return Reason.BRANCH_BROKEN
        index = stamp_at(f"{self._repository.git_dir}/index")
        if self._index_just_rewritten(index, now_ns):
            return Reason.INDEX_LOCKED
        if self._index_is_unmerged(index):
            return Reason.UNMERGED_INDEX
        if self._user_is_committing():
            return Reason.USER_COMMITTING
        return None

    def changed_since(self, head: Head, now_ns: int) -> bool:
        """Return whether the user moved HEAD, or began something, since `head` was read: files may
        be another branch's.

        The compare-and-swap does not see this, for the branch that HEAD left has not moved (F28).
        """
        return self._repository.head() != head or self.find(head, now_ns) is not None

    def _has_a_past(self, head: Head) -> bool:
        """Tell a branch that power loss tore (F04) from one that was never born: it has a file, or
        a reflog.
        """
        log = f"{self._repository.common_dir}/logs/{head.ref}"
        return os.path.isfile(f"{self._repository.common_dir}/{head.ref}") or (
            os.path.isfile(log) and os.path.getsize(log) > 0
        )

    def _index_just_rewritten(self, index: Stamp | None, now_ns: int | None) -> bool:
        """Return whether a git command wrote the index a moment ago and may be about to move the
        branch.

        `git reset` and `git checkout` change the work tree and the index first, and only then HEAD
        (F28).
        """
        if index is None or now_ns is None or index == self._index_seen:
            return False
        return 0 <= now_ns - index.ctime_ns < _QUIET_NS

    def _index_is_unmerged(self, index: Stamp | None) -> bool:
        """Return whether the index holds conflicts, as `git stash pop` leaves them without any
        MERGE_HEAD.
        """
        if index != self._index_seen:
            self._unmerged = index is not None and self._repository.has_conflicts()
            self._index_seen = index
        return self._unmerged

    def index_rewritten(self, left_at: Stamp | None) -> None:
        """Note the index that we ourselves left, which never adds conflicts: it need not be read
        again.
        """
        self._index_seen = left_at or self._index_seen

    def _storage_refusal(self, folder: str) -> Reason | None:
        """Return why nothing can be stored; what only this process may not write, another one may.

        The sandbox of an agent's host shows `.git` read-only; the daemon commits outside of it.
        """
        refusal = _stores_nothing(folder)
        if refusal is Reason.STORAGE_FAILED and self._committer_lock and os.path.isdir(PROC):
            by = holder(self._committer_lock)
            is_other = by is not None and by.pid != os.getpid()
            return _stores_nothing_for(by.pid, folder) if by and is_other else refusal
        return refusal

    def _user_is_committing(self) -> bool:
        """Return whether the editor of a `git commit` of this work tree is open.

        git writes COMMIT_EDITMSG before it starts the editor, so as long as that file has not
        changed since the last look no process needs to be searched for. Only a pre-commit hook runs
        before that. Our own hooks, where they are installed, name the process: also one that is not
        called `git commit`, such as an alias, and also where there is no /proc.
        """
        if _is_marked(f"{self._repository.own_dir}/{COMMITTING}"):
            return True
        if self._has_silent_hook() and _is_committing(self._repository.root):
            return True
        stamp = stamp_at(f"{self._repository.git_dir}/COMMIT_EDITMSG")
        written = stamp.mtime_ns if stamp else None
        if written == self._message_seen:
            return False
        if written is not None and _is_committing(self._repository.root):
            return True
        self._message_seen = written
        return False

    def _has_silent_hook(self) -> bool:
        """Return whether there is a pre-commit hook that does not say, by our part in it, that it
        runs.
        """
        path = f"{self._repository.hooks_dir}/pre-commit"
        if not os.access(path, os.X_OK):
            return False
        stamp = stamp_at(path)
        if stamp != self._hook_seen:
            self._hook_seen = stamp
            self._hook_is_silent = SECTION.encode() not in content_of(path)
        return self._hook_is_silent


def _is_committing(root: str) -> bool:
    """Return whether a `git commit` runs whose work tree is `root`."""
    return any(
        b"commit" in words
        and os.path.basename(words[0]) == b"git"
        and f"{working_folder(pid)}/".startswith(f"{root}/")
        for pid, words in commands()
    )


def _is_marked(path: str) -> bool:
    """Return whether the process that our prepare-commit-msg hook has noted, by id and start, still
    runs (F63).
    """
    try:
        with open(path) as file:
            if time.time() - os.fstat(file.fileno()).st_mtime > _STALE_AFTER_S:
                return False
            pid, started = file.read(100).split()
    except (OSError, ValueError):
        return False
    if not pid.isdecimal() or not is_running(int(pid)):
        return False
    began = start_time(int(pid))
    return began is None or started in ("-", str(began))


def _stores_nothing(folder: str) -> Reason | None:
    """Return why the file system can store nothing at all. See docs/faults.md#f06 and
    docs/faults.md#f07.
    """
    facts = os.statvfs(folder)
    if facts.f_flag & os.ST_RDONLY:
        return Reason.STORAGE_FAILED
    free = facts.f_bfree if os.geteuid() == 0 else facts.f_bavail
    return Reason.NO_SPACE if facts.f_blocks and not free else None


def _stores_nothing_for(pid: int, folder: str) -> Reason | None:
    """Return why a file system stores nothing as another process sees it; None where it hides."""
    try:
        return _stores_nothing(f"{PROC}/{pid}/root{folder}")
    except OSError:
        return None
