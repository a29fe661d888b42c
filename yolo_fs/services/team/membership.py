"""Which team a work tree has joined: the user's own choice, kept in its git directory."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from yolo_fs.edges.git.repository import Head, Repository
from yolo_fs.edges.store import Damaged, read_json, write_json
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.services.workspace import BESIDE, LINES, TEAM

DEFAULT_TEAM = "main"
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
        YoloError: what keeps the choice is damaged.
    """
    found = TEAM.read(repository)
    if isinstance(found, Damaged):
        raise TEAM.refusal(repository, found)
    if found is None:
        return None
    membership = _membership(found)
    if found["place"] != _place(repository):  # a copy of a clone is another clone
        membership = membership._replace(clone=_new_name(repository.root))
        _keep(repository, membership)
    return membership


class Neighbour(NamedTuple):
    """Another work tree of the same repository that has joined a team."""

    root: str
    own_dir: str
    head: Head
    membership: Membership


def memberships_beside(repository: Repository) -> Iterator[Neighbour]:
    """Yield the other work trees of this repository that are in a team; changes nothing there."""
    folders = dict(_git_dirs(repository))
    listed = repository.git.text("worktree", "list", "--porcelain").split("\n\n")
    for block in listed:
        facts = dict(line.partition(" ")[::2] for line in block.split("\n"))
        root = os.path.realpath(facts.get("worktree", ""))
        if root == os.path.realpath(repository.root) or root not in folders:
            continue
        own_dir = os.path.join(folders[root], "yolo-fs")
        found = TEAM.checked(read_json(os.path.join(own_dir, TEAM.name)))
        if isinstance(found, dict):
            tip = facts.get("HEAD", "")
            head = Head(facts.get("branch"), tip if tip.strip("0") else None)
            yield Neighbour(root, own_dir, head, _membership(found))


def _git_dirs(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yield each work tree with the git directory of its own."""
    yield os.path.realpath(os.path.dirname(repository.common_dir)), repository.common_dir
    with (
        contextlib.suppress(FileNotFoundError),
        os.scandir(f"{repository.common_dir}/worktrees") as entries,
    ):
        for entry in entries:
            with contextlib.suppress(OSError), open(f"{entry.path}/gitdir") as file:
                yield os.path.realpath(os.path.dirname(file.readline().rstrip("\n"))), entry.path


def join(
    repository: Repository,
    team: str,
    remote: str = "",
    *,
    with_source: bool = False,
    lane: str = "",
) -> Membership:
    """Join a team, or change to another one; a work tree keeps its name. `with_source`: push the
    branch as well. `lane`: addresses of NATS servers.

    Raises:
        YoloError: BAD_NAME.
    """
    if not _NAME.fullmatch(team):
        raise YoloError(
            Reason.BAD_NAME,
            f"{safe(team)!r} cannot be the name of a team",
            hint="Use lower-case letters, digits and hyphens, at most 40.",
            exit_code=Exit.USAGE,
        )
    before = membership_of(repository)
    clone = before.clone if before else _new_name(repository.root)
    joined = Membership(team, clone, remote, with_source=with_source, lane=lane)
    _keep(repository, joined)
    return joined


def _membership(found: Mapping[str, Any]) -> Membership:
    with_source = found.get("with_source") is True  # who joined before it was asked did not agree
    lane = str(found.get("lane") or "")
    return Membership(
        found["team"], found["clone"], found["remote"], with_source=with_source, lane=lane
    )


def _keep(repository: Repository, membership: Membership) -> None:
    repository.make_own_dir()
    write_json(TEAM.path(repository), {**membership._asdict(), "place": _place(repository)})


def _place(repository: Repository) -> str:
    return f"{platform.node()}:{repository.root}"


def leave(repository: Repository) -> Membership | None:
    """Leave the team; return which it was. What was published and received stays."""
    before = membership_of(repository)
    if before:
        os.unlink(TEAM.path(repository))
        shown = repository.refs_below(LINES) if before.remote else {}
        beside = f"{BESIDE}{before.clone}"
        for ref, oid in (*shown.items(), (beside, repository.tip(beside) or "")):
            repository.git.run("update-ref", "-d", ref, oid, ok=(0, 1, 128))
    return before


def _new_name(root: str) -> str:
    """Return a name that says where the work tree is, and that no other has."""
    words = f"{platform.node()}-{os.path.basename(root)}".lower()
    plain = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:40].strip("-")
    return f"{plain or 'clone'}-{os.urandom(3).hex()}"
