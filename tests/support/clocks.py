"""Both clocks, moved by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from yolo_fs.core.timestamps import Instant

START = datetime(2026, 2, 19, 11, tzinfo=UTC)


class Clock:
    """Both clocks, moved by hand."""

    def __init__(self, start: datetime = START) -> None:
        self.now = Instant(start, 1_000.0, "boot")

    def __call__(self) -> Instant:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now = self.now._replace(
            wall=self.now.wall + timedelta(seconds=seconds),
            steady_s=self.now.steady_s + seconds,
        )

    def is_set(self, seconds: float) -> None:
        """Move the wall clock alone, as an administrator or a time server does."""
        self.now = self.now._replace(wall=self.now.wall + timedelta(seconds=seconds))
