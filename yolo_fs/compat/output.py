"""Prints JSON as the reference scripts do: pretty, and in ASCII whatever the locale."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from yolo_fs.rules.timestamps import iso


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON value."""
    print(json.dumps(value, indent=2))


def now() -> str:
    """Return this moment, UTC, to the second."""
    return iso(time.time())
