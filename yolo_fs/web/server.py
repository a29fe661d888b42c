"""Serves the board on the loopback address: a page, its files, JSON; it changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import os
import resource
import secrets
import signal
import socket
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.company.overview import overview
from yolo_fs.core.json_form import envelope
from yolo_fs.core.reasons import Finding, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.schemas.base import build_shapes
from yolo_fs.snapshots.reader import SnapshotReader
from yolo_fs.snapshots.timeline import Timeline
from yolo_fs.system.readers import READERS
from yolo_fs.system.text_checks import Limits
from yolo_fs.web.access import HEADERS, LOOPBACK, Gatekeeper, RefusedRequest, is_foreign
from yolo_fs.web.drawing import NARROWEST, PLOTS, WIDEST
from yolo_fs.web.feed import EventFeed
from yolo_fs.web.opening import browser_opened, leading_to

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_LONGEST_PARAMETER = 1_000
_DIGITS = 16
_BUDGET_S = 0.25
"""Time limit for reading a phase's past per answer; the page asks again for the rest."""
_CLOSING_S = 1
"""Longest wait for open connections when the server ends."""
_SILENCE_S = 10.0
"""How long a connection may stay open without a request: any user of the machine can open one."""
_MOST_CONNECTIONS = 128
_ACCEPTED_AT_ONCE = 1
"""asyncio accepts that many before it tells us of the first."""
_WAITING = 128
"""Connections that the kernel keeps until they are accepted."""
_STATUS = {
    Reason.NOT_AN_ARTIFACT: 404,
    Reason.FILE_MISSING: 404,
    Reason.UNKNOWN_COMMIT: 404,
    Reason.UNKNOWN_NAME: 404,
    Reason.BAD_FORMAT: 400,
}


class RequestGuard:
    """Passes what the gatekeeper admits, and gives every answer the same headers."""

    def __init__(self, app: ASGIApp, gatekeeper: Gatekeeper):
        self._app = app
        self._gatekeeper = gatekeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":  # nothing else is served, and nothing else is judged
            return
        refused = await run_in_threadpool(self._refusal, scope)
        if refused is None:
            await self._app(scope, receive, send_guarded)
            return
        headers = {"allow": "GET, HEAD"} if refused.status == 405 else {}
        answer = PlainTextResponse(refused.why + "\n", refused.status, headers)
        await answer(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> RefusedRequest | None:
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1:
            return RefusedRequest(400, "Send exactly one Host header.")
        given = Request(scope).query_params.get("token", "") if scope["path"] == "/" else ""
        is_of_another = scope["state"]["is_of_another"]
        return self._gatekeeper.refusal(scope["method"], headers, given, is_of_another)


class BoardSite:
    """The page and the answers, for one or more repositories."""

    def __init__(self, starts: Sequence[str], gatekeeper: Gatekeeper):
        """Show the repositories that the folders `starts` lie in.

        Raises:
            YoloError: NOT_A_REPOSITORY, BARE_REPOSITORY, GIT_MISSING.
        """
        self._gatekeeper = gatekeeper
        self._readers = [SnapshotReader(start) for start in starts]
        self._feeds = [EventFeed(reader) for reader in self._readers]
        self._files = dict(_read_page_files())
        self._answers: Mapping[str, Callable[[Request, SnapshotReader], Any]] = {
            "repositories": lambda *_: [os.path.basename(each.root) for each in self._readers],
            "artifacts": lambda request, reader: reader.artifacts(_given(request, "at", "HEAD")),
            "company": lambda _, reader: _read_company(reader),
            "handoffs": lambda request, reader: reader.handoffs(_given(request, "at")),
            "timeline": lambda request, reader: self._read_timeline(
                request, reader, _BUDGET_S if _given(request, "look") else 0.0
            ),
            "artifact": lambda request, reader: reader.artifact(
                _given(request, "path"), _given(request, "at")
            ).as_json(),
        }

    @property
    def app(self) -> ASGIApp:
        """The application, guarded."""
        answers = [
            Route(f"/api/{name}", self._answering(f"board-{name}", answer))
            for name, answer in self._answers.items()
        ]
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/{name}", self._file),
                Route("/api/board", self._board),
                Route("/api/events", self._events),
                Route("/api/plot", self._plot),
                *answers,
            ],
            middleware=[
                Middleware(RequestGuard, gatekeeper=self._gatekeeper),
                Middleware(GZipMiddleware, compresslevel=3),
            ],
            lifespan=self._run_lifespan,
        )

    @contextlib.asynccontextmanager
    async def _run_lifespan(self, _app: object) -> AsyncIterator[None]:
        for feed in self._feeds:
            feed.start()
        for reader in self._readers:  # what the first page asks for
            threading.Thread(target=_look_ahead, args=(reader,), daemon=True).start()
        yield
        self.close()

    def settle(self) -> None:
        """Look once, and exclude what is known by then from garbage collection.

        With many phases, each collection stops every thread for a tenth of a second.
        """
        for reader in self._readers:
            _look_ahead(reader)
        gc.collect()
        gc.freeze()

    def close(self) -> None:
        """End every stream and helper process."""
        for feed in self._feeds:
            feed.close()
        for reader in self._readers:
            reader.close()

    async def _page(self, request: Request) -> Response:
        """Answer the page.

        An address with a token is left at once. Where the browser comes from a file, this is not by
        a redirect: it would hold a strict cookie back until the next click.
        """
        given = request.query_params.get("token")
        if given is None:
            return self._send_file("index.html")
        cookie = {"set-cookie": self._gatekeeper.set_cookie}
        if self._gatekeeper.is_token(given):
            return Response(status_code=303, headers={"location": "/", **cookie})
        return Response(leading_to("/"), headers=cookie, media_type=TYPES[".html"])

    async def _file(self, request: Request) -> Response:
        return self._send_file(request.path_params["name"])

    def _send_file(self, name: str) -> Response:
        if name not in self._files:
            return PlainTextResponse("There is nothing here.\n", 404)
        return Response(self._files[name], media_type=TYPES[name[name.rindex(".") :]])

    def _answering(
        self, schema: str, answer: Callable[[Request, SnapshotReader], Any]
    ) -> Callable[[Request], Response]:
        def respond(request: Request) -> Response:
            return _respond_in_envelope(
                request, schema, lambda: (answer(request, self._reader(request)), ())
            )

        return respond

    def _board(self, request: Request) -> Response:
        """Answer what `status --json` prints, now or with `--at`.

        With `phase` only that one is shown in full. With `soon` it may be the result of the last
        look.
        """

        def look() -> tuple[Any, Sequence[Finding]]:
            reader, revision = self._reader(request), _given(request, "at")
            whole = _given(request, "phase") if "phase" in request.query_params else None
            if revision:
                return reader.past(revision).as_json(whole), ()
            now = reader.latest() if _given(request, "soon") else reader.present()
            return now.as_json(whole), now.findings

        return _respond_in_envelope(request, "status", look)

    def _read_timeline(self, request: Request, reader: SnapshotReader, budget_s: float) -> Timeline:
        events = self._feeds[self._number(request)].past_events()
        return reader.timeline(_given(request, "phase"), events, budget_s)

    def _plot(self, request: Request) -> Response:
        """Answer a plot of a phase's timeline."""

        def draw() -> str:
            name, width = _given(request, "name"), _given(request, "width", "900")
            if name not in PLOTS or not (width.isascii() and width.isdigit()):
                raise YoloError(Reason.UNKNOWN_NAME, f"no plot is called {safe(name)!r}")
            wide = min(WIDEST, max(NARROWEST, int(width[:5])))
            known = self._read_timeline(request, self._reader(request), 0.0)
            return PLOTS[name](known, wide)

        try:
            return Response(draw(), media_type=TYPES[".svg"])
        except YoloError as error:
            return PlainTextResponse("", _STATUS.get(error.reason, 503))

    async def _events(self, request: Request) -> Response:
        query = request.query_params
        last = _parse_number(request.headers.get("last-event-id", query.get("since", "")))
        before = _parse_number(query.get("before", "")) or 0
        feed = self._feeds[self._number(request)]
        stream = feed.stream(last, before, query.get("phase"))
        return StreamingResponse(stream, media_type="text/event-stream")

    def _reader(self, request: Request) -> SnapshotReader:
        return self._readers[self._number(request)]

    def _number(self, request: Request) -> int:
        given = request.query_params.get("repo", "0")
        numbers = {str(number): number for number in range(len(self._readers))}
        return numbers.get(given, 0)


def _look_ahead(reader: SnapshotReader) -> None:
    with contextlib.suppress(YoloError):  # whoever asks is told
        reader.latest()


def _get_ready() -> None:
    """Do in advance what would delay the first look at each kind of artifact."""
    for artifact in ARTIFACTS:
        _ = artifact.shapes
    for read in READERS.values():
        read(b"{}", "", Limits())
    build_shapes()


def _parse_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else None


def _given(request: Request, name: str, otherwise: str = "") -> str:
    """Return a parameter of a request.

    Raises:
        YoloError: BAD_FORMAT.
    """
    value = request.query_params.get(name, otherwise)
    if len(value) > _LONGEST_PARAMETER or not value.isprintable():
        raise YoloError(Reason.BAD_FORMAT, f"{name}: too long, or not printable")
    return value


def _respond_in_envelope(
    request: Request, schema: str, look: Callable[[], tuple[Any, Sequence[Finding]]]
) -> Response:
    try:
        data, findings = look()
        text, status = envelope(schema, data, findings, ok=True), 200
    except YoloError as error:
        text = envelope("error", None, [error.as_finding()], ok=False)
        status = _STATUS.get(error.reason, 503)
    except Exception:  # a defect is ours to mend, and none of the page's business
        traceback.print_exc()
        text, status = envelope("error", None, [Finding(Reason.INTERNAL_ERROR)], ok=False), 500
    body = text.encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    return Response(body, status, {"etag": tag, "content-type": "application/json"})


def _read_company(reader: SnapshotReader) -> list[dict[str, Any]]:
    with Repository(reader.root) as repository:
        return overview(repository)


def _read_page_files() -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each file of the page.

    Read once, so that no URL reaches the disk.
    """
    for each in (files("yolo_fs") / "web" / "static").iterdir():
        if os.path.splitext(each.name)[1] in TYPES:
            yield each.name, each.read_bytes()


def _find_connection_limit() -> int:
    """Return how many connections fit beside the descriptors that the board needs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        _MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(_MOST_CONNECTIONS, soft // 4)
    )


class _Connection(H11Protocol):
    """One connection. Its owner is cached: it never changes, and takes milliseconds to find."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since_s = self.loop.time()
        ends = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        self.app_state = self.app_state | {"is_of_another": cache(partial(is_foreign, *ends))}
        self.loop.call_later(_SILENCE_S, self._end_if_silent_since, None)
        self._make_room()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _make_room(self) -> None:
        """Close the oldest idle connection when there are too many."""
        open_ = [each for each in self.connections if isinstance(each, _Connection)]
        open_ = [each for each in open_ if not each.transport.is_closing()]
        if len(open_) > _find_connection_limit():
            silent = (each for each in open_ if not each._is_answering)
            min(silent, key=lambda each: each._since_s).transport.abort()

    def _end_if_silent_since(self, last: object) -> None:
        """Close a connection that has sent no request since `last`, its request at that time."""
        if self.transport.is_closing():
            return
        if self.cycle is last and not self._is_answering:
            self.transport.abort()
            return
        self.loop.call_later(_SILENCE_S, self._end_if_silent_since, self.cycle)


class _Server(uvicorn.Server):
    """Shuts down cleanly when told to, without a signal of its own."""

    def __init__(self, config: uvicorn.Config, *, handles_signals: bool):
        super().__init__(config)
        self._handled = (signal.SIGINT, signal.SIGTERM) if handles_signals else ()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_WAITING)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        def end(_number: int, _frame: object) -> None:
            self.should_exit = True

        before = {each: signal.signal(each, end) for each in self._handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class BoardServer:
    """One board at one address."""

    def __init__(self, starts: Sequence[str], port: int = 0):
        """Bind a port of the loopback address; 0 means any free one.

        Raises:
            YoloError: STORAGE_FAILED when the port is taken; NOT_A_REPOSITORY and what else keeps
                one from being read.
        """
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        self._gatekeeper = Gatekeeper(self.port, secrets.token_urlsafe(32))
        try:
            self._site = BoardSite(starts, self._gatekeeper)
        except BaseException:
            self._socket.close()
            raise

    @property
    def url(self) -> str:
        """The URL to print, with a token that can be used repeatedly."""
        return self._with(self._gatekeeper.token)

    def _with(self, token: str) -> str:
        return f"http://{LOOPBACK}:{self.port}/?token={token}"

    def make_server(self, *, handles_signals: bool = True) -> uvicorn.Server:
        """Return the server; its `run` serves the board."""
        config = uvicorn.Config(
            self._site.app,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            http=_Connection,
            timeout_graceful_shutdown=_CLOSING_S,
            backlog=_ACCEPTED_AT_ONCE,
        )
        return _Server(config, handles_signals=handles_signals)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Open the user's browser, with a single-use token."""
        self._gatekeeper.once = secrets.token_urlsafe(32)
        with browser_opened(self._with(self._gatekeeper.once), self._gatekeeper.is_spent):
            yield

    def serve(self) -> None:
        """Serve until interrupted."""
        with contextlib.suppress(OSError):
            os.nice(5)  # the daemon comes first
        sys.setswitchinterval(0.001)  # a look leaves the lines of events the time that they need
        _get_ready()
        threading.Thread(target=self._site.settle, daemon=True).start()
        self.run(self.make_server())

    def run(self, server: uvicorn.Server) -> None:
        """Serve by a server that `make_server` made, until it is told to end."""
        server.run(sockets=[self._socket])


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen()  # whoever is told the address may come at once
    except OSError as error:
        listener.close()
        hint = "Choose another with --port, or leave it out for any free one."
        message = f"port {port} cannot be used: {safe(str(error.strerror))}"
        raise YoloError(Reason.STORAGE_FAILED, message, hint=hint) from error
    return listener
