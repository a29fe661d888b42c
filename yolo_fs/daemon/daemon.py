"""The daemon: one per work tree, with one worker, correct even if every event is lost.

An event means "check this path"; the periodic scan is the source of truth.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from yolo_fs.artifacts.decide import EventSink
from yolo_fs.artifacts.uncommitted import lasting_findings
from yolo_fs.artifacts.verdicts import Verdict
from yolo_fs.checking.autofix import Autofix
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.daemon.coordinator import Coordinator, StateSource
from yolo_fs.daemon.duties import Duty, Schedule, Trouble
from yolo_fs.daemon.health import late_s, read_troubles, write_health
from yolo_fs.daemon.observing import ObserverKeeper
from yolo_fs.daemon.recovery import recover
from yolo_fs.daemon.stuck import StuckPaths
from yolo_fs.daemon.watch_set import Batch, EventQueue, WatchSet
from yolo_fs.git.commit import CommitResult
from yolo_fs.git.packs import HANDED_OVER_AFTER_S, MERGE_FROM, REST_MOST, PackMerger
from yolo_fs.git.repository import Repository
from yolo_fs.progress.state_move import FreshArtifact, StateMove, tracked_state
from yolo_fs.system import IS_LINUX, failpoint
from yolo_fs.system.files import content_of, ignore_lease_breaks
from yolo_fs.system.lock import HeldLock
from yolo_fs.system.store import reap_temporaries
from yolo_fs.system.system import return_free_memory
from yolo_fs.team.background_sync import TeamLink
from yolo_fs.workspace.planning_tree import folders_written_to
from yolo_fs.workspace.settings import CONFIG, load, stamps_of

if TYPE_CHECKING:
    from yolo_fs.daemon.follower import Follower

RETRY_S = 0.01
"""Interval of retries of what cannot be committed yet; grows by a tenth while it is the same."""
LONGEST_RETRY_S = 0.8
INDEX_EVERY_S = 0.1
"""Maximum pause between two updates of the user's index: until then, what was committed looks
deleted to git."""
INDEX_REST = 9
"""The pause is this multiple of the duration of the update, during which the user's git has to
wait."""
SCAN_STEP_S = 0.005
"""Seconds that a scan may take per turn."""
CHECK_EVERY_S = 2.0
"""Interval of checks of the lock, the watchers and the repository itself."""
OBSERVER_EVERY_S = 0.5
"""Interval of checks that the observer is alive."""
BLIND_RESCAN_S = 2.0
"""Minimum pause between two scans while folders are unwatched: only a scan finds what is written
there."""
BLIND_RESCAN_REST = 20
"""The pause is at least this multiple of the duration of the scan."""
PACKS_REST_S = 3.0
"""Seconds without anything to commit before even a few packs are merged."""
PACKS_STEP_S = 0.05
"""Interval of checks while packs are being merged."""
PACKS_ASIDE_S = 0.5
"""Interval of checks for a multi-pack index that names deleted packs."""
TEAM_EVERY_S = 0.2
"""Interval of synchronisation with a team while anything is left to synchronise."""
TEAM_REST_S = 0.02
"""Delay before a commit is pushed to a remote: the command that waits for it, and the next write,
go first."""
TEAM_FOLLOW_S = 0.1
"""Delay before the observer is told of commits in a team: the other work trees, which share the
processors, commit theirs first."""
TIDY_EVERY_S = 60.0
"""Interval of returning free memory to the system, which takes a tenth of a millisecond."""
_LONGEST_PLACE = 4096
"""Maximum size of a path on Linux, in bytes."""
ONCE_PATIENCE_S = 2.0 if IS_LINUX else 10.0
"""Seconds that `run --once` waits for files that may be incomplete: without leases, every new one.
"""


class _Observed(NamedTuple):
    """What the health file says, beside the daemon itself."""

    headline: str
    troubles: tuple[Trouble, ...]
    standing: tuple[str, ...]
    stuck: Mapping[str, Verdict]
    waiting: Mapping[str, Any]


class Daemon:
    """Runs until stopped, or until its lock or its repository is gone.

    The lock and the repository belong to the caller, who closes them afterwards.
    """

    def __init__(self, repository: Repository, lock: HeldLock, emit: EventSink):
        self._repository = repository
        self._lock = lock
        self._emit = emit
        self._stamps = stamps_of(repository.root)
        self._settings = load(repository.root)
        self._queue = EventQueue()
        self._watch_set = WatchSet(repository.root, self._queue)
        self._packs = PackMerger(repository)
        self._hand_over_at = time.monotonic() + HANDED_OVER_AFTER_S / 2
        self._own_identity = _identity(repository.own_dir)
        self._link = os.path.join(repository.root, ".git")
        self._link_identity = _identity(self._link)
        self._team_link = TeamLink(repository, emit, self._queue.wake_from_thread)
        self._schedule = Schedule(DUTIES, self, emit)
        self._observer = ObserverKeeper(
            repository.own_dir, repository.root, self._queue.wake_from_thread
        )
        self._state_moved: StateSource = self._observer.state_moved
        self._coordinator = self._make_coordinator()
        self._autofix = Autofix(repository)
        self._headline = ""
        self._standing: tuple[str, ...] = ()
        """Reasons of the lasting troubles that only somebody else can resolve, as last reported."""
        self._waiting: Mapping[str, Any] = {}
        """What waits for a person, and how many agents are at work, as last reported."""
        self._stuck = StuckPaths()
        self._troubles: tuple[Trouble, ...] = ()
        """The observer's failing duties."""
        self._is_stopping = False
        self._due: dict[str, float] = {}
        """Path with an event → when it is to be checked, on the monotonic clock."""
        self._committed_at: dict[str, float] = {}
        """Path committed a moment ago → when, so that a series of appends becomes one commit."""
        self._unfinished: tuple[str, ...] = ()
        """What the last retry left unfinished."""
        self._retry_s = RETRY_S
        self._scan: Iterator[None] | None = None
        """The scan in progress."""
        self._scan_began = 0.0
        self._due_before_scan: dict[str, float] = {}
        self._reported: tuple[str | None, _Observed] | None = None
        """Tip and troubles in the health file."""

    def _make_coordinator(self) -> Coordinator:
        """Create the part that commits, by the settings in force."""
        return Coordinator(self._repository, self._settings, self._emit, self._moved_by)

    def _moved_by(self, tip: str | None, fresh: Sequence[FreshArtifact]) -> StateMove | None:
        """Return the state file that a commit changes; None at once if the branch has none."""
        is_tracked = tracked_state(self._repository, self._settings, tip) is not None
        return self._state_moved(tip, fresh) if is_tracked else None

    # --- life ---

    def run(self, ready: Callable[[], object] = lambda: None) -> None:
        """Watch and commit until `stop` is called; `ready` is called after the first scan."""
        self._start()
        try:
            self._schedule.run_due(self._is_running)
            while self._is_running() and self._scan is not None:
                self._turn()
            ready()
            while self._is_running():
                self._turn()
        finally:
            self._end()

    def run_once(self) -> None:
        """Do one full scan: commit what can be committed now, then end."""
        from yolo_fs.daemon.follower import Follower

        self._start()

        def process(paths: Iterable[str]) -> None:
            self._process(paths)
            follower.verdicts = self._coordinator.unsettled

        # The observer's work beside a running daemon is done here instead.
        follower = Follower(self._repository, self._emit, process)
        self._state_moved = follower.state_moved
        try:
            self._recover()
            self._rescan()
            while self._scan is not None:
                self._rescan()
            deadline = time.monotonic() + ONCE_PATIENCE_S
            self._finish_until(deadline)
            while (pause_s := self._repair_refused()) and time.monotonic() < deadline:
                time.sleep(pause_s)
            self._sync_with_team()
            self._follow_once(follower, deadline)
            self._sync_with_team()
            self._team_link.sync_files()
            self._packs.merge_now(most=MERGE_FROM)
        finally:
            follower.close()
            self._end()

    def _follow_once(self, follower: Follower, deadline: float) -> None:
        """Write once what follows from the branch, and commit it."""

        def write_derived() -> None:
            follower.verdicts = self._coordinator.unsettled
            follower.project()
            while (path := follower.write_state()) and path not in self._coordinator.unsettled:
                continue
            follower.project()
            follower.write_contexts()

        follower.verdicts = self._coordinator.unsettled
        follower.hand_up_escalations()
        write_derived()
        # A state file may be in a transient hold, for example while the index was just updated.
        while self._coordinator.unfinished() and time.monotonic() < deadline:
            self._finish_until(deadline)
            write_derived()
        follower.watch_agents()
        follower.sum_up()
        self._headline = follower.headline

    def _finish_until(self, deadline_s: float) -> None:
        """Process what time alone settles, up to a deadline on the monotonic clock."""
        while (late := self._coordinator.unfinished()) and time.monotonic() < deadline_s:
            time.sleep(RETRY_S)
            self._coordinator.process(late)

    def stop(self) -> None:
        """Ask the daemon to finish the work in hand and end."""
        self._is_stopping = True
        self._queue.wake()

    def _start(self) -> None:
        """Start; neither a broken lease nor a closed pipe may end the process."""
        ignore_lease_breaks()
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        self._emit("daemon.started", "", {"pid": os.getpid()})

    def _end(self) -> None:
        with contextlib.ExitStack() as parts:
            parts.callback(self._packs.end)
            for part in (self._team_link, self._coordinator):
                parts.callback(part.close)
            self._observer.close()
            self._read_observer_messages(time.monotonic())
            if not self._is_gone() and self._lock.still_mine():
                with contextlib.suppress(OSError, YoloError):
                    self._process_written()  # such as a state file that the observer has just made
            self._watch_set.stop()
            if not self._is_gone():
                self._remove_temporaries()  # an observer of a daemon that was killed may die later
                self._coordinator.sync_index()
                self._write_health(running=False)
                self._emit("daemon.stopped", "", {"pid": os.getpid()})

    def _is_running(self) -> bool:
        return not self._is_stopping

    def _is_gone(self) -> bool:
        """Return whether the repository or the work tree is gone or being deleted.

        A file created now would block its deletion. The git directory of a deleted work tree may
        remain.
        """
        return (
            _identity(self._repository.own_dir) != self._own_identity
            or _identity(self._link) != self._link_identity
        )

    @property
    def moved_to(self) -> str | None:
        """The new path of the work tree, if `git worktree move` moved it; None otherwise."""
        if _identity(self._link) == self._link_identity:
            return None
        content = content_of(f"{self._repository.git_dir}/gitdir", _LONGEST_PLACE)
        link = os.fsdecode(content).strip()
        is_ours = bool(link) and _identity(link) == self._link_identity
        return os.path.dirname(link) if is_ours else None

    # --- one turn ---

    def _turn(self) -> None:
        now, batch = self._take(self._schedule.sleep_s())
        if self._has_only_recent_commits(batch, now):
            self._schedule.ask("artifacts", in_s=self._settle_s)
            return
        if troubles := self._schedule.troubles:
            self._schedule.hasten("watches")  # a repository half deleted is soon gone
            if self._due and any(trouble.duty == "artifacts" for trouble in troubles):
                self._schedule.hasten("rescan")
        self._schedule.run_due(self._is_running)

    def _take(self, timeout_s: float) -> tuple[float, Batch]:
        """Take the queued events, schedule their paths, and return monotonic time and events."""
        batch, now = self._queue.take(timeout_s), time.monotonic()
        self._read_observer_messages(now)
        for path in batch.paths:
            is_young = now - self._committed_at.get(path, -math.inf) < self._settle_s
            self._due[path] = now + self._settle_s if is_young else now
        for why in batch.rescans:
            self._emit("daemon.doubt", "", {"why": why})
            self._schedule.hasten("rescan")
        return now, batch

    def _read_observer_messages(self, now: float) -> None:
        """Handle the observer's messages: its events, and the files that it wrote for us to
        commit.
        """
        for message in self._observer.receive_all():
            match message:
                case {"event": [str(event), str(path), dict(data)]}:
                    self._emit(event, path, data)
                case {"wrote": list(paths)}:
                    self._due |= dict.fromkeys(paths, now)
                case {
                    "headline": str(headline),
                    "troubles": list(troubles),
                    "standing": list(standing),
                    "waiting": dict(waiting),
                }:
                    self._waiting = waiting
                    self._standing = tuple(map(str, standing))
                    self._headline, self._troubles = headline, tuple(read_troubles(troubles))

    def _has_only_recent_commits(self, batch: Batch, now: float) -> bool:
        """Return whether all events are of files committed a moment ago, such as our own writes."""
        are_young = bool(batch.paths) and all(self._due[path] > now for path in batch.paths)
        schedule = self._schedule
        is_else = batch.rescans or batch.is_rung or schedule.troubles or not schedule.sleep_s()
        return are_young and not is_else

    def _process(self, paths: Iterable[str]) -> None:
        """Check paths and commit what is accepted."""
        self._follow_up(self._coordinator.process(paths))

    def _follow_up(self, results: Iterable[CommitResult]) -> None:
        """Schedule the duties that follow a check of paths."""
        now = time.monotonic()
        young = {path: at for path, at in self._committed_at.items() if now - at < self._settle_s}
        self._committed_at = young | {each.path: now for each in results}
        self._ask_to_follow("packs")
        self._schedule.ask("autofix")
        self._schedule.ask("team", in_s=TEAM_REST_S)
        if self._coordinator.unfinished():
            self._schedule.ask("retries", in_s=RETRY_S)

    def _ask_to_follow(self, *more: str) -> None:
        """Schedule the duties that follow commits; in a team, after the turn of the others."""
        rest_s = TEAM_FOLLOW_S if self._team_link.is_joined else 0.0
        self._schedule.ask("index", in_s=0.0 if self._coordinator.index.pending else rest_s)
        self._schedule.ask("news", *more, in_s=rest_s)

    @property
    def _settle_s(self) -> float:
        return self._settings.policy.settle_ms / 1000

    # --- the duties ---

    def _check_watches(self) -> float:
        """Stop if the lock or the repository is lost; watch new folders."""
        if self._is_gone():
            self._is_stopping = True
        elif not self._lock.still_mine():
            self._emit("daemon.lock_lost", "", {"reason": Reason.LOCK_LOST.value})
            self._is_stopping = True
        else:
            if self._watch_set.watch(self._settings.roots):
                self._schedule.hasten("rescan")
            self._watch_set.check()
        return CHECK_EVERY_S

    def _reload_settings(self) -> None:
        """Apply a changed configuration; an invalid one is reported, and the old one stays."""
        stamps = stamps_of(self._repository.root)
        if stamps == self._stamps:
            return
        try:
            self._settings = load(self._repository.root)
        except YoloError as error:
            self._stamps = stamps
            self._emit("config.rejected", CONFIG, error.as_finding().as_json())
            return
        coordinator = self._coordinator
        self._team_link.close()
        self._coordinator = self._make_coordinator()
        self._scan = None
        coordinator.close()
        self._stamps = stamps
        self._watch_set.watch(self._settings.roots)
        self._schedule.hasten("rescan")
        self._emit("config.loaded", CONFIG, {})

    def _remove_temporaries(self) -> None:
        """Remove the temporary files of killed writers, in every folder that we write to."""
        for folder in (self._repository.own_dir, *folders_written_to(self._repository.root)):
            reap_temporaries(folder)

    def _recover(self) -> None:
        self._remove_temporaries()
        for repair in recover(self._repository, self._coordinator):
            self._emit("repository.repaired", repair.path, {"what": repair.what})

    def _process_written(self) -> float | None:
        """Check the due paths; a path just committed waits, because more may be appended."""
        now = time.monotonic()
        due = [path for path, at in self._due.items() if at <= now]
        if due:
            self._process(due)
            for path in due:
                del self._due[path]
        return min(self._due.values()) - time.monotonic() if self._due else None

    def _sync_with_team(self) -> float | None:
        """Receive what the team has, and publish what it lacks."""
        before = self._repository.head()
        parts = self._coordinator
        standing = self._team_link.look(self._settings, parts.committer, parts.obstacles)
        if standing and standing.done and (head := self._repository.head()) != before:
            parts.take_note(before, head)
            self._committed_at |= dict.fromkeys(standing.received, time.monotonic())
            self._ask_to_follow("received")
        return TEAM_EVERY_S if standing and standing.is_moving else None

    def _process_unfinished(self) -> float | None:
        """Check again what time alone settles, with growing pauses: a disk may be full for long."""
        if late := (*self._coordinator.waiting(), *self._coordinator.released()):
            self._process(late)
        unfinished = self._coordinator.unfinished()
        is_same = unfinished == self._unfinished
        self._retry_s = min(LONGEST_RETRY_S, 1.1 * self._retry_s) if is_same else RETRY_S
        self._unfinished = unfinished
        return self._retry_s if unfinished else None

    def _repair_refused(self) -> float | None:
        """Repair what is refused and leaves its author nothing to decide, if the user wants so."""
        if self._settings.policy.autofix != "safe" or self._coordinator.obstacle():
            return None
        parts = self._coordinator
        mended, again_s = self._autofix.mend(parts.refused, parts.is_kept, self._settle_s)
        for file in mended:
            self._emit("artifact.autofixed", file.path, file._asdict())
        if mended:
            self._process([file.path for file in mended])
        return again_s

    def _rescan(self) -> float:
        """Scan everything, a little per turn, so that new writes are handled first."""
        if self._scan is None:
            self._scan_began, self._due_before_scan = time.monotonic(), dict(self._due)
            self._scan = self._coordinator.scan()
        until_s = time.monotonic() + SCAN_STEP_S
        try:
            for _ in self._scan:
                if time.monotonic() > until_s:
                    return 0.0
        except BaseException:
            self._scan = None
            raise
        self._scan, began, before = None, self._scan_began, self._due_before_scan
        self._follow_up(self._coordinator.results)
        # Events since the start of the scan may concern paths that it had already passed.
        self._due = {path: at for path, at in self._due.items() if before.get(path) != at}
        failpoint.reach("daemon.scanned")
        parts, after_s = self._coordinator, self._settings.policy.rescan_s
        self._stuck.look(parts.unsettled, parts.known, after_s)
        self._reported = None
        if not self._is_blind():
            return self._settings.policy.rescan_s
        degraded = self._watch_set.degraded
        if degraded and degraded.reason is Reason.WATCH_LIMIT:  # not where the tree is just going
            self._schedule.hasten("health")
        rest = BLIND_RESCAN_REST * (time.monotonic() - began)
        return min(self._settings.policy.rescan_s, max(BLIND_RESCAN_S, rest))

    def _is_blind(self) -> bool:
        """Return whether a file can be written without an event."""
        is_failing = any(trouble.duty == "watches" for trouble in self._schedule.troubles)
        return is_failing or self._watch_set.degraded is not None

    def _sync_index(self) -> float | None:
        """Update the user's index to our commits: until then, a `git commit` undoes ours."""
        if not self._coordinator.index.pending:
            self._coordinator.index.read_ahead()
            return None
        began = time.monotonic()
        self._coordinator.sync_index()
        return min(INDEX_EVERY_S, INDEX_REST * (time.monotonic() - began))

    def _merge_packs(self) -> float | None:
        """Merge our packs when there are many, and the remaining ones when the daemon is idle."""
        merges = self._packs.merges
        is_under_way = self._packs.step()
        if self._packs.merges > merges:
            self._coordinator.renew_helpers()
        if is_under_way:
            return PACKS_STEP_S
        if time.monotonic() >= self._hand_over_at and self._packs.hand_over():
            self._hand_over_at = time.monotonic() + HANDED_OVER_AFTER_S / 2
        aside_s = PACKS_ASIDE_S if self._packs.keeps_any_aside else None
        quiet_s = time.monotonic() - max(self._committed_at.values(), default=-math.inf)
        if self._packs.fresh >= MERGE_FROM or quiet_s >= PACKS_REST_S:
            self._packs.begin(most=REST_MOST)
            return PACKS_STEP_S if self._packs.step() else aside_s
        return aside_s or PACKS_REST_S

    def _keep_observer(self) -> float:
        self._observer.keep()
        self._tell_observer()
        return OBSERVER_EVERY_S

    def _tell_observer(self) -> None:
        self._observer.send_changes(self._tip, self._coordinator.unsettled)

    def _return_memory(self) -> float:
        return_free_memory()
        return TIDY_EVERY_S

    def _report_health(self) -> float:
        state = self._tip, self._observed_state
        if state != self._reported:
            self._write_health()
            self._reported = state
        return CHECK_EVERY_S

    @property
    def _observed_state(self) -> _Observed:
        return _Observed(
            self._headline,
            self._schedule.troubles + self._troubles,
            self._standing,
            self._stuck.among(self._coordinator.unsettled),
            self._waiting,
        )

    def _write_health(self, *, running: bool = True) -> None:
        seen = self._observed_state
        write_health(
            self._repository,
            self._coordinator.unsettled.values(),
            self._watch_set.degraded,
            seen.troubles,
            seen.headline,
            seen.standing,
            lasting_findings(seen.stuck),
            seen.waiting,
            late_s=late_s(self._settings.policy),
            running=running,
        )

    @property
    def _tip(self) -> str | None:
        return self._repository.head().tip


DUTIES: tuple[Duty[Daemon], ...] = (
    Duty("watches", Daemon._check_watches),
    Duty("configuration", Daemon._reload_settings, is_wanted=lambda _daemon: True),
    Duty("recovery", Daemon._recover),
    Duty("artifacts", Daemon._process_written, is_wanted=lambda daemon: bool(daemon._due)),
    Duty("team", Daemon._sync_with_team, is_wanted=lambda daemon: daemon._team_link.is_due()),
    Duty("autofix", Daemon._repair_refused),
    Duty("retries", Daemon._process_unfinished),
    Duty(
        "rescan", Daemon._rescan, is_wanted=lambda daemon: daemon._coordinator.was_moved_by_others()
    ),
    Duty("index", Daemon._sync_index),
    Duty("received", lambda daemon: daemon._team_link.sync_files()),
    Duty("news", Daemon._tell_observer),
    Duty(
        "packs",
        Daemon._merge_packs,
        is_wanted=lambda daemon: daemon._packs.fresh >= MERGE_FROM and not daemon._packs.is_merging,
    ),
    Duty(
        "health",
        Daemon._report_health,
        is_wanted=lambda daemon: (
            daemon._reported is None or daemon._reported[1] != daemon._observed_state
        ),
    ),
    Duty("observer", Daemon._keep_observer),
    Duty("memory", Daemon._return_memory),
)
"""The daemon's duties, in the order of a turn: commits first, then what follows from them."""


def _identity(path: str) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino)


def stop_on_signals(daemon: Daemon) -> None:
    """Make SIGTERM, SIGINT and SIGHUP end the daemon cleanly, and a second one at once.

    An ignored SIGHUP, as under nohup, stays ignored.
    """
    signals = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)

    def stop(_number: int, _frame: object) -> None:
        for number in signals:
            signal.signal(number, signal.SIG_DFL)
        daemon.stop()

    for number in signals:
        signal.signal(number, stop)
