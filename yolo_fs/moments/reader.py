"""Answers what a page asks about one repository, from several threads, each thing computed once:
history, and the handoffs on their way.

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
from yolo_fs.handoff_service.lifecycle import lifecycles_of
from yolo_fs.handoff_service.reading import Reader
from yolo_fs.handoffs.lifecycle import HandoffLifecycle, StageTime
from yolo_fs.handoffs.session_progress import standing
from yolo_fs.history.team import Team
from yolo_fs.moments.moment import (
    PastMoment,
    PresentMoment,
    StatusObserver,
    find_commit,
    look_back,
)
from yolo_fs.moments.record import ArtifactText, read_artifact
from yolo_fs.moments.timeline import Replay, Timeline
from yolo_fs.workspace import Settings, load

LATEST_SESSIONS = 20


def handoffs_at(
    repository: Repository, settings: Settings, team: Team, commit: str
) -> dict[str, Any]:
    """Return the life of each handoff that was on its way at a commit, and the latest sessions of
    the product workflow. An empty `commit` asks for the present, with what only lies on disk.

    Of the past, stages that nothing but a file on disk proves are told by that file's own time.
    """
    root, limit = repository.root, settings.policy.max_file_bytes
    at = commit or repository.head().tip
    reads = Reader(root, root, settings.limits, lambda *_: None).log().reads
    phases = team.phases(at)
    if at:
        team.history_index.read_up_to(at)
    until_s = team.history_index.at_s(commit) if commit else None
    deadline_s = settings.policy.handoff_deadline_s
    lives = lifecycles_of(root, phases, team.history_index, reads, deadline_s) if phases else ()
    blobs = BlobReader(repository, limit)
    files: Snapshot = AtCommit(repository, commit, blobs) if commit else WorkTree(root, limit)
    product = ProductHandoffs(files, settings)
    sessions = [product.session(one) for one in product.sessions()[-LATEST_SESSIONS:]]
    return {
        "lives": [_life(one, until_s) for one in lives],
        "sessions": [_session(one) for one in reversed(sessions)],
    }


def _life(one: HandoffLifecycle, until_s: int | None) -> dict[str, Any]:
    return {
        "sender": one.delivery.sender,
        "receiver": one.delivery.receiver,
        "place": one.delivery.place,
        "stations": [
            {"stage": each.stage.value, "at_s": _known_at(each, until_s), "due_s": each.due_s}
            for each in one.stations
        ],
    }


def _known_at(one: StageTime, until_s: int | None) -> int | None:
    is_later = until_s is not None and one.at_s is not None and one.at_s > until_s
    return None if is_later else one.at_s


def _session(one: StoredSession) -> dict[str, Any]:
    return {
        "session": one.session_id,
        "status": standing(one.session).status,
        "envelopes": [
            {"path": sent.path, "from": sent.source, "to": sent.target, "is_error": sent.is_error}
            for sent in one.session.sent
        ],
        "findings": [finding.as_json() for finding in one.findings],
    }


MOMENTS_KEPT = 200
"""Moments of the past that are remembered; a commit never changes."""


class MomentReader:
    """Looks at one repository for everybody who asks."""

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
        self._looked: tuple[float, PresentMoment] | None = None
        """When the last look at the present began, and what it saw."""
        self._replay_repository = Repository(start)
        self._replaying = threading.Lock()
        self._replay = Replay(self._replay_repository)
        self._team: tuple[Settings, Team] | None = None
        self._moments: OrderedDict[str, PastMoment] = OrderedDict()

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

    def present(self) -> PresentMoment:
        """Return where everything stands; those who ask while somebody looks share the next look.

        Raises:
            YoloError: BAD_CONFIG, GIT_FAILED.
        """
        asked = time.monotonic()
        with self._present:
            if self._looked is None or self._looked[0] < asked:
                began = time.monotonic()
                self._looked = began, self._observer.look()
            return self._looked[1]

    def latest(self) -> PresentMoment:
        """Return what the last look saw, however long ago; only where there was none, look.

        Raises:
            YoloError: BAD_CONFIG, GIT_FAILED.
        """
        return self._looked[1] if self._looked else self.present()

    def past(self, revision: str) -> PastMoment:
        """Return where the team stood at a commit.

        Raises:
            YoloError: UNKNOWN_COMMIT, OBJECT_MISSING.
        """
        with self._past:
            commit = self._commit(revision)
            team = self._team_now()
            known = self._moments.get(commit)
            if known is None:
                known = self._moments[commit] = look_back(self._past_repository, commit, team)
                if len(self._moments) > MOMENTS_KEPT:
                    self._moments.popitem(last=False)
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
            team = self._team_now()
            team.history_index.read_up_to(commit)
            files = self._past_repository.files_at(commit, PLANNING_ROOT)
            last = team.history_index.last_change
            return [
                {"path": path, "kind": place.artifact.kind, "commit": last(path).oid}
                for path in sorted(files)
                if (place := classify(path))
            ]

    def handoffs(self, revision: str) -> dict[str, Any]:
        """Return the life of each handoff that is on its way, and the sessions of the product
        workflow: at a commit, or now when `revision` is empty.

        Raises:
            YoloError: UNKNOWN_COMMIT, BAD_CONFIG, GIT_FAILED.
        """
        with self._past:
            commit = self._commit(revision) if revision else ""
            return handoffs_at(self._past_repository, load(self.root), self._team_now(), commit)

    def timeline(
        self, phase: str, events: Iterable[Mapping[str, Any]], budget_s: float | None = None
    ) -> Timeline:
        """Return the way of a phase up to now, as far as it can be looked at within the budget.

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

    def _team_now(self) -> Team:
        """Return what remembers the past; other settings may mean another past."""
        settings = load(self.root)
        if self._team is None or self._team[0] != settings:
            self._team = settings, Team(self._past_repository, settings)
            self._moments.clear()
        return self._team[1]
