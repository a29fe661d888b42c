"""`git-commit-serialized ARG…`: an ordinary `git commit ARG…` of what the caller staged, one at a
time.

Works in linked worktrees and in subdirectories, because git gives the place of the lock.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from yolo_fs.compat.script_io import UsageError
from yolo_fs.core.reasons import YoloError
from yolo_fs.git.as_user import run_as_user
from yolo_fs.git.failures import GitOutput
from yolo_fs.tasks.service import WAITS_S, commit_lock


def run(arguments: Sequence[str]) -> int:
    if not arguments:
        raise UsageError("Usage: git-commit-serialized.sh -m MESSAGE [GIT_COMMIT_ARGUMENT]...")
    try:
        place = run_as_user(".", ["rev-parse", "--path-format=absolute", "--git-common-dir"])
    except YoloError as error:
        # Its hint names our flag -C, which means something else to git commit.
        raise YoloError(error.reason, error.message) from None
    if place.code != 0:
        return _failed(place)
    with commit_lock(os.fsdecode(place.out).rstrip("\n"), WAITS_S):
        made = run_as_user(".", ["commit", *arguments])
        if made.code != 0:
            return _failed(made)
        print(run_as_user(".", ["rev-parse", "--short", "HEAD"]).out.decode().strip())
    return 0


def _failed(answer: GitOutput) -> int:
    sys.stderr.write(f"{answer.err or answer.out.decode('utf-8', 'replace')}\n")
    return answer.code
