"""Finds the versions of an artifact, which commit gave each, and what was taken back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.evidence.facts import NOWHERE, Version
from yolo_fs.evidence.judged import JUDGED_BY
from yolo_fs.git.history import changes_in
from yolo_fs.git.repository import Repository
from yolo_fs.history.artifact_reader import ArtifactReader
from yolo_fs.history.derived import DerivedValues
from yolo_fs.history.index import NO_CHANGE, HistoryIndex, PathChange
from yolo_fs.loops.facts import WITH_ROUNDS, of_former
from yolo_fs.system.files import Stamp, stamp_at

_MADE_FEW = 50
"""Up to so many past contents are looked up one by one in the trees of their commits."""
_SIGNING = ("state", "execution-state")
"""Kinds that call a phase complete."""
_MADE_AT_ONCE = 2000
"""Commits in one request to git, which takes 0.1 s."""
Stamps = tuple[Stamp | None, ...]
"""Where contents that this clone lacks would be."""


@dataclass(frozen=True, slots=True)
class _Past:
    """The versions of an artifact that have been read."""

    mark: tuple[str, int, object]
    """Value of `HistoryIndex.mark_of`: the last change, how many there are, and the reading."""
    last: PathChange
    blob: str
    versions: tuple[Version, ...]
    unread: tuple[Version, ...] = ()
    """The versions whose contents a partial clone lacks, without a line."""
    lacking: str = ""
    """One of these contents."""
    stamps: Stamps = ()
    """Where it would be, as of the read."""


class VersionReader:
    """Reads the past of artifacts; what it has read is extended, not read again."""

    def __init__(
        self,
        repository: Repository,
        index: HistoryIndex,
        artifacts: ArtifactReader,
        derived: DerivedValues,
    ):
        self._repository = repository
        self._index = index
        self._artifacts = artifacts
        self._derived = derived
        self._pasts: dict[str, _Past] = {}
        self._stamps: Stamps = ()
        """Where contents that are lacking would be, as of the last question."""
        self._made: dict[tuple[str, str], str | None] = {}
        """Commit and path → the resulting blob, where many were requested."""
        self._made_asked = 0
        self._givers: dict[str, tuple[object, PathChange]] = {}
        """Verdict → its last change and its content, and the commit that gave it that content."""

    def take_over(self, kept: VersionReader) -> None:
        """Start with the data of another reader, and share it."""
        self._pasts, self._stamps, self._givers = kept._pasts, kept._stamps, kept._givers

    def begin(self, stamps: Stamps) -> None:
        """Begin with another commit."""
        self._stamps = stamps
        self._made, self._made_asked = {}, 0

    def stamp_lacking(self) -> Stamps:
        """Return what changes once contents that this clone lacked have come."""
        lacking = [past.lacking for past in self._pasts.values() if past.lacking]
        loose = (f"{blob[:2]}/{blob[2:]}" for blob in lacking)
        folder = f"{self._repository.common_dir}/objects"
        return tuple(stamp_at(f"{folder}/{name}") for name in ("pack", *loose) if lacking)

    def versions_of(self, path: str) -> Sequence[Version]:
        """Return the versions of an artifact with rounds, oldest first.

        They reach up to the commit that was requested last. A merge that only brings a version in
        from elsewhere makes none.
        """
        known = self._pasts.get(path)
        if known and known.lacking and known.stamps != self._stamps:
            known = None  # what was lacking may have come
        if known is None or known.mark != self._index.mark_of(path):
            known = self._pasts[path] = self._read_past(path, known)
        return known.versions

    def unread_of(self, path: str) -> tuple[Version, ...]:
        """Return the versions whose contents this partial clone lacks, as of the last read."""
        return self._pasts[path].unread

    def lines_ever(self, path: str) -> list[tuple[Mapping[str, Any], ...]]:
        """Return the records of each version of an artifact, also on the way of a merge."""
        made = self._blobs_after(self._list_changes(path)).values()
        blobs = [blob for blob in made if blob]
        return list(self._artifacts.lines_of(path, blobs).values())

    def first_position(self, path: str) -> int:
        """Return the place of the commit that made an artifact, also at another path."""
        return next((change.position for change in self._list_changes(path)), NOWHERE)

    def find_giver(self, place: ArtifactPath, blob: str) -> PathChange:
        """Return the commit that gave a file its content. A verdict that comes back as it was, by a
        revert, a merge or a move, is as old as it was: nobody has judged again. So is what calls a
        phase complete, by a revert: nobody has signed again.
        """
        path, last = place.path, self._index.last_change(place.path)
        kind = place.artifact.kind
        is_verdict = kind in JUDGED_BY or (kind in _SIGNING and last.is_restoring)
        if not is_verdict and not last.former and self.has_brought(last):
            return last
        basis = self._index.mark_of(path), blob
        known = self._givers.get(path)
        if known is None or known[0] != basis:
            giver = self._find_latest_giver(path, blob, counts_reverts=not is_verdict)
            known = self._givers[path] = basis, giver or last
        return known[1]

    def read_taken_back(self, path: str) -> tuple[Mapping[str, Any], ...]:
        """Return what an artifact said last and says no more, though nobody has written it anew
        since; nothing where it still says it.
        """
        if not self._index.last_change(path).oid:
            return ()
        blob = self._artifacts.blobs.get(path)
        basis = self._index.mark_of(path), blob
        blob_taken_back = self._derived.get(
            basis, f"{path} taken back", lambda: self._find_taken_back(path, blob)
        )
        return (
            self._artifacts.lines_of(path, [blob_taken_back])[blob_taken_back]
            if blob_taken_back
            else ()
        )

    def _find_taken_back(self, path: str, blob: str | None) -> str:
        changes = self._list_changes(path)
        if blob and all(self.has_brought(change) and not change.is_restoring for change in changes):
            return ""
        made = self._blobs_after(changes)
        giver = self._find_latest_giver(path, blob, counts_reverts=False) if blob else None
        written = [
            change
            for change in self._without_copies(changes, made)
            if made[change.oid]
            and not change.is_restoring
            and change.position > (giver or NO_CHANGE).position
        ]
        latest = made[max(written, key=_position_of).oid] if written else None
        return latest if latest and latest != blob else ""

    def _find_latest_giver(
        self, path: str, blob: str, *, counts_reverts: bool
    ) -> PathChange | None:
        """Return the latest commit that gave a path its content; a merge where no other commit did,
        and none of what a merge brings that the branch had before.
        """
        is_moved = bool(self._index.last_change(path).former)
        if self._index.mark_of(path)[1] < 2 and not is_moved:
            return None
        given = [
            change
            for change in self._list_changes(path)
            if (counts_reverts or not change.is_restoring) and self.has_brought(change)
        ]
        made = self._blobs_after(given)
        writing = given if counts_reverts else self._without_repeats(given, made)
        same = [change for change in writing if made[change.oid] == blob]
        written = [change for change in same if len(self._repository.parents(change.oid)) < 2]
        return max(written or same, key=_position_of, default=None)

    def _without_repeats(
        self, changes: Iterable[PathChange], blobs: Mapping[str, str | None]
    ) -> Iterator[PathChange]:
        """Yield the changes of a path, but for those by which it has again the content that it had
        last on their line: it was removed and put back, or only its mode changed.
        """
        last = NO_CHANGE
        for change in changes:
            blob = blobs[change.oid]
            is_same = blob is not None and blob == blobs.get(last.oid)
            if not (is_same and self._repository.is_ancestor(last.oid, change.oid)):
                last = change if blob else last
                yield change

    def _without_copies(
        self, changes: Iterable[PathChange], blobs: Mapping[str, str | None]
    ) -> Iterator[PathChange]:
        """Yield the changes of a path, but for those on the way of a merge to what the branch had
        before from elsewhere, such as by a squash. What was taken back on the way is not left out.
        """
        on_line = {change: self.has_brought(change) for change in changes}
        joined = self._index.joined_at
        last = {
            joined(change.position): change.oid for change, is_own in on_line.items() if not is_own
        }
        own = [change.oid for change, is_own in on_line.items() if is_own]
        copies = set()
        for position, oid in last.items():
            same = [each for each in own if blobs.get(each) == blobs.get(oid) is not None]
            if same and not any(self._repository.is_ancestor(each, oid) for each in same):
                copies.add(position)
        for change, is_own in on_line.items():
            if is_own or joined(change.position) not in copies:
                yield change

    def _read_past(self, path: str, known: _Past | None) -> _Past:
        history = self._index
        mark = history.mark_of(path)
        changes = history.past_of(path, known.last) if known else []
        changes.sort(key=_position_of)
        # Everything read comes before everything new, and is still there, at its place.
        if (
            known is None
            or known.mark[1] + len(changes) != mark[1]
            or known.mark[2] != mark[2]
            or not all(self.has_brought(change) and not change.former for change in changes)
        ):
            changes, known = self._list_changes(path), None
        blob, fresh = known.blob if known else "", []
        # If only one commit has changed it, its present content is what that commit made.
        is_only = [change.oid for change in changes] == [mark[0]] and path in self._artifacts.blobs
        blobs = {mark[0]: self._artifacts.blobs[path]} if is_only else self._blobs_after(changes)
        for change in self._without_copies(changes, blobs):
            made = blobs.get(change.oid)
            if made and made != blob:
                fresh.append((change, made))
            blob = made or blob
        place = classify(path)
        kind = place.artifact.kind if place else ""
        lines = self._artifacts.lines_of(path, [made for _, made in fresh])
        versions = tuple(
            Version(
                of_former(kind, lines[made]),
                path_change.at_s,
                path_change.position,
                path_change.position,
                made,
                path_change.is_restoring,
            )
            for path_change, made in fresh
            if lines[made]
        )
        lacking = [
            (change, made) for change, made in fresh if not lines[made] and self._lacks(made)
        ]
        unread = [
            Version((), change.at_s, change.position, change.position) for change, _ in lacking
        ]
        return _Past(
            mark,
            history.last_change(path),
            blob,
            (*(known.versions if known else ()), *versions),
            (*(known.unread if known else ()), *unread),
            next((made for _, made in lacking), known.lacking if known else ""),
            self._stamps,
        )

    def _list_changes(self, path: str, before: PathChange | None = None) -> list[PathChange]:
        """Return the commits that changed an artifact, oldest first, also at the paths that it had
        before. `before`: only earlier ones than this. A move with the same bytes changes nothing.
        """
        every = sorted(self._index.past_of(path), key=_position_of)
        changes = [
            change for change in every if before is None or change.position < before.position
        ]
        moves = [at for at, change in enumerate(changes) if change.former]
        if not moves:
            return changes
        at = moves[-1]
        moved = changes[at]
        parents = self._repository.parents(moved.oid)[:1]
        was = [self._repository.blob_at(parent, moved.former) for parent in parents]
        is_same = was == [self._repository.blob_at(moved.oid, path)]
        return [*self._list_changes(moved.former, moved), *changes[at + is_same :]]

    def _blobs_after(self, changes: Sequence[PathChange]) -> dict[str, str | None]:
        """Return the blob of an artifact after each of these commits.

        After a few, git is asked at once for all that are not read yet: reading trees costs more.
        """
        unread = [change for change in changes if (change.oid, change.path) not in self._made]
        self._made_asked += len(unread)
        if unread and self._made_asked > _MADE_FEW:
            self._read_made(unread)
        made: dict[str, str | None] = {}
        for change in changes:
            key = change.oid, change.path
            made[change.oid] = (
                self._made[key] if key in self._made else self._repository.blob_at(*key)
            )
        return made

    def _read_made(self, changes: Sequence[PathChange]) -> None:
        wanted: dict[str, list[PathChange]] = {}
        for change in changes:
            wanted.setdefault(change.path, []).append(change)
        for other in self._artifacts.blobs:
            place = classify(other)
            if other not in wanted and place and place.artifact.kind in WITH_ROUNDS:
                known = self._pasts.get(other)
                after = known.last if known else NO_CHANGE
                later = self._index.past_of(other, after)
                wanted[other] = [
                    change for change in later if (change.oid, other) not in self._made
                ]
        oids = list(dict.fromkeys(change.oid for some in wanted.values() for change in some))
        for begin in range(0, len(oids), _MADE_AT_ONCE):
            some = oids[begin : begin + _MADE_AT_ONCE]
            for each in changes_in(self._repository, some, list(wanted)):
                self._made[each.commit, each.path] = each.blob

    def has_brought(self, change: PathChange) -> bool:
        """Return whether the branch changed in a path where a change of it came to it. A clone
        without trees does not know.
        """
        return self._index.lacks_trees or self._index.has_brought(change.position, {change.path})

    @cached_property
    def _is_partial(self) -> bool:
        """Whether contents may be missing; asked once, since git may have to be run for it."""
        return self._repository.is_partial

    def _lacks(self, blob: str) -> bool:
        return self._is_partial and self._repository.objects.read(blob) is None


def _position_of(change: PathChange) -> int:
    return change.position
