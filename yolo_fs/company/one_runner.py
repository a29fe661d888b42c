"""One runner at a time: in a work tree, and in a team, whose others would start the same agents.

Work trees of one repository keep each other out by a lock, clones by a lease on the team's branch,
which passes on once its holder has been silent for its whole time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from yolo_fs.company.runs import FOLDER, Listener
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.system.lock import hold, holder
from yolo_fs.system.store import private_directory
from yolo_fs.team.membership import Membership, membership_of
from yolo_fs.team.reconcile import COMPANY, TeamLease
from yolo_fs.team.remote_sync import RemoteSync
from yolo_fs.workspace.own_files import company_lock_path, team_company_lock_path
from yolo_fs.workspace.settings import Settings


@contextmanager
def alone(
    repository: Repository, settings: Settings, emit: Listener
) -> Iterator[Callable[[], bool]]:
    """Be the only runner here, and yield a function that tells whether that is still so.

    Raises:
        YoloError: LOCK_TIMEOUT; LEASE_HELD, or REMOTE_AWAY where nobody can know.
    """
    repository.make_own_dir()
    with _locked(company_lock_path(repository), "here"):
        private_directory(os.path.join(repository.own_dir, FOLDER))
        membership = membership_of(repository)
        if membership is None:
            yield lambda: True
        elif membership.remote:
            with _leased(repository, settings, membership, emit) as is_holder:
                yield is_holder
        else:
            with _locked(
                team_company_lock_path(repository, membership.team),
                "in another work tree of the team",
            ):
                yield lambda: True


@contextmanager
def _locked(path: str, where: str) -> Iterator[None]:
    held = hold(path)
    if held is None:
        other = holder(path)
        who = f"process {other.pid}" if other and other.pid else "another process"
        raise YoloError(
            Reason.LOCK_TIMEOUT,
            f"{who} runs the company {where} already",
            hint="'yolo-fs company runs' shows what it does; end it with Ctrl-C where it runs.",
        )
    with held:
        yield


@contextmanager
def _leased(
    repository: Repository, settings: Settings, membership: Membership, emit: Listener
) -> Iterator[Callable[[], bool]]:
    sync = RemoteSync(repository, settings, membership, lambda name, _path, data: emit(name, data))

    def tell_of(held: TeamLease) -> None:
        emit("run.waits", {"holder": held.holder, "wait_s": held.ttl_s})

    lease = sync.take_lease(COMPANY, watching=tell_of)  # ours is what a killed runner left
    if lease.holder != membership.clone:
        raise YoloError(
            Reason.LEASE_HELD,
            f"{safe(lease.holder)} runs the company of this team",
            hint="End it with Ctrl-C where it runs; 'yolo-fs team lease list' shows who it is.",
        )
    sync.renew_leases()
    try:
        yield lambda: sync.holds(COMPANY)
    finally:
        with suppress(YoloError):  # without a heartbeat it passes on automatically
            ours = sync.lease(COMPANY)
            if ours.holder == membership.clone:
                sync.pass_lease(COMPANY, "", ours)
