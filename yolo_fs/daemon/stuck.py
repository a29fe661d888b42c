"""Which files have not been committed for so long that somebody has to be told."""

from __future__ import annotations

import time
from collections.abc import Mapping

from yolo_fs.artifacts.verdicts import Held, Rejected, Verdict, Waiting
from yolo_fs.scanning.cached_verdicts import CachedVerdict


class StuckPaths:
    """Tracks since when each file has been refused, held or open for writing.

    A refused file that is written again is at work, and begins anew; a held one waits for
    something else than its writer.
    """

    def __init__(self) -> None:
        self._since: dict[str, tuple[object, float]] = {}
        """Path → (what has not changed, since when on the monotonic clock)."""
        self._lasting: tuple[str, ...] = ()

    def look(
        self, unsettled: Mapping[str, Verdict], known: Mapping[str, CachedVerdict], after_s: float
    ) -> None:
        """Take note of a scan; what has lasted for `after_s` seconds then is stuck."""
        now, before = time.monotonic(), self._since
        self._since = {}
        for path, verdict in unsettled.items():
            if isinstance(verdict, Rejected | Held | Waiting):
                same = verdict.reason if isinstance(verdict, Held) else known[path].seen.stamp
                was, since = before.get(path, (None, now))
                self._since[path] = same, since if was == same else now
        self._lasting = tuple(
            path for path, (_, since) in self._since.items() if now - since >= after_s
        )

    def among(self, unsettled: Mapping[str, Verdict]) -> dict[str, Verdict]:
        """Return path → verdict of the stuck files that are not committed by now."""
        return {path: unsettled[path] for path in self._lasting if path in unsettled}
