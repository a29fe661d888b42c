"""Both clocks, and what another run of the program knew of how long each turn has lasted.

What is kept lies in `.git/yolo-fs/` and only makes timing better: without it the moments in the log
count. See docs/faults.md#f19.
"""

from __future__ import annotations

import contextlib
import os
import time
from datetime import UTC, datetime
from functools import cache

from yolo_fs.edges.store import read_json, write_json
from yolo_fs.edges.system import boot_id
from yolo_fs.reasons import YoloError
from yolo_fs.rules.turn_timers import Instant, Timers

FILE = "escalation-clock.json"

_BOOT = cache(boot_id)


def read_clock() -> Instant:
    """Return this moment by the wall clock, and by the one that runs from the start of the machine, asleep or not."""
    steady = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return Instant(datetime.now(UTC), time.clock_gettime(steady), _BOOT())


def recall(own_dir: str, file: str = FILE) -> Timers:
    """Return what an earlier run knew; nothing where that cannot be read."""
    match read_json(os.path.join(own_dir, file)):
        case {"boot": str(boot), "since_s": dict(since_s)}:
            return Timers(
                boot, {key: float(at) for key, at in since_s.items() if isinstance(at, int | float)}
            )
    return Timers()


def note(own_dir: str, timers: Timers, file: str = FILE) -> None:
    """Keep the timers for another run. A full disk costs their precision, never an escalation."""
    with contextlib.suppress(OSError, YoloError):
        value = {"boot": timers.boot, "since_s": dict(timers.since_s)}
        write_json(os.path.join(own_dir, file), value, durable=False)
