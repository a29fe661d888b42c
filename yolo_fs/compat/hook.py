"""What the advisory hooks share: the JSON on stdin, and advice on stdout. They never fail."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from yolo_fs.compat.folder import LIMIT_BYTES, Folder, object_of
from yolo_fs.reasons import Finding


def read_input() -> Mapping[str, Any]:
    """Return what the host says; nothing when that is no JSON object."""
    return object_of(sys.stdin.buffer.read(LIMIT_BYTES)) or {}


def tool_input(said: Mapping[str, Any], key: str) -> str:
    """Return a text of `tool_input`, or nothing."""
    given = said.get("tool_input")
    value = given.get(key) if isinstance(given, dict) else None
    return value if isinstance(value, str) else ""


def advise(text: str) -> None:
    """Give the agent advice."""
    print(
        json.dumps(
            {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": text}},
            indent=2,
        )
    )


def content(path: str) -> bytes | None:
    """Return the bytes of a file that the input names, or None."""
    folder, name = os.path.split(path)
    found = Folder(folder or ".").content(name) if name else None
    return None if isinstance(found, Finding) else found
