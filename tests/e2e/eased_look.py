"""Tells each look of the daemon at its escalations; one that found nothing new is made again only when something comes
in.
"""

from __future__ import annotations

import dataclasses

from yolo_fs.services.daemon import daemon, duties

LOOKED = "test.looked"


def prepare() -> None:
    duties.EASE, duties.LONGEST_REST_S = 10**9, 10.0**9
    daemon.DUTIES = tuple(
        dataclasses.replace(duty, run=look, rest=1e-9) if duty.name == "escalations" else duty
        for duty in daemon.DUTIES
    )


def look(of: daemon.Daemon) -> float:
    of._emit(LOOKED, "", {})
    return of._hand_up_escalations()
