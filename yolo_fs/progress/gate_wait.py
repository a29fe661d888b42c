"""Gates between those who open them and those who wait: the daemon's notice, and `gate wait`.

The daemon replaces one small file when a gate opens or closes, and touches it after each evaluation
of the gates. A waiter polls that file's stamp. The notice only saves the waiter from reading the
branch. It reads the branch itself when no daemon runs or the daemon stays silent.

There may be hundreds of waiters, so each stays small: a look needs git and all the rules, and runs
in a process of its own. See docs/dev/faults.md#f58.
"""

from __future__ import annotations

import gc
import json
import os
import random
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.system.files import Stamp, stamp_at
from yolo_fs.system.lock import holder
from yolo_fs.system.store import read_json, write_json
from yolo_fs.system.warm_path import owners_of

POLL_S = 0.05
"""Interval at which a waiter checks the stamp of the daemon's notice."""
DAEMON_POLL_S = 1.0
"""Interval at which it checks whether the daemon lives and, while it does, whether the branch
moved."""
ALONE_POLL_S = 0.1
"""The same while no daemon lives."""
DOUBT_S = 5.0
"""How long a living daemon may leave a move of the branch unjudged."""

OpenGates = Mapping[str, Sequence[str]]
"""Phase → names of its open gates."""


class Notice(NamedTuple):
    """What the daemon wrote last."""

    id: str = ""
    """Differs from that of every earlier notice."""
    commit: str = ""
    """Commit that the gates were judged at."""
    open: OpenGates | None = None


def read_notice(path: str) -> Notice:
    """Return the daemon's notice; a blank one without it, or if others could have written it."""
    if not _is_private(os.path.dirname(path)):
        return Notice()
    match read_json(path):
        case {"id": str(id_), "commit": str(commit), "open": dict(open_)} if all(
            isinstance(names, list) for names in open_.values()
        ):
            return Notice(id_, commit, open_)
    return Notice()


def _is_private(folder: str) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid in owners_of(folder)
    return is_ours and not status.st_mode & 0o022


class NoticeWriter:
    """Writes the daemon's notice."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._written: OpenGates | None = None

    def write(self, open_: OpenGates, commit: str) -> None:
        """Write which gates are open.

        When the disk is full, waiters look for themselves after a while.
        """
        try:
            if open_ == self._written:
                os.utime(self._path, follow_symlinks=False)
                return
            notice = {"id": os.urandom(8).hex(), "commit": commit, "open": dict(open_)}
            write_json(self._path, notice, durable=False)
            self._written = open_
        except (OSError, YoloError):
            self._written = None


class GateLook(NamedTuple):
    """Result of one look at the branch, and the files that change before another look can
    differ.
    """

    phase: str
    gates: Sequence[Mapping[str, Any]]
    """Those that are waited for: `gate`, `open`, `missing`."""
    departments: Sequence[Mapping[str, Any]]
    """How far each department is and what it lacks."""
    commit: str
    stamps: Mapping[str, Stamp | None]
    """Files that the answer depends on → their stamps before the look."""
    notice: str
    """Id of the daemon's notice before the look: only a later one is news."""
    notices: str
    """Path of the notice."""
    lock: str
    """Path of the lock that a living daemon holds."""
    timeout_s: float
    """Default timeout, where the command line has none."""

    @property
    def is_open(self) -> bool:
        """Whether all of the gates are open."""
        return all(gate["open"] for gate in self.gates)

    def is_outdated(self) -> bool:
        """Return whether another look may have another result."""
        return any(stamp_at(path) != before for path, before in self.stamps.items())


class GateWaitResult(NamedTuple):
    """Result of waiting."""

    look: GateLook
    """The last look. It does not include a later notice of the daemon."""
    notice: Notice | None
    """The notice that ended the waiting; None when a look or the timeout did."""
    woke_at_ns: int
    """When the waiter learned the result."""
    waited_s: float

    @property
    def is_open(self) -> bool:
        """Whether all of the gates are open."""
        return self.notice is not None or self.look.is_open


def wait(look: Callable[[], GateLook], timeout_s: float | None = None) -> GateWaitResult:
    """Wait until all the gates are open, or until the timeout."""
    began = time.monotonic()
    seen = look()
    deadline = began + (seen.timeout_s if timeout_s is None else timeout_s)
    gc.freeze()  # many end at one moment: none should walk its whole heap before it exits
    seen, notice = _wait_until_open(look, seen, deadline)
    woke_at_ns = time.time_ns()
    if notice:
        time.sleep(2 * POLL_S)  # let the other waiters read the notice before this one answers
    return GateWaitResult(seen, notice, woke_at_ns, time.monotonic() - began)


def _wait_until_open(
    look: Callable[[], GateLook], seen: GateLook, deadline: float
) -> tuple[GateLook, Notice | None]:
    while not seen.is_open:
        notice = _Sleep(seen).until_news(deadline)
        is_over = time.monotonic() >= deadline
        if notice or (is_over and not seen.is_outdated()):
            return seen, notice
        try:
            seen = look()
        except YoloError:  # such as a configuration that is half written: try again
            if is_over:
                raise
            time.sleep(DAEMON_POLL_S)
        if is_over:
            break
    return seen, None


class _Sleep:
    """The pause between two looks."""

    def __init__(self, seen: GateLook) -> None:
        self._seen = seen
        self._patience = random.uniform(1, 2)  # so that a hundred waiters do not look at once
        self._read: Stamp | None = None
        """Stamp of the last notice that was read."""

    def until_news(self, deadline: float) -> Notice | None:
        """Return the notice that all gates are open; None when a look is due, or time is over."""
        check_at = 0.0
        while True:
            is_served = False
            if is_check := time.monotonic() >= check_at:
                is_served = self._is_daemon_alive()
                check_at = time.monotonic() + (DAEMON_POLL_S if is_served else ALONE_POLL_S)
            if notice := self._find_opening_notice():
                return notice
            left_s = deadline - time.monotonic()
            if left_s <= 0 or (is_check and self._is_look_due(is_served=is_served)):
                return None
            time.sleep(min(POLL_S, left_s))

    def _find_opening_notice(self) -> Notice | None:
        """Return a notice that is younger than the look and says that all gates are open.

        Its commit may be older than that of the look, when the branch was moved back meanwhile. The
        gates were then open at some moment of the wait, which is all that waiting can promise.
        """
        stamp = stamp_at(self._seen.notices)
        if stamp is None or stamp == self._read:
            return None
        self._read = stamp
        notice = read_notice(self._seen.notices)
        if notice.id in ("", self._seen.notice) or notice.open is None:
            return None
        open_gates = notice.open.get(self._seen.phase, ())
        is_open = all(gate["gate"] in open_gates for gate in self._seen.gates)
        return notice if is_open else None

    def _is_daemon_alive(self) -> bool:
        try:
            return holder(self._seen.lock) is not None
        except YoloError:
            return False

    def _is_look_due(self, *, is_served: bool) -> bool:
        """Return whether the branch moved and no daemon seems to judge it."""
        if not self._seen.is_outdated():
            return False
        if not is_served:
            return True
        stamps = filter(None, map(stamp_at, self._seen.stamps))
        moved_ns = max((stamp.ctime_ns for stamp in stamps), default=0)
        judged = stamp_at(self._seen.notices)
        if judged and judged.ctime_ns > moved_ns:
            return False
        return time.time_ns() - moved_ns > self._patience * DOUBT_S * 1e9


def look_aside(start: str, phase: str, names: Sequence[str]) -> GateLook:
    """Look at the branch in another process.

    Raises:
        YoloError: what the look raised there; INTERNAL_ERROR when it ended without an answer.
    """
    # -P: the user's repository must not shadow our modules.
    command = [sys.executable, "-P", "-m", "yolo_fs.progress.gates", start, phase, *names]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    answer = json.loads(done.stdout) if done.stdout else {}
    if done.returncode == 0:
        stamps = {path: _build_stamp(parts) for path, parts in answer.pop("stamps").items()}
        return GateLook(stamps=stamps, **answer)
    if answer:
        raise YoloError(
            Reason.of(answer["reason"]),
            answer["message"],
            hint=answer["hint"],
            exit_code=Exit(answer["exit"]),
        )
    last_line = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    message = f"the look ended with {done.returncode}: {last_line}"
    raise YoloError(Reason.INTERNAL_ERROR, message)


def _build_stamp(parts: Sequence[int] | None) -> Stamp | None:
    return None if parts is None else Stamp(*parts)
