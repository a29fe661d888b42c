"""Runs our programs as processes, each forked from an interpreter that has imported them already.

What is imported, and how the shell starts it, is tested where that matters; hundreds of other
processes need their own folder, environment, streams, session and exit code, and not the import.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from yolo_fs.system import PORTABLE

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0
"""Generous: it bounds a hang and measures nothing."""


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: bytes
    err: bytes


class Forked:
    """A forked process, with as much of `subprocess.Popen` as its callers ask for."""

    def __init__(self, channel: socket.socket, stdout: IO[bytes] | None = None) -> None:
        self._channel = channel
        self._heard = b""
        self.stdout = stdout
        channel.settimeout(DEADLINE_S)
        self.pid = int(self._line())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(TimeoutError):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float = DEADLINE_S) -> int:
        if self.returncode is None:
            self._channel.settimeout(timeout)
            try:
                self.returncode = int(self._line())
            except BlockingIOError:
                raise TimeoutError from None
            self._channel.close()
        return self.returncode

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _line(self) -> bytes:
        while b"\n" not in self._heard:
            more = self._channel.recv(100)
            assert more, "the parent of the process has ended"
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return line


def call(
    arguments: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    given: bytes = b"",
    prepare: str = "",
) -> Ended:
    """Run `yolo-fs ARGUMENTS` to its end in a forked process; `prepare`: see `begin`."""
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        streams[0].write(given)
        streams[0].seek(0)
        numbers = [stream.fileno() for stream in streams]
        code = begin(arguments, cwd, env, numbers, prepare=prepare).wait()
        for stream in streams[1:]:
            stream.seek(0)
        return Ended(code, streams[1].read(), streams[2].read())


def begin_daemon(cwd: Path, env: Mapping[str, str], log: IO[bytes], prepare: str = "") -> Forked:
    """Run `yolo-fs run --json` in a session of its own, and return it with its output."""
    reading, writing = os.pipe()
    try:
        with open(os.devnull, "rb") as nothing:
            streams = [nothing.fileno(), writing, log.fileno()]
            forked = begin(["run", "--json"], cwd, env, streams, prepare=prepare, session=True)
    finally:
        os.close(writing)
    forked.stdout = os.fdopen(reading, "rb")
    return forked


def begin(
    arguments: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    streams: Sequence[int],
    *,
    prepare: str = "",
    session: bool = False,
) -> Forked:
    """Run `yolo-fs ARGUMENTS` with three streams; it is warned as `PYTHONWARNINGS=error` warns.

    `prepare` names what the process calls before, as `MODULE:FUNCTION`.
    """
    ours, theirs = socket.socketpair()
    order = {
        "arguments": list(arguments),
        "cwd": str(cwd),
        "env": dict(env),
        "prepare": prepare,
        "session": session,
        "umask": _umask(),
    }
    with tempfile.TemporaryFile() as written, theirs:  # one message has no room for long arguments
        written.write(json.dumps(order).encode())
        written.seek(0)
        socket.send_fds(_orders(), [b"!"], [written.fileno(), theirs.fileno(), *streams])
    return Forked(ours)


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


def start(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], given: bytes = b"") -> Ended:
    """Run `yolo-fs ARGUMENTS` as a process of the ordinary kind."""
    done = subprocess.run(
        [sys.executable, "-m", "yolo_fs", *arguments], cwd=cwd, env={**env, "PYTHONPATH": str(ROOT)},
        input=given, capture_output=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


@functools.cache
def _orders() -> socket.socket:
    """Return the way to the process that forks, which is begun when it is first asked for."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONWARNINGS": "error"}
    env |= {name: os.environ[name] for name in (PORTABLE,) if name in os.environ}
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.support.forked"],
            cwd=ROOT,
            env=env | {"PYTHONPATH": str(ROOT)},
            stdin=theirs.fileno(),
        )

    def end() -> None:
        ours.close()
        server.wait(DEADLINE_S)

    atexit.register(end)
    return ours


# --- the process that forks ---


def import_all() -> None:
    """Import what any command may import, build every shape, and compile every pattern."""
    from yolo_fs.artifacts.classify import classify
    from yolo_fs.cli.main import VERBS
    from yolo_fs.compat.scripts import SCRIPTS
    from yolo_fs.git.runner import load_git_python
    from yolo_fs.schemas.base import build_shapes

    for verb in VERBS:
        verb.load()
    for function in SCRIPTS.values():
        importlib.import_module(f"yolo_fs.compat.{function.partition('.')[0]}")
    for late in ("rich.table", "rich.progress"):
        importlib.import_module(late)
    load_git_python.__wrapped__()  # each process asks for itself whether there is a git
    build_shapes()
    classify(".yolo-planning/phases/01-any/plan.jsonl")


def main() -> None:
    """Fork one process for each order; a parent of its own waits for it and says how it ended."""
    import_all()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=os.dup(0)) as orders:
        while descriptors := socket.recv_fds(orders, 1, 5)[1]:
            if os.fork() == 0:
                orders.close()
                _wait_for(*descriptors)
            for descriptor in descriptors:
                os.close(descriptor)


def _wait_for(written: int, channel: int, *streams: int) -> None:
    """Fork what is ordered, and write its id, then its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    child = os.fork()
    if child == 0:
        os.close(channel)
        with open(written, "rb") as order:
            _become(json.load(order), streams)
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(OSError):
        os.write(channel, b"%d\n" % child)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        os.write(channel, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(order: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Become the process that the order asks for, and end with it."""
    code = 1
    try:
        _put_on(order, streams)
        from yolo_fs.__main__ import main as run

        code = run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)


def _put_on(order: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Take streams, session, environment, folder and arguments, as a new process has them."""
    if order["session"]:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 64)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    os.chdir(order["cwd"])
    os.umask(order["umask"])
    sys.argv = ["yolo-fs", *order["arguments"]]

    from yolo_fs.daemon import observing
    from yolo_fs.system import failpoint

    if os.environ.get("YOLO_FS_COLD"):
        observing.start_observer = _fork_observer
    failpoint.reach = failpoint.armed(os.environ.get(failpoint.VARIABLE, ""))
    if order["prepare"]:
        module, _, function = order["prepare"].partition(":")
        prepare: Callable[[], None] = getattr(importlib.import_module(module), function)
        prepare()


class _Child:
    """A forked process as `subprocess.Popen` shows it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(0.002)

    def kill(self) -> None:
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)


def _fork_observer(folder: str, root: str, line: int) -> _Child:
    """Start an observer that need not import anything."""
    pid = os.fork()
    if pid:
        return _Child(pid)
    try:
        os.setsid()
        with open(os.devnull, "r+b", 0) as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(nothing.fileno(), 1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        for other in map(int, os.listdir("/dev/fd")):
            if other > 2 and other != line:
                with contextlib.suppress(OSError):
                    os.close(other)
        from yolo_fs.observer.__main__ import observe
        from yolo_fs.system.system import end_with_parent

        end_with_parent()
        os._exit(observe(folder, root, line))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
