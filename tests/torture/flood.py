"""More events than the kernel keeps, and fewer watches than folders. See docs/dev/faults.md#f10, #f11
and #f60.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from tests.e2e.artifacts import PLANNING, Artifact, artifact
from tests.e2e.repo import Repo
from tests.e2e.test_watching import _may_unshare, without_inotify
from tests.torture.surroundings import Ground, SkipError, Writelog, many
from yolo_fs.system import IS_LINUX

WITHIN_S = 60.0
"""The promise, from the moment at which the daemon goes on."""
PATIENCE_S = 600.0
MOST = 3_960
"""Distinct plans and summaries in twenty phases: a plan has two digits."""


def overflow(ground: Ground, count: int) -> None:
    """Stop the daemon, make that many files, let it go on: each artifact among them is committed."""
    _need_inotify()
    repo = ground.repo(rescan_s=3600)
    log = Writelog(repo)
    daemon = ground.daemon(repo)
    daemon.start()
    artifacts = many(min(MOST, max(1, count // 2)))
    with daemon.paused():
        log.write(*artifacts)
        _make_noise(repo, count - len(artifacts))
        _fill_the_queue(repo)
    began = time.monotonic()
    assert daemon.wait_for("daemon.doubt")["data"]["why"] == "overflow", (
        "the planned overflow did not happen"
    )
    try:
        daemon.wait_committed(artifacts, WITHIN_S - (time.monotonic() - began))
    except AssertionError:
        ground.fault(f"{len(daemon.committed())} of {len(artifacts)} within {WITHIN_S:.0f} s")
        daemon.wait_committed(artifacts, PATIENCE_S)  # late is not lost
    took = time.monotonic() - began
    ground.tally.notes.append(
        f"{count:,} files, {len(artifacts):,} of them artifacts: all committed after {took:.1f} s"
    )
    ground.tally.count += count
    log.acknowledged(daemon.mailbox.events)
    daemon.kill()
    ground.judge(repo, log, "overflow")


def _need_inotify() -> None:
    if not IS_LINUX:
        raise SkipError("about the limits and the queue of inotify")


def _make_noise(repo: Repo, count: int) -> None:
    folders = sorted((repo.root / PLANNING / "phases").iterdir())
    for number, folder in zip(range(count), itertools.cycle(folders), strict=False):
        (folder / f"notes-{number}.txt").write_bytes(b"nothing of the protocol\n")


def _fill_the_queue(repo: Repo) -> None:
    """Queue more events than the kernel keeps: two files by turns, since equal neighbours count once."""
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for turn in range(most + 100):
        (repo.root / PLANNING / f"noise{turn % 2}").open("w").close()


def watch_limits(ground: Ground, count: int) -> None:
    """Run where the kernel grants too few watches, or no instance at all: the rescan finds everything."""
    _need_inotify()
    if not _may_unshare():
        raise SkipError("needs a user namespace of its own")
    limits = itertools.cycle(
        ("max_inotify_watches=3", "max_inotify_instances=0", "max_inotify_watches=1")
    )
    for limit in itertools.islice(limits, count):
        _limited(ground, limit)


def _limited(ground: Ground, limit: str) -> None:
    repo = ground.repo(rescan_s=3600)
    log = Writelog(repo)
    daemon = ground.process(repo, under=without_inotify(limit))
    daemon.start()
    artifacts: list[Artifact] = [artifact("plan", n) for n in range(20)]
    log.write(*artifacts)
    daemon.wait_committed(artifacts)
    degraded = (repo.status()["daemon"]["degraded"] or {}).get("reason")
    if degraded != "watch_limit":
        ground.fault(f"{limit}: status says {degraded}")
    ground.tally.count += 1
    log.acknowledged(daemon.mailbox.events)
    daemon.kill()
    ground.judge(repo, log, limit)
