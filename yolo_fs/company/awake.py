"""The time that a runner has run: what it waits for cannot come while nothing runs."""

from __future__ import annotations

import time

_LONGEST_STEP_S = 2.0
"""Most seconds that count between two looks: a loaded machine looks late, a stopped one not at all.
"""


class AwakeClock:
    """Seconds since an arbitrary moment, without those in which nobody looked at the clock.

    Look often. The monotonic clock leaves out a laptop's sleep, but not a stopped process, a frozen
    container or a paused virtual machine.
    """

    def __init__(self) -> None:
        self._seen = time.monotonic()
        self._missed = 0.0

    def now(self) -> float:
        """Return the seconds now."""
        seen = time.monotonic()
        self._missed += max(0.0, seen - self._seen - _LONGEST_STEP_S)
        self._seen = seen
        return seen - self._missed
