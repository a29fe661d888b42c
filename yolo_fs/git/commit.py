"""The commit engine: one commit per artifact, many in a chain, one durable branch update.

The validated bytes are the bytes that are hashed. The work tree and the user's staged changes are
not involved.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.index import IndexSync, IndexUpdate
from yolo_fs.git.object_format import GitObject
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Head, Repository, Setting
from yolo_fs.system import failpoint
from yolo_fs.system.files import Stamp


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """One artifact to commit."""

    path: str
    data: bytes
    subject: str
    trailers: tuple[tuple[str, str], ...] = ()
    at: datetime | None = None
    """When it was committed at its origin; None for now."""
    beside: tuple[tuple[str, bytes], ...] = ()
    """Path and content of more files for the same commit; unused if the artifact is unchanged."""

    @property
    def message(self) -> str:
        """Subject, and our trailers as the body. Free text of artifacts is never included (F55)."""
        trailers = "".join(f"{key}: {value}\n" for key, value in self.trailers)
        return f"{self.subject}\n\n{trailers}" if trailers else f"{self.subject}\n"


class CommitResult(NamedTuple):
    """Result of one entry."""

    path: str
    blob: str
    commit: str | None
    """The new commit; None when the branch had this content already."""


class _Chain(NamedTuple):
    """Commits built on a tip, not yet reachable from a branch."""

    tip: str | None
    made: tuple[CommitResult, ...]
    objects: tuple[GitObject, ...]
    follows: tuple[IndexUpdate, ...]


class Committer:
    """Turns entries into commits on top of a branch."""

    def __init__(
        self,
        repository: Repository,
        branches: RefUpdater,
        follower: IndexSync,
        now: Callable[[], datetime],
    ):
        self._repository = repository
        self._branches = branches
        self._follower = follower
        self._now = now
        self._named_by: tuple[Setting, ...] | None = None
        """The configuration when author and committer were read."""
        self._read_names()

    def commit(
        self,
        entries: Sequence[CommitRequest],
        head: Head,
        emit: Callable[[tuple[CommitResult, ...]], object] = lambda _made: None,
        within: AbstractContextManager[object] = contextlib.nullcontext(),
    ) -> tuple[CommitResult, ...]:
        """Commit the entries in order on the branch that `head` captured.

        `head` is captured before the entries' files are read.
        `emit`: called with the results once they are durable, before the cleanup.
        `within`: entered while branch and index are locked, so that no other git and no daemon
        commits meanwhile; if it raises, nothing is committed.
        When this returns, every commit is durable. When it raises, the branch is unchanged.

        Raises:
            YoloError: BRANCH_MOVED (look again and retry), REF_LOCKED, NO_SPACE, STORAGE_FAILED,
                OBJECT_MISSING, GIT_FAILED.
        """
        self._repository.evict_caches()
        chain = self._build(entries, head, self._repository.is_executable_here)
        failpoint.reach("commit.built")
        if chain.tip is not None and chain.tip != head.tip:
            self._follower.expect(chain.follows)
            with (
                self._follower.drafted(chain.follows) as draft,
                self._repository.objects.hold_packs_back(),
            ):
                settle = self._repository.objects.begin_to_write(chain.objects)
                # The user may be on another branch by now that has the same tip.
                if self._repository.head() != head:
                    raise YoloError(Reason.BRANCH_MOVED)
                locked = _once(settle, draft.in_place(), within)
                self._branches.move(head.ref or "HEAD", chain.tip, head.tip, locked)
                emit(chain.made)
        return chain.made

    @property
    def is_index_behind(self) -> bool:
        """Whether the index does not yet have all that was committed."""
        return bool(self._follower.pending)

    @property
    def index_left_at(self) -> Stamp | None:
        """The stamp of the index after the last commit; None if another git may have written it."""
        return self._follower.left_at

    def extend(
        self, entries: Sequence[CommitRequest], ref: str, tip: str | None
    ) -> tuple[CommitResult, ...]:
        """Commit the entries on a ref that is checked out nowhere, if it still points at `tip`.

        Raises:
            YoloError: as `commit`.
        """
        self._repository.evict_caches()
        chain = self._build(entries, Head(ref, tip))
        if chain.tip is not None and chain.tip != tip:
            with self._repository.objects.hold_packs_back():
                self._repository.objects.write(chain.objects)
                self._branches.move(ref, chain.tip, tip)
        return chain.made

    @contextlib.contextmanager
    def built_on(self, entries: Sequence[CommitRequest], tip: str | None) -> Iterator[str | None]:
        """Yield the last of the commits built from the entries on `tip`; None if nothing changed.

        No ref is moved: the commits are protected only while the context lasts.

        Raises:
            YoloError: as `commit`.
        """
        self._repository.evict_caches()
        chain = self._build(entries, Head(None, tip))
        if chain.tip in (None, tip):
            yield None
            return
        with self._repository.objects.hold_packs_back():
            self._repository.objects.write(chain.objects)
            yield chain.tip

    def _build(
        self,
        entries: Sequence[CommitRequest],
        head: Head,
        mode_of: Callable[[str], bool | None] = lambda _path: None,
    ) -> _Chain:
        """`mode_of`: whether a file is to be executable; None for as the branch has it."""
        self._read_names()
        tip, made, objects, follows = head.tip, [], [], []
        for entry in entries:
            blob = self._repository.objects.object_format.hash_object("blob", entry.data)
            if self._repository.blob_at(tip, entry.path) == blob.oid:
                made.append(CommitResult(entry.path, blob.oid, None))
                continue
            root = self._repository.root_tree(tip) if tip else None
            for path, data in ((entry.path, entry.data), *entry.beside):
                content = self._repository.objects.object_format.hash_object("blob", data)
                splice = self._repository.trees.splice(
                    root, path, content.oid, is_executable=mode_of(path)
                )
                if splice.root != root:
                    objects += [content, *splice.made]
                    displaced = frozenset(splice.displaced)
                    follows.append(IndexUpdate(path, content.oid, displaced, splice.is_executable))
                root = splice.root
            commit = self._commit_object(str(root), tip, entry)
            self._repository.cache_commit(commit.oid, str(root), tip)
            objects.append(commit)
            made.append(CommitResult(entry.path, blob.oid, commit.oid))
            tip = commit.oid
        return _Chain(tip, tuple(made), tuple(objects), tuple(follows))

    def _read_names(self) -> None:
        """Read author and committer, anew if the configuration says anything else than before.

        A user sets their name while a daemon runs, or the branch chooses it (`includeIf.onbranch`).
        """
        configured = self._repository.settings()
        if configured == self._named_by:
            return
        self._author = self._repository.identity("AUTHOR")
        self._committer = self._repository.identity()
        encoding = self._repository.config("i18n.commitEncoding")
        is_utf8 = not any("\ud800" <= char <= "\udfff" for char in self._author + self._committer)
        self._encoding = [f"encoding {encoding}"] if encoding and not is_utf8 else []
        """Header with the encoding of the user's name, as git writes it; our own text is ASCII."""
        self._named_by = configured

    def _commit_object(self, tree: str, parent: str | None, entry: CommitRequest) -> GitObject:
        now = (entry.at or self._now()).astimezone()
        moment = f"{int(now.timestamp())} {now:%z}"
        lines = [
            f"tree {tree}",
            *([f"parent {parent}"] if parent else []),
            f"author {self._author} {moment}",
            f"committer {self._committer} {moment}",
            *(self._encoding if entry.message.isascii() else ()),
        ]
        text = "\n".join([*lines, "", entry.message])
        return self._repository.object_format.hash_object(
            "commit", text.encode("utf-8", "surrogateescape")
        )


@contextlib.contextmanager
def _once(
    settle: Callable[[], None],
    placed: AbstractContextManager[None],
    within: AbstractContextManager[object],
) -> Iterator[None]:
    """Enter two contexts once objects are durable: git locks the ref meanwhile."""
    settle()
    with placed, within:
        yield
