"""Moments as the protocol writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(at_s: float) -> str:
    """Return an instant as `2026-02-19T08:00:00Z`; nothing for 0, which stands for never."""
    return datetime.fromtimestamp(int(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at_s else ""


def day(at_s: float) -> str:
    """Return the day of an instant, in UTC; nothing for 0."""
    return iso(at_s)[:10]
