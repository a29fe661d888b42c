"""Reports which files below a directory may have changed, and when that is no longer known.

Events are an accelerator, never the truth: a `Hint` means "look at this path", a `Doubt` means
"look at everything". The periodic scan makes the program correct.

On Linux, watchdog's reader of inotify is extended to report what it loses. Elsewhere, and where a
release of watchdog differs inside, its public observer is used, and only the scan finds what it has
missed. See docs/dev/faults.md#f10 to #f13 and #f36.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from typing import Protocol

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from yolo_fs.core.reasons import Reason
from yolo_fs.system import IS_LINUX
from yolo_fs.system.files import identity_at
from yolo_fs.system.system import Degraded

_log = logging.getLogger(__name__)


class Hint(StrEnum):
    """What was seen of a file."""

    CLOSED = "closed"
    """A writer closed it, or it was renamed into place: ready to be looked at."""
    CREATED = "created"
    """It is there, perhaps still being written: let it settle."""
    GONE = "gone"
    """Deleted, or renamed away."""


class Doubt(StrEnum):
    """Why everything has to be looked at."""

    OVERFLOW = "overflow"
    """The kernel dropped events."""
    WATCH_LIMIT = "watch_limit"
    """The kernel refused to watch a directory."""
    UNWATCHED = "unwatched"
    """Fewer directories are watched than exist."""
    ROOT_MISSING = "root_missing"
    ROOT_REPLACED = "root_replaced"
    """The root was replaced by another directory, or has come back."""
    EMITTER_DIED = "emitter_died"
    """A thread of the watcher ended, or failed on an event."""
    MOVED = "moved"
    """A directory was renamed; directories in it may have lost their watch."""
    MOVED_OUT = "moved_out"
    """A directory left the tree; there are no events for the files in it."""
    CALLBACK_FAILED = "callback_failed"
    """`on_path` or `wants` raised, so a hint is lost."""
    RETRIED = "retried"
    """The watches were set up again after a degraded time."""


_EVENTS: list[type[FileSystemEvent]] = [
    FileClosedEvent, FileMovedEvent, FileCreatedEvent, FileDeletedEvent, DirMovedEvent,
    DirCreatedEvent, DirDeletedEvent,
]  # fmt: skip
"""Never Opened, ClosedNoWrite or Modified: walking 20,000 directories would then overflow the
queue, and the answer to the overflow is to walk again."""

_OUT_OF_WATCHES = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_SYSCTL = (
    "sysctl fs.inotify.max_user_watches fs.inotify.max_user_instances shows the limits; "
    "root may raise them"
)


class Watcher:
    """Watches one directory tree.

    `on_path` and `on_doubt` are called from other threads and only enqueue.
    """

    def __init__(
        self,
        root: str,
        on_path: Callable[[str, Hint], None],
        on_doubt: Callable[[str], None],
        *,
        wants: Callable[[str], bool] = lambda _path: True,
        retry_s: float = 60.0,
    ) -> None:
        """Prepare to watch `root`. `on_path` and `wants` receive POSIX paths below it."""
        self.root = os.path.abspath(root)
        self._prefix = self.root.rstrip("/") + "/"
        self._on_path = on_path
        self._on_doubt = on_doubt
        self._wants = wants
        self._retry_s = retry_s
        self._lock = threading.RLock()
        """Orders `start`, `stop` and `check`.

        Never taken by a callback: `stop` joins their threads.
        """
        self._running = False
        self._session: _Session | None = None
        self._identity: tuple[int, int] | None = None
        self.degraded: Degraded | None = None
        """Why there are no events for part of the tree, or None when all of it is watched."""
        self._retry_at = 0.0
        self._lost: Doubt | None = None
        self._tree_changed = False
        self._short_counts = 0

    def start(self) -> None:
        """Watch from now on.

        Start first, then scan: what happens between is seen twice, never missed.
        """
        with self._lock:
            if not self._running:
                self._running = True
                self._arm()

    def stop(self) -> None:
        """End all threads; no callback comes after the return."""
        with self._lock:
            self._running = False
            self._disarm()

    def check(self) -> None:
        """Find out whether the watches still cover the tree, and set them up again if not."""
        with self._lock:
            if not self._running:
                return
            identity = _identity(self.root)
            if identity is None:
                self._lose_root()
            elif why := self._find_doubt(identity):
                self._disarm()
                self._arm()
                self._doubt(why)

    def _find_doubt(self, identity: tuple[int, int]) -> Doubt | None:
        if identity != self._identity:
            return Doubt.ROOT_REPLACED
        if self._lost is not None:
            return self._lost
        if self._session is not None and not self._session.is_alive():
            return Doubt.EMITTER_DIED
        if self._session is None or self.degraded is not None:
            return Doubt.RETRIED if time.monotonic() >= self._retry_at else None
        return self._count_watches(self._session) if self._tree_changed else None

    def _count_watches(self, session: _Session) -> Doubt | None:
        """Compare the number of watches with the number of directories.

        One low count may only lag. The second asks for new watches. If the count stays low, the
        watcher is degraded.
        """
        self._tree_changed = False
        expected = sum(1 for _ in _directories(self.root))
        watched = session.watched()
        if watched is None or watched >= expected:
            self._short_counts = 0
            return None
        self._short_counts += 1
        if self._short_counts >= 4:
            self._degrade(
                Reason.WATCH_LIMIT, f"{watched} of {expected} directories are watched", _SYSCTL
            )
            self._doubt(Doubt.UNWATCHED)
            return None
        self._tree_changed = True
        return Doubt.UNWATCHED if self._short_counts == 2 else None

    def _lose_root(self) -> None:
        if self._identity is None:
            return
        self._disarm()
        self._identity = None
        self._degrade(Reason.NOT_INITIALISED, f"{self.root} is not there")
        self._doubt(Doubt.ROOT_MISSING)

    def _arm(self) -> None:
        self._identity = _identity(self.root)
        self._lost = self.degraded = None
        self._tree_changed = True
        try:
            self._session = self._open_session()
        except OSError as error:
            self._degrade(*_diagnose_error(self.root, error))

    def _open_session(self) -> _Session:
        """Return new watches, which report what they lose wherever that is possible."""
        relay = _Relay(self._heed)
        # A thread of watchdog that is stopped while it reads calls that an error.
        logging.getLogger("watchdog.observers.inotify").addFilter(_is_worth_telling)
        if IS_LINUX:
            try:
                from yolo_fs.system.inotify import InotifySession

                return InotifySession(
                    self.root,
                    relay,
                    _EVENTS,
                    partial(self._lose, Doubt.OVERFLOW),
                    partial(self._lose, Doubt.EMITTER_DIED),
                    self._refused,
                )
            except (ImportError, AttributeError, TypeError, ValueError):
                _log.warning("watchdog differs inside; its public observer is used", exc_info=True)
        return _PublicSession(self.root, relay)

    def _disarm(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _degrade(self, reason: Reason, detail: str, hint: str = "") -> None:
        self._retry_at = time.monotonic() + self._retry_s
        self.degraded = Degraded(reason, detail, hint)

    def _refused(self, path: bytes, error: OSError) -> None:
        if self.degraded is None and error.errno in _OUT_OF_WATCHES:
            self._degrade(Reason.WATCH_LIMIT, f"{os.fsdecode(path)}: {error.strerror}", _SYSCTL)
            self._doubt(Doubt.WATCH_LIMIT)

    def _lose(self, why: Doubt) -> None:
        """Ask for a scan now, and for new watches (and one more scan) at the next `check`."""
        self._lost = why
        self._doubt(why)

    def _doubt(self, why: Doubt) -> None:
        try:
            self._on_doubt(why)
        except Exception:
            _log.exception("a request to scan %s was lost (%s)", self.root, why)

    def _heed(self, event: FileSystemEvent) -> None:
        # An exception here would end watchdog's thread for good, and silently. See
        # docs/dev/faults.md#f13.
        try:
            if event.is_directory:
                self._note_directory_event(event)
            else:
                self._note_file_event(event)
        except Exception:
            _log.exception("an event below %s was lost", self.root)
            self._doubt(Doubt.CALLBACK_FAILED)

    def _note_file_event(self, event: FileSystemEvent) -> None:
        source, target = os.fsdecode(event.src_path), os.fsdecode(event.dest_path)
        match event:
            case FileClosedEvent():
                self._report(source, Hint.CLOSED)
            case FileCreatedEvent() | FileModifiedEvent():
                self._report(source, Hint.CREATED)
            case FileDeletedEvent():
                self._report(source, Hint.GONE)
            case FileMovedEvent():
                # Renamed in from outside: no source. Moved along with its directory: synthetic,
                # maybe still open.
                self._report(source, Hint.GONE)
                self._report(target, Hint.CREATED if event.is_synthetic else Hint.CLOSED)

    def _note_directory_event(self, event: FileSystemEvent) -> None:
        self._tree_changed = True
        if event.is_synthetic:
            return  # what it lies in was looked into
        if isinstance(event, DirCreatedEvent):
            self._look_into(os.fsdecode(event.src_path))
        elif isinstance(event, DirMovedEvent) and event.dest_path:
            self._look_into(os.fsdecode(event.dest_path))
            # If a directory is renamed while watchdog walks it, its subdirectories stay unwatched,
            # and watchdog does not notice.
            if event.src_path:
                self._lost = self._lost or Doubt.MOVED
        elif isinstance(event, DirMovedEvent):
            self._lose(Doubt.MOVED_OUT)

    def _look_into(self, directory: str) -> None:
        # What was written before the watch existed has sent no event.
        for parent in _directories(directory):
            with contextlib.suppress(OSError), os.scandir(parent) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        self._report(entry.path, Hint.CREATED)

    def _report(self, path: str, hint: Hint) -> None:
        if not path.startswith(self._prefix):
            return
        relative = path.removeprefix(self._prefix)
        if self._wants(relative):
            self._on_path(relative, hint)


def _identity(root: str) -> tuple[int, int] | None:
    return identity_at(root) if os.path.isdir(root) and not os.path.islink(root) else None


def _directories(root: str) -> Iterator[str]:
    """Yield each readable directory of the tree, links not followed."""
    waiting = [root]
    while waiting:
        parent = waiting.pop()
        try:
            with os.scandir(parent) as entries:
                waiting.extend(
                    entry.path for entry in entries if entry.is_dir(follow_symlinks=False)
                )
        except OSError:
            continue
        yield parent


def _diagnose_error(root: str, error: OSError) -> tuple[Reason, str, str]:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Reason.NOT_INITIALISED, f"{root} is not there", ""
    hint = _SYSCTL if error.errno in _OUT_OF_WATCHES else "changes are found by the periodic scan"
    return Reason.WATCH_LIMIT, f"no file events here: {error.strerror}", hint


class _Relay(FileSystemEventHandler):
    def __init__(self, heed: Callable[[FileSystemEvent], None]) -> None:
        self._heed = heed

    def dispatch(self, event: FileSystemEvent) -> None:
        self._heed(event)


class _Session(Protocol):
    """The threads of one set of watches."""

    def is_alive(self) -> bool: ...

    def watched(self) -> int | None:
        """Return how many directories are watched; None where that cannot be told."""

    def close(self) -> None: ...


def _is_worth_telling(record: logging.LogRecord) -> bool:
    return "called when the thread is inactive" not in record.getMessage()


class _PublicSession:
    """watchdog's own observer for this system, which does not report what it loses."""

    def __init__(self, root: str, relay: _Relay) -> None:
        # `mkdir -p` makes it add a directory twice, and it warns of that.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        before = set(threading.enumerate())
        self._observer = Observer()
        # Not every system reports the end of writing.
        events = [*_EVENTS, FileModifiedEvent]
        self._observer.schedule(relay, root, recursive=True, event_filter=events)
        self._observer.start()
        # Where one of them reads for the others, only its end shows that no more events come.
        self._threads = [
            thread
            for thread in threading.enumerate()
            if thread not in before and type(thread).__module__.startswith("watchdog.")
        ]

    def is_alive(self) -> bool:
        return bool(self._observer.emitters) and all(thread.is_alive() for thread in self._threads)

    def watched(self) -> int | None:
        return None

    def close(self) -> None:
        self._observer.stop()
        self._observer.join()
