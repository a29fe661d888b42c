"""The phase directories of the planning tree in force: which there are, and the next one."""

from __future__ import annotations

import contextlib
import os
import re
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.table import STATE_KINDS
from yolo_fs.core.ids import PHASE_DIRECTORY, PhaseId
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import Dept
from yolo_fs.system.file_locks import locked
from yolo_fs.system.files import stamp_of, walk
from yolo_fs.system.store import SHARED, make_folders, write_json
from yolo_fs.workspace.planning_tree import planning_home
from yolo_fs.workspace.settings import not_initialised

_NUMBERED = re.compile(r"(?P<number>[0-9]+)-.*")
_LAST = 99
_PATIENCE_S = 10.0
"""How long another `phase new` may take."""


class PhaseDirectory(NamedTuple):
    """One phase directory and how far its plans are."""

    name: str
    """Name of the directory, such as `01-auth`."""
    path: str
    """POSIX path relative to the repository."""
    plans: int
    summaries: int
    artifacts: int
    """Files of any kind that the phase hands over, plans and summaries among them."""

    @property
    def status(self) -> str:
        """`empty`, `begun`, `planned` or `in progress`, by its files alone: the branch tells what
        is complete.
        """
        if not self.plans:
            return "begun" if self.artifacts else "empty"
        return "in progress" if self.summaries else "planned"


class Made(NamedTuple):
    """Result of a request for a phase."""

    path: str
    is_new: bool
    """False when a phase with this slug existed already."""
    taken_by: tuple[str, ...] = ()
    """The phases of other work trees and branches with the same number."""


def planning_root(root: str) -> str:
    """Return where phases live: the planning tree, or the milestone that its file `ACTIVE` names.

    A milestone that does not exist falls back to the planning tree.

    Raises:
        YoloError: NOT_INITIALISED.
    """
    if not os.path.isdir(os.path.join(root, PLANNING_ROOT)):
        raise not_initialised(root)
    return planning_home(root)


def phases(root: str) -> tuple[PhaseDirectory, ...]:
    """Return the phases in force, in order."""
    folder = f"{planning_root(root)}/phases"
    return tuple(
        _phase(root, f"{folder}/{name}")
        for name in _folders(root, folder)
        if PHASE_DIRECTORY.fullmatch(name)
    )


def misnamed(root: str) -> tuple[Finding, ...]:
    """Return directories among the phases whose artifacts are never read."""
    folder = f"{planning_root(root)}/phases"
    return tuple(
        Finding(
            Reason.BAD_NAME,
            f"{folder}/{name}",
            message="not the name of a phase: no artifact is looked for in it",
            expected="two digits, a hyphen and a slug, such as 01-auth",
            level=Level.WARNING,
        )
        for name in _folders(root, folder)
        if not PHASE_DIRECTORY.fullmatch(name)
    )


def make_phase(repository: Repository, slug: str) -> Made:
    """Make the directory of the next phase.

    A phase that has this slug already is returned. One that another work tree or branch has keeps
    its number here.

    Raises:
        YoloError: NOT_INITIALISED; OUT_OF_RANGE after phase 99; LOCK_TIMEOUT; STORAGE_FAILED.
    """
    folder = f"{planning_root(repository.root)}/phases"
    repository.make_own_dir()
    lock = os.path.join(repository.own_dir, "phases.lock")
    with locked(lock, _PATIENCE_S):  # two agents at once must not get the same number
        here = _folders(repository.root, folder)
        elsewhere = _find_folders_elsewhere(repository, folder)
        for name in here:
            phase = PhaseId.parse(name)
            if phase and phase.slug == slug:
                return Made(f"{folder}/{name}", is_new=False)
        known = {phase.slug: phase for name in elsewhere if (phase := PhaseId.parse(name))}
        name = str(known.get(slug) or f"{_choose_next_number(here):02}-{slug}")
        path = f"{folder}/{name}"
        _make(repository.root, path)
        same = [
            other_name
            for other_name in elsewhere
            if other_name != name and other_name.startswith(name[:3])
        ]
        return Made(path, is_new=True, taken_by=tuple(same))


def begin_fix(root: str, path: str, department: Dept) -> None:
    """Write down what a person says of a phase who asks for a fix: it is trivial, and one
    department's. An analysis that is there stays.

    Trivial work takes the short way while its plans touch few files; after that, the steps that it
    leaves out come back.

    `path`: of the phase's directory, relative to the root.
    """
    full = os.path.join(root, path, "analysis.json")
    if not os.path.lexists(full):
        fix = {
            "complexity": "trivial",
            "departments": [department.value],
            "intent": "fix",
            "confidence": 1,
            "suggested_path": "/yolo:fix",
            "reasoning": "a person asked for a fix",
        }
        write_json(full, fix, root=root, mode=SHARED)


def _find_folders_elsewhere(repository: Repository, folder: str) -> tuple[str, ...]:
    """Return the distinct names of the phases in other work trees and on branches."""
    folders = [name for root in repository.work_trees()[1:] for name in _folders(root, folder)]
    branches = ("refs/heads", "refs/remotes")
    tips = repository.git.text("for-each-ref", "--format=%(objectname)", *branches).split()
    for tip in dict.fromkeys(tips):
        with contextlib.suppress(YoloError):  # a partial clone may lack what nobody checked out
            there = repository.trees.folder_at(repository.root_tree(tip), folder)
            names = repository.trees.get(there).keys if there else ()
            folders += [os.fsdecode(name[:-1]) for name in names if name.endswith(b"/")]
    return tuple(dict.fromkeys(folders))


def _choose_next_number(names: tuple[str, ...]) -> int:
    numbers = [int(match["number"]) for name in names if (match := _NUMBERED.fullmatch(name))]
    number = max(numbers, default=0) + 1
    if number > _LAST:
        raise YoloError(
            Reason.OUT_OF_RANGE, f"phase {number} has no two digits", hint="Begin a milestone."
        )
    return number


def _make(root: str, path: str) -> None:
    there = stamp_of(root, path)
    if isinstance(there, Finding) and there.reason is not Reason.FILE_MISSING:
        raise there.as_error(path, Exit.NOT_HERE)
    make_folders(os.path.join(root, path), root=root)


def _folders(root: str, folder: str) -> tuple[str, ...]:
    try:
        with os.scandir(os.path.join(root, folder)) as entries:
            return tuple(
                sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
            )
    except FileNotFoundError:
        return ()


def _phase(root: str, path: str) -> PhaseDirectory:
    # An empty file is no artifact yet.
    files = [
        os.path.split(entry.path)
        for entry in walk(root, path)
        if entry.refused is None and entry.stamp.size
    ]
    names = [name for folder, name in files if folder == path]
    plans, summaries = (
        sum(name.endswith(suffix) for name in names) for suffix in (".plan.jsonl", ".summary.jsonl")
    )
    places = (classify(f"{folder}/{name}") for folder, name in files)
    artifacts = sum(
        place is not None and place.artifact.kind not in STATE_KINDS for place in places
    )
    return PhaseDirectory(os.path.basename(path), path, plans, summaries, artifacts)
