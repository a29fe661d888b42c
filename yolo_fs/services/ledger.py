"""What was last seen of every candidate. What is not committed is kept apart, for it alone is asked
for at every turn.
"""

from __future__ import annotations

from collections.abc import Mapping

from yolo_fs.rules.artifacts.verdicts import Committed, Ignored, Verdict
from yolo_fs.services.survey import Glance


class Ledger:
    """Candidates by path; thousands of committed ones cost a turn nothing."""

    def __init__(self) -> None:
        self._glances: dict[str, Glance] = {}
        self._unsettled: dict[str, Verdict] = {}

    @property
    def glances(self) -> Mapping[str, Glance]:
        """Path → the last look."""
        return self._glances

    @property
    def unsettled(self) -> Mapping[str, Verdict]:
        """Path → verdict of the last look, of whatever is not committed."""
        return self._unsettled

    def note(self, path: str, glance: Glance) -> None:
        """Remember a look; what is no candidate is forgotten."""
        verdict = glance.seen.verdict
        if isinstance(verdict, Ignored):
            self.forget(path)
            return
        self._glances[path] = glance
        if isinstance(verdict, Committed):
            self._unsettled.pop(path, None)
        else:
            self._unsettled[path] = verdict

    def forget(self, path: str) -> None:
        """Forget a path that is no candidate any more."""
        self._glances.pop(path, None)
        self._unsettled.pop(path, None)

    def verdict(self, path: str) -> Verdict | None:
        """Return the verdict of the last look; None for what was never looked at."""
        glance = self._glances.get(path)
        return glance.seen.verdict if glance else None
