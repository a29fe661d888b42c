"""Somebody who waits at a gate: `yolo-fs gate wait` as a child process, asleep until the daemon
rings.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from yolo_fs.demo.daemon import command

BELL = ".git/yolo-fs/gates.bell"
PHASE = "1"


class Waiter:
    """One process that waits at one gate of the play's phase."""

    def __init__(self, root: str, environment: Mapping[str, str], gate: str):
        self.gate = gate
        self._bell = os.path.join(root, BELL)
        self._process = subprocess.Popen(
            [*command("gate"), "wait", gate, "--phase", PHASE, "--json"],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def is_asleep(self) -> bool:
        """Whether it listens to the daemon's bell: only then a pipe can be opened for writing."""
        if self._process.poll() is not None:
            return False
        with contextlib.suppress(OSError):
            os.close(os.open(self._bell, os.O_WRONLY | os.O_NONBLOCK))
            return True
        return False

    def answer(self, timeout_s: float) -> Mapping[str, Any]:
        """Return what it says once it woke; nothing while it sleeps on."""
        try:
            said, _ = self._process.communicate(timeout=max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            return {}
        data: Mapping[str, Any] = json.loads(said)["data"] or {}
        return data

    def stop(self) -> None:
        """End it, if it waits still."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
