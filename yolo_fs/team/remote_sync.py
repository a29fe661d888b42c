"""Offers this repository's versions to its team's branch on a git remote, and takes the team's.

The remote alone decides what is published, by accepting a fast-forward.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.git.commit import CommitRequest
from yolo_fs.git.refs import Remote
from yolo_fs.git.repository import Repository
from yolo_fs.system.lock import holder
from yolo_fs.system.notifier import Notifier
from yolo_fs.team.membership import Membership
from yolo_fs.team.reconcile import COMPANY, LEASES, PathVersion, TeamLease, department_of, path_of
from yolo_fs.team.synchronizer import (
    HeldBack,
    observing_synchronizer,
)
from yolo_fs.workspace.own_files import LINES, company_lock_path
from yolo_fs.workspace.settings import Settings

BUSY_S, QUIET_S = 0.5, 10.0
"""Polling intervals of the remote: while something moves, and when nothing has moved for long."""
REFUSED_S = 600.0
"""Pause before offering again, unchanged, what a remote refused."""
_ROUNDS = 8
_OFFERED_MOST = 30
"""Most versions in a push, doubled while pushes are accepted. More take longer, and would be
overtaken."""
_BY = "Yolo-By"
_SIGN_ROOTS = ("refs/yolo/leases/", "refs/heads/yolo/leases/")
"""Prefixes of the refs with the heartbeats of lease holders. The second is for remotes that accept
only branches."""
_LINE_ROOTS = ("refs/yolo/lines/", "refs/heads/yolo/lines/")
"""Prefixes of the refs with the branch of each clone at the remote, likewise."""
_CLONE = re.compile(r"[a-z0-9][a-z0-9-]{0,80}")


class ExchangeResult(NamedTuple):
    """Result of one exchange with the remote."""

    moved: bool
    """Whether anything was fetched or published."""
    waiting: int
    """Versions that the team still lacks."""
    held: tuple[HeldBack, ...] = ()


class RemoteSync:
    """Fetches the team's branch, and publishes on it what the branch of this work tree has."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        membership: Membership,
        emit: EventSink,
        notifier: Notifier | None = None,
    ):
        """`notifier` is used for each push that the remote accepted."""
        self._repository = repository
        self._membership = membership
        self._emit = emit
        self._notifier = notifier
        self._remote = Remote(repository, membership.remote)
        self._synchronizer = observing_synchronizer(repository, settings, membership, emit)
        self._committer = self._synchronizer.committer
        self._renew_at: dict[str, float] = {}
        """Department → when our next heartbeat is due, on the monotonic clock."""
        self._used: dict[str, float] = {}
        """Department → when we last published for it, on the monotonic clock."""
        self._sign_root = _SIGN_ROOTS[0]
        self._line_roots: tuple[str, ...] = _LINE_ROOTS if membership.with_source else ()
        """Where our own branch may be pushed to; the first that the remote accepts."""
        self._offered_most = _OFFERED_MOST
        self._goes_first = False
        """Whether we push before we fetch: the remote was quiet, or somebody has overtaken us."""
        self._own_lines: dict[str, str] = {}
        """Ref → what the remote has of our own branch."""
        self._watched: dict[str, _SilentLease] = {}
        """Department → what we have observed of the lease that we want."""
        self._refused: tuple[tuple[str, ...], float, str] | None = None
        """(commits that the remote refused, when, its message)."""

    def exchange(self) -> ExchangeResult:
        """Fetch, and publish until the team lacks nothing or somebody has to decide something.

        Raises:
            YoloError: REMOTE_AWAY when the remote cannot be reached, REMOTE_REFUSED in its words.
        """
        # A push that comes too late costs no more than a look. After an accepted push we look first
        # where others are at work, so that each has its turn.
        if self._goes_first and (first := self._offer_all()) and first.moved:
            return first
        moved = False
        for attempt in range(_ROUNDS):
            moved = self._fetch() or moved
            offered = self._offer_all()
            if isinstance(offered, ExchangeResult):
                return offered._replace(moved=moved or offered.moved)
            time.sleep(random.uniform(0, min(BUSY_S, 0.05 * 2**attempt)))
        return ExchangeResult(moved, len(self._synchronizer.sync_status().publish))

    def _offer_all(self) -> ExchangeResult | None:
        """Push until nothing more can be pushed; None when somebody else was first."""
        for attempt in range(_ROUNDS):
            offered = self._offer()
            if isinstance(offered, ExchangeResult):
                return offered._replace(moved=attempt > 0)
            if not offered:
                break
        return None

    def _offer(self) -> bool | ExchangeResult:
        """Push what the team lacks, as far as is known; return whether the remote accepted it.

        Where nothing can be pushed, return the result of the exchange instead.
        """
        status = self._synchronizer.sync_status()
        left = ExchangeResult(moved=False, waiting=len(status.publish))
        self._goes_first |= bool(status.merges)
        if not status.publish:
            return left
        requests, held = self._synchronizer.outgoing(status.publish, status.tip, self._offered_most)
        commits = tuple(change.commit for change in status.publish)
        if refusal := self._refusal_of(commits):
            return left._replace(held=(*held, refusal))
        if not requests:
            return left._replace(held=held)
        with self._committer.built_on(requests, status.tip) as tip:
            if tip is None:
                return left
            took = self._push(tip, status.tip, len(requests), commits)
        self._goes_first = not took
        self._offered_most = 2 * self._offered_most if took else _OFFERED_MOST
        self._used |= dict.fromkeys(_departments(status.publish), time.monotonic())
        return took

    def resolve(self, path: str) -> None:
        """Publish our version of a conflict on top of the team's, as a person chose.

        Raises:
            YoloError: UNKNOWN_NAME when there is no conflict at the path; as `exchange`.
        """
        for _ in range(_ROUNDS):
            self._fetch()
            status = self._synchronizer.resolved(path)
            requests, held = self._synchronizer.outgoing(status.publish, status.tip)
            if held:
                raise YoloError(held[0].reason, held[0].what)
            with self._committer.built_on(requests, status.tip) as tip:
                if tip is None or self._push(tip, status.tip, len(requests)):
                    return
        raise YoloError(Reason.BRANCH_MOVED)

    def leases(self) -> tuple[TeamLease, ...]:
        """Return the leases as the remote has them."""
        self._fetch()
        tip = self._synchronizer.team_tip()
        return tuple(self._synchronizer.lease_at(tip, dept) for dept in LEASES)

    def lease(self, dept: str) -> TeamLease:
        """Return one of the leases as the remote has it."""
        return next(each for each in self.leases() if each.dept == dept)

    def take_lease(
        self,
        dept: str,
        *,
        ttl_s: int | None = None,
        watching: Callable[[TeamLease], object] = lambda _: None,
    ) -> TeamLease:
        """Take a lease, and return it; unchanged while its holder sends heartbeats.

        `ttl_s`: as `pass_lease`. `watching`: called before a lease that another clone holds is
        watched for its whole time.

        Raises:
            YoloError: as `pass_lease`.
        """
        before, clone = self.lease(dept), self._membership.clone
        if before.holder == clone and not before.lent_by:
            return before
        if before.holder not in ("", clone):
            watching(before)
            if not self.is_silent(before):
                return before
        taken = self.pass_lease(dept, clone, before, ttl_s=ttl_s)
        self.renew_leases()
        return taken

    def holds(self, dept: str) -> bool:
        """Return whether this clone holds a lease, as far as was heard from the remote."""
        lease = self._synchronizer.lease_at(self._synchronizer.team_tip(), dept)
        return lease.holder == self._membership.clone

    def pass_lease(
        self, dept: str, to: str, before: TeamLease, *, ttl_s: int | None = None
    ) -> TeamLease:
        """Change the holder of a lease, if it is as it was seen.

        `ttl_s`: after so many seconds without a heartbeat, another clone may take over; None keeps
        the present value.

        Raises:
            YoloError: LEASE_HELD when somebody else took it meanwhile; as `exchange`.
        """
        return self._replace(before, before.passed_to(to)._replace(ttl_s=ttl_s or before.ttl_s))

    def _replace(self, before: TeamLease, passed: TeamLease) -> TeamLease:
        dept, clone = before.dept, self._membership.clone
        for _ in range(_ROUNDS):
            self._fetch()
            tip = self._synchronizer.team_tip()
            if self._synchronizer.lease_at(tip, dept) != before:
                raise YoloError(Reason.LEASE_HELD)
            subject = f"chore(team): lease of {dept}, epoch {passed.epoch}"
            trailers = (("Yolo-Lease", dept), ("Yolo-Holder", passed.holder or "-"), (_BY, clone))
            request = CommitRequest(path_of(dept), passed.as_bytes, subject, trailers)
            with self._committer.built_on([request], tip) as made:
                if made is None or self._push(made, tip, 0):
                    return passed
        raise YoloError(Reason.BRANCH_MOVED)

    def delete_mine(self) -> tuple[str, ...]:
        """Delete what the remote has for this clone alone; return the deleted refs.

        These are its leases, their heartbeats and its branch. The team's branch stays: it is
        everybody's.

        Raises:
            YoloError: as `exchange`.
        """
        clone = self._membership.clone
        held = [lease for lease in self.leases() if lease.holder == clone]
        for lease in held:
            self.pass_lease(lease.dept, lease.lent_by, lease)
        signs = [f"{root}{lease.dept}" for root in _SIGN_ROOTS for lease in held]
        there = self._remote.tips(*signs, *(f"{root}{clone}" for root in _LINE_ROOTS))
        return tuple(ref for ref, oid in there.items() if self._remote.delete(ref, oid))

    def is_silent(self, lease: TeamLease, rest: Callable[[float], object] = time.sleep) -> bool:
        """Watch a lease for its full TTL; return whether its holder sent no heartbeat.

        No wall clock is involved: the same heartbeat has to be there for `ttl_s` of our own time.
        """
        watch = _SilentLease(lease, self._signs(lease.dept))
        while not watch.is_over:
            rest(min(1.0, lease.ttl_s / 4))
            if self._signs(lease.dept) != watch.signs:
                return False
        return True

    def follow_silent(self, exchange: ExchangeResult) -> bool:
        """Take over the leases that block our artifacts, from holders that are silent for a TTL.

        Return whether one was taken. Call it repeatedly: what was seen is remembered, and any new
        heartbeat restarts the time.

        Raises:
            YoloError: as `exchange`.
        """
        tip = self._synchronizer.team_tip()
        wanted = {each.what for each in exchange.held if each.reason is Reason.LEASE_HELD}
        leases = [self._synchronizer.lease_at(tip, dept) for dept in LEASES]
        blocking = [each for each in leases if f"{each.dept}: {safe(each.holder)}" in wanted]
        self._watched = {
            dept: watch
            for dept, watch in self._watched.items()
            if any(watch.lease == each for each in blocking)
        }
        taken = False
        for lease in blocking:
            signs = self._signs(lease.dept)
            watch = self._watched.get(lease.dept)
            if watch is None or watch.signs != signs:
                self._watched[lease.dept] = _SilentLease(lease, signs)
            elif watch.is_over:
                with contextlib.suppress(YoloError):  # somebody else was first: look again
                    passed = self._replace(lease, lease.lent_to(self._membership.clone))
                    self._emit("team.lease_taken", "", {**passed._asdict(), "from": lease.holder})
                    taken = True
                del self._watched[lease.dept]
        return taken

    def _signs(self, dept: str) -> dict[str, str]:
        return self._remote.tips(*(root + dept for root in _SIGN_ROOTS))

    def renew_leases(self) -> None:
        """Send a heartbeat for each lease that this clone holds, when one is due."""
        tip = self._synchronizer.team_tip()
        for dept in LEASES:
            lease = self._synchronizer.lease_at(tip, dept)
            if dept == COMPANY and holder(company_lock_path(self._repository)) is None:
                self._renew_at.pop(dept, None)  # a killed runner sends no heartbeat
                continue
            if lease.holder != self._membership.clone:
                if self._renew_at.pop(dept, None) is not None:
                    self._emit("team.lease_lost", "", lease._asdict())
            elif time.monotonic() >= self._renew_at.get(dept, 0.0):
                self._give_sign(lease)
                self._renew_at[dept] = time.monotonic() + lease.ttl_s / 3

    @property
    def due_in_s(self) -> float:
        """Return the seconds until a heartbeat, or the takeover from a silent holder, is due."""
        silent_at = (watch.over_at for watch in self._watched.values())
        return max(
            0.0, min((*silent_at, *self._renew_at.values()), default=math.inf) - time.monotonic()
        )

    def give_back(self) -> None:
        """Give back each automatically taken lease for which nothing was published for a full TTL.

        It goes to its original holder, or to whoever has followed that one.
        """
        tip, now = self._synchronizer.team_tip(), time.monotonic()
        for dept in LEASES:
            lease = self._synchronizer.lease_at(tip, dept)
            if lease.holder != self._membership.clone or not lease.lent_by:
                continue
            if now - self._used.setdefault(dept, now) > lease.ttl_s:
                with contextlib.suppress(YoloError):  # somebody else was first: look again
                    returned = self.pass_lease(dept, lease.lent_by, lease)
                    self._renew_at.pop(dept, None)
                    self._emit("team.lease_returned", "", returned._asdict())

    def _give_sign(self, lease: TeamLease) -> None:
        """Point a ref of the lease at a new commit.

        Not every service accepts refs other than branches: where it refuses, a branch carries the
        heartbeat.
        """
        format_ = self._repository.object_format
        tree = format_.hash_object("tree", b"")
        body = f"{self._membership.clone} {lease.epoch} {os.urandom(8).hex()}"
        who = f"yolo_fs <yolo_fs@localhost> {int(time.time())} +0000"
        text = f"tree {tree.oid}\nauthor {who}\ncommitter {who}\n\nchore(team): alive\n\n{body}\n"
        sign = format_.hash_object("commit", text.encode())
        with self._repository.objects.hold_packs_back():
            self._repository.objects.write((tree, sign))
            while True:
                ref = self._sign_root + lease.dept
                try:
                    self._remote.replace(sign.oid, ref, self._remote.tip(ref))
                except YoloError as error:
                    if error.reason is not Reason.REMOTE_REFUSED or ref.startswith("refs/heads/"):
                        raise
                    self._sign_root = _SIGN_ROOTS[1]
                    self._emit("team.signs_in_branches", "", {"why": error.message})
                else:
                    return

    def _fetch(self) -> bool:
        """Update the tracking ref from the remote; return whether it moved."""
        before = self._synchronizer.team_tip()
        branch = self._membership.branch
        tips = self._remote.tips(branch, *(f"{root}*" for root in _LINE_ROOTS))
        there = tips.pop(branch, None)
        wanted = self._find_moved_lines(tips)
        self._goes_first |= there == before
        if there and there != before:
            wanted[branch] = self._membership.ref
        if wanted:
            self._remote.fetch(wanted)
        if there is None and before:
            self._repository.git.run("update-ref", "-d", self._membership.ref, before)
        return there != before

    def _find_moved_lines(self, tips: Mapping[str, str]) -> dict[str, str]:
        """Return the moved branches of other clones.

        They precede artifacts that name their commits.
        """
        named = {ref: ref.rpartition("/")[2] for ref in tips}
        own = self._membership.clone
        self._own_lines = {ref: tips[ref] for ref, clone in named.items() if clone == own}
        known = self._repository.refs_below(LINES)
        return {
            ref: f"{LINES}{clone}"
            for ref, clone in named.items()
            if clone != own and _CLONE.fullmatch(clone) and known.get(LINES + clone) != tips[ref]
        }

    def _push(self, tip: str, before: str | None, count: int, commits: Sequence[str] = ()) -> bool:
        """Push a chain; return whether the remote accepted it. False: somebody else was first."""
        try:
            took = self._push_with_line(tip)
        except YoloError as error:
            if error.reason is Reason.REMOTE_REFUSED:
                self._refused = (tuple(commits), time.monotonic(), error.message)
            raise
        if took:
            if self._notifier:
                self._notifier.notify(self._membership.branch, tip)
            zero = self._repository.object_format.zero
            with contextlib.suppress(YoloError):  # fetched meanwhile
                self._repository.git.run("update-ref", self._membership.ref, tip, before or zero)
            self._emit("team.published", "", {"commits": count})
        return took

    def _push_with_line(self, tip: str) -> bool:
        """Push the team's branch and, in the same push, our own, whose commits artifacts may name.

        Where the remote accepts our own nowhere, the artifacts go alone.
        """
        branch, head = self._membership.branch, self._repository.head().tip
        while self._line_roots and head:
            line = self._line_roots[0] + self._membership.clone
            lease = f"--force-with-lease={line}:{self._own_lines.get(line, '')}"
            try:
                took = self._remote.push({branch: tip, line: head}, lease)
            except YoloError as error:
                if error.reason is not Reason.REMOTE_REFUSED or not error.message.startswith(line):
                    raise
                self._line_roots = self._line_roots[1:]
                if not self._line_roots:
                    self._emit("team.source_refused", "", {"why": error.message})
            else:
                self._own_lines |= {line: head} if took else {}
                return took
        return self._remote.push({branch: tip})

    def _refusal_of(self, commits: tuple[str, ...]) -> HeldBack | None:
        """Return the remote's refusal of these commits, if it is recent."""
        if self._refused is None:
            return None
        refused, at, words = self._refused
        is_fresh = refused == commits and time.monotonic() - at < REFUSED_S
        return HeldBack("", Reason.REMOTE_REFUSED, words) if is_fresh else None


def _departments(changes: Sequence[PathVersion]) -> set[str]:
    """Return the departments whose leases these versions need."""
    places = (classify(change.path) for change in changes)
    return {department_of(place) for place in places if place} - {""}


class _SilentLease:
    """A lease whose holder has sent no new heartbeat since we began to watch it."""

    def __init__(self, lease: TeamLease, signs: Mapping[str, str]):
        self.lease = lease
        self.signs = signs
        self.over_at = time.monotonic() + lease.ttl_s

    @property
    def is_over(self) -> bool:
        """Whether it was silent for its full TTL."""
        return time.monotonic() >= self.over_at
