"""Prints JSON as the reference scripts do: pretty, and in ASCII whatever the locale. Source: protocol 8."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON value."""
    print(json.dumps(value, indent=2))


def now() -> str:
    """Return this moment, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
