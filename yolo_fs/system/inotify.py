"""inotify through watchdog, extended to report lost events and unwatched directories.

watchdog 7.1 hides both. This is the only module that imports watchdog's internals. Where they
differ, `watch` uses its public observer.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import time
from collections.abc import Callable
from typing import Any

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import inotify_move_event_grouper
from watchdog.observers.api import BaseObserver
from watchdog.observers.inotify import InotifyFullEmitter
from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchCallback,
    WatchDescriptor,
)
from watchdog.utils.delayed_queue import DelayedQueue

_log = logging.getLogger(__name__)

PAIRED_WITHIN_S = 0.1
"""How long half a rename, and all events behind it, wait for the other half. A move out of the tree
has none."""
_DRAFT = re.compile(rb"\..+\.yolo-tmp\..+|.+\.lock", re.DOTALL)
"""Temporary name of a file of ours or of git. The file is reported under its final name."""


class _Reader(InotifyFD):
    """The reader of the inotify queue, extended to report what watchdog 7.1 hides."""

    def __init__(
        self,
        on_overflow: Callable[[], None],
        on_failure: Callable[[], None],
        on_refusal: Callable[[bytes, OSError], None],
    ) -> None:
        super().__init__()
        self._on_overflow = on_overflow
        self._on_failure = on_failure
        self._on_refusal = on_refusal

    def handle_event(self, event: InotifyEvent) -> None:
        if event.is_queue_overflow:
            # watchdog would remove and add every watch here without reading. Each removal queues an
            # event, so that above `max_queued_events` directories this overflows the queue again,
            # forever.
            self._on_overflow()
            return
        if not event.is_directory and _DRAFT.fullmatch(event.name):
            return  # four events of each file that is replaced, through three threads
        try:
            super().handle_event(event)
        except Exception as error:
            # Two directories had the same path one after another. The older one, kept alive by an
            # open descriptor, is reported gone last, and watchdog looks for it twice. Nothing is
            # lost.
            if not (event.is_ignored and isinstance(error, KeyError)):
                _log.exception("inotify event lost: %r", event)
                self._on_failure()

    def add_callback(
        self, path: bytes, mask: Mask, callback: WatchCallback, id_: CallbackId
    ) -> WatchDescriptor:
        # The base class warns when a directory is added twice, which `mkdir -p` always causes. It
        # treats EACCES as success, and its caller swallows ENOSPC. See docs/dev/faults.md#f11.
        if not os.access(path, os.R_OK):
            code = errno.EACCES if os.path.lexists(path) else errno.ENOENT
            raise OSError(code, os.strerror(code))
        try:
            with self._lock:
                watch = self._get_or_create_watch(path, mask)
                watch.callbacks[id_] = callback
                return watch.wd
        except OSError as error:
            self._on_refusal(path, error)
            raise

    def watched(self) -> int:
        return len(self._watch_for_wd)


class _PairingQueue(DelayedQueue[Any]):
    """Releases a rename when its second half arrives, while watchdog's own queue sleeps on."""

    def get(self) -> Any:
        with self._not_empty:
            while not self._closed:
                left_s = None
                if self._queue:
                    _, put_at, is_half = self._queue[0]
                    left_s = put_at + self.delay * is_half - time.monotonic()
                    if left_s <= 0:
                        return self._queue.popleft()[0]
                self._not_empty.wait(left_s)
        return None


class _Emitter(InotifyFullEmitter):
    """Reports files at once, without one more queue and thread."""

    def __init__(self, *arguments: Any, heed: Callable[[FileSystemEvent], None], **named: Any):
        super().__init__(*arguments, **named)
        self._heed = heed

    def queue_event(self, event: FileSystemEvent) -> None:
        if event.is_directory:  # to look into it would keep us from the second half of a rename
            super().queue_event(event)
        elif type(event) in (self._event_filter or ()):
            self._heed(event)


class InotifySession:
    """The threads of one set of watches: what InotifyObserver is, with our reader and emitter."""

    def __init__(
        self,
        root: str,
        relay: FileSystemEventHandler,
        events: list[type[FileSystemEvent]],
        on_overflow: Callable[[], None],
        on_failure: Callable[[], None],
        on_refusal: Callable[[bytes, OSError], None],
    ) -> None:
        """Watch a directory tree. `on_overflow`: events were lost. `on_failure`: one could not be
        understood. `on_refusal`: a directory is not watched.

        Raises:
            OSError: `root` cannot be watched.
        """
        (tried := _PairingQueue(0.0)).put(None, delay=True)
        tried.get()  # where watchdog differs inside, it fails here and not in a thread
        inotify_move_event_grouper.InotifyMoveEventGrouper.delay = PAIRED_WITHIN_S
        inotify_move_event_grouper.DelayedQueue = _PairingQueue  # type: ignore[attr-defined]
        reader = self._reader = _Reader(on_overflow, on_failure, on_refusal)
        self._observer = BaseObserver(_Emitter, inotify_fd=reader, heed=relay.dispatch)
        self._observer.schedule(relay, root, recursive=True, event_filter=events)
        reader.start()
        try:
            self._observer.start()
        except BaseException:
            self._end_reader()
            raise

    def is_alive(self) -> bool:
        """Return whether all of its threads run."""
        emitters = self._observer.emitters
        threads = (self._reader, self._observer, *emitters)
        return bool(emitters) and all(thread.is_alive() for thread in threads)

    def watched(self) -> int:
        """Return how many directories are watched."""
        return self._reader.watched()

    def close(self) -> None:
        """End all threads; no event comes after the return."""
        self._observer.stop()
        self._observer.join()
        self._end_reader()

    def _end_reader(self) -> None:
        self._reader.stop()
        self._reader.join()
