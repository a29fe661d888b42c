"""What becomes of a scene."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from yolo_fs.reasons import Reason


class Mark(Enum):
    """What became of a scene."""

    COMMITTED = "committed"
    REFUSED = "refused"
    HELD = "held"
    WAITING = "waiting"
    YES = "yes"
    """A question is answered, and the team goes on."""
    NO = "no"
    """A question is answered, and the team does not go on."""
    OWN = "own"
    """The actor's own doing: git, not the daemon."""
    DIFFERENT = "different"
    """Not what the play says."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was answered to a scene."""

    mark: Mark
    said: str
    commit: str = ""


class DifferentError(Exception):
    """Something else came than the play says."""

    def __init__(self, message: str, reason: Reason = Reason.INTERNAL_ERROR):
        super().__init__(message)
        self.reason = reason
