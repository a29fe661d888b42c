"""Runs git as the user does: with their hooks and settings, and without a time limit."""

from __future__ import annotations

import os
from collections.abc import Sequence

from yolo_fs.git.discovery import open_repository
from yolo_fs.git.environment import forget_inherited_environment
from yolo_fs.git.failures import GitOutput
from yolo_fs.git.runner import close_pipes, execute_git, outcome_of


def run_as_user(start: str, arguments: Sequence[str]) -> GitOutput:
    """Run one git command in the directory `start`; without a time limit, for the user's hooks.

    Raises:
        YoloError: NOT_A_REPOSITORY, BARE_REPOSITORY, GIT_MISSING.
    """
    inherited = forget_inherited_environment()
    try:
        with open_repository(start) as repository:
            git = repository.git
            # GitPython sets both of these to C for its children, and thereby for the user's hooks.
            language = {name: os.environ.get(name, "") for name in ("LANGUAGE", "LC_ALL")}
            words = ["-C", os.path.abspath(start), *arguments]
            process = execute_git(git, words, env={**inherited, **language})
            try:
                out, err = outcome_of(process, None)
            except BaseException:  # whoever undoes what git has begun must not do it beside git
                process.terminate()
                process.wait()
                close_pipes(process)
                raise
    finally:
        os.environ.update(inherited)
    streams = out.removesuffix(b"\n"), err.removesuffix(b"\n").decode("utf-8", "replace")
    return GitOutput(process.returncode, *streams)
