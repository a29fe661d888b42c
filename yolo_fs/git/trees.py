"""Replaces one path in a tree: everything beside the path stays byte for byte as it was.

See docs/dev/faults.md#f32.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.object_format import GitObject
from yolo_fs.git.objects import ObjectStore, missing_error

FILE, EXECUTABLE, LINK, FOLDER = "100644", "100755", "120000", "40000"
"""The modes of all entries except submodules."""
_FILE, _EXECUTABLE = FILE.encode(), EXECUTABLE.encode()
_FOLDER = FOLDER.encode()
_SUBMODULE = "160000"
_ENTRIES_KEPT = 20_000
_TREES_KEPT = 16
"""Trees that are cached whatever their size: the next commit is built on them."""
_LISTS_KEPT = 4
_WALKED_MOST = 250_000
"""Names that one walk visits at most."""
_LONGEST_PATH = 4096
_FILES_LISTED = 10_000
"""Files below a folder whose lists are cached at most: memory must not grow with the repository."""


class TreeEntry(NamedTuple):
    """Entry of a tree for one name."""

    mode: str
    oid: str


class _Listed(NamedTuple):
    """Direct content of one folder."""

    tree: str
    files: Mapping[str, str]
    """Whole path → blob id, of its regular files."""
    folders: tuple[tuple[str, str], ...]
    """Whole path, with its slash, and id of each folder in it."""


_LISTED: dict[str, dict[str, _Listed]] = {}
"""Folder → the last listing of it and of each folder below.
A tree's id determines its content, so later listings, also in a worker of the observer, read only
what has changed.
"""


class Tree(NamedTuple):
    """The entries of one tree in git's order."""

    keys: tuple[bytes, ...]
    """Names; a folder's ends in a slash, because git sorts it that way."""
    raws: tuple[bytes, ...]
    """The entries as they are stored: mode, space, name, NUL, id."""

    @classmethod
    def parse(cls, body: bytes, oid_size: int) -> Tree:
        """Return the entries of a stored tree.

        Raises:
            ValueError: it is malformed.
        """
        keys, raws, start = [], [], 0
        while start < len(body):
            end_of_name = body.index(b"\0", start)
            mode, name = body[start:end_of_name].split(b" ", 1)
            end = end_of_name + 1 + oid_size
            if not mode.isdigit() or end > len(body):
                raise ValueError("a tree without a mode, or cut off")
            keys.append(name + b"/" if mode.lstrip(b"0") == _FOLDER else name)
            raws.append(body[start:end])
            start = end
        return cls(tuple(keys), tuple(raws))

    def get(self, key: bytes) -> TreeEntry | None:
        """Return the entry of a name (of a folder: with its slash), or None."""
        at = bisect_left(self.keys, key)
        return _read(self.raws[at]) if at < len(self.keys) and self.keys[at] == key else None

    def replace(self, key: bytes, raw: bytes) -> Tree:
        """Return the tree with an entry in place of all entries of its name, file or folder."""
        keys, raws = list(self.keys), list(self.raws)
        name = key.removesuffix(b"/")
        for old in (name, name + b"/"):
            at = bisect_left(keys, old)
            if at < len(keys) and keys[at] == old:
                del keys[at], raws[at]
        at = bisect_left(keys, key)
        keys.insert(at, key)
        raws.insert(at, raw)
        return Tree(tuple(keys), tuple(raws))


def _read(raw: bytes) -> TreeEntry:
    head, _, tail = raw.partition(b"\0")
    return TreeEntry(head.split(b" ", 1)[0].lstrip(b"0").decode(), tail.hex())


class _Walk:
    """Progress of one walk, to limit it: ten small trees may hold more files than a disk."""

    def __init__(self) -> None:
        self._entries = 0

    def visit(self, folder: str, entries: int) -> None:
        """Enter a folder of so many entries. Raises YoloError(FILE_TOO_LARGE)."""
        self._entries += entries
        if self._entries > _WALKED_MOST or len(folder) > _LONGEST_PATH:
            shown = safe(folder, 80) or "the root"
            raise YoloError(
                Reason.FILE_TOO_LARGE,
                f"a tree of more than {_WALKED_MOST} names, or deeper than any path, at {shown}",
                hint="Its author has to revert it; nothing of it was used.",
                exit_code=Exit.FINDINGS,
            )


class Splice(NamedTuple):
    """A new root tree, and the trees that had to be made for it."""

    root: str
    made: tuple[GitObject, ...]
    is_executable: bool
    displaced: tuple[str | None, ...]
    """Ids of what was replaced: the file's former content (None: it is new).
    Before it, if there was one, a file in place of a folder of the path.
    """


class _Work(NamedTuple):
    """State of one splice."""

    blob: str
    is_executable: bool
    made: list[GitObject]
    displaced: list[str | None]


class Trees:
    """The trees of one object store, cached: a tree's id determines its content."""

    def __init__(self, store: ObjectStore):
        self._store = store
        self._made: dict[str, Tree] = {}
        """Trees of a build that exist only here."""
        self._seen: dict[str, Tree] = {}
        """Trees that the store has, the latest ones last: each commit creates new trees along its
        path.
        """
        self._seen_entries = 0

    def get(self, oid: str) -> Tree:
        """Return a tree by its id.

        Raises:
            YoloError: OBJECT_MISSING; also in a partial clone that lacks it (F31). FILE_TOO_LARGE.
        """
        tree = self._made.get(oid, self._seen.get(oid))
        if tree is None:
            git_object = self._store.read(oid)
            if git_object is None or git_object.kind != "tree":
                raise self._store.unread(f"tree {oid}", oid)
            try:
                tree = Tree.parse(git_object.body, self._store.object_format.size)
            except ValueError:
                raise missing_error(f"tree {oid}") from None
            self._remember(oid, tree)
            if self._seen_entries > 2 * _ENTRIES_KEPT:
                self._evict()
        return tree

    def evict_caches(self) -> None:
        """Evict the oldest trees; called when the store has what was built."""
        for oid, tree in self._made.items():
            self._remember(oid, tree)
        self._made = {}
        self._evict()

    def _remember(self, oid: str, tree: Tree) -> None:
        if oid not in self._seen:
            self._seen[oid] = tree
            self._seen_entries += len(tree.keys)

    def _evict(self) -> None:
        """Keep the youngest trees, with so many entries; a few of them whatever their size."""
        youngest_first = list(self._seen)
        youngest_first.reverse()
        room = _ENTRIES_KEPT
        for oid in youngest_first[_TREES_KEPT:]:
            room -= len(self._seen[oid].keys)
            if room < 0:
                self._seen_entries -= len(self._seen.pop(oid).keys)

    def find(self, root: str, path: str) -> TreeEntry | None:
        """Return what the tree `root` has at a path, file or folder, or None."""
        tree = self.get(root)
        *folders, name = _parts(path)
        for folder in folders:
            entry = tree.get(folder + b"/")
            if entry is None:
                return None
            tree = self.get(entry.oid)
        file = tree.get(name)
        return file or tree.get(name + b"/")

    def submodule_above(self, root: str, path: str) -> str:
        """Return the submodule of the tree `root` in which a path lies, or an empty string."""
        tree, folders = self.get(root), _parts(path)[:-1]
        for depth, folder in enumerate(folders, start=1):
            entry = tree.get(folder + b"/")
            if entry is None:
                file = tree.get(folder)
                is_submodule = file is not None and file.mode == _SUBMODULE
                return os.fsdecode(b"/".join(folders[:depth])) if is_submodule else ""
            tree = self.get(entry.oid)
        return ""

    def build(self, leaves: Mapping[str, TreeEntry]) -> tuple[GitObject, ...]:
        """Return the trees that hold exactly these files and links; the root comes last."""
        return tuple(self._built([(_parts(path), entry) for path, entry in leaves.items()]))

    def _built(self, leaves: Sequence[tuple[list[bytes], TreeEntry]]) -> Iterator[GitObject]:
        own: dict[bytes, bytes] = {}
        below: dict[bytes, list[tuple[list[bytes], TreeEntry]]] = {}
        for (name, *rest), entry in leaves:
            if rest:
                below.setdefault(name, []).append((rest, entry))
            else:
                own[name] = _raw(entry.mode.encode(), name, entry.oid)
        for name, inner in below.items():
            made = tuple(self._built(inner))
            yield from made
            own[name + b"/"] = _raw(_FOLDER, name, made[-1].oid)
        body = b"".join(own[key] for key in sorted(own))
        yield self._store.object_format.hash_object("tree", body)

    def files_below(self, root: str, path: str, *, anew: bool = False) -> dict[str, str]:
        """Return the regular files below a folder of the tree `root`: full path → blob id.

        `anew`: read each tree again, even if this process has listed it before.

        Raises:
            YoloError: OBJECT_MISSING; FILE_TOO_LARGE for more than anybody can list.
        """
        top = self.folder_at(root, path)
        left = [(f"{path}/", top)] if top else []
        before = {} if anew else _LISTED.pop(path, {})
        listed: dict[str, _Listed] = {}
        files: dict[str, str] = {}
        walk = _Walk()
        while left:
            folder, oid = left.pop()
            known = before.get(folder)
            if known is None or known.tree != oid:
                known = self._list(folder, oid)
            walk.visit(folder, len(known.files) + len(known.folders))
            listed[folder] = known
            files |= known.files
            left += known.folders
        if len(files) <= _FILES_LISTED:
            for oldest in list(_LISTED)[: 1 - _LISTS_KEPT]:
                _LISTED.pop(oldest, None)
            _LISTED[path] = listed
        return files

    def _list(self, prefix: str, oid: str) -> _Listed:
        files: dict[str, str] = {}
        folders: list[tuple[str, str]] = []
        for name, entry in self._entries_of(prefix, oid):
            if name.endswith("/"):
                folders.append((name, entry.oid))
            elif entry.mode.startswith("100"):
                files[name] = entry.oid
        return _Listed(oid, files, tuple(folders))

    def folder_at(self, root: str, path: str) -> str | None:
        """Return the id of a folder of the tree `root`; None where there is none."""
        entry = self.find(root, path)
        return entry.oid if entry and entry.mode == FOLDER else None

    def entries(self, root: str) -> Iterator[tuple[list[str], TreeEntry]]:
        """Yield every entry of a tree, folders too: the names that lead to it, and the entry."""
        left: list[tuple[list[str], str]] = [([], root)]
        walk = _Walk()
        while left:
            above, oid = left.pop()
            walk.visit("/".join(above), len(self.get(oid).keys))
            for key, raw in zip(*self.get(oid), strict=True):
                entry = _read(raw)
                is_folder = entry.mode == FOLDER
                name = key.removesuffix(b"/") if is_folder else key
                parts = [*above, name.decode("utf-8", "surrogateescape")]
                yield parts, entry
                if is_folder:
                    left.append((parts, entry.oid))

    def _entries_of(self, prefix: str, oid: str) -> Iterator[tuple[str, TreeEntry]]:
        """Yield prefix and name, a folder's with its slash, and the entry."""
        for key, raw in zip(*self.get(oid), strict=True):
            yield prefix + key.decode("utf-8", "surrogateescape"), _read(raw)

    def changes(
        self, before: str | None, after: str | None, prefix: str = ""
    ) -> Iterator[tuple[str, str]]:
        """Yield the differences between two trees (None: the empty one) as git names them.

        Each is a status letter and a path; a change of the entry's type is `T`.

        Raises:
            YoloError: OBJECT_MISSING; FILE_TOO_LARGE for more than anybody can compare.
        """
        walk = _Walk()
        left = [self._differing(before, after, prefix, walk)]
        while left:
            path, old, new = next(left[-1], ("", None, None))
            if not path:
                left.pop()
            elif path.endswith("/"):
                left.append(self._differing(old and old.oid, new and new.oid, path, walk))
            elif old and new:
                yield "M" if old.mode[:2] == new.mode[:2] else "T", path
            else:
                yield "D" if old else "A", path

    def _differing(
        self, before: str | None, after: str | None, prefix: str, walk: _Walk
    ) -> Iterator[tuple[str, TreeEntry | None, TreeEntry | None]]:
        """Yield prefix and name, a folder's with its slash, where entries of two trees differ."""
        was, now = (
            dict(zip(*self.get(oid), strict=True)) if oid else {} for oid in (before, after)
        )
        walk.visit(prefix, len(was) + len(now))
        for key in sorted(was.keys() | now.keys()):
            if was.get(key) != now.get(key):
                old, new = (_read(tree[key]) if key in tree else None for tree in (was, now))
                yield prefix + key.decode("utf-8", "surrogateescape"), old, new

    def splice(
        self, root: str | None, path: str, blob: str, *, is_executable: bool | None = None
    ) -> Splice:
        """Return the tree `root` (None: an empty one) with the regular file `path` put in.

        `is_executable`: None keeps the present mode, as every git does that cannot know it.
        """
        if is_executable is None:
            there = self.find(root, path) if root else None
            is_executable = there is not None and there.mode == EXECUTABLE
        work = _Work(blob, is_executable, [], [])
        fresh = self._splice(root, _parts(path), work)
        return Splice(fresh, tuple(work.made), is_executable, tuple(work.displaced))

    def _splice(self, oid: str | None, parts: list[bytes], work: _Work) -> str:
        tree = self.get(oid) if oid else Tree((), ())
        name, rest = parts[0], parts[1:]
        there = tree.get(name)
        if there or not rest:
            work.displaced.append(there.oid if there else None)
        if rest:
            if there and there.mode == _SUBMODULE:
                raise YoloError(
                    Reason.FOREIGN_REPOSITORY,
                    f"{name.decode()} is a submodule",
                    exit_code=Exit.FINDINGS,
                )
            below = tree.get(name + b"/")
            folder = self._splice(below.oid if below else None, rest, work)
            key, raw = name + b"/", _raw(_FOLDER, name, folder)
        else:
            key, raw = name, _raw(_EXECUTABLE if work.is_executable else _FILE, name, work.blob)
        fresh = tree.replace(key, raw)
        stored = self._store.object_format.hash_object("tree", b"".join(fresh.raws), oid or "")
        self._made[stored.oid] = fresh
        work.made.append(stored)
        return stored.oid


def _parts(path: str) -> list[bytes]:
    return path.encode("utf-8", "surrogateescape").split(b"/")


def _raw(mode: bytes, name: bytes, oid: str) -> bytes:
    return mode + b" " + name + b"\0" + bytes.fromhex(oid)
