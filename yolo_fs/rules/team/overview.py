"""What a work tree knows of its team: who takes part, who holds what since when, and what waits,
why. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from yolo_fs.reasons import Reason
from yolo_fs.rules.timestamps import iso

_FEW = 5
"""Waiting artifacts of one kind that are named; more are counted."""


class PendingMove(StrEnum):
    """What an artifact waits for."""

    RECEIVE = "receive"
    PUBLISH = "publish"
    MERGE = "merge"
    CHOICE = "choice"
    """Both sides changed it, and only a person can bring them together."""


class WaitingArtifact(NamedTuple):
    """An artifact that one side has and the other has not."""

    path: str
    waits_for: PendingMove
    since_s: int
    """When the version was made, seconds since the epoch; 0 when that is unknown."""
    reason: Reason | None = None
    """None: it is on its way."""
    what: str = ""


class HeldLease(NamedTuple):
    """A department that one clone publishes for."""

    dept: str
    holder: str
    epoch: int
    since_s: int
    """When it came into these hands, by the clock of who took it."""


class CloneStanding(NamedTuple):
    """One clone or work tree of the team."""

    name: str
    published: int = 0
    """Versions on the team's ref that were made there."""
    last_s: int = 0
    """When the last of them was made; 0 when there is none."""
    last: str = ""
    """Its subject."""
    root: str = ""
    """Where it is; empty for a clone that is not beside this one."""
    branch: str = ""
    is_here: bool = False
    """Whether it is the work tree that was asked."""
    daemon_runs: bool | None = None
    """None for a clone that is not beside this one: nobody tells."""
    behind: int | None = None
    """Versions of the team that its branch lacks; None where its branch cannot be seen."""
    ahead: int | None = None
    """Versions of its branch that the team lacks."""


class RemoteLane(NamedTuple):
    """How the way to the remote is, as its thread noted last."""

    remote: str
    reason: Reason | None = None
    """Why the last exchange failed; None when it did not."""
    what: str = ""
    since: str = ""
    """Since when it is so."""
    round_trip_s: float = 0.0
    silence: str = ""
    """Why the others' bells are not heard; empty while they are, and where there is none."""
    is_known: bool = True
    """Whether an exchange has been tried at all."""


class TeamOverview(NamedTuple):
    """A team as one of its work trees sees it."""

    team: str
    clone: str
    ref: str
    tip: str | None
    lane: RemoteLane | None = None
    """None where the work trees of one repository meet."""
    clones: tuple[CloneStanding, ...] = ()
    leases: tuple[HeldLease, ...] = ()
    waiting: tuple[WaitingArtifact, ...] = ()

    @property
    def here(self) -> CloneStanding:
        """The work tree that was asked."""
        return next(each for each in self.clones if each.is_here)


def headline(seen: TeamOverview) -> str:
    """Return one line about a team."""
    counts = [f"{len(seen.clones)} work trees and clones"]
    if seen.here.behind:
        counts.append(f"{seen.here.behind} behind")
    if seen.here.ahead:
        counts.append(f"{seen.here.ahead} to publish")
    if len(counts) == 1:
        counts.append("in step")
    return f"team {seen.team}, here {seen.clone}: {', '.join(counts)}"


def obstructions(seen: TeamOverview) -> Iterator[str]:
    """Yield what keeps this work tree and its team apart, the most pressing first."""
    for each in seen.waiting:
        if each.waits_for is PendingMove.CHOICE:
            yield f"{each.path}: changed here and in the team; 'yolo-fs team resolve' chooses"
    if seen.lane and seen.lane.reason:
        said = f": {seen.lane.what}" if seen.lane.what else ""
        since = f" since {seen.lane.since}" if seen.lane.since else ""
        yield f"{seen.lane.reason.value} at {seen.lane.remote}{since}{said}"
    if seen.lane and seen.lane.silence:
        yield f"no bell is heard, so the remote is looked at now and then: {seen.lane.silence}"
    for direction in (PendingMove.PUBLISH, PendingMove.RECEIVE, PendingMove.MERGE):
        held = [each for each in seen.waiting if each.waits_for is direction and each.reason]
        for each in held[:_FEW]:
            said = f" ({each.what})" if each.what else ""
            since = f" since {iso(each.since_s)}" if each.since_s else ""
            why = f"{each.reason.value}: {each.reason.sentence}" if each.reason else ""
            yield f"{each.path} waits to {direction}{since}: {why}{said}"
        if len(held) > _FEW:
            yield f"{len(held) - _FEW} more wait to {direction}"


def holdings(seen: TeamOverview) -> Iterator[str]:
    """Yield who holds what since when."""
    for each in seen.leases:
        mine = " (this clone)" if each.holder == seen.clone else ""
        since = f" since {iso(each.since_s)}" if each.since_s else ""
        yield f"{each.dept} is held by {each.holder}{mine}{since}, epoch {each.epoch}"


def others(seen: TeamOverview) -> Iterator[str]:
    """Yield how each other clone stands."""
    for each in seen.clones:
        if each.is_here:
            continue
        facts = [f"{each.published} published"]
        if each.last_s:
            facts.append(f"last {iso(each.last_s)}")
        if each.behind is not None:
            facts.append(f"{each.behind} behind, {each.ahead} to publish")
        if each.daemon_runs is False:
            facts.append("no daemon runs there")
        place = f" on {each.branch}" if each.branch else ""
        yield f"{each.name}{place}: {', '.join(facts)}"
