"""Linked work trees in which Devs work apart, one for each plan, and how their work is merged.

What a Dev makes there counts once the branch of the run has it. It is merged in git's object store,
by records where it is an artifact, and taken over by a fast-forward: nothing is forced or pushed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import chain, count
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.checking.verify_command import SourceVerifier, VerifyRun, verification_of
from yolo_fs.company.branch import Branch
from yolo_fs.company.runs import FOLDER, Listener
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import Reason, YoloError, safe, shortened
from yolo_fs.git.repository import Repository
from yolo_fs.git.work_trees import (
    Merge,
    add_work_tree,
    fast_forward,
    merge,
    remove_work_tree,
    switch_to_new_branch,
)
from yolo_fs.install.background import command_of_daemon
from yolo_fs.phase.acts import Act
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME
from yolo_fs.system.database import make_state_folder
from yolo_fs.system.files import content_of
from yolo_fs.system.store import private_directory, write_text
from yolo_fs.team.merge_driver import driver_settings
from yolo_fs.workspace.own_files import DEV_BRANCHES
from yolo_fs.workspace.settings import Settings

_FOLDER = "trees"
_AGAIN = "+"
"""Before the number of the second work tree or branch of one plan."""
_LINE = "line"
"""File of ours in a Dev's work tree: the branch that the work is for."""
_LONGEST_REF = 4096
_AGAIN_S = 0.5
"""Seconds until a merge is tried again that something was in the way of."""
_ONCE_S = 60.0
"""Longest time for committing the artifacts that a Dev left."""
_SHOWN = 5
_ID_DIGITS = 8


class Landing(NamedTuple):
    """How far a Dev's work is on its way to the branch of the run."""

    is_settled: bool = False
    is_merged: bool = False
    refused: str = ""
    """Why it was not merged, in a sentence for its Dev; empty where there was nothing to merge."""
    obstacle: Reason | None = None
    """What is in the way, and may end by itself."""


class DevTree:
    """The work tree of the Dev of one plan."""

    def __init__(self, repository: Repository, home: Branch, emit: Listener):
        """`repository`: the linked work tree; `home`: the branch of the run."""
        self.repository, self._home, self._emit = repository, home, emit
        self._verifier = SourceVerifier(repository, lambda name, _path, data: emit(name, data))
        self._line = os.path.join(repository.own_dir, _LINE)
        self._merges: dict[tuple[str, str], Merge] = {}
        self._again_at = 0.0
        self._is_committed = False

    @property
    def root(self) -> str:
        return self.repository.root

    @property
    def branch(self) -> str:
        return self.repository.head().branch

    @property
    def has_own_branch(self) -> bool:
        """Whether it is on a branch that was made for it: its Dev may have switched to another."""
        own = f"{DEV_BRANCHES}/{self._home.id}/{_plan_in(self.root)}"
        return self.branch.partition(_AGAIN)[0] == own

    @property
    def _tip(self) -> str:
        return str(self.repository.head().tip)

    def begin(self) -> None:
        """Note for which branch its Dev works."""
        self.repository.make_own_dir()
        write_text(self._line, f"{self._home.repository.head().ref}\n", durable=False)

    @property
    def _is_for_this_branch(self) -> bool:
        """Whether the work tree of the run is on the branch that the work is for."""
        ref = self._home.repository.head().ref
        return content_of(self._line, _LONGEST_REF).decode(errors="replace") == f"{ref}\n"

    def catch_up(self, free_branch: Callable[[], str]) -> None:
        """Bring it up to the branch of the run, for the next task of its Dev.

        Work that does not fit there, or is for another branch, stays on the branch that it is on,
        and another one is begun. `free_branch`: returns a name for it.
        """
        self._is_committed = False
        tip = str(self._home.repository.head().tip)
        made = self._merge(self._tip, tip, f"Merge the branch of the run into {self.branch}")
        if made.conflicts or not self._is_for_this_branch:
            switch_to_new_branch(self.repository, free_branch(), tip)
        else:
            fast_forward(self.repository, made.commit)
        self.begin()

    def land(self, act: Act, settings: Settings) -> Landing:
        """Merge what its Dev has committed, once its task is complete, one step at each call."""
        if time.monotonic() < self._again_at:
            return Landing()
        self._again_at = time.monotonic() + _AGAIN_S
        if not self.has_own_branch:
            return Landing(is_settled=True, refused=_describe_other_branch(self.branch))
        if not self._is_committed:
            self._commit_artifacts()
            self._is_committed = True
        if not self._is_for_this_branch:
            return Landing(obstacle=Reason.OTHER_BRANCH)
        home = self._home.repository
        before, own = str(home.head().tip), self._tip
        made = self._merge(before, own, f"Merge branch '{self.branch}'")
        if made.conflicts:
            return Landing(is_settled=True, refused=_describe_conflict(own, made.conflicts))
        if made.commit == before or not self._home.is_moved_by(act, made.commit):
            return Landing(is_settled=True)
        if settings.verify_command:
            fast_forward(self.repository, made.commit)
            if self._verifier.look(settings, made.commit) is not None:
                return Landing()
            verified = verification_of(self.repository, settings, made.commit)
            if verified is None or not (verified.passed and verified.is_clean):
                return Landing(is_settled=True, refused=_describe_verification(verified))
        if obstacle := self._home.find_obstacle() or fast_forward(home, made.commit):
            return Landing(obstacle=obstacle)
        merged = {"branch": self.branch, "task": act.task, "commit": made.commit[:SHORT]}
        self._emit("task.merged", merged)
        return Landing(is_settled=True, is_merged=True)

    def _merge(self, ours: str, theirs: str, subject: str) -> Merge:
        if (ours, theirs) not in self._merges:
            more = driver_settings(_attributes(self._home.repository))
            self._merges = {
                (ours, theirs): merge(self._home.repository, ours, theirs, subject, more)
            }
        return self._merges[ours, theirs]

    def _commit_artifacts(self) -> None:
        """Commit the artifacts that its Dev left, such as an escalation: no daemon runs there."""
        # dirty: within a submodule git would run the filters that its own configuration names
        how = ("--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
        if not self.repository.git.run("status", *how, "--", PLANNING_ROOT).out:
            return
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                command_of_daemon(self.root, "--once"),
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_ONCE_S,
            )

    def close(self) -> None:
        """End what runs there for the merge; its files stay."""
        self._verifier.close()
        self.repository.close()


class DevTrees:
    """The work trees of the Devs of one phase.

    They lie in the state folder of the user: beside the repository they would be in the way, and
    below `.git` some hosts write nothing.
    """

    def __init__(self, home: Branch, emit: Listener):
        self._home, self._emit = home, emit
        self._open: dict[str, DevTree] = {}

    def open(self, act: Act) -> DevTree:
        """Return the work tree of the Dev of an act's plan, made or brought up to the branch.

        Raises:
            YoloError: GIT_FAILED, GIT_MISSING, STORAGE_FAILED.
        """
        name = f"{DEPARTMENT_BY_NAME[act.department].prefix if act.department else ''}{act.plan}"
        below = f"{DEV_BRANCHES}/{self._home.id}/{name}"
        trees = filter(None, (self.find(root) for root in self._made() if _plan_in(root) == name))
        if tree := next((tree for tree in trees if tree.has_own_branch), None):
            tree.catch_up(lambda: self._free_branch(below))
            return tree
        root = self._free_place(os.path.join(self._make_folder(), name))
        tip = str(self._home.repository.head().tip)
        made = add_work_tree(self._home.repository, root, self._free_branch(below), tip)
        tree = self._keep(made)
        tree.begin()
        return tree

    def find(self, root: str) -> DevTree | None:
        """Return a work tree that is there already; None where it is gone or cannot be read."""
        if root in self._open:
            return self._open[root]
        with contextlib.suppress(YoloError):
            return self._keep(Repository(root)) if root in self._made() else None
        return None

    def _keep(self, repository: Repository) -> DevTree:
        tree = DevTree(repository, self._home, self._emit)
        self._open[repository.root] = tree
        return tree

    def close(self) -> None:
        """Remove the work trees that have nothing which the branch lacks; tell which ones stay."""
        for root in tuple(self._made()):
            tree = self.find(root)
            branch = tree.branch if tree else ""
            is_own = tree is not None and tree.has_own_branch
            if tree:
                tree.close()
            if not (is_own and remove_work_tree(self._home.repository, root, branch)):
                self._emit("tree.kept", {"path": root, "branch": branch})
        self._open.clear()

    def end_checks(self) -> None:
        """End what runs there; everything stays."""
        for tree in self._open.values():
            tree.close()

    def _made(self) -> Iterator[str]:
        """Yield the work trees of the phase that are there."""
        folder = os.path.realpath(self._folder())
        for facts in self._home.repository.list_work_trees():
            root = os.path.realpath(facts["worktree"])
            if os.path.dirname(root) == folder and os.path.isdir(root):
                yield root

    def _folder(self) -> str:
        return os.path.join(self._folder_of_repository(), str(self._home.id))

    def _folder_of_repository(self) -> str:
        common = self._home.repository.common_dir
        digits = hashlib.sha256(os.fsencode(common)).hexdigest()[:_ID_DIGITS]
        name = f"{os.path.basename(self._home.repository.root)}-{digits}"
        return os.path.join(make_state_folder(), _FOLDER, name)

    def _make_folder(self) -> str:
        folder = self._folder_of_repository()
        for path in (os.path.dirname(folder), folder, self._folder()):
            private_directory(path)
        return self._folder()

    def _free_branch(self, name: str) -> str:
        """Return the first free name: work that was not merged keeps the branch that it is on."""
        return _first_free(name, lambda free: not self._home.repository.tip(f"refs/heads/{free}"))

    def _free_place(self, path: str) -> str:
        """Return the first free path: git knows a work tree still whose folder somebody removed."""
        known = {facts["worktree"] for facts in self._home.repository.list_work_trees()}
        return _first_free(path, lambda free: free not in known and not os.path.lexists(free))


def _first_free(name: str, is_free: Callable[[str], bool]) -> str:
    names = chain((name,), (f"{name}{_AGAIN}{number}" for number in count(2)))
    return next(filter(is_free, names))


def _plan_in(path: str) -> str:
    return os.path.basename(path).partition(_AGAIN)[0]


def _attributes(repository: Repository) -> str:
    return os.path.join(repository.own_dir, FOLDER, "attributes")


def _describe_verification(verified: VerifyRun | None) -> str:
    """Return why the merged files are not taken over, by the last run of the user's own check."""
    if verified is None:
        return "your user's verify_command has no result for what it is merged to"
    output = f", saying: {safe(verified.output, 1000)}" if verified.output else ""
    return f"merged with the branch, {verified.sentence}{output}"


def _describe_other_branch(branch: str) -> str:
    where = f"is on the branch {safe(branch)}" if branch else "is on no branch"
    return (
        f"its work tree {where}, which was not made for it, so that nothing there is merged: "
        "stay on the branch that you are given"
    )


def _describe_conflict(commit: str, paths: tuple[str, ...]) -> str:
    """Return what a Dev needs to do its work again where the branch has changed meanwhile."""
    name = commit[:SHORT]
    files = shortened([safe(path) for path in paths], _SHOWN, shown_by=f"'git show {name}'")
    return (
        f"its commit {name} does not fit the branch, which has changed meanwhile: {files}. "
        f"'git show {name}:{safe(paths[0])}' is what you made, the file as it stands is the "
        "branch's: make it again, so that both hold"
    )
