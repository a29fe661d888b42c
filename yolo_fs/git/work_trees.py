"""Linked work trees and merges that leave nothing half done: made in the object store, then taken
over by a fast-forward, which git refuses where it would overwrite anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.failures import GitError
from yolo_fs.git.isolated import isolated_git
from yolo_fs.git.repository import Repository, Setting

_LONG_S = 600.0
"""Longest time for writing the files of a large repository."""
_QUIETLY = {"submodule.recurse": "false", "merge.verifySignatures": "false"}
_OVERWRITES = ("would be overwritten", "not uptodate", "Your local changes")
_REFLOG = {"GIT_REFLOG_ACTION": "yolo-fs"}


class Merge(NamedTuple):
    """Result of a merge in the object store."""

    commit: str
    """The merge, or the younger one of two commits of one line; empty where they conflict."""
    conflicts: tuple[str, ...] = ()
    """Files that both sides have changed, in ways that do not fit together."""


def add_work_tree(repository: Repository, path: str, branch: str, commit: str) -> Repository:
    """Make a linked work tree on a new branch at a commit, with its files.

    Raises:
        YoloError: GIT_FAILED where the path or the branch is taken.
    """
    repository.git.run("worktree", "add", "--no-checkout", "-b", branch, path, commit)
    made = Repository(path)
    # No checkout by `worktree add`: the programs that a repository names are switched off here.
    made.git.run("read-tree", "-m", "-u", "HEAD", timeout_s=_LONG_S)
    return made


def switch_to_new_branch(repository: Repository, branch: str, commit: str) -> None:
    """Switch a work tree to a new branch; what is in no commit stays, or git refuses.

    Raises:
        YoloError: GIT_FAILED.
    """
    words = ("checkout", "--quiet", "--no-track", "-b", branch, commit)
    repository.git.run(*words, settings=_QUIETLY, timeout_s=_LONG_S)


def refuse_old_git(repository: Repository) -> None:
    """Refuse a git that cannot merge in its object store.

    Raises:
        YoloError: GIT_MISSING.
    """
    repository.git.refuse_old((2, 38), "merges in the object store")


def merge(
    repository: Repository, ours: str, theirs: str, subject: str, more: Iterable[Setting] = ()
) -> Merge:
    """Merge two commits in the object store; no branch and no file is touched.

    `more`: settings of git for this merge, such as a driver.

    Raises:
        YoloError: GIT_FAILED.
    """
    if repository.is_ancestor(theirs, ours):
        return Merge(ours)
    if repository.is_ancestor(ours, theirs):
        return Merge(theirs)
    words = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
    with isolated_git(repository, more) as git:
        answer = git.run(*words, ok=(0, 1), timeout_s=_LONG_S)
    tree, *names = answer.out.decode("utf-8", "surrogateescape").rstrip("\0").split("\0")
    if answer.code:
        return Merge("", tuple(dict.fromkeys(filter(None, names))))
    made = repository.git.text("commit-tree", tree, "-p", ours, "-p", theirs, "-m", subject)
    return Merge(made)


def fast_forward(repository: Repository, commit: str) -> Reason | None:
    """Move the branch of a work tree on to a younger commit, with its files.

    Return what is in the way: CHANGES_IN_THE_WAY, INDEX_LOCKED or BRANCH_MOVED; None once it is
    done. Nothing of the user's is overwritten or stashed.

    Raises:
        YoloError: GIT_FAILED for anything else.
    """
    words = ("merge", "--ff-only", "--quiet", "--no-stat", "--no-autostash", commit)
    try:
        repository.git.run(*words, settings=_QUIETLY, more=_REFLOG, timeout_s=_LONG_S)
    except GitError as error:
        if any(words in error.said for words in _OVERWRITES):
            return Reason.CHANGES_IN_THE_WAY
        if "index.lock" in error.said:
            return Reason.INDEX_LOCKED
        if "cannot lock ref" in error.said or "fast-forward" in error.said:
            return Reason.BRANCH_MOVED
        raise
    return None


def remove_work_tree(repository: Repository, path: str, branch: str) -> bool:
    """Remove a linked work tree and its branch, and return whether that was possible.

    git refuses where the tree has anything that is in no commit, or the branch a commit that HEAD
    does not have.
    """
    try:
        with Repository(path) as tree:  # git compares its files, by its own configuration, too
            off = tree.programs_off()
        repository.git.run("worktree", "remove", path, settings=off, timeout_s=_LONG_S)
        repository.git.run("branch", "--quiet", "-d", branch)
    except YoloError:
        return not os.path.lexists(path)
    return True
