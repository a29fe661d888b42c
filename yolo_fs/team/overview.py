"""Observes the whole team from one work tree. Changes nothing, and uses no network.

It looks at the team's ref, the work trees beside this one, the connection to the remote, and what
would conflict.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from yolo_fs.core.reasons import Reason
from yolo_fs.git.history import LoggedCommit, log, read_commit
from yolo_fs.git.isolated import isolated_git
from yolo_fs.git.repository import MAIN_LINES, Head, Repository, Setting
from yolo_fs.git.runner import Git
from yolo_fs.protocol.workflow import Trailer
from yolo_fs.system.lock import holder
from yolo_fs.team.membership import Membership, membership_of, memberships_beside
from yolo_fs.team.merge_driver import DRIVER, command
from yolo_fs.team.origin import clone_in, is_proved
from yolo_fs.team.reconcile import (
    LEASES,
    CloneStatus,
    HeldLease,
    PathVersion,
    PendingMove,
    RemoteStatus,
    TeamOverview,
    WaitingArtifact,
)
from yolo_fs.workspace.own_files import BESIDE, LINES, TEAM_LANE, lock_in
from yolo_fs.workspace.settings import Settings

if TYPE_CHECKING:
    from yolo_fs.team.synchronizer import HeldBack, SyncStatus, TeamSynchronizer

EXPLAINED_MOST = 100
"""Most waiting artifacts of one direction that are examined individually."""


class TeamObserver:
    """Looks repeatedly, and reads only what is new in the team's history."""

    def __init__(self, repository: Repository, settings: Settings):
        self._repository = repository
        self._settings = settings
        self._tip: str | None = None
        self._made: dict[str, CloneStatus] = {}
        """Clone → what the team's ref has of it."""
        self._passed: dict[str, int] = {}
        """Department → when its lease last changed hands."""
        self._synchronizer: TeamSynchronizer | None = None

    def look(self, obstacle: Reason | None = None) -> TeamOverview | None:
        """Return the state of the team; None where none was joined.

        `obstacle`: why nothing may be committed here now.

        Raises:
            YoloError: what keeps the choice is damaged; OBJECT_MISSING, GIT_FAILED.
        """
        membership = membership_of(self._repository)
        if membership is None:
            return None
        from yolo_fs.team.synchronizer import observing_synchronizer  # most work alone

        if self._synchronizer is None or self._synchronizer.membership != membership:
            self._synchronizer = observing_synchronizer(
                self._repository, self._settings, membership
            )
            self._tip, self._made, self._passed = None, {}, {}
        head = self._repository.head()
        status = self._synchronizer.sync_status(head)
        self._read_up_to(status.tip, membership.clone)
        lane = self._lane(membership)
        return TeamOverview(
            membership.team,
            membership.clone,
            membership.ref,
            status.tip,
            lane,
            tuple(self._clones(self._synchronizer, status)),
            tuple(self._leases(self._synchronizer, status.tip)),
            tuple(self._waiting(self._synchronizer, status, head, obstacle, lane)),
        )

    def _read_up_to(self, tip: str | None, own: str) -> None:
        if tip == self._tip:
            return
        if not (tip and self._tip and self._repository.is_ancestor(self._tip, tip)):
            self._made, self._passed = {}, {}
        since = (f"^{self._tip}",) if self._made else ()
        new = log(self._repository, tip, *since) if tip else ()
        shown = self._shown(own)
        for commit in reversed(list(new)):
            trailers = dict(commit.trailers)
            if dept := trailers.get("Yolo-Lease"):
                self._passed[dept] = commit.at_s
            named = trailers.get(Trailer.ORIGIN, "")
            name = clone_in(named)
            if name and (name not in shown or self._is_proved(named, commit)):
                before = self._made.get(name, CloneStatus(name))
                made = before.published + 1
                self._made[name] = before._replace(
                    published=made, last_s=commit.at_s, last=commit.subject
                )
        self._tip = tip

    def _shown(self, own: str) -> frozenset[str]:
        """Return the clones whose branches are here, so that what they made can be proved."""
        refs = (*self._repository.refs_below(LINES), *self._repository.refs_below(BESIDE))
        return frozenset((own, *(ref.rpartition("/")[2] for ref in refs)))

    def _is_proved(self, named: str, commit: LoggedCommit) -> bool:
        paths = [path for _, path in commit.changes]
        return len(paths) == 1 and is_proved(
            self._repository, named, paths[0], self._repository.blob_at(commit.oid, paths[0])
        )

    def _leases(self, synchronizer: TeamSynchronizer, tip: str | None) -> Iterator[HeldLease]:
        for dept in LEASES:
            lease = synchronizer.lease_at(tip, dept)
            if lease.holder:
                passed = self._passed.get(dept, 0)
                yield HeldLease(dept, lease.holder, lease.epoch, passed)

    def _clones(self, synchronizer: TeamSynchronizer, status: SyncStatus) -> Iterator[CloneStatus]:
        here = synchronizer.membership
        beside = {} if here.remote else self._beside(synchronizer)
        this = self._made.get(here.clone, CloneStatus(here.clone))
        behind, ahead = _count_behind_and_ahead(status)
        yield this._replace(
            root=self._repository.root,
            branch=self._repository.head().branch,
            is_here=True,
            daemon_runs=_runs(self._repository.own_dir),
            behind=behind,
            ahead=ahead,
        )
        for name in sorted(self._made | beside):
            if name != here.clone:
                yield beside.get(name) or self._made[name]

    def _beside(self, synchronizer: TeamSynchronizer) -> dict[str, CloneStatus]:
        """Return the other work trees of this repository that are in the same team."""
        standings = {}
        for neighbour in memberships_beside(self._repository):
            membership = neighbour.membership
            if (membership.team, membership.remote) != (synchronizer.membership.team, ""):
                continue
            behind, ahead = _count_behind_and_ahead(synchronizer.sync_status(neighbour.head))
            made = self._made.get(membership.clone, CloneStatus(membership.clone))
            standings[membership.clone] = made._replace(
                root=neighbour.root,
                branch=neighbour.head.branch,
                daemon_runs=_runs(neighbour.own_dir),
                behind=behind,
                ahead=ahead,
            )
        return standings

    def _lane(self, membership: Membership) -> RemoteStatus | None:
        if not membership.remote:
            return None
        noted = TEAM_LANE.read(self._repository)
        if not isinstance(noted, dict):
            return RemoteStatus(membership.remote, is_known=False)
        facts = (noted["what"], noted["at"], noted["round_trip_s"], str(noted.get("silence", "")))
        return RemoteStatus(membership.remote, Reason.known(noted["reason"]), *facts)

    def _waiting(
        self,
        synchronizer: TeamSynchronizer,
        status: SyncStatus,
        head: Head,
        obstacle: Reason | None,
        lane: RemoteStatus | None,
    ) -> Iterator[WaitingArtifact]:
        idle = None if _runs(self._repository.own_dir) else Reason.NOT_RUNNING
        here, there = obstacle or idle, (lane.reason if lane else None) or idle
        for conflict in status.conflicts:
            yield WaitingArtifact(conflict.path, PendingMove.CHOICE, 0, Reason.REMOTE_CONFLICT)
        for each, _ in status.merges:
            yield WaitingArtifact(each.path, PendingMove.MERGE, 0, here)
        _, held = synchronizer.outgoing(status.publish[:EXPLAINED_MOST], status.tip)
        yield from self._find_waiting_artifacts(status.publish, PendingMove.PUBLISH, held, there)
        held = synchronizer.why_not_received(status.receive[:EXPLAINED_MOST], head)
        yield from self._find_waiting_artifacts(status.receive, PendingMove.RECEIVE, held, here)

    def _find_waiting_artifacts(
        self,
        changes: Iterable[PathVersion],
        direction: PendingMove,
        held: Iterable[HeldBack],
        otherwise: Reason | None,
    ) -> Iterator[WaitingArtifact]:
        known = {each.path: each for each in held}
        for change in changes:
            made = read_commit(self._repository, change.commit)
            why = known.get(change.path)
            yield WaitingArtifact(
                change.path,
                direction,
                made.at_s if made else 0,
                why.reason if why else otherwise,
                why.what if why else "",
            )


def _count_behind_and_ahead(status: SyncStatus) -> tuple[int, int]:
    """Return how many versions a branch lacks of the team's, and the team of the branch's."""
    undecided = len(status.merges) + len(status.conflicts)
    return len(status.receive) + undecided, len(status.publish) + undecided


def _runs(own_dir: str) -> bool:
    return holder(lock_in(own_dir)) is not None


_BRANCHES = "refs/heads/"


class ExpectedConflict(NamedTuple):
    """Two branches whose merge would stop."""

    one: str
    other: str
    paths: tuple[str, ...]


def lines_of(repository: Repository) -> tuple[str, ...]:
    """Return the branches that the work trees of this repository stand on, the main branch, and
    those of the team's other clones.
    """
    named = [facts["branch"] for facts in repository.list_work_trees() if "branch" in facts]
    into = (f"{_BRANCHES}{name}" for name in MAIN_LINES)
    known = [ref for ref in (*named, *into) if repository.tip(ref)]
    known += repository.refs_below(LINES)
    return tuple(ref.removeprefix(_BRANCHES) for ref in dict.fromkeys(known))


def forecast(repository: Repository, lines: tuple[str, ...]) -> Iterator[ExpectedConflict]:
    """Yield the pairs of branches that conflict; no branch and no file is touched.

    Raises:
        YoloError: GIT_FAILED when a branch is gone, or git is older than 2.38.
    """
    has_ours = bool(repository.config(f"merge.{DRIVER}.driver"))
    ours = [Setting("local", f"merge.{DRIVER}.driver", command())] if has_ours else []
    with isolated_git(repository, ours) as git:
        for branch, other in itertools.combinations(lines, 2):
            if paths := _conflicts(git, branch, other):
                yield ExpectedConflict(branch, other, paths)


def _conflicts(git: Git, branch: str, other: str) -> tuple[str, ...]:
    answer = git.run(
        "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z",
        "--allow-unrelated-histories", _full(branch), _full(other),
        ok=(0, 1), timeout_s=60.0,
    )  # fmt: skip
    if answer.code == 0:
        return ()
    return tuple(dict.fromkeys(filter(None, answer.out.decode("utf-8", "replace").split("\0")[1:])))


def _full(line: str) -> str:
    return line if line.startswith(LINES) else f"{_BRANCHES}{line}"
