"""The lock under which source commits are made one at a time, by us and by the reference's script alike.

Waits as the script does: five tries, after waits that double; we use its last sleep for a sixth
try.
"""

from __future__ import annotations

import os
import time

from yolo_fs.edges.lock import HeldLock, hold
from yolo_fs.reasons import Exit, Reason, YoloError

LOCK = "yolo-commit.lock"
"""Below the common git directory, so that linked work trees share it."""
WAITS_S = tuple(0.2 * 2**try_ for try_ in range(5))


def commit_lock(common_dir: str) -> HeldLock:
    """Take the lock. It is not handed to git: a hook that leaves a process behind would keep it for ever.

    Raises:
        YoloError: LOCK_TIMEOUT.
    """
    path = os.path.join(common_dir, LOCK)
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
