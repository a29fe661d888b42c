"""The real daemon as a process, and what it says, read with a deadline."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tests.e2e.artifacts import Artifact
from tests.e2e.repo import DEADLINE_S, Repo
from tests.support import forked

Event = dict[str, Any]


class Mailbox:
    """The events of one run, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()
        self._closed = False

    def fill(self, stream: Iterable[bytes]) -> None:
        """Take lines until the stream ends; runs in a thread of its own."""
        for line in stream:
            with self._changed:
                self.events.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, is_so: Callable[[list[Event]], bool], within_s: float = DEADLINE_S) -> None:
        """Wait until something holds of all events so far; fail at the deadline, or when no more can come."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or is_so(self.events), within_s)
            assert is_so(self.events), (
                f"not so after {within_s} s; closed: {self._closed}; last: {self.events[-8:]}"
            )


class Daemon:
    """`yolo-fs run --json` in a repository; may be killed and started again."""

    def __init__(
        self,
        repo: Repo,
        log: Path,
        *,
        under: Sequence[str] = (),
        prepare: str = "",
        more: Mapping[str, str] | None = None,
    ) -> None:
        """Run in a repository; `more`: is added to its environment.

        `under`: a command that starts it, as a process of the ordinary kind; else it is forked, and
        calls before what `prepare` names.
        """
        self.repo = repo
        self._log = log
        self._under = tuple(under)
        self._prepare = prepare
        self._env = {**repo.env, **(more or {})}
        self.mailbox = Mailbox()
        self.process: subprocess.Popen[bytes] | forked.Forked | None = None
        self._reader: threading.Thread | None = None
        self._channel: socket.socket | None = None
        """Where it says that it is ready, as it does to systemd."""

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> Daemon:
        """Start, and return when its first scan is done, and what follows from the branch is true.

        A helper of git that outlives a killed daemon holds its lock for a moment more (F02): try again then.
        """
        deadline = time.monotonic() + DEADLINE_S
        while not self.launch() and time.monotonic() < deadline:
            print("a helper of the killed daemon still holds its lock")
        until(lambda: self.is_ready() or not self.is_running, "the first scan is done")
        assert self.is_running, (self.mailbox.events, self.complaints())
        if not self._under:  # else it may say only a part of it here
            self.wait_for("observer.started")
        return self

    def launch(self) -> bool:
        """Start once, and return as soon as it is known whether it became the daemon."""
        self.begin()
        self.mailbox.wait(
            lambda events: any(
                one.get("event") == "daemon.started" or "ok" in one for one in events
            )
        )
        return not any("already_running" in str(one.get("data")) for one in self.mailbox.events)

    def begin(self) -> None:
        """Start, and do not wait for anything."""
        if self.process is not None:
            self.ended()
        self.mailbox = Mailbox()
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._channel.bind("")  # the kernel gives it an abstract address
        address = "@" + self._channel.getsockname()[1:].decode()
        with open(self._log, "ab") as log:
            self.process = self._spawn({**self._env, "NOTIFY_SOCKET": address}, log)
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self.mailbox.fill, args=(self.process.stdout,))
        self._reader.start()

    def _spawn(
        self, env: Mapping[str, str], log: IO[bytes]
    ) -> subprocess.Popen[bytes] | forked.Forked:
        if not self._under:
            return forked.begin_daemon(self.repo.root, env, log, self._prepare)
        return subprocess.Popen(
            [*self._under, sys.executable, "-m", "yolo_fs", "run", "--json"], cwd=self.repo.root, env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
        )  # fmt: skip

    def is_ready(self) -> bool:
        """Tell, once, that its first scan is done."""
        assert self._channel is not None
        with contextlib.suppress(BlockingIOError):
            return self._channel.recv(100) == b"READY=1"
        return False

    def _close_channel(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def committed(self) -> list[str]:
        """Return the paths that it says it committed, in order."""
        return [
            event["path"]
            for event in self.mailbox.events
            if event.get("event") == "artifact.committed"
        ]

    def wait_committed(self, artifacts: Iterable[Artifact], within_s: float = DEADLINE_S) -> None:
        """Wait until exactly these contents were reported as committed by this run."""
        missing = {(one.path, one.data) for one in artifacts}
        names = {one.path: one for one in artifacts}
        seen = 0

        def none_is_missing(events: list[Event]) -> bool:
            nonlocal seen
            for event in events[seen:]:
                if event.get("event") == "artifact.committed" and event["path"] in names:
                    one = names[event["path"]]
                    if event["data"]["blob"] in (one.blob(), one.blob("sha256")):
                        missing.discard((one.path, one.data))
            seen = len(events)
            return not missing

        self.mailbox.wait(none_is_missing, within_s)

    def wait_for(
        self, event: str, path: str = "", reason: str = "", within_s: float = DEADLINE_S
    ) -> Event:
        """Wait for an event about a path, for a reason, and return the latest of them."""

        def matching(events: list[Event]) -> list[Event]:
            return [
                one for one in events
                if one.get("event") == event and path in ("", one["path"]) and reason in ("", one["data"].get("reason"))
            ]  # fmt: skip

        self.mailbox.wait(lambda events: bool(matching(events)), within_s)
        return matching(self.mailbox.events)[-1]

    def stop(self) -> int:
        """Ask it to end and return its exit code."""
        if self.is_running:
            os.kill(self.pid, signal.SIGTERM)
        return self.ended()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop it for a moment, so that somebody else is faster for sure."""
        os.kill(self.pid, signal.SIGSTOP)
        until(lambda: _states(self.pid) == {"T"}, "it has stopped")
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def kill(self, *, with_helpers: bool = False) -> None:
        """Kill its process group with SIGKILL; `with_helpers`: every git below it too, as the kernel does when memory is short."""
        helpers = _halted_below(self.pid) if with_helpers else []
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for helper in helpers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(helper, signal.SIGKILL)
        self.ended()

    def ended(self, within_s: float = DEADLINE_S) -> int:
        """Wait for its end and return its exit code."""
        assert self.process is not None and self.process.stdout is not None
        code = self.process.wait(within_s)
        assert self._reader is not None
        self._reader.join(within_s)
        self.process.stdout.close()
        self._close_channel()
        return code

    def complaints(self) -> str:
        """Return what it wrote to stderr in all its runs."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""


def _states(pid: int) -> set[str]:
    """Return the states of the threads of a process, such as S or T; none when it has ended."""
    stats: list[str] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{pid}/task"):
            stats.append(Path(f"/proc/{pid}/task/{task}/stat").read_text())
    return {stat.rpartition(")")[2].split()[0] for stat in stats}


def _halted_below(pid: int) -> list[int]:
    """Stop a process and all below it, and return those below: who goes on may start one more, which nobody kills then."""
    halted = [pid]
    for each in halted:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGSTOP)
        until(
            lambda each=each: _states(each) <= {"T", "t", "D", "Z", "X"}, "it starts nothing more"
        )
        halted += [child for child in descendants(each) if child not in halted]
    return halted[1:]


def descendants(pid: int) -> list[int]:
    """Return the processes below one, its children first."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def until(is_so: Callable[[], bool], what: str, within_s: float = DEADLINE_S) -> None:
    """Wait for something that no event tells of."""
    deadline = time.monotonic() + within_s
    pause = threading.Event()
    while not is_so():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        pause.wait(0.02)
