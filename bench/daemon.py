"""The real daemon in a process of its own, and what it says."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, cast

START_S = 60
_TICKS = os.sysconf("SC_CLK_TCK")


class Daemon:
    """A running `yolo-fs run --json`."""

    def __init__(self, process: subprocess.Popen[bytes]):
        self.process = process
        out = cast("IO[bytes]", process.stdout)
        self.fd = out.fileno()
        """Readable as soon as the daemon said something."""
        self._rest = b""

    def events(self) -> list[dict[str, Any]]:
        """Return what the daemon says; waits until it says something.

        Raises:
            RuntimeError: it has ended.

        """
        read = os.read(self.fd, 1 << 20)
        if not read:
            raise RuntimeError("the daemon ended")
        *lines, self._rest = (self._rest + read).split(b"\n")
        return [json.loads(line) for line in lines]


@contextmanager
def running(root: str, *, durable: bool = True) -> Iterator[Daemon]:
    """Run the daemon in a work tree for as long as the context lasts, and hear what it says."""
    policy = {} if durable else {"durability": "none"}
    with process(root, out=subprocess.PIPE, **policy) as child:
        yield Daemon(child)


@contextmanager
def process(
    root: str, *, out: int = subprocess.DEVNULL, **policy: object
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the daemon in a process group of its own; `policy` is the configuration of the user.

    Yields when its first scan is done. A git that outlives a killed daemon holds its lock for a
    moment more, so a start that finds one is tried again.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready,
    ):
        _configure(folder, policy)
        address = f"{folder}/ready"
        ready.bind(address)
        ready.settimeout(0.05)
        command = [sys.executable, "-m", "yolo_fs", "run", "--json", "-C", root]
        environment = {**os.environ, "NOTIFY_SOCKET": address}
        if policy:  # else the user's, where a team that was joined is agreed to
            environment["XDG_CONFIG_HOME"] = folder
        child = _ready(
            lambda: subprocess.Popen(command, stdout=out, env=environment, start_new_session=True),
            ready,
        )
        try:
            yield child
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
            child.communicate(timeout=START_S)


def _ready(
    launch: Callable[[], subprocess.Popen[bytes]], ready: socket.socket
) -> subprocess.Popen[bytes]:
    deadline = time.monotonic() + START_S
    child = launch()
    while time.monotonic() < deadline:
        with suppress(TimeoutError):
            ready.recv(64)
            return child
        if child.poll() is not None:
            child.communicate()
            child = launch()
    child.kill()
    raise TimeoutError(f"the daemon was not ready within {START_S} s")


def _configure(home: str, policy: dict[str, object]) -> None:
    """Write the configuration of a user, who alone may do without syncing."""
    os.mkdir(f"{home}/yolo-fs")
    with open(f"{home}/yolo-fs/config.json", "w") as file:
        json.dump({"policy": policy}, file)


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    with open(f"/proc/{pid}/status") as file:
        line = next(line for line in file if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def used_s(pid: int) -> float:
    """Return the CPU time that a process used so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
