"""The versions of a tree that files are checked in: on disk, staged, committed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.git.repository import Repository
from yolo_fs.git.trees import Tree, TreeEntry
from yolo_fs.system.files import Content, Stamp, names_in, read, stamp_of

CommitsExist = Callable[[Sequence[str]], Mapping[str, bool]]


def assume_commits_exist(names: Sequence[str]) -> Mapping[str, bool]:
    """Return true for every hash: where the repository is not known, no commit can be missed."""
    return dict.fromkeys(names, True)


class Snapshot(Protocol):
    """One version of a tree."""

    def names(self, folder: str) -> Iterable[str]:
        """Return the names of the files in a folder."""

    def content(self, path: str) -> bytes | Finding:
        """Return the bytes of a file, or why there are none."""

    def key(self, path: str) -> Hashable | None:
        """Return a key that changes whenever the content does; None when no cheap one is safe."""

    def why_absent(self, path: str) -> Finding | None:
        """Return why a file that is referred to is not there or is empty; None when it is there."""

    def commits_exist(self, names: Sequence[str]) -> Mapping[str, bool]:
        """Return for each (abbreviated) hash whether the repository has that commit."""


class WorkTree(NamedTuple):
    """The files on disk."""

    root: str
    limit_bytes: int
    look_up_commits: CommitsExist = assume_commits_exist

    def names(self, folder: str) -> Iterable[str]:
        return names_in(os.path.join(self.root, folder))

    def content(self, path: str) -> bytes | Finding:
        found = read(self.root, path, self.limit_bytes)
        return found if isinstance(found, Finding) else found.data

    def key(self, path: str) -> Stamp | None:
        stamp = stamp_of(self.root, path)
        return None if isinstance(stamp, Finding) or stamp.is_racy(time.time_ns()) else stamp

    def why_absent(self, path: str) -> Finding | None:
        # With a limit of 0 bytes the file is looked at and not read.
        found = read(self.root, path, 0)
        if isinstance(found, Content):
            return _empty(path)
        return None if found.reason is Reason.FILE_TOO_LARGE else found

    def commits_exist(self, names: Sequence[str]) -> Mapping[str, bool]:
        return self.look_up_commits(names)


class NoTree:
    """A snapshot for a file that stands alone: nothing is known about its surroundings."""

    def names(self, folder: str) -> Iterable[str]:
        return ()

    def content(self, path: str) -> Finding:
        return Finding(Reason.FILE_MISSING, path)

    def key(self, path: str) -> None:
        return None

    def why_absent(self, path: str) -> None:
        return None

    def commits_exist(self, names: Sequence[str]) -> Mapping[str, bool]:
        return assume_commits_exist(names)


class BlobReader:
    """Reads blobs of a repository, none above the limit, and remembers which commits exist."""

    def __init__(self, repository: Repository, limit_bytes: int):
        self._repository = repository
        self._limit_bytes = limit_bytes
        self._known_commits: dict[str, bool] = {}

    def read(self, oid: str, path: str) -> bytes | Finding:
        """Return the bytes of a blob, or why they cannot be read; `path`: for the finding."""
        objects = self._repository.objects
        found = objects.read(oid, self._limit_bytes)
        if found and found.kind == "blob":
            return found.body
        error = objects.unread(f"blob {oid}", oid)
        if error.reason is Reason.FILE_TOO_LARGE:
            message = f"{error.message}; the limit is {self._limit_bytes}"
            expected = "a file within the limit"
            return Finding(Reason.FILE_TOO_LARGE, path, 0, "", message, expected, "split it")
        return Finding(error.reason, path, message=error.message, hint="see 'yolo-fs doctor'")

    def is_empty(self, oid: str) -> bool:
        """Return whether an object is there and has no content."""
        return self._repository.objects.size_of(oid) == 0

    def commits_exist(self, names: Sequence[str]) -> Mapping[str, bool]:
        """Return for each hash whether the repository has that commit."""
        unknown = [name for name in names if name not in self._known_commits]
        self._known_commits |= self._repository.commits_may_exist(unknown)
        return {name: self._known_commits[name] for name in names}


class Staged:
    """The files in the index."""

    def __init__(self, blobs: BlobReader, entries: Mapping[str, str], root: str):
        """`entries`: path → blob id.

        `root`: the work tree, which holds the files that git ignores.
        """
        self._blobs = blobs
        self._entries = entries
        self._work_tree = WorkTree(root, 0)
        self._folders: dict[str, list[str]] = {}
        for path in entries:
            folder, _, name = path.rpartition("/")
            self._folders.setdefault(folder, []).append(name)

    def names(self, folder: str) -> Iterable[str]:
        return self._folders.get(folder, ())

    def content(self, path: str) -> bytes | Finding:
        oid = self.key(path)
        return self._blobs.read(oid, path) if oid else Finding(Reason.FILE_MISSING, path)

    def key(self, path: str) -> str | None:
        return self._entries.get(path)

    def why_absent(self, path: str) -> Finding | None:
        if oid := self.key(path):
            return _empty(path) if self._blobs.is_empty(oid) else None
        return self._work_tree.why_absent(path)

    def commits_exist(self, names: Sequence[str]) -> Mapping[str, bool]:
        return self._blobs.commits_exist(names)


class AtCommit:
    """The files of a commit."""

    def __init__(self, repository: Repository, commit: str, blobs: BlobReader):
        self._repository = repository
        self._commit = commit
        self._blobs = blobs
        self._folders: dict[str, Tree] = {}

    def names(self, folder: str) -> Iterable[str]:
        return (os.fsdecode(key) for key in self._tree(folder).keys if not key.endswith(b"/"))

    def content(self, path: str) -> bytes | Finding:
        if oid := self.key(path):
            return self._blobs.read(oid, path)
        if self._entry(path) is None:
            return Finding(Reason.FILE_MISSING, path)
        message = "the commit has no regular file there"
        return Finding(Reason.NOT_REGULAR, path, 0, "", message, "a regular file")

    def key(self, path: str) -> str | None:
        entry = self._entry(path)
        return entry.oid if entry and entry.mode.startswith("100") else None

    def why_absent(self, path: str) -> Finding | None:
        # A file that is not in the commit proves nothing: it may have been ignored or untracked.
        oid = self.key(path)
        return _empty(path) if oid and self._blobs.is_empty(oid) else None

    def commits_exist(self, names: Sequence[str]) -> Mapping[str, bool]:
        return self._blobs.commits_exist(names)

    def _entry(self, path: str) -> TreeEntry | None:
        folder, _, name = path.rpartition("/")
        return self._tree(folder).get(os.fsencode(name))

    def _tree(self, folder: str) -> Tree:
        # Asked for by commit and path at once: git walks down the tree faster than we do.
        if folder not in self._folders:
            objects = self._repository.objects
            found = objects.read(f"{self._commit}:{folder}")
            self._folders[folder] = Tree((), ())
            if found is not None and found.kind == "tree":
                with contextlib.suppress(ValueError):
                    self._folders[folder] = Tree.parse(found.body, objects.object_format.size)
        return self._folders[folder]


def _empty(path: str) -> Finding:
    return Finding(Reason.EMPTY_FILE, path, expected="a file with content")
