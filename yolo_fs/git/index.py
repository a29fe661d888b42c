"""Updates the user's index after a commit: only our path's entry, unless they staged another.

Without this, moving a branch leaves a staged *reverse* of the artifact, which the user's next
commit would apply. See docs/dev/faults.md#f05, #f21, #f22 and #f32.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.conversation import Conversation
from yolo_fs.git.failures import GitError
from yolo_fs.git.index_stats import remember_files
from yolo_fs.git.repository import Repository
from yolo_fs.system import failpoint
from yolo_fs.system.files import Stamp, stamp_at
from yolo_fs.system.in_place import ScratchRecord
from yolo_fs.system.store import NO_SECOND_NAMES, environment

if TYPE_CHECKING:
    from concurrent.futures import Future

_INTENT_TO_ADD = 1 << 29
"""Intent-to-add flag of an index entry, as `ls-files --debug` prints it."""
_UPDATE = ("update-index", "-z", "--add", "--index-info")
_MARKS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {"--skip-worktree": lambda tag: tag in "Ss", "--assume-unchanged": str.islower}
)
"""Option of `update-index` → whether a tag of `ls-files -v` says that an entry has its mark."""
CONFLICT = "conflict"
"""Stands for the id of an unmerged entry."""


class IndexUpdate(NamedTuple):
    """One path whose index entry is to become the committed blob."""

    path: str
    blob: str
    previous_blobs: frozenset[str | None]
    """Blobs that the branch had here before; any other entry was staged by the user."""
    is_executable: bool = False

    def after(self, earlier: IndexUpdate | None) -> IndexUpdate:
        """Return this update merged with an earlier one that is still pending."""
        return (
            IndexUpdate(
                self.path,
                self.blob,
                self.previous_blobs | earlier.previous_blobs | {earlier.blob},
                self.is_executable,
            )
            if earlier
            else self
        )


class DraftFacts(NamedTuple):
    """An index that is written but not in place yet."""

    path: str
    basis: Stamp | None
    """The index that it is based on; None if there was none."""
    is_changed: bool
    """Whether it differs from the index."""


class _Prefetched(NamedTuple):
    """A git process that has read the index into a draft and waits for the changes."""

    basis: Stamp
    settings: dict[str, str]
    writer: Conversation


class IndexDraft:
    """An index that is put in place together with a branch move, as `git commit` does it."""

    def __init__(self, repository: Repository, facts: Future[DraftFacts]):
        self._repository = repository
        self._facts = facts
        self.is_placed = False
        """Whether it is in place and the branch has moved."""
        self.placed_at: Stamp | None = None
        """The stamp of the index that it became; None when another git has written it since."""

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Hold `index.lock` and put the draft in place while the branch moves; undo it on failure.

        The index goes first: every git reads HEAD before the index, so none reads the new HEAD with
        the old index.

        Raises:
            YoloError: INDEX_LOCKED when another git holds the lock, or has written the index
                meanwhile; NO_SPACE, STORAGE_FAILED when the draft cannot be written or placed.
        """
        draft, basis, is_changed = self._facts.result()
        if not is_changed:
            yield
            return
        index = f"{self._repository.git_dir}/index"
        lock, before = f"{index}.lock", f"{draft}.before"
        try:
            os.link(draft, lock)
        except FileExistsError:
            raise YoloError(Reason.INDEX_LOCKED) from None
        except OSError as error:
            if error.errno not in NO_SECOND_NAMES:
                with environment("index"):
                    raise
            yield  # the index follows later
            return
        try:
            if stamp_at(index) != basis:
                raise YoloError(Reason.INDEX_LOCKED)
            failpoint.reach("index.locked")
            with environment("index"):
                if basis:
                    _link_anew(index, before)
                os.rename(draft, index)
            ours = stamp_at(index)
            try:
                failpoint.reach("index.placed")
                yield
            except BaseException:
                os.rename(before, index) if basis else os.unlink(index)
                raise
            self.is_placed = True
        finally:
            with contextlib.suppress(OSError):  # the branch has moved: nothing may fail any more
                os.unlink(lock)
        now = stamp_at(index)  # the lock was a second name: without it only the ctime is another
        self.placed_at = now if now and ours and now[:4] == ours[:4] else None

    def discard(self) -> None:
        """Remove what is left of the draft.

        If nothing changed, the file becomes the next draft, and git may be about to read it.
        """
        with contextlib.suppress(OSError, YoloError):
            path, _, is_changed = self._facts.result()
            for name in (path, f"{path}.before") if is_changed else ():
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name)


class IndexSync:
    """Tracks pending index updates across crashes, and applies them in batches."""

    def __init__(self, repository: Repository, *, lives_long: bool = False):
        """`lives_long`: expect many commits, so begin drafts in advance; ended by `close`."""
        from concurrent.futures import ThreadPoolExecutor  # most commands write nothing

        self._repository = repository
        self._lives_long = lives_long
        self._prefetched: _Prefetched | None = None
        self._read_ahead_at: Stamp | None = None
        """The stamp of the index that git should read for the next draft."""
        self._drafter = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._note = ScratchRecord(f"{repository.own_dir}/index-pending")
        self.pending: dict[str, IndexUpdate] = _read(self._note.read())
        self._placed: dict[str, str] = {}
        """Path → blob that we put in for a HEAD that may have changed since."""
        self._listed: dict[str, dict[str, str]] = {}
        """First path component → its entries in the index that we put in place last."""
        self.left_at: Stamp | None = None
        """The stamp of that index; None if another git may have written it since."""
        self._tags: dict[str, str] = {}
        """Path → tag of its entry, where its user has marked it; `--index-info` drops the mark."""
        self._owed: dict[str, str] = {}
        """Those of them whose entry we have replaced and not marked yet."""
        self._executable: set[str] = set()
        """Paths whose entries must be executable."""
        self.diverged: set[str] = set()
        """Paths where the user has staged content of their own."""

    def expect(self, follows: Iterable[IndexUpdate]) -> None:
        """Record updates *before* the branch moves, so that a restart can finish them."""
        for follow in follows:
            self.pending[follow.path] = follow.after(self.pending.get(follow.path))
        failpoint.reach("index.noting")
        self._save()
        failpoint.reach("index.noted")

    def follow(self) -> bool:
        """Apply all pending updates; return whether that was done (False: index.lock is held).

        Entries whose commit was never made are dropped: only what HEAD holds is ever put in.
        """
        while self.pending:
            tip = self._repository.head().tip
            entries = dict(self._find_outdated_entries(tip))
            self._note_modes(
                {path: self._repository.is_executable_at(tip, path) for path in entries}
            )
            failpoint.reach("index.begun")
            self._owed |= self._tags_of(entries)
            if not self._put(entries) or not self._mark(self._owed):
                return False
            self._owed.clear()
            failpoint.reach("index.followed")
            self._placed |= {path: blob for path, blob in entries.items() if blob}
            if self._repository.head().tip == tip:
                self._close()
        return True

    @contextlib.contextmanager
    def drafted(self, follows: Iterable[IndexUpdate]) -> Iterator[IndexDraft]:
        """Write the future index beside the current one; other git commands are not blocked."""
        is_again = self.left_at is not None
        draft = IndexDraft(self._repository, self._drafter.submit(self._draft, list(follows)))
        try:
            yield draft
        finally:
            draft.discard()
        if draft.is_placed:
            self.left_at = draft.placed_at
            self._settle(each for each in follows if each.path not in self.diverged)
            self._read_ahead_at = draft.placed_at if self._lives_long and is_again else None

    def read_ahead(self) -> None:
        """Let git read the index for the next draft, after all urgent work."""
        if self._read_ahead_at:
            self._drafter.submit(self._begin, self._read_ahead_at)
            self._read_ahead_at = None

    def close(self) -> None:
        """End the waiting git process and the thread."""
        self._drafter.shutdown()
        if self._prefetched:
            self._prefetched.writer.kill()
            self._prefetched = None
            self._clear_drafts()

    def _settle(self, follows: Iterable[IndexUpdate]) -> None:
        """Record that the index has what the branch has."""
        for follow in follows:
            self.pending.pop(follow.path, None)
        self._save()

    @environment("index")
    def _draft(self, follows: Sequence[IndexUpdate]) -> DraftFacts:
        """Write the draft; entries in which the user has staged something else stay."""
        draft = self._draft_path
        self._repository.make_own_dir()
        basis = stamp_at(f"{self._repository.git_dir}/index")
        steps = {follow.path: self.pending.get(follow.path, follow) for follow in follows}
        if basis is None or basis != self.left_at:
            self._listed = {}
        self.left_at = None
        staged = self._staged(steps, self._listed)
        entries: dict[str, str] = {}
        for path, step in steps.items():
            if staged[path] in step.previous_blobs:
                entries[path] = step.blob
            if path in entries or staged[path] == step.blob:
                self.diverged.discard(path)
            else:
                self.diverged.add(path)
        if not entries:
            return DraftFacts(draft, basis, is_changed=False)
        self._note_modes({path: steps[path].is_executable for path in entries})
        if not self._ended_with(basis, entries):
            self._copy(basis)
            self._put(entries, {"GIT_INDEX_FILE": draft})
        repository, durable = self._repository, self._repository.objects.is_durable
        remember_files(draft, repository.root, entries, repository.object_format, durable=durable)
        self._mark(self._tags_of(entries), {"GIT_INDEX_FILE": draft})
        for path, blob in entries.items():
            self._listed[_top(path)][path] = blob
        return DraftFacts(draft, basis, is_changed=True)

    def _copy(self, basis: Stamp | None) -> None:
        """Begin a draft as a copy of the index."""
        index, draft = f"{self._repository.git_dir}/index", self._draft_path
        self._clear_drafts()
        if basis:
            import shutil  # brings four compressors along; most commands write nothing

            shutil.copyfile(index, draft)
            # From this time git derives which files may have changed since.
            os.utime(draft, ns=(basis.mtime_ns, basis.mtime_ns))
            shutil.copymode(index, draft)

    def _clear_drafts(self) -> None:
        for left in (self._draft_path, f"{self._draft_path}.lock", f"{self._draft_path}.before"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left)

    def _begin(self, basis: Stamp) -> None:
        """Let git read the index in advance: starting git and reading take most of the time."""
        with contextlib.suppress(OSError, YoloError):
            settings = self._repository.programs_off(also_own_filters=True)
            self._copy(basis)
            more = {"GIT_INDEX_FILE": self._draft_path}
            writer = self._repository.git.converse(*_UPDATE, settings=settings, more=more)
            self._prefetched = _Prefetched(basis, settings, writer)

    def _ended_with(self, basis: Stamp | None, entries: Mapping[str, str | None]) -> bool:
        """Finish the draft that git has begun; return whether it was the right one and worked."""
        begun, self._prefetched = self._prefetched, None
        if begun is None:
            return False
        settings = self._repository.programs_off(also_own_filters=True)
        if (begun.basis, begun.settings) != (basis, settings):
            begun.writer.kill()
            return False
        with contextlib.suppress(YoloError):
            begun.writer.ask(self._lines(entries))
            return begun.writer.finish().code == 0
        return False

    @property
    def _draft_path(self) -> str:
        return f"{self._repository.own_dir}/index-draft"

    def clear_own_stale_lock(self) -> bool:
        """Remove an `index.lock` that a killed run of ours left; return whether there was one.

        Ours is a hard link to the draft, or to the index that the draft became: no git makes such a
        lock. Remains of a draft are removed, too.
        """
        is_ours = self._unlock()
        self._clear_drafts()
        return is_ours

    def _unlock(self) -> bool:
        index, before = f"{self._repository.git_dir}/index", f"{self._draft_path}.before"
        lock = f"{index}.lock"
        if _is_same(lock, index):
            with contextlib.suppress(FileNotFoundError):
                os.rename(before, index)  # what the branch has by now follows, as after every crash
        elif not _is_same(lock, self._draft_path):
            return False
        os.unlink(lock)
        return True

    def _find_outdated_entries(self, tip: str | None) -> Iterator[tuple[str, str | None]]:
        """Yield each entry that must change, with HEAD's blob for it (None: nothing)."""
        staged = self._staged(self.pending)
        for path, follow in self.pending.items():
            target = self._repository.blob_at(tip, path)
            there = staged[path]
            if there == target:
                self.diverged.discard(path)
                continue
            # The branch may be switched between our look and our update: then our entry belongs to
            # another branch.
            if there is not None and there == self._placed.get(path):
                yield path, target
            elif target is None or target not in follow.previous_blobs | {follow.blob}:
                continue
            elif there in follow.previous_blobs:
                yield path, target
            else:
                self.diverged.add(path)

    def _close(self) -> None:
        self._placed.clear()
        self.pending.clear()
        self._save()
        failpoint.reach("index.cleared")

    def _staged(
        self, paths: Iterable[str], listed: dict[str, dict[str, str]] | None = None
    ) -> Mapping[str, str | None]:
        """Return the index's blob for each path, or for a file in place of one of its folders.

        An entry of `add -N` counts as nothing.

        `listed`: first path component → its entries, as far as they are known; missing ones are
        added.
        """
        wanted, listed = list(paths), {} if listed is None else listed
        if tops := sorted({_top(path) for path in wanted} - listed.keys()):
            listed |= {top: {} for top in tops}
            marked = dict[str, str]()
            for entry in self._repository.staged(*tops):
                blob = CONFLICT if entry.is_conflicted else entry.oid
                listed[_top(entry.path)][entry.path] = blob
                if any(has(entry.tag) for has in _MARKS.values()):
                    marked[entry.path] = entry.tag
            self._tags = {
                path: tag for path, tag in self._tags.items() if _top(path) not in tops
            } | marked
        staged = {
            path: listed[_top(path)].get(path) or _file_above(path, listed[_top(path)])
            for path in wanted
        }
        return staged | dict.fromkeys(self._find_intent_to_add(staged))

    def _note_modes(self, modes: Mapping[str, bool]) -> None:
        executable = {path for path, is_executable in modes.items() if is_executable}
        self._executable = self._executable - modes.keys() | executable

    def _find_intent_to_add(self, staged: Mapping[str, str | None]) -> list[str]:
        """Return the paths of `add -N`: the index has the empty blob and a flag for them."""
        empty = self._repository.object_format.hash_object("blob", b"").oid
        return [path for path, oid in staged.items() if oid == empty and self._is_intended(path)]

    def _is_intended(self, path: str) -> bool:
        output = self._repository.git.run("ls-files", "--debug", "--", path).out
        flags = re.findall(rb"\tflags: ([0-9a-f]+)$", output, re.MULTILINE)
        return bool(flags) and bool(int(flags[-1], 16) & _INTENT_TO_ADD)

    def _put(
        self, entries: Mapping[str, str | None], more: Mapping[str, str] = MappingProxyType({})
    ) -> bool:
        return not entries or self._update(_UPDATE, self._lines(entries), more)

    def _update(self, command: Sequence[str], given: bytes, more: Mapping[str, str]) -> bool:
        """Let git change the index; return whether it did (False: another git holds the lock)."""
        try:
            # When git writes the index, it runs the filter of every file as young as the index
            # itself: no filter may run.
            settings = self._repository.programs_off(also_own_filters=True)
            self._repository.git.run(*command, given=given, settings=settings, more=more)
        except GitError as error:
            if "index.lock" in error.said:
                return False
            raise
        return True

    def _tags_of(self, entries: Mapping[str, str | None]) -> dict[str, str]:
        return {
            path: self._tags[path] for path, blob in entries.items() if blob and path in self._tags
        }

    def _mark(
        self, tags: Mapping[str, str], more: Mapping[str, str] = MappingProxyType({})
    ) -> bool:
        """Mark entries as their user had them; return whether that was done."""
        for option, has in _MARKS.items():
            marked = [path for path, tag in tags.items() if has(tag)]
            given = b"".join(os.fsencode(path) + b"\0" for path in marked)
            if marked and not self._update(("update-index", "-z", option, "--stdin"), given, more):
                return False
        return True

    def _lines(self, entries: Mapping[str, str | None]) -> bytes:
        return b"".join(self._entry(path, blob) for path, blob in entries.items())

    def _entry(self, path: str, blob: str | None) -> bytes:
        """Return a line for `update-index --index-info`; mode 0 takes the entry out."""
        mode = b"0"
        if blob:
            mode = b"100755" if path in self._executable else b"100644"
        return b"%s %s\t%s\0" % (
            mode,
            (blob or self._repository.object_format.zero).encode(),
            os.fsencode(path),
        )

    def _save(self) -> None:
        follows = self.pending.values()
        self._note.write(
            [
                [follow.path, follow.blob, sorted(blob or "" for blob in follow.previous_blobs)]
                for follow in follows
            ]
        )


def _file_above(path: str, present: Mapping[str, str]) -> str | None:
    """Return an index entry in place of a folder of the path; git would let ours replace it."""
    while path := path.rpartition("/")[0]:
        if path in present:
            return present[path]
    return None


def _is_same(path: str, other: str) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samefile(path, other)
    return False


def _top(path: str) -> str:
    return path.partition("/")[0]


def _link_anew(path: str, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)
    try:
        os.link(path, name)
    except OSError as error:  # also to a file of another user, such as an index that root left
        if error.errno not in NO_SECOND_NAMES:
            raise
        import shutil

        shutil.copy2(path, name)


def _read(note: Any) -> dict[str, IndexUpdate]:
    """Return the updates in a note; it only speeds up the repair, which also reads the log."""
    try:
        follows = [
            IndexUpdate(str(name), str(blob), frozenset(old or None for old in previous_blobs))
            for name, blob, previous_blobs in note
        ]
    except (ValueError, TypeError):
        return {}
    return {follow.path: follow for follow in follows}
