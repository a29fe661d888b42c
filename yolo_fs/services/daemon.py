"""The daemon: one per work tree, one worker, correct with every event dropped.

Events say "look at this path"; the reconcile scan is the source of truth. See docs/faults.md#f06 to
#f20, #f36 and #f40.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from yolo_fs.edges import failpoint
from yolo_fs.edges.files import ignore_lease_breaks
from yolo_fs.edges.git.commit import CommitResult
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.lock import HeldLock
from yolo_fs.edges.store import reap_temporaries
from yolo_fs.reasons import Reason, YoloError
from yolo_fs.rules.states.project import summary_line
from yolo_fs.services.apply import Telling
from yolo_fs.services.context.store import ContextStore
from yolo_fs.services.coordinator import Coordinator
from yolo_fs.services.crew.observing import CrewObserver
from yolo_fs.services.crew.watching import CrewWatch
from yolo_fs.services.escalations.sinks import Sinks, load_sinks
from yolo_fs.services.escalations.ticking import Ticker
from yolo_fs.services.health import write_health
from yolo_fs.services.history.team import Team
from yolo_fs.services.inbox import Inbox
from yolo_fs.services.lookouts import Lookouts
from yolo_fs.services.progress.projector import Projector
from yolo_fs.services.progress.state_files import States
from yolo_fs.services.recovery import recover
from yolo_fs.services.settings import CONFIG, load, stamps_of

RETRY_S = 0.05
"""Between two looks at what waits to be judged, or at what holds everything up."""
LONGEST_PAUSE_S = 0.8
INDEX_EVERY_S = 0.1
"""The longest rest between two refreshes of the user's index: until then what was committed looks deleted to git."""
INDEX_REST = 9
"""The rest is so many times as long as the refresh, for which the user's git has to wait."""
CHECK_EVERY_S = 2.0
"""Between two looks at the lock, the watcher and the repository itself."""
TICK_S = 1.0
"""Between two looks at the escalations that wait for somebody."""
CREW_S = 5.0
"""Between two looks at the crew while nobody gives a sign: whose silence counts is silent for minutes."""
TROUBLE_S = 1.0
"""After a turn that failed."""
ONCE_PATIENCE_S = 2.0
"""How long `run --once` waits for files that are being written."""


@dataclass
class _Clocks:
    """When each periodic duty is due next, on the monotonic clock."""

    rescan_at: float = 0.0
    check_at: float = 0.0
    index_at: float = 0.0
    retry_at: float = 0.0
    tick_at: float = 0.0
    crew_at: float = 0.0
    pause_s: float = 0.0
    """Between two retries, as long as they bring nothing further."""
    unfinished: tuple[str, ...] = ()
    """What the last retry was about."""
    held_back: dict[str, float] = field(default_factory=dict)
    """Paths committed a moment ago → when the next look at them is due, so that a run of appends is one commit."""


class Daemon:
    """Runs until told to stop, until its lock is lost, or until the repository is gone.

    The lock and the repository belong to the caller, who closes them afterwards.
    """

    def __init__(self, repository: Repository, lock: HeldLock, tell: Telling):
        self._repository = repository
        self._lock = lock
        self._tell = tell
        self._stamps = stamps_of(repository.root)
        self._settings = load(repository.root)
        self._sinks = Sinks(load_sinks(), tell)
        self._furnish()
        self._inbox = Inbox()
        self._lookouts = Lookouts(repository.root, self._inbox)
        self._git_identity = _identity(repository.git_dir)
        self._clocks = _Clocks()
        self._stopping = False
        self._trouble = ""
        """What made the last turn fail, so that it is told once."""
        self._committed_recently: dict[str, float] = {}
        self._told_of: str | None = None
        """The commit that the health was told of last."""

    def _furnish(self) -> None:
        """Make the parts that work by the settings in force."""
        repository, settings, tell = self._repository, self._settings, self._tell
        self._team = team = Team(repository, settings)
        self._coordinator = Coordinator(repository, settings, tell)
        self._projector = Projector(repository, settings, team, tell)
        self._contexts = ContextStore(repository, settings, team)
        self._states = States(repository, settings, team)
        self._ticker = Ticker(repository, settings, tell, notify=self._sinks.notify)
        self._crew = CrewWatch(
            repository, CrewObserver(repository, settings, team), tell, self._sinks.put
        )

    # --- life ---

    def run(self, ready: Callable[[], object] = lambda: None) -> None:
        """Watch and commit until `stop` is called; `ready` is called once the first scan is done."""
        _outlive_signals()
        self._tell("daemon.started", "", {"pid": os.getpid()})
        self._lookouts.keep(
            self._settings.roots
        )  # first watch, then scan: nothing falls between the two
        try:
            while not self._outlives(self._begin) and self._goes_on():
                pass
            ready()
            while self._goes_on():
                self._outlives(self._turn)
        finally:
            self._end()

    def run_once(self) -> None:
        """One full reconcile: commit what can be committed now, then end."""
        _outlive_signals()
        self._tell("daemon.started", "", {"pid": os.getpid()})
        try:
            self._begin()
            deadline = time.monotonic() + ONCE_PATIENCE_S
            while (late := self._coordinator.unfinished()) and time.monotonic() < deadline:
                time.sleep(RETRY_S)
                self._coordinator.round(late)
            self._project()
            self._tick()
            self._look_at_crew()
        finally:
            self._end()

    def stop(self) -> None:
        """Ask the daemon to finish the work in hand and end."""
        self._stopping = True
        self._inbox.wake()

    def _begin(self) -> None:
        reap_temporaries(self._repository.own_dir, 0)
        for fact in recover(self._repository, self._coordinator):
            self._tell("repository.repaired", fact.path, {"what": fact.what})
        self._coordinator.reconcile(thorough=True)
        failpoint.reach("daemon.scanned")
        self._project()
        self._say_health()

    def _end(self) -> None:
        self._lookouts.stop()
        if not _is_gone(self._repository.git_dir, self._git_identity):
            self._coordinator.let_index_follow()
            self._say_health(running=False)
            self._tell("daemon.stopped", "", {"pid": os.getpid()})
        self._sinks.close()
        self._coordinator.close()

    def _goes_on(self) -> bool:
        return not self._stopping and self._may_go_on()

    def _may_go_on(self) -> bool:
        now = time.monotonic()
        if now < self._clocks.check_at:
            return True
        self._clocks.check_at = now + CHECK_EVERY_S
        if _is_gone(self._repository.git_dir, self._git_identity):
            return False
        if not self._lock.still_mine():
            self._tell("daemon.lock_lost", "", {"reason": Reason.LOCK_LOST.value})
            return False
        if self._repository.head().tip != self._told_of:
            self._say_health()
        if self._lookouts.keep(self._settings.roots):
            self._clocks.rescan_at = 0.0
        self._lookouts.check()
        return True

    # --- one turn ---

    def _outlives(self, work: Callable[[], None]) -> bool:
        """Outlive work that fails: a disk may come back, a repository half deleted is soon gone (F07, F36)."""
        try:
            work()
        except (OSError, YoloError) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                self._tell("daemon.trouble", "", {"what": self._trouble})
            self._inbox.take(TROUBLE_S)
            self._clocks.check_at = self._clocks.rescan_at = (
                0.0  # whatever the mail said is found by the scan
            )
            return False
        self._trouble = ""
        return True

    def _turn(self) -> None:
        mail = self._inbox.take(self._sleep_s())
        if stamps_of(self._repository.root) != self._stamps:
            self._reload()
        self._round(mail.paths)
        self._retry()
        self._tick()
        self._look_at_crew()
        if (
            mail.doubts
            or time.monotonic() >= self._clocks.rescan_at
            or self._coordinator.moved_by_others()
        ):
            self._rescan(mail.doubts)
        self._follow_index()

    def _round(self, paths: Any) -> None:
        now = time.monotonic()
        due = []
        for path in paths:
            if now - self._committed_recently.get(path, -1e9) < self._settle_s:
                self._clocks.held_back[path] = now + self._settle_s
            else:
                due.append(path)
        if due:
            self._follow_up(self._coordinator.round(due))

    def _retry(self) -> None:
        now = time.monotonic()
        late = [path for path, at in self._clocks.held_back.items() if at <= now]
        for path in late:
            del self._clocks.held_back[path]
        if now >= self._clocks.retry_at:
            self._space_out_retries()
            late += self._coordinator.waiting()
            late += self._coordinator.released()
        if late:
            self._follow_up(self._coordinator.round(late))

    def _space_out_retries(self) -> None:
        """Wait longer and longer while the same paths stay unfinished: a full disk may stay full for hours (F06)."""
        unfinished = self._coordinator.unfinished()
        same = unfinished == self._clocks.unfinished
        self._clocks.pause_s = min(LONGEST_PAUSE_S, 2 * self._clocks.pause_s) if same else RETRY_S
        self._clocks.unfinished = unfinished
        self._clocks.retry_at = time.monotonic() + self._clocks.pause_s

    def _tick(self) -> None:
        """Hand up what a level is silent about, and commit the lines that say so."""
        now = time.monotonic()
        if now < self._clocks.tick_at:
            return
        self._clocks.tick_at = now + TICK_S
        if paths := dict.fromkeys(one.path for one in self._ticker.tick()):
            self._follow_up(self._coordinator.round(paths))

    def _look_at_crew(self) -> None:
        now = time.monotonic()
        if now >= self._clocks.crew_at or self._crew.is_pressing:
            self._clocks.crew_at = now + CREW_S
            self._crew.tick(self._coordinator.unsettled)

    def _rescan(self, doubts: tuple[str, ...]) -> None:
        for why in doubts:
            self._tell("daemon.doubt", "", {"why": why})
        self._clocks.rescan_at = time.monotonic() + self._settings.policy.rescan_s
        self._follow_up(self._coordinator.reconcile())
        self._say_health()

    def _project(self) -> None:
        try:
            self._projector.bring_up_to_date(
                self._repository.head().tip, self._coordinator.unsettled
            )
            self._keep_states()
            self._projector.bring_up_to_date(
                self._repository.head().tip, self._coordinator.unsettled
            )
            self._contexts.keep(self._repository.head().tip, self._coordinator.unsettled)
        except (OSError, YoloError) as error:
            reason = error.reason if isinstance(error, YoloError) else Reason.STORAGE_FAILED
            self._tell("projection.failed", "", {"reason": reason.value, "what": str(error)})

    def _keep_states(self) -> None:
        """Write and commit the state files until they say what history says, one transition after the other."""
        while path := self._states.write_next(self._repository.head().tip, self._coordinator.known):
            if not self._coordinator.round((path,)):
                return  # held like any artifact; it is committed, and the next one written, once nothing holds it

    def _follow_up(self, made: Sequence[CommitResult]) -> None:
        """Do what follows a round: the index first, since a user's `git commit` that comes before it undoes ours."""
        now = time.monotonic()
        self._committed_recently = {
            path: at for path, at in self._committed_recently.items() if now - at < self._settle_s
        } | {one.path: now for one in made}
        self._follow_index()
        self._project()

    def _follow_index(self) -> None:
        now = time.monotonic()
        if self._coordinator.follower.pending and now >= self._clocks.index_at:
            self._coordinator.let_index_follow()
            took_s = time.monotonic() - now
            self._clocks.index_at = now + took_s + min(INDEX_EVERY_S, INDEX_REST * took_s)

    def _sleep_s(self) -> float:
        """Return how long nothing is due, if no mail comes."""
        now = time.monotonic()
        due = [
            self._clocks.rescan_at,
            self._clocks.check_at,
            now + 1.0,
            *self._clocks.held_back.values(),
        ]
        if self._coordinator.unfinished():
            due.append(self._clocks.retry_at)
        if self._coordinator.follower.pending:
            due.append(self._clocks.index_at)
        return max(0.0, min(due) - now)

    @property
    def _settle_s(self) -> float:
        return self._settings.policy.settle_ms / 1000

    # --- around it ---

    def _reload(self) -> None:
        """Take over a changed configuration; an invalid one leaves the old in force and is told."""
        self._stamps = stamps_of(self._repository.root)
        try:
            self._settings = load(self._repository.root)
        except YoloError as error:
            self._tell("config.rejected", CONFIG, error.as_finding().as_json())
            return
        coordinator = self._coordinator
        self._furnish()
        coordinator.close()
        self._lookouts.keep(self._settings.roots)
        self._clocks.rescan_at = 0.0
        self._tell("config.loaded", CONFIG, {})

    def _say_health(self, *, running: bool = True) -> None:
        self._told_of = self._repository.head().tip
        verdicts = self._coordinator.unsettled.values()
        write_health(
            self._repository, verdicts, self._lookouts.degraded, self._headline(), running=running
        )

    def _headline(self) -> str:
        try:
            return summary_line(self._team.phases(self._told_of))
        except YoloError:
            return ""  # a damaged history is told by those who need more of it than this


def _outlive_signals() -> None:
    """A lease that breaks, and a helper of git or a reader of ours that is gone, must not end the process."""
    ignore_lease_breaks()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino)


def _is_gone(path: str, identity: tuple[int, int] | None) -> bool:
    return _identity(path) != identity


def stop_on_signals(daemon: Daemon) -> None:
    """Let TERM and INT end the daemon cleanly, and a second one at once."""

    def heed(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        daemon.stop()

    signal.signal(signal.SIGTERM, heed)
    signal.signal(signal.SIGINT, heed)
