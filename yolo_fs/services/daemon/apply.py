"""Carries actions out: commits in one chain, then what is to be told, then the user's index.

The only place where a decision becomes a change.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from yolo_fs.edges import failpoint
from yolo_fs.edges.git.commit import CommitRequest, CommitResult, Committer
from yolo_fs.edges.git.obstacles import Obstacles
from yolo_fs.edges.git.repository import Head
from yolo_fs.reasons import Reason, YoloError
from yolo_fs.rules.artifacts.verdicts import Accepted, Committed, Held, Verdict
from yolo_fs.rules.decide import Action, Commit, Emit, EventSink


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What became of the artifacts that were to be committed."""

    verdicts: dict[str, Verdict]
    """Path → `Committed`, or `Held` with the reason why not."""
    made: tuple[CommitResult, ...] = ()


class CommitBudget:
    """How many commits a minute may have: a breaker for loops between tools."""

    def __init__(self, per_minute: int):
        """Allow that many; 0 sets no limit."""
        self._per_minute = per_minute
        self._spent: deque[float] = deque()

    def allowance(self) -> int | None:
        """Return how many commits may be made now; None for any number."""
        if not self._per_minute:
            return None
        while self._spent and time.monotonic() - self._spent[0] > 60:
            self._spent.popleft()
        return max(0, self._per_minute - len(self._spent))

    def spend(self) -> None:
        """Note one commit."""
        if self._per_minute:
            self._spent.append(time.monotonic())


class Applier:
    """Puts actions into effect in one repository."""

    def __init__(
        self,
        committer: Committer,
        obstacles: Obstacles,
        budget: CommitBudget,
        emit: EventSink,
    ):
        self._committer = committer
        self._obstacles = obstacles
        self._budget = budget
        self._emit = emit

    def carry_out(self, actions: Sequence[Action], head: Head) -> ApplyResult:
        """Commit first, tell afterwards; a failed commit is told and leaves everything as it
        was.
        """
        accepted = [action.accepted for action in actions if isinstance(action, Commit)]
        outcome = self._commit(accepted, head)
        for action in actions:
            if isinstance(action, Emit):
                self._emit(action.event, action.path, action.data)
        return outcome

    def _commit(self, accepted: Sequence[Accepted], head: Head) -> ApplyResult:
        allowed = self._budget.allowance()
        accepted, late = accepted[:allowed], accepted[allowed:]
        verdicts: dict[str, Verdict] = {
            each.place.path: Held(Reason.COMMIT_BUDGET) for each in late
        }
        if not accepted:
            return ApplyResult(verdicts)
        if self._obstacles.changed_since(head, time.time_ns()):
            return ApplyResult(
                verdicts | {each.place.path: Held(Reason.BRANCH_MOVED) for each in accepted}
            )
        entries = [
            CommitRequest(each.place.path, each.data, each.subject, each.trailers)
            for each in accepted
        ]
        try:
            made = self._committer.commit(entries, head)
        except YoloError as error:
            held = Held(error.reason, (error.as_finding(),))
            return ApplyResult(verdicts | {each.place.path: held for each in accepted})
        for each, one in zip(accepted, made, strict=True):
            if one.commit:
                self._budget.spend()
                self._emit_commit(each, one, head)
        failpoint.reach("apply.told")
        return ApplyResult(verdicts | {one.path: Committed(one.blob) for one in made}, made)

    def _emit_commit(self, accepted: Accepted, made: CommitResult, head: Head) -> None:
        data = {
            "commit": made.commit,
            "blob": made.blob,
            "subject": accepted.subject,
            "branch": head.branch,
            "kind": accepted.place.artifact.kind,
            "warnings": [warning.as_json() for warning in accepted.warnings],
        }
        self._emit("artifact.committed", accepted.place.path, data)
