"""Decisions that agents took on the way."""

from __future__ import annotations

from yolo_fs.schemas.base import Field, IsoInstant, OneLine, Text, Wire


class Decision(Wire):
    """One decision."""

    ts: IsoInstant
    """Timestamp."""
    agent: OneLine
    """Agent that decided."""
    dec: Text
    """Decision."""
    reason: Text
    """Reason."""
    task: str = ""
    """Task that it was taken for."""
    alts: list[Text] = Field(default_factory=list)
    """Alternatives that were considered."""
