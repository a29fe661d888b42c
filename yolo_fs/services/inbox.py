"""What the watcher's threads leave for the one worker: a coalescing set of paths, and doubts.

See docs/faults.md#f13 and #f60.
"""

from __future__ import annotations

import threading
from typing import NamedTuple


class Mail(NamedTuple):
    """What came in since the last look."""

    paths: tuple[str, ...]
    """In the order of their first mention; each once, however often it changed."""
    doubts: tuple[str, ...]
    """Why everything has to be looked at; empty when the paths are all there is."""


class Inbox:
    """Bounded by the number of distinct paths, not by the number of events."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._doubts: dict[str, None] = {}
        self._changed = threading.Condition()
        self._woken = False

    def put(self, path: str) -> None:
        """Ask for one path to be looked at."""
        with self._changed:
            self._paths[path] = None
            self._changed.notify()

    def doubt(self, why: str) -> None:
        """Ask for everything to be looked at."""
        with self._changed:
            self._doubts[why] = None
            self._changed.notify()

    def wake(self) -> None:
        """End the current wait without mail; safe to call from a signal handler's thread."""
        self._woken = True

    def take(self, timeout_s: float) -> Mail:
        """Wait for mail, at most that long, and take all of it."""
        with self._changed:
            if not (self._paths or self._doubts or self._woken):
                self._changed.wait(timeout_s)
            mail = Mail(tuple(self._paths), tuple(self._doubts))
            self._paths.clear()
            self._doubts.clear()
            self._woken = False
            return mail
