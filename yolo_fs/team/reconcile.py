"""Three-way reconciliation of the coordinated paths of a branch with the team's ref. Pure.

Leases decide who may publish there. Two versions of a JSONL artifact are merged by records, never
by the lines around them.

Both histories are the only input: the last version of the team that the branch's history contains
is the base. A lost notification, a crash between any two steps, a switched or rebased branch and a
clone restored from a backup therefore need no rule of their own: the next look repairs them. The
team's branch moves only by fast-forward, so whoever publishes on a commit has read the leases of
exactly that commit. A lease that was taken meanwhile makes the whole push fail.

This module also has what a work tree knows of its team: who takes part, who holds what since when,
and what waits, and why.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache, partial
from typing import Any, NamedTuple

from yolo_fs.artifacts.records import content_of, name_of
from yolo_fs.artifacts.table import Artifact, MergeStrategy
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.reasons import Reason
from yolo_fs.core.timestamps import Time
from yolo_fs.protocol.departments import WORKING_NAMES


class PathVersion(NamedTuple):
    """One commit that gave a path its content, in the branch or on the team's ref."""

    path: str
    blob: str | None
    """None: the commit deleted the file."""
    commit: str


class Divergence(NamedTuple):
    """A path that both sides changed since they last agreed."""

    path: str
    base: str | None
    """Blob of the last version of the team that the branch has had; None when it had none."""
    ours: str
    theirs: str


class TeamPlan(NamedTuple):
    """What has to happen so that a branch and the team's ref agree."""

    receive: tuple[PathVersion, ...] = ()
    """Versions of the team to commit on the branch, in the team's order."""
    publish: tuple[PathVersion, ...] = ()
    """Versions of the branch to commit on the team's ref, in the branch's order."""
    diverged: tuple[Divergence, ...] = ()


def plan_of(
    ours: Iterable[PathVersion],
    theirs: Iterable[PathVersion],
    *,
    taken: frozenset[tuple[str, str]] = frozenset(),
) -> TeamPlan:
    """Return what makes a branch and the team's ref agree, given their changes, oldest first.

    `taken`: (path, blob) of divergences whose last version here contains the team's, so that it may
    go on top of it.
    """
    here, there = _group_by_path(ours), _group_by_path(theirs)
    receive: list[tuple[int, PathVersion]] = []
    publish: list[tuple[int, PathVersion]] = []
    diverged: list[Divergence] = []
    for path in here | there:
        merged = _merge(here.get(path, []), there.get(path, []), path, taken)
        receive += merged.receive
        publish += merged.publish
        diverged += merged.diverged
    return TeamPlan(
        tuple(change for _, change in sorted(receive)),
        tuple(change for _, change in sorted(publish)),
        tuple(diverged),
    )


_Numbered = tuple[int, PathVersion]


class _Merged(NamedTuple):
    receive: Sequence[_Numbered] = ()
    publish: Sequence[_Numbered] = ()
    diverged: Sequence[Divergence] = ()


def _merge(
    here: list[_Numbered], there: list[_Numbered], path: str, taken: frozenset[tuple[str, str]]
) -> _Merged:
    ours, theirs = _last(here), _last(there)
    known_here, known_there = _find_last_agreed(here, there)
    new_here, new_there = here[known_here:], there[known_there:]
    if ours == theirs or not (new_here or new_there):
        return _Merged()
    agreed = here[known_here - 1][1].blob if known_here else None
    if ours is None or not new_here or ours == agreed:
        # A file that was deleted here comes back with the team's next version, not before.
        return _Merged(receive=_contents(new_there) if theirs else ())
    if theirs in (None, agreed) or not new_there or (path, ours) in taken:
        return _Merged(publish=_contents(new_here))
    return _Merged(diverged=(Divergence(path, agreed, ours, theirs),))


def _find_last_agreed(here: Sequence[_Numbered], there: Sequence[_Numbered]) -> tuple[int, int]:
    """Return how many changes each side has up to the last version that both have had.

    The versions are matched in order, each as early as possible: content that comes back is a new
    version.
    """
    agreed, start = (0, 0), 0
    for at, (_, change) in enumerate(here):
        matches = (
            number
            for number in range(start, len(there))
            if change.blob is not None and there[number][1].blob == change.blob
        )
        if (match := next(matches, None)) is not None:
            start = match + 1
            agreed = (at + 1, start)
    return agreed


def _group_by_path(changes: Iterable[PathVersion]) -> dict[str, list[_Numbered]]:
    groups: dict[str, list[_Numbered]] = {}
    for number, change in enumerate(changes):
        of_path = groups.setdefault(change.path, [])
        if not of_path or of_path[-1][1].blob != change.blob:
            of_path.append((number, change))
    return groups


def _last(changes: Sequence[_Numbered]) -> str | None:
    return changes[-1][1].blob if changes else None


def _contents(changes: Sequence[_Numbered]) -> list[_Numbered]:
    return [numbered for numbered in changes if numbered[1].blob is not None]


_TIMES = ("dt", "ts", "at", "started")
"""Keys for the time at which a record was made. The first one that is present counts."""


class MergedLines(NamedTuple):
    """The merge of three versions of a file."""

    lines: tuple[str, ...]
    conflicts: tuple[str, ...] = ()
    """Names of the records that both sides changed differently; the lines are then empty."""


class _Record(NamedTuple):
    name: str
    """Its identity among the records of its file: its id, or its whole content."""
    line: str
    value: Mapping[str, Any]

    @property
    def time(self) -> str:
        """When it was made, by its own statement."""
        return next((at for key in _TIMES if isinstance(at := self.value.get(key), str)), "")


def merge_texts(artifact: Artifact, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the merge of two versions of a file, given their base; None on a conflict.

    Where both sides are the same, or only one changed anything, there is no conflict, whatever the
    kind.
    """
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if artifact.merge_strategy is MergeStrategy.WHOLE:
        return None
    try:
        before, here, there = (_lines_of(each) for each in (base, ours, theirs))
        merged = merge_lines(artifact, before, here, there)
    except ValueError:
        return None
    if before in (here, there):  # but for the end of the last line
        return theirs if here == before else ours
    return None if merged.conflicts else "".join(f"{line}\n" for line in merged.lines).encode()


def merge_lines(
    artifact: Artifact, base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> MergedLines:
    """Return the merged lines of two versions.

    Raises:
        ValueError: a line is no JSON object.
    """
    read = cache(partial(_record_of, artifact))  # most lines are in all three
    versions = [[read(line) for line in lines] for lines in (base, ours, theirs)]
    if artifact.merge_strategy is MergeStrategy.APPEND:
        return MergedLines(_merge_by_time(versions[1], versions[2]))
    for records in versions:
        if doubled := _doubled(records):
            return MergedLines((), doubled)
    return _merge_by_records(*({record.name: record for record in records} for records in versions))


def _merge_by_records(
    base: dict[str, _Record], ours: dict[str, _Record], theirs: dict[str, _Record]
) -> MergedLines:
    """Apply our changes to their version: their lines stay in place, our additions come last."""
    lines: list[str] = []
    conflicts: list[str] = []
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        before, here, there = base.get(name), ours.get(name), theirs.get(name)
        if _are_alike(here, there) or _are_alike(here, before):
            chosen = there
        elif _are_alike(there, before):
            chosen = here
        else:
            conflicts.append(name)
            continue
        if chosen:
            lines.append(chosen.line)
    return MergedLines(() if conflicts else tuple(lines), tuple(conflicts))


def _merge_by_time(ours: Sequence[_Record], theirs: Sequence[_Record]) -> tuple[str, ...]:
    """Return their lines and those that only we have, each before their first later one."""
    known = {record.name for record in theirs}
    added = [
        record
        for record in {own_record.name: own_record for own_record in ours}.values()
        if record.name not in known
    ]
    lines: list[str] = []
    latest = ""
    for record in theirs:
        latest = max(latest, record.time)
        while added and added[0].time < latest and added[0].time:
            lines.append(added.pop(0).line)
        lines.append(record.line)
    return (*lines, *(record.line for record in added))


def _doubled(records: Sequence[_Record]) -> tuple[str, ...]:
    counts = Counter(record.name for record in records)
    return tuple(sorted(name for name, count in counts.items() if count > 1))


def _record_of(artifact: Artifact, line: str) -> _Record:
    value = parse(line, len(line))
    if not isinstance(value, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 — data is wrong, not its type
    name = name_of(artifact, value) if artifact.merge_strategy is MergeStrategy.BY_ID else ""
    return _Record(name or content_of(value), line, value)


def _are_alike(record: _Record | None, other: _Record | None) -> bool:
    """Return whether two versions have the same content, in any order, or are both absent."""
    if record is None or other is None:
        return record is other
    return record.line == other.line or content_of(record.value) == content_of(other.value)


def _lines_of(data: bytes) -> list[str]:
    """Return the lines of a file, without the empty one behind its last newline.

    Raises:
        ValueError: it is no UTF-8.
    """
    lines = data.decode().split("\n")
    return lines if lines[-1] else lines[:-1]


FOLDER = ".yolo-team/leases"
COMPANY = "company"
"""The lease of whoever runs the company of the team; the other leases are of departments."""
LEASES = (*(name.value for name in WORKING_NAMES), COMPANY)
TTL_S = 60
"""TTL of a lease: after so many seconds without a heartbeat, another clone may take it over."""
LONGEST_TTL_S = 3600
LEASE_BYTES = 4096
"""A larger lease is invalid: nobody known holds it."""
_NOBODY_KNOWN = "?"


class TeamLease(NamedTuple):
    """The lease of one department, or that of the company's runner."""

    dept: str
    """One of `LEASES`."""
    holder: str
    """Clone that holds it; empty when it is free."""
    epoch: int
    """Incremented at each change of holder."""
    ttl_s: int = TTL_S
    lent_by: str = ""
    """Clone to return it to: the holder took it over automatically while that clone was silent."""

    @property
    def as_bytes(self) -> bytes:
        """The content of its file."""
        return (json.dumps(self._asdict(), sort_keys=True) + "\n").encode()

    def may_publish(self, clone: str) -> bool:
        """Return whether a clone may publish the department's artifacts."""
        return self.holder in ("", clone)

    def passed_to(self, clone: str) -> TeamLease:
        """Return the lease held by another clone; by nobody when `clone` is empty."""
        return TeamLease(self.dept, clone, self.epoch + 1, self.ttl_s)

    def lent_to(self, clone: str) -> TeamLease:
        """Return the lease taken over by a clone from its silent holder."""
        return self.passed_to(clone)._replace(lent_by=self.lent_by or self.holder)


def path_of(dept: str) -> str:
    """Return where the lease of a department lies on the team's branch."""
    return f"{FOLDER}/{dept}.json"


def read_lease(dept: str, data: bytes | None) -> TeamLease:
    """Return a department's lease, given its file. An invalid lease has no known holder."""
    if data is None:
        return TeamLease(dept, "", 0)
    try:
        value = parse(data, LEASE_BYTES)
        lent_by = value.get("lent_by", "")
        lease = TeamLease(dept, value["holder"], value["epoch"], value["ttl_s"], lent_by)
    except (ValueError, KeyError, TypeError, AttributeError):
        return TeamLease(dept, _NOBODY_KNOWN, 0)
    is_sound = (
        isinstance(lease.holder, str)
        and isinstance(lease.lent_by, str)
        and type(lease.epoch) is int
        and type(lease.ttl_s) is int
        and 0 < lease.ttl_s <= LONGEST_TTL_S
    )
    return lease if is_sound else TeamLease(dept, _NOBODY_KNOWN, 0)


def department_of(place: ArtifactPath) -> str:
    """Return the department whose lease an artifact needs; empty for what all departments share."""
    is_of_department = "{dept}" in place.artifact.file or place.artifact.made_by is not None
    return str(place.department) if is_of_department else ""


_FEW = 5
"""Waiting artifacts of one kind that are named; more are counted."""


class PendingMove(StrEnum):
    """What an artifact waits for."""

    RECEIVE = "receive"
    PUBLISH = "publish"
    MERGE = "merge"
    CHOICE = "choice"
    """Both sides changed it, and only a person can merge them."""


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
    """When its holder took it, by the holder's own clock."""


class CloneStatus(NamedTuple):
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


class RemoteStatus(NamedTuple):
    """State of the connection to the remote, as its thread last noted it."""

    remote: str
    reason: Reason | None = None
    """Why the last exchange failed; None when it did not."""
    what: str = ""
    since: str = ""
    """Since when it is in this state."""
    round_trip_s: float = 0.0
    silence: str = ""
    """Why the others' notices are not received; empty while they are, and where there are none."""
    is_known: bool = True
    """Whether an exchange has been tried at all."""


class TeamOverview(NamedTuple):
    """A team as one of its work trees sees it."""

    team: str
    clone: str
    ref: str
    tip: str | None
    lane: RemoteStatus | None = None
    """None where only the work trees of one repository meet."""
    clones: tuple[CloneStatus, ...] = ()
    leases: tuple[HeldLease, ...] = ()
    waiting: tuple[WaitingArtifact, ...] = ()

    @property
    def here(self) -> CloneStatus:
        """The work tree that was asked."""
        return next(each for each in self.clones if each.is_here)


TimeForm = Callable[[Time], str]
"""How whoever reads a sentence is told a time: `iso` for agents, `local` for people."""


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


def obstructions(seen: TeamOverview, format_time: TimeForm) -> Iterator[str]:
    """Yield what keeps this work tree and its team apart, the most pressing first."""
    for each in seen.waiting:
        if each.waits_for is PendingMove.CHOICE:
            yield f"{each.path}: changed here and in the team; 'yolo-fs team resolve' chooses"
    if seen.lane and seen.lane.reason:
        detail = f": {seen.lane.what}" if seen.lane.what else ""
        since = f" since {format_time(seen.lane.since)}" if seen.lane.since else ""
        yield f"{seen.lane.reason.value} at {seen.lane.remote}{since}{detail}"
    if seen.lane and seen.lane.silence:
        yield f"no notifications arrive, so the remote is polled: {seen.lane.silence}"
    for direction in (PendingMove.PUBLISH, PendingMove.RECEIVE, PendingMove.MERGE):
        held = [each for each in seen.waiting if each.waits_for is direction and each.reason]
        for each in held[:_FEW]:
            detail = f" ({each.what})" if each.what else ""
            since = f" since {format_time(each.since_s)}" if each.since_s else ""
            why = each.reason.with_sentence if each.reason else ""
            yield f"{each.path} waits to {direction}{since}: {why}{detail}"
        if len(held) > _FEW:
            yield f"{len(held) - _FEW} more wait to {direction}: see 'yolo-fs team status --json'"


def holdings(seen: TeamOverview, format_time: TimeForm) -> Iterator[str]:
    """Yield who holds what since when."""
    for each in seen.leases:
        mine = " (this clone)" if each.holder == seen.clone else ""
        since = f" since {format_time(each.since_s)}" if each.since_s else ""
        yield f"{each.dept} is held by {each.holder}{mine}{since}, epoch {each.epoch}"


def others(seen: TeamOverview, format_time: TimeForm) -> Iterator[str]:
    """Yield how each other clone stands."""
    for each in seen.clones:
        if each.is_here:
            continue
        facts = [f"{each.published} published"]
        if each.last_s:
            facts.append(f"last {format_time(each.last_s)}")
        if each.behind is not None:
            facts.append(f"{each.behind} behind, {each.ahead} to publish")
        if each.daemon_runs is False:
            facts.append("no daemon runs there")
        place = f" on {each.branch}" if each.branch else ""
        yield f"{each.name}{place}: {', '.join(facts)}"
