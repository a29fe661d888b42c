"""Waits for gates: asleep until the daemon rings, and right without it, only slower.

There may be hundreds of waiters, so each stays small: it judges nothing itself. A look at the
branch takes git and the whole rule book, and happens in a process of its own that ends with its
answer. See docs/faults.md#f58.
"""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yolo_fs.edges.bell import Ear
from yolo_fs.edges.lock import holder
from yolo_fs.reasons import Exit, Reason, YoloError
from yolo_fs.services.progress.notices import Notice, read_notice

DAEMON_POLL_S = 1.0
"""Between two looks at whether the daemon lives, while it does."""
ALONE_POLL_S = 0.1
"""Between two looks at whether the branch moved, while no daemon tells."""
DOUBT_S = 5.0
"""How long a living daemon may say nothing about a branch that moved."""
LONG_DOUBT_S = 300.0
"""The same for a daemon that has judged something meanwhile, perhaps an earlier move. Both grow by a random part, so
that a hundred doubters do not look at one moment."""

YIELDS = 8
"""Measured with a hundred waiters on two cores: after one, Linux soon prefers who yielded to who has not run yet."""

Stamp = list[int] | None
"""What differs after a file was changed or replaced; None when it is not there."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the branch found, and what tells that another may find something else."""

    phase: str
    gates: Sequence[Mapping[str, Any]]
    """Those that are waited for: `gate`, `open`, `missing`."""
    departments: Sequence[Mapping[str, Any]]
    """How far each department is and what it lacks."""
    commit: str
    stamps: Mapping[str, Stamp]
    """Files that the answer depends on, as they were before it."""
    notice: str
    """Id of the daemon's notice before the look: only a later one is news."""
    notices: str
    """Path of the notice."""
    judged: Stamp
    """The notice's stamp before the look: it changes whenever the daemon has judged."""
    bell: str
    lock: str
    """Path of the lock that a living daemon holds."""
    timeout_s: float
    """How long to wait where the command line does not say."""

    @property
    def is_open(self) -> bool:
        """Whether all of the gates are open."""
        return all(gate["open"] for gate in self.gates)


@dataclass(frozen=True, slots=True)
class Waited:
    """How the waiting ended."""

    look: Look
    """The last look; what the daemon told since is not in it."""
    told: Notice | None
    """The notice that ended the waiting; None when a look did, or the time was over."""
    woke_at_ns: int
    """When it was known."""
    waited_s: float

    @property
    def is_open(self) -> bool:
        """Whether all of the gates are open."""
        return self.told is not None or self.look.is_open


def wait(look: Callable[[], Look], timeout_s: float | None = None) -> Waited:
    """Wait until all the gates are open, or until the time is over."""
    began = time.monotonic()
    seen = look()
    deadline = began + (seen.timeout_s if timeout_s is None else timeout_s)
    gc.freeze()  # many wake at one moment: none shall walk its whole heap before it ends
    with Ear(seen.bell) as ear:
        seen, told = _until_open(look, seen, ear, deadline)
    woke_at_ns = time.time_ns()
    _let_others_wake()
    return Waited(seen, told, woke_at_ns, time.monotonic() - began)


def _let_others_wake() -> None:
    """Step back for whoever else the bell woke: of a hundred, the last would wait until 99 have answered and ended."""
    for _ in range(YIELDS):
        os.sched_yield()


def _until_open(
    look: Callable[[], Look], seen: Look, ear: Ear, deadline: float
) -> tuple[Look, Notice | None]:
    while not seen.is_open:
        sleep = _Sleep(seen, ear)
        told = sleep.until_news(deadline)
        is_over = time.monotonic() >= deadline
        if told or (is_over and not sleep.has_moved()):
            return seen, told
        try:
            seen = look()
        except (
            YoloError
        ):  # a configuration half written, a git too slow: no reason to give up before the time
            if is_over:
                raise
            time.sleep(DAEMON_POLL_S)
        if is_over:
            break
    return seen, None


class _Sleep:
    """The time between one look and the next."""

    def __init__(self, seen: Look, ear: Ear) -> None:
        self._seen = seen
        self._ear = ear
        self._patience = random.uniform(1, 2)
        self._moved_at: float | None = None
        self._judged: Stamp = None
        """The notice's stamp when we noticed that the branch had moved."""
        self._is_new = True
        """Whether nobody has told us anything yet, because we did not listen."""

    def until_news(self, deadline: float) -> Notice | None:
        """Return the notice that says that all gates are open; None when it is time to look, or time is over."""
        while True:
            is_told = self._ear.listen() and self._daemon_lives()
            told = self._told()  # not before listening: what is told in between rings
            left_s = deadline - time.monotonic()
            if told or left_s <= 0 or self._should_look(is_told=is_told):
                return told
            if not is_told:
                time.sleep(min(ALONE_POLL_S, left_s))
            elif self._ear.wait(min(DAEMON_POLL_S, left_s)) and (told := self._told()):
                return told

    def has_moved(self) -> bool:
        """Tell whether another look may find something else than the last one."""
        return any(stamp(path) != before for path, before in self._seen.stamps.items())

    def _told(self) -> Notice | None:
        """Return a notice that is younger than our own look and says that all gates are open.

        It may rest on a commit that our look came after, when the branch was moved back meanwhile: then the gates
        were open at a moment of the waiting, which is all that waiting can promise.
        """
        notice = read_notice(self._seen.notices)
        if notice.id in ("", self._seen.notice) or notice.open is None:
            return None
        is_open = notice.open.get(self._seen.phase, ())
        return notice if all(gate["gate"] in is_open for gate in self._seen.gates) else None

    def _daemon_lives(self) -> bool:
        try:
            return holder(self._seen.lock) is not None
        except YoloError:
            return False

    def _should_look(self, *, is_told: bool) -> bool:
        """Tell whether the branch moved and nobody judges it, or nobody seems to."""
        is_new, self._is_new = self._is_new, False
        if not self.has_moved():
            return False
        judged = stamp(self._seen.notices)
        if not is_told or (is_new and judged == self._seen.judged):
            return True  # a daemon of a single department judges only while somebody listens
        if self._moved_at is None:
            self._moved_at, self._judged = time.monotonic(), judged
        doubt_s = DOUBT_S if judged == self._judged else LONG_DOUBT_S
        return time.monotonic() - self._moved_at > self._patience * doubt_s


def stamp(path: str) -> Stamp:
    """Return what differs after the file was changed or replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


# --- the look, in a process of its own ---


def look_aside(start: str, phase: str, names: Sequence[str]) -> Look:
    """Look at the branch in another process.

    Raises:
        YoloError: what the look raised there; INTERNAL_ERROR when it ended without an answer.
    """
    # -P: what lies in the user's repository must not be imported instead of us.
    command = [sys.executable, "-P", "-m", "yolo_fs.services.progress.gates", start, phase, *names]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode == 0:
        return Look(**json.loads(done.stdout))
    if done.stdout:
        said = json.loads(done.stdout)
        raise YoloError(
            Reason.of(said["reason"]),
            said["message"],
            hint=said["hint"],
            exit_code=Exit(said["exit"]),
        )
    last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise YoloError(
        Reason.INTERNAL_ERROR,
        f"the look ended with {done.returncode}: {last}",
        exit_code=Exit.DEFECT,
    )
