"""Shapes of writing that watchers miss: new folders, renames, moves from outside, an overflowing
queue.

The daemon's periodic scan is put off, so that it finds by events alone; the peers are the loops
that people write.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import peers, repositories
from bench.options import Options
from bench.repositories import BRANCH, artifact, git, put
from bench.table import Goal, Table, goal_table

OUR_PATIENCE_S = 20.0
"""Bounds a hang."""
_FIRST = 2_000
"""Number of the first artifact in a folder that the repository does not have."""

Files = list[tuple[str, bytes]]


def run(options: Options) -> Iterator[Table]:
    """Let everybody meet every shape, each in a work tree of its own."""
    others = options.pick(peers.services(options), peers.services(options)[:1])
    ours = peers.ours(durability="none", rescan_s=3600)
    missed = {one.name: _missed(one, options) for one in (ours, *others)}
    count = options.pick(40, 3)
    rows = tuple((name, *(str(one) for one in found)) for name, found in missed.items())
    notes = (
        (
            f"artifacts of {count} that were not committed; looked at until all are, or "
            "nothing comes for a while"
        ),
        "overflow: the watcher is stopped while more happens than the kernel's queue holds",
    )
    columns = ("missed", *SHAPES)
    yield Table("Missed", columns, rows, notes, absent=peers.absent(options))
    sums = {name: sum(found) for name, found in missed.items()}
    best = min((one.name for one in others), key=lambda name: sums[name])
    goal = Goal(
        "missed by yolo-fs, all shapes",
        sums[peers.OURS],
        0,
        beside=f"{best}: {sums[best]}",
    )
    yield goal_table("Goals: missed", [goal])


# --- shapes ---


def in_new_folders(root: str, files: Files, _watcher: int) -> None:
    """Each folder is made and filled at once."""
    for path, data in files:
        put(root, path, data)


def renamed(root: str, files: Files, _watcher: int) -> None:
    """Each file is written under another name and renamed."""
    for path, data in files:
        put(root, f"{path}.tmp", data)
        os.rename(f"{root}/{path}.tmp", f"{root}/{path}")


def moved_in(root: str, files: Files, _watcher: int) -> None:
    """Each file comes from a folder that nobody watches."""
    for path, data in files:
        put(root, "outside", data)
        os.rename(f"{root}/outside", f"{root}/{path}")


def overflowing(root: str, files: Files, watcher: int) -> None:
    """The queue is full before the files are written: two names by turns, since equal neighbours
    count once.
    """
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    folder = f"{root}/.yolo-planning"
    os.killpg(watcher, signal.SIGSTOP)
    for turn in range(most + 100):
        os.close(os.open(f"{folder}/noise{turn % 2}", os.O_WRONLY | os.O_CREAT))
    for number in range(2):
        os.unlink(f"{folder}/noise{number}")
    for path, data in files:
        put(root, path, data)
    os.killpg(watcher, signal.SIGCONT)


SHAPES: dict[str, Callable[[str, Files, int], None]] = {
    "new folders": in_new_folders,
    "renamed": renamed,
    "moved in": moved_in,
    "overflow": overflowing,
}


# --- one service ---


def _missed(service: peers.Service, options: Options) -> list[int]:
    """Return how many artifacts of each shape are not on the branch when nothing comes any more."""
    size, _ = repositories.sizes(options)
    root = repositories.copy(size, options)
    patience_s = OUR_PATIENCE_S if service.name == peers.OURS else options.pick(6.0, 0.3)
    found = []
    with service.run(root) as child:
        for turn, shape in enumerate(SHAPES.values()):
            tip = git(root, "rev-parse", BRANCH)
            numbers = range(options.pick(40, 3))
            files = [
                artifact(_FIRST + 100 * each if shape is in_new_folders else each, f"{turn}")
                for each in numbers
            ]
            shape(root, files, child.pid)
            found.append(_absent(root, tip, {path for path, _ in files}, child, patience_s))
    return found


def _absent(
    root: str, tip: str, paths: set[str], child: subprocess.Popen[bytes], patience_s: float
) -> int:
    left, since = paths, time.monotonic()
    while left and time.monotonic() - since < patience_s and child.poll() is None:
        now = paths - set(git(root, "log", "--format=", "--name-only", f"{tip}..{BRANCH}").split())
        if now != left:
            left, since = now, time.monotonic()
        time.sleep(0.05)
    return len(left)
