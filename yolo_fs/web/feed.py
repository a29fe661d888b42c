"""Follows a journal and a work tree once for all pages, and hands each page what it has not seen.

An event keeps its number in the journal, so a page that comes back names the last one it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.journal import Journal
from yolo_fs.reasons import YoloError
from yolo_fs.services.moments.moment import stamp

POLL_S = 0.02
"""Between two looks at the size of the journal."""
LOOK_EVERY_S = 0.5
"""Between two looks at the work tree, for what no daemon tells."""
SIGN_OF_LIFE_S = 15.0
"""Longest silence, so that either side notices that the other is gone."""
KEPT = 2_000
"""Events in memory; whoever has missed more reads the journal."""


class EventFeed:
    """The events of one repository, for any number of pages."""

    def __init__(self, start: str):
        """Follow the repository that `start` lies in, from now on."""
        self._repository = Repository(start)
        self._journal = Journal(
            self._repository.own_dir, source=self._repository.root, now=lambda: datetime.now(UTC)
        )
        self._stop = threading.Event()
        self._kept: deque[dict[str, Any]] = deque(self._journal.read(), maxlen=KEPT)
        self._changes = 0
        """How often the work tree was seen to change."""
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._follow, self._watch)
        ]

    def start(self) -> None:
        """Begin to follow."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop following, and end every stream."""
        self._stop.set()
        self._ring()
        for thread in self._threads:
            thread.join()
        self._repository.close()

    def past_events(self) -> list[dict[str, Any]]:
        """Return every event that the journal has."""
        return list(self._journal.read())

    async def stream(self, last: int | None, before: int = 0) -> AsyncIterator[str]:
        """Yield server-sent events after the event numbered `last`.

        None asks for what comes, and for so many events that came `before`.
        """
        bell = asyncio.Event()
        with self._lock:
            self._waiting[bell] = asyncio.get_running_loop()
        try:
            newest, changes = self._newest(), self._changes
            seen = max(0, newest - before) if last is None else last
            if seen > newest:  # the journal was begun anew
                seen = 0
            yield _framed("hello", {"seq": seen, "newest": newest}, None)
            while not self._stop.is_set():
                bell.clear()
                for event in await asyncio.to_thread(self._after, seen):
                    seen = int(event["seq"])
                    yield _framed("journal", event, seen)
                if changes != self._changes:
                    changes = self._changes
                    yield _framed("changed", {}, None)
                try:
                    await asyncio.wait_for(bell.wait(), SIGN_OF_LIFE_S)
                except TimeoutError:
                    yield ": alive\n\n"
        finally:
            with self._lock:
                self._waiting.pop(bell, None)

    def _newest(self) -> int:
        with self._lock:
            return int(self._kept[-1]["seq"]) if self._kept else 0

    def _after(self, seen: int) -> list[dict[str, Any]]:
        """Return the events numbered above `seen`."""
        with self._lock:
            kept = list(self._kept)
        if kept and int(kept[0]["seq"]) > seen + 1:
            return list(self._journal.read(seen))
        return [event for event in kept if int(event["seq"]) > seen]

    # --- threads ---

    def _follow(self) -> None:
        for event in self._journal.follow(self._stop, self._newest(), poll_s=POLL_S):
            with self._lock:
                self._kept.append(event)
            self._ring()

    def _watch(self) -> None:
        before: object = None
        head: object = None
        looked_s = 0.0
        while not self._stop.wait(POLL_S):
            with self._lock:
                is_asked = bool(self._waiting)
            if not is_asked:
                before = None
                continue
            with contextlib.suppress(YoloError, OSError):
                moved, head = head, self._repository.head()  # cheap: two small files
                if moved == head and time.monotonic() - looked_s < LOOK_EVERY_S:
                    continue
                looked_s = time.monotonic()
                now = stamp(self._repository)
                if now != before:  # the first look as well: what came before it was seen by nobody
                    self._changes += 1
                    self._ring()
                before = now

    def _ring(self) -> None:
        with self._lock:
            waiting = list(self._waiting.items())
        for bell, loop in waiting:
            with contextlib.suppress(RuntimeError):  # its loop has ended
                loop.call_soon_threadsafe(bell.set)


def _framed(event: str, data: dict[str, Any], number: int | None) -> str:
    """Return one server-sent event. JSON in ASCII has no line break that could begin another
    field.
    """
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {event}\ndata: {json.dumps(data)}\n\n"
