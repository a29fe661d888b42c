"""Runs the user's own command when a person is asked, and never waits for it.

The command comes from the user's own configuration alone: a repository must not choose what runs
here. Notifications that arrive while it runs are sent together when it has ended. See
docs/dev/faults.md#f56.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import IO, Any, NamedTuple

from yolo_fs.artifacts.decide import EventSink
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Finding, YoloError, safe
from yolo_fs.escalations.log import EscalationProgress
from yolo_fs.system.database import make_state_folder
from yolo_fs.system.file_locks import update
from yolo_fs.system.files import content_of
from yolo_fs.system.process_group import ProcessGroup, start_group
from yolo_fs.system.readers import read_object
from yolo_fs.system.store import Damaged
from yolo_fs.workspace.settings import user_config_path
from yolo_fs.workspace.user_config import sink_command, without_effect

TIMEOUT_S = 10.0
"""Time limit of the command, seconds."""
_MOST_SHOWN = 20
"""Notes that are spelled out in one run; the rest are only counted."""
_MOST_WAITING = 1_000
_MOST_TOLD = 1_000
"""Notifications that are remembered for the user's other work trees and clones."""
_TOLD_PATIENCE_S = 1.0
_LAST_BYTES = 200
"""Number of bytes from the end of a failed command's stderr that are reported."""

Note = Mapping[str, Any]


class HookCommand(NamedTuple):
    """The command in section `sinks` of the user's configuration."""

    words: tuple[str, ...] = ()
    """Program and arguments; empty for none."""
    findings: tuple[Finding, ...] = ()
    """What in the whole file has no effect."""
    folder: str = os.sep
    """Where it runs. In the work tree, a relative path would be a program of each repository."""


def load_command() -> HookCommand:
    """Return the command of the user's own configuration."""
    path = user_config_path()
    records = read_object(content_of(path), path).records
    if not records:
        return HookCommand()
    user = records[0].value
    findings = tuple(without_effect(user, path))
    return HookCommand(sink_command(user), findings, os.path.dirname(path))


class CommandHook:
    """Runs one command at a time and passes the notifications on its standard input."""

    def __init__(self, command: HookCommand, emit: EventSink) -> None:
        """`emit`: receives failures of the command and findings in the configuration."""
        self._words, self._folder = command.words, command.folder
        self._emit = emit
        self._waiting: deque[Note] = deque(maxlen=_MOST_WAITING)
        self._group: ProcessGroup | None = None
        """The running command."""
        self._errors: IO[bytes] = io.BytesIO()
        """The running command's stderr."""
        self._ends_at = 0.0
        """Monotonic time at which the running command is killed."""
        for finding in command.findings:
            emit("config.rejected", "", finding.as_json())

    def notify(self, escalation: EscalationProgress, phase: PhaseId) -> None:
        """Notify the user of an escalation's state; does not block.

        Each work tree and clone of a team has a daemon that sees it: the first one notifies.
        """
        self.notify_once([(note_of(escalation, phase), True)])

    def notify_once(self, notes: Iterable[tuple[Note, bool]]) -> None:
        """Notify the user of what no daemon of theirs has told them; does not block.

        Each note: whether it is news; one that is none is remembered alone.
        """
        for note, is_news in notes if self._words else ():
            if _is_first_to_tell(note) and is_news:
                self._waiting.append(note)
        self.look()

    def put(self, note: Note) -> None:
        """Notify the user of something that has a `title`; does not block."""
        if self._words:
            self._waiting.append(note)
            self.look()

    def look(self) -> None:
        """Reap a command that has ended, and run it again if notifications are waiting."""
        if self._group and self._has_ended(self._group):
            self._group = None
            self._errors.close()
        if self._waiting and not self._group:
            self._run(_message(self._waiting))
            self._waiting.clear()

    def close(self) -> None:
        """Send what is waiting; stop waiting for the command after `TIMEOUT_S`."""
        self.look()
        until = time.monotonic() + TIMEOUT_S
        while self._group and time.monotonic() < until:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._group.process.wait(max(0.0, min(self._ends_at, until) - time.monotonic()))
            self.look()

    def _run(self, message: Mapping[str, Any]) -> None:
        """Start the command. Agents' text is never an argument and never reaches a shell."""
        self._ends_at = time.monotonic() + TIMEOUT_S
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 — read when the command has ended
        try:
            with tempfile.TemporaryFile() as given:  # a pipe would wait for its reader
                given.write(json.dumps(message, ensure_ascii=True).encode())
                given.seek(0)
                self._group = start_group(
                    self._words,
                    given=given,
                    output=subprocess.DEVNULL,
                    errors=self._errors,
                    folder=self._folder,
                )
        except OSError as error:
            self._errors.close()
            self._fail(str(error))

    def _has_ended(self, group: ProcessGroup) -> bool:
        code = group.process.poll()
        if code is None and time.monotonic() < self._ends_at:
            return False
        if code is None:
            group.end()
            self._fail(f"{self._words[0]} did not end within {TIMEOUT_S:.0f} s")
            return True
        group.release()
        if code:
            self._fail(f"{self._words[0]} ended with {code}: {self._last_words()}")
        return True

    def _last_words(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _LAST_BYTES))
        return self._errors.read(_LAST_BYTES).decode(errors="replace")

    def _fail(self, what: str) -> None:
        self._emit("sink.failed", "", {"sink": "command", "what": safe(what)})


def _is_first_to_tell(note: Note) -> bool:
    """Record that the user is told this; return whether no other daemon of theirs has done so.

    Where nothing can be recorded the user is told: better twice than never.
    """
    key = hashlib.sha256(json.dumps(note, sort_keys=True).encode()).hexdigest()

    def with_key(before: dict[str, Any] | Damaged | None) -> dict[str, Any] | None:
        keys = before.get("told") if isinstance(before, dict) else None
        known = keys if isinstance(keys, list) else []
        return None if key in known else {"told": [*known, key][-_MOST_TOLD:]}

    try:
        place = os.path.join(make_state_folder(), "told")
        path, lock = f"{place}.json", f"{place}.lock"
        return update(path, lock, with_key, _TOLD_PATIENCE_S, durable=False) is not None
    except YoloError:
        return True


def _message(waiting: deque[Note]) -> dict[str, Any]:
    notes = list(waiting)
    kinds = "matters" if any("event" in note for note in notes) else "escalations"
    title = notes[0]["title"] if len(notes) == 1 else f"{len(notes)} {kinds} need you"
    return {"title": title, "count": len(notes), "notes": notes[-_MOST_SHOWN:]}


def note_of(escalation: EscalationProgress, phase: PhaseId) -> dict[str, Any]:
    """Return the notification for an escalation.

    Agents' text is escaped, since it may be shown in a terminal.
    """
    options = next((each.options for each in reversed(escalation.history) if each.options), ())
    last = escalation.history[-1] if escalation.history else None
    return {
        "title": f"{escalation.id} ({phase}): {escalation.agent} is asked",
        "id": str(escalation.id),
        "phase": str(phase),
        "standing": escalation.standing.value,
        "holder": escalation.agent,
        "blocked": f"{escalation.department} {escalation.origin} (task {escalation.id.task})",
        "severity": escalation.severity,
        "since": safe(last.dt) if last else "",
        "issue": safe(next((each.reason for each in escalation.history if not each.move), "")),
        "news": safe(last.reason) if last else "",
        "recommendation": safe(
            next(
                (each.recommendation for each in reversed(escalation.history) if not each.move), ""
            )
        ),
        "options": [safe(option) for option in options],
        "answer_with": f"yolo-fs escalate resolve {escalation.id} --by user --decision …",
    }
