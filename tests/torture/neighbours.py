"""Others at work in the same object store: what collects garbage, in loops, and four work trees
with a daemon each. See docs/dev/faults.md#f09 and #f29.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tests.e2e.artifacts import Artifact, artifact, mixed
from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from tests.torture.surroundings import Ground, Writelog, settled
from yolo_fs.git.packs import LINGER_S

TREES = 4
WRITERS = 20
COLLECTORS: Mapping[str, Sequence[Sequence[str]]] = {
    "gc": [("gc", "-q", "--prune=now")],
    "repack": [("repack", "-adfq")],
    "prune": [("prune", "--expire=now")],
    "maintenance": [
        ("maintenance", "run", "--quiet"),
        ("maintenance", "run", "--quiet", "--task=loose-objects", "--task=incremental-repack"),
    ],
}
"""What people and their tools remove objects with."""
ALL = [command for commands in COLLECTORS.values() for command in commands]
_JUDGED_EVERY_S = 2.0
_BACK_WITHIN_S = 2.0
_GONE_AFTER_S = 60.0
_MANY = 250
"""Packs of which git lists the files in more than one piece."""


def collecting(commands: Sequence[Sequence[str]], ground: Ground, seconds: int) -> None:
    """Collect in loops, one for each command, while twenty writers wait for each of their commits."""
    repo = ground.repo(rescan_s=1)
    _fill(repo, is_kept=len(commands) > 1)
    log = Writelog(repo)
    daemon = ground.daemon(repo)
    daemon.start()
    loops = [_Loop(repo, command) for command in commands]
    ended_at = time.monotonic() + seconds
    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(_write, daemon, log, at, ended_at) for at in range(WRITERS)]
        while time.monotonic() < ended_at:
            threading.Event().wait(min(_JUDGED_EVERY_S, seconds / 2))
            _pause_and_judge(ground, repo, loops)
    for loop in loops:
        loop.stop()
    waits_s = sorted(wait_s for writer in writers for wait_s in writer.result())
    settled(daemon)
    ground.tally.count += len(waits_s)
    rounds = ", ".join(f"{loop.rounds} x git {loop.command[0]}" for loop in loops)
    ground.tally.notes.append(
        f"{rounds}; write to commit: half within {1000 * waits_s[len(waits_s) // 2]:.0f} ms, all "
        f"within {1000 * waits_s[-1]:.0f} ms"
    )
    if not all(loop.rounds for loop in loops):
        ground.fault("nothing was collected")
    log.acknowledged(daemon.mailbox.events)
    daemon.kill()
    ground.judge(repo, log, f"{commands[0]}")


def _fill(repo: Repo, *, is_kept: bool) -> None:
    """Fill the folder of packs, so that git lists it in pieces, and finds packs of ours by halves.

    `is_kept`: what the user has committed so far is kept, so that whatever is lost was ours to
    protect. These commands at the same time take each other's packs: without us, too, a repository
    of three commits is broken after a second of them.
    """
    repo.git("repack", "-adq")
    folder = repo.root / ".git/objects/pack"
    (pack,) = folder.glob("*.pack")
    for number in range(_MANY):
        for ending in (".keep", ".pack", ".idx"):
            place = folder / f"pack-{number:040x}{ending}"
            if ending == ".keep":
                place.touch()
            else:
                place.hardlink_to(pack.with_suffix(ending))
    if is_kept:
        pack.with_suffix(".keep").touch()


class _Loop:
    """One command of git again and again, which can be stopped between two rounds."""

    def __init__(self, repo: Repo, command: Sequence[str]) -> None:
        self.command = command
        self.rounds = 0
        self.between = threading.Lock()
        self._repo = repo
        self._is_ended = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_ended:
            with self.between:
                self._repo.git(*self.command, ok=range(256))  # they get into each other's way
            self.rounds += 1
            time.sleep(0.001)  # or whoever waits for the lock would not get it

    def stop(self) -> None:
        self._is_ended = True
        self._thread.join()


def _write(daemon: Daemon, log: Writelog, at: int, ended_at: float) -> list[float]:
    """Write one artifact after the other, each when the last is committed; return their waits."""
    waits_s = []
    for version in itertools.count():
        if time.monotonic() >= ended_at:
            break
        one = artifact("plan", at, version=version)
        seen = len(daemon.mailbox.events)
        began = time.monotonic()
        log.write(one)
        daemon.mailbox.wait(partial(_tells_of, one, seen))
        waits_s.append(time.monotonic() - began)
    return waits_s


def _tells_of(one: Artifact, seen: int, events: Sequence[Mapping[str, Any]]) -> bool:
    return any(
        event.get("event") == "artifact.committed" and event["data"]["blob"] == one.blob()
        for event in events[seen:]
    )


def _pause_and_judge(ground: Ground, repo: Repo, loops: Sequence[_Loop]) -> None:
    """Look at the repository between two rounds of every loop; the daemon goes on."""
    with contextlib.ExitStack() as paused:
        for loop in loops:
            paused.enter_context(loop.between)
        # What a gc has just taken for litter is back with the daemon's next turn, and a look that
        # takes longer than merged packs stay misses what was in them; what is gone stays so.
        first_at = time.monotonic()
        while True:
            began_at = time.monotonic()
            said = repo.git("fsck", "--strict", "--no-dangling", "--no-progress", ok=range(256))
            is_quick = time.monotonic() - began_at < LINGER_S
            is_late = began_at - first_at > (_BACK_WITHIN_S if is_quick else _GONE_AFTER_S)
            if not said or is_late:
                break
    if said:
        ground.fault(f"git fsck: {said[:300]}")


def worktrees(ground: Ground, count: int) -> None:
    """Let four daemons commit in four work trees of one repository, each on its branch."""
    repo = ground.repo()
    trees = [repo]
    for number in range(1, TREES):
        place = repo.root.with_name(f"{repo.root.name}-tree{number}")
        repo.git("worktree", "add", "-q", "-b", f"side{number}", str(place))
        trees.append(Repo(place, repo.env))
    each = max(1, count // TREES)
    work = [mixed(each, first=each * number) for number in range(TREES)]
    logs = [Writelog(tree, branches=[f"side{n}" if n else "main"]) for n, tree in enumerate(trees)]
    daemons = [ground.daemon(tree) for tree in trees]
    for daemon in daemons:
        daemon.start()
    for at in range(0, each, 10):
        for log, artifacts in zip(logs, work, strict=True):
            log.write(*artifacts[at : at + 10])
        for daemon, artifacts in zip(daemons, work, strict=True):
            daemon.wait_committed(artifacts[at : at + 10])
    for tree, daemon, log in zip(trees, daemons, logs, strict=True):
        settled(daemon)
        ground.tally.count += len(daemon.committed())
        log.acknowledged(daemon.mailbox.events)
        daemon.kill()
        ground.judge(tree, log, "worktrees")
