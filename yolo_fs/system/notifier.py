"""Notices over NATS: whoever publishes wakes the others at once.

It carries no state. Whatever it loses, duplicates or delays, the git remote is polled anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from yolo_fs.core.foreign_json import parse

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.protocol.parser import Parser

SCHEMES = ("nats://", "tls://", "ws://", "wss://")
AGAIN_S = 1.0
"""Pause before the next attempt to connect."""
_CONNECT_S = 5
_PING_S = 5
"""Interval of pings to the server. The second unanswered one ends the connection."""
_LONGEST_BYTES = 4096
_RECEIVED_BYTES = 1 << 16
"""Largest message or line accepted from a server. Its description of itself has some thousand
bytes."""
_HEARD_AT_ONCE = 64
"""Messages queued for processing. More are dropped, because a notice may be lost."""


class Notifier:
    """A thread that keeps a connection, receives the others' notices and sends its own."""

    def __init__(
        self,
        servers: str,
        subject: str,
        on_notice: Callable[[str, str], None],
        changed: Callable[[str], None],
    ):
        """Configure the notifier. `servers`: addresses, separated by commas.

        `on_notice` receives the ref and the object of each notice of others; both are empty after a
        connection was made. `changed` receives why there is no connection, or an empty text. Both
        are called from the thread.
        """
        self._servers = servers.split(",")
        self._subject = subject
        self._on_notice = on_notice
        self._changed = changed
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._client: Client | None = None
        self._refusal = ""
        """Why this side closed the connection."""
        self._thread = threading.Thread(target=self._run, name="team-notifier", daemon=True)

    def start(self) -> None:
        """Start the thread. There need not be a server yet."""
        self._thread.start()

    def notify(self, ref: str, oid: str) -> None:
        """Notify the others that a ref has moved. Without a connection the notice is lost."""
        message = json.dumps({"ref": ref, "oid": oid}).encode()
        self._begin(lambda: self._send(message))

    def stop(self) -> None:
        """Close the connection and end the thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(timeout=2.0)

    def _begin(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(step()))

    def _run(self) -> None:
        # Also ends what the client has started: its watches go on for seconds after it was closed.
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        while not self._ended.is_set():
            closed = asyncio.Event()
            try:
                client = await self._connect(closed)
            except Exception as error:  # of the network, of TLS, of the server's rules
                self._changed(str(error) or type(error).__name__)
            else:
                await self._stay_connected(client, closed)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), AGAIN_S)

    async def _connect(self, closed: asyncio.Event) -> Client:
        from nats.aio.client import Client

        async def close() -> None:
            closed.set()

        async def ignore(_error: Exception) -> None:
            """Only the end of the connection matters."""

        client = Client()
        client._ps = _build_bounded_parser(client, self._refuse)
        self._refusal = ""
        await asyncio.wait_for(
            client.connect(
                self._servers,
                name="yolo-fs",
                allow_reconnect=False,
                connect_timeout=_CONNECT_S,
                ping_interval=_PING_S,
                no_echo=True,
                closed_cb=close,
                disconnected_cb=close,
                error_cb=ignore,
                **_read_credentials(),
            ),
            2 * _CONNECT_S,
        )
        await client.subscribe(
            self._subject,
            cb=self._hear,
            pending_msgs_limit=_HEARD_AT_ONCE,
            pending_bytes_limit=_HEARD_AT_ONCE * _LONGEST_BYTES,
        )
        await client.flush(_CONNECT_S)
        return client

    async def _stay_connected(self, client: Client, closed: asyncio.Event) -> None:
        self._client = client
        self._changed("")
        self._on_notice("", "")  # whatever rang meanwhile
        waits = {asyncio.ensure_future(event.wait()) for event in (closed, self._ended)}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        self._client = None
        if not self._ended.is_set():
            self._changed(self._refusal or "the connection ended")
        with contextlib.suppress(Exception):  # it may have ended by itself
            await client.close()

    def _refuse(self, why: str) -> None:
        self._refusal = why

    async def _send(self, message: bytes) -> None:
        with contextlib.suppress(Exception):  # the others look by themselves
            if self._client is not None:
                await self._client.publish(self._subject, message)
                await self._client.flush(_CONNECT_S)

    async def _hear(self, message: Msg) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            payload = parse(message.data, _LONGEST_BYTES)
            self._on_notice(str(payload["ref"]), str(payload["oid"]))


def _build_bounded_parser(client: Client, refuse: Callable[[str], None]) -> Parser:
    """Return a client's parser with a limit on what it accepts.

    The library waits for as many bytes as a server announces, and keeps them.
    """
    from nats.errors import ProtocolError
    from nats.protocol.parser import AWAITING_MSG_PAYLOAD, Parser

    class BoundedParser(Parser):
        async def parse(self, data: bytes = b"") -> None:
            await super().parse(data)
            awaited = self.needed if self.state == AWAITING_MSG_PAYLOAD else len(self.buf)
            if awaited > _RECEIVED_BYTES:
                self.reset()
                refuse(f"the server sent {awaited} bytes; the limit is {_RECEIVED_BYTES}")
                raise ProtocolError

    return BoundedParser(client)


def _read_credentials() -> dict[str, Any]:
    """Return the credentials in the environment, under the names of NATS's own tools."""
    options: dict[str, Any] = {}
    if credentials := os.environ.get("NATS_CREDS"):
        options["user_credentials"] = credentials
    if authority := os.environ.get("NATS_CA"):
        options["tls"] = ssl.create_default_context(cafile=authority)
    return options
