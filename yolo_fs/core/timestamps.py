"""Moments as the protocol writes them, what is wrong with those that somebody else wrote, and how
long each holder has had an escalation, by a clock that nobody sets.

The wall clock may jump, and agents write what they like; the time since the machine started does
not. What a line says counts only for the time before we first saw it, and never for more than is
possible. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from yolo_fs.core.reasons import Finding, Reason

AHEAD = timedelta(seconds=5)
"""How far a line may be ahead of the clock: lines of one moment are told apart by steps ahead."""


def iso(at_s: float) -> str:
    """Return an instant as `2026-02-19T08:00:00Z`; nothing for 0, which stands for never."""
    return datetime.fromtimestamp(int(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at_s else ""


def day(at_s: float) -> str:
    """Return the day of an instant, in UTC; nothing for 0."""
    return iso(at_s)[:10]


def moment(written: object) -> datetime | None:
    """Return a moment with a zone, or None."""
    try:
        found = datetime.fromisoformat(str(written))
    except ValueError:
        return None
    return found if found.tzinfo else None


def untimely(
    of: str, written: str, now: datetime, path: str, line: int, at: str
) -> Iterator[Finding]:
    """Yield what is wrong with a moment as written: it is none, has no zone, or has not come."""
    found, hint = moment(written), "Its time counts from when the file was written."
    if found is None:
        message, expected = (
            f"{of}: {written!r} is not a timestamp with a time zone",
            "2026-02-19T08:00:00Z",
        )
        yield Finding(Reason.BAD_FORMAT, path, line, at, message, expected, hint)
    elif found - now > AHEAD:
        message = f"{of}: {written} lies in the future"
        yield Finding(Reason.OUT_OF_RANGE, path, line, at, message, "a moment that has come", hint)


class Instant(NamedTuple):
    """One moment as both clocks have it."""

    wall: datetime
    steady_s: float
    """Seconds since the machine started, sleep included."""
    boot: str
    """Which start of the machine that was."""


@dataclass(frozen=True, slots=True)
class Timers:
    """Since when each turn has lasted."""

    boot: str = ""
    since_s: Mapping[str, float] = field(default_factory=dict)
    """Key of a turn → when it began, on the steady clock of `boot`; kept across restarts."""
    looked_s: float | None = None
    """When we last looked, in this run: what was not there then began later."""

    def look(self, turns: Mapping[str, datetime], now: Instant) -> Timers:
        """Return the timers after a look that found these turns.

        `turns`: key → when it began, as its line says.
        """
        kept = self.since_s if self.boot == now.boot else {}
        looked_s = self.looked_s if self.boot == now.boot else None
        since_s = {
            key: kept[key] if key in kept else _begun(at, looked_s, now)
            for key, at in turns.items()
        }
        return Timers(now.boot, since_s, now.steady_s)

    def began(self, key: str, now: Instant) -> datetime:
        """Return when a turn began, reckoned back from the wall clock as it is now."""
        return now.wall - timedelta(seconds=now.steady_s - self.since_s[key])

    def forgotten(self) -> Timers:
        """Return what another run of the program knows of these."""
        return replace(self, looked_s=None)


def _begun(at: datetime, looked_s: float | None, now: Instant) -> float:
    waited_s = max(0.0, (now.wall - at).total_seconds())
    return max(now.steady_s - waited_s, -1e18 if looked_s is None else looked_s)
