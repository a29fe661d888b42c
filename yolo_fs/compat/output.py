"""Prints JSON as the reference scripts do: pretty, and in ASCII whatever the locale."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from yolo_fs.reasons import safe
from yolo_fs.rules.timestamps import iso


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON value."""
    print(json.dumps(value, indent=2))


def print_verdict(errors: Sequence[str], warnings: Sequence[str]) -> int:
    """Print what a validator says, and return its exit code."""
    print_json({"valid": not errors, "errors": errors, "warnings": warnings})
    return 1 if errors else 0


_JSON_TYPES = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def json_type(value: object) -> str:
    """Return the JSON type of a value, as jq names it."""
    return _JSON_TYPES.get(type(value), "null")


def warn(text: str) -> None:
    """Print a warning on stderr; nothing for an empty text."""
    if text:
        print(f"[warn] {safe(text, 500)}", file=sys.stderr)


def now() -> str:
    """Return this moment, UTC, to the second."""
    return iso(time.time())
