"""Runs a command of the user's in a process group that ends with us.

A process that was killed ends nothing itself, so each group has a leader that does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

_LEADER = "import os, signal; os.read(0, 1); os.killpg(0, signal.SIGKILL)"
"""Ends its group when its standard input ends."""


class ProcessGroup(NamedTuple):
    """A command with all that it starts."""

    process: subprocess.Popen[bytes]
    """The command."""
    leader: subprocess.Popen[bytes]
    """The first of the group, which ends with us."""

    def end(self) -> None:
        """Kill what still runs of it, and reap it."""
        with contextlib.suppress(OSError):
            os.killpg(self.leader.pid, signal.SIGKILL)
        self.process.wait()
        self.leader.communicate()

    def release(self) -> None:
        """Let what a command that has ended put into the background go on without us."""
        self.leader.kill()
        self.leader.communicate()


def start_group(
    words: Sequence[str],
    *,
    given: IO[bytes] | int,
    output: IO[bytes] | int,
    errors: IO[bytes] | int,
    folder: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> ProcessGroup:
    """Start a command. `given`: its standard input; `folder`, `environment`: ours by default.

    Raises:
        OSError: it cannot be started.
    """
    quiet = subprocess.DEVNULL
    leader = subprocess.Popen(
        [sys.executable, "-ISc", _LEADER],
        stdin=subprocess.PIPE,
        stdout=quiet,
        stderr=quiet,
        process_group=0,
    )
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=given,
            stdout=output,
            stderr=errors,
            process_group=leader.pid,
        )
    except OSError:
        leader.communicate()
        raise
    return ProcessGroup(process, leader)
