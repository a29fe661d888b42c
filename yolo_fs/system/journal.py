"""The journal of events: one numbered line per fact, in the format of CloudEvents 1.0.

The daemon writes, and so do commands for their own events. They take turns by flock(2), and anybody
may read. The journal is not a source of truth: a full disk costs events, never work. See
docs/dev/faults.md#f06.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from yolo_fs.core.foreign_json import parse
from yolo_fs.core.reasons import YoloError
from yolo_fs.system import failpoint
from yolo_fs.system.files import identity_at
from yolo_fs.system.store import RefusedError, move, open_regular, private_directory
from yolo_fs.system.system import wait_lock

PREFIX = "dev.yolo_fs."
"""Prefix of every event type; `append`, `read` and `follow` also take the type without it."""

EVENT_TYPES = (
    "act.escalated", "act.given_up",
    "agent.asked_to_stop", "agent.done", "agent.ended", "agent.failed", "agent.found",
    "agent.health", "agent.started",
    "artifact.autofixed", "artifact.committed", "artifact.held", "artifact.missing",
    "artifact.rejected",
    "circuit.changed", "config.loaded", "config.rejected", "crew.trouble",
    "daemon.defect", "daemon.doubt", "daemon.lock_lost", "daemon.started", "daemon.stopped",
    "daemon.trouble",
    "escalation.escalated", "escalation.finding", "escalation.open", "escalation.resolved",
    "escalation.timeout", "escalation.trouble",
    "gate.closed", "gate.opened", "handoff.read", "host.limited", "index.diverged", "intent.waits",
    "kept.failed",
    "observer.started", "projection.failed", "repository.repaired", "run.overtaken",
    "run.started", "run.waits",
    "shutdown.late", "shutdown.over", "signoff", "sink.failed", "step.stalled", "task.merged",
    "team.bell_back", "team.bell_lost", "team.conflict", "team.lease_lost",
    "team.lease_returned", "team.lease_taken", "team.published", "team.remote_back",
    "team.remote_failed", "team.signs_in_branches", "team.source_refused", "tree.kept",
    "verify_command.ended", "verify_command.started",
)  # fmt: skip
"""Every type of event that this version writes; a journal may hold others of an older one."""

_TURN_S = 0.5
"""How long to wait for another writer, which needs microseconds.

A writer that is stopped meanwhile costs an event."""
_TURN_POLL_S = 0.002

_TEXTS = ("id", "source", "type", "time", "subject")
_LONGEST_LINE_BYTES = 8 << 20
"""A longer line is not ours, and is skipped."""
_SHORTEST_LINE_BYTES = sum(len(f'"{key}":"",') for key in (*_TEXTS, "seq", "data"))
"""A shorter line has no room for the fields of an event; parsing millions of them takes minutes."""
_MOST_BYTES = 16 << 20
"""Most bytes that are read of a file, from its end. Ours have a sixteenth of that."""


class Journal:
    """Numbered events in `events.jsonl` and its rotated files; `events.1.jsonl` is the youngest."""

    def __init__(
        self,
        directory: str,
        *,
        source: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        size_bytes: int = 1_000_000,
        files: int = 5,
    ) -> None:
        """Configure the journal; nothing is created on disk before the first `append`."""
        self._directory = directory
        self._source = source
        self._now = now
        self._size_bytes = size_bytes
        self._files = files
        self._lock = threading.Lock()
        self._out = _Out()
        self._seq: int | None = None

    def append(self, type_: str, subject: str, data: Mapping[str, Any] | None = None) -> bool:
        """Write one event with the next number; False on a system error, which is never fatal."""
        with self._lock:
            try:
                self._prepare()
                with self._alone():
                    self._prepare()  # the other writer may have rotated
                    if self._out.was_written_by_others():
                        self._seq = max(self._seq or 0, self._read_last_seq())
                    return self._put(type_, subject, data or {})
            except (OSError, RefusedError, YoloError):
                return False

    def close(self) -> None:
        """Close the file; a later `append` opens it again."""
        with self._lock:
            self._out.close()

    def read(self, since: int = 0, type_: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the events numbered above `since`, oldest first, without torn ones."""
        sieve = _Sieve(since, type_)
        sources = self._sources()
        try:
            for source in sources:
                yield from sieve.new(source)
        finally:
            _close(sources)

    def follow(
        self,
        stop: threading.Event,
        since: int = 0,
        type_: str | None = None,
        *,
        poll_s: float = 0.2,
    ) -> Generator[dict[str, Any], None, None]:
        """Yield the events above `since`, then each new one, until `stop` is set and all read."""
        sieve = _Sieve(since, type_)
        sources: list[_In] = []
        try:
            while True:
                stopping = stop.is_set()
                if self._is_superseded(sources):
                    _close(sources)
                    sources = self._sources()
                for source in sources:
                    yield from sieve.new(source)
                _close(sources[:-1])
                sources = sources[-1:]
                if stopping:
                    return
                stop.wait(poll_s)
        finally:
            _close(sources)

    def _is_superseded(self, sources: list[_In]) -> bool:
        """Return whether a newer file was begun, so that the open ones have been renamed."""
        current = identity_at(self._path(0))
        return not sources or (current is not None and sources[-1].identity != current)

    def _prepare(self) -> None:
        if self._out.identity is None or self._out.identity != identity_at(self._path(0)):
            if self._seq is None:  # one that went since is not ours to make again
                private_directory(self._directory)
            self._out.close()
            self._out.open(self._path(0))  # first: what others write from here on shows in the size
            self._seq = max(self._seq or 0, self._read_last_seq())

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the right to write the next line, by a lock on the directory.

        No rotation replaces the directory.

        Raises:
            OSError: another process holds it for too long.
        """
        directory = wait_lock(self._directory, _open_directory, _TURN_S, _TURN_POLL_S)
        if directory is None:
            raise OSError("another writer of the journal does not finish")
        try:
            yield
        finally:
            os.close(directory)

    def _put(self, type_: str, subject: str, data: Mapping[str, Any]) -> bool:
        seq = (self._seq or 0) + 1
        # ASCII: paths may hold bytes that are not UTF-8, and nothing here may control a terminal
        # (F56).
        line = json.dumps(
            self._event(seq, type_, subject, data), separators=(",", ":"), allow_nan=False
        )
        if self._out.size_bytes and self._out.size_bytes + len(line) >= self._size_bytes:
            self._rotate()
        failpoint.reach("journal.begun")
        whole, written = self._out.write(line.encode("ascii") + b"\n")
        failpoint.reach("journal.written")
        if written:
            self._seq = seq
        return whole

    def _event(self, seq: int, type_: str, subject: str, data: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "specversion": "1.0",
            "id": os.urandom(16).hex(),
            "source": self._source,
            "type": _full(type_),
            "time": self._now()
            .astimezone(UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "subject": subject,
            "seq": seq,
            "data": dict(data),
        }

    def _rotate(self) -> None:
        self._out.close()
        # A failed rename makes a file too long, which is better than no events.
        with contextlib.suppress(OSError, YoloError):
            for age in range(self._files - 1, 0, -1):
                if os.path.lexists(self._path(age - 1)):
                    move(self._path(age - 1), self._path(age))
        self._out.open(self._path(0))

    def _read_last_seq(self) -> int:
        """Return the highest number on disk, also that of a complete last line without a
        newline.
        """
        sources = self._sources()
        try:
            for source in reversed(sources):
                last = max((int(event["seq"]) for event in source.events()), default=0)
                last = max((int(event["seq"]) for event in _events([source.rest])), default=last)
                if last:
                    return last
        finally:
            _close(sources)
        return 0

    def _path(self, age: int) -> str:
        return os.path.join(self._directory, f"events.{age}.jsonl" if age else "events.jsonl")

    def _sources(self) -> list[_In]:
        """Open the files that exist, and return them oldest first.

        They are opened youngest first: a rotation meanwhile then shows a file twice, which the
        numbers reveal, and hides none.
        """
        sources: list[_In] = []
        for age in range(self._files):
            with contextlib.suppress(OSError, RefusedError):
                sources.append(_In(self._path(age)))
        return sources[::-1]


class _Out:
    """The file that is appended to, one `write` per line."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._torn = False
        self.identity: tuple[int, int] | None = None
        self.size_bytes = 0

    def open(self, path: str) -> None:
        self._descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        status = os.fstat(self._descriptor)
        self.identity, self.size_bytes = (status.st_dev, status.st_ino), status.st_size
        self._torn = (
            bool(status.st_size) and os.pread(self._descriptor, 1, status.st_size - 1) != b"\n"
        )

    def was_written_by_others(self) -> bool:
        """Return whether the file's size has changed since our last write, and record the size."""
        size_bytes = os.fstat(self._descriptor).st_size
        if size_bytes == self.size_bytes:
            return False
        self.size_bytes = size_bytes
        last = os.pread(self._descriptor, 1, size_bytes - 1) if size_bytes else b"\n"
        self._torn = last != b"\n"
        return True

    def write(self, line: bytes) -> tuple[bool, int]:
        """Return whether the line is complete, and how many of its bytes were written.

        A torn line is terminated first, so that it spoils no other.
        """
        data = b"\n" + line if self._torn else line
        written = os.write(self._descriptor, data)
        self.size_bytes += written
        if written:
            self._torn = written < len(data)
        return written == len(data), written

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        self.identity, self.size_bytes = None, 0
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)


class _In:
    """One file being read; the last line is left until it is terminated."""

    def __init__(self, path: str) -> None:
        self._descriptor = open_regular(path, os.O_RDONLY)
        status = os.fstat(self._descriptor)
        self.identity = (status.st_dev, status.st_ino)
        self.rest = b""
        os.lseek(self._descriptor, max(0, status.st_size - _MOST_BYTES), os.SEEK_SET)

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield what was appended since the last call."""
        while block := os.read(self._descriptor, 1 << 20):
            *lines, self.rest = (self.rest + block).split(b"\n")
            if len(self.rest) > _LONGEST_LINE_BYTES:
                self.rest = b"\0"  # what follows in the line makes no JSON of it
            yield from _events(lines)

    def close(self) -> None:
        os.close(self._descriptor)


class _Sieve:
    """Passes each number once, and only the events that were requested."""

    def __init__(self, since: int, type_: str | None) -> None:
        self._since = since
        self._type = None if type_ is None else _full(type_)

    def new(self, source: _In) -> Iterator[dict[str, Any]]:
        for event in source.events():
            if event["seq"] > self._since:
                self._since = event["seq"]
                if self._type in (None, event.get("type")):
                    yield event


def _open_directory(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _close(sources: list[_In]) -> None:
    for source in sources:
        source.close()


def _events(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if len(line) < _SHORTEST_LINE_BYTES:
            continue
        try:
            event = parse(line, _LONGEST_LINE_BYTES)
        except ValueError:
            continue
        if isinstance(event, dict) and _is_whole(event):
            yield event


def _is_whole(event: dict[str, Any]) -> bool:
    """Return whether an event has the fields that every reader relies on."""
    is_numbered = type(event.get("seq")) is int and isinstance(event.get("data"), dict)
    return is_numbered and all(isinstance(event.get(key), str) for key in _TEXTS)


def _full(type_: str) -> str:
    return type_ if type_.startswith(PREFIX) else PREFIX + type_
