"""`yolo-fs team`: the same artifacts in several work trees, each on its own branch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.journal import Journal
from yolo_fs.reasons import Exit, Finding, Level, Reason, YoloError, safe
from yolo_fs.services.daemon.coordinator import Coordinator
from yolo_fs.services.daemon.lock import acquire
from yolo_fs.services.team.meeting import TeamMeeting, TeamStanding
from yolo_fs.services.team.membership import DEFAULT_TEAM, Membership, membership_of
from yolo_fs.services.team.membership import join as join_team
from yolo_fs.services.team.membership import leave as leave_team
from yolo_fs.services.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("team", short_help="several work trees of a repository as one team")
def team() -> None:
    """Let several work trees of this repository share their artifacts, each on its own branch.

    An artifact that is committed in one is validated and committed in all others, so that merging
    the branches later meets no conflict in them. Nothing is shared before `join`, and nothing is
    ever pushed: the work trees meet at a ref of this repository, refs/yolo/team/NAME.
    """


@verb("join", example="yolo-fs team join", parent=team)
@click.option("--team", "name", default=DEFAULT_TEAM, show_default=True, help="Which team.")
def join(asked: Invocation, *, name: str) -> Reply:
    """Join a team with this work tree. A running daemon begins at once; `team sync` does one round.

    The choice is kept in the git directory of this work tree, and holds until `team leave`.
    """
    with Repository(asked.start) as repository:
        joined = join_team(repository, name)
    text = f"joined the team {joined.team} as {joined.clone}; it meets at {joined.local_ref}"
    return Reply(_shown(joined), show=lambda console: console.print(text))


@verb("leave", example="yolo-fs team leave", parent=team)
def leave(asked: Invocation) -> Reply:
    """Leave the team. What was received stays on the branch, what was published stays there."""
    with Repository(asked.start) as repository:
        left = leave_team(repository)
    text = f"left the team {left.team}" if left else "this work tree is in no team"
    return Reply(_shown(left), show=lambda console: console.print(text))


@verb("status", example="yolo-fs team status --json", parent=team)
def status(asked: Invocation) -> Reply:
    """Show what is still to receive and to publish, and what only a person can decide.

    Exit 1 while there are conflicts.
    """
    with Repository(asked.start) as repository:
        membership = membership_of(repository)
        if membership is None:
            text = "this work tree is in no team; 'yolo-fs team join' joins one"
            return Reply({"team": None}, show=lambda console: console.print(text))
        with _coordinator(repository) as coordinator:
            standing = _meeting(repository, coordinator, membership).standing()
    return _reply(membership, standing)


@verb("sync", example="yolo-fs team sync", parent=team)
def sync(asked: Invocation) -> Reply:
    """Receive and publish once, now. A running daemon does so by itself: then this only looks.

    Exit 1 while something is left.
    """
    with Repository(asked.start) as repository:
        membership = _required(repository)
    try:
        repository, lock = acquire(asked.start)
    except YoloError as error:
        if error.reason is not Reason.ALREADY_RUNNING:
            raise
        with Repository(asked.start) as repository, _coordinator(repository) as coordinator:
            standing = _meeting(repository, coordinator, membership).standing()
        return _reply(membership, standing)
    with lock, repository, _coordinator(repository) as coordinator:
        standing = _meeting(repository, coordinator, membership).look()
        coordinator.sync_index()
    return _reply(membership, standing)


@verb(
    "resolve",
    example="yolo-fs team resolve .yolo-planning/phases/01-auth/01-01.plan.jsonl --theirs",
    parent=team,
)
@click.argument("path")
@click.option("--ours", "side", flag_value="ours", help="This branch's version follows on theirs.")
@click.option(
    "--theirs", "side", flag_value="theirs", help="The team's version replaces this branch's."
)
def resolve(asked: Invocation, *, path: str, side: str | None) -> Reply:
    """Decide a conflict: which version of a file goes on. The other stays in its history."""
    if side is None:
        raise click.UsageError("say --ours or --theirs")
    repository, lock = acquire(asked.start)
    with lock, repository:
        membership = _required(repository)
        with _coordinator(repository) as coordinator:
            _meeting(repository, coordinator, membership).resolve(path, keep_ours=side == "ours")
            coordinator.sync_index()
    text = f"{safe(path)}: {side} goes on"
    return Reply({"path": path, "kept": side}, show=lambda console: console.print(text))


@contextmanager
def _coordinator(repository: Repository) -> Iterator[Coordinator]:
    journal = Journal(repository.own_dir, source=repository.root, now=lambda: datetime.now(UTC))
    coordinator = Coordinator(repository, load(repository.root), journal.append)
    try:
        yield coordinator
    finally:
        coordinator.close()


def _meeting(
    repository: Repository, coordinator: Coordinator, membership: Membership
) -> TeamMeeting:
    journal = Journal(repository.own_dir, source=repository.root, now=lambda: datetime.now(UTC))
    return TeamMeeting(
        repository,
        load(repository.root),
        membership,
        coordinator.committer,
        coordinator.obstacles,
        journal.append,
    )


def _required(repository: Repository) -> Membership:
    membership = membership_of(repository)
    if membership is None:
        raise YoloError(
            Reason.NOT_INITIALISED,
            "this work tree is in no team",
            hint="'yolo-fs team join' joins one.",
            exit_code=Exit.NOT_HERE,
        )
    return membership


def _shown(membership: Membership | None) -> dict[str, Any]:
    if membership is None:
        return {"team": None}
    return {"team": membership.team, "clone": membership.clone, "ref": membership.local_ref}


def _reply(membership: Membership, standing: TeamStanding) -> Reply:
    conflicts = [each.path for each in standing.conflicts]
    data = _shown(membership) | {
        "tip": standing.tip,
        "agreed": standing.is_agreed,
        "to_receive": [change.path for change in standing.receive],
        "to_publish": [change.path for change in standing.publish],
        "to_merge": [each.path for each, _ in standing.merges],
        "conflicts": [
            {"path": each.path, "ours": each.ours, "theirs": each.theirs}
            for each in standing.conflicts
        ],
        "held": [{"path": one.path, "reason": one.reason.value} for one in standing.held],
        "done": standing.done,
    }
    findings = [_conflict(path) for path in conflicts]
    findings += [
        Finding(one.reason, one.path, message=one.what, level=Level.WARNING)
        for one in standing.held
    ]
    code = Exit.DONE if standing.is_agreed else Exit.FINDINGS
    return Reply(data, findings, code, lambda console: _show(console, membership, standing))


def _conflict(path: str) -> Finding:
    return Finding(
        Reason.REMOTE_CONFLICT,
        path,
        hint=f"compare the versions, then: yolo-fs team resolve {path} --ours (or --theirs)",
    )


def _show(console: Console, membership: Membership, standing: TeamStanding) -> None:
    console.print(f"team {membership.team}, here {membership.clone}")
    counts = {
        "to receive": len(standing.receive),
        "to publish": len(standing.publish),
        "to merge": len(standing.merges),
        "in conflict": len(standing.conflicts),
    }
    waiting = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    console.print(waiting or "this branch and the team have the same artifacts")
