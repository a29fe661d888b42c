"""Everything that is known of one phase at one commit, gathered for a report that is read elsewhere
and later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.edges.git.history import LoggedCommit, log
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Exit, Finding, Reason, YoloError, errors, safe
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.services.checking.checker import Checker
from yolo_fs.services.checking.snapshots import AtCommit, BlobReader
from yolo_fs.services.history.team import Team
from yolo_fs.services.moments.artifact import harmless_lines
from yolo_fs.services.moments.timeline import Replay, Timeline, event_ms
from yolo_fs.services.progress.board import PhaseBoard, board
from yolo_fs.services.workspace.settings import Settings


@dataclass(frozen=True, slots=True)
class RecordedVersion:
    """One content of an artifact, and what the checks say of it."""

    commit: LoggedCommit
    findings: tuple[Finding, ...]
    lines: tuple[str, ...]
    """Escaped and without credentials."""

    @property
    def verdict(self) -> str:
        """In one word."""
        if errors(self.findings):
            return "refused"
        return "warned" if self.findings else "valid"


@dataclass(frozen=True, slots=True)
class RecordedArtifact:
    """One artifact and its versions, newest first."""

    place: Place
    versions: tuple[RecordedVersion, ...]


@dataclass(frozen=True, slots=True)
class PhaseRecord:
    """One phase at one commit."""

    commit: str
    phase: PhaseBoard
    timeline: Timeline
    artifacts: tuple[RecordedArtifact, ...]


def record_phase(
    repository: Repository,
    settings: Settings,
    commit: str,
    number: str,
    events: Iterable[Mapping[str, Any]],
) -> PhaseRecord:
    """Return what is known of a phase at a commit.

    `number`: number or directory name of the phase; the first that is not complete for none, or
    else the last. `events`: what the journal has; those after the commit are left out.

    Raises:
        YoloError: UNKNOWN_NAME, OBJECT_MISSING, GIT_FAILED.
    """
    team = Team(repository, settings)
    phase = _chosen(board(repository, settings, commit, team).phases, number)
    until_ms = (team.history_index.at_s(commit) + 1) * 1_000
    known = [event for event in events if event_ms(event) < until_ms]
    timeline = Replay(repository).phase(settings, str(phase.id), commit, known)
    folder = f"{PLANNING_ROOT}/phases/{phase.id}"
    artifacts = _artifacts(repository, settings, commit, folder)
    return PhaseRecord(commit, phase, timeline, artifacts)


def _chosen(phases: tuple[PhaseBoard, ...], number: str) -> PhaseBoard:
    wanted = [
        one
        for one in phases
        if number in (str(one.id), str(one.id.number), str(one.id.number).lstrip("0"))
    ]
    if number and not wanted:
        names = ", ".join(str(one.id) for one in phases) or "none yet"
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"no phase {safe(number)!r} is committed",
            hint=f"There are: {names}.",
            exit_code=Exit.USAGE,
        )
    open_ = [one for one in phases if not one.is_complete]
    chosen = wanted or open_ or list(phases[-1:])
    if not chosen:
        hint = "A report needs a phase with at least one committed artifact."
        raise YoloError(Reason.UNKNOWN_NAME, "no phase is committed yet", hint=hint)
    return chosen[0]


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
    try:
        return tuple(
            RecordedArtifact(
                place,
                tuple(_version(repository, checker, blobs, place, one) for one in versions[path]),
            )
            for path in sorted(versions)
            if (place := classify(path))
        )
    finally:
        blobs.close()


def _version(
    repository: Repository, checker: Checker, blobs: BlobReader, place: Place, logged: LoggedCommit
) -> RecordedVersion:
    snapshot = AtCommit(repository, logged.oid, blobs)
    data = snapshot.content(place.path)
    if isinstance(data, Finding):
        return RecordedVersion(logged, (data,), ())
    found = checker.check(place, data, snapshot).findings
    return RecordedVersion(logged, found, harmless_lines(data))
