"""Looks at every candidate of a work tree and changes nothing: for the daemon, `status` and `resume`."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Sequence
from typing import NamedTuple, Self

from yolo_fs.edges.files import Stamp
from yolo_fs.edges.git.history import Abandoned, abandoned
from yolo_fs.edges.git.obstacles import Obstacles
from yolo_fs.edges.git.repository import Head, Repository
from yolo_fs.edges.scan_cache import ScanCache
from yolo_fs.reasons import Finding, Reason, YoloError
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.verdicts import Accepted, Held
from yolo_fs.rules.decide import EventSink
from yolo_fs.services.workspace.settings import Settings
from yolo_fs.services.worktree.pipeline import Pipeline
from yolo_fs.services.worktree.verdict_store import CachedVerdict, Observation


class Survey(NamedTuple):
    """What one look at some paths showed."""

    head: Head
    obstacle: Reason | None
    """Why nothing may be committed now."""
    seen: dict[str, CachedVerdict]


class Surveyor:
    """Checks paths of one work tree."""

    def __init__(
        self, repository: Repository, settings: Settings, emit: EventSink = lambda *_: None
    ):
        """Check paths by these settings; `emit` hears of defects."""
        self._repository = repository
        self._emit = emit
        self._roots = settings.roots
        self._pipeline = Pipeline(repository, settings)
        self._scan_cache = ScanCache(repository.root)
        self._abandoned: Abandoned | None = None
        self.obstacles = Obstacles(
            repository,
            protected=settings.policy.protected,
            allow_detached=settings.policy.allow_detached,
        )
        self.head = repository.head()
        """The branch as it was last seen or left."""

    def candidates(self) -> dict[str, Stamp | None]:
        """Return every path that may be an artifact, with its stamp on disk (None: only the branch has it)."""
        entries = (entry for root in self._roots for entry in self._scan_cache.walk(root))
        stamps: dict[str, Stamp | None] = {
            entry.path: entry.stamp for entry in entries if classify(entry.path)
        }
        tip = self._refresh_head().tip
        # A branch that cannot be read holds every path, one by one, with its reason.
        with contextlib.suppress(YoloError):
            for root in self._roots:
                committed = self._repository.files_at(tip, root)
                missing = [path for path in committed if path not in stamps]
                stamps |= dict.fromkeys(path for path in missing if classify(path))
        return stamps

    def survey(self, paths: Sequence[str], now_ns: int | None = None) -> Survey:
        """Look at paths; `now_ns` as `Obstacles.find` takes it."""
        head = self._refresh_head()
        obstacle = self.obstacles.find(head, now_ns)
        self._pipeline.prepare(paths)
        seen = {path: self._hold_reverted(self._look(path, head, obstacle)) for path in paths}
        return Survey(head, obstacle, seen)

    def close(self) -> None:
        """End the helper processes that were started here."""
        self._pipeline.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self, path: str, head: Head, obstacle: Reason | None) -> CachedVerdict:
        read_at_ns = time.time_ns()
        try:
            seen = self._pipeline.look(path, head, obstacle)
        except YoloError as error:
            seen = Observation(path, Held(error.reason, (error.as_finding(),)))
        except Exception as defect:  # a defect of ours must cost one path, not the daemon
            data = {"what": repr(defect), "trace": traceback.format_exc()}
            self._emit("daemon.defect", path, data)
            finding = Finding(Reason.INTERNAL_ERROR, path, message=repr(defect))
            seen = Observation(path, Held(Reason.INTERNAL_ERROR, (finding,)))
        return CachedVerdict(seen, read_at_ns)

    def _refresh_head(self) -> Head:
        head = self._repository.head()
        if head != self.head or self._abandoned is None:
            self._abandoned = Abandoned((), 0)
            if head.ref and head.tip:
                self._abandoned = abandoned(self._repository, head.ref, head.tip)
            self.head = head
        return head

    def _hold_reverted(self, look: CachedVerdict) -> CachedVerdict:
        """Hold content that the user moved the branch away from and that nobody wrote since.

        See docs/faults.md#f28.
        """
        verdict, stamp, lost = look.seen.verdict, look.seen.stamp, self._abandoned
        if not isinstance(verdict, Accepted) or stamp is None or lost is None or not lost.commits:
            return look
        if stamp.ctime_ns // 1_000_000_000 > lost.moved_at_s:
            return look
        path = look.seen.path
        if any(self._repository.blob_at(commit, path) == verdict.blob for commit in lost.commits):
            held = Observation(path, Held(Reason.UNDONE_BY_USER), stamp)
            return CachedVerdict(held, look.read_at_ns)
        return look
