"""Processes of agents: started in a group of their own, found again by pid and start time, asked to
stop, and ended: their group alone, never by a name.

What a folder says of a process counts with a proof alone: one that came with the repository would
have us end whom it likes.
"""

from __future__ import annotations

import hmac
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.system.database import proof_of
from yolo_fs.system.store import (
    RefusedError,
    open_regular,
    private_directory,
    read_json,
    write_text,
)
from yolo_fs.system.system import boot_id, is_running, start_time

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
    proof_of(folder)  # the key is read here, not in the child

    def write_number() -> None:
        pid = os.getpid()
        os.write(number, note_of(folder, Process(pid, start_time(pid), boot_id())))

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


def note_of(folder: str, process: Process) -> bytes:
    """Return what the folder of an agent says of its process."""
    said = {**process._asdict(), "proof": _proof(folder, process)}
    return json.dumps(said).encode()


def _proof(folder: str, process: Process) -> str:
    return proof_of(" ".join(map(str, (os.path.basename(folder), *process))))


def found_in(folder: str) -> Process | None:
    """Return the process that an agent's folder names; None where none of ours was started."""
    said = read_json(os.path.join(folder, _PID))
    pid = said.get("pid") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(pid, int) or pid <= 1:
        return None  # a signal to group 0 or 1 goes to others
    process = Process(pid, said.get("start"), str(said.get("boot")))
    expected = _proof(folder, process).encode()
    is_proved = expected and hmac.compare_digest(expected, str(said.get("proof")).encode())
    return process if is_proved else None


def printed(folder: str, name: str) -> BinaryIO:
    """Open what an agent printed.

    Raises:
        OSError: nothing did, or it is no file any more, such as a link or a pipe.
    """
    try:
        return open(open_regular(os.path.join(folder, name), os.O_RDONLY), "rb")
    except RefusedError as refusal:
        raise OSError(refusal.detail) from None


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
