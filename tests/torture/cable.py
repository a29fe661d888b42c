"""A way to a server of this machine that can be cut in each direction, as a network is."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from urllib.parse import urlsplit

_PIECE = 65536
_HALF_WAY_S = 0.05
"""After which a connection is torn: its answer is under way."""


class Way(Enum):
    """The direction in which nothing arrives."""

    THERE = auto()
    BACK = auto()
    """What was asked is done, and its answer is lost."""
    BOTH = auto()


class Cable:
    """Forwards connections; while it is cut, what goes the cut way is lost, and its connections end when it is mended."""

    def __init__(self, address: str, delay_s: float = 0.0, torn_each: int = 0) -> None:
        """`delay_s`: of each piece, in each direction; `torn_each`: of so many connections one is torn half way."""
        self._delay_s = delay_s
        self._torn_each = torn_each
        self._count = 0
        parts = urlsplit(address)
        self._server = (str(parts.hostname), int(parts.port or 0))
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.address = parts._replace(netloc=f"127.0.0.1:{port}").geturl()
        self._cut: Way | None = None
        self._torn: set[socket.socket] = set()
        """Ends of connections that have lost something, or would."""
        self._lock = threading.Lock()

    @classmethod
    @contextmanager
    def to(cls, address: str, delay_s: float = 0.0, torn_each: int = 0) -> Iterator[Cable]:
        """Lay one to a server, and take it away at the end."""
        cable = cls(address, delay_s, torn_each)
        threading.Thread(target=cable._listen, daemon=True).start()
        try:
            yield cable
        finally:
            _end(cable._listening)
            cable.mend()

    def cut(self, way: Way) -> None:
        with self._lock:
            self._cut = way

    def mend(self) -> None:
        with self._lock:
            self._cut = None
            for each in self._torn:
                _end(each)
            self._torn.clear()

    def _listen(self) -> None:
        with contextlib.suppress(OSError), self._listening:
            while True:
                client, _ = self._listening.accept()
                self._count += 1
                if self._torn_each and self._count % self._torn_each == 0:
                    threading.Timer(_HALF_WAY_S, _end, (client,)).start()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server:
            there = threading.Thread(
                target=self._forward, args=(Way.THERE, client, server), daemon=True
            )
            there.start()
            self._forward(Way.BACK, server, client)
            there.join()

    def _forward(self, way: Way, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE):
                time.sleep(self._delay_s)
                if self._takes(way, source, target):
                    target.sendall(piece)
        if self._takes(way, source, target):
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)

    def _takes(self, way: Way, *ends: socket.socket) -> bool:
        with self._lock:
            if self._cut in (way, Way.BOTH):
                self._torn.update(ends)
            return not self._torn.issuperset(ends)


def _end(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
