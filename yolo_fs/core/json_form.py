"""The only conversion from values to JSON: for `--json`, events and records.

A class whose JSON differs from its fields declares it as data, in `JSON_KEYS`: key → attribute, or
attributes joined by dots. None along the path gives null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from yolo_fs.core.reasons import Finding, safe_lines
from yolo_fs.core.timestamps import iso


def to_json(value: Any) -> Any:
    """Return a value as objects, lists, strings, numbers, booleans and None.

    A function is called, so that its data is only computed for JSON output. Enums give their value,
    times RFC 3339 in UTC, and named tuples with their own `str`, such as ids, that text.

    Raises:
        TypeError: nothing says how such a value is written.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {to_json(key): to_json(each) for key, each in value.items()}
    if isinstance(value, datetime):
        return iso(value)
    if keys := getattr(value, "JSON_KEYS", None):
        return {key: to_json(_attribute_at(value, path)) for key, path in keys.items()}
    if is_dataclass(value):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
    if names := getattr(value, "_fields", ()):
        is_id = "__str__" in vars(type(value))
        return str(value) if is_id else {name: to_json(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if callable(value):
        return to_json(value())
    raise TypeError(f"no JSON for {type(value).__name__}")


def readable_json(value: Any, **form: Any) -> str:
    """Return JSON with characters instead of escapes, and none that UTF-8 cannot write.

    `form`: indent and separators, as `json.dumps` takes them.
    """
    text = json.dumps(value, ensure_ascii=False, **form)
    return _HALF_OF_A_PAIR.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


_HALF_OF_A_PAIR = re.compile("[\ud800-\udfff]")


def envelope(command: str, data: Any, findings: Sequence[Finding], *, ok: bool) -> str:
    """Return the JSON envelope; the same input gives the same bytes."""
    value = {
        "ok": ok,
        "data": to_json(data),
        "findings": [finding.as_json() for finding in findings],
        "schema": f"yolo-fs/{command}/1",
    }
    return json.dumps(value, ensure_ascii=True)


def visible(value: Any) -> Any:
    """Return a JSON value with every invisible character of its texts and keys escaped.

    Tabs and line ends stay. For output that passes it on without JSON escapes.
    """
    if isinstance(value, str):
        return safe_lines(value)
    if isinstance(value, dict):
        return {visible(key): visible(each) for key, each in value.items()}
    return [visible(each) for each in value] if isinstance(value, list) else value


def _attribute_at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name, None) if value is not None else None
    return value
