"""For how long a file has been left alone: measured per path, never globally, so that no stream starves another.

See docs/faults.md#f14, #f15 and #f19.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from yolo_fs.edges.files import Stamp


@dataclass(frozen=True, slots=True)
class _Sight:
    stamp: Stamp
    since_s: float
    """Monotonic clock at which this content was first there."""


class Patience:
    """Remembers since when each path has had the content that it has."""

    def __init__(self) -> None:
        self._sights: dict[str, _Sight] = {}

    def quiet_s(self, path: str, stamp: Stamp) -> float:
        """Return for how many seconds the content has not changed."""
        now = time.monotonic()
        sight = self._sights.get(path)
        if sight is None:
            # Seen for the first time: the file's own age is the best there is, a time in the future counts as now.
            sight = _Sight(stamp, now - max(0.0, time.time() - stamp.mtime_ns / 1e9))
        elif sight.stamp != stamp:
            sight = _Sight(stamp, now)
        self._sights[path] = sight
        return now - sight.since_s

    def forget(self, path: str) -> None:
        """Forget a path that is gone or done."""
        self._sights.pop(path, None)
