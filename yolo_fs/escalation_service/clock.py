"""Both clocks, and what another run of the program knew of how long each turn has lasted.

What is kept lies in `state.db` and only makes timing better: without it the moments in the log
count. See docs/dev/faults.md#f19.
"""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from functools import cache

from yolo_fs.core.reasons import YoloError
from yolo_fs.core.timestamps import Instant, Timers
from yolo_fs.git.repository import Repository
from yolo_fs.system.system import boot_id
from yolo_fs.workspace import OwnNote

_BOOT = cache(boot_id)


def read_clock() -> Instant:
    """Return this moment by the wall clock, and by the one that counts from boot on."""
    steady = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return Instant(datetime.now(UTC), time.clock_gettime(steady), _BOOT())


def recall(repository: Repository, file: OwnNote) -> Timers:
    """Return what an earlier run knew; nothing where that may be of an earlier boot, or damaged."""
    kept = file.read(repository)
    if not isinstance(kept, dict) or not kept["boot"]:
        return Timers()
    return Timers(kept["boot"], kept["since_s"])


def note(repository: Repository, file: OwnNote, timers: Timers) -> None:
    """Keep the timers for another run. A full disk costs their precision, never an escalation."""
    with contextlib.suppress(OSError, YoloError):
        value = {"boot": timers.boot, "since_s": dict(timers.since_s)}
        file.update(repository, lambda _: value, durable=False)
