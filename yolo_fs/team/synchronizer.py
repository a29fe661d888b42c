"""One look of a work tree at its team's ref: receive what is new there, publish what is new here.

Level-triggered: the two histories are the only state, so the next look repairs whatever was lost or
interrupted.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.artifacts.naming import subject_of, trailers_of
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.checking.checker import Checker, previous_records
from yolo_fs.checking.snapshots import WorkTree
from yolo_fs.core.reasons import Exit, Reason, YoloError, errors, safe
from yolo_fs.git.commit import CommitRequest, Committer
from yolo_fs.git.history import (
    LoggedChange,
    LoggedCommit,
    changes_along,
    changes_of,
    line_between,
    read_commit,
)
from yolo_fs.git.index import IndexSync
from yolo_fs.git.obstacles import Obstacles
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Head, Repository
from yolo_fs.protocol.workflow import Trailer
from yolo_fs.schemas.layout import Record
from yolo_fs.system import failpoint
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import place_file, sync_file
from yolo_fs.team.membership import Membership
from yolo_fs.team.origin import is_proved
from yolo_fs.team.reconcile import (
    LEASE_BYTES,
    Divergence,
    PathVersion,
    TeamLease,
    TeamPlan,
    department_of,
    merge_texts,
    path_of,
    plan_of,
    read_lease,
)
from yolo_fs.workspace.own_files import BESIDE
from yolo_fs.workspace.settings import Settings

_AT_ONCE_BYTES = 32 << 20
"""Most bytes of the team's versions that are read before the first of them is committed."""
_ROUNDS = 8
"""Most looks in a row, while each leaves something for the next."""
_NOT_HERE_YET = (Reason.WAITS_FOR, Reason.UNKNOWN_COMMIT)
"""What an artifact refers to may come later, or stay on the machine where it was made."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A path that cannot proceed now, and why."""

    path: str
    reason: Reason
    what: str = ""


class SyncStatus(NamedTuple):
    """State of a work tree relative to its team."""

    tip: str | None
    """The team's last commit."""
    receive: tuple[PathVersion, ...] = ()
    """Versions of the team that the branch does not have."""
    publish: tuple[PathVersion, ...] = ()
    """Versions of the branch that the team does not have."""
    merges: tuple[tuple[Divergence, bytes], ...] = ()
    """What both sides changed, with the merge by records."""
    conflicts: tuple[Divergence, ...] = ()
    """What both sides changed, and only a person can merge."""
    held: tuple[HeldBack, ...] = ()
    """What the last look could not do."""
    done: int = 0
    """Versions that the last look received, merged or published."""
    received: tuple[str, ...] = ()
    """Paths whose content the last look has changed here."""

    @property
    def is_moving(self) -> bool:
        """Whether time alone brings progress."""
        return bool(self.receive or self.merges)

    @property
    def is_agreed(self) -> bool:
        """Whether neither side has anything that the other lacks."""
        return not (self.receive or self.publish or self.merges or self.conflicts)


class _Version(NamedTuple):
    """A version to be committed, and where it was made."""

    change: PathVersion
    data: bytes
    origin: str
    """`CLONE/COMMIT` that made it; empty for one that we make ourselves."""
    made: LoggedCommit | None
    """The commit that it comes from, as far as that can be read."""

    @property
    def at(self) -> datetime | None:
        """When it was committed there."""
        return datetime.fromtimestamp(self.made.at_s, UTC) if self.made else None


class _Past:
    """Changes of some paths up to a tip. Each look continues where the last one ended."""

    def __init__(self, repository: Repository, since: str | None):
        """`since`: the commit whose contents stand for everything before it; None for none."""
        self._repository = repository
        self._since = since
        self._tip: str | None = None
        self._paths: frozenset[str] = frozenset()
        self._changes: list[LoggedChange] = []

    def read(self, tip: str | None, paths: Sequence[str]) -> list[PathVersion] | None:
        """Return what changed the paths; None when the tip does not descend from `since`."""
        path_set = frozenset(paths)
        wanted = self._paths | path_set
        since = self._tip if wanted == self._paths else None
        if since and (chain := line_between(self._repository, since, tip)):
            new = changes_along(self._repository, chain, sorted(self._paths))
            self._changes += [each for each in new if each.commit != chain[0]]
        else:
            if self._since is None:
                self._changes = changes_of(self._repository, tip, sorted(wanted))
            elif chain := line_between(self._repository, self._since, tip):
                self._changes = list(changes_along(self._repository, chain, sorted(wanted)))
            else:
                return None
        self._tip, self._paths = tip, wanted
        return [PathVersion(*each) for each in self._changes if each.path in path_set]


class TeamSynchronizer:
    """Synchronizes the branch of one work tree with the ref of its team."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        membership: Membership,
        committer: Committer,
        obstacles: Obstacles,
        emit: EventSink,
    ):
        self._repository = repository
        self._settings = settings
        self.membership = membership
        self.committer = committer
        self._obstacles = obstacles
        self._emit = emit
        self._checker = Checker(settings)
        self._agree(None, None)
        self._reported: frozenset[Divergence] = frozenset()
        self._received: set[str] = set()
        self._unsynced: set[str] = set()
        """Files of the work tree that are not durable yet."""
        self._differing: set[str] = set()
        """Paths that differed between both sides at the last comparison."""
        self._merged = lru_cache(maxsize=16)(self._merge)  # each look comes by the same ones again
        self._made_here: str | None = None
        """The last commit that we made on the branch."""

    def team_tip(self) -> str | None:
        """Return the team's last commit, or None before the first."""
        return self._repository.tip(self.membership.ref)

    def sync_status(self, head: Head | None = None) -> SyncStatus:
        """Return what a look would find, here or for the head of another work tree.

        Changes nothing.
        """
        return self._status(head or self._repository.head())

    def look(self) -> SyncStatus:
        """Receive, merge and publish what is possible now; return the resulting state."""
        done = 0
        held: tuple[HeldBack, ...] = ()
        self._received = set()
        for attempt in range(_ROUNDS):
            head = self._repository.head()
            status = self._status(head)
            if status.is_agreed:
                break
            count, held = self._take_in(status, head)
            if not count and status.publish and not self.membership.remote:
                self._show_line(status.publish, head)
                count, refused = self._publish(status, attempt)
                held += refused
            done += count
            if count == len(status.receive) and self._differing == {
                change.path for change in status.receive
            }:
                self._agree(self._made_here, status.tip)
                status = SyncStatus(status.tip)
                break  # another look would say no more, and others wait for the processor
            if not count:
                break
        self._emit_conflicts(status)
        return status._replace(done=done, held=held, received=tuple(sorted(self._received)))

    def sync_files(self) -> None:
        """Make what was received durable in the work tree as well.

        The branch has it already, so nobody has to wait for this.
        """
        while self._unsynced:
            path = self._unsynced.pop()
            if self._settings.policy.durability == "fsync":
                sync_file(self._repository.root, path)

    def resolve(self, path: str, *, keep_ours: bool) -> None:
        """Put one version of a conflict on top of the other, as a person chose.

        Raises:
            YoloError: UNKNOWN_NAME when there is no conflict at the path; what keeps a commit from
                being made.
        """
        head = self._repository.head()
        if keep_ours:
            _, held = self._publish(self.resolved(path), 0)
        else:
            conflict, tip = self._find_conflict(path, head)
            chosen = PathVersion(path, conflict.theirs, tip or "")
            incoming = self._read_version(chosen, self.membership.team)
            _, held = (
                (0, (incoming,))
                if isinstance(incoming, HeldBack)
                else self._commit_here([incoming], head)
            )
        if held:
            raise YoloError(held[0].reason, held[0].what, exit_code=Exit.TRY_AGAIN)

    def resolved(self, path: str) -> SyncStatus:
        """Return what is published when our version of a conflict goes on top of theirs.

        Raises:
            YoloError: UNKNOWN_NAME when there is no conflict at the path.
        """
        head = self._repository.head()
        conflict, tip = self._find_conflict(path, head)
        return self._plan_status((path,), head, tip, frozenset({(path, conflict.ours)}))

    def _find_conflict(self, path: str, head: Head) -> tuple[Divergence, str | None]:
        status = self._status(head)
        for conflict in status.conflicts:
            if conflict.path == path:
                return conflict, status.tip
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"the team and this branch do not conflict at {safe(path)}",
            hint="'yolo-fs team status' lists the conflicts.",
        )

    def _status(self, head: Head) -> SyncStatus:
        tip = self.team_tip()
        between = (
            self._repository.files_between(head.tip, tip, root) for root in self._settings.roots
        )
        self._differing = set(filter(classify, chain.from_iterable(between)))
        paths = sorted(self._differing)
        if not paths:
            self._agree(head.tip, tip)
            return SyncStatus(tip)
        plan = self._plan_status(paths, head, tip)
        contained = frozenset(
            (each.path, each.ours) for each, data in plan.merges if self._is(data, each.ours)
        )
        if not contained:
            return plan
        return self._plan_status(paths, head, tip, contained)

    def _plan_status(
        self,
        paths: Sequence[str],
        head: Head,
        tip: str | None,
        taken: frozenset[tuple[str, str]] = frozenset(),
    ) -> SyncStatus:
        plan = self._compare(paths, head, tip, taken)
        merged = [(each, self._merged(each)) for each in plan.diverged]
        return SyncStatus(
            tip,
            plan.receive,
            plan.publish,
            tuple((each, data) for each, data in merged if data is not None),
            tuple(each for each, data in merged if data is None),
        )

    def _compare(
        self, paths: Sequence[str], head: Head, tip: str | None, taken: frozenset[tuple[str, str]]
    ) -> TeamPlan:
        """Plan from what happened since both sides last agreed.

        All history is used where that is unknown, or where one side does not descend from what it
        was then.
        """
        ours, theirs = self._ours.read(head.tip, paths), self._theirs.read(tip, paths)
        if ours is None or theirs is None:
            self._agree(None, None)
            ours, theirs = self._ours.read(head.tip, paths), self._theirs.read(tip, paths)
        return plan_of(ours or (), theirs or (), taken=taken)

    def _agree(self, here: str | None, there: str | None) -> None:
        """Restart from two commits at which both sides agreed; None where that is unknown."""
        self._ours = _Past(self._repository, here if there else None)
        self._theirs = _Past(self._repository, there if here else None)

    def _merge(self, divergence: Divergence) -> bytes | None:
        place = classify(divergence.path)
        if place is None:
            return None
        blobs = (divergence.base, divergence.ours, divergence.theirs)
        try:
            versions = [self._data(blob) if blob else b"" for blob in blobs]
        except YoloError as error:
            if error.reason is not Reason.FILE_TOO_LARGE:
                raise
            return None  # a person decides what no machine reads
        return merge_texts(place.artifact, *versions)

    def _is(self, data: bytes, blob: str) -> bool:
        return self._repository.object_format.hash_object("blob", data).oid == blob

    def _data(self, blob: str, most_bytes: int = 0) -> bytes:
        """Return the content of a version.

        `most_bytes`: the most that it may hold, 0 for what an artifact may.

        Raises:
            YoloError: FILE_TOO_LARGE, OBJECT_MISSING.
        """
        objects = self._repository.objects
        git_object = objects.read(blob, most_bytes or self._settings.policy.max_file_bytes)
        if git_object is None or git_object.kind != "blob":
            raise objects.unread(f"blob {blob}", blob)
        return git_object.body

    def _emit_conflicts(self, status: SyncStatus) -> None:
        for each in set(status.conflicts) - self._reported:
            data = {
                "reason": Reason.REMOTE_CONFLICT.value,
                "ours": each.ours,
                "theirs": each.theirs,
            }
            self._emit("team.conflict", each.path, data)
        self._reported = frozenset(status.conflicts)

    def _take_in(self, status: SyncStatus, head: Head) -> tuple[int, tuple[HeldBack, ...]]:
        """Commit on the branch what comes from the team, and what was merged."""
        merged = [
            _Version(PathVersion(each.path, each.ours, ""), data, "", None)
            for each, data in status.merges
        ]
        if not (status.receive or merged):
            return 0, ()
        if obstacle := self._obstacles.find(head, time.time_ns()):
            paths = [
                each.path for each in (*status.receive, *(incoming.change for incoming in merged))
            ]
            return 0, tuple(HeldBack(path, obstacle) for path in paths)
        held: list[HeldBack] = []
        for some in self._parts(status.receive, merged, held):
            count, refused = self._commit_here(some, head)
            held += refused
            if count:
                return count, tuple(held)
        return 0, tuple(held)

    def _parts(
        self, changes: Iterable[PathVersion], merged: list[_Version], held: list[HeldBack]
    ) -> Iterator[list[_Version]]:
        """Yield what comes in, in batches that fit in memory.

        Add to `held` what cannot be read.
        """
        part, size = merged, 0
        for change in changes:
            incoming = self._read_version(change, self.membership.team)
            if isinstance(incoming, HeldBack):
                held.append(incoming)
                continue
            part.append(incoming)
            size += len(incoming.data)
            if size > _AT_ONCE_BYTES:
                yield part
                part, size = [], 0
        if part:
            yield part

    def _read_version(self, change: PathVersion, otherwise: str) -> _Version | HeldBack:
        """Return a version with where it was made; `otherwise`: whose commit it is if unproved."""
        try:
            data = self._data(change.blob or "")
        except YoloError as error:
            return HeldBack(change.path, error.reason, error.message)
        made = read_commit(self._repository, change.commit)
        return _Version(change, data, self._origin_of(made, change, otherwise), made)

    def _origin_of(self, made: LoggedCommit | None, change: PathVersion, otherwise: str) -> str:
        """Return where a version was made: as its commit says and proves, else that commit."""
        named = dict(made.trailers).get(Trailer.ORIGIN, "") if made and made.is_ours else ""
        if is_proved(self._repository, named, change.path, change.blob):
            return named
        return f"{otherwise}/{change.commit}"

    def _commit_here(
        self, incoming: Sequence[_Version], head: Head
    ) -> tuple[int, tuple[HeldBack, ...]]:
        """Put the versions into the work tree and commit them, each alone and in their order."""
        last = {each.change.path: each.data for each in incoming}
        there = {path: self._writer_at(path, data, head) for path, data in last.items()}
        held = {path: HeldBack(path, reason) for path, (reason, _) in there.items() if reason}
        requests: list[tuple[CommitRequest, str]] = []
        for each in incoming:
            path = each.change.path
            request = self._request(each) if path not in held else None
            if isinstance(request, CommitRequest):
                requests.append((request, each.origin))
            elif request is not None and each.data == last[path]:
                held[path] = request
        for path, data in last.items():
            _, content = there[path]
            is_due = path not in held and content != data
            if is_due and (reason := place_file(self._repository.root, path, data, content)):
                held[path] = HeldBack(path, reason)
        wanted = [pair for pair in requests if pair[0].path not in held]
        failpoint.reach("team.placed")
        try:
            made = self.committer.commit([request for request, _ in wanted], head)
        except YoloError as error:
            return 0, (HeldBack("", error.reason, error.message),)
        if made and not self.committer.is_index_behind:
            self._obstacles.index_rewritten(self.committer.index_left_at)
        for (request, origin), result in zip(wanted, made, strict=True):
            facts = {"commit": result.commit, "blob": result.blob, "subject": request.subject}
            more = {"branch": head.branch, "origin": origin, "warnings": []}
            self._emit("artifact.committed", request.path, facts | more)
        self._received |= last.keys() - held.keys()
        self._unsynced |= last.keys() - held.keys()
        self._made_here = next((each.commit for each in reversed(made) if each.commit), None)
        return sum(result.commit is not None for result in made), tuple(held.values())

    def _request(self, incoming: _Version) -> CommitRequest | HeldBack | None:
        """Return the commit request of a version, as if it was written here; or why it has none."""
        path, data = incoming.change.path, incoming.data
        place = classify(path)
        if place is None:
            return None
        limit = self._settings.policy.max_file_bytes
        around = WorkTree(self._repository.root, limit, self._repository.commits_exist)
        checked = self._checker.check(place, data, around)
        wrong = [each for each in errors(checked.faults) if each.reason not in _NOT_HERE_YET]
        if findings := (*wrong, *checked.secrets):
            return HeldBack(path, findings[0].reason, str(findings[0]))
        trailers = trailers_of(place, len(checked.faults))
        copied = ((Trailer.ORIGIN.value, incoming.origin),) if incoming.origin else ()
        subject = self._subject(place, checked.records, incoming.made)
        return CommitRequest(path, data, subject, (*trailers, *copied), incoming.at)

    def _subject(
        self, place: ArtifactPath, records: Sequence[Record], made: LoggedCommit | None
    ) -> str:
        """Return the subject that the version came with, if that is valid for its kind."""
        if made and any(subject.match(made.subject) for subject in place.artifact.subjects):
            return made.subject
        blob = self._repository.blob_at(self._repository.head().tip, place.path)
        return subject_of(place, records, previous_records(self._repository, place, blob))

    def why_not_received(self, changes: Iterable[PathVersion], head: Head) -> tuple[HeldBack, ...]:
        """Return the team's versions that could not be received now, and why. Changes nothing."""
        held: dict[str, HeldBack] = {}
        for change in changes:
            incoming = self._read_version(change, self.membership.team)
            if isinstance(incoming, HeldBack):
                held[change.path] = incoming
                continue
            request = self._request(incoming)
            if isinstance(request, HeldBack):
                held[change.path] = request
            elif reason := self._writer_at(change.path, incoming.data, head)[0]:
                held[change.path] = HeldBack(change.path, reason)
        return tuple(held.values())

    def _writer_at(self, path: str, data: bytes, head: Head) -> tuple[Reason | None, bytes | None]:
        """Return why a file may not be replaced now, and what it holds; None when there is none."""
        outcome = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if not isinstance(outcome, Content):
            return (None if outcome.reason is Reason.FILE_MISSING else outcome.reason), None
        if outcome.being_written:
            return Reason.BEING_WRITTEN, outcome.data
        committed = self._repository.blob_at(head.tip, path)
        is_known = committed is not None and self._is(outcome.data, committed)
        return (None if outcome.data == data or is_known else Reason.SETTLING), outcome.data

    def _publish(self, status: SyncStatus, attempt: int) -> tuple[int, tuple[HeldBack, ...]]:
        requests, held = self.outgoing(status.publish, status.tip)
        if not requests:
            return 0, held
        failpoint.reach("team.publishing")
        try:
            made = self.committer.extend(requests, self.membership.ref, status.tip)
        except YoloError as error:
            if error.reason is not Reason.BRANCH_MOVED:
                return 0, (*held, HeldBack("", error.reason, error.message))
            time.sleep(random.uniform(0, 0.002 * 2**attempt))
            return 1, held  # somebody else was first: look again
        failpoint.reach("team.published")
        paths = sorted({result.path for result in made})
        self._emit("team.published", "", {"paths": paths, "commits": len(made)})
        return len(made), held

    def _show_line(self, changes: Iterable[PathVersion], head: Head) -> None:
        """Show the branch to the other work trees, before artifacts that may name its commits."""
        commits = (read_commit(self._repository, change.commit) for change in changes)
        made = filter(None, commits)
        parents = (parent for commit in made for parent in commit.parents)
        befores = (read_commit(self._repository, parent) for parent in parents)
        if head.tip and any(before and not before.is_ours for before in befores):
            self._repository.git.run("update-ref", f"{BESIDE}{self.membership.clone}", head.tip)

    def outgoing(
        self, changes: Iterable[PathVersion], tip: str | None, most: float = math.inf
    ) -> tuple[list[CommitRequest], tuple[HeldBack, ...]]:
        """Return the first commits for the team, and what cannot be published as far as seen."""
        held: dict[str, HeldBack] = {}
        requests: list[CommitRequest] = []
        for change in changes:
            if len(requests) >= most:
                break
            if change.path in held:
                continue
            request = self._fenced(change, tip) or self._build_outgoing_request(change)
            if isinstance(request, HeldBack):
                held[change.path] = request
            else:
                requests.append(request)
        return requests, tuple(held.values())

    def lease_at(self, tip: str | None, dept: str) -> TeamLease:
        """Return the lease of a department as a commit of the team has it."""
        blob = self._repository.blob_at(tip, path_of(dept))
        if blob is None:
            return read_lease(dept, None)
        try:
            return read_lease(dept, self._data(blob, LEASE_BYTES))
        except YoloError as error:
            if error.reason is not Reason.FILE_TOO_LARGE:
                raise
            return TeamLease(dept, f"? ({error.reason}: {error.message})", 0)

    def _fenced(self, change: PathVersion, tip: str | None) -> HeldBack | None:
        place = classify(change.path)
        dept = department_of(place) if place else ""
        lease = self.lease_at(tip, dept) if dept else None
        if lease is None or lease.may_publish(self.membership.clone):
            return None
        return HeldBack(change.path, Reason.LEASE_HELD, f"{dept}: {safe(lease.holder)}")

    def _build_outgoing_request(self, change: PathVersion) -> CommitRequest | HeldBack:
        """Return a version's commit for the team: as a coordinator named it, or would."""
        version = self._read_version(change, self.membership.clone)
        if isinstance(version, HeldBack):
            return version
        made, place = version.made, classify(change.path)
        is_named = (
            place and made and dict(made.trailers).get(Trailer.ARTIFACT) == place.artifact.kind
        )
        if made and made.is_ours and is_named:
            trailers = tuple(pair for pair in made.trailers if pair[0] != Trailer.ORIGIN)
            origin = (Trailer.ORIGIN.value, version.origin)
            return CommitRequest(
                change.path, version.data, made.subject, (*trailers, origin), version.at
            )
        request = self._request(version)
        return request or HeldBack(change.path, Reason.NOT_AN_ARTIFACT)


def observing_synchronizer(
    repository: Repository,
    settings: Settings,
    membership: Membership,
    emit: EventSink = lambda _event, _path, _data: None,
) -> TeamSynchronizer:
    """Return a synchronizer for callers that commit nothing on the branch."""
    branches = RefUpdater(repository, durable=False)
    committer = Committer(repository, branches, IndexSync(repository), lambda: datetime.now(UTC))
    return TeamSynchronizer(
        repository, settings, membership, committer, Obstacles(repository), emit
    )
