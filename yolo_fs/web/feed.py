"""Follows a journal and a work tree once for all pages, and sends each page what it has not seen.

When either has changed, one look serves all pages. An event keeps its number in the journal, so a
page that comes back names the last one it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any

from yolo_fs.artifacts.verdicts import CandidateState
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.snapshots.happening import happening
from yolo_fs.snapshots.reader import SnapshotReader
from yolo_fs.snapshots.snapshot import stamp
from yolo_fs.system.journal import Journal

POLL_S = 0.02
"""Polling interval of the journal's size and of HEAD."""
TOLD_S = 0.05
"""Longest wait for the event of a branch that has moved; a look now would delay its writer."""
LOOK_EVERY_S = 0.5
"""Polling interval of the work tree, for changes that no daemon reports."""
SIGN_OF_LIFE_S = 15.0
"""Longest silence, so that either side notices that the other is gone."""
KEPT = 2_000
"""Events in memory; whoever has missed more reads the journal."""


class EventFeed:
    """The events and the board of one repository, for any number of pages."""

    def __init__(self, reader: SnapshotReader):
        """Follow the repository of a reader, from now on."""
        self._reader = reader
        self._repository = Repository(reader.root)
        self._journal = Journal(self._repository.own_dir, source=self._repository.root)
        self._stop = threading.Event()
        self._kept: deque[dict[str, Any]] = deque(self._journal.read(), maxlen=KEPT)
        self._happened = threading.Event()
        self._boards: Mapping[str | None, str] = {}
        """Phase that a page shows → the last message about it; None for pages that ask themselves.
        """
        self._is_pending = False
        self._waiting: dict[asyncio.Event, tuple[asyncio.AbstractEventLoop, str | None]] = {}
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
        self._wake()
        for thread in self._threads:
            thread.join()
        self._repository.close()

    def past_events(self) -> list[dict[str, Any]]:
        """Return every event that the journal has."""
        return list(self._journal.read())

    async def stream(
        self, last: int | None, before: int = 0, phase: str | None = None
    ) -> AsyncIterator[str]:
        """Yield server-sent events after the event numbered `last`, and the board at each change.

        The board has `phase` in full; where that is None, only the change is announced. `last`:
        None asks for new events, and for so many events that came `before`.
        """
        news = asyncio.Event()
        with self._lock:
            self._waiting[news] = asyncio.get_running_loop(), phase
        try:
            newest, shown = self._newest(), ""
            seen = max(0, newest - before) if last is None else last
            if seen > newest:  # the journal was begun anew
                seen = 0
            yield _format_event("hello", {"seq": seen, "newest": newest}, None)
            while not self._stop.is_set():
                news.clear()
                for event in self._after(seen):
                    seen = int(event["seq"])
                    payload = {**event, "happening": happening(event)._asdict()}
                    yield _format_event("journal", payload, seen)
                if (board := self._boards.get(phase, "")) is not shown:
                    shown = board
                    yield board
                try:
                    await asyncio.wait_for(news.wait(), SIGN_OF_LIFE_S)
                except TimeoutError:
                    yield ": alive\n\n"
        finally:
            with self._lock:
                self._waiting.pop(news, None)

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

    def _follow(self) -> None:
        for event in self._journal.follow(self._stop, self._newest(), poll_s=POLL_S):
            with self._lock:
                self._kept.append(event)
            self._happened.set()
            self._wake()

    def _watch(self) -> None:
        seen: tuple[int, object] = (-1, None)
        files: object = None
        looked_s = 0.0
        while not self._stop.is_set():
            self._happened.wait(POLL_S)
            self._happened.clear()
            with self._lock:
                wanted = {phase for _, phase in self._waiting.values()}
            if not wanted:
                self._boards = {}
                continue
            with contextlib.suppress(YoloError, OSError):
                now = self._newest(), self._repository.head()  # cheap: two small files
                if now[0] == seen[0] and now != seen:
                    self._happened.wait(TOLD_S)
                    now = self._newest(), self._repository.head()
                is_due = now != seen or not wanted <= self._boards.keys()
                if not is_due and time.monotonic() - looked_s < LOOK_EVERY_S:
                    continue
                if not is_due or not self._boards:
                    looked_s, before, files = time.monotonic(), files, stamp(self._repository)
                    if not is_due and files == before and not self._is_pending:
                        continue
                seen = now
                self._boards = self._look(now[0], wanted)
                self._wake()

    def _look(self, newest: int, wanted: Collection[str | None]) -> dict[str | None, str]:
        """Return the messages for the pages. Each is a new string, by which pages recognize it."""
        messages = dict.fromkeys(wanted, _format_event("changed", {}, None))
        phases = [phase for phase in wanted if phase is not None]
        if not phases:
            return messages
        with contextlib.suppress(Exception):  # whatever it is, a page that asks for itself is told
            moment = self._reader.present()
            self._is_pending = bool(moment.report.with_standing(CandidateState.PENDING))
            for phase in phases:
                board = to_json(moment.as_json(phase))
                messages[phase] = _format_event("board", {"seq": newest, "board": board}, None)
        return messages

    def _wake(self) -> None:
        with self._lock:
            waiting = list(self._waiting.items())
        for news, (loop, _) in waiting:
            with contextlib.suppress(RuntimeError):  # its loop has ended
                loop.call_soon_threadsafe(news.set)


def _format_event(event: str, data: dict[str, Any], number: int | None) -> str:
    """Return one server-sent event. JSON in ASCII has no line break to begin another field."""
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {event}\ndata: {json.dumps(data)}\n\n"
