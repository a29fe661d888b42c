"""Moments as the protocol writes them, and what is wrong with those that somebody else wrote."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from yolo_fs.reasons import Finding, Reason

AHEAD = timedelta(seconds=5)
"""How far a line may be ahead of the clock: two lines of one moment are told apart by a step into
the future.
"""


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
    """Yield what is wrong with a moment that somebody wrote: it is none, has no zone, or has not
    come.
    """
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
