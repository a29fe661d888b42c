"""Runs the user's own command when a person is asked, and never waits for it.

The command stands in the user's own configuration alone: a repository may not choose what runs
here. What happens while it runs is told together when it has ended. See docs/dev/faults.md#f56.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

from yolo_fs.artifacts.decide import EventSink
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Finding, Level, Reason, safe
from yolo_fs.escalations.log import EscalationProgress
from yolo_fs.system.readers import read_object
from yolo_fs.workspace import user_config_path

TIMEOUT_S = 10.0
"""Longest run of the command."""
_MOST_SHOWN = 20
"""Notes of one run that are spelled out; the rest are counted."""
_MOST_WAITING = 1_000
_LAST_BYTES = 200
"""Of what a failed command printed on stderr, that are told."""

Note = Mapping[str, Any]


class HookCommand(NamedTuple):
    """What the section `sinks` of the user's configuration names."""

    words: tuple[str, ...] = ()
    """Program and arguments; empty for none."""
    findings: tuple[Finding, ...] = ()
    """What the section holds beside it, and nobody reads."""


def load_command() -> HookCommand:
    """Return the command of the user's own configuration."""
    path = user_config_path()
    try:
        with open(path, "rb") as file:
            records = read_object(file.read(), path).records
    except OSError:
        return HookCommand()
    section = records[0].value.get("sinks") if records else None
    if not isinstance(section, dict):
        return HookCommand()
    unread = tuple(
        Finding(
            Reason.UNKNOWN_KEY,
            path,
            at=f"/sinks/{key}",
            message=f"sinks.{key} has no effect",
            expected='a command, such as {"sinks": {"command": ["notify-send", "yolo-fs"]}}',
            hint="Remove it; a command can send what it reads to any address.",
            level=Level.WARNING,
        )
        for key in section
        if key != "command"
    )
    command = section.get("command")
    words = tuple(command) if isinstance(command, list) else ()
    are_words = all(isinstance(word, str) and word for word in words)
    return HookCommand(words if are_words else (), unread)


class CommandHook:
    """Runs one command at a time, with what is to be told on its standard input."""

    def __init__(self, command: HookCommand, emit: EventSink) -> None:
        """`emit` hears of a command that failed, and of findings in the configuration."""
        self._words = command.words
        self._emit = emit
        self._waiting: deque[Note] = deque(maxlen=_MOST_WAITING)
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = io.BytesIO()
        """What the running command prints on stderr."""
        self._ends_at = 0.0
        """When the running command is killed, on the monotonic clock."""
        for finding in command.findings:
            emit("config.rejected", "", finding.as_json())

    def notify(self, one: EscalationProgress, phase: PhaseId) -> None:
        """Let the user know how an escalation stands; returns at once."""
        self.put(note_of(one, phase))

    def put(self, note: Note) -> None:
        """Let the user know of something that has a `title`; returns at once."""
        if self._words:
            self._waiting.append(note)
            self.look()

    def look(self) -> None:
        """Take leave of a command that has ended, and run it again for what waits."""
        if self._process and self._has_ended(self._process):
            self._process = None
            self._errors.close()
        if self._waiting and not self._process:
            self._run(_message(self._waiting))
            self._waiting.clear()

    def close(self) -> None:
        """Tell what waits; whoever does not take it in time is left."""
        self.look()
        until = time.monotonic() + TIMEOUT_S
        while self._process and time.monotonic() < until:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, min(self._ends_at, until) - time.monotonic()))
            self.look()

    def _run(self, message: Mapping[str, Any]) -> None:
        """Start the command. No word of an agent is an argument of it, and no shell reads any."""
        self._ends_at = time.monotonic() + TIMEOUT_S
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 — read when the command has ended
        try:
            with tempfile.TemporaryFile() as given:  # a pipe would wait for its reader
                given.write(json.dumps(message, ensure_ascii=True).encode())
                given.seek(0)
                self._process = subprocess.Popen(
                    self._words, stdin=given, stdout=subprocess.DEVNULL, stderr=self._errors
                )
        except OSError as error:
            self._errors.close()
            self._fail(str(error))

    def _has_ended(self, process: subprocess.Popen[bytes]) -> bool:
        code = process.poll()
        if code is None:
            if time.monotonic() < self._ends_at:
                return False
            process.kill()
            process.wait()
            self._fail(f"{self._words[0]} did not end within {TIMEOUT_S:.0f} s")
        elif code:
            self._fail(f"{self._words[0]} ended with {code}: {self._last_words()}")
        return True

    def _last_words(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _LAST_BYTES))
        return self._errors.read(_LAST_BYTES).decode(errors="replace")

    def _fail(self, what: str) -> None:
        self._emit("sink.failed", "", {"sink": "command", "what": safe(what)})


def _message(waiting: deque[Note]) -> dict[str, Any]:
    notes = list(waiting)
    kinds = "matters" if any("event" in note for note in notes) else "escalations"
    title = notes[0]["title"] if len(notes) == 1 else f"{len(notes)} {kinds} need you"
    return {"title": title, "count": len(notes), "notes": notes[-_MOST_SHOWN:]}


def note_of(one: EscalationProgress, phase: PhaseId) -> dict[str, Any]:
    """Return what people are told of an escalation.

    Text of agents is escaped: it may meet a terminal.
    """
    options = next((each.options for each in reversed(one.history) if each.options), ())
    last = one.history[-1] if one.history else None
    return {
        "title": f"{one.id} ({phase}): {one.agent} is asked",
        "id": str(one.id),
        "phase": str(phase),
        "standing": one.standing.value,
        "holder": one.agent,
        "blocked": f"{one.department} {one.origin} (task {one.id.task})",
        "severity": one.severity,
        "issue": safe(next((each.reason for each in one.history if not each.move), "")),
        "news": safe(last.reason) if last else "",
        "recommendation": safe(
            next((each.recommendation for each in reversed(one.history) if not each.move), "")
        ),
        "options": [safe(option) for option in options],
        "answer_with": f"yolo-fs escalate resolve {one.id} --by user --decision …",
    }
