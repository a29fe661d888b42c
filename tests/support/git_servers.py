"""A bare repository as each kind of git server gives it: by path, git daemon, ssh, and smart http."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

PATIENCE_S = 20.0


@contextmanager
def by_path(bare: Path) -> Iterator[str]:
    yield f"file://{bare}"


@contextmanager
def by_git_daemon(bare: Path) -> Iterator[str]:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = ["git", "daemon", f"--port={port}", "--listen=127.0.0.1", "--export-all"]
    command += ["--reuseaddr", "--enable=receive-pack", f"--base-path={bare.parent}"]
    server = subprocess.Popen([*command, str(bare.parent)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield f"git://127.0.0.1:{port}/{bare.name}"
    finally:
        server.terminate()
        server.wait()


@contextmanager
def by_ssh(bare: Path) -> Iterator[str]:
    """Give it as ssh would: the user's own ssh command runs what it is given on this machine."""
    wrapper = bare.with_suffix(".ssh")
    wrapper.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    wrapper.chmod(0o755)
    subprocess.run(["git", "config", "--global", "core.sshCommand", str(wrapper)], check=True)
    yield f"ssh://example.invalid{bare}"


class HttpBackend(BaseHTTPRequestHandler):
    """Hands each request to `git http-backend`."""

    protocol_version = "HTTP/1.1"
    project_root: ClassVar[Path]

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            self._answer(b"".join(self._chunks()))
        else:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _answer(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        variables = {
            "GIT_PROJECT_ROOT": str(self.project_root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "ada",
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=False,
            env={**os.environ, **variables},
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = [line.partition(": ") for line in head.decode().split("\r\n")]
        status = next((value for name, _, value in fields if name == "Status"), "200 OK")
        self.send_response(int(status.split()[0]))
        for name, _, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def by_http(bare: Path) -> Iterator[str]:
    HttpBackend.project_root = bare.parent
    with ThreadingHTTPServer(("127.0.0.1", 0), HttpBackend) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/{bare.name}"
        finally:
            server.shutdown()
            thread.join()


SERVERS: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "file": by_path,
    "git": by_git_daemon,
    "ssh": by_ssh,
    "http": by_http,
}
