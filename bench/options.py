"""What a benchmark is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Options:
    """How large, and where."""

    place: str
    """Directory for the repositories, which are kept between runs."""
    scratch: str
    """Directory for copies of them and for whatever else is written.

    Removed when all is measured, not before: right after many files were removed, new ones cost
    several times more for a while."""
    small: bool = False
    """Only prove that it runs: least sizes and rounds."""
    full: bool = False
    """The sizes that the goals are stated for, where they take minutes."""
    gitwatch: str | None = None
    """Path of the script `gitwatch`, a peer that is not distributed as a package."""
    seed: int = 1
    """Of the random pauses."""

    def pick(self, usual: _Value, small: _Value, full: _Value | None = None) -> _Value:
        """Return the size that was asked for; without one of its own, the full size is the usual
        one.
        """
        if self.small:
            return small
        return full if self.full and full is not None else usual
