"""Gathers all that is known of one phase at one commit, and prepares one artifact for a reader.

The former is for a report that is read elsewhere and later. The latter has sanitized lines, the
findings of each line, and its versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.artifacts.catalogue import in_words
from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.export import field_docs
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.checking.checker import Checker
from yolo_fs.checking.snapshots import AtCommit, BlobReader, Snapshot, WorkTree
from yolo_fs.core.credentials import redact
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, errors, hint_for_unknown, safe
from yolo_fs.evidence.facts import Work
from yolo_fs.git.history import LoggedCommit, log
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.board import PhaseBoard, board
from yolo_fs.schemas.layout import Record
from yolo_fs.snapshots.timeline import Replay, Timeline, event_ms
from yolo_fs.workspace.planning_tree import phase_spelled
from yolo_fs.workspace.settings import Settings, no_committed_phase

LONGEST_LINE = 4_000
"""Characters of one line that are shown."""
MOST_LINES = 2_000
"""Lines of one artifact that are shown."""
MOST_VERSIONS = 200
MOST_RECORDS = 200
"""Records of one artifact that are shown as such; the text has them all."""


class ShownField(NamedTuple):
    """One value of a record."""

    key: str
    meaning: str
    """The schema's description; the key itself where there is none."""
    value: str
    """Escaped, without credentials."""


class ShownRecord(NamedTuple):
    """One record as shown to a reader."""

    line: int
    kind: str
    """What the schema calls it, such as `plan task`."""
    fields: tuple[ShownField, ...]


class ArtifactText(NamedTuple):
    """One version of an artifact."""

    path: str
    kind: str
    commit: str
    """Empty for the file in the work tree."""
    size_bytes: int
    lines: tuple[str, ...]
    """Escaped, without credentials, no longer than `LONGEST_LINE`."""
    line_count: int
    findings: tuple[Finding, ...]
    versions: tuple[LoggedCommit, ...]
    """Commits that changed it, newest first."""
    records: tuple[ShownRecord, ...] = ()
    """Its records, described by their schema; empty for an artifact without records."""

    def as_json(self) -> dict[str, Any]:
        """Return the artifact as the page is given it."""
        return {
            "path": self.path,
            "kind": self.kind,
            "commit": self.commit,
            "size_bytes": self.size_bytes,
            "lines": list(self.lines),
            "line_count": self.line_count,
            "findings": [finding.as_json() for finding in self.findings],
            "records": to_json(self.records),
            "versions": [
                {"commit": version.oid, "at_s": version.at_s, "subject": version.subject}
                for version in self.versions
            ],
        }


def place_asked(path: str) -> ArtifactPath:
    """Return the place of an artifact. Nothing else in the repository is ever shown.

    Raises:
        YoloError: NOT_AN_ARTIFACT.
    """
    place = classify(path)
    if place is None or place.path != path:
        hint = "The list of artifacts has every path that can be shown."
        raise YoloError(
            Reason.NOT_AN_ARTIFACT,
            f"{safe(path)} is not an artifact",
            hint=hint,
            exit_code=Exit.USAGE,
        )
    return place


def read_artifact(
    repository: Repository, settings: Settings, path: str, commit: str, tip: str | None
) -> ArtifactText:
    """Return an artifact as of a commit; an empty `commit` means the file in the work tree.

    `tip`: the commit whose history supplies the versions.

    Raises:
        YoloError: NOT_AN_ARTIFACT; FILE_MISSING and what else keeps the file from being read.
    """
    place = place_asked(path)
    limit = settings.policy.max_file_bytes
    blobs = BlobReader(repository, limit)
    if commit:
        snapshot: Snapshot = AtCommit(repository, commit, blobs)
    else:
        snapshot = WorkTree(repository.root, limit, repository.commits_may_exist)
    data, checker = snapshot.content(path), Checker(settings)
    checked = None if isinstance(data, Finding) else checker.check(place, data, snapshot)
    wrong = checked.findings if checked else ()
    kind, versions = place.artifact.kind, tuple(versions_of(repository, path, commit or tip))
    if isinstance(data, bytes):
        lines = harmless_lines(data)
        count = data.count(b"\n") + (not data.endswith(b"\n"))
        records = tuple(_shown(place, checked.records)) if checked else ()
        return ArtifactText(path, kind, commit, len(data), lines, count, wrong, versions, records)
    if not versions and data.reason is Reason.FILE_MISSING:
        raise YoloError(data.reason, f"{safe(path)}: {data.reason.sentence}")
    return ArtifactText(path, kind, commit, 0, (), 0, (data,), versions)


def _shown(place: ArtifactPath, records: Sequence[Record]) -> Iterator[ShownRecord]:
    for (line, value), shape in place.artifact.shapes_of(records[:MOST_RECORDS]):
        docs = field_docs(shape) if shape else {}
        fields = tuple(
            ShownField(
                safe(key, 80),
                docs.get(key, "").partition(":")[0].strip(". ") or safe(key, 80),
                safe(redact(_plain(each)), LONGEST_LINE),
            )
            for key, each in value.items()
        )
        kind = " ".join(in_words(shape.__name__)) if shape else place.artifact.kind
        yield ShownRecord(line, kind, fields)


def _plain(value: Any) -> str:
    """Return a value as plain text: a list of texts without its brackets."""
    if isinstance(value, list) and value and all(isinstance(element, str) for element in value):
        return " · ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def versions_of(repository: Repository, path: str, tip: str | None) -> list[LoggedCommit]:
    """Return the commits up to `tip` that changed a path, newest first, at most `MOST_VERSIONS`."""
    if tip is None:
        return []
    try:
        return list(log(repository, tip, limit=MOST_VERSIONS, path=path))
    except YoloError:
        return []  # a torn history has no log


def harmless_lines(data: bytes) -> tuple[str, ...]:
    """Return the first lines of a text, with control characters escaped and credentials hidden."""
    text = data.decode("utf-8", "replace")
    lines = redact(text).removesuffix("\n").split("\n")
    return tuple(safe(line, LONGEST_LINE) for line in lines[:MOST_LINES])


class RecordedVersion(NamedTuple):
    """One version of an artifact, and its check results."""

    commit: LoggedCommit
    findings: tuple[Finding, ...]
    lines: tuple[str, ...]
    """Escaped and without credentials."""

    @property
    def verdict(self) -> str:
        """The check result in one word."""
        if errors(self.findings):
            return "refused"
        return "warned" if self.findings else "valid"


class RecordedArtifact(NamedTuple):
    """One artifact and its versions, newest first."""

    place: ArtifactPath
    versions: tuple[RecordedVersion, ...]


class PhaseRecord(NamedTuple):
    """One phase at one commit."""

    commit: str
    phase: PhaseBoard
    timeline: Timeline
    artifacts: tuple[RecordedArtifact, ...]
    work: tuple[Work, ...]
    """Source commits of its plans, also of a phase that is signed off."""


def record_phase(
    repository: Repository,
    settings: Settings,
    commit: str,
    spelled: str,
    events: Iterable[Mapping[str, Any]],
) -> PhaseRecord:
    """Return what is known of a phase at a commit.

    `spelled`: number, slug or directory name; empty for the first incomplete phase, or else the
    last. `events`: the journal's events; those after the commit are ignored.

    Raises:
        YoloError: as `phase_spelled`; UNKNOWN_NAME, OBJECT_MISSING, GIT_FAILED.
    """
    facts_reader = FactsReader(repository, settings)
    present = board(facts_reader, commit).phases
    if not present:
        hint = "A report needs a phase with at least one committed artifact."
        raise no_committed_phase(repository.root, hint)
    phase = _chosen(present, spelled)
    until_ms = (facts_reader.history_index.at_s(commit) + 1) * 1_000
    known = [event for event in events if event_ms(event) < until_ms]
    timeline = Replay(repository).phase(settings, str(phase.id), commit, known)
    folder = f"{PLANNING_ROOT}/phases/{phase.id}"
    artifacts = _artifacts(repository, settings, commit, folder)
    work = facts_reader.collect_work(phase.facts.committed)
    return PhaseRecord(commit, phase, timeline, artifacts, work)


def _chosen(phases: tuple[PhaseBoard, ...], spelled: str) -> PhaseBoard:
    if not spelled:
        open_ = [phase for phase in phases if not phase.is_complete]
        return (open_ or phases[-1:])[0]
    by_id = {phase.id: phase for phase in phases}
    phase_id = phase_spelled(by_id, spelled)
    if phase_id is None:
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"no phase {safe(spelled)!r} is committed",
            hint=hint_for_unknown(spelled, map(str, by_id)),
        )
    return by_id[phase_id]


def _artifacts(
    repository: Repository, settings: Settings, commit: str, folder: str
) -> tuple[RecordedArtifact, ...]:
    versions: dict[str, list[LoggedCommit]] = {}
    for logged in log(repository, commit, path=folder):
        for letter, path in logged.changes:
            if letter != "D" and path.startswith(f"{folder}/"):
                versions.setdefault(path, []).append(logged)
    blobs = BlobReader(repository, settings.policy.max_file_bytes)
    checker = Checker(settings)
    return tuple(
        RecordedArtifact(
            place,
            tuple(
                _check_version(repository, checker, blobs, place, version)
                for version in versions[path]
            ),
        )
        for path in sorted(versions)
        if (place := classify(path))
    )


def _check_version(
    repository: Repository,
    checker: Checker,
    blobs: BlobReader,
    place: ArtifactPath,
    logged: LoggedCommit,
) -> RecordedVersion:
    snapshot = AtCommit(repository, logged.oid, blobs)
    data = snapshot.content(place.path)
    if isinstance(data, Finding):
        return RecordedVersion(logged, (data,), ())
    findings = checker.check(place, data, snapshot).findings
    return RecordedVersion(logged, findings, harmless_lines(data))
