"""The watched folders, and the queue from the watchers' threads to the worker.

See docs/dev/faults.md#f13 and #f60.
"""

from __future__ import annotations

import os
import threading
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.misnamed import misnamed
from yolo_fs.system.system import Degraded
from yolo_fs.system.watch import Watcher
from yolo_fs.workspace.settings import CONFIG


class Batch(NamedTuple):
    """The events since the last take."""

    paths: tuple[str, ...]
    """In the order of their first event; each once, however often it changed."""
    rescans: tuple[str, ...]
    """Why a full scan is needed; empty if the paths are sufficient."""
    is_rung: bool = False
    """Whether there is something else to do."""


class EventQueue:
    """A queue bounded by the number of distinct paths, not of events."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._rescans: dict[str, None] = {}
        self._changed = threading.Condition()
        self._is_woken = False

    def put(self, path: str) -> None:
        """Request a check of one path."""
        with self._changed:
            self._paths[path] = None
            self._changed.notify()

    def request_rescan(self, why: str) -> None:
        """Request a full scan."""
        with self._changed:
            self._rescans[why] = None
            self._changed.notify()

    def wake(self) -> None:
        """End the current wait; takes no lock, so that a signal handler may call it."""
        self._is_woken = True

    def wake_from_thread(self) -> None:
        """End the current wait, from another thread."""
        with self._changed:
            self._is_woken = True
            self._changed.notify()

    def take(self, timeout_s: float) -> Batch:
        """Wait up to `timeout_s` seconds for an event, and take all of them."""
        with self._changed:
            if not (self._paths or self._rescans or self._is_woken):
                self._changed.wait(timeout_s)
            batch = Batch(tuple(self._paths), tuple(self._rescans), self._is_woken)
            self._paths.clear()
            self._rescans.clear()
            self._is_woken = False
            return batch


class WatchSet:
    """One watcher for each folder with artifacts; their events go to the queue."""

    def __init__(self, root: str, queue: EventQueue):
        self._root = root
        self._queue = queue
        self._watchers: dict[str, Watcher] = {}
        """Folder, relative to the work tree → its watcher."""

    def watch(self, folders: tuple[str, ...]) -> bool:
        """Watch these folders and no others, as far as they exist; return whether one was added."""
        for folder in self._watchers.keys() - set(folders):
            self._watchers.pop(folder).stop()
        missing = [folder for folder in folders if folder not in self._watchers]
        added = [
            path
            for path in missing
            if path == PLANNING_ROOT or os.path.isdir(f"{self._root}/{path}")
        ]
        for folder in added:
            self._watchers[folder] = self._watcher(folder)
            self._watchers[folder].start()
        return bool(added)

    def check(self) -> None:
        """Make each watcher check what no event tells: a replaced folder, exhausted watches."""
        for watcher in self._watchers.values():
            watcher.check()

    def stop(self) -> None:
        """Stop all watchers."""
        for watcher in self._watchers.values():
            watcher.stop()

    @property
    def degraded(self) -> Degraded | None:
        """Why some events will be missing, if so."""
        reasons = (watcher.degraded for watcher in self._watchers.values())
        return next((reason for reason in reasons if reason), None)

    def _watcher(self, folder: str) -> Watcher:
        def is_wanted(path: str) -> bool:
            path = f"{folder}/{path}"
            return path == CONFIG or classify(path) is not None or misnamed(path) is not None

        return Watcher(
            os.path.join(self._root, folder),
            lambda path, _: self._queue.put(f"{folder}/{path}"),
            self._queue.request_rescan,
            wants=is_wanted,
        )
