"""Becoming the one daemon of a work tree, or being told who is it. See docs/faults.md#f40 and
#f46.
"""

from __future__ import annotations

import os

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.lock import HeldLock, hold, holder
from yolo_fs.edges.store import private_directory
from yolo_fs.edges.system import NETWORK_FILESYSTEMS, filesystem_type
from yolo_fs.reasons import Exit, Reason, YoloError
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT
from yolo_fs.services.workspace.places import lock_path


def acquire(start: str, *, unsafe_fs: bool = False) -> tuple[Repository, HeldLock]:
    """Become the one daemon of the work tree that `start` lies in.

    Raises:
        YoloError: ALREADY_RUNNING with the holder's pid, NOT_INITIALISED, UNSAFE_REPOSITORY,
            NETWORK_FILESYSTEM unless `unsafe_fs`, and whatever finding the repository raises.
    """
    probe = Repository(start)
    probe.refuse_unsafe()
    if not unsafe_fs:
        _refuse_network(probe)
    if not os.path.isdir(os.path.join(probe.root, PLANNING_ROOT)):
        raise YoloError(
            Reason.NOT_INITIALISED, hint="Run 'yolo-fs init' first.", exit_code=Exit.NOT_HERE
        )
    private_directory(probe.own_dir)
    lock = hold(lock_path(probe))
    if lock is None:
        other = holder(lock_path(probe))
        raise YoloError(
            Reason.ALREADY_RUNNING,
            f"the daemon is process {other.pid if other else 'unknown'}",
            exit_code=Exit.DONE,
        )
    probe.close()
    return Repository(start, keep_open=(lock.fd,)), lock


def _refuse_network(repository: Repository) -> None:
    """Refuse a file system on which neither locks nor leases can be trusted (F46)."""
    type_ = filesystem_type(repository.git_dir)
    if type_ in NETWORK_FILESYSTEMS:
        hint = "Work on a local clone, or accept the risk with --unsafe-fs."
        raise YoloError(
            Reason.NETWORK_FILESYSTEM,
            f"the repository lies on {type_}",
            hint=hint,
            exit_code=Exit.NOT_HERE,
        )
