"""Who asks an observer with both workers at work waits for a turn, and not for ever.

The real switchboard runs with a clock that the test turns, and with workers that end a request when the test lets them.
"""

from __future__ import annotations

import mmap
import os
import select
import socket
import struct
import subprocess
import sys
import termios
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.e2e.daemon import until
from tests.support.forked import DEADLINE_S
from yolo_fs.observer.switchboard import LIMIT_S, PATIENCE_S, QUEUED_S, QUIET_S, WORKERS
from yolo_fs.system import IS_LINUX
from yolo_fs.system.ask import FRAME_BYTES, HELLO, SOCKET

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="an observer answers on Linux alone")
STEP_S = PATIENCE_S * 0.8
SWITCHBOARD = """
import mmap, os, struct, sys
from types import SimpleNamespace
from yolo_fs.observer import switchboard
from yolo_fs.system.ask import frame
folder, clock, follower = sys.argv[1], open(sys.argv[2], "r+b"), os.fork()
if not follower:
    os.read(0, 1)
    os._exit(0)
is_slow = len(sys.argv) > 3
hand = mmap.mmap(clock.fileno(), 8)
switchboard.time = SimpleNamespace(monotonic=lambda: struct.unpack("d", hand[:])[0])

def serve(connection):
    turns = os.open(f"{folder}/turns", os.O_RDWR)
    while head := connection.recv(4):
        question = connection.recv(int.from_bytes(head, "big"))
        if question:
            os.read(turns, 1)
            answer = frame("C", 0)
        else:
            answer = switchboard.AGAIN
            with open(f"{folder}/begun", "a") as begun:
                begun.write(f"{os.getpid()}\\n")
            if is_slow:
                os.read(turns, 1)
            with open(f"{folder}/looks", "a") as looks:
                looks.write(f"{os.getpid()}\\n")
        connection.sendall(len(answer).to_bytes(4, "big") + answer)
    os._exit(0)

board = switchboard.Switchboard(folder, follower, serve)
try:
    board.run()
finally:
    board.close()
"""


class Queue:
    """Clients of one switchboard, in the order of their arrival."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._now_s = 100.0
        (folder / "clock").write_bytes(struct.pack("d", self._now_s))
        with open(folder / "clock", "r+b") as file:
            self._hand = mmap.mmap(file.fileno(), 8)
        os.mkfifo(folder / "turns")
        self._turns = os.open(folder / "turns", os.O_RDWR)
        self._clients: list[socket.socket] = []
        self.answers: list[str] = []

    def ask(self, count: int) -> None:
        """Let clients ask, and wait until each is heard."""
        for _ in range(count):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(DEADLINE_S)
            client.connect(str(self._folder / SOCKET))
            assert client.recv(len(HELLO)) == HELLO
            client.sendall((1).to_bytes(4, "big") + bytes(4) + b"?")
            self._clients.append(client)
        until(lambda: not any(map(_unread_bytes, self._clients)), "all questions are read")

    def pass_time(self, seconds: float) -> None:
        self._now_s += seconds
        self._hand[:] = struct.pack("d", self._now_s)

    def let_one_end(self) -> None:
        os.write(self._turns, b"!")

    def hear(self, count: int) -> list[str]:
        """Wait for answers, and return their letters: C for one that a worker gave, R for go and run it yourself."""
        until(lambda: self._heard() >= count, f"{count} answers, after {self.answers}")
        return sorted(self.answers)

    def _heard(self) -> int:
        for client in select.select(self._clients, [], [], 0)[0]:
            frame = client.recv(FRAME_BYTES)
            if frame[:1] != b"W":
                self.answers.append(frame[:1].decode())
                self._clients.remove(client)
                client.close()
        return len(self.answers)

    def begun(self) -> list[str]:
        """Return the workers that have begun to read, once for each time."""
        return self._written("begun")

    def _written(self, name: str) -> list[str]:
        place = self._folder / name
        return place.read_text().split() if place.exists() else []

    def looks(self) -> list[int]:
        """Return how often each worker has read new commits, which it always finds too new."""
        return sorted(Counter(self._written("looks")).values())

    def close(self) -> None:
        for client in self._clients:
            client.close()
        os.close(self._turns)
        self._hand.close()


def _unread_bytes(client: socket.socket) -> int:
    return int.from_bytes(ioctl(client, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


@contextmanager
def switchboard(folder: Path, *more: str) -> Iterator[Queue]:
    """Run a switchboard; with a further word, its workers read the branch until one is let end."""
    folder.chmod(0o700)
    queue = Queue(folder)
    words = [sys.executable, "-P", "-c", SWITCHBOARD, str(folder), str(folder / "clock"), *more]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        yield queue
        queue.close()
        assert process.stdin
        process.stdin.close()
        assert process.wait(DEADLINE_S) == 0


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with switchboard(tmp_path) as queue:
        until((tmp_path / SOCKET).exists, "it listens")
        yield queue


def test_workers_that_first_have_much_to_read_are_not_replaced_while_they_read(
    tmp_path: Path,
) -> None:
    """A worker that was replaced began again, and nobody was ever answered."""
    with switchboard(tmp_path, "slow") as queue:
        until(lambda: len(queue.begun()) == WORKERS, "both read")
        queue.pass_time(LIMIT_S * 3)
        queue.let_one_end()
        until((tmp_path / SOCKET).exists, "it listens")
        queue.let_one_end()
        until(lambda: queue.looks() == [1] * WORKERS, "both have read")
        assert len(queue.begun()) == WORKERS


def test_while_the_queue_moves_a_request_waits_for_longer_than_it_would_for_one_that_stands(
    queue: Queue,
) -> None:
    queue.ask(WORKERS + 6)
    for turn in range(1, 7):
        queue.pass_time(STEP_S)
        queue.let_one_end()
        assert queue.hear(turn) == ["C"] * turn


def test_what_a_standing_queue_refuses_runs_by_itself(queue: Queue) -> None:
    queue.ask(WORKERS + 3)
    queue.pass_time(PATIENCE_S * 1.1)
    assert queue.hear(3) == ["R"] * 3


def test_nobody_stands_in_a_queue_for_longer_than_the_command_would_take(queue: Queue) -> None:
    turns = int(QUEUED_S / STEP_S)
    queue.ask(WORKERS + turns + 3)
    for turn in range(1, turns + 1):
        queue.pass_time(STEP_S)
        queue.let_one_end()
        queue.hear(turn)
    queue.pass_time(STEP_S)
    assert queue.hear(turns + 3) == ["C"] * turns + ["R"] * 3


def test_each_worker_reads_what_is_too_new_once_more_after_each_request_whoever_answers_it(
    queue: Queue,
) -> None:
    def looks_after_a_while() -> list[int]:
        queue.pass_time(QUIET_S * 1.1)
        return queue.looks()

    until(lambda: looks_after_a_while() == [2] * WORKERS, "two looks of each")
    for request in (1, 2):
        queue.ask(1)
        queue.let_one_end()
        queue.hear(request)
        wanted = [2 + 2 * request] * WORKERS
        until(lambda wanted=wanted: looks_after_a_while() == wanted, f"{wanted} looks")
