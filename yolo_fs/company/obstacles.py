"""What keeps everything from being committed: a merge of the user's, a lock, a full disk."""

from __future__ import annotations

from yolo_fs.artifacts.verdicts import CandidateState
from yolo_fs.company.awake import AwakeClock
from yolo_fs.company.branch import PATIENCE_S, Branch
from yolo_fs.core.reasons import Reason


class ObstacleWatch:
    """The obstacle of now, and since when there is one or none."""

    def __init__(self, branch: Branch, clock: AwakeClock):
        self._branch, self._clock = branch, clock
        self.found: Reason | None = None
        """As of the last look: what an agent makes meanwhile is held."""
        self._since = float("-inf")
        """When it came, or when it went."""

    def look(self) -> bool:
        """Look again, and return whether nothing may be committed now: whoever was started would be
        paid for nothing.
        """
        obstacle = self._branch.find_obstacle()
        if obstacle is not self.found:
            self.found, self._since = obstacle, self._clock.now()
        return obstacle is not None

    def forget(self) -> None:
        """Forget what was found, since a person has ended it."""
        self.found = None

    @property
    def is_young(self) -> bool:
        """Whether it came or went just now, as the lock of another git command does."""
        return self._clock.now() - self._since < PATIENCE_S[CandidateState.HELD]

    @property
    def is_passing(self) -> bool:
        """Whether other git commands come and go: the daemon commits between two of them."""
        return self.found in (None, Reason.INDEX_LOCKED) and self.is_young
