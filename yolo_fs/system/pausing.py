"""How a command that waits pauses: asleep in its process, or answered later by an observer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from yolo_fs.system.files import Stamp, stamp_at

POLL_S = 0.02
"""Interval of looks at the files that a paused command waits for."""


class Pause(NamedTuple):
    """Where a command that waits has come to, and when it goes on."""

    state: Any
    """What it knows, in JSON's types."""
    stamps: Mapping[str, Stamp | None]
    """Path → stamp of the files of which one changes before the command has more to do."""
    ends_s: float
    """When it goes on although none has changed, on the monotonic clock of the machine."""

    @property
    def is_over(self) -> bool:
        """Whether the command goes on now."""
        return time.monotonic() >= self.ends_s or is_outdated(self.stamps)

    def to_bytes(self) -> bytes:
        """Return the text that `parse` reads."""
        return json.dumps(self).encode()

    @classmethod
    def parse(cls, text: bytes) -> Pause:
        """Read what `to_bytes` has written."""
        state, stamps, ends_s = json.loads(text)
        found = {path: stamp and Stamp(*stamp) for path, stamp in stamps.items()}
        return cls(state, found, ends_s)


class PausedError(BaseException):
    """A command that an observer runs pauses: its client is answered later.

    `except Exception` does not catch it.
    """

    def __init__(self, pause: Pause):
        super().__init__()
        self.pause = pause


RESUMED: ContextVar[Pause | None] = ContextVar("RESUMED", default=None)
"""Set in an observer while it runs a command: the command's last pause; one without state before
the first."""


def resumed_state() -> Any:
    """Return the state of the pause after which the command at work goes on; None for none."""
    resumed = RESUMED.get()
    return resumed.state if resumed else None


def pause_here(pause: Pause) -> None:
    """Sleep until the pause is over.

    Raises:
        PausedError: an observer runs the command, and does not sleep for one client.
    """
    if RESUMED.get() is not None:
        raise PausedError(pause)
    while not pause.is_over:
        time.sleep(max(0.0, min(POLL_S, pause.ends_s - time.monotonic())))


def is_outdated(stamps: Mapping[str, Stamp | None]) -> bool:
    """Return whether one of the files has another stamp by now."""
    return any(stamp_at(path) != before for path, before in stamps.items())
