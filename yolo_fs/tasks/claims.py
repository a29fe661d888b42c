"""Claims of Devs on tasks: who has which files, and whose turn comes next. Pure.

Claims are served in the order in which they came. One that overlaps with an earlier one waits, and
so does whatever overlaps with a waiting one: nobody is overtaken. See
docs/dev/sources.md#document-000.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from yolo_fs.core.ids import TaskRef
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept
from yolo_fs.protocol.roster import department_said


class Claim(NamedTuple):
    """A Dev's request to work on a task."""

    agent: str
    """Agent instance, such as `dev-1`."""
    task: TaskRef
    files: tuple[str, ...]
    """Files that the task will change, relative to the repository."""
    claimed_at: str

    @property
    def department(self) -> Dept:
        """Whose task it is: two departments may have a plan of one number."""
        return department_said(self.agent) or DEFAULT_DEPARTMENT


@dataclass(frozen=True, slots=True)
class ClaimStatus:
    """State of a claim."""

    claim: Claim
    behind: Claim | None = None
    """The claim that it waits behind; None when it is granted."""
    file: str | None = None
    """The file that both want."""

    JSON_KEYS: ClassVar = {
        "agent": "claim.agent",
        "task": "claim.task",
        "files": "claim.files",
        "claimed_at": "claim.claimed_at",
        "granted": "is_granted",
        "holder": "behind.agent",
        "file": "file",
    }

    @property
    def is_granted(self) -> bool:
        """Whether the Dev may begin."""
        return self.behind is None

    def __str__(self) -> str:
        if self.behind is None:
            return f"{self.claim.agent} has {self.claim.task}"
        holder = self.behind
        return (
            f"{self.claim.agent} waits for {self.claim.task}: {holder.agent} has "
            f"{self.file} for {holder.task} since {holder.claimed_at}"
        )


def claim_statuses(claims: Iterable[Claim]) -> tuple[ClaimStatus, ...]:
    """Return the state of each open claim, in the order in which they came."""
    outcomes: list[ClaimStatus] = []
    for claim in claims:
        outcomes.append(_status_of(claim, [status.claim for status in outcomes]))
    return tuple(outcomes)


def _status_of(claim: Claim, earlier: list[Claim]) -> ClaimStatus:
    for other in earlier:
        is_same = (other.task, other.department) == (claim.task, claim.department)
        if is_same and other.agent != claim.agent:
            return ClaimStatus(claim, other, str(claim.task))
        if other.agent != claim.agent and (file := overlap(claim.files, other.files)):
            return ClaimStatus(claim, other, file)
    return ClaimStatus(claim)


def overlap(ours: Iterable[str], theirs: Iterable[str]) -> str:
    """Return the first of our files that is, holds or lies below one of theirs, if any."""
    own, others = map(posixpath.normpath, ours), [*map(posixpath.normpath, theirs)]
    return next((path for path in own if any(_is_overlap(path, other) for other in others)), "")


def _is_overlap(path: str, other: str) -> bool:
    return (
        path == other
        or path.startswith(f"{other}/")
        or other.startswith(f"{path}/")
        or "." in (path, other)
    )
