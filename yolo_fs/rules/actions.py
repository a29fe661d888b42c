"""What is to be done about what was seen. Values only: `services.daemon.apply` carries them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yolo_fs.rules.artifacts.verdicts import Accepted

EventSink = Callable[[str, str, Mapping[str, Any]], object]
"""Takes an event's type, the path that it is about, and its data."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit an accepted artifact, alone."""

    accepted: Accepted


@dataclass(frozen=True, slots=True)
class Emit:
    """Write a fact to the journal, where agents and people follow it."""

    event: str
    """Type of the event without our prefix, such as `artifact.rejected`."""
    path: str
    data: dict[str, Any] = field(default_factory=dict)


Action = Commit | Emit
