"""The connection between this repository and its team's branch, in the background.

It runs in a thread and with git processes of its own: however slow or broken the network is, the
daemon goes on.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.artifacts.decide import EventSink
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.git.commit import Committer
from yolo_fs.git.obstacles import Obstacles
from yolo_fs.git.repository import Head, Repository
from yolo_fs.system.files import Stamp, stamp_at
from yolo_fs.system.notifier import Notifier
from yolo_fs.system.store import make_folders, write_json
from yolo_fs.system.watch import Watcher
from yolo_fs.team.membership import Membership, membership_of
from yolo_fs.team.remote_sync import BUSY_S, QUIET_S, ExchangeResult, RemoteSync
from yolo_fs.team.synchronizer import (
    SyncStatus,
    TeamSynchronizer,
)
from yolo_fs.workspace.own_files import TEAM, TEAM_LANE
from yolo_fs.workspace.settings import Settings

HEARD_S = 0.5
"""Shortest interval between two looks at the remote, however many notices come."""
_STILL_BUSY = 10
"""Exchanges without moves before the pauses grow: agents think between two artifacts."""
_SLOWER = 1.5
"""Factor by which each pause is longer than the one before, while nothing moves."""
LONGEST_RETRY_S = 4.0
"""Longest pause between two attempts to reach a remote that is away."""


@dataclass
class _Pace:
    """The pause before the next exchange."""

    rest_s: float = BUSY_S
    failures: int = 0
    quiet: int = 0
    """Exchanges in a row in which nothing moved."""

    def after(self, exchange: ExchangeResult) -> None:
        self.failures = 0
        is_moving = exchange.moved or bool(exchange.waiting and not exchange.held)
        self.quiet = 0 if is_moving else self.quiet + 1
        is_busy = self.quiet <= _STILL_BUSY
        self.rest_s = BUSY_S if is_busy else min(QUIET_S, self.rest_s * _SLOWER)

    def after_failure(self) -> None:
        self.failures += 1
        longest = min(LONGEST_RETRY_S, BUSY_S * 2 ** min(self.failures, 10))
        self.rest_s = random.uniform(longest / 2, longest)


class RemoteSyncThread:
    """Exchanges again and again, in a thread of its own, until it is stopped."""

    def __init__(self, start: str, settings: Settings, membership: Membership):
        self._start_at = start
        self._settings = settings
        self._membership = membership
        self._events: queue.SimpleQueue[tuple[str, str, Mapping[str, Any]]] = queue.SimpleQueue()
        self._wanted = threading.Event()
        self._is_stopping = self._is_poked = self._has_rung = False
        self._reported: object = None
        self._kept: object = None
        self._silence = ""
        """Why no notices of others are received; empty while they are, and where there are none."""
        self._thread = threading.Thread(target=self._run, name="team-lane", daemon=True)

    def start(self, wake: Callable[[], None]) -> None:
        """Start the thread. It calls `wake` when there is something to report."""
        self._wake = wake
        self._thread.start()

    def has_news(self) -> bool:
        """Return whether there is something to report."""
        return not self._events.empty()

    def _emit(self, event: str, path: str, data: Mapping[str, Any]) -> None:
        self._events.put((event, path, data))
        self._wake()

    def emit_events(self, emit: EventSink) -> None:
        """Report, in the caller's thread, what has happened since the last call."""
        while not self._events.empty():
            emit(*self._events.get())

    def poke(self) -> None:
        """Exchange now: there is something to publish."""
        self._is_poked = True
        self._wanted.set()

    def _on_notice(self, _ref: str, _oid: str) -> None:
        """Exchange soon: others have announced that they published."""
        if not self._has_rung:
            self._has_rung = True
            self._wanted.set()

    def stop(self) -> None:
        """Stop after the current exchange. One that hangs is left behind, and can do no harm."""
        self._is_stopping = True
        self._wanted.set()
        self._thread.join(timeout=2.0)

    def _note_connection(self, silence: str) -> None:
        if silence and not self._silence:
            self._emit("team.bell_lost", "", {"what": safe(silence)})
        elif self._silence and not silence:
            self._emit("team.bell_back", "", {})
        self._silence = safe(silence)

    def _run(self) -> None:
        pace, membership = _Pace(), self._membership
        with Repository(self._start_at) as repository, contextlib.ExitStack() as cleanup:
            notifier: Notifier | None = None
            if membership.lane:
                address = repository.config(f"remote.{membership.remote}.url") or membership.remote
                subject = _subject(address, membership.team)
                notifier = Notifier(
                    membership.lane, subject, self._on_notice, self._note_connection
                )
                notifier.start()
                cleanup.callback(notifier.stop)
            sync = RemoteSync(repository, self._settings, membership, self._emit, notifier)
            while not self._is_stopping:
                began = time.monotonic()
                self._is_poked = self._has_rung = False
                self._exchange(repository, sync, pace)
                if pace.failures:
                    self._sleep(pace.rest_s)
                else:
                    self._rest(began, min(pace.rest_s, sync.due_in_s))

    def _rest(self, began: float, seconds: float) -> None:
        """Wait, unless there is something to publish.

        However many notices come, one is followed in each `HEARD_S`.
        """
        until = time.monotonic() + seconds
        while not (self._is_stopping or self._is_poked):
            self._wanted.clear()
            left = until - time.monotonic()
            if self._has_rung:
                left = min(left, began + HEARD_S - time.monotonic())
            if left <= 0:
                break
            if not self._is_poked:
                self._wanted.wait(left)

    def _sleep(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._is_stopping and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(0.2, left))

    def _exchange(self, repository: Repository, sync: RemoteSync, pace: _Pace) -> None:
        began = time.monotonic()
        try:
            membership_of(repository)  # its remote may have another address by now
            exchange = sync.exchange()
            if sync.follow_silent(exchange):
                exchange = sync.exchange()
            sync.renew_leases()
            sync.give_back()
        except YoloError as error:
            pace.after_failure()
            self._note(repository, error.reason.value, error.message)
        except Exception as defect:  # a defect of it must not cost the daemon
            pace.after_failure()
            self._note(repository, Reason.INTERNAL_ERROR.value, safe(repr(defect)))
        else:
            pace.after(exchange)
            refused = next((each for each in exchange.held if not each.path), None)
            failure = (refused.reason.value, refused.what) if refused else ("", "")
            self._note(repository, *failure, round_trip_s=time.monotonic() - began)

    def _note(
        self, repository: Repository, reason: str, what: str, *, round_trip_s: float = 0.0
    ) -> None:
        """Report a change of the state, and store it where `team status` reads it."""
        state = {"reason": reason, "what": what}
        known = {**state, "silence": self._silence}
        if known == self._kept:
            return
        if state != self._reported:
            if reason:
                self._emit("team.remote_failed", "", state)
            elif self._reported is not None:
                self._emit("team.remote_back", "", {})
        self._reported, self._kept = state, known
        more = {"at": iso(time.time()), "round_trip_s": round_trip_s}
        with contextlib.suppress(OSError, YoloError):
            write_json(TEAM_LANE.path(repository), {**known, **more}, durable=False)


def _subject(address: str, team: str) -> str:
    """Return the subject of a team's notices. It is the same for all ways to name a remote.

    Notices of others there only cost a look.
    """
    name = re.split(r"[/:\\]", address.rstrip("/"))[-1].removesuffix(".git").lower()
    return f"yolo-fs.{re.sub(r'[^a-z0-9-]', '-', name) or 'remote'}.{team}"


class TeamLink:
    """Decides when the work tree has to look at its team, and looks."""

    def __init__(self, repository: Repository, emit: EventSink, wake: Callable[[], None]):
        """`wake` is called, from another thread, when the team's ref has moved."""
        self._emit = emit
        self._sync_thread: RemoteSyncThread | None = None
        self._repository = repository
        self._wake = wake
        self._choice: Stamp | None = None
        """Stamp of the file with the user's choice when it was read."""
        self._synchronizer: TeamSynchronizer | None = None
        self._watcher: Watcher | None = None
        self._seen: tuple[Head, str | None] | None = None
        """Branch and team as the last look left them."""

    @property
    def is_joined(self) -> bool:
        """Whether the last look was at a team."""
        return self._synchronizer is not None

    def is_due(self) -> bool:
        """Return whether the choice, the branch or the team's ref has changed since the last look.

        What the branch has for a remote is checked later: whoever waits for a commit comes first.
        """
        if stamp_at(TEAM.path(self._repository)) != self._choice:
            return True
        if self._synchronizer is None:
            return False
        head, tip = self._seen or (None, None)
        if self._sync_thread is not None:
            return self._sync_thread.has_news() or tip != self._synchronizer.team_tip()
        return (head, tip) != (self._repository.head(), self._synchronizer.team_tip())

    def look(
        self, settings: Settings, committer: Committer, obstacles: Obstacles
    ) -> SyncStatus | None:
        """Look once; None where no team was joined."""
        choice = stamp_at(TEAM.path(self._repository))
        if choice != self._choice or self._synchronizer is None:
            self.close()
            membership = membership_of(self._repository)
            self._choice = choice
            if membership is None:
                return None
            ours = (self._repository, settings, membership, committer, obstacles, self._emit)
            self._synchronizer = TeamSynchronizer(*ours)
            self._watch(membership)
            if membership.remote:
                self._sync_thread = RemoteSyncThread(self._repository.root, settings, membership)
                self._sync_thread.start(self._wake)
        status = self._synchronizer.look()
        self._seen = (self._repository.head(), status.tip)
        if self._watcher:
            self._watcher.check()
        if self._sync_thread:
            self._sync_thread.emit_events(self._emit)
            if status.publish:
                self._sync_thread.poke()
        return status

    def sync_files(self) -> None:
        """Make what was received durable in the work tree as well."""
        if self._synchronizer:
            self._synchronizer.sync_files()

    def close(self) -> None:
        """Forget the team, and stop watching its ref."""
        self.sync_files()
        if self._sync_thread:
            self._sync_thread.stop()
            self._sync_thread.emit_events(self._emit)
        if self._watcher:
            self._watcher.stop()
        self._synchronizer = self._watcher = self._sync_thread = self._seen = self._choice = None

    def _watch(self, membership: Membership) -> None:
        """Ring when the ref moves. Where refs are not files, the move is found a moment later."""
        folder, name = os.path.split(f"{self._repository.common_dir}/{membership.ref}")
        with contextlib.suppress(YoloError):
            make_folders(folder, root=self._repository.common_dir)
        self._watcher = Watcher(
            folder,
            lambda _path, _hint: self._wake(),
            lambda _why: self._wake(),
            wants=lambda path: path == name,
        )
        self._watcher.start()
