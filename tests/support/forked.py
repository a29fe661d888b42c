"""Calls our programs as processes, each forked from an interpreter that has imported them already.

What is imported, and how the shell starts it, is tested where that matters; hundreds of other calls
need a process of their own (its folder, environment, streams, exit code) and not the import again.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from yolo_fs.edges.failpoint import VARIABLE

ROOT = Path(__file__).parents[2]


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: bytes
    err: bytes


def call(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], given: bytes = b"") -> Ended:
    """Run `yolo-fs ARGUMENTS` in a forked process; it is warned as `PYTHONWARNINGS=error` warns.

    Several at once, from threads, and those with a failpoint, which is armed at the import, are
    processes of the ordinary kind.
    """
    if VARIABLE in env or threading.current_thread() is not threading.main_thread():
        return start(arguments, cwd, env, given)
    with tempfile.TemporaryDirectory() as folder:
        streams = [str(Path(folder, name)) for name in ("in", "out", "err")]
        Path(streams[0]).write_bytes(given)
        order = {
            "arguments": list(arguments),
            "cwd": str(cwd),
            "env": dict(env),
            "streams": streams,
        }
        server = _server()
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return Ended(code, Path(streams[1]).read_bytes(), Path(streams[2]).read_bytes())


def start(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], given: bytes = b"") -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "yolo_fs", *arguments], cwd=cwd, env={**env, "PYTHONPATH": str(ROOT)},
        input=given, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


@functools.cache
def _server() -> subprocess.Popen[str]:
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONWARNINGS": "error"}
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.support.forked"], cwd=ROOT, env=env | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    atexit.register(server.communicate)
    return server


# --- the server ---


def main() -> None:
    """Fork one process for each order, and say with which code it ended."""
    from yolo_fs.cli.main import VERBS
    from yolo_fs.compat.scripts import SCRIPTS

    for verb in VERBS:
        verb.load()
    for function in SCRIPTS.values():
        importlib.import_module(f"yolo_fs.compat.{function.partition('.')[0]}")
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _begin(order)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _begin(order: Mapping[str, Any]) -> None:
    """Become the process that the order asks for, and end with it."""
    from yolo_fs.__main__ import main as begin

    code = 70
    try:
        given, out, err = order["streams"]
        os.dup2(os.open(given, os.O_RDONLY), 0)
        for stream, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), stream)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        os.environ.clear()
        os.environ.update(order["env"])
        time.tzset()
        os.chdir(order["cwd"])
        sys.argv = ["yolo-fs", *order["arguments"]]
        code = begin()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
