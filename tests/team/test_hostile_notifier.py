"""A server that is none of NATS: what it sends is bounded, and however often it rings, the remote is left in peace."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import pytest

from tests.team.work_trees import CloneTree
from yolo_fs.system.notifier import Notifier
from yolo_fs.team.background_sync import HEARD_S, RemoteSyncThread
from yolo_fs.team.membership import join
from yolo_fs.workspace.settings import load

pytest.importorskip("nats")
INFO = b'INFO {"server_id":"x","version":"2.10","max_payload":1048576,"proto":1,"headers":true}\r\n'
PATIENCE_S = 60.0
Attack = Callable[[socket.socket, bytes, bytes], None]


def huge(to: socket.socket, subject: bytes, sid: bytes) -> None:
    to.sendall(b"MSG %s %s %d\r\n" % (subject, sid, 300_000_000))
    for _ in range(300):
        to.sendall(b"x" * 1_000_000)


def endless_line(to: socket.socket, _subject: bytes, _sid: bytes) -> None:
    for _ in range(100):
        to.sendall(b"A" * 1_000_000)


def endless_blanks(to: socket.socket, _subject: bytes, _sid: bytes) -> None:
    to.sendall(b"MSG")
    for _ in range(100):
        to.sendall(b" " * 1_000_000)


def deep(to: socket.socket, subject: bytes, sid: bytes) -> None:
    message = b"[" * 3_000
    to.sendall(b"MSG %s %s %d\r\n%s\r\n" % (subject, sid, len(message), message))


def flood(to: socket.socket, subject: bytes, sid: bytes) -> None:
    message = b'{"ref":"a","oid":"b"}'
    for _ in range(100):
        to.sendall((b"MSG %s %s %d\r\n%s\r\n" % (subject, sid, len(message), message)) * 200)
        time.sleep(0.05)


@contextmanager
def forged(attack: Attack) -> Iterator[int]:
    """A server that says what a client waits for, and attacks it once it listens."""
    clients: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(client: socket.socket) -> None:
            with client, suppress(OSError):
                client.sendall(INFO)
                while data := client.recv(65_536):
                    for line in data.split(b"\r\n"):
                        if line.startswith(b"PING"):
                            client.sendall(b"PONG\r\n")
                        if line.startswith(b"SUB yolo-fs."):
                            _, subject, *_, sid = line.split()
                            threading.Thread(
                                target=guarded, args=(client, subject, sid), daemon=True
                            ).start()

        def guarded(client: socket.socket, subject: bytes, sid: bytes) -> None:
            with suppress(OSError):
                attack(client, subject, sid)

        def accept() -> None:
            try:
                while True:
                    client, _ = server.accept()
                    clients.append(client)
                    threading.Thread(target=serve, args=(client,), daemon=True).start()
            except OSError:
                pass

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            for client in clients:
                client.close()


def until(is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("attack", [huge, endless_line, endless_blanks])
def test_what_a_server_sends_without_end_ends_the_connection_and_says_why(attack: Attack) -> None:
    changes: list[str] = []
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with forged(attack) as port:
        notifier = Notifier(
            f"nats://127.0.0.1:{port}", "yolo-fs.x.main", lambda *_: None, changes.append
        )
        notifier.start()
        until(lambda: any("the limit is 65536" in why for why in changes))
        notifier.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 64 << 10


def test_a_deep_message_rings_for_nobody_and_the_connection_stays() -> None:
    heard: list[str] = []
    changes: list[str] = []

    def deep_then_sound(to: socket.socket, subject: bytes, sid: bytes) -> None:
        deep(to, subject, sid)
        message = b'{"ref":"a","oid":"sound"}'
        to.sendall(b"MSG %s %s %d\r\n%s\r\n" % (subject, sid, len(message), message))

    with forged(deep_then_sound) as port:
        address = f"nats://127.0.0.1:{port}"
        notifier = Notifier(
            address, "yolo-fs.x.main", lambda _, oid: heard.append(oid), changes.append
        )
        notifier.start()
        until(lambda: "sound" in heard)
        notifier.stop()
    assert heard == ["", "sound"] and changes[0] == ""


class Looks(RemoteSyncThread):
    """A thread that notes when it looks at the remote."""

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self.at: list[float] = []

    def _exchange(self, *parts: Any) -> None:
        self.at.append(time.monotonic())
        super()._exchange(*parts)


def test_however_many_bells_ring_the_remote_is_looked_at_once_in_a_while(
    new_clone: Callable[[str], CloneTree],
) -> None:
    clone = new_clone("a")
    with forged(flood) as port:
        joined = join(clone.repository, "main", "origin", lane=f"nats://127.0.0.1:{port}")
        sync = Looks(str(clone.root), load(str(clone.root)), joined)
        sync.start(lambda: None)
        until(lambda: len(sync.at) > 6)
        before = len(sync.at)
        sync.poke()  # what is there to be published waits for nothing
        until(lambda: len(sync.at) > before)
        sync.stop()
    assert all(later - earlier >= HEARD_S * 0.9 for earlier, later in pairwise(sync.at[:before]))
