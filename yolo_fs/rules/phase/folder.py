"""A phase directory as the rules of the drop-in gates see it: a port, for rules touch no disk.

"Exists" means a regular file with content; a sentinel is an empty file and merely stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Row = Mapping[str, Any] | None
"""The object on one line; None where the line is no JSON object."""


class PhaseFolder(Protocol):
    """What may be asked of a phase directory."""

    def stands(self, name: str) -> bool:
        """Tell whether a regular file has this name."""

    def has(self, name: str) -> bool:
        """Tell whether a regular file has this name and content."""

    def is_json(self, name: str) -> bool:
        """Tell whether the file is there and all of it parses, on as many lines as it likes."""

    def names(self, beginning: str, ending: str) -> Sequence[str]:
        """Return the names of files that begin and end so, sorted."""

    def rows(self, name: str) -> Sequence[Row]:
        """Return the lines of a file; none when it is absent, a single None when it cannot be read."""

    def object(self, name: str) -> Mapping[str, Any]:
        """Return the one JSON object of a file; empty when there is none."""


def first(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Return the first line; empty when there is none, or when it is no JSON object."""
    return (rows[0] if rows else None) or {}


def says(row: Row, key: str, *values: object) -> bool:
    """Tell whether a line says one of the values under a key."""
    return row is not None and row.get(key) in values
