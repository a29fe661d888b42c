"""`yolo-fs team`: the same artifacts in several work trees, each on its own branch; and `yolo-fs
forecast`: what will conflict at integration.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.artifacts.decide import EventSink
from yolo_fs.cli.board import draw_machines
from yolo_fs.cli.reply import Invocation, Reply, require_libraries, verb
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError, safe
from yolo_fs.daemon.coordinator import Coordinator
from yolo_fs.daemon.health import acquire
from yolo_fs.git.obstacles import Obstacles
from yolo_fs.git.refs import Remote
from yolo_fs.git.repository import Repository
from yolo_fs.system.journal import Journal
from yolo_fs.system.notifier import SCHEMES
from yolo_fs.team.membership import DEFAULT_TEAM, Membership, addresses, membership_of
from yolo_fs.team.membership import join as join_team
from yolo_fs.team.membership import leave as leave_team
from yolo_fs.team.overview import ExpectedConflict, TeamObserver, lines_of
from yolo_fs.team.overview import forecast as conflicts_of
from yolo_fs.team.reconcile import LEASES, LONGEST_TTL_S, TTL_S, TeamLease, TeamOverview
from yolo_fs.team.remote_sync import RemoteSync
from yolo_fs.team.synchronizer import SyncStatus, TeamSynchronizer, observing_synchronizer
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("team")
def team() -> None:
    """Let several work trees or clones share their artifacts, each on its own branch.

    An artifact that is committed in one is validated and committed in all others; when the branches
    are merged later, the artifacts do not conflict. Nothing is shared before `join`. Work trees of
    one repository share a ref of it, and nothing is pushed; clones share a branch of a remote.
    """


@verb("join", example="yolo-fs team join origin --yes", parent=team)
@click.argument("remote", default="")
@click.option("--yes", is_flag=True, help="Push without asking.")
@click.option("--team", "name", default=DEFAULT_TEAM, show_default=True, help="Name of the team.")
@click.option(
    "--lane",
    metavar="URL",
    default="",
    help="NATS servers, separated by commas, that wake the others after a push (extra nats).",
)
@click.option("--no-source", is_flag=True, help="Push artifacts only, not this branch.")
def join(
    invocation: Invocation, *, remote: str, yes: bool, name: str, lane: str, no_source: bool
) -> Reply:
    """Join a team with this work tree. A running daemon begins at once; `team sync` does one round.

    REMOTE is the name or address of a git remote: clones and machines share its branch
    yolo/team/NAME, and every artifact of this branch is pushed there. This branch is pushed as
    well, because its summaries name source commits: without them the gates of the others cannot
    count that evidence. The git directory of this work tree stores the choice until `team leave`.
    """
    _check_lane(lane, remote)
    with Repository(invocation.start) as repository:
        if remote:
            Remote(repository, remote).tip(f"refs/heads/yolo/team/{name}")
            places = addresses(repository, remote)
            _ask(remote, places, name, yes=yes, with_source=not no_source)
        with_source = bool(remote) and not no_source
        joined = join_team(repository, name, remote, with_source=with_source, lane=lane)
    text = f"joined the team {joined.team} as {joined.clone}; it meets at {joined.ref}"
    return Reply(_shown(joined), show=lambda console: console.print(text))


@verb("leave", example="yolo-fs team leave", parent=team)
@click.option("--delete-mine", is_flag=True, help="Delete this clone's own refs at the remote.")
def leave(invocation: Invocation, *, delete_mine: bool) -> Reply:
    """Leave the team. What was received stays on the branch, what was published stays there.

    --delete-mine gives back the leases of this clone and deletes its own branch at the remote. The
    team's branch stays for the others.
    """
    with Repository(invocation.start) as repository:
        if delete_mine:
            membership_of(repository)  # what is not agreed is not called
        left = leave_team(repository)
        deleted: tuple[str, ...] = ()
        if left and left.remote and delete_mine:
            deleted = _remote_sync(repository, left).delete_mine()
    text = f"left the team {safe(left.team)}" if left else "this work tree is in no team"
    if deleted:
        text += f"; deleted at the remote: {', '.join(deleted)}"
    data = _shown(left) | ({"deleted": list(deleted)} if delete_mine else {})
    return Reply(data, show=lambda console: console.print(text))


@verb("status", example="yolo-fs team status --json", parent=team)
def status(invocation: Invocation) -> Reply:
    """Show what is still to receive and to publish, why it waits, the leases, the state of the
    other clones, and conflicts that only a person can decide.

    Exit 1 while there are conflicts.
    """
    with Repository(invocation.start) as repository:
        membership = membership_of(repository)
        if membership is None:
            text = "this work tree is in no team; 'yolo-fs team join' joins one"
            return Reply({"team": None}, show=lambda console: console.print(text))
        settings = load(repository.root)
        status = observing_synchronizer(repository, settings, membership).sync_status()
        obstacle = Obstacles(repository).find(repository.head(), time.time_ns())
        seen = TeamObserver(repository, settings).look(obstacle)
    return _reply(membership, status, seen)


@verb("sync", example="yolo-fs team sync", parent=team)
def sync(invocation: Invocation) -> Reply:
    """Receive and publish once, now. Not needed while a daemon runs: then it only reports.

    Exit 1 while something is left.
    """
    with Repository(invocation.start) as repository:
        membership = _required(repository)
    try:
        repository, lock = acquire(invocation.start)
    except YoloError as error:
        if error.reason is not Reason.ALREADY_RUNNING:
            raise
        with Repository(invocation.start) as repository, _coordinator(repository) as coordinator:
            status = _synchronizer(repository, coordinator, membership).sync_status()
        return _reply(membership, status)
    with lock, repository, _coordinator(repository) as coordinator:
        synchronizer = _synchronizer(repository, coordinator, membership)
        if membership.remote:
            _remote_sync(repository, membership).exchange()
        status = synchronizer.look()
        synchronizer.sync_files()
        if membership.remote and not status.is_agreed:
            exchange = _remote_sync(repository, membership).exchange()
            status = synchronizer.sync_status()._replace(done=status.done, held=exchange.held)
        coordinator.sync_index()
    return _reply(membership, status)


@verb(
    "resolve",
    example="yolo-fs team resolve .yolo-planning/phases/01-auth/01-01.plan.jsonl --theirs",
    parent=team,
)
@click.argument("path")
@click.option("--ours", "side", flag_value="ours", help="Keep this branch's version.")
@click.option("--theirs", "side", flag_value="theirs", help="Take the team's version.")
def resolve(invocation: Invocation, *, path: str, side: str | None) -> Reply:
    """Decide a conflict: which version of a file to keep. The other stays in the history."""
    if side is None:
        raise click.UsageError("give --ours or --theirs")
    repository, lock = acquire(invocation.start)
    with lock, repository:
        membership = _required(repository)
        with _coordinator(repository) as coordinator:
            synchronizer = _synchronizer(repository, coordinator, membership)
            if membership.remote and side == "ours":
                _remote_sync(repository, membership).resolve(path)
            else:
                synchronizer.resolve(path, keep_ours=side == "ours")
                synchronizer.sync_files()
            coordinator.sync_index()
    text = f"{safe(path)}: kept {side}"
    return Reply({"path": path, "kept": side}, show=lambda console: console.print(text))


@click.group("lease", short_help="who publishes the artifacts of a department")
def lease() -> None:
    """Let only one clone publish the artifacts of a department.

    A department without a lease needs none. The lease is a file on the team's branch; a push that
    does not contain it is refused as a whole.
    """


team.add_command(lease)


@verb("list", example="yolo-fs team lease list --json", parent=lease)
def lease_list(invocation: Invocation) -> Reply:
    """Show the holder of each department's lease, and how often it has changed hands."""
    with _open_remote(invocation) as (sync, _):
        leases = sync.leases()
    return Reply(leases, show=lambda console: _show_leases(console, leases))


@verb("take", example="yolo-fs team lease take backend", parent=lease)
@click.argument("department", type=click.Choice([*LEASES]))
@click.option(
    "--ttl",
    "ttl_s",
    type=click.IntRange(1, LONGEST_TTL_S),
    metavar="SECONDS",
    help=f"How long its holder may be silent (default: {TTL_S}).",
)
def lease_take(invocation: Invocation, *, department: str, ttl_s: int | None) -> Reply:
    """Take the lease of a department. A lease that another clone holds is watched until it expires.

    A daemon whose artifacts wait for the lease does the same by itself.

    Exit 1 while its holder sends heartbeats.
    """

    def tell(held: TeamLease) -> None:
        if not invocation.quiet:
            text = f"held by {safe(held.holder)}: watching it for {held.ttl_s} s"
            print(text, file=sys.stderr, flush=True)

    with _open_remote(invocation) as (sync, membership):
        taken = sync.take_lease(department, ttl_s=ttl_s, watching=tell)
    if taken.holder != membership.clone:
        finding = Finding(Reason.LEASE_HELD, message=f"{safe(taken.holder)} is alive")
        return Reply(taken, [finding], Exit.FINDINGS)
    return Reply(taken, show=lambda console: _show_leases(console, (taken,)))


@verb("release", example="yolo-fs team lease release backend", parent=lease)
@click.argument("department", type=click.Choice([*LEASES]))
def lease_release(invocation: Invocation, *, department: str) -> Reply:
    """Give back a lease that this clone holds: every clone may publish for the department again."""
    with _open_remote(invocation) as (sync, membership):
        before = sync.lease(department)
        if before.holder != membership.clone:
            finding = Finding(Reason.LEASE_HELD, message=f"it is not held by {membership.clone}")
            return Reply(before, [finding], Exit.FINDINGS)
        free = sync.pass_lease(department, "", before)
    return Reply(free, show=lambda console: _show_leases(console, (free,)))


@contextmanager
def _open_remote(invocation: Invocation) -> Iterator[tuple[RemoteSync, Membership]]:
    with Repository(invocation.start) as repository:
        membership = _required(repository)
        if not membership.remote:
            raise YoloError(
                Reason.NOT_INITIALISED,
                "this team has no remote, and leases are for clones that meet at one",
                hint="Join with a remote: yolo-fs team join origin",
            )
        yield _remote_sync(repository, membership), membership


def _show_leases(console: Console, leases: Sequence[TeamLease]) -> None:
    for each in leases:
        lent = f", lent by {safe(each.lent_by)}" if each.lent_by else ""
        console.print(f"{each.dept:9} {safe(each.holder) or 'free'}, epoch {each.epoch}{lent}")


def _coordinator(repository: Repository) -> closing[Coordinator]:
    return closing(Coordinator(repository, load(repository.root), _journal(repository)))


def _journal(repository: Repository) -> EventSink:
    return Journal(repository.own_dir, source=repository.root).append


def _synchronizer(
    repository: Repository, coordinator: Coordinator, membership: Membership
) -> TeamSynchronizer:
    parts = (coordinator.committer, coordinator.obstacles, _journal(repository))
    return TeamSynchronizer(repository, load(repository.root), membership, *parts)


def _remote_sync(repository: Repository, membership: Membership) -> RemoteSync:
    return RemoteSync(repository, load(repository.root), membership, _journal(repository))


def _check_lane(lane: str, remote: str) -> None:
    """Refuse a lane without a remote, or with addresses of an unknown scheme."""
    if not lane:
        return
    if not remote:
        raise click.UsageError("--lane is for teams that meet at a REMOTE")
    if not all(each.startswith(SCHEMES) for each in lane.split(",")):
        raise click.UsageError(f"--lane takes addresses that begin with {' or '.join(SCHEMES)}")
    require_libraries("nats")


def _ask(remote: str, places: Sequence[str], name: str, *, yes: bool, with_source: bool) -> None:
    """Show what will be pushed, and continue only if the user agrees."""
    others = [place for place in places if place != remote]
    where = f"{remote} ({', '.join(others)})" if others else remote
    more = ", and the branch itself to refs/yolo/lines/ there" if with_source else ""
    text = f"the artifacts of this branch will be pushed to yolo/team/{name} at {safe(where)}{more}"
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{text}; confirm with --yes")
    click.confirm(f"{text}. Go on?", abort=True, err=True)


def _required(repository: Repository) -> Membership:
    membership = membership_of(repository)
    if membership is None:
        raise YoloError(
            Reason.NOT_INITIALISED,
            "this work tree is in no team",
            hint="'yolo-fs team join' joins one.",
        )
    return membership


def _shown(membership: Membership | None) -> dict[str, Any]:
    if membership is None:
        return {"team": None}
    return {"team": membership.team, "clone": membership.clone, "ref": membership.ref}


def _reply(membership: Membership, status: SyncStatus, seen: TeamOverview | None = None) -> Reply:
    data = _shown(membership) | {
        "tip": status.tip,
        "agreed": status.is_agreed,
        "to_receive": [change.path for change in status.receive],
        "to_publish": [change.path for change in status.publish],
        "to_merge": [each.path for each, _ in status.merges],
        "conflicts": [
            {"path": each.path, "ours": each.ours, "theirs": each.theirs}
            for each in status.conflicts
        ],
        "held": [{"path": held.path, "reason": held.reason.value} for held in status.held],
        "done": status.done,
        "machines": to_json(seen),
    }
    findings = [_conflict(each.path) for each in status.conflicts]
    if seen and seen.lane and seen.lane.reason:
        findings.append(Finding(seen.lane.reason, message=seen.lane.what, level=Level.WARNING))
    findings += [
        Finding(held.reason, held.path, message=held.what, level=Level.WARNING)
        for held in status.held
    ]
    code = Exit.DONE if status.is_agreed else Exit.FINDINGS

    def show(console: Console) -> None:
        if seen:
            draw_machines(console, seen)
        else:
            _show(console, membership, status)

    return Reply(data, findings, code, show)


def _conflict(path: str) -> Finding:
    return Finding(
        Reason.REMOTE_CONFLICT,
        path,
        hint=f"compare the versions, then: yolo-fs team resolve {path} --ours (or --theirs)",
    )


def _show(console: Console, membership: Membership, status: SyncStatus) -> None:
    console.print(f"team {membership.team}, here {membership.clone}")
    counts = {
        "to receive": len(status.receive),
        "to publish": len(status.publish),
        "to merge": len(status.merges),
        "in conflict": len(status.conflicts),
    }
    waiting = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    console.print(waiting or "this branch and the team have the same artifacts")


@verb("forecast", example="yolo-fs forecast --json")
def forecast(invocation: Invocation) -> Reply:
    """Name the files in which the branches of this repository's work trees will conflict.

    Each pair of branches is merged only in git's object store; no branch and no file changes. Exit
    1 when there is a conflict.
    """
    with Repository(invocation.start) as repository:
        lines = lines_of(repository)
        conflicts = tuple(conflicts_of(repository, lines))
    code = Exit.FINDINGS if conflicts else Exit.DONE
    data = {"branches": lines, "conflicts": conflicts}
    return Reply(
        data, exit_code=code, show=lambda console: _show_conflicts(console, lines, conflicts)
    )


def _show_conflicts(
    console: Console, lines: tuple[str, ...], conflicts: tuple[ExpectedConflict, ...]
) -> None:
    if not conflicts:
        console.print(
            f"{len(lines)} branches merge with each other without a conflict"
            if len(lines) > 1
            else "there is only one branch: nothing can conflict"
        )
    for each in conflicts:
        names = ", ".join(safe(path) for path in each.paths)
        console.print(f"{safe(each.one)} and {safe(each.other)}: {names}")
