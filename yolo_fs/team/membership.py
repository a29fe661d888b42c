"""Which team a work tree has joined.

The choice is stored in its git directory. The user's own configuration records that this user made
it, on this machine and for this place: a git directory can come from anywhere, and a member of a
team pushes.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.git.repository import Head, Repository
from yolo_fs.system.files import content_of
from yolo_fs.system.store import (
    Damaged,
    environment,
    private_directory,
    read_json,
    remove,
    write_json,
)
from yolo_fs.system.system import machine_id
from yolo_fs.workspace.own_files import BESIDE, LINES, TEAM
from yolo_fs.workspace.settings import user_config_path

DEFAULT_TEAM = "main"
_LINE_BYTES = 8192
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


class Membership(NamedTuple):
    """A work tree's place in a team."""

    team: str
    clone: str
    """Name of this work tree in the team: which commit came from where."""
    remote: str = ""
    """Name of the git remote; empty where only the work trees of one repository meet."""
    with_source: bool = False
    """Whether the branch itself is pushed as well, so that others see the commits that summaries
    name."""
    lane: str = ""
    """Addresses of NATS servers, over which a push wakes the others; empty for polling alone."""

    @property
    def ref(self) -> str:
        """The ref of this repository at which the work tree meets its team."""
        kind = "yolo-fs/remote" if self.remote else "yolo/team"
        return f"refs/{kind}/{self.team}"

    @property
    def branch(self) -> str:
        """The team's branch on the remote."""
        return f"refs/heads/yolo/team/{self.team}"


def membership_of(repository: Repository) -> Membership | None:
    """Return the team that this work tree has joined, or None.

    Raises:
        YoloError: what keeps the choice is damaged; TEAM_NOT_AGREED when this user has not agreed
            to it here, or to another address of the remote.
    """
    membership = _chosen(repository)
    if membership and not _is_agreed(repository, membership):
        remote = f" {shlex.quote(safe(membership.remote))}" if membership.remote else ""
        team = f" --team {safe(membership.team)}" if membership.team != DEFAULT_TEAM else ""
        where = " at ".join(
            filter(None, (membership.team, *addresses(repository, membership.remote)))
        )
        raise YoloError(
            Reason.TEAM_NOT_AGREED,
            f"the git directory names the team {safe(where)}, which nobody has joined here:"
            " nothing is received or published",
            hint=f"To share it: yolo-fs team join{remote}{team}. Otherwise: yolo-fs team leave",
        )
    return membership


def addresses(repository: Repository, remote: str) -> tuple[str, ...]:
    """Return the addresses of a remote: those configured under its name, or the name itself."""
    keys = (f"remote.{remote}.url", f"remote.{remote}.pushurl")
    named = [each.value for each in repository.settings() if each.key in keys]
    return tuple(named) or tuple(filter(None, (remote,)))


def _chosen(repository: Repository) -> Membership | None:
    note = TEAM.read(repository)
    if isinstance(note, Damaged):
        raise TEAM.refusal(repository, note)
    return _membership(note) if note else None


def _is_agreed(repository: Repository, membership: Membership) -> bool:
    return read_json(_path_of_agreement(repository)) == _build_agreement(repository, membership)


def _build_agreement(repository: Repository, membership: Membership) -> dict[str, Any]:
    """Return all that the user agrees to by joining."""
    return {
        **membership._asdict(),
        "addresses": list(addresses(repository, membership.remote)),
        "git_dir": repository.git_dir,
        "machine": machine_id(),
    }


def _path_of_agreement(repository: Repository) -> str:
    """Return the file of the user's own configuration that says what was agreed to here."""
    place = sha256(os.fsencode(repository.git_dir)).hexdigest()
    return os.path.join(os.path.dirname(user_config_path()), "teams", f"{place[:32]}.json")


class Neighbour(NamedTuple):
    """Another work tree of the same repository that has joined a team."""

    root: str
    own_dir: str
    head: Head
    membership: Membership


def memberships_beside(repository: Repository) -> Iterator[Neighbour]:
    """Yield the other work trees of this repository that are in a team; changes nothing there."""
    folders = dict(_find_git_dirs(repository))
    for facts in repository.list_work_trees():
        root = os.path.realpath(facts["worktree"])
        if root == os.path.realpath(repository.root) or root not in folders:
            continue
        own_dir = os.path.join(folders[root], "yolo-fs")
        note = TEAM.checked(read_json(os.path.join(own_dir, TEAM.name)))
        if isinstance(note, dict):
            tip = facts.get("HEAD", "")
            head = Head(facts.get("branch"), tip if tip.strip("0") else None)
            yield Neighbour(root, own_dir, head, _membership(note))


def _find_git_dirs(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yield each work tree with its own git directory."""
    yield os.path.realpath(os.path.dirname(repository.common_dir)), repository.common_dir
    with (
        contextlib.suppress(FileNotFoundError),
        os.scandir(f"{repository.common_dir}/worktrees") as entries,
    ):
        for entry in entries:
            git_path = os.fsdecode(content_of(f"{entry.path}/gitdir", _LINE_BYTES)).partition("\n")[
                0
            ]
            if git_path and "\0" not in git_path:
                yield os.path.realpath(os.path.dirname(git_path)), entry.path


def join(
    repository: Repository,
    team: str,
    remote: str = "",
    *,
    with_source: bool = False,
    lane: str = "",
) -> Membership:
    """Join a team, or switch to another one; a work tree keeps its name.

    `with_source`: push the branch as well. `lane`: addresses of NATS servers.

    Raises:
        YoloError: BAD_NAME.
    """
    if not _NAME.fullmatch(team):
        raise YoloError(
            Reason.BAD_NAME,
            f"{safe(team)!r} cannot be the name of a team",
            hint="Use lower-case letters, digits and hyphens, at most 40.",
        )
    before = _chosen(repository)
    # A copy of a clone is another clone.
    is_same = before is not None and _is_agreed(repository, before)
    clone = before.clone if before and is_same else _make_clone_name(repository.root)
    joined = Membership(team, clone, remote, with_source=with_source, lane=lane)
    repository.make_own_dir()
    agreed = _path_of_agreement(repository)
    with environment(agreed):
        os.makedirs(os.path.dirname(os.path.dirname(agreed)), exist_ok=True)
    private_directory(os.path.dirname(agreed))
    write_json(agreed, _build_agreement(repository, joined))
    write_json(TEAM.path(repository), joined._asdict())
    return joined


def _membership(note: Mapping[str, Any]) -> Membership:
    with_source = note.get("with_source") is True  # who joined before it was asked did not agree
    lane = str(note.get("lane") or "")
    return Membership(
        note["team"], note["clone"], note["remote"], with_source=with_source, lane=lane
    )


def leave(repository: Repository) -> Membership | None:
    """Leave the team, and return it. What was published and received stays."""
    before = _chosen(repository)
    if before:
        for path in (TEAM.path(repository), _path_of_agreement(repository)):
            with contextlib.suppress(FileNotFoundError):
                remove(path)
        shown = repository.refs_below(LINES) if before.remote else {}
        beside = f"{BESIDE}{before.clone}"
        for ref, oid in (*shown.items(), (beside, repository.tip(beside) or "")):
            repository.git.run("update-ref", "-d", ref, oid, ok=(0, 1, 128))
    return before


def _make_clone_name(root: str) -> str:
    """Return a unique name that says where the work tree is."""
    words = f"{platform.node()}-{os.path.basename(root)}".lower()
    plain = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:40].strip("-")
    return f"{plain or 'clone'}-{os.urandom(3).hex()}"
