"""The user's index after a commit: exactly our path's entry follows, and only where they staged nothing else.

Moving a branch without this leaves a staged *reverse* of the artifact, which the user's next commit
would carry out. See docs/faults.md#f05, #f21, #f22 and #f32.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.edges import failpoint
from yolo_fs.edges.git.conversation import GitError
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.scratch_record import ScratchRecord

CONFLICT = "conflict"
"""Stands for the id of an entry that is not merged."""


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """One path whose index entry is to become the committed blob."""

    path: str
    blob: str
    previous_blobs: frozenset[str | None]
    """Blobs that the branch had here before; an entry that is none of these was staged by the user."""

    def after(self, earlier: IndexUpdate | None) -> IndexUpdate:
        """Return this step joined with an earlier one that the index has not followed yet."""
        return (
            IndexUpdate(
                self.path, self.blob, self.previous_blobs | earlier.previous_blobs | {earlier.blob}
            )
            if earlier
            else self
        )


class IndexSync:
    """Keeps the entries that the index still has to follow, across crashes, and lets it follow in batches."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._note = ScratchRecord(f"{repository.own_dir}/index-pending")
        self.pending: dict[str, IndexUpdate] = _read(self._note.read())
        self._placed: dict[str, str] = {}
        """Path → what we put in for a HEAD that may have been left meanwhile."""
        self.diverged: set[str] = set()
        """Paths where the user has staged content of their own."""

    def expect(self, follows: Iterable[IndexUpdate]) -> None:
        """ScratchRecord entries *before* the branch moves, so that a restart can finish the work."""
        for follow in follows:
            self.pending[follow.path] = follow.after(self.pending.get(follow.path))
        failpoint.reach("index.noting")
        self._save()
        failpoint.reach("index.noted")

    def follow(self) -> bool:
        """Let the index follow all that is pending; return whether it did (False: index.lock is held).

        Entries whose commit never came about are dropped: only what HEAD holds is ever put in.
        """
        while self.pending:
            tip = self._repository.head().tip
            entries = dict(self._behind(tip))
            failpoint.reach("index.begun")
            if not self._put(entries):
                return False
            failpoint.reach("index.followed")
            self._placed |= {path: blob for path, blob in entries.items() if blob}
            if self._repository.head().tip == tip:
                self._close()
        return True

    def _behind(self, tip: str | None) -> Iterator[tuple[str, str | None]]:
        """Yield each entry that has to change, and the blob that HEAD has there (None: nothing)."""
        staged = self._staged(self.pending)
        for path, follow in self.pending.items():
            target = self._repository.blob_at(tip, path)
            if staged[path] == target:
                continue
            # A switch of branches between our look and our update: what we put in is another branch's.
            if staged[path] is not None and staged[path] == self._placed.get(path):
                yield path, target
            elif target is None or target not in follow.previous_blobs | {follow.blob}:
                continue
            elif staged[path] in follow.previous_blobs:
                yield path, target
            else:
                self.diverged.add(path)

    def _close(self) -> None:
        self._placed.clear()
        self.pending.clear()
        self._save()
        failpoint.reach("index.cleared")

    def _staged(self, paths: Iterable[str]) -> Mapping[str, str | None]:
        """Return what the index has for each path, or where a folder of it is; `add -N` counts as nothing."""
        wanted = list(paths)
        tops = sorted({path.partition("/")[0] for path in wanted})
        present = {
            entry.path: CONFLICT if entry.is_conflicted else entry.oid
            for entry in self._repository.staged(*tops)
        }
        staged = {path: present.get(path) or _file_above(path, present) for path in wanted}
        return staged | dict.fromkeys(self._only_intended(staged))

    def _only_intended(self, staged: Mapping[str, str | None]) -> list[str]:
        """Return the paths of `add -N`: the index holds an empty file for them that no comparison with HEAD sees."""
        empty = self._repository.object_format.hash_object("blob", b"").oid
        suspects = [path for path, oid in staged.items() if oid == empty]
        if not suspects:
            return []
        compared = self._repository.git.run(
            "diff-index",
            "--cached",
            "--ita-invisible-in-index",
            "--raw",
            "--no-renames",
            "-z",
            "HEAD",
            "--",
            *suspects,
        )
        fields = os.fsdecode(compared.out).split("\0")
        deleted = {
            path
            for facts, path in zip(fields[::2], fields[1::2], strict=False)
            if facts.endswith("D")
        }
        return [path for path in suspects if path in deleted]

    def _put(self, entries: Mapping[str, str | None]) -> bool:
        if not entries:
            return True
        given = b"".join(self._entry(path, blob) for path, blob in entries.items())
        try:
            # Writing the index, git compares every file as young as the index itself, through its filter: none may run.
            settings = self._repository.filters_off()
            self._repository.git.run(
                "update-index", "-z", "--add", "--index-info", given=given, settings=settings
            )
        except GitError as error:
            if "index.lock" in error.said:
                return False
            raise
        return True

    def _entry(self, path: str, blob: str | None) -> bytes:
        """Return a line for `update-index --index-info`; mode 0 takes the entry out."""
        mode = b"100644" if blob else b"0"
        return b"%s %s\t%s\0" % (
            mode,
            (blob or self._repository.object_format.zero).encode(),
            os.fsencode(path),
        )

    def _save(self) -> None:
        follows = self.pending.values()
        self._note.write(
            [
                [one.path, one.blob, sorted(blob or "" for blob in one.previous_blobs)]
                for one in follows
            ]
        )


def _file_above(path: str, present: Mapping[str, str]) -> str | None:
    """Return what the index has where a folder of the path is; git would let ours replace it."""
    while path := path.rpartition("/")[0]:
        if path in present:
            return present[path]
    return None


def _read(note: Any) -> dict[str, IndexUpdate]:
    """Return what a note says; it only speeds repair up, which reads the log too."""
    try:
        follows = [
            IndexUpdate(str(name), str(blob), frozenset(old or None for old in previous_blobs))
            for name, blob, previous_blobs in note
        ]
    except (ValueError, TypeError):
        return {}
    return {follow.path: follow for follow in follows}
