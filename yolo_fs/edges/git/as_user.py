"""Runs git as the user would have typed it: with their hooks, identity, signing, filters and environment.

The one exception to the hardened runner, for commands that a person or an agent asks for by name
and that are theirs, not the coordinator's. See docs/faults.md#f42.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from yolo_fs.edges.git.environment import forget_inherited_environment
from yolo_fs.edges.git.runner import GitOutput, open_repository


def run_as_user(start: str, arguments: Sequence[str]) -> GitOutput:
    """Run one git command in the directory `start`; no time limit, for the user's hooks may take theirs.

    Raises:
        YoloError: NOT_A_REPOSITORY, BARE_REPOSITORY.
    """
    inherited = forget_inherited_environment()
    try:
        with open_repository(start) as repository:
            git = repository.git
            # GitPython sets both of these to C for its children, and thereby for the user's hooks.
            language = {name: os.environ.get(name, "") for name in ("LANGUAGE", "LC_ALL")}
            answer = git.execute(
                [git.GIT_PYTHON_GIT_EXECUTABLE, "-C", os.path.abspath(start), *arguments],
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                env={**inherited, **language},
            )
    finally:
        os.environ.update(inherited)
    return GitOutput(*answer)
