"""Answers a page's queries about one repository, from several threads.

History and the handoffs under way are computed once and shared.

Every answer comes from the services that the commands use. Nothing is changed.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.checking.envelopes import ProductHandoffs, StoredSession
from yolo_fs.checking.snapshots import AtCommit, BlobReader, Snapshot, WorkTree
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.handoffs.lifecycle import HandoffLifecycle, StageTime
from yolo_fs.handoffs.session_progress import standing
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.drift import lives_at
from yolo_fs.snapshots.record import ArtifactText, read_artifact
from yolo_fs.snapshots.snapshot import (
    PastSnapshot,
    PresentSnapshot,
    StatusObserver,
    find_commit,
    snapshot_at,
)
from yolo_fs.snapshots.timeline import Replay, Timeline
from yolo_fs.workspace.settings import load

LATEST_SESSIONS = 20


def handoffs_at(facts_reader: FactsReader, commit: str) -> dict[str, Any]:
    """Return the handoffs' life cycles and the product workflow's latest sessions at a commit.

    The handoffs are those that were under way then. An empty `commit` means the present, including
    what exists only on disk. For the past, a stage that only a file on disk proves is dated by that
    file's own time.
    """
    repository, settings = facts_reader.repository, facts_reader.settings
    root, limit = repository.root, settings.policy.max_file_bytes
    at = commit or repository.head().tip
    phases = facts_reader.phases(at)
    if at:
        facts_reader.history_index.read_up_to(at)
    until_s = facts_reader.history_index.at_s(commit) if commit else None
    lives = lives_at(phases, facts_reader)
    blobs = BlobReader(repository, limit)
    files: Snapshot = AtCommit(repository, commit, blobs) if commit else WorkTree(root, limit)
    product = ProductHandoffs(files, settings)
    sessions = [product.session(session_id) for session_id in product.sessions()[-LATEST_SESSIONS:]]
    return {
        "lives": [_life(life, until_s) for life in lives],
        "sessions": [_session(session) for session in reversed(sessions)],
    }


def _life(life: HandoffLifecycle, until_s: int | None) -> dict[str, Any]:
    return {
        "sender": life.delivery.sender,
        "receiver": life.delivery.receiver,
        "place": life.delivery.place,
        "stations": [
            {"stage": each.stage.value, "at_s": _time_known_by(each, until_s), "due_s": each.due_s}
            for each in life.stations
        ],
    }


def _time_known_by(station: StageTime, until_s: int | None) -> int | None:
    is_later = until_s is not None and station.at_s is not None and station.at_s > until_s
    return None if is_later else station.at_s


def _session(stored_session: StoredSession) -> dict[str, Any]:
    return {
        "session": stored_session.session_id,
        "status": standing(stored_session.session).status,
        "envelopes": [
            {"path": sent.path, "from": sent.source, "to": sent.target, "is_error": sent.is_error}
            for sent in stored_session.session.sent
        ],
        "findings": [finding.as_json() for finding in stored_session.findings],
    }


SNAPSHOTS_KEPT = 200
"""Number of past snapshots that are cached; a commit never changes."""


class SnapshotReader:
    """Reads one repository on behalf of all callers."""

    def __init__(self, start: str):
        """Find the repository that `start` lies in.

        Raises:
            YoloError: NOT_A_REPOSITORY, BARE_REPOSITORY, GIT_MISSING.
        """
        self._repository = Repository(start)
        self._past_repository = Repository(start)
        self._present = threading.Lock()
        self._past = threading.Lock()
        self._observer = StatusObserver(self._repository)
        self._looked: tuple[float, PresentSnapshot] | None = None
        """When the last look at the present began, and what it saw."""
        self._replay_repository = Repository(start)
        self._replaying = threading.Lock()
        self._replay = Replay(self._replay_repository)
        self._facts_reader: FactsReader | None = None
        self._past_snapshots: OrderedDict[str, PastSnapshot] = OrderedDict()

    @property
    def root(self) -> str:
        """The work tree."""
        return self._repository.root

    def close(self) -> None:
        """End the helper processes."""
        with self._present, self._past, self._replaying:
            self._observer.close()
            self._repository.close()
            self._past_repository.close()
            self._replay_repository.close()

    def present(self) -> PresentSnapshot:
        """Return where everything stands. Callers that arrive during a look share the next one.

        Raises:
            YoloError: BAD_CONFIG, GIT_FAILED.
        """
        asked_s = time.monotonic()
        with self._present:
            if self._looked is None or self._looked[0] < asked_s:
                began = time.monotonic()
                self._looked = began, self._observer.look()
            return self._looked[1]

    def latest(self) -> PresentSnapshot:
        """Return the result of the last look, however old. Look only if there was none.

        Raises:
            YoloError: BAD_CONFIG, GIT_FAILED.
        """
        return self._looked[1] if self._looked else self.present()

    def past(self, revision: str) -> PastSnapshot:
        """Return where the team stood at a commit.

        Raises:
            YoloError: UNKNOWN_COMMIT, OBJECT_MISSING.
        """
        with self._past:
            commit = self._commit(revision)
            facts_reader = self._refresh_facts_reader()
            known = self._past_snapshots.get(commit)
            if known is None:
                known = self._past_snapshots[commit] = snapshot_at(
                    self._past_repository, commit, facts_reader
                )
                if len(self._past_snapshots) > SNAPSHOTS_KEPT:
                    self._past_snapshots.popitem(last=False)
            return known

    def artifact(self, path: str, revision: str) -> ArtifactText:
        """Return an artifact as a commit has it, or as it lies on disk when `revision` is empty.

        Raises:
            YoloError: NOT_AN_ARTIFACT, UNKNOWN_COMMIT, FILE_MISSING.
        """
        with self._past:
            commit = self._commit(revision) if revision else ""
            tip = self._past_repository.head().tip
            return read_artifact(self._past_repository, load(self.root), path, commit, tip)

    def artifacts(self, revision: str) -> list[dict[str, Any]]:
        """Return every artifact that a commit has, each with the commit that gave it its content.

        Raises:
            YoloError: UNKNOWN_COMMIT, OBJECT_MISSING.
        """
        with self._past:
            commit = self._commit(revision)
            facts_reader = self._refresh_facts_reader()
            facts_reader.history_index.read_up_to(commit)
            files = self._past_repository.files_at(commit, PLANNING_ROOT)
            last = facts_reader.history_index.last_change
            return [
                {"path": path, "kind": place.artifact.kind, "commit": last(path).oid}
                for path in sorted(files)
                if (place := classify(path))
            ]

    def handoffs(self, revision: str) -> dict[str, Any]:
        """Return the life cycle of each handoff under way, and the product workflow's sessions.

        An empty `revision` means now.

        Raises:
            YoloError: UNKNOWN_COMMIT, BAD_CONFIG, GIT_FAILED.
        """
        with self._past:
            commit = self._commit(revision) if revision else ""
            return handoffs_at(self._refresh_facts_reader(), commit)

    def timeline(
        self, phase: str, events: Iterable[Mapping[str, Any]], budget_s: float | None = None
    ) -> Timeline:
        """Return the timeline of a phase up to now, as far as the budget allows.

        Raises:
            YoloError: UNKNOWN_NAME, OBJECT_MISSING.
        """
        with self._replaying:
            if PhaseId.parse(phase) is None:
                raise YoloError(Reason.UNKNOWN_NAME, f"no phase is called {safe(phase)!r}")
            tip = self._replay_repository.head().tip or ""
            return self._replay.phase(load(self.root), phase, tip, events, budget_s)

    def _commit(self, revision: str) -> str:
        return find_commit(self._past_repository, revision)

    def _refresh_facts_reader(self) -> FactsReader:
        """Return the history cache.

        Changed settings replace it: they may change the history's meaning.
        """
        settings = load(self.root)
        if self._facts_reader is None or self._facts_reader.settings != settings:
            self._facts_reader = FactsReader(self._past_repository, settings)
            self._past_snapshots.clear()
        return self._facts_reader
