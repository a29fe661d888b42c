"""Who else commits what agents write: services that watch, and scripts that an agent runs after it
wrote.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

from bench import daemon
from bench.options import Options

OURS = "yolo-fs"
LOOP = "inotify, git add, git commit --only"
WATCHDOG = "watchdog, git add, git commit"
INOTIFYWAIT = "inotifywait, git add, git commit"
GITWATCH = "gitwatch -s 0"
ADD = "git add && git commit"
ONLY = "git commit --only"
GITPYTHON = "GitPython index.commit"

Running = AbstractContextManager[subprocess.Popen[bytes]]


@dataclass(frozen=True, slots=True)
class Service:
    """Somebody who watches a work tree and commits by themselves."""

    name: str
    run: Callable[[str], Running]
    """Runs it in a work tree, in a process group of its own."""


@dataclass(frozen=True, slots=True)
class Script:
    """What an agent runs after each write; says `ready`, and commits when it reads a line."""

    name: str
    command: tuple[str, ...]
    """Given the work tree, the path and the subject."""


_INOTIFYWAIT = """
inotifywait -m -r -e close_write -e moved_to --format %w%f "$1/.yolo-planning" 2>&1 | while read -r path; do
    case $path in
    'Watches established.') echo ready ;;
    /*) git -C "$1" add -- "$path" && git -C "$1" commit -q -m 'docs(01): summary' >/dev/null ;;
    esac
done
"""
_ADD = 'echo ready; read -r _; cd "$1" && git add -- "$2" && git commit -q -m "$3"'
_ONLY = 'echo ready; read -r _; cd "$1" && git add -- "$2" && git commit -q -m "$3" --only -- "$2"'

SCRIPTS = (
    Script(ADD, ("sh", "-c", _ADD, "add")),
    Script(ONLY, ("sh", "-c", _ONLY, "only")),
    Script(GITPYTHON, (sys.executable, "-m", "bench.by_gitpython")),
)


def services(options: Options) -> list[Service]:
    """Return the watching peers that are there."""
    found = [
        Service(LOOP, _loop(sys.executable, "-m", "bench.peer")),
        Service(WATCHDOG, _loop(sys.executable, "-m", "bench.watchdog_loop")),
    ]
    if shutil.which("inotifywait"):
        found.append(Service(INOTIFYWAIT, _loop("bash", "-c", _INOTIFYWAIT, "loop")))
    if options.gitwatch:
        found.append(
            Service(GITWATCH, _loop("bash", options.gitwatch, "-s", "0", says_ready=False))
        )
    return found


def absent(options: Options) -> tuple[str, ...]:
    """Return the peers that are not there, each with what it would take."""
    there = {one.name for one in services(options)}
    wanted = {
        INOTIFYWAIT: "the command inotifywait is not installed",
        GITWATCH: "no package; give the path of its script: --gitwatch PATH",
    }
    return tuple(f"{name}: {why}" for name, why in wanted.items() if name not in there)


def ours(**policy: object) -> Service:
    """Return the daemon of yolo_fs as a service."""
    return Service(OURS, lambda root: daemon.process(root, **policy))


def end_group(child: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Signal everybody in the process group of a child, and wait for the child."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, how)
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()


def _loop(*command: str, says_ready: bool = True) -> Callable[[str], Running]:
    return lambda root: _looping([*command, root], says_ready=says_ready)


@contextmanager
def _looping(command: Sequence[str], *, says_ready: bool) -> Iterator[subprocess.Popen[bytes]]:
    """Run a peer; it is ready after its first line, or after a while where it says nothing."""
    out = subprocess.PIPE if says_ready else subprocess.DEVNULL
    child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        if child.stdout is not None:
            child.stdout.readline()
        else:
            time.sleep(2)
        yield child
    finally:
        end_group(child, signal.SIGTERM)
