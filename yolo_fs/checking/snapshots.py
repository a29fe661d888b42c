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
    """Return true for every hash: without a repository, no commit counts as missing."""
    return dict.fromkeys(names, True)


class Snapshot(Protocol):
    """One version of a tree."""

    def names(self, folder: str) -> Iterable[str]:
        """Return the names of the files in a folder."""

    def content(self, path: str) -> bytes | Finding:
        """Return the bytes of a file, or why there are none."""

    def key(self, path: str) -> Hashable | None:
        """Return a key that changes whenever the content does; None if no cheap one is safe."""

    def why_absent(self, path: str) -> Finding | None:
        """Return why a referenced file is absent or empty; None if it is present."""

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
        content = read(self.root, path, self.limit_bytes)
        return content if isinstance(content, Finding) else content.data

    def key(self, path: str) -> Stamp | None:
        stamp = stamp_of(self.root, path)
        return None if isinstance(stamp, Finding) or stamp.is_racy(time.time_ns()) else stamp

    def why_absent(self, path: str) -> Finding | None:
        # A limit of 0 bytes gives the state of the file without reading its content.
        content = read(self.root, path, 0)
        if isinstance(content, Content):
            return _empty(path)
        return None if content.reason is Reason.FILE_TOO_LARGE else content

    def commits_exist(self, names: Sequence[str]) -> Mapping[str, bool]:
        return self.look_up_commits(names)


class NoTree:
    """A snapshot for a single file whose surroundings are unknown."""

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
    """Reads blobs up to the size limit, and caches which commits exist."""

    def __init__(self, repository: Repository, limit_bytes: int):
        self._repository = repository
        self._limit_bytes = limit_bytes
        self._known_commits: dict[str, bool] = {}

    def read(self, oid: str, path: str) -> bytes | Finding:
        """Return the bytes of a blob, or why they cannot be read; `path`: for the finding."""
        objects = self._repository.objects
        git_object = objects.read(oid, self._limit_bytes)
        if git_object and git_object.kind == "blob":
            return git_object.body
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
        # Absence from the commit proves nothing: the file may have been ignored or untracked.
        oid = self.key(path)
        return _empty(path) if oid and self._blobs.is_empty(oid) else None

    def commits_exist(self, names: Sequence[str]) -> Mapping[str, bool]:
        return self._blobs.commits_exist(names)

    def _entry(self, path: str) -> TreeEntry | None:
        folder, _, name = path.rpartition("/")
        return self._tree(folder).get(os.fsencode(name))

    def _tree(self, folder: str) -> Tree:
        # Addressed by commit and path in one request: git walks the tree faster than this process.
        if folder not in self._folders:
            objects = self._repository.objects
            git_object = objects.read(f"{self._commit}:{folder}")
            self._folders[folder] = Tree((), ())
            if git_object is not None and git_object.kind == "tree":
                with contextlib.suppress(ValueError):
                    self._folders[folder] = Tree.parse(git_object.body, objects.object_format.size)
        return self._folders[folder]


def _empty(path: str) -> Finding:
    return Finding(Reason.EMPTY_FILE, path, expected="a file with content")
