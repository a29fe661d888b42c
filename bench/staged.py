"""The real command, which notes what its main thread is at: `python -m bench.staged FILE ARGUMENT…`.

Nothing of the package knows of it: methods are wrapped from outside before the command runs.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from yolo_fs.daemon.watch_set import EventQueue
from yolo_fs.git.commit import Committer
from yolo_fs.git.objects import ObjectStore
from yolo_fs.git.refs import RefUpdater
from yolo_fs.survey.surveyor import Surveyor
from yolo_fs.team import meeting
from yolo_fs.team.meeting import TeamMeeting

EVENT, CHECK, COMPARE, PLACE = "event", "read and check", "compare histories", "write the file"
BUILD, OBJECTS, SYNC, REF, REST = "build", "write objects", "fsync", "ref and index", "all else"
STAGES = (EVENT, CHECK, COMPARE, PLACE, BUILD, OBJECTS, SYNC, REF, REST)
_WRAPPED: tuple[tuple[Any, str, str], ...] = (
    (EventQueue, "take", EVENT),
    (Surveyor, "survey", CHECK),
    (TeamMeeting, "_standing", COMPARE),
    (TeamMeeting, "_request", CHECK),
    (TeamMeeting, "_writer_at", PLACE),
    (meeting, "place_file", PLACE),
    (Committer, "commit", BUILD),
    (Committer, "extend", BUILD),
    (ObjectStore, "begin_to_write", OBJECTS),
    (RefUpdater, "move", REF),
    (os, "fsync", SYNC),
)


class Stretch(NamedTuple):
    """A while in which the main thread was at one stage, by the clock that processes share."""

    stage: str
    began: float
    ended: float


def within(stretches: Iterable[Stretch], since: float, until: float) -> dict[str, float]:
    """Return how long each stage took between two moments, in seconds."""
    taken = dict.fromkeys(STAGES, 0.0)
    for each in stretches:
        taken[each.stage] += max(0.0, min(each.ended, until) - max(each.began, since))
    taken[REST] = until - since - sum(taken.values())
    return taken


def notes_of(root: str) -> str:
    """Return where the daemon of a work tree leaves its notes."""
    return f"{root}.stages"


def read(root: str) -> list[Stretch]:
    """Return what the ended daemon of a work tree noted."""
    with open(notes_of(root)) as file:
        return [Stretch(*each) for each in json.load(file)]


class _Notes:
    def __init__(self) -> None:
        self.stretches: list[Stretch] = []
        self._stages: list[str] = []
        self._since = 0.0

    def wrap(self, owner: Any, name: str, stage: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def noted(*arguments: Any, **named: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return inner(*arguments, **named)
            self._turn()
            self._stages.append(stage)
            try:
                return inner(*arguments, **named)
            finally:
                self._turn()
                self._stages.pop()

        setattr(owner, name, noted)

    def _turn(self) -> None:
        now = time.perf_counter()
        if self._stages:
            self.stretches.append(Stretch(self._stages[-1], self._since, now))
        self._since = now


def _main(path: str, *arguments: str) -> None:
    notes = _Notes()
    for owner, name, stage in _WRAPPED:
        notes.wrap(owner, name, stage)

    def keep() -> None:
        with open(path, "w") as file:
            json.dump(notes.stretches, file)

    atexit.register(keep)
    sys.argv = ["yolo-fs", *arguments]
    runpy.run_module("yolo_fs", run_name="__main__")


if __name__ == "__main__":
    _main(*sys.argv[1:])
