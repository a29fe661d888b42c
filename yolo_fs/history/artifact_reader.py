"""Reads the artifacts of commits, and caches what it has parsed: a blob never changes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.artifacts.classify import classify, plans_named
from yolo_fs.artifacts.examine import of_sections, understand
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.reasons import errors
from yolo_fs.evidence.facts import CommittedArtifact
from yolo_fs.git.object_format import GitObject
from yolo_fs.git.repository import Repository
from yolo_fs.history.index import HistoryIndex, PathChange
from yolo_fs.system.readers import READERS
from yolo_fs.system.store import code_stamp
from yolo_fs.workspace.settings import Settings

_NONE = (None,)
_NO_PLANS: frozenset[str] = frozenset()


class ArtifactReader:
    """Parses each content of an artifact once, also across processes."""

    def __init__(self, repository: Repository, settings: Settings, index: HistoryIndex):
        self._repository = repository
        self._settings = settings
        self._index = index
        self._committed: dict[str, tuple[tuple[str, frozenset[str]], CommittedArtifact]] = {}
        """Path → blob and relevant plans as of the last read, and the parsed artifact."""
        self._unkept: set[str] = set()
        """Paths whose rows for the next process are outdated."""
        self.blobs: Mapping[str, str] = {}
        """Path → blob of the commit that was read last."""

    def take_over(self, kept: ArtifactReader) -> None:
        """Start with the data of another reader, and share it."""
        self._committed, self.blobs = kept._committed, kept.blobs

    def keep(self) -> None:
        """Store the parsed artifacts for the next process."""
        rows = []
        for path in self._unkept:
            (blob, plans), committed = self._committed[path]
            lines = json.dumps(committed.lines, separators=(",", ":"))
            rows.append(
                (os.fsencode(path), self._make_cache_key(blob, plans), committed.valid, lines)
            )
        if rows and self._index.keep_artifacts(rows, map(os.fsencode, self._committed)):
            self._unkept = set()

    def read(
        self, files: Mapping[str, str], find_giver: Callable[[ArtifactPath, str], PathChange]
    ) -> Iterator[CommittedArtifact]:
        """Yield each parsed artifact of a commit. Only unknown contents are read.

        Args:
            files: path → blob.
            find_giver: returns the commit that gave a file its content.
        """
        self.blobs = files
        places = {path: place for path in files if (place := classify(path))}
        wanted = {
            path: (files[path], self._plans_beside(known_place))
            for path, known_place in places.items()
        }
        if not self._committed:
            self._recall(wanted)
        unread = [
            path
            for path, new_basis in wanted.items()
            if self._committed.get(path, _NONE)[0] != new_basis
        ]
        self._unkept.update(unread)
        blobs = [files[path] for path in unread]
        objects = self._repository.objects.read_many(blobs, self._settings.limits.max_file_bytes)
        for path, git_object in zip(unread, objects, strict=True):
            plans = wanted[path][1]
            self._committed[path] = wanted[path], self._parse(places[path], git_object, plans)
        for path in places:
            basis, committed = self._committed[path]
            blob = files[path]
            last = find_giver(committed.place, blob)
            if (last.oid, last.position) != (committed.commit, committed.position):
                committed = committed._replace(
                    commit=last.oid, at_s=last.at_s, position=last.position
                )
                self._committed[path] = basis, committed
            yield committed

    def lines_at(self, path: str, blob: str) -> tuple[Mapping[str, Any], ...]:
        """Return the records of an artifact as a commit has it; none when it is not valid."""
        return self.lines_of(path, [blob])[blob]

    def lines_of(self, path: str, blobs: Sequence[str]) -> dict[str, tuple[Mapping[str, Any], ...]]:
        """Return the records of an artifact for each of its blobs; none when it is not valid."""
        place = classify(path)
        if place is None:
            return dict.fromkeys(blobs, ())
        basis, now = self._committed.get(path, (None, None))
        plans = self._plans_beside(place)
        committed = {blob: now for blob in blobs if now and basis == (blob, plans)}
        unread = [blob for blob in dict.fromkeys(blobs) if blob not in committed]
        objects = self._repository.objects.read_many(unread, self._settings.limits.max_file_bytes)
        for blob, git_object in zip(unread, objects, strict=True):
            committed[blob] = self._parse(place, git_object, plans)
        return {
            blob: artifact.lines if artifact.valid else () for blob, artifact in committed.items()
        }

    def _recall(self, wanted: Mapping[str, tuple[str, frozenset[str]]]) -> None:
        """Load the parsed artifacts that an earlier process has stored for these contents."""
        for name, basis, valid, lines in self._index.kept_artifacts():
            path = os.fsdecode(name)
            place = classify(path)
            if place and path in wanted and basis == self._make_cache_key(*wanted[path]):
                committed = CommittedArtifact(place, tuple(json.loads(lines)), valid=bool(valid))
                self._committed[path] = wanted[path], committed

    def _make_cache_key(self, blob: str, plans: frozenset[str]) -> str:
        """Return the cache key of an artifact: everything that changes how it is read."""
        mode, limits = self._settings.mode, self._settings.limits
        return f"{code_stamp()} {blob} {sorted(plans)} {mode.legacy} {limits}"

    def _plans_beside(self, place: ArtifactPath) -> frozenset[str]:
        """Return the ids of the plans in the folder of an artifact whose form depends on them."""
        if not place.artifact.needs_plans:
            return _NO_PLANS
        folder = f"{place.folder}/"
        return plans_named(
            path.removeprefix(folder) for path in self.blobs if path.startswith(folder)
        )

    def _parse(
        self, place: ArtifactPath, git_object: GitObject | None, plans: frozenset[str]
    ) -> CommittedArtifact:
        if git_object is None:
            return CommittedArtifact(place, (), valid=False)
        limits = self._settings.limits._replace(stops_at_errors=True)
        reading = READERS[place.artifact.format](git_object.body, place.path, limits)
        mode = self._settings.mode._replace(strict=False)  # what is committed was good enough then
        understood = understand(place, reading.records, mode, plans)
        findings = of_sections(place, reading.findings, reading.records)
        is_valid = not errors(findings) and understood.is_sound and not place.is_of_another_phase
        return CommittedArtifact(
            place, tuple(record.value for record in understood.records), valid=is_valid
        )
