"""The child processes of a play: the real daemon with its events, and a wait at a gate."""

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

from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, safe

END_S = 10.0
"""Time that the daemon has to end after it was asked to."""


@dataclass(frozen=True, slots=True)
class DaemonEvent:
    """One line of `run --json`."""

    name: str
    path: str
    commit: str = ""
    blob: str = ""
    subject: str = ""
    reason: str = ""
    findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        about = self.subject or "; ".join(map(described, self.findings)) or self.reason
        return f"{self.name} {safe(self.path)} {about}".rstrip()


def read_event(line: bytes) -> DaemonEvent | None:
    """Return the event of a line; None for the envelope that the daemon prints at its end."""
    value = json.loads(line)
    if "event" not in value:
        return None
    data: Mapping[str, Any] = value["data"]
    texts = {key: str(data.get(key, "")) for key in ("commit", "blob", "subject", "reason")}
    findings = tuple(
        Finding(Reason.of(each["reason"]), **{key: each[key] for key in _SHOWN})
        for each in data.get("findings") or ()
    )
    return DaemonEvent(value["event"], value["path"], findings=findings, **texts)


_SHOWN = ("line", "at", "message", "expected")


def described(finding: Finding) -> str:
    """Return a finding without its path, which the scene names."""
    place = f"line {finding.line} {safe(finding.at)}".rstrip() + " " if finding.line else ""
    expected = f"; expected {safe(finding.expected)}" if finding.expected else ""
    return f"{place}{finding.reason.value}: {safe(finding.message)}{expected}"


class DaemonProcess:
    """`yolo-fs run --json` in a repository."""

    def __init__(self, root: str, environment: Mapping[str, str], error_log: str):
        """Start it; its stderr goes to the file `error_log`."""
        self.output = bytearray()
        """Every byte that it printed on stdout so far."""
        self._error_log = error_log
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        with open(error_log, "wb") as file:
            self._process = subprocess.Popen(
                [*command("run"), "--json"],
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,  # Ctrl-C is for us alone: we end the daemon
            )
        self._reader = threading.Thread(target=self._read_stdout, daemon=True)
        self._reader.start()

    def next(self, until: float) -> DaemonEvent | None:
        """Return the next event, or None when none comes until then (monotonic clock).

        Raises:
            YoloError: NOT_RUNNING, the daemon ended.

        """
        try:
            line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None
        if not line:
            message = f"the daemon ended: {self._last_words()}"
            raise YoloError(Reason.NOT_RUNNING, message, exit_code=Exit.DEFECT)
        return read_event(line) or self.next(until)

    def stop(self) -> tuple[DaemonEvent, ...]:
        """End it, wait until it is gone, and return the events that were not read yet."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(END_S)
        lines: list[bytes] = []
        with contextlib.suppress(queue.Empty):
            while True:
                lines.append(self._lines.get_nowait())
        events = [read_event(line) for line in lines if line]
        return tuple(event for event in events if event)

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def _read_stdout(self) -> None:
        with cast("IO[bytes]", self._process.stdout) as stdout:
            for line in stdout:
                self.output += line
                self._lines.put(line)
        self._lines.put(b"")

    def _last_words(self) -> str:
        with open(self._error_log, encoding="utf-8", errors="replace") as file:
            text = file.read().strip()
        text = text or self.output.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return safe(text[-500:], 500) or "it printed nothing"


class GateWaiter:
    """`yolo-fs gate wait` at one gate of phase 1."""

    def __init__(self, root: str, environment: Mapping[str, str], gate: str):
        self.gate = gate
        self._process = subprocess.Popen(
            [*command("gate"), "wait", gate, "--phase", "1", "--json"],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def is_waiting(self) -> bool:
        """Whether the gate has not opened for it yet."""
        return self._process.poll() is None

    def result(self, timeout_s: float) -> Mapping[str, Any]:
        """Return what it prints once the gate is open; empty when it waits longer than that."""
        try:
            stdout, _ = self._process.communicate(timeout=max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            return {}
        return json.loads(stdout)["data"] or {}

    def stop(self) -> None:
        """End it, if it still waits."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


def command(verb: str) -> list[str]:
    """Return the command line of a verb of this very program."""
    return [sys.executable, "-m", "yolo_fs", verb]


def environment(home: str) -> dict[str, str]:
    """Return an environment for `command` without the user's configuration of git and yolo_fs."""
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
