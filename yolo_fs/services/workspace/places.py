"""Where our own files lie: `.git/yolo-fs/` of each work tree, never in the work tree itself."""

from __future__ import annotations

import os

from yolo_fs.edges.files import Content, names_in, read
from yolo_fs.edges.git.repository import Repository
from yolo_fs.ids import PHASE_DIRECTORY, PhaseId
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, milestone_named

ACTIVE = f"{PLANNING_ROOT}/ACTIVE"
"""Holds the slug of the milestone that the team works on, where there are milestones."""

LINES = "refs/yolo-fs/lines/"
"""Below it, the branches of the team's other clones: the commits that their summaries name."""
BESIDE = "refs/yolo-fs/beside/"
"""Below it, the same of the work trees of this repository that are in a team."""


def lock_path(repository: Repository) -> str:
    """Return the lock that makes a daemon the only one of its work tree."""
    return lock_in(repository.own_dir)


def lock_in(own_dir: str) -> str:
    """Return the lock of the work tree that keeps our files in this folder."""
    return os.path.join(own_dir, "daemon.lock")


def log_path(repository: Repository) -> str:
    """Return the file that a daemon in the background writes to."""
    return os.path.join(repository.own_dir, "daemon.log")


def notice_path(repository: Repository) -> str:
    """Return the file in which the daemon tells which gates are open."""
    return os.path.join(repository.own_dir, "gates.json")


def waiters_path(repository: Repository) -> str:
    """Return the file on which each process that waits at a gate holds a shared lock."""
    return os.path.join(repository.own_dir, "gates.waiters")


def planning_home(root: str) -> str:
    """Return where the phases in force live, relative to the repository: the planning tree, or the
    milestone that its file `ACTIVE` names. One that does not exist falls back to the tree.
    """
    active = read(root, ACTIVE, 4096)
    named = milestone_named(active.data) if isinstance(active, Content) else ""
    return named if named and os.path.isdir(os.path.join(root, named)) else PLANNING_ROOT


def phases_in(root: str) -> list[PhaseId]:
    """Return the phases of the planning tree, in order."""
    names = names_in(os.path.join(root, PLANNING_ROOT, "phases"))
    return sorted(phase for name in names if (phase := PhaseId.parse(name)))


def phase_folder(root: str, phase: PhaseId) -> str:
    """Return the directory of a phase."""
    return os.path.join(root, PLANNING_ROOT, "phases", str(phase))


def own_phase_folder(root: str, phase: PhaseId) -> str:
    """Return the directory of a phase that is to be written to.

    Raises:
        YoloError: NOT_REGULAR, when only a link leads to it: what is written there would lie
            elsewhere.
            See docs/faults.md#f50 and #f51.
    """
    folder = phase_folder(root, phase)
    if os.path.realpath(folder) != os.path.join(
        os.path.realpath(root), PLANNING_ROOT, "phases", str(phase)
    ):
        message = f"{safe(os.path.relpath(folder, root))}: a link stands on the way to it"
        raise YoloError(
            Reason.NOT_REGULAR, message, hint="Put a real folder there.", exit_code=Exit.NOT_HERE
        )
    return folder


def find_phase(root: str, spelled: str) -> PhaseId:
    """Return the phase that a number (`1`, `01`) or a directory name spells.

    Raises:
        YoloError: BAD_NAME, or UNKNOWN_NAME when there is no such phase.
    """
    folder = os.path.join(root, PLANNING_ROOT, "phases")
    present = [name for name in names_in(folder) if PHASE_DIRECTORY.fullmatch(name)]
    wanted = spelled.zfill(2) if spelled.isdecimal() else spelled
    if not wanted.replace("-", "").isalnum():
        raise YoloError(Reason.BAD_NAME, f"{safe(spelled)!r} is not a phase", exit_code=Exit.USAGE)
    for name in present:
        phase = PhaseId.parse(name)
        if phase and wanted in (phase.number, name):
            return phase
    hint = f"There are: {', '.join(present) or 'none'}."
    raise YoloError(
        Reason.UNKNOWN_NAME, f"no phase {safe(spelled)!r}", hint=hint, exit_code=Exit.USAGE
    )
