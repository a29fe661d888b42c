"""`yolo-fs uninstall`: removes everything of ours from a repository except its history."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import click

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.cli.setup import parts_of
from yolo_fs.core.reasons import Exit, YoloError, safe
from yolo_fs.definitions.role_files import ROLE_FILES, RoleFiles
from yolo_fs.git.repository import Repository
from yolo_fs.leaving import (
    Part,
    check_leaving,
    folders_of,
    hand_over_packs,
    kept_dev_trees,
    kept_team_refs,
    parts_of_repository,
    parts_of_tree,
    planning_tree,
)
from yolo_fs.protocol.hooks import HOST_BY_NAME


@verb("uninstall", example="yolo-fs uninstall --dry-run")
@click.option("--dry-run", is_flag=True, help="Print what would be removed; change nothing.")
@click.option(
    "--purge",
    is_flag=True,
    help="Also remove the planning tree, and what only 'yolo-fs kept' or a team's ref has.",
)
def uninstall(invocation: Invocation, *, dry_run: bool, purge: bool) -> Reply:
    """Remove everything of ours from this repository: daemons, hooks, entries in the settings of
    agents' hosts, merge driver, service, refs and locks, in every work tree.

    Your history stays, and without --purge also .yolo-planning/. Files in 'yolo-fs kept' may exist
    nowhere else: if there are any, nothing is done without --purge. The ref of a team is removed
    with the last work tree in it; if it has commits that no branch has, it stays and is named.
    """
    gone: list[Part] = []

    def take(part: Part) -> None:
        if dry_run or part.remove() is not False:
            gone.append(part)

    with Repository(invocation.start) as repository:
        obstacles = _obstacles(repository, purge=purge)
        if obstacles and not dry_run:
            raise obstacles[0]
        for root in repository.work_trees():
            with Repository(root) as tree:
                for part in chain(parts_of_tree(tree), _hosts(tree)):
                    take(part)
        refs = [] if purge else list(kept_team_refs(repository))
        for part in parts_of_repository(repository, [each.path for each in refs]):
            take(part)
        stays = [*refs, *kept_dev_trees(repository)]
        if not dry_run:
            hand_over_packs(repository)
        for root in repository.work_trees():
            with Repository(root) as tree:
                for part in (*folders_of(tree), *(planning_tree(tree) if purge else ())):
                    take(part)
    places = list(dict.fromkeys((part.kind, part.place) for part in gone))
    word = "would go" if dry_run else "gone"
    lines = [f"{word}  {kind:8}  {safe(place)}" for kind, place in places]
    state = "would_remove" if dry_run else "removed"
    data = {
        "state": state if places else "nothing",
        "parts": [{"kind": kind, "place": place} for kind, place in places],
    }
    if purge and not dry_run:
        lines += _advise_commit(invocation.start, gone)
    shown = lines or [f"nothing {'else ' if stays else ''}of ours is here"]
    return Reply(
        data,
        [*(error.as_finding() for error in obstacles), *stays],
        Exit.FINDINGS if obstacles else Exit.DONE,
        lambda _: print("\n".join(shown)),
    )


def _advise_commit(start: str, gone: Sequence[Part]) -> list[str]:
    """Return what is left to do where a planning tree was removed that the branch still has."""
    with Repository(start) as repository:
        kept = repository.files_at(repository.head().tip, PLANNING_ROOT)
    if not kept or not any(part.kind == "tree" for part in gone):
        return []
    command = f"git commit -m 'chore(repo): leave yolo' {PLANNING_ROOT}"
    return [f"the branch still has {PLANNING_ROOT}; to take it from there, too: {command}"]


def _obstacles(repository: Repository, *, purge: bool) -> list[YoloError]:
    try:
        check_leaving(repository, purge=purge)
    except YoloError as error:
        return [error]
    return []


def _hosts(repository: Repository) -> list[Part]:
    host_parts = []
    for row in HOST_BY_NAME.values():
        parts = parts_of(repository, row)
        host_parts += [
            Part("host", part.file.path, part.remove)
            for part in parts
            if "yolo-fs" in (part.file.text() or "")
        ]
        if row.name in ROLE_FILES and (files := RoleFiles(repository, row)).is_there():
            host_parts.append(Part("host", files.path, files.remove))
    return host_parts
