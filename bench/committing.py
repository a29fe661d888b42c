"""Contenders of `bench.faults`: each is started, given an artifact, killed, and waited for in the
same words.

A service is given an artifact by writing it. A script is run after the write, once, as it stands in
people's prompts: it says with its exit code when it fails, and nobody tries again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol

from bench import peers
from bench.repositories import put

File = tuple[str, bytes]
SUBJECT = "docs(01): summary"
_GO = b"go\n"


class Contender(Protocol):
    """Somebody who commits artifacts in one work tree."""

    def start(self) -> None:
        """Be there, from the beginning or again."""

    def submit(self, *files: File) -> float:
        """Write artifacts and have them committed, all at once; return the clock when committing
        could begin.
        """

    def kill(self) -> None:
        """Kill whoever is committing now, with every process of its group."""

    def settle(self, is_done: Callable[[], bool], at_most_s: float | None = None) -> None:
        """Return when it is done, or when nothing more is to be hoped for; at the latest after
        `at_most_s`.
        """

    def stop(self) -> None:
        """End."""


class Served:
    """A service that watches."""

    def __init__(self, service: peers.Service, root: str, patience_s: float):
        self._service = service
        self._root = root
        self._patience_s = patience_s
        self._running = ExitStack()
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start watching."""
        self._child = self._running.enter_context(self._service.run(self._root))

    def submit(self, *files: File) -> float:
        """Write; the rest is the service's."""
        began = time.perf_counter()
        for path, data in files:
            put(self._root, path, data)
        return began

    def kill(self) -> None:
        """Kill the service and every process of its group."""
        assert self._child is not None
        peers.end_group(self._child, signal.SIGKILL)
        self.stop()

    def settle(self, is_done: Callable[[], bool], at_most_s: float | None = None) -> None:
        """Wait as long as anybody would."""
        deadline = time.monotonic() + (self._patience_s if at_most_s is None else at_most_s)
        while not is_done() and time.monotonic() < deadline:
            time.sleep(0.02)

    def stop(self) -> None:
        """End the service as its user does."""
        self._running.close()


class Scripted:
    """A script that every agent runs for itself."""

    def __init__(self, script: peers.Script, root: str):
        self._script = script
        self._root = root
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Nothing runs in between."""

    def submit(self, *files: File) -> float:
        """Write, then run the script for each file; all begin at the same moment."""
        workers = [self._worker(path) for path, _ in files]
        began = time.perf_counter()
        for (path, data), worker in zip(files, workers, strict=True):
            put(self._root, path, data)
            assert worker.stdin is not None
            worker.stdin.write(_GO)
            worker.stdin.flush()
        self._workers += workers
        return began

    def kill(self) -> None:
        """Kill every script that still runs, with its git."""
        self._end(signal.SIGKILL)

    def settle(self, is_done: Callable[[], bool], at_most_s: float | None = None) -> None:
        """Wait for the scripts; what they have not done then is not done."""
        for worker in self._workers:
            worker.communicate()
        self._workers.clear()

    def stop(self) -> None:
        """End what still runs."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        for worker in self._workers:
            peers.end_group(worker, how)
        self._workers.clear()

    def _worker(self, path: str) -> subprocess.Popen[bytes]:
        quiet: Sequence[str] = (*self._script.command, self._root, path, SUBJECT)
        worker = subprocess.Popen(
            quiet,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )
        assert worker.stdout is not None
        worker.stdout.readline()
        return worker
