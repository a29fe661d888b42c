"""The last look at every candidate, and whether it still holds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from yolo_fs.artifacts.verdicts import (
    Committed,
    Ignored,
    Verdict,
)
from yolo_fs.system.files import (
    FileEntry,
    Stamp,
)


class Observation(NamedTuple):
    """One look at one path."""

    verdict: Verdict
    stamp: Stamp | None = None
    """Stamp of the file when it was read; None when it was not read."""


class CachedVerdict(NamedTuple):
    """What the last check of a path found."""

    seen: Observation
    read_at_ns: int
    """Wall clock time, for comparison with file times."""

    def still_holds(self, stamp: Stamp | None) -> bool:
        """Return whether the file is certainly unchanged since."""
        return stamp is not None and self.seen.stamp == stamp and not stamp.is_racy(self.read_at_ns)


class Candidates(NamedTuple):
    """Every path that may be an artifact."""

    stamps: Mapping[str, Stamp | None]
    """Path → stamp of the file on disk; None where only the branch has it."""
    blobs: Mapping[str, str]
    """Path → blob on the branch, of candidates and of other files."""
    others: Sequence[FileEntry]
    """Files that were requested beside the candidates."""

    def still_hold(self, path: str, look: CachedVerdict) -> bool:
        """Return whether the file, and the branch of a committed one, are unchanged since a look.

        A user may move the branch alone.
        """
        verdict = look.seen.verdict
        is_there = not isinstance(verdict, Committed) or self.blobs.get(path) == verdict.blob
        return is_there and look.still_holds(self.stamps.get(path))


class VerdictStore:
    """The last verdict of each candidate.

    What is not committed is kept separately. Each turn needs only that, so that thousands of
    committed artifacts cost a turn nothing.
    """

    def __init__(self) -> None:
        self.cached: dict[str, CachedVerdict] = {}
        """Path → the last look."""
        self.unsettled: dict[str, Verdict] = {}
        """Path → verdict of the last look, for what is not committed."""

    def remember(self, path: str, cached: CachedVerdict) -> None:
        """Remember a look; a path that is not a candidate is forgotten."""
        verdict = cached.seen.verdict
        if isinstance(verdict, Ignored):
            self.forget(path)
            return
        self.cached[path] = cached
        if isinstance(verdict, Committed):
            self.unsettled.pop(path, None)
        else:
            self.unsettled[path] = verdict

    def forget(self, path: str) -> None:
        """Forget a path that is no longer a candidate."""
        self.cached.pop(path, None)
        self.unsettled.pop(path, None)

    def verdict(self, path: str) -> Verdict | None:
        """Return the verdict of the last look; None if there was none."""
        cached = self.cached.get(path)
        return cached.seen.verdict if cached else None

    def changed(self, candidates: Candidates) -> tuple[str, ...]:
        """Return the paths that have to be checked again."""
        return tuple(
            path
            for path in candidates.stamps
            if path not in self.cached or not candidates.still_hold(path, self.cached[path])
        )


class QuietTimer:
    """Tracks how long each path has had its present content.

    Measured per path, never globally, so that no stream of writes delays another file. See
    docs/dev/faults.md#f14, #f15 and #f19.
    """

    def __init__(self) -> None:
        self._since: dict[str, tuple[Stamp, float]] = {}
        """Path → (its content, monotonic time in seconds at which that was first there)."""

    def quiet_s(self, path: str, stamp: Stamp) -> float:
        """Return for how many seconds the content has not changed."""
        now = time.monotonic()
        known, since = self._since.get(path, (None, now))
        if known is None:
            # The best estimate for a new file is its own age. A time in the future counts as now.
            since = now - max(0.0, time.time() - stamp.mtime_ns / 1e9)
        elif known != stamp:
            since = now
        self._since[path] = (stamp, since)
        return now - since

    def forget(self, path: str) -> None:
        """Forget a path that is gone."""
        self._since.pop(path, None)
