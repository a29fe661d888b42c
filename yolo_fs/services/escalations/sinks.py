"""Tells people that they are asked: by a command and by a webhook, seldom and briefly, and never
waits for either.

Both are named in the user's own configuration alone: a repository may not choose what runs here,
nor who is told. What happens while it is not the time to tell is told together later, as a digest.
See docs/faults.md#f56.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import urlsplit

from yolo_fs.edges.readers import read_object
from yolo_fs.ids import PhaseId
from yolo_fs.reasons import safe
from yolo_fs.rules.decide import EventSink
from yolo_fs.rules.escalations.log import EscalationProgress
from yolo_fs.services.workspace import user_config_path

TIMEOUT_S = 10.0
"""For the command and for the webhook."""
_MOST_WAITING = 1_000
_MOST_SHOWN = 20
"""Notes that a digest spells out; the rest are counted."""

Note = Mapping[str, Any]


class SinkSettings(NamedTuple):
    """The section `sinks` of the user's configuration."""

    command: tuple[str, ...] = ()
    """Program and arguments; it reads one JSON object from its stdin."""
    webhook: str = ""
    """Address that is sent the same object by POST; http or https."""
    every_s: float = 10.0
    """At most one delivery in this time."""

    @property
    def is_silent(self) -> bool:
        """Whether nobody is told anything."""
        return not self.command and not self.webhook


def load_sinks() -> SinkSettings:
    """Return the sinks of the user's own configuration; what has another shape is absent."""
    try:
        with open(user_config_path(), "rb") as file:
            records = read_object(file.read(), "the user's configuration").records
    except OSError:
        return SinkSettings()
    said = records[0].value.get("sinks") if records else None
    if not isinstance(said, dict):
        return SinkSettings()
    command, webhook, every_s = said.get("command"), said.get("webhook"), said.get("every_s")
    return SinkSettings(
        command=tuple(command) if _are_words(command) else (),
        webhook=webhook if _is_address(webhook) else "",
        every_s=float(every_s)
        if isinstance(every_s, int | float) and every_s >= 0
        else SinkSettings().every_s,
    )


def _are_words(value: object) -> TypeGuard[list[str]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(word, str) and word for word in value)
    )


def _is_address(value: object) -> TypeGuard[str]:
    if not isinstance(value, str):
        return False
    parts = urlsplit(value)
    return parts.scheme in ("http", "https") and bool(parts.hostname)


class Digest:
    """Notes that wait to be told, and when they may be."""

    def __init__(self, every_s: float) -> None:
        """Let one delivery pass in `every_s` seconds."""
        self._every_s = every_s
        self._waiting: deque[Note] = deque(maxlen=_MOST_WAITING)
        self._dropped = 0
        self._next_s = 0.0

    def put(self, note: Note) -> None:
        """Add a note; the oldest gives way when too many wait."""
        self._dropped += len(self._waiting) == _MOST_WAITING
        self._waiting.append(note)

    def take(self, now_s: float) -> dict[str, Any] | None:
        """Return what is to be delivered now, many notes as one; None without any, or too early."""
        if not self._waiting or now_s < self._next_s:
            return None
        notes, count = list(self._waiting)[-_MOST_SHOWN:], len(self._waiting) + self._dropped
        self._waiting.clear()
        self._dropped = 0
        self._next_s = now_s + self._every_s
        things = "escalations" if not any("event" in note for note in notes) else "matters"
        title = notes[0]["title"] if count == 1 else f"{count} {things} need you"
        return {"title": title, "count": count, "notes": notes}

    def wait_s(self, now_s: float) -> float | None:
        """Return after how long there is something to deliver; None while nothing waits."""
        return max(0.0, self._next_s - now_s) if self._waiting else None


class Sinks:
    """Delivers in a thread of its own, which begins with the first note."""

    def __init__(
        self, settings: SinkSettings, tell: EventSink, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`tell` hears of what could not be delivered."""
        self._settings = settings
        self._tell = tell
        self._clock = clock
        self._digest = Digest(settings.every_s)
        self._changed = threading.Condition()
        self._closing = False
        self._worker: threading.Thread | None = None

    def notify(self, one: EscalationProgress, phase: PhaseId) -> None:
        """Let people know how an escalation stands; returns at once."""
        self.put(note_of(one, phase))

    def put(self, note: Note) -> None:
        """Let people know of something that has a `title`; returns at once."""
        if self._settings.is_silent:
            return
        with self._changed:
            self._digest.put(note)
            if self._worker is None:
                self._worker = threading.Thread(target=self._deliver_all, name="sinks", daemon=True)
                self._worker.start()
            self._changed.notify()

    def close(self, patience_s: float = TIMEOUT_S) -> None:
        """Deliver what waits, and end; whoever does not take it in time is left."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._worker is not None:
            self._worker.join(patience_s)

    def _deliver_all(self) -> None:
        while True:
            with self._changed:
                if not self._closing and self._pause_s() != 0.0:
                    self._changed.wait(self._pause_s())
                digest = self._digest.take(float("inf") if self._closing else self._clock())
                if digest is None and self._closing:
                    return
            if digest is not None:
                self._deliver(digest)

    def _pause_s(self) -> float | None:
        return self._digest.wait_s(self._clock())

    def _deliver(self, digest: Mapping[str, Any]) -> None:
        data = json.dumps(digest, ensure_ascii=True).encode()
        sinks: tuple[tuple[str, object, Callable[[], object]], ...] = (
            ("command", self._settings.command, lambda: _run(self._settings.command, data)),
            ("webhook", self._settings.webhook, lambda: _post(self._settings.webhook, data)),
        )
        for name, is_wanted, deliver in sinks:
            try:
                if is_wanted:
                    deliver()
            except Exception as error:  # whatever a sink does, no escalation waits for it
                self._tell("sink.failed", "", {"sink": name, "what": safe(str(error))})


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


def _run(command: Sequence[str], data: bytes) -> None:
    """Run the user's command.

    No word of an agent is an argument of it, and no shell reads anything.
    """
    done = subprocess.run(command, input=data, capture_output=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise OSError(
            f"{command[0]} ended with {done.returncode}: "
            f"{done.stderr[-200:].decode(errors='replace')}"
        )


def _post(address: str, data: bytes) -> None:
    """Send the data to the configured address and nowhere else: no redirect, no proxy."""
    import urllib.request  # 30 ms: only those who have a webhook pay for it

    class Stays(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    request = urllib.request.Request(
        address, data, {"Content-Type": "application/json"}, method="POST"
    )
    opener = urllib.request.build_opener(Stays, urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=TIMEOUT_S):
        return
