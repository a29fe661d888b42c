"""Gathers the sources of contexts: files in the work tree if they are valid, else their committed
version.

An artifact that was rejected, is being written or looks like a credential is not a source; its
committed version may be.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify, plans_named
from yolo_fs.artifacts.examine import find_secrets, of_sections, understand
from yolo_fs.artifacts.verdicts import Accepted, ArtifactPath, Committed, Held, Verdict
from yolo_fs.authority.actors import Actor
from yolo_fs.contexts.selection import ContextSource, ContextSources, Origin
from yolo_fs.core.ids import PhaseId, PlanId
from yolo_fs.core.reasons import Reason, errors
from yolo_fs.git.history import log
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.acts import plans_laid_aside
from yolo_fs.protocol.contexts import CONTEXT_BY_ROLE, CONTEXTS, FOR_ALL, SECTIONS, Feed, Reach
from yolo_fs.schemas.layout import Format
from yolo_fs.system.files import Content, FileEntry, Stamp, names_in, read, stamp_of, walk
from yolo_fs.system.readers import FORMAT_BY_SUFFIX, READERS
from yolo_fs.workspace.settings import Settings

_NAMED = [section.of for section in SECTIONS if section.feed not in (Feed.FILES, Feed.NAMES)]
_FED = frozenset(itertools.chain.from_iterable(_NAMED))
"""Kinds of artifacts and names of other files that feed some section."""
_ACROSS = [section.of for section in SECTIONS if section.reach in (Reach.EARLIER, Reach.HANDED)]
_OF_OTHER_PHASES = frozenset(itertools.chain.from_iterable(_ACROSS))
_SECTIONS = [(row.role, section) for row in CONTEXTS for section in (*row.sections, *FOR_ALL)]
_SPELLED = [(role, name) for role, section in _SECTIONS for name in section.of]
_OUTSIDE = tuple(
    name[1:].replace("{role}", role.value) for role, name in _SPELLED if name.startswith("/")
)
"""Files outside of the planning tree that some section refers to."""
_TEXTS = (Format.TEXT, Format.TOON)


class _Known(NamedTuple):
    source: ContextSource | None
    """None: the file in the work tree is not a source."""
    stamp: Stamp
    read_at_ns: int


class SourceSnapshot(NamedTuple):
    """The state of all possible sources of contexts, of any phase."""

    commit: str
    """Empty on a branch without commits."""
    sources: tuple[ContextSource, ...]
    stamps: Mapping[str, Stamp]
    """Path of each existing file → stamp, which changes with the file."""
    done: Mapping[PhaseId, frozenset[PlanId]]
    """Plans that are done, by phase."""
    at_ns: int
    """Wall clock, to be compared with the times of files."""

    def is_racy(self, stamps: Iterable[Stamp]) -> bool:
        """Return whether a file may have changed since without a change of its stamp (F18)."""
        return any(stamp.is_racy(self.at_ns) for stamp in stamps)


class Gatherer:
    """Gathers for one work tree, and caches what it has read."""

    def __init__(self, repository: Repository, settings: Settings, facts_reader: FactsReader):
        self._repository = repository
        self._settings = settings
        self._facts_reader = facts_reader
        self._on_disk: dict[str, _Known] = {}
        self._committed: dict[tuple[str, str], ContextSource | None] = {}

    def look(self, commit: str | None, verdicts: Mapping[str, Verdict]) -> SourceSnapshot:
        """Return all possible sources of contexts, from a commit and the work tree.

        `verdicts`: path → verdict of each candidate; committed ones may be left out.
        """
        at_ns, entries = time.time_ns(), {entry.path: entry for entry in self.files()}
        stamps = {path: entry.stamp for path, entry in entries.items()}
        return SourceSnapshot(
            commit or "",
            tuple(self._sources(commit, entries, verdicts)),
            stamps,
            self._find_done_plans(commit),
            at_ns,
        )

    def gather(
        self, look: SourceSnapshot, phase: PhaseId, actor: Actor, plan: PlanId | None = None
    ) -> ContextSources:
        """Return the possible sources of an actor's context of a phase, before isolation."""
        row = CONTEXT_BY_ROLE.get(actor.role)
        wants_commits = row and any(section.feed is Feed.COMMITS for section in row.sections)
        return ContextSources(
            phase=phase,
            actor=actor,
            sources=tuple(source for source in look.sources if _is_near(source, phase)),
            there=frozenset(look.stamps),
            done=look.done.get(phase, frozenset()),
            plan=plan,
            commits=self._last(look.commit) if wants_commits else (),
        )

    def files(self) -> Iterator[FileEntry]:
        """Yield every regular file that may feed a context or be referred to."""
        root = self._repository.root
        yield from (
            entry
            for entry in walk(root, PLANNING_ROOT)
            if entry.refused is None and entry.path.isprintable()
        )
        for path in dict.fromkeys(_OUTSIDE):
            folder, _, name = path.rpartition("/")
            yield from (entry for entry in _entry(root, folder, name) if entry.refused is None)

    def line_at(self, origin: Origin) -> str | None:
        """Return the line of an origin, from the work tree or its commit; None if it is gone.

        For a whole file it is its path, for a commit its name and subject.
        """
        if not origin.path:
            commit = next(log(self._repository, origin.commit, limit=1, with_changes=False), None)
            return f"{commit.oid} {commit.subject}" if commit else None
        data = self._bytes(origin)
        if data is None or not origin.line:
            return None if data is None else origin.path
        lines = data.decode("utf-8", "replace").split("\n")
        return lines[origin.line - 1] if origin.line <= len(lines) else None

    def _bytes(self, origin: Origin) -> bytes | None:
        if origin.commit:
            blob = self._repository.blob_at(origin.commit, origin.path)
            limit = self._settings.policy.max_file_bytes
            git_object = self._repository.objects.read(blob, limit) if blob else None
            return git_object.body if git_object else None
        content = read(self._repository.root, origin.path, self._settings.policy.max_file_bytes)
        return content.data if isinstance(content, Content) else None

    def _sources(
        self, commit: str | None, entries: Mapping[str, FileEntry], verdicts: Mapping[str, Verdict]
    ) -> Iterator[ContextSource]:
        committed = self._repository.files_at(commit, PLANNING_ROOT)
        self._committed = {
            (path, blob): source
            for (path, blob), source in self._committed.items()
            if committed.get(path) == blob
        }
        self._on_disk = {path: known for path, known in self._on_disk.items() if path in entries}
        for path in sorted({*entries, *committed}):
            if not _feeds(path):
                continue
            is_good = _is_usable_on_disk(path, verdicts.get(path), is_committed=path in committed)
            source = self._read(entries[path]) if path in entries and is_good else None
            if source is None and commit and path in committed:
                source = self._at(path, committed[path], commit)
            if source:
                yield source

    def _read(self, entry: FileEntry) -> ContextSource | None:
        known = self._on_disk.get(entry.path)
        now = time.time_ns()
        if known is None or known.stamp != entry.stamp or known.stamp.is_racy(known.read_at_ns):
            self._on_disk[entry.path] = _Known(self._read_from_disk(entry.path), entry.stamp, now)
        return self._on_disk[entry.path].source

    def _read_from_disk(self, path: str) -> ContextSource | None:
        content = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if not isinstance(content, Content) or content.being_written:
            return None
        return self._understood(path, content.data)

    def _at(self, path: str, blob: str, commit: str) -> ContextSource | None:
        if (path, blob) not in self._committed:
            limit = self._settings.policy.max_file_bytes
            git_object = self._repository.objects.read(blob, limit)
            self._committed[path, blob] = (
                self._understood(path, git_object.body) if git_object else None
            )
        source = self._committed[path, blob]
        return replace(source, commit=commit) if source else None

    def _understood(self, path: str, data: bytes) -> ContextSource | None:
        """Return the source that valid bytes make; None if they violate the protocol."""
        place = classify(path)
        if place is None and find_secrets(
            data, path, frozenset(self._settings.policy.secrets_allowed)
        ):
            return None  # an artifact has its verdict
        format_ = place.artifact.format if place else FORMAT_BY_SUFFIX[path.rpartition(".")[2]]
        reading = READERS[format_](data, path, self._settings.limits)
        findings = reading.findings
        if place:
            findings = of_sections(place, findings, reading.records)
        wrong = [
            finding
            for finding in errors(findings)
            if place or finding.reason is not Reason.UNTERMINATED
        ]
        if wrong:
            return None
        records = reading.records
        if place:
            understood = understand(place, records, self._settings.mode, self._plans_beside(place))
            if not understood.is_sound:
                return None
            records = understood.records
        has_text = place.artifact.format in _TEXTS if place else not path.endswith(".jsonl")
        return ContextSource(path, records, tuple(data.decode().split("\n")) if has_text else ())

    def _plans_beside(self, place: ArtifactPath) -> frozenset[str]:
        if not place.artifact.needs_plans:
            return frozenset()
        return plans_named(names_in(os.path.join(self._repository.root, place.folder)))

    def _find_done_plans(self, commit: str | None) -> Mapping[PhaseId, frozenset[PlanId]]:
        """Return the plans that nobody works on any more, by phase."""
        return {phase.id: plans_laid_aside(phase) for phase in self._facts_reader.phases(commit)}

    def _last(self, commit: str) -> tuple[tuple[str, str], ...]:
        return (
            tuple(
                (log_entry.oid, log_entry.subject)
                for log_entry in log(self._repository, commit, limit=10, with_changes=False)
            )
            if commit
            else ()
        )


def _feeds(path: str) -> bool:
    place = classify(path)
    if place:
        return place.artifact.kind in _FED
    below = path.removeprefix(f"{PLANNING_ROOT}/")
    is_named = below in _FED or fnmatchcase(below, "departments/*.toon")
    return is_named or fnmatchcase(below, "phases/*/*department-result*.jsonl")


def _is_usable_on_disk(path: str, verdict: Verdict | None, *, is_committed: bool) -> bool:
    """Return whether a file counts: committed, about to be, or held for another's fault."""
    if classify(path) is None:
        return True
    match verdict:
        case Committed() | Accepted():
            return True
        case Held(reason):
            return reason is not Reason.SECRET
        case None:
            return is_committed
    return False


def _is_near(source: ContextSource, phase: PhaseId) -> bool:
    """Return whether a source is of the phase or of none, or one of any phase that others are
    given.
    """
    of = source.place.phase if source.place else None
    return of in (None, phase) or source.kind in _OF_OTHER_PHASES


def _entry(root: str, folder: str, name: str) -> Iterator[FileEntry]:
    path = f"{folder}/{name}" if folder else name
    stamp = stamp_of(root, path)
    if isinstance(stamp, Stamp):
        yield FileEntry(path, stamp)
