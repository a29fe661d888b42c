"""A work tree that is walked again and again, at the price of what changed in it.

See docs/faults.md#f18.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from yolo_fs.edges.files import FileEntry, Stamp, listed


class _Hollow(NamedTuple):
    """A folder that holds folders alone.

    One that holds files is read at each walk: these change in place.
    """

    stamp: Stamp
    """Taken before the folder was read."""
    folders: list[str]


class ScanCache:
    """Remembers which folders hold no file, and reads these again only when their stamp has
    changed.
    """

    def __init__(self, root: str):
        self._root = root
        self._hollow: dict[str, dict[str, _Hollow]] = {}
        """Where a walk starts → the hollow folders below."""

    def walk(self, start: str) -> Iterator[FileEntry]:
        """Yield what `files.walk` yields."""
        known, found = self._hollow.get(start, {}), dict[str, _Hollow]()
        pending = [start]
        while pending:
            folder = pending.pop()
            hollow = known.get(folder)
            stamp, at_ns = self._stamp(folder), time.time_ns()
            if hollow and hollow.stamp == stamp:
                found[folder] = hollow
                pending.extend(reversed(hollow.folders))
                continue
            entries, folders = listed(self._root, folder)
            yield from entries
            if stamp and not entries and not stamp.is_racy(at_ns):
                found[folder] = _Hollow(stamp, folders)
            pending.extend(reversed(folders))
        self._hollow[start] = found

    def _stamp(self, folder: str) -> Stamp | None:
        # A link on the way may lead elsewhere; all that is taken from there is whether it is still
        # the same folder.
        try:
            return Stamp.of(os.lstat(f"{self._root}/{folder}"))
        except (OSError, ValueError):
            return None
