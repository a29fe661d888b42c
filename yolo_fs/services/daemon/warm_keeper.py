"""Keeps a warm process beside the daemon, which runs commands without their imports; it ends with
the daemon.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from typing import NamedTuple

from yolo_fs.edges import IS_LINUX
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.warm_path import COLD, FAILPOINTS, SOCKET, answers
from yolo_fs.services.workspace import WARM

LONGEST_PAUSE_S = 300.0
_END_S = 5.0


class WarmState(NamedTuple):
    """How the warm process of a work tree is."""

    answers: bool
    refused_at: str = ""
    """When it last left a command to the process that asked, UTC; empty when it never did."""
    why: str = ""


def warm_state(repository: Repository) -> WarmState:
    """Return whether commands are run by a warm process here, and why the last one was not."""
    is_there = answers(repository.own_dir)
    match WARM.read(repository):
        case {"at": str(at), "why": str(why)}:
            return WarmState(is_there, at, why)
    return WarmState(is_there)


class WarmKeeper:
    """Starts the warm process, and starts it again when it has ended."""

    def __init__(self, folder: str, root: str):
        """Keep one for the work tree `root`, whose `.git/yolo-fs` is `folder`."""
        self._folder = folder
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._pause_s = 1.0

    def keep(self) -> None:
        """Start it where it does not run; one that ends soon after its start is left alone for
        longer and longer.
        """
        if not IS_LINUX or os.environ.get(COLD) or os.environ.get(FAILPOINTS):
            return
        if self._process is not None:
            if self._process.poll() is None:
                return
            age_s = time.monotonic() - self._started_at
            if age_s < self._pause_s:
                return
            self._pause_s = (
                1.0 if age_s > LONGEST_PAUSE_S else min(LONGEST_PAUSE_S, 2 * self._pause_s)
            )
        self.close()
        self._started_at = time.monotonic()
        # -P: what lies in the user's repository must not be imported instead of us.
        module = ("-P", "-m", "yolo_fs.cli.warm_server")
        self._process = subprocess.Popen(
            [sys.executable, *module, self._folder, self._root],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """End it, and wait for that: its stdin is a pipe that only this process holds open."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder, SOCKET))
