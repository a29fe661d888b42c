"""Processes of agents: started in their own group, found again by pid and start time, asked to
stop, and ended, by their group alone, never by a name.

A folder's statement about a process needs a proof of origin: otherwise a folder that came with the
repository could make us end any process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.system.database import is_proof, proof_of
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
    """One process of an agent, in a form by which another process of ours can find it again."""

    pid: int
    start: int | None
    """In ticks since boot; with the pid, it identifies the process."""
    boot: str

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return self.owns_its_number and is_running(self.pid)

    @property
    def owns_its_number(self) -> bool:
        """Whether its pid still belongs to it or to what it left in its group.

        After a reboot, or once the system has reused the pid, it belongs to a foreign process.
        """
        return self.boot == boot_id() and start_time(self.pid) in (None, self.start)


def start(
    words: Sequence[str], root: str, folder: str, brief: str, more: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], Process]:
    """Start an agent. `folder`: ours, new, for its brief, stream and pid.

    The process writes its own pid before it executes the program, so that after a runner was
    killed, the next one finds every agent.

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
            hint="Install it, choose another host with --host, or name a program with --with.",
            exit_code=Exit.BAD_CONFIG,
        ) from error
    finally:
        for descriptor in (*files, stdin):
            os.close(descriptor)
    return process, Process(process.pid, start_time(process.pid), boot_id())


def note_of(folder: str, process: Process) -> bytes:
    """Return the record of an agent's process for its folder."""
    note = {**process._asdict(), "proof": proof_of(_proved_text(folder, process))}
    return json.dumps(note).encode()


def _proved_text(folder: str, process: Process) -> str:
    return " ".join(map(str, (os.path.basename(folder), *process)))


def found_in(folder: str) -> Process | None:
    """Return the process that an agent's folder records; None if none of ours was started."""
    note = read_json(os.path.join(folder, _PID))
    pid = note.get("pid") if isinstance(note, dict) else None
    if not isinstance(note, dict) or not isinstance(pid, int) or pid <= 1:
        return None  # a signal to group 0 or 1 goes to others
    process = Process(pid, note.get("start"), str(note.get("boot")))
    return process if is_proof(note.get("proof"), _proved_text(folder, process)) else None


def printed(folder: str, name: str) -> BinaryIO:
    """Open the output of an agent.

    Raises:
        OSError: there is no output, or it is no file any more, such as a link or a pipe.
    """
    try:
        return open(open_regular(os.path.join(folder, name), os.O_RDONLY), "rb")
    except RefusedError as refusal:
        raise OSError(refusal.detail) from None


def ask_to_stop(process: Process, folder: str, deadline_s: int, reason: str) -> None:
    """Send the request of the shutdown protocol: a file beside the brief, and SIGTERM to the
    agent.
    """
    request = {"type": "shutdown_request", "reason": reason, "deadline_seconds": deadline_s}
    with suppress(YoloError):  # where it cannot be written, the signal says the same
        write_text(os.path.join(folder, _REQUEST), json.dumps(request) + "\n", durable=False)
    if process.is_alive:
        with suppress(ProcessLookupError, PermissionError):  # where it is sudo, it belongs to root
            os.kill(process.pid, signal.SIGTERM)


def end_group(process: Process) -> None:
    """End an agent and everything left in its group, which only its descendants can join."""
    if process.owns_its_number:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
