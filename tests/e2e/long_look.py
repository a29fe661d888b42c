"""Lets the second look of the daemon at its escalations last until something is committed, as one that reads a long
history.
"""

from __future__ import annotations

import dataclasses
import itertools
import time

from tests.support.forked import DEADLINE_S
from yolo_fs.services.daemon import daemon

LOOKING, LOOKED = "test.looking", "test.looked"
_looks = itertools.count()


def prepare() -> None:
    daemon.DUTIES = tuple(
        dataclasses.replace(duty, run=look) if duty.name == "escalations" else duty
        for duty in daemon.DUTIES
    )


def look(of: daemon.Daemon) -> float:
    if next(_looks) == 1:
        deadline = time.monotonic() + DEADLINE_S
        of._emit(LOOKING, "", {})
        for _ in of._team.paused(itertools.repeat(None)):
            if of._committed_at or time.monotonic() > deadline:
                break
        of._emit(LOOKED, "", {})
    return 0.01
