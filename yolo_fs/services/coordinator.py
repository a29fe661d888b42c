"""One round of the coordinator: look at paths, decide, do, and remember. Used by the daemon and by
`run --once`.
"""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from yolo_fs.edges.files import Stamp
from yolo_fs.edges.git.commit import CommitResult, Committer
from yolo_fs.edges.git.history import Abandoned, abandoned
from yolo_fs.edges.git.index import IndexSync
from yolo_fs.edges.git.obstacles import IN_PROGRESS, Obstacles
from yolo_fs.edges.git.refs import RefUpdater
from yolo_fs.edges.git.repository import Head, Repository
from yolo_fs.edges.scan_cache import ScanCache
from yolo_fs.reasons import Finding, Reason, YoloError
from yolo_fs.rules.artifacts.verdicts import Accepted, Held, Verdict, Waiting
from yolo_fs.rules.decide import decide, describe
from yolo_fs.services.apply import Applier, Budget, Outcome, Telling
from yolo_fs.services.intake import Intake, Seen
from yolo_fs.services.ledger import Ledger
from yolo_fs.services.settings import Settings
from yolo_fs.services.survey import Glance, candidates, changed

TRIES = 8
"""Rounds in a row that may find the branch moved under them."""
LARGEST_ROUND = 500
"""Paths judged before their commits are made; bounds memory and the length of a chain."""

_STATES = (
    Reason.UNMERGED_INDEX, Reason.USER_COMMITTING, Reason.GC_RUNNING, Reason.DETACHED_HEAD, Reason.PROTECTED_BRANCH,
    Reason.BRANCH_BROKEN,
    Reason.REF_LOCKED, Reason.BRANCH_MOVED, Reason.NO_SPACE, Reason.STORAGE_FAILED, Reason.OBJECT_MISSING,
    Reason.GIT_FAILED, Reason.GIT_TIMEOUT, Reason.COMMIT_BUDGET,
)  # fmt: skip
PASSING = frozenset({*IN_PROGRESS.values(), *_STATES})
"""Reasons to hold that pass by themselves; the others need somebody to change something."""


class Coordinator:
    """Knows every candidate of one work tree and brings each as far as it may go."""

    def __init__(self, repository: Repository, settings: Settings, tell: Telling):
        """Coordinate one work tree; `tell` hears every fact worth remembering."""
        self.repository = repository
        self._tell = tell
        durable = settings.policy.durability == "fsync"
        self._branches = RefUpdater(repository, durable=durable)
        self.follower = IndexSync(repository)
        self._obstacles = Obstacles(
            repository,
            protected=settings.policy.protected,
            allow_detached=settings.policy.allow_detached,
        )
        committer = Committer(repository, self._branches, self.follower, _now)
        budget = Budget(settings.policy.commits_per_minute)
        self._applier = Applier(committer, self.follower, self._obstacles, budget, tell)
        self._intake = Intake(repository, settings)
        self.roots = settings.roots
        self._tree = ScanCache(repository.root)
        self._ledger = Ledger()
        self.head = repository.head()
        """The branch as we last saw or left it."""
        self._abandoned: Abandoned | None = None

    @property
    def known(self) -> Mapping[str, Glance]:
        """Path → the last look at each candidate."""
        return self._ledger.glances

    @property
    def unsettled(self) -> Mapping[str, Verdict]:
        """Path → verdict of the last look, of whatever is not committed."""
        return self._ledger.unsettled

    def waiting(self) -> tuple[str, ...]:
        """Return the paths that could not be judged yet."""
        return tuple(
            path
            for path, verdict in self.unsettled.items()
            if isinstance(verdict, Waiting | Accepted)
        )

    def candidates(self) -> dict[str, Stamp | None]:
        """Return every path that may be an artifact, with its stamp on disk (None: only the branch has it)."""
        return candidates(self._tree, self.repository, self._heed_head(), self.roots)

    def reconcile(self, *, thorough: bool = False) -> tuple[CommitResult, ...]:
        """Look at whatever may have changed since the last look; `thorough`: at everything."""
        now = self.candidates()
        for path in self.known.keys() - now.keys():
            self._ledger.forget(path)
        paths = now if thorough else dict.fromkeys([*changed(now, self.known), *self.unsettled])
        return self.round(paths)

    def round(self, paths: Iterable[str]) -> tuple[CommitResult, ...]:
        """Judge the paths and commit what is accepted; return what was committed."""
        made: list[CommitResult] = []
        pending = list(dict.fromkeys(paths))
        for start in range(0, len(pending), LARGEST_ROUND):
            made += self._some(pending[start : start + LARGEST_ROUND])
        return tuple(made)

    def judge(
        self, paths: Sequence[str], now_ns: int | None
    ) -> tuple[Head, Reason | None, dict[str, Glance]]:
        """Look at the paths and change nothing; return HEAD, why nothing may be committed, and what was seen.

        `now_ns`: as `Obstacles.find` takes it.
        """
        head = self._heed_head()
        obstacle = self._obstacles.find(head, now_ns)
        self._intake.prepare(paths)
        return (
            head,
            obstacle,
            {path: self._not_undone(self._look(path, head, obstacle)) for path in paths},
        )

    def let_index_follow(self) -> bool:
        """Bring the user's index up to date for the paths that were committed."""
        return self._applier.let_index_follow()

    def moved_by_others(self) -> bool:
        """Tell whether HEAD or its branch moved since we last looked, by another hand than ours."""
        return self.repository.head() != self.head

    def released(self) -> tuple[str, ...]:
        """Return the held paths that nothing holds any more, or that something else holds by now."""
        held = self._held_in_passing()
        obstacle = self._obstacles.find(self.repository.head(), time.time_ns()) if held else None
        return (
            tuple(path for path in held if self.unsettled[path] != Held(obstacle))
            if obstacle
            else held
        )

    def unfinished(self) -> tuple[str, ...]:
        """Return the paths that time alone will bring further."""
        return self.waiting() + self._held_in_passing()

    def clear_own_stale_locks(self) -> tuple[str, ...]:
        """Remove ref locks that a dead helper of ours left (F24)."""
        return self._branches.clear_own_stale_locks()

    def close(self) -> None:
        """End the helper processes that were started here; the repository stays open for whoever opened it."""
        self._intake.close()
        self._branches.close()

    def _held_in_passing(self) -> tuple[str, ...]:
        return tuple(
            path
            for path, verdict in self.unsettled.items()
            if isinstance(verdict, Held) and verdict.reason in PASSING
        )

    def _some(self, paths: list[str]) -> tuple[CommitResult, ...]:
        made: list[CommitResult] = []
        for attempt in range(TRIES):
            outcome = self._once(paths)
            made += [one for one in outcome.made if one.commit]
            paths = [path for path in paths if self._is_moved(outcome.verdicts.get(path))]
            if not paths:
                break
            time.sleep(random.uniform(0, 0.002 * 2**attempt))
        return tuple(made)

    def _once(self, paths: list[str]) -> Outcome:
        head, _, seen = self.judge(paths, time.time_ns())
        before = {path: verdict for path in seen if (verdict := self._ledger.verdict(path))}
        actions = decide(before, {path: glance.seen.verdict for path, glance in seen.items()})
        outcome = self._applier.carry_out(actions, head)
        self._tell_held(outcome)
        for path, glance in seen.items():
            verdict = outcome.verdicts.get(path) or glance.seen.verdict
            self._ledger.note(
                path, Glance(Seen(path, verdict, glance.seen.stamp), glance.read_at_ns)
            )
        if tips := [one.commit for one in outcome.made if one.commit]:
            self.head = Head(head.ref, tips[-1])
        return outcome

    def _tell_held(self, outcome: Outcome) -> None:
        """Tell what was accepted and could not be committed; a branch that moved is tried again at once."""
        for path, verdict in outcome.verdicts.items():
            if (
                isinstance(verdict, Held)
                and not self._is_moved(verdict)
                and verdict != self._ledger.verdict(path)
            ):
                self._tell("artifact.held", path, describe(verdict))

    def _look(self, path: str, head: Head, obstacle: Reason | None) -> Glance:
        read_at_ns = time.time_ns()
        try:
            seen = self._intake.look(path, head, obstacle)
        except YoloError as error:
            seen = Seen(path, Held(error.reason, (error.as_finding(),)))
        except Exception as defect:  # a defect of ours must cost one path, not the daemon
            self._tell(
                "daemon.defect", path, {"what": repr(defect), "trace": traceback.format_exc()}
            )
            seen = Seen(
                path,
                Held(
                    Reason.INTERNAL_ERROR,
                    (Finding(Reason.INTERNAL_ERROR, path, message=repr(defect)),),
                ),
            )
        return Glance(seen, read_at_ns)

    def _heed_head(self) -> Head:
        head = self.repository.head()
        if head != self.head or self._abandoned is None:
            self._abandoned = (
                abandoned(self.repository, head.ref, head.tip)
                if head.ref and head.tip
                else Abandoned((), 0)
            )
            self.head = head
        return head

    def _not_undone(self, glance: Glance) -> Glance:
        """Hold content that the user moved the branch away from and that nobody wrote since (F28)."""
        verdict, stamp, lost = glance.seen.verdict, glance.seen.stamp, self._abandoned
        if not isinstance(verdict, Accepted) or stamp is None or lost is None or not lost.commits:
            return glance
        if stamp.ctime_ns // 1_000_000_000 > lost.moved_at_s:
            return glance
        path = glance.seen.path
        if any(self.repository.blob_at(commit, path) == verdict.blob for commit in lost.commits):
            return Glance(Seen(path, Held(Reason.UNDONE_BY_USER), stamp), glance.read_at_ns)
        return glance

    @staticmethod
    def _is_moved(verdict: Verdict | None) -> bool:
        return isinstance(verdict, Held) and verdict.reason is Reason.BRANCH_MOVED


def _now() -> datetime:
    return datetime.now(UTC)
