"""Daemons by fork: a process that has everything imported makes one in milliseconds, so that thousands may be killed.

Only the start differs from `python -m yolo_fs run --json`: the same command line, environment, working directory,
session and streams. As a child of a parent of its own it is nobody's thread and nobody's zombie.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from tests.e2e.daemon import Daemon
from tests.e2e.repo import DEADLINE_S, Repo

CLOCK = "TORTURE_CLOCK"
"""Environment: a file that holds the seconds by which the wall clock of the forked process is wrong."""

CALM = "TORTURE_CALM"
"""Environment: nanoseconds for which a rewritten index counts as a git command at work; 0 where nobody else works."""


class Nursery:
    """The process that forks."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders = ours
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.forked_daemons"],
            stdin=theirs,
            cwd=Path(__file__).parents[2],
        )
        theirs.close()

    def fork(
        self, command: Sequence[str], root: Path, env: Mapping[str, str], log: IO[bytes]
    ) -> Forked:
        """Run `yolo-fs` with a command line in a folder."""
        reading, writing = os.pipe()
        ours, theirs = socket.socketpair()
        order = {"command": list(command), "root": str(root), "env": dict(env)}
        socket.send_fds(
            self._orders, [json.dumps(order).encode()], [writing, log.fileno(), theirs.fileno()]
        )
        os.close(writing)
        theirs.close()
        return Forked(ours, os.fdopen(reading, "rb"))

    def close(self) -> None:
        self._orders.close()
        self._process.wait(DEADLINE_S)


@functools.cache
def nursery() -> Nursery:
    """Return the one nursery of this process, made when it is first asked for."""
    made = Nursery()
    atexit.register(made.close)
    return made


class Forked:
    """A forked process, with as much of `subprocess.Popen` as a `Daemon` asks for."""

    def __init__(self, channel: socket.socket, stdout: IO[bytes]) -> None:
        self._channel = channel
        self._said = b""
        self.stdout = stdout
        channel.settimeout(DEADLINE_S)
        self.pid = int(self._line())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(TimeoutError):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        if self.returncode is None:
            self._channel.settimeout(timeout)
            try:
                self.returncode = int(self._line())
            except BlockingIOError:
                raise TimeoutError from None
            self._channel.close()
        return self.returncode

    def _line(self) -> bytes:
        while b"\n" not in self._said:
            more = self._channel.recv(100)
            assert more, "the parent of the daemon has ended"
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line


class ForkedDaemon(Daemon):
    """A daemon that the nursery starts."""

    def __init__(self, repo: Repo, log: Path, nursery: Nursery, more: Mapping[str, str]) -> None:
        super().__init__(repo, log, more=more)
        self._nursery = nursery

    def rearmed(self, faults: str) -> None:
        """Set the failpoints of the next start."""
        self._env["YOLO_FP"] = faults

    def _spawn(self, env: Mapping[str, str], log: IO[bytes]) -> Any:
        return self._nursery.fork(["run", "--json"], self.repo.root, env, log)


# --- the process that forks ------------------------------------------------------------------------------------------


def _child(order: dict[str, Any], out: int, err: int) -> None:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, 64)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["root"])
    from yolo_fs.cli.main import run
    from yolo_fs.edges import failpoint
    from yolo_fs.edges.git import obstacles

    failpoint.reach = failpoint.armed(os.environ.get(failpoint.VARIABLE, ""))
    if CLOCK in os.environ:
        _make_wrong(lambda: float(Path(os.environ[CLOCK]).read_text()))
    if CALM in os.environ:
        obstacles._CALM_NS = int(os.environ[CALM])
    os._exit(run(order["command"]))


def _make_wrong(by_s: Callable[[], float]) -> None:
    """Let the wall clock be wrong, as after a jump; the monotonic one never jumps."""
    from yolo_fs.services.daemon import coordinator

    true_s, true_ns = time.time, time.time_ns
    time.time = lambda: true_s() + by_s()
    time.time_ns = lambda: true_ns() + int(by_s() * 1e9)
    coordinator._now = lambda: datetime.now(UTC) + timedelta(seconds=by_s())  # type: ignore[assignment]


def _parent(order: dict[str, Any], out: int, err: int, channel: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    child = os.fork()
    if child == 0:
        _child(order, out, err)
    os.close(out)
    os.close(err)
    channel.sendall(b"%d\n" % child)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        channel.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def main() -> None:
    import yolo_fs.cli.run  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    orders = socket.socket(fileno=os.dup(0))
    while True:
        said, descriptors, _, _ = socket.recv_fds(orders, 1 << 20, 3)
        if not said:
            return
        out, err, end = descriptors
        if os.fork() == 0:
            orders.close()
            _parent(json.loads(said), out, err, socket.socket(fileno=end))
        for descriptor in descriptors:
            os.close(descriptor)


if __name__ == "__main__":
    main()
