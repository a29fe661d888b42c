"""Daemons by fork whose clock may be wrong, and whose failpoints change between two starts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from yolo_fs.daemon import coordinator
from yolo_fs.git import obstacles

CLOCK = "TORTURE_CLOCK"
"""Environment: a file that holds the seconds by which the wall clock of the forked process is wrong."""

CALM = "TORTURE_CALM"
"""Environment: nanoseconds for which a rewritten index counts as a git command at work; 0 where nobody else works."""


class ForkedDaemon(Daemon):
    """A daemon that begins as its environment says."""

    def __init__(self, repo: Repo, log: Path, more: Mapping[str, str]) -> None:
        super().__init__(repo, log, prepare="tests.torture.forked_daemons:prepare", more=more)

    def rearmed(self, faults: str) -> None:
        """Set the failpoints of the next start."""
        self._env["YOLO_FP"] = faults


def prepare() -> None:
    if CLOCK in os.environ:
        _make_wrong(lambda: float(Path(os.environ[CLOCK]).read_text()))
    if CALM in os.environ:
        obstacles._QUIET_NS = int(os.environ[CALM])


def _make_wrong(by_s: Callable[[], float]) -> None:
    """Let the wall clock be wrong, as after a jump; the monotonic one never jumps."""
    true_s, true_ns = time.time, time.time_ns
    time.time = lambda: true_s() + by_s()
    time.time_ns = lambda: true_ns() + int(by_s() * 1e9)
    coordinator._now = lambda: datetime.now(UTC) + timedelta(seconds=by_s())  # type: ignore[assignment]
