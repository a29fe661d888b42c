"""One round of the coordinator: check paths, decide, act, and cache the verdicts."""

from __future__ import annotations

import contextlib
import hashlib
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import NamedTuple

from yolo_fs.artifacts.classify import ENVELOPE
from yolo_fs.artifacts.decide import Action, Commit, Emit, EventSink, decide, describe
from yolo_fs.artifacts.handoff_names import instant, read_name
from yolo_fs.artifacts.verdicts import Accepted, Committed, Held, Rejected, Verdict, Waiting
from yolo_fs.checking.examples import is_skeleton
from yolo_fs.core.reasons import Reason, YoloError, errors
from yolo_fs.git.commit import CommitRequest, CommitResult, Committer
from yolo_fs.git.index import IndexSync
from yolo_fs.git.obstacles import IN_PROGRESS, Obstacles
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Head, Repository
from yolo_fs.kept.selection import KeptCause
from yolo_fs.kept.service import ContentToKeep, KeptStore
from yolo_fs.progress.placing import placed
from yolo_fs.progress.state_move import FreshArtifact, StateMove
from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.scanning.cached_verdicts import CachedVerdict, Observation, VerdictStore
from yolo_fs.scanning.pipeline import Refusal
from yolo_fs.scanning.scanner import Scanner
from yolo_fs.system import failpoint
from yolo_fs.system.files import Stamp, stamp_at, stamp_of
from yolo_fs.workspace.settings import Settings


class ApplyResult(NamedTuple):
    """The result for the artifacts that were to be committed."""

    verdicts: dict[str, Verdict]
    """Path → `Committed`, or `Held` with the reason."""
    made: tuple[CommitResult, ...] = ()


StateSource = Callable[[str | None, Sequence[FreshArtifact]], StateMove | None]


class CommitBudget:
    """Limits the commits per minute: a circuit breaker for loops between tools."""

    def __init__(self, per_minute: int):
        """`per_minute`: the limit; 0 for none."""
        self._per_minute = per_minute
        self._spent: deque[float] = deque()

    def allowance(self) -> int | None:
        """Return how many commits may be made now; None for no limit."""
        if not self._per_minute:
            return None
        while self._spent and time.monotonic() - self._spent[0] > 60:
            self._spent.popleft()
        return max(0, self._per_minute - len(self._spent))

    def spend(self) -> None:
        """Record one commit."""
        if self._per_minute:
            self._spent.append(time.monotonic())


def _order_in_workflow(accepted: Accepted) -> tuple[float, float, str]:
    """Sort key that orders artifacts of one round by their steps, and handoffs by their moments.

    A verdict comes after what it judges, and an answer after its question.
    """
    place = accepted.place
    step = STEP_BY_KEY.get(place.artifact.step or "")
    whole = 0.0 if place.phase else _LAST  # the state of the project says what its phases say
    stored = read_name(place.path) if place.artifact is ENVELOPE else None
    sent_s = instant(stored.gaps["timestamp"]).timestamp() if stored else math.inf
    return float(step.number) if step else whole, sent_s, place.path


_LAST = 100.0
"""Sorts after every step."""


class Applier:
    """Executes actions in one repository."""

    def __init__(
        self,
        committer: Committer,
        obstacles: Obstacles,
        budget: CommitBudget,
        emit: EventSink,
        root: str,
        moved_by: StateSource = lambda _tip, _accepted: None,
    ):
        """`moved_by`: returns the state file that the commit of artifacts changes."""
        self._moved_by = moved_by
        self._began_ns = time.time_ns()
        self._root = root
        self._committer = committer
        self._obstacles = obstacles
        self._budget = budget
        self._emit = emit

    def carry_out(self, actions: Sequence[Action], head: Head) -> ApplyResult:
        """Commit first, then emit; a failed commit is held and changes nothing."""
        accepted = [action.accepted for action in actions if isinstance(action, Commit)]
        accepted.sort(key=_order_in_workflow)
        outcome = self._commit(accepted, head)
        for action in actions:
            if isinstance(action, Emit):
                self._emit(action.event, action.path, action.data)
        return outcome

    def _commit(self, accepted: Sequence[Accepted], head: Head) -> ApplyResult:
        allowed = self._budget.allowance()
        accepted, late = accepted[:allowed], accepted[allowed:]
        verdicts: dict[str, Verdict] = {
            each.place.path: Held(Reason.COMMIT_BUDGET) for each in late
        }
        if not accepted:
            return ApplyResult(verdicts)
        if self._obstacles.changed_since(head, time.time_ns()):
            return ApplyResult(
                verdicts | {each.place.path: Held(Reason.BRANCH_MOVED) for each in accepted}
            )
        entries = [
            CommitRequest(each.place.path, each.data, each.subject, each.trailers)
            for each in accepted
        ]
        try:
            made = self._commit_with_state(accepted, entries, head)
        except YoloError as error:
            held = Held(error.reason, (error.as_finding(),))
            return ApplyResult(verdicts | {each.place.path: held for each in accepted})
        failpoint.reach("apply.told")
        return ApplyResult(
            verdicts | {outcome.path: Committed(outcome.blob) for outcome in made}, made
        )

    def _commit_with_state(
        self, accepted: Sequence[Accepted], entries: list[CommitRequest], head: Head
    ) -> tuple[CommitResult, ...]:
        """Commit artifacts; the last commit includes the state file that they change."""
        emit = partial(self._emit_commits, accepted, head)
        fresh = [
            FreshArtifact(artifact.place, artifact.data, artifact.blob) for artifact in accepted
        ]
        if move := self._moved_by(head.tip, fresh):
            files = ((move.path, move.after),)
            within = placed(self._root, files, {move.path: move.before})
            moving = [*entries[:-1], replace(entries[-1], beside=files)]
            # The state file may have changed by now; the artifacts are then committed without it.
            with contextlib.suppress(YoloError):
                return self._committer.commit(moving, head, emit, within)
        return self._committer.commit(entries, head, emit)

    def _emit_commits(
        self, accepted: Sequence[Accepted], head: Head, made: Sequence[CommitResult]
    ) -> None:
        for each, outcome in zip(accepted, made, strict=True):
            if outcome.commit:
                self._budget.spend()
                self._emit_commit(each, outcome, head)

    def _emit_commit(self, accepted: Accepted, made: CommitResult, head: Head) -> None:
        data = {
            "commit": made.commit,
            "blob": made.blob,
            "subject": accepted.subject,
            "branch": head.branch,
            "kind": accepted.place.artifact.kind,
            "warnings": [warning.as_json() for warning in accepted.warnings],
            **self._latency(accepted),
        }
        self._emit("artifact.committed", accepted.place.path, data)

    def _latency(self, accepted: Accepted) -> dict[str, int]:
        """Return the time since the write in ms; empty if unknown.

        It is unknown if the write was before our start, or the file has been written again since.
        """
        file = stamp_at(f"{self._root}/{accepted.place.path}")
        if file is None or file.size != len(accepted.data) or file.mtime_ns < self._began_ns:
            return {}
        return {"latency_ms": max(0, time.time_ns() - file.mtime_ns) // 1_000_000}


ATTEMPTS = 8
"""Consecutive attempts while the branch keeps moving."""
_LARGE_BYTES = 256 << 10
"""Larger files are checked one at a time, after all others, so that they block nothing."""
LARGEST_CHUNK = 500
"""Paths checked before their commits are made; bounds memory and the length of a chain."""

_PASSING = (
    Reason.UNMERGED_INDEX, Reason.USER_COMMITTING, Reason.UNBORN_BRANCH, Reason.DETACHED_HEAD,
    Reason.PROTECTED_BRANCH, Reason.BRANCH_BROKEN, Reason.PULL_IN_PROGRESS,
    Reason.REF_LOCKED, Reason.BRANCH_MOVED, Reason.NO_SPACE, Reason.STORAGE_FAILED,
    Reason.OBJECT_MISSING, Reason.GIT_FAILED, Reason.GIT_TIMEOUT, Reason.COMMIT_BUDGET,
)  # fmt: skip
_KEPT_AFTER_S = 1.0
"""Seconds that a transient hold must last before its content is kept as well."""
PASSING = frozenset({*IN_PROGRESS.values(), *_PASSING})
"""Transient reasons to hold; the others require somebody to change something."""


class Coordinator:
    """Tracks every candidate of one work tree and takes each as far as possible."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        emit: EventSink,
        moved_by: StateSource = lambda _tip, _accepted: None,
    ):
        """Coordinate one work tree by these settings.

        `emit`: receives every event; `moved_by`: returns the state file that the commit of
        artifacts changes.
        """
        self._repository = repository
        self._emit = emit
        durable = settings.policy.durability == "fsync"
        repository.objects.is_durable = durable
        self._branches = RefUpdater(repository, durable=durable)
        self._refusals: list[Refusal] = []
        self._kept: dict[str, bytes] = {}
        """Path → digest of the content that was kept last."""
        self._passing: dict[str, tuple[bytes, float]] = {}
        """Path → digest of content in a transient hold, and since when on the monotonic clock."""
        self._kept_store = KeptStore(repository, secrets_allowed=settings.policy.secrets_allowed)
        self._scanner = Scanner(repository, settings, emit, self._refusals.append)
        self.obstacles = self._scanner.obstacles
        """The user's activities that block a commit."""
        self._store = VerdictStore()
        self.known: Mapping[str, CachedVerdict] = self._store.cached
        """Path → the last check of each candidate."""
        self.unsettled: Mapping[str, Verdict] = self._store.unsettled
        """Path → last verdict, for everything that is not committed."""
        self.index = IndexSync(repository, lives_long=True)
        self.committer = Committer(repository, self._branches, self.index, _now)
        self._applier = Applier(
            self.committer,
            self.obstacles,
            CommitBudget(settings.policy.commits_per_minute),
            emit,
            repository.root,
            moved_by,
        )
        self.results: tuple[CommitResult, ...] = ()
        """The commits of the last scan."""
        self._diverged: frozenset[str] = frozenset()
        self._reconciled = self._scanner.head
        """The branch at the last full scan, with our own commits since. A check of a few paths may
        detect that the branch moved, but does not cover the other paths."""

    @property
    def refused(self) -> Mapping[str, Stamp]:
        """Path → stamp of each file that is refused for what it holds."""
        return {
            path: stamp
            for path, verdict in self.unsettled.items()
            if isinstance(verdict, Rejected) and (stamp := self.known[path].seen.stamp)
        }

    def is_kept(self, path: str, data: bytes) -> bool:
        """Return whether this content of a refused file has been kept."""
        return self._kept.get(path) == hashlib.sha256(data).digest()

    def waiting(self) -> tuple[str, ...]:
        """Return the paths that could not be checked yet."""
        return tuple(
            path
            for path, verdict in self.unsettled.items()
            if isinstance(verdict, Waiting | Accepted)
        )

    def released(self) -> tuple[str, ...]:
        """Return the held paths whose obstacle is gone or has changed."""
        held = self._list_temporarily_held()
        if not held:
            return ()
        obstacle = self.obstacle()
        if obstacle is None:
            return held
        return tuple(path for path in held if self.unsettled[path] != Held(obstacle))

    def obstacle(self) -> Reason | None:
        """Return what of the user's doing stands in the way of every commit, if anything."""
        return self.obstacles.find(self._repository.head(), time.time_ns())

    def unfinished(self) -> tuple[str, ...]:
        """Return the paths that time alone will settle."""
        return self.waiting() + self._list_temporarily_held()

    def scan(self) -> Iterator[None]:
        """Check whatever may have changed since the last check, step by step, so that paths can be
        processed in between. `results` has what was committed.
        """
        before, self._reconciled = dict(self.known), self._repository.head()
        candidates = yield from self._scanner.find_candidates()
        for path in before.keys() - candidates.stamps.keys():
            if self.known.get(path) is before[path]:
                self._store.forget(path)
        self.results = self.process([*self._store.changed(candidates), *self.unsettled])
        self._scanner.unwritten.keep()

    def process(self, paths: Iterable[str]) -> tuple[CommitResult, ...]:
        """Check the paths and commit what is accepted; return what was committed."""
        results: list[CommitResult] = []
        chunks = list(self._chunks(list(dict.fromkeys(paths))))
        for chunk in chunks:
            results += self._process_chunk(chunk)
        if followers := self._find_waiting_paths(chunks):
            results += self._process_chunk(followers)
        return tuple(results)

    def sync_index(self) -> bool:
        """Update the user's index to the commits; return False while index.lock is held."""
        if not self.index.pending:
            return True
        is_synced = self.index.follow()
        if is_synced:  # by git itself, which does not say what it wrote
            index = stamp_at(f"{self._repository.git_dir}/index")
            self.obstacles.index_rewritten(index)
        why = {"reason": Reason.INDEX_DIVERGED.value}
        for path in self.index.diverged - self._diverged:
            self._emit("index.diverged", path, why)
        self._diverged = frozenset(self.index.diverged)
        return is_synced

    def was_moved_by_others(self) -> bool:
        """Return whether another process moved HEAD or its branch since the last full scan."""
        return self._repository.head() != self._reconciled

    def clear_own_stale_locks(self) -> tuple[str, ...]:
        """Remove ref locks that a dead helper of ours left. See docs/dev/faults.md#f24."""
        return self._branches.clear_own_stale_locks()

    def renew_helpers(self) -> None:
        """Restart the helper processes, which keep packs open that have been merged."""
        self._repository.objects.close()
        self._branches.renew()

    def take_note(self, before: Head, head: Head) -> None:
        """Treat a move of the branch as our own: its content is also in the work tree."""
        self._scanner.head = head
        if self._reconciled == before:
            self._reconciled = head

    def close(self) -> None:
        """End the helper processes started here; the repository stays open."""
        self._scanner.unwritten.keep()
        self._scanner.close()
        self.index.close()
        self._branches.close()

    def _chunks(self, pending: list[str]) -> Iterator[list[str]]:
        """Yield groups of paths to check together; large files come last, each on its own."""
        large = [path for path in pending if len(pending) > 1 and self._is_large(path)]
        small = [path for path in pending if path not in set(large)] if large else pending
        for start in range(0, len(small), LARGEST_CHUNK):
            yield small[start : start + LARGEST_CHUNK]
        yield from ([path] for path in large)

    def _is_large(self, path: str) -> bool:
        stamp = stamp_of(self._repository.root, path)
        return isinstance(stamp, Stamp) and stamp.size > _LARGE_BYTES

    def _find_waiting_paths(self, chunks: Sequence[Sequence[str]]) -> list[str]:
        """Return the held paths that wait for a plan of a folder that was just checked."""
        # A check in an earlier chunk could not see the plans of a later one.
        looked_at = frozenset(chunks[0] if len(chunks) == 1 else ())
        arrived = chain.from_iterable(chunks)
        folders = {path.rpartition("/")[0] for path in arrived if path.endswith(".plan.jsonl")}
        return [
            path
            for path, verdict in self.unsettled.items()
            if isinstance(verdict, Held)
            and verdict.reason is Reason.WAITS_FOR
            and path.rpartition("/")[0] in folders
            and path not in looked_at
        ]

    def _list_temporarily_held(self) -> tuple[str, ...]:
        return tuple(
            path
            for path, verdict in self.unsettled.items()
            if isinstance(verdict, Held) and verdict.reason in PASSING
        )

    def _process_chunk(self, paths: list[str]) -> list[CommitResult]:
        results: list[CommitResult] = []
        for attempt in range(ATTEMPTS):
            outcome = self._scan_and_apply(paths)
            results += [each for each in outcome.made if each.commit]
            paths = [path for path in paths if _is_moved(outcome.verdicts.get(path))]
            if not paths:
                break
            time.sleep(random.uniform(0, 0.002 * 2**attempt))
        return results

    def _scan_and_apply(self, paths: list[str]) -> ApplyResult:
        head, _, seen, _ = self._scanner.scan(paths, time.time_ns())
        before = {path: verdict for path in seen if (verdict := self._store.verdict(path))}
        actions = decide(before, {path: look.seen.verdict for path, look in seen.items()})
        outcome = self._applier.carry_out(actions, head)
        self._emit_held(outcome)
        self._keep_refused()
        for path, look in seen.items():
            verdict = outcome.verdicts.get(path) or look.seen.verdict
            observed = Observation(verdict, look.seen.stamp)
            self._store.remember(path, CachedVerdict(observed, look.read_at_ns))
            if isinstance(verdict, Committed) and look.seen.stamp:
                self._scanner.unwritten.agrees(path, verdict.blob, look.seen.stamp)
            if not isinstance(verdict, Rejected | Held | Waiting):
                self._kept.pop(path, None)
                self._passing.pop(path, None)
        if outcome.made and not self.committer.is_index_behind:
            self.obstacles.index_rewritten(self.committer.index_left_at)
        if commits := [each.commit for each in outcome.made if each.commit]:
            self.take_note(head, Head(head.ref, commits[-1]))
        return outcome

    def _keep_refused(self) -> None:
        """Keep the contents that were just refused; in a transient hold, only if it lasts."""
        refusals, digests, now_s = list(self._refusals), {}, time.monotonic()
        self._refusals.clear()
        contents = []
        for path, data, verdict in refusals:
            reasons = _reasons_of(verdict)
            digest = hashlib.sha256(data).digest()
            is_passing = False
            if not PASSING.isdisjoint(reasons):
                known, since_s = self._passing.get(path, (b"", now_s))
                self._passing[path] = digest, since_s if known == digest else now_s
                is_passing = now_s - self._passing[path][1] < _KEPT_AFTER_S
            if is_passing or _NEVER_KEPT & reasons.keys() or self._kept.get(path) == digest:
                continue
            if is_skeleton(path, data):
                continue
            contents.append(ContentToKeep(path, data, KeptCause(tuple(reasons))))
            digests[path] = digest
        if not contents:
            return
        try:
            self._kept_store.keep(contents)
        # A failure to keep refused contents must not block anything else; it is tried again.
        except YoloError as error:
            self._emit("kept.failed", contents[0].path, {"reason": error.reason.value})
        else:
            self._kept |= digests

    def _emit_held(self, outcome: ApplyResult) -> None:
        """Emit what was accepted but not committed; after a moved branch it is only tried again."""
        for path, verdict in outcome.verdicts.items():
            is_held = isinstance(verdict, Held) and not _is_moved(verdict)
            if is_held and verdict != self._store.verdict(path):
                self._emit("artifact.held", path, describe(verdict))


_NEVER_KEPT = frozenset({Reason.AUTO_COMMIT_OFF, Reason.UNDONE_BY_USER, Reason.OLDER_THAN_BRANCH})
"""The user wants no commit of it, or it is already in history."""


def _reasons_of(verdict: Rejected | Held) -> dict[Reason, None]:
    if isinstance(verdict, Held):
        return {verdict.reason: None}
    return dict.fromkeys(finding.reason for finding in errors(verdict.findings))


def _is_moved(verdict: Verdict | None) -> bool:
    return isinstance(verdict, Held) and verdict.reason is Reason.BRANCH_MOVED


def _now() -> datetime:
    return datetime.now(UTC)
