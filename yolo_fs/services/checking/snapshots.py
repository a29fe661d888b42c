"""Examines the bytes of an artifact as the daemon does, in any version of the tree: on disk, staged, committed.

Nothing waits here and nothing is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from yolo_fs.edges.files import read
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.git.runner import Conversation
from yolo_fs.edges.git.trees import Tree
from yolo_fs.edges.lines import Limits, read_lines
from yolo_fs.edges.readers import READERS
from yolo_fs.reasons import Finding, Reason
from yolo_fs.rules.artifacts.checks import commits_mentioned, plan_facts
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.examine import examine
from yolo_fs.rules.artifacts.table import Check
from yolo_fs.rules.artifacts.verdicts import Place, PlanFacts, Surroundings
from yolo_fs.schemas.base import Mode, Record

_PLAN_ENDING = ".plan.jsonl"
CommitsExist = Callable[[Sequence[str]], Mapping[str, bool]]


class Snapshot(Protocol):
    """One version of a tree."""

    def names(self, folder: str) -> Iterable[str]:
        """Return the names of the files in a folder."""

    def content(self, path: str) -> bytes | Finding:
        """Return the bytes of a file, or what stands in its place."""

    def key(self, path: str) -> Hashable | None:
        """Return what changes whenever the content does, or None when that is not known cheaply."""


@dataclass(frozen=True, slots=True)
class WorkTree:
    """The files on disk."""

    root: str
    limit_bytes: int

    def names(self, folder: str) -> Iterable[str]:
        try:
            return sorted(os.listdir(os.path.join(self.root, folder)))
        except OSError:
            return ()

    def content(self, path: str) -> bytes | Finding:
        found = read(self.root, path, self.limit_bytes)
        return found if isinstance(found, Finding) else found.data

    def key(self, path: str) -> None:
        return None


class Blobs:
    """Reads blobs, none larger than the limit."""

    def __init__(self, repository: Repository, limit_bytes: int):
        self._repository = repository
        self._limit_bytes = limit_bytes
        self._sizes: Conversation | None = None

    def read(self, oid: str, path: str) -> bytes | Finding:
        """Return the bytes of a blob, or why they cannot be had; `path` is what the finding names."""
        size = self._size_bytes(oid)
        if size > self._limit_bytes:
            message = f"{size} bytes; the limit is {self._limit_bytes}"
            expected = "a file within the limit"
            return Finding(Reason.FILE_TOO_LARGE, path, 0, "", message, expected, "split it")
        found = self._repository.objects.read(oid) if size >= 0 else None
        if found is None or found.kind != "blob":
            return Finding(
                Reason.OBJECT_MISSING,
                path,
                message=f"blob {oid} cannot be read",
                hint="see 'yolo-fs doctor'",
            )
        return found.body

    def close(self) -> None:
        """End the helper process."""
        if self._sizes is not None:
            self._sizes.close()
            self._sizes = None

    def _size_bytes(self, oid: str) -> int:
        """Return the size of an object, -1 when it is missing."""
        if self._sizes is None:
            self._sizes = self._repository.git.converse("cat-file", "--batch-check=%(objectsize)")
        self._sizes.ask(oid.encode() + b"\n")
        answer = self._sizes.line()
        return int(answer) if answer.isdigit() else -1


class Staged:
    """What the index has."""

    def __init__(self, blobs: Blobs, entries: Mapping[str, str]):
        """`entries`: path → blob id."""
        self._blobs = blobs
        self._entries = entries
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


class AtCommit:
    """What a commit has. A folder is asked for by commit and path at once: git walks down faster than we do."""

    def __init__(self, repository: Repository, commit: str, blobs: Blobs):
        self._repository = repository
        self._commit = commit
        self._blobs = blobs
        self._folders: dict[str, Tree] = {}

    def names(self, folder: str) -> Iterable[str]:
        return (os.fsdecode(key) for key in self._tree(folder).keys if not key.endswith(b"/"))

    def content(self, path: str) -> bytes | Finding:
        oid = self.key(path)
        if oid is None:
            message = "the commit has no regular file there"
            return Finding(Reason.NOT_REGULAR, path, 0, "", message, "a regular file")
        return self._blobs.read(oid, path)

    def key(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        entry = self._tree(folder).get(os.fsencode(name))
        return entry.oid if entry and entry.mode.startswith("100") else None

    def _tree(self, folder: str) -> Tree:
        if folder not in self._folders:
            objects = self._repository.objects
            found = objects.read(f"{self._commit}:{folder}")
            is_tree = found is not None and found.kind == "tree"
            self._folders[folder] = (
                Tree.parse(found.body, objects.object_format.size)
                if found and is_tree
                else Tree((), ())
            )
        return self._folders[folder]


@dataclass(frozen=True, slots=True)
class Checked:
    """What an artifact says, and everything that is wrong with it."""

    records: tuple[Record, ...]
    findings: tuple[Finding, ...]


class Examiner:
    """Examines artifacts of one repository, or of none."""

    def __init__(self, limits: Limits, mode: Mode, commits_exist: CommitsExist):
        self._limits = limits
        self._mode = mode
        self._commits_exist = commits_exist
        self._plans: dict[Hashable, PlanFacts | None] = {}
        self._places: dict[str, Place | None] = {}

    def examine(self, place: Place, data: bytes, snapshot: Snapshot) -> Checked:
        """Read the bytes strictly, then check shapes and cross-references."""
        reading = READERS[place.artifact.format](data, place.path, self._limits)
        if not reading.records:
            return Checked((), reading.findings)
        around = self._surroundings(place, reading.records, snapshot)
        findings = examine(place, reading.records, around, self._mode)
        return Checked(reading.records, (*reading.findings, *findings))

    def _surroundings(
        self, place: Place, records: Sequence[Record], snapshot: Snapshot
    ) -> Surroundings:
        mentioned = commits_mentioned(place, records)
        commits = self._commits_exist(mentioned) if mentioned else {}
        needs_plans = Check.WAVES in place.artifact.checks and place.plan is not None
        return Surroundings(self._plans_beside(place, snapshot) if needs_plans else {}, commits)

    def _plans_beside(self, place: Place, snapshot: Snapshot) -> dict[str, PlanFacts]:
        """Return the facts of the other plans of the same phase."""
        names = [
            name
            for name in snapshot.names(place.folder)
            if name != place.name and name.endswith(_PLAN_ENDING)
        ]
        others = [other for name in names if (other := self._place_of(f"{place.folder}/{name}"))]
        found = {str(other.plan): self._plan_facts(other.path, snapshot) for other in others}
        return {name: facts for name, facts in found.items() if facts}

    def _place_of(self, path: str) -> Place | None:
        if path not in self._places:
            self._places[path] = classify(path)
        return self._places[path]

    def _plan_facts(self, path: str, snapshot: Snapshot) -> PlanFacts | None:
        key = snapshot.key(path)
        if key is not None and key in self._plans:
            return self._plans[key]
        facts = self._read_plan_facts(path, snapshot)
        if key is not None:
            self._plans[key] = facts
        return facts

    def _read_plan_facts(self, path: str, snapshot: Snapshot) -> PlanFacts | None:
        data = snapshot.content(path)
        if isinstance(data, Finding):
            return None
        records = read_lines(data[: data.find(b"\n") + 1], path, self._limits).records
        return plan_facts(records[0].value) if records else None
