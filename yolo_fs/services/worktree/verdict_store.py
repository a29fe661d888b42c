"""What was last seen of every candidate: its verdict, and since when its content has been the
same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from yolo_fs.edges.files import Stamp
from yolo_fs.rules.artifacts.verdicts import Committed, Ignored, Verdict


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at one path."""

    path: str
    verdict: Verdict
    stamp: Stamp | None = None
    """What the file was when it was read; None when it was not."""


@dataclass(frozen=True, slots=True)
class CachedVerdict:
    """What was known of a path when it was last checked."""

    seen: Observation
    read_at_ns: int
    """Wall clock, to be compared with the times of the file."""

    def still_holds(self, stamp: Stamp | None) -> bool:
        """Return whether the file cannot have changed since."""
        return stamp is not None and self.seen.stamp == stamp and not stamp.is_racy(self.read_at_ns)


class VerdictStore:
    """The last verdict of each candidate.

    What is not committed is kept apart: it alone is asked for at every turn, so thousands of
    committed artifacts cost a turn nothing.
    """

    def __init__(self) -> None:
        self._cached: dict[str, CachedVerdict] = {}
        self._unsettled: dict[str, Verdict] = {}

    @property
    def cached(self) -> Mapping[str, CachedVerdict]:
        """Path → the last look."""
        return self._cached

    @property
    def unsettled(self) -> Mapping[str, Verdict]:
        """Path → verdict of the last look, of whatever is not committed."""
        return self._unsettled

    def remember(self, path: str, cached: CachedVerdict) -> None:
        """Remember a look; a path that is not a candidate is forgotten."""
        verdict = cached.seen.verdict
        if isinstance(verdict, Ignored):
            self.forget(path)
            return
        self._cached[path] = cached
        if isinstance(verdict, Committed):
            self._unsettled.pop(path, None)
        else:
            self._unsettled[path] = verdict

    def forget(self, path: str) -> None:
        """Forget a path that is not a candidate any more."""
        self._cached.pop(path, None)
        self._unsettled.pop(path, None)

    def verdict(self, path: str) -> Verdict | None:
        """Return the verdict of the last look; None for what was never looked at."""
        cached = self._cached.get(path)
        return cached.seen.verdict if cached else None

    def changed(self, stamps: Mapping[str, Stamp | None]) -> tuple[str, ...]:
        """Return the paths that have to be checked again, given the stamps that they have now."""
        return tuple(
            path
            for path, stamp in stamps.items()
            if path not in self._cached or not self._cached[path].still_holds(stamp)
        )


class QuietTimer:
    """Remembers since when each path has had the content that it has.

    Measured per path, never globally, so that no stream of writes delays another file.
    See docs/faults.md#f14, #f15 and #f19.
    """

    def __init__(self) -> None:
        self._since: dict[str, tuple[Stamp, float]] = {}
        """Path → its content, and the monotonic time in seconds at which it was first there."""

    def quiet_s(self, path: str, stamp: Stamp) -> float:
        """Return for how many seconds the content has not changed."""
        now = time.monotonic()
        known, since = self._since.get(path, (None, now))
        if known is None:
            # The best that is known of a new file is its own age; a time in the future counts as
            # now.
            since = now - max(0.0, time.time() - stamp.mtime_ns / 1e9)
        elif known != stamp:
            since = now
        self._since[path] = (stamp, since)
        return now - since

    def forget(self, path: str) -> None:
        """Forget a path that is gone or done."""
        self._since.pop(path, None)
