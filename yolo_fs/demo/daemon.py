"""The real daemon as a child process, and what it says on stdout."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import site
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, cast

from yolo_fs.reasons import Exit, Reason, YoloError, safe

END_S = 10.0
"""Time in which the daemon ends after it was asked to."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One finding, as an event carries it."""

    reason: str
    line: int
    at: str
    message: str
    expected: str

    def __str__(self) -> str:
        place = f"line {self.line} {safe(self.at)}".rstrip() + " " if self.line else ""
        expected = f"; expected {safe(self.expected)}" if self.expected else ""
        return f"{place}{self.reason}: {safe(self.message)}{expected}"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of `run --json`."""

    name: str
    path: str
    commit: str = ""
    blob: str = ""
    subject: str = ""
    reason: str = ""
    faults: tuple[Fault, ...] = ()

    @classmethod
    def read(cls, line: bytes) -> Event | None:
        """Return the event of a line; None for the envelope that the daemon prints at its end."""
        value = json.loads(line)
        if "event" not in value:
            return None
        data: Mapping[str, Any] = value["data"]
        texts = {key: str(data.get(key, "")) for key in ("commit", "blob", "subject", "reason")}
        faults = (
            Fault(one["reason"], one["line"], one["at"], one["message"], one["expected"])
            for one in data.get("findings") or ()
        )
        return cls(value["event"], value["path"], faults=tuple(faults), **texts)


class Daemon:
    """`yolo-fs run --json` in a repository, from its start to its end."""

    def __init__(self, root: str, environment: Mapping[str, str], complaints: str):
        """Start it; what it says on stderr goes to the file `complaints`."""
        self.heard = bytearray()
        """Every byte that it printed on stdout so far."""
        self._complaints = complaints
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        with open(complaints, "wb") as file:
            self._process = subprocess.Popen(
                [*command("run"), "--json"],
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,  # an interrupt from the keyboard is ours: we end the daemon
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def next(self, until: float) -> Event | None:
        """Return the next event, or None when none comes until then (monotonic clock).

        Raises:
            YoloError: NOT_RUNNING, the daemon ended.

        """
        try:
            line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None
        if not line:
            raise YoloError(
                Reason.NOT_RUNNING,
                f"the daemon ended: {self._last_complaint()}",
                exit_code=Exit.DEFECT,
            )
        return Event.read(line) or self.next(until)

    def stop(self) -> tuple[Event, ...]:
        """End it, wait until it is gone, and return what it had still to say."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(END_S)
        return tuple(event for line in self._remaining() if (event := Event.read(line)))

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def _listen(self) -> None:
        with cast("IO[bytes]", self._process.stdout) as out:
            for line in out:
                self.heard += line
                self._lines.put(line)
        self._lines.put(b"")

    def _remaining(self) -> list[bytes]:
        lines: list[bytes] = []
        with contextlib.suppress(queue.Empty):
            while True:
                lines.append(self._lines.get_nowait())
        return [line for line in lines if line]

    def _last_complaint(self) -> str:
        with open(self._complaints, encoding="utf-8", errors="replace") as file:
            said = (
                file.read().strip()
                or self.heard.decode("utf-8", "replace").strip().rpartition("\n")[2]
            )
        return safe(said[-500:], 500) or "it said nothing"


def command(verb: str) -> list[str]:
    """Return the command line of a verb of this very program."""
    return [sys.executable, "-m", "yolo_fs", verb]


def environment(home: str) -> dict[str, str]:
    """Return an environment without the user's configuration of git and of yolo_fs, in which `command` works."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    paths = os.pathsep.join(path for path in (package, kept.get("PYTHONPATH", "")) if path)
    return kept | {
        "HOME": home,
        "XDG_CONFIG_HOME": os.path.join(home, ".config"),
        "PYTHONPATH": paths,
        "PYTHONSAFEPATH": "1",
        # With another HOME, Python would look elsewhere for what `pip install --user` installed.
        "PYTHONUSERBASE": site.getuserbase(),
    }
