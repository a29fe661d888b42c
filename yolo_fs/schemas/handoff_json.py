"""The `handoff.json` that an agent leaves for the orchestrator.

Its whole rule is the document's own filter:

    (.status | type == "string") and (.artifacts | type == "array") and (has("next")) and (.summary | type == "string")

so an empty text passes, `next` may be anything that JSON can say, null too, and further keys are
free. See docs/sources.md#document-004.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import Fault, Wire, check

__all__ = ["HandoffJson", "read_handoff_json"]


class HandoffJson(Wire):
    """What an agent says when it ends."""

    status: str
    """How the agent ended."""
    artifacts: list[Any]
    """What it made."""
    next: Any
    """Who goes on; the key must stand there, its value may be null."""
    summary: str
    """What was done."""


def read_handoff_json(value: Mapping[str, Any]) -> tuple[HandoffJson | None, tuple[Fault, ...]]:
    """Return the handoff, or None, with its faults. Unknown keys are none in any mode: the filter ignores them."""
    shaped, faults = check(HandoffJson, value)
    kept = tuple(fault for fault in faults if fault.reason is not Reason.UNKNOWN_KEY)
    return shaped if isinstance(shaped, HandoffJson) else None, kept
