"""What is to be done about what was seen. Values only: `services.apply` carries them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from yolo_fs.rules.artifacts.verdicts import Accepted


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit an accepted artifact, alone."""

    accepted: Accepted


@dataclass(frozen=True, slots=True)
class Tell:
    """Write a fact to the journal, where agents and people follow it."""

    event: str
    """Type of the event without our prefix, such as `artifact.rejected`."""
    path: str
    data: dict[str, Any] = field(default_factory=dict)


Action = Commit | Tell
