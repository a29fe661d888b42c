"""Timestamps as the protocol writes them, faults of foreign timestamps, and how long each holder
has had an escalation, by the monotonic clock.

The wall clock may jump, and agents may write any time; the time since boot is reliable. The
timestamp of a line counts only for the time before it was first seen, and never for more than is
possible. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from yolo_fs.core.reasons import Finding, Reason

AHEAD = timedelta(seconds=5)
"""Tolerated lead of a line's timestamp: lines of one moment are made distinct by steps into the
future."""


Time = float | datetime | str
"""Seconds since 1970, a moment with a zone, or a text of one; 0 and nothing stand for never."""


def iso(at: Time) -> str:
    """Return a time as data and agents have it, in UTC: `2026-02-19T08:00:00Z`."""
    return _in_zone(at, UTC, "%Y-%m-%dT%H:%M:%SZ")


def local(at: Time, form: str = "%Y-%m-%d %H:%M:%S %z") -> str:
    """Return a time as a person reads it, in the zone of whoever asks, with its offset:
    `2026-02-19 09:00:00 +0100`.
    """
    return _in_zone(at, None, form)


def _in_zone(at: Time, zone: tzinfo | None, form: str) -> str:
    """Return a time in a zone; a text that is no time, and a time out of the calendar, as it is."""
    try:
        parsed = moment(at) if isinstance(at, str) else at
        if isinstance(parsed, int | float):
            parsed = datetime.fromtimestamp(int(parsed), UTC) if parsed else None
        there = parsed.astimezone(zone) if parsed else None
    except (OverflowError, OSError, ValueError):
        there = None
    return there.strftime(form) if there else str(at or "")


def day(at_s: float) -> str:
    """Return the date of a time, in UTC; empty for 0."""
    return iso(at_s)[:10]


def moment(written: object) -> datetime | None:
    """Return a parsed time with a zone, or None."""
    try:
        parsed = datetime.fromisoformat(str(written))
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None


def span(seconds: float) -> str:
    """Return a length of time in its largest unit, as the board does."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def untimely(
    of: str, written: str, now: datetime, path: str, line: int, at: str
) -> Iterator[Finding]:
    """Yield what is wrong with a written timestamp: invalid, without a zone, or in the future."""
    parsed, hint = moment(written), "Its time counts from when the file was written."
    if parsed is None:
        message, expected = (
            f"{of}: {written!r} is not a timestamp with a time zone",
            "2026-02-19T08:00:00Z",
        )
        yield Finding(Reason.BAD_FORMAT, path, line, at, message, expected, hint)
    elif parsed - now > AHEAD:
        message = f"{of}: {written} is in the future"
        yield Finding(Reason.OUT_OF_RANGE, path, line, at, message, "a moment that has come", hint)


class Instant(NamedTuple):
    """One moment on both clocks."""

    wall: datetime
    steady_s: float
    """Seconds since boot, without those in which the machine slept."""
    boot: str
    """Id of that boot."""


@dataclass(frozen=True, slots=True)
class Timers:
    """When each turn began."""

    boot: str = ""
    since_s: Mapping[str, float] = field(default_factory=dict)
    """Key of a turn → when it began, on the steady clock of `boot`; kept across restarts."""
    looked_s: float | None = None
    """Time of the last check in this run: a turn that was absent then began later."""

    def look(self, turns: Mapping[str, datetime], now: Instant) -> Timers:
        """Return the timers after a check that found these turns.

        `turns`: key → when it began, by its line.
        """
        kept = self.since_s if self.boot == now.boot else {}
        looked_s = self.looked_s if self.boot == now.boot else None
        since_s = {
            key: kept[key] if key in kept else _began_at(at, looked_s, now)
            for key, at in turns.items()
        }
        return Timers(now.boot, since_s, now.steady_s)

    def began(self, key: str, now: Instant) -> datetime:
        """Return when a turn began, counted back from the current wall clock."""
        return now.wall - timedelta(seconds=now.steady_s - self.since_s[key])


def _began_at(at: datetime, looked_s: float | None, now: Instant) -> float:
    waited_s = max(0.0, (now.wall - at).total_seconds())
    return max(now.steady_s - waited_s, -1e18 if looked_s is None else looked_s)
