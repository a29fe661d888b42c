"""Keeps contents that the branch does not have in `refs/yolo-fs/kept/WORK_TREE`.

The ref is a chain of one commit per entry. Contents are restored without losing what is there now.
Keeping does not involve the branch, the index or the work tree, writes no reflog, and only names
what looks like a credential. See docs/kept.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from yolo_fs.artifacts.examine import find_secrets
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, safe
from yolo_fs.core.timestamps import iso, moment
from yolo_fs.git.commit_object import read_commit_object
from yolo_fs.git.object_format import GitObject
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import FALLBACK_IDENTITY, Repository
from yolo_fs.git.trees import EXECUTABLE, FILE, FOLDER, LINK, TreeEntry
from yolo_fs.kept.selection import (
    MOST_BYTES,
    KeptCause,
    KeptEntry,
    draft_of,
    entry_of,
    within_bounds,
)
from yolo_fs.system.file_locks import locked
from yolo_fs.system.files import (
    MAX_FOLDERS,
    Content,
    Root,
    is_below,
    link_target,
    parts_to_write,
    read,
)
from yolo_fs.system.store import link_atomic, make_folders, write_atomic
from yolo_fs.system.typed_path import resolve_typed_path

REF = "refs/yolo-fs/kept/"
"""Followed by `main`, or by `worktrees/` and the id of a linked work tree."""

_MOST_FILES = 100_000
"""Names in one entry at most: a tree whose folders are all the same one is endless."""
_IDLE_ENTRIES = 64
"""Entries beyond the limits that may wait until the chain is rewritten without them."""


class ContentToKeep(NamedTuple):
    """One content that is to be kept."""

    path: str
    data: bytes
    cause: KeptCause


class Leaf(NamedTuple):
    """A file or a link, as a git tree can store it."""

    data: bytes
    """Content of the file, or target of the link."""
    mode: str = FILE


def read_leaf(root: Root, path: str) -> Leaf | Finding:
    """Return the file or the link at a path, not followed, or a finding about what is there."""
    outcome = read(root, path, MOST_BYTES)
    if isinstance(outcome, Content):
        return Leaf(outcome.data, EXECUTABLE if outcome.is_executable else FILE)
    target = link_target(root, path) if outcome.reason is Reason.NOT_REGULAR else None
    return outcome if target is None else Leaf(target, LINK)


def turn(repository: Repository, patience_s: float) -> AbstractContextManager[None]:
    """Return the lock under which a private ref is moved.

    Raises:
        YoloError: LOCK_TIMEOUT, when it is entered.
    """
    repository.make_own_dir()
    return locked(os.path.join(repository.own_dir, "kept.turn"), patience_s)


class KeptStore:
    """Keeps contents of one work tree. Daemon, hooks and commands may do so concurrently."""

    def __init__(
        self,
        repository: Repository,
        *,
        secrets_allowed: Sequence[str] = (),
        patience_s: float = 10.0,
    ):
        """`patience_s`: longest wait for another process that keeps, seconds."""
        self._repository = repository
        self._secrets_allowed = frozenset(secrets_allowed)
        self._patience_s = patience_s
        self.ref = REF + _name_of(repository)
        self._tip: str | None = None
        self._chain: tuple[KeptEntry, ...] = ()
        """All stored entries as read from the tip, oldest first."""

    def keep(self, contents: Sequence[ContentToKeep]) -> tuple[KeptEntry, ...]:
        """Keep each content as an entry of its own, and return the new entries.

        A content that is kept already gets none.

        Raises:
            YoloError: LOCK_TIMEOUT, NO_SPACE, STORAGE_FAILED, GIT_FAILED.
        """
        drafts = [self._draft({each.path: Leaf(each.data)}, each.cause) for each in contents]
        return self._append([draft for draft in drafts if draft]) if drafts else ()

    def keep_files(self, files: Mapping[str, Leaf], cause: KeptCause) -> KeptEntry | None:
        """Keep files and links as one entry; None when all are kept already. Raises as `keep`."""
        draft = self._draft(files, cause)
        return next(iter(self._append([draft])), None) if draft else None

    def entries(self) -> tuple[KeptEntry, ...]:
        """Return what is kept, oldest first."""
        return within_bounds(self._read())

    def entry(self, number: int) -> KeptEntry:
        """Return one entry.

        Raises:
            YoloError: UNKNOWN_REFERENCE.
        """
        for entry in self.entries():
            if entry.number == number:
                return entry
        message, hint = f"nothing is kept under number {number}", "'yolo-fs kept' lists what is."
        raise YoloError(Reason.UNKNOWN_REFERENCE, message, hint=hint)

    def contents(self, entry: KeptEntry) -> Iterator[tuple[str, Leaf]]:
        """Yield path and content of each file of an entry.

        The repository may come from anybody, so the tree is checked as a whole first.

        Raises:
            YoloError: PATH_ESCAPES, NOT_REGULAR, STATE_CONFLICT, OUT_OF_RANGE for a tree that no
                work tree could have had; OBJECT_MISSING, FILE_TOO_LARGE.
        """
        for path, (mode, blob) in _judged(self._repository.trees.entries(entry.tree)).items():
            git_object = self._repository.objects.read(blob)
            if git_object is None or git_object.kind != "blob":
                raise self._repository.objects.unread(f"blob {blob}", blob)
            yield path, Leaf(git_object.body, mode)

    def prune(self, older: timedelta) -> int:
        """Drop entries that are older, and those beyond the limits; return how many."""
        with turn(self._repository, self._patience_s):
            chain = self._read()
            since = datetime.now(UTC) - older
            stay = tuple(
                entry for entry in within_bounds(chain) if (moment(entry.at) or since) >= since
            )
            if len(stay) < len(chain):
                self._write(stay, ())
            return len(chain) - len(stay)

    def _draft(
        self, files: Mapping[str, Leaf], cause: KeptCause
    ) -> tuple[KeptEntry, tuple[GitObject, ...]] | None:
        """Return an entry without its number, and the objects that it needs."""
        allowed = self._secrets_allowed
        sound = {
            path: leaf for path, leaf in files.items() if not find_secrets(leaf.data, path, allowed)
        }
        hash_object = self._repository.object_format.hash_object
        blobs = {path: hash_object("blob", leaf.data) for path, leaf in sound.items()}
        trees = self._repository.trees.build(
            {path: TreeEntry(leaf.mode, blobs[path].oid) for path, leaf in sound.items()}
        )
        size = sum(len(leaf.data) for leaf in sound.values())
        entry = draft_of(tuple(files), cause)
        entry = entry._replace(files=len(sound), size_bytes=size, tree=trees[-1].oid)
        return entry, (*blobs.values(), *trees)

    def _append(
        self, drafts: Sequence[tuple[KeptEntry, tuple[GitObject, ...]]]
    ) -> tuple[KeptEntry, ...]:
        with turn(self._repository, self._patience_s):
            chain = self._read()
            trees = {draft.tree for draft, _ in drafts}
            there = (entry for entry in within_bounds(chain) if entry.tree in trees)
            known = {(entry.paths[:1], entry.tree) for entry in there}
            last, at = chain[-1].number if chain else 0, iso(datetime.now(UTC).timestamp())
            fresh: list[KeptEntry] = []
            objects: list[GitObject] = []
            for draft, needed in drafts:
                if (alike := (draft.paths[:1], draft.tree)) not in known:
                    fresh.append(draft._replace(number=last + len(fresh) + 1, at=at))
                    objects += needed
                    known.add(alike)
            if fresh:
                self._extend(chain, fresh, objects)
            return tuple(fresh)

    def _extend(
        self, chain: tuple[KeptEntry, ...], fresh: list[KeptEntry], objects: Sequence[GitObject]
    ) -> None:
        """Add entries to the chain; rewrite it once a large part of it is obsolete."""
        stay = within_bounds((*chain, *fresh))
        idle = len(chain) + len(fresh) - len(stay)
        idle_bytes = sum(e.size_bytes for e in (*chain, *fresh)) - sum(e.size_bytes for e in stay)
        is_crowded = idle > _IDLE_ENTRIES + len(stay) // 4 or idle_bytes > MOST_BYTES // 4
        before = chain[-1].dropped if chain else 0
        if is_crowded:
            self._write((*stay[:-1], stay[-1]._replace(dropped=before + idle)), objects)
        else:
            fresh = [entry._replace(dropped=before) for entry in fresh]
            self._write((*chain, *fresh), objects, onto=len(chain))

    def _write(
        self, entries: tuple[KeptEntry, ...], objects: Sequence[GitObject], onto: int = 0
    ) -> None:
        """Store a chain and move the ref to it; its first `onto` entries are stored already."""
        tip = self._tip if onto else None
        commits = []
        for entry in entries[onto:]:
            commits.append(self._commit_object(entry, tip))
            tip = commits[-1].oid
        repository, everything = self._repository, (*objects, *commits)
        refs = RefUpdater(repository, durable=repository.objects.is_durable, is_private=True)
        with closing(refs):
            if tip is not None:
                with repository.objects.hold_packs_back():
                    repository.objects.write(everything)
                    refs.move(self.ref, tip, self._tip)
            elif self._tip is not None:
                refs.delete(self.ref, self._tip)
        self._tip, self._chain = tip, entries

    def _commit_object(self, entry: KeptEntry, parent: str | None) -> GitObject:
        at = moment(entry.at) or datetime.now(UTC)
        signature = f"{FALLBACK_IDENTITY} {int(at.timestamp())} +0000"
        parents = f"parent {parent}\n" if parent else ""
        head = f"tree {entry.tree}\n{parents}author {signature}\ncommitter {signature}\n"
        text = f"{head}\n{entry.message}".encode()
        return self._repository.object_format.hash_object("commit", text)

    def _read(self) -> tuple[KeptEntry, ...]:
        tip = self._repository.tip(self.ref)
        if tip != self._tip:
            self._chain = self._stored(tip) if tip else ()
            self._tip = tip
        return self._chain

    def _stored(self, tip: str) -> tuple[KeptEntry, ...]:
        """Return the entries of the chain, oldest first.

        An earlier owner of the repository may have made it, so the total size of its messages is
        limited like that of kept contents.
        """
        objects = self._repository.objects
        listed = self._repository.git.run("rev-list", "--end-of-options", tip, "--", ok=(0, 128))
        entries: list[KeptEntry] = []
        room = MOST_BYTES
        for git_object in objects.read_many(listed.out.decode().split()):
            room -= len(git_object.body) if git_object else 0
            if room < 0:
                break
            commit = (
                read_commit_object(git_object.body)
                if git_object and git_object.kind == "commit"
                else None
            )
            if commit and (entry := entry_of(commit.tree, commit.message)):
                entries.append(entry)
        return tuple(reversed(entries))


def _judged(entries: Iterable[tuple[list[str], TreeEntry]]) -> dict[str, TreeEntry]:
    """Return the files and links of a tree after checking it: path → entry."""
    seen: set[str] = set()
    leaves: dict[str, TreeEntry] = {}
    for parts, entry in entries:
        path = "/".join(parts)
        if len(seen) >= _MOST_FILES or len(parts) > MAX_FOLDERS:
            raise _error_for_unfit(Reason.OUT_OF_RANGE, path, "fewer names, and fewer folders")
        if "/" in parts[-1] or parts_to_write(path) is None:
            raise _error_for_unfit(Reason.PATH_ESCAPES, path, "a name, and not `..` or `.git`")
        if path in seen:
            raise _error_for_unfit(Reason.STATE_CONFLICT, path, "each name once")
        seen.add(path)
        if entry.mode in (FILE, EXECUTABLE, LINK):
            leaves[path] = entry
        elif entry.mode != FOLDER:
            raise _error_for_unfit(Reason.NOT_REGULAR, path, "a file, a link or a folder")
    return leaves


def _error_for_unfit(reason: Reason, path: str, expected: str) -> YoloError:
    return YoloError(
        reason,
        f"{safe(path, 300)}: expected {expected}; nothing of this entry is touched",
        hint="'yolo-fs kept' lists the others.",
        exit_code=Exit.FINDINGS,
    )


def _name_of(repository: Repository) -> str:
    if repository.git_dir == repository.common_dir:
        return "main"
    return f"worktrees/{os.path.basename(repository.git_dir)}"


class Restored(NamedTuple):
    """Result of a restore."""

    written: tuple[str, ...]
    kept_first: int | None
    """Number of the entry with what was there before; None where nothing had to be kept."""
    findings: tuple[Finding, ...]
    """What could not be written, and why."""


def restore(
    repository: Repository, kept_store: KeptStore, entry: KeptEntry, target: str | None, start: str
) -> Restored:
    """Write the contents of an entry to where they were, or to `target`, relative to `start`.

    For several contents, the target is a folder. Nothing is written into a git directory, through a
    link, or where git would run it. Raises as `KeptStore.contents` and `KeptStore.keep`.
    """
    contents = dict(kept_store.contents(entry))
    if not contents:
        message = "it looked like a credential, so only its name was kept"
        raise YoloError(Reason.SECRET, message)
    root = repository.root
    if target is None:
        return _restore_below(repository, kept_store, root, root, contents)
    is_folder = len(contents) > 1 or os.path.isdir(os.path.join(start, target))
    top, full = resolve_typed_path(os.path.join(target, "_") if is_folder else target, start, root)
    if not is_folder:
        contents = {os.path.basename(full): next(iter(contents.values()))}
    return _restore_below(repository, kept_store, top, os.path.dirname(full), contents)


def _restore_below(
    repository: Repository,
    kept_store: KeptStore,
    top: str,
    folder: str,
    contents: Mapping[str, Leaf],
) -> Restored:
    """Write contents into a folder that is `top` or lies below it."""
    _refuse_places(repository, folder, contents)
    findings, endangered, wanted = [], {}, {}
    for path, leaf in contents.items():
        now = read_leaf(top, os.path.relpath(os.path.join(folder, path), top))
        if isinstance(now, Finding) and now.reason is not Reason.FILE_MISSING:
            findings.append(now)
            continue
        if isinstance(now, Leaf) and now.data != leaf.data:
            endangered[path] = now
        wanted[path] = leaf
    kept = _keep_first(repository, kept_store, folder, endangered)
    mask = os.umask(0o077)
    os.umask(mask)
    # Links last: a link of the same entry could otherwise redirect later writes.
    for path, leaf in sorted(wanted.items(), key=lambda each: each[1].mode == LINK):
        full = os.path.join(folder, path)
        make_folders(os.path.dirname(full), root=top)
        if leaf.mode == LINK:
            link_atomic(full, leaf.data, root=top)
            continue
        mode = 0o777 if leaf.mode == EXECUTABLE else 0o666  # what git itself would give it
        # Not synced: after a power loss the entry is still there to be restored again.
        write_atomic(full, leaf.data, root=top, durable=False, mode=mode & ~mask)
    return Restored(tuple(wanted), kept, tuple(findings))


def _refuse_places(repository: Repository, folder: str, contents: Mapping[str, Leaf]) -> None:
    """Refuse a git directory, whatever its name, and files that git would run as a hook."""
    hooks = os.path.realpath(repository.hooks_dir)
    is_husky = os.path.basename(hooks) == "_"  # its scripts run those in the folder above
    for path, leaf in contents.items():
        _, full = resolve_typed_path(os.path.join(folder, path), folder, None)
        may_run = is_husky or leaf.mode != FILE
        if may_run and is_below(full, os.path.dirname(hooks) if is_husky else hooks):
            raise YoloError(
                Reason.PATH_ESCAPES,
                f"{safe(path, 300)}: expected a place where git runs no hooks; nothing was written",
                hint="Give another place with --to.",
                exit_code=Exit.FINDINGS,
            )


def _keep_first(
    repository: Repository, kept_store: KeptStore, root: str, endangered: Mapping[str, Leaf]
) -> int | None:
    """Keep what is about to be replaced and is on no branch; refuse if that fails."""
    tip = repository.head().tip if root == repository.root else None
    hash_object = repository.object_format.hash_object
    alone = {
        path: leaf
        for path, leaf in endangered.items()
        if tip is None or repository.blob_at(tip, path) != hash_object("blob", leaf.data).oid
    }
    if not alone:
        return None
    entry = kept_store.keep_files(alone, KeptCause(("replaced",), "kept restore"))
    if entry is not None and entry.files < len(alone):
        message = "the file there now looks like a credential and cannot be kept"
        raise YoloError(Reason.SECRET, message, hint="Give another place with --to.")
    return entry.number if entry else None
