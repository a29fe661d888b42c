"""What uninstalling removes: all of ours that is not history, part by part, in all work trees.

Each part is removed by the code that created it. Kept contents exist nowhere else, so they are
never removed without being asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.table import HIDDEN
from yolo_fs.core.reasons import Finding, Level, Reason, YoloError, counted, safe
from yolo_fs.git import excluded
from yolo_fs.git.packs import PackMerger
from yolo_fs.git.repository import Repository
from yolo_fs.hooks.githooks import carry_out, plan_uninstall, unfit
from yolo_fs.install import background
from yolo_fs.kept.service import REF as KEPT
from yolo_fs.states.project import says_ours
from yolo_fs.system.files import content_of
from yolo_fs.system.lock import holder
from yolo_fs.system.store import remove, remove_empty_folders, remove_folder
from yolo_fs.team import membership, merge_driver
from yolo_fs.workspace.own_files import DEV_BRANCHES, company_lock_path, log_path

OURS = "refs/yolo-fs/"
TEAMS = "refs/yolo/team/"
"""Refs at which the work trees of this repository meet."""
STOPPED_WITHIN_S = 30.0


class Part(NamedTuple):
    """One thing of ours in a repository."""

    kind: str
    """`daemon`, `service`, `hooks`, `merge`, `team`, `states`, `exclude`, `refs`, `folder` or
    `tree`.
    """
    place: str
    """Where it is: a path, a ref, or the name of a process."""
    remove: Callable[[], object]
    """Returns False where it was gone already."""


def kept_refs(repository: Repository) -> tuple[str, ...]:
    """Return the refs that hold contents which may exist nowhere else."""
    return tuple(sorted(repository.refs_below(KEPT)))


def check_leaving(repository: Repository, *, purge: bool) -> None:
    """Refuse what would lose something, or leave something behind.

    Raises:
        YoloError: STATE_CONFLICT; LOCK_TIMEOUT while agents are run in a work tree.
    """
    if not purge and (kept := kept_refs(repository)):
        raise YoloError(
            Reason.STATE_CONFLICT,
            f"contents are kept in {', '.join(kept)}, which may exist nowhere else",
            hint="'yolo-fs kept' lists them, 'yolo-fs kept restore N' brings one back; "
            "'yolo-fs kept prune --older 0d' lets them go.",
        )
    if bad := unfit(plan_uninstall(repository)):
        raise YoloError(bad[0].reason, bad[0].message, hint=bad[0].hint)
    for root in repository.work_trees():
        with Repository(root) as tree:
            _check_tree(tree)


def _check_tree(repository: Repository) -> None:
    if runner := holder(company_lock_path(repository)):
        raise YoloError(
            Reason.LOCK_TIMEOUT,
            f"the company runs in {safe(repository.root)}: process {runner.pid}",
            hint="End it with Ctrl-C where it runs, or wait: 'yolo-fs company runs' shows it.",
        )
    for unit in _find_units(repository):
        unit.refuse_enabled()


def parts_of_tree(repository: Repository) -> Iterator[Part]:
    """Yield the parts of one work tree, in the order of removal.

    Remove each before the next is taken: what a daemon still writes is looked for after its end.
    """
    if holder := background.running(repository):
        stop = partial(background.stop, repository, STOPPED_WITHIN_S)
        yield Part("daemon", f"process {holder.pid}", stop)
    for unit in _find_units(repository):
        yield Part("service", unit.path, partial(background.uninstall, unit))
    if member := membership.membership_of(repository):
        yield Part("team", member.team, partial(membership.leave, repository))
    for path in _find_computed_files(repository):
        yield Part("states", path, partial(_remove_computed, repository, path))


def _find_computed_files(repository: Repository) -> Iterator[str]:
    """Yield the state files that we keep beside the branch and nobody has changed: git would show
    them from now on.
    """
    listed = repository.git.run("ls-files", "-z", "--others", "--", PLANNING_ROOT).out
    for path in map(os.fsdecode, listed.split(b"\0")[:-1]):
        if path.endswith(".json") and _is_computed(repository, path):
            yield path


def _is_computed(repository: Repository, path: str) -> bool:
    return says_ours(content_of(os.path.join(repository.root, path)))


def _remove_computed(repository: Repository, path: str) -> None:
    if _is_computed(repository, path):  # its daemon has ended since
        remove(os.path.join(repository.root, path), root=repository.root)


def parts_of_repository(repository: Repository, staying: Collection[str]) -> Iterator[Part]:
    """Yield the parts that all work trees share, in the order of removal.

    `staying`: the refs of teams that are kept.
    """
    if deeds := plan_uninstall(repository):
        yield Part("hooks", "git's hooks", partial(carry_out, repository, deeds))
    if merge_driver.is_installed(repository):
        yield Part("merge", "merge driver", partial(merge_driver.uninstall, repository))
    if excluded.is_hiding(repository):
        yield Part("exclude", "info/exclude", partial(excluded.show, repository, HIDDEN))
    for ref, oid in _team_refs(repository).items():
        if ref not in staying:
            yield Part("refs", ref, partial(_delete, repository, ref, oid))
    listed = repository.git.text("for-each-ref", "--format=%(refname) %(objectname)", OURS)
    for ref, oid in (line.split(" ") for line in listed.splitlines()):
        yield Part("refs", ref, partial(_delete, repository, ref, oid))


def kept_team_refs(repository: Repository) -> Iterator[Finding]:
    """Yield, as warnings, each ref of a team that stays, because no branch has all that it has."""
    for ref in _team_refs(repository):
        if versions := _versions_only_at(repository, ref):
            yield Finding(
                Reason.STATE_CONFLICT,
                ref,
                message=f"it stays: only it has {counted(len(versions), 'version')},"
                f" such as {safe(versions[0])}",
                hint=f"'git branch NAME {ref}' makes a branch of it; --purge removes it.",
                level=Level.WARNING,
                command=f"git log {ref}",
            )


def kept_dev_trees(repository: Repository) -> Iterator[Finding]:
    """Yield, as warnings, the work trees of Devs: they stay where their work is not merged."""
    for facts in repository.list_work_trees():
        branch = facts.get("branch", "").removeprefix("refs/heads/")
        if branch.startswith(f"{DEV_BRANCHES}/"):
            yield Finding(
                Reason.STATE_CONFLICT,
                facts["worktree"],
                message=f"it stays: a work tree with the work of a Dev on {safe(branch)}",
                hint="Once you no longer need it, git's 'worktree remove' removes it.",
                level=Level.WARNING,
            )


def _team_refs(repository: Repository) -> dict[str, str]:
    """Return the refs of teams in which no work tree is that is not left now."""
    left = {os.path.realpath(root) for root in repository.work_trees()}
    others = membership.memberships_beside(repository)
    staying = {each.membership.ref for each in others if each.root not in left}
    refs = repository.refs_below(TEAMS)
    return {ref: oid for ref, oid in sorted(refs.items()) if ref not in staying}


def _versions_only_at(repository: Repository, ref: str) -> list[str]:
    """Return `CONTENT PATH` of each version in the history of a ref that no other ref reaches."""
    blobs = ("rev-list", "--objects", "--filter=object:type=blob", "--filter-provided-objects")
    there = repository.git.text(*blobs, ref).splitlines()
    if not there:
        return []
    tops = sorted({line.partition(" ")[2].partition("/")[0] for line in there})
    others = (f"--exclude={TEAMS}*", f"--exclude={OURS}*", "--all", "--full-history")
    elsewhere = repository.git.text(*blobs, *others, "--", *tops).splitlines()
    known = {line.partition(" ")[0] for line in elsewhere}
    return [line for line in there if line.partition(" ")[0] not in known]


def folders_of(repository: Repository) -> Iterator[Part]:
    """Yield our folder of one work tree, and the one that all of them share; they go last."""
    for folder in dict.fromkeys((repository.own_dir, f"{repository.common_dir}/yolo-fs")):
        if os.path.lexists(folder):
            yield Part("folder", folder, partial(remove_folder, folder))


def planning_tree(repository: Repository) -> Iterator[Part]:
    """Yield the planning tree, which is only removed on request."""
    folder = os.path.join(repository.root, PLANNING_ROOT)
    if os.path.isdir(folder) and not os.path.islink(folder):
        yield Part("tree", folder, partial(remove_folder, folder))


def hand_over_packs(repository: Repository) -> None:
    """Leave the object store as git would: no pack is withheld from garbage collection.

    Raises:
        YoloError: as `PackMerger.end`.
    """
    PackMerger(repository).end()


def _find_units(repository: Repository) -> Iterator[background.Unit]:
    if not background.can_be_served(repository.root):
        return
    system = background.System.of_this_machine()
    unit = background.unit_for(repository.root, log_path(repository), system)
    if os.path.lexists(unit.path):
        yield unit


def _delete(repository: Repository, ref: str, oid: str) -> None:
    repository.git.run("update-ref", "--no-deref", "-d", ref, oid, ok=(0, 1, 128))
    common = repository.common_dir
    top = "/".join(ref.split("/")[:2])
    remove_empty_folders(os.path.dirname(f"{common}/{ref}"), f"{common}/{top}")
