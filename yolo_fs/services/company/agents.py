"""Processes of agents: started in a group of their own, found again by pid and start time, asked to
stop, and ended: their group alone, never by a name.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from yolo_fs.edges.store import open_regular, private_directory, read_json, write_text
from yolo_fs.edges.system import boot_id, is_running, start_time
from yolo_fs.reasons import Exit, Reason, YoloError, safe

STREAM = "stream.log"
ERRORS = "errors.log"
BRIEF = "brief.md"
_PID = "pid"
_REQUEST = "shutdown_request.json"


class Process(NamedTuple):
    """One process of an agent, as it can be found again by another of ours."""

    pid: int
    start: int | None
    """In ticks since boot: pid and this name it."""
    boot: str

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs; one that only waits to be noticed does not."""
        return self.owns_its_number and is_running(self.pid)

    @property
    def owns_its_number(self) -> bool:
        """Whether its number still means it, or what it left in its group: since another boot, or
        once the system has given the number to another process, it means a stranger.
        """
        return self.boot == boot_id() and start_time(self.pid) in (None, self.start)


def start(
    words: Sequence[str], root: str, folder: str, brief: str, more: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], Process]:
    """Start an agent. `folder`: ours, new, for its brief, stream and number.

    The process writes its number itself before it becomes the program: whoever comes after a runner
    that was killed finds each agent that there is.

    Raises:
        YoloError: FILE_MISSING for a program that is not there.
    """
    private_directory(folder)
    write_text(os.path.join(folder, BRIEF), brief, mode=0o600, durable=False)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    files = [open_regular(os.path.join(folder, name), flags) for name in (STREAM, ERRORS, _PID)]
    stdin = open_regular(os.path.join(folder, BRIEF), os.O_RDONLY)
    number = files[2]

    def write_number() -> None:
        pid = os.getpid()
        said = {"pid": pid, "start": start_time(pid), "boot": boot_id()}
        os.write(number, json.dumps(said).encode())

    try:
        process = subprocess.Popen(
            words,
            cwd=root,
            env={**os.environ, **more},
            stdin=stdin,
            stdout=files[0],
            stderr=files[1],
            start_new_session=True,
            preexec_fn=write_number,
        )
    except OSError as error:
        raise YoloError(
            Reason.FILE_MISSING,
            f"{safe(words[0])}: {error.strerror or error}",
            hint="Name a program that is there: --with, or git config --global yolo-fs.host.….",
            exit_code=Exit.BAD_CONFIG,
        ) from error
    finally:
        for descriptor in (*files, stdin):
            os.close(descriptor)
    return process, Process(process.pid, start_time(process.pid), boot_id())


def found_in(folder: str) -> Process | None:
    """Return the process that an agent's folder names; None where none was started."""
    said = read_json(os.path.join(folder, _PID))
    pid = said.get("pid") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(pid, int) or pid <= 1:
        return None  # a signal to group 0 or 1 goes to others
    return Process(pid, said.get("start"), str(said.get("boot")))


def ask_to_stop(process: Process, folder: str, deadline_s: int, reason: str) -> None:
    """Send the request of the shutdown protocol: a file beside the brief, and TERM to the agent."""
    request = {"type": "shutdown_request", "reason": reason, "deadline_seconds": deadline_s}
    write_text(os.path.join(folder, _REQUEST), json.dumps(request) + "\n", durable=False)
    if process.is_alive:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)


def end_group(process: Process) -> None:
    """End an agent and whatever it left in its group, which none but its children can join."""
    if process.owns_its_number:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
