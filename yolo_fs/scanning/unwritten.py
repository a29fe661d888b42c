"""Recognizes files that nobody has written since they were last known not to be new.

HEAD, the index and the files of a work tree also change without a writer. See
docs/dev/faults.md#f28.

A file that differs from the branch is held while one of these shows that it is old: its state when
it was last seen to agree with the branch, or to be old; the reflog; a commit that is younger than
the file and replaced its content; the index, where git itself has put the content.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.history import (
    Abandoned,
    BranchMove,
    abandoned,
    changed_after,
    changes_of,
    left_behind,
    moves_of,
)
from yolo_fs.git.repository import Head, Repository
from yolo_fs.system.database import open_durable, storing
from yolo_fs.system.files import Stamp, stamp_at
from yolo_fs.system.store import RefusedError
from yolo_fs.workspace.own_files import STATE_LAYOUT, state_path

_NAMED = "file "
"""Prefix of a path in the name of its row."""
_NEAR = 100
"""Commits of the branch that the index may have got a content from."""
_MOST_TIPS = 100
"""Branches that the index may have got a content from."""
_PUT_BY_GIT = ("SQUASH_MSG", "MERGE_MSG")
"""Files that show that git has staged something for a commit that a person is to make."""


_HELD = {each.value: each for each in (Reason.UNDONE_BY_USER, Reason.OLDER_THAN_BRANCH)}


class Seen(NamedTuple):
    """State of a file when it was last known not to be new."""

    blob: str
    mtime_ns: int
    held: str = ""
    """Why it was held; empty where it agreed with the branch."""


class SeenFiles:
    """Stores in `state.db` what each file was when it was last known not to be new.

    An expiring reflog loses nothing of it. Without it, git alone decides.
    """

    def __init__(self, repository: Repository):
        self._repository = repository
        self._rows: dict[str, Seen] | None = None
        self._fresh: dict[str, Seen] = {}
        """What was noted since the last `keep`."""

    def get(self, path: str) -> Seen | None:
        """Return the recorded state of a file, or None."""
        return self._read().get(path)

    def put(self, path: str, seen: Seen) -> None:
        """Record the state of a file."""
        if self.get(path) != seen:
            self._read()[path] = self._fresh[path] = seen

    def keep(self) -> None:
        """Store what was noted. A power loss may take the latest notes."""
        if not self._fresh:
            return
        fresh, self._fresh = self._fresh, {}
        place = state_path(self._repository)
        rows = [
            (_NAMED + _text(path), f"{seen.blob} {seen.mtime_ns} {seen.held}")
            for path, seen in fresh.items()
        ]
        with suppress(RefusedError, YoloError):  # what is damaged is named by `doctor`
            self._repository.make_own_dir()
            state = open_durable(place, STATE_LAYOUT, make=True, is_synced=False)
            if state:
                with closing(state), storing(place), state.writing():
                    state.many("insert or replace into notes values (?, ?)", rows)

    def _read(self) -> dict[str, Seen]:
        if self._rows is None:
            self._rows = {}
            place = state_path(self._repository)
            with suppress(RefusedError, YoloError):
                state = open_durable(place, STATE_LAYOUT, make=False)
                if state:
                    query = "select name, value from notes where name >= ? and name < ?"
                    with closing(state), storing(place):
                        rows = state.rows(query, _NAMED, f"{_NAMED.rstrip()}!")
                    self._rows = dict(_parse_rows(rows))
        return self._rows


def _parse_rows(rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Seen]]:
    for name, value in rows:
        fields = str(value).split(" ")
        if len(fields) == 3 and fields[1].lstrip("-").isdecimal():
            path = os.fsdecode(name.removeprefix(_NAMED).encode("latin-1", "replace"))
            yield path, Seen(fields[0], int(fields[1]), fields[2])


def _text(path: str) -> str:
    return os.fsencode(path).decode("latin-1")


class Unwritten:
    """Recognizes content that nobody has written since it was last known not to be new."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._seen = SeenFiles(repository)
        self._abandoned: Abandoned | None = None
        self._known_moves: tuple[BranchMove, ...] | None = None
        """Moves of the branch; None until they are needed."""
        self._known_tips: tuple[str, ...] | None = None
        self._left: Abandoned | None = None
        """Our commits to the branch that HEAD was switched from; None until they are needed."""
        self._staged: tuple[Stamp, Mapping[str, str]] | None = None
        """The planning files of the index as of a stamp: a burst asks once for each artifact."""

    def forget_branch(self) -> None:
        """Drop the cached moves: HEAD has moved."""
        self._abandoned = self._left = self._known_moves = self._known_tips = None

    def agrees(self, path: str, blob: str, stamp: Stamp) -> None:
        """Record that a file agrees with the branch."""
        self._seen.put(path, Seen(blob, stamp.mtime_ns))

    def keep(self) -> None:
        """Store the results for the next process; not for callers that only read."""
        self._seen.keep()

    def reason_to_hold(self, path: str, blob: str, stamp: Stamp, head: Head) -> Reason | None:
        """Return why a content that the branch does not have is not new, or None."""
        known = self._seen.get(path)
        reason: Reason | None
        if known and known.blob == blob and known.mtime_ns == stamp.mtime_ns:
            reason = _HELD.get(known.held) or self._explain_move(path, blob, stamp, head)
        elif known and known.blob == blob and known.held:
            return None  # it was written again
        else:
            reason = self._find_reason_in_git(path, blob, stamp, head)
        if reason and self._repository.head() != head:
            return None  # it was just committed, while we looked at the branch before
        if reason and self._is_left_behind(path, blob, stamp, head):
            return None
        if reason:
            self._seen.put(path, Seen(blob, stamp.mtime_ns, reason.value))
        return reason

    def _explain_move(self, path: str, blob: str, stamp: Stamp, head: Head) -> Reason:
        """Return in which way the branch moved away from the file's content."""
        if self._is_reverted(path, blob, _write_time_of(stamp), head):
            return Reason.UNDONE_BY_USER
        is_gone = head.tip is None or self._blob_at(head.tip, path) is None
        return Reason.UNDONE_BY_USER if is_gone else Reason.OLDER_THAN_BRANCH

    def _find_reason_in_git(self, path: str, blob: str, stamp: Stamp, head: Head) -> Reason | None:
        if self._is_reverted(path, blob, _write_time_of(stamp), head):
            return Reason.UNDONE_BY_USER
        is_old = (
            self._is_passed(path, blob, _write_time_of(stamp), head)
            or self._is_replaced(path, blob, stamp, head)
            or self._is_put_by_git(path, blob, stamp, head)
        )
        return Reason.OLDER_THAN_BRANCH if is_old else None

    def _is_reverted(self, path: str, blob: str, written_s: int, head: Head) -> bool:
        """Return whether the user moved the branch away from a commit with this content."""
        if self._abandoned is None:
            moves = self._read_moves(head)
            self._abandoned = (
                abandoned(self._repository, head.tip, moves) if head.tip else Abandoned((), 0)
            )
        return self._is_among(self._abandoned, path, blob, written_s)

    def _is_passed(self, path: str, blob: str, written_s: int, head: Head) -> bool:
        """Return whether a later move of the branch, by somebody else, left the file behind.

        Such a move is a push into it, a fetch, or an `update-ref`.
        """
        moves = self._read_moves(head)
        if not any(written_s < move.at_s and not move.is_ours for move in moves):
            return False
        for move in moves:
            before = self._blob_at(move.old, path)
            if before == self._blob_at(move.new, path):
                continue
            if move.is_ours:  # it was committed as the file was: whatever is there now is newer
                return False
            if before == blob and written_s < move.at_s:  # within a second it may be newer
                return True
        return False

    def _is_left_behind(self, path: str, blob: str, stamp: Stamp, head: Head) -> bool:
        """Return whether we committed a content to another branch while this one was made of it.

        The switch changed no file, so that it is as new here as it was there.
        """
        if self._left is None:
            self._left = left_behind(self._repository, head.ref) if head.ref else Abandoned((), 0)
        return self._is_among(self._left, path, blob, _write_time_of(stamp))

    def _is_among(self, left: Abandoned, path: str, blob: str, written_s: int) -> bool:
        """Return whether one of these commits has a content that was written before HEAD or the
        branch was moved away from them.
        """
        return written_s <= left.moved_at_s and any(
            self._blob_at(commit, path) == blob for commit in left.commits
        )

    def _is_replaced(self, path: str, blob: str, stamp: Stamp, head: Head) -> bool:
        """Return whether the branch had this content, and replaced it after the file's write time.

        The file is then a restored backup.
        """
        if head.tip is None or self._repository.objects.size_of(blob) is None:
            return False
        known = self._seen.get(path)
        was_newer = known is not None and not known.held and stamp.mtime_ns < known.mtime_ns
        written_s = stamp.mtime_ns // 1_000_000_000
        if not was_newer and not changed_after(self._repository, head.tip, path, written_s):
            return False
        past = changes_of(self._repository, head.tip, [path])
        return any(change.blob == blob for change in past[:-1])

    def _is_put_by_git(self, path: str, blob: str, stamp: Stamp, head: Head) -> bool:
        """Return whether the index has the content for a commit that a person is to make.

        It comes from another branch or an older commit, by a squashed merge, or from another name.
        """
        index = stamp_at(f"{self._repository.git_dir}/index", by_link=True)
        if index is None or index.mtime_ns < stamp.mtime_ns:
            return False  # git writes the files first: so the whole index need not be read
        staged = self._read_staged(index)
        if staged.get(path) != blob:
            return False
        if any(os.path.lexists(f"{self._repository.git_dir}/{name}") for name in _PUT_BY_GIT):
            return True
        named = self._repository.files_at(head.tip, PLANNING_ROOT)
        if any(oid == blob and other not in staged for other, oid in named.items()):
            return True
        return any(self._blob_at(commit, path) == blob for commit in self._tips(head))

    def _read_staged(self, index: Stamp) -> Mapping[str, str]:
        if self._staged is None or self._staged[0] != index:
            entries = self._repository.staged(PLANNING_ROOT)
            self._staged = index, {each.path: each.oid for each in entries if each.is_file}
        return self._staged[1]

    def _tips(self, head: Head) -> Iterator[str]:
        """Yield the commits that a git command takes files from.

        These are other branches, and the latest commits of this one.
        """
        if self._known_tips is None:
            self._known_tips = self._repository.latest_tips(_MOST_TIPS)
        yield from self._known_tips
        at = head.tip
        for _ in range(_NEAR):
            if at is None:
                return
            yield at
            at = next(iter(self._repository.parents(at)), None)

    def _blob_at(self, commit: str, path: str) -> str | None:
        try:
            return self._repository.blob_at(commit if commit.strip("0") else None, path)
        except YoloError:  # a commit of the reflog may be gone
            return None

    def _read_moves(self, head: Head) -> tuple[BranchMove, ...]:
        if self._known_moves is None:
            self._known_moves = moves_of(self._repository, head.ref) if head.ref else ()
        return self._known_moves


def _write_time_of(stamp: Stamp) -> int:
    return stamp.ctime_ns // 1_000_000_000
