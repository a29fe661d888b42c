"""A board that really listens on the loopback address, and a client that sends whatever it is told to."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from yolo_fs.web.server import BoardServer

PATIENCE_S = 90.0
"""Seconds for what takes one beside nothing else: four busy loops make it a hundred times slower."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)["data"]


class Client:
    """Asks one board."""

    def __init__(self, url: str, paths: Sequence[str] = ()):
        """`paths`: every address that the board says it answers."""
        self.url, self.paths = url, paths
        self.token = parse_qs(urlsplit(url).query)["token"][0]
        self.port = urlsplit(url).port or 0
        self.host = f"127.0.0.1:{self.port}"
        self.cookie = f"yolo_fs_board_{self.port}={self.token}"

    def ask(self, target: str, *, method: str = "GET", **headers: str) -> Answer:
        """Send one request, without a cookie unless `headers` has one; `_` in their names is a dash."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, target, headers=named)
            answer = connection.getresponse()
            fields = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, fields, answer.read())
        finally:
            connection.close()

    def api(self, name: str, /, **parameters: str | bytes) -> Answer:
        """Ask as the page does."""
        return self.ask(f"/api/{name}?{urlencode(parameters)}", cookie=self.cookie)

    @contextmanager
    def events(
        self, last: int | None = None, target: str = "/api/events"
    ) -> Iterator[Iterator[tuple[str, str, Any]]]:
        """Follow the events: (id, name, data)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        more = {} if last is None else {"Last-Event-ID": str(last)}
        connection.request("GET", target, headers={"cookie": self.cookie, **more})
        try:
            yield _events(connection.getresponse())
        finally:
            connection.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    fields: dict[str, str] = {}
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "data" in fields:
            yield fields.get("id", ""), fields["event"], json.loads(fields["data"])
            fields = {}


@contextmanager
def served(*roots: Path) -> Iterator[Client]:
    """Serve repositories, and stop in the end."""
    board = BoardServer([str(root) for root in roots])
    server = board.make_server(handles_signals=False)
    thread = threading.Thread(target=board.run, args=(server,), daemon=True)
    thread.start()
    until = time.monotonic() + PATIENCE_S
    while not server.started and time.monotonic() < until:
        thread.join(0.01)
    assert server.started
    try:
        paths = [route.path for route in getattr(server.config.app, "routes", ())]
        yield Client(board.url, paths)
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the server does not end"
