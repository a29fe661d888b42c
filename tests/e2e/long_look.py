"""Lets the first look of the daemon at its projections after a commit last until something more is
committed, or the daemon is to end, as one that reads a long history.
"""

from __future__ import annotations

import dataclasses
import itertools
import time

from tests.support.forked import DEADLINE_S
from yolo_fs.services.daemon import daemon

LOOKING, LONG, LOOKED = "test.looking", "test.long_look", "test.looked"
_long: list[float] = []


def prepare() -> None:
    daemon.DUTIES = tuple(
        dataclasses.replace(duty, run=look) if duty.name == "projections" else duty
        for duty in daemon.DUTIES
    )


def look(of: daemon.Daemon) -> None:
    of._emit(LOOKING, "", {})
    before = _last_commit(of)
    if before and not _long:
        _long.append(before)
        of._emit(LONG, "", {})
        deadline = time.monotonic() + DEADLINE_S
        for _ in of._team.paused(itertools.repeat(None)):
            if of._is_stopping or _last_commit(of) > before or time.monotonic() > deadline:
                break
        of._emit(LOOKED, "", {})


def _last_commit(of: daemon.Daemon) -> float:
    return max(of._committed_at.values(), default=0.0)
