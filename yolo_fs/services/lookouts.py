"""The watchers of a work tree: one for each folder that artifacts lie in. See docs/faults.md#f13 to
#f16.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from yolo_fs.edges.watch import Degraded, Hint, Watcher
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.services.inbox import Inbox
from yolo_fs.services.settings import CONFIG


class Lookouts:
    """Say "look at this path" to the inbox; a folder that is not there yet is found by a later look."""

    def __init__(self, root: str, inbox: Inbox):
        self._root = root
        self._inbox = inbox
        self._watchers: dict[str, Watcher] = {}
        """Folder, relative to the work tree → its watcher."""

    def keep(self, folders: tuple[str, ...]) -> bool:
        """Watch these folders and no others, as far as they exist by now; return whether one has come."""
        for gone in self._watchers.keys() - set(folders):
            self._watchers.pop(gone).stop()
        before = len(self._watchers)
        for folder in folders:
            place = os.path.join(self._root, folder)
            if folder not in self._watchers and (folder == PLANNING_ROOT or os.path.isdir(place)):
                self._watchers[folder] = Watcher(
                    place, self._hear(folder), self._inbox.doubt, wants=_wanted_in(folder)
                )
                self._watchers[folder].start()
        return len(self._watchers) > before

    def check(self) -> None:
        """Let each notice what no event tells: that its folder was replaced, that its watches ran out."""
        for watcher in self._watchers.values():
            watcher.check()

    def stop(self) -> None:
        """End all of them."""
        for watcher in self._watchers.values():
            watcher.stop()

    @property
    def degraded(self) -> Degraded | None:
        """Why some events will not come, if so."""
        return next(
            (watcher.degraded for watcher in self._watchers.values() if watcher.degraded), None
        )

    def _hear(self, folder: str) -> Callable[[str, Hint], None]:
        return lambda path, _: self._inbox.put(f"{folder}/{path}")


def _wanted_in(folder: str) -> Callable[[str], bool]:
    return lambda path: f"{folder}/{path}" == CONFIG or classify(f"{folder}/{path}") is not None
