"""Repairs at the start after a crash or a power loss, only of what is provably ours.

See docs/dev/faults.md#f04, #f05 and #f24.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.core.reasons import Finding, Reason, YoloError
from yolo_fs.daemon.coordinator import Coordinator
from yolo_fs.git.history import LoggedCommit, log
from yolo_fs.git.index import IndexUpdate
from yolo_fs.git.objects import MOST_BYTES
from yolo_fs.git.packs import PackMerger
from yolo_fs.git.repository import Repository
from yolo_fs.system import failpoint
from yolo_fs.system.files import read
from yolo_fs.system.store import opened, private_directory, write_json
from yolo_fs.system.system import boot_id
from yolo_fs.workspace.own_files import BOOT

OWN_COMMITS = 1_000
"""Number of commits that are searched, after a reboot, for entries missing in the index."""


class Repaired(NamedTuple):
    """One repair."""

    path: str
    what: str


def recover(repository: Repository, coordinator: Coordinator) -> tuple[Repaired, ...]:
    """Repair what a crash of ours left behind, and return the repairs."""
    return tuple(_steps(repository, coordinator))


def _steps(repository: Repository, coordinator: Coordinator) -> Iterator[Repaired]:
    failpoint.reach("recovery.begun")
    packs = PackMerger(repository)
    packs.repair()
    packs.take_back()
    for path in coordinator.clear_own_stale_locks():
        yield Repaired(path, "removed the lock that a dead helper of ours held")
    if coordinator.index.clear_own_stale_lock():
        yield Repaired("index.lock", "removed the lock that a killed run of ours held")
    failpoint.reach("recovery.unlocked")
    if _has_rebooted(repository):
        yield from _set_empty_objects_aside(repository)
        yield from _write_lost_blobs(repository)
        _expect_index_of_recent_commits(repository, coordinator)
        failpoint.reach("recovery.expected")
    pending = tuple(coordinator.index.pending)
    if pending and coordinator.sync_index():
        failpoint.reach("recovery.followed")
        for path in pending:
            yield Repaired(path, "let the index follow a commit of ours")
    _note_boot(repository)


def _has_rebooted(repository: Repository) -> bool:
    """Return whether no start since this boot has completed its recovery.

    A missing note may have been lost in a power loss. If the system has no boot id, every start
    counts as the first.
    """
    return not boot_id() or BOOT.read(repository) != {"boot": boot_id()}


def _note_boot(repository: Repository) -> None:
    """Record the recovery of this boot, as its last step: after an earlier kill, it is repeated."""
    if _has_rebooted(repository):
        with contextlib.suppress(OSError, YoloError):
            write_json(BOOT.path(repository), {"boot": boot_id()}, durable=False)
        failpoint.reach("recovery.booted")


def _set_empty_objects_aside(repository: Repository) -> Iterator[Repaired]:
    """Move empty objects, which a power loss leaves and git never repairs, to quarantine (F04)."""
    objects = os.path.join(repository.common_dir, "objects")
    quarantine = os.path.join(repository.own_dir, "quarantine")
    folders = [
        entry
        for entry in os.scandir(objects)
        if len(entry.name) == 2 and entry.is_dir(follow_symlinks=False)
    ]
    for folder in folders:  # behind a link are files of others
        for entry in os.scandir(folder):
            if (
                entry.is_file(follow_symlinks=False)
                and entry.stat().st_size == 0
                and not entry.name.startswith("tmp_")
            ):
                private_directory(quarantine)
                aside = os.path.join(quarantine, folder.name + entry.name)
                with opened(aside) as (place, name):
                    os.rename(entry.path, name, dst_dir_fd=place)
                failpoint.reach("recovery.aside")
                yield Repaired(entry.path, "set an empty object aside")


def _write_lost_blobs(repository: Repository) -> Iterator[Repaired]:
    """Store the blobs again that the branch refers to and the work tree still has."""
    head = repository.head()
    with contextlib.suppress(YoloError):
        for path, blob in repository.files_at(head.tip, PLANNING_ROOT).items():
            objects = repository.objects
            if objects.read(blob) or objects.unread(path, blob).reason is Reason.FILE_TOO_LARGE:
                continue
            content = read(repository.root, path, MOST_BYTES["blob"])
            if isinstance(content, Finding):
                continue
            again = repository.object_format.hash_object("blob", content.data)
            if again.oid == blob:
                repository.objects.write((again,))
                failpoint.reach("recovery.restored")
                yield Repaired(path, "stored a lost blob again")


def _expect_index_of_recent_commits(repository: Repository, coordinator: Coordinator) -> None:
    """Take from history what the index may have missed, if there is no note of ours (F05)."""
    with contextlib.suppress(YoloError):
        commits = [
            commit for commit in log(repository, "HEAD", limit=OWN_COMMITS) if commit.is_ours
        ]
        coordinator.index.expect(
            follow
            for commit in reversed(commits)
            for _, path in commit.changes
            if (follow := _follow_of(repository, commit, path)) is not None
        )


def _follow_of(repository: Repository, commit: LoggedCommit, path: str) -> IndexUpdate | None:
    blob = repository.blob_at(commit.oid, path)
    former = repository.blob_at(commit.parents[0], path) if commit.parents else None
    return IndexUpdate(path, blob, frozenset({former})) if blob else None
