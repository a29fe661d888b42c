"""`git-commit-serialized ARG…`: an ordinary `git commit ARG…` of what the caller staged, one at a time.

Works in linked worktrees and below the top, for git says where the lock belongs. The lock is not handed to git: a
hook that leaves a process behind would keep it for ever. Source: protocol 5.4, 11 #10; peers 0, finding 2.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from yolo_fs.compat.arguments import UsageError
from yolo_fs.edges.git.as_user import run_as_user
from yolo_fs.edges.git.runner import Answer
from yolo_fs.edges.lock import Held, hold
from yolo_fs.reasons import Exit, Reason, YoloError

LOCK = "yolo-commit.lock"
WAITS_S = tuple(0.2 * 2**try_ for try_ in range(5))


def run(arguments: Sequence[str]) -> int:
    if not arguments:
        raise UsageError("it takes the arguments of git commit: git-commit-serialized -m MESSAGE")
    place = run_as_user(".", ["rev-parse", "--path-format=absolute", "--git-common-dir"])
    if place.code != 0:
        return _failed(place)
    with _locked(os.path.join(os.fsdecode(place.out).rstrip("\n"), LOCK)):
        made = run_as_user(".", ["commit", *arguments])
        if made.code != 0:
            return _failed(made)
        print(run_as_user(".", ["rev-parse", "--short", "HEAD"]).out.decode().strip())
    return 0


def _failed(answer: Answer) -> int:
    sys.stderr.write(f"{answer.err or answer.out.decode('utf-8', 'replace')}\n")
    return answer.code


def _locked(path: str) -> Held:
    """Take the lock. The reference sleeps once more after its fifth try; we use that sleep for a sixth."""
    for wait_s in (0.0, *WAITS_S):
        time.sleep(wait_s)
        if held := hold(path):
            return held
    raise YoloError(
        Reason.LOCK_TIMEOUT,
        f"Could not acquire commit lock: {path}",
        hint="another commit runs, or was stopped; never delete the lock file",
        exit_code=Exit.LOCK_TIMEOUT,
    )
