"""Both clocks, and how long each turn had lasted as an earlier run knew it.

The timers are stored in `state.db` and only make timing more precise: without them the times in the
log count. See docs/dev/faults.md#f19.
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
from yolo_fs.workspace.own_files import OwnNote

_BOOT = cache(boot_id)


def read_clock() -> Instant:
    """Return the current time by the wall clock, and by the one that stops while the machine
    sleeps: who is asleep with it is not silent.
    """
    steady = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)  # the first: macOS
    return Instant(datetime.now(UTC), time.clock_gettime(steady), _BOOT())


def recall(repository: Repository, file: OwnNote) -> Timers:
    """Return the timers of an earlier run; none if damaged or possibly from before a reboot."""
    kept = file.read(repository)
    if not isinstance(kept, dict) or not kept["boot"]:
        return Timers()
    return Timers(kept["boot"], kept["since_s"])


def note(repository: Repository, file: OwnNote, timers: Timers) -> None:
    """Keep the timers for another run. A full disk costs their precision, never an escalation."""
    with contextlib.suppress(OSError, YoloError):
        value = {"boot": timers.boot, "since_s": dict(timers.since_s)}
        file.update(repository, lambda _: value, durable=False)
