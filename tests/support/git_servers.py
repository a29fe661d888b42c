"""A bare repository as each kind of git server gives it: by path, git daemon, ssh, and smart http."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

PATIENCE_S = 20.0
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin") or ""
"""OpenSSH's server; empty where it is not installed."""


@contextmanager
def by_path(bare: Path) -> Iterator[str]:
    yield f"file://{bare}"


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def by_git_daemon(bare: Path) -> Iterator[str]:
    port = free_port()
    command = ["git", "daemon", f"--port={port}", "--listen=127.0.0.1", "--export-all"]
    command += ["--reuseaddr", "--enable=receive-pack", f"--base-path={bare.parent}"]
    server = subprocess.Popen([*command, str(bare.parent)], stderr=subprocess.DEVNULL)
    with _ended(server, port):
        yield f"git://127.0.0.1:{port}/{bare.name}"


@contextmanager
def _ended(server: subprocess.Popen[bytes], port: int) -> Iterator[None]:
    """Wait until a server listens, and end it afterwards."""
    try:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield
    finally:
        server.terminate()
        server.wait()


@contextmanager
def by_ssh(bare: Path) -> Iterator[str]:
    """Give it over ssh: by a server of our own where one is installed, and otherwise as if by one, for the user's own
    ssh command runs what it is given on this machine.
    """
    place = Path(tempfile.mkdtemp(prefix="ssh-", dir=bare.parent))
    if SSHD:
        with sshd(place) as (command, where):
            _use_ssh(command)
            yield f"ssh://{where}{bare}"
    else:
        wrapper = place / "ssh"
        wrapper.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
        wrapper.chmod(0o755)
        _use_ssh(str(wrapper))
        yield f"ssh://example.invalid{bare}"


def _use_ssh(command: str) -> None:
    subprocess.run(["git", "config", "--global", "core.sshCommand", command], check=True)


@contextmanager
def sshd(place: Path) -> Iterator[tuple[str, str]]:
    """Run a server with keys of its own; yield the command that reaches it, and whom."""
    port = free_port()
    if not os.geteuid():
        os.makedirs("/run/sshd", exist_ok=True)  # as its service does; else it does not start
    for name in ("host", "user"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)]
        subprocess.run(make, check=True)
    options = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": place / "host", "PidFile": "none",
        "AuthorizedKeysFile": place / "user.pub", "StrictModes": "no", "UsePAM": "no",
        "MaxStartups": 100,
    }  # fmt: skip
    (place / "config").write_text("".join(f"{key} {value}\n" for key, value in options.items()))
    server = subprocess.Popen([SSHD, "-D", "-f", str(place / "config")], stderr=subprocess.DEVNULL)
    unasked = "-o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    with _ended(server, port):
        command = f"ssh -F /dev/null -i {place / 'user'} {unasked} -o LogLevel=ERROR"
        yield command, f"{getpass.getuser()}@127.0.0.1:{port}"


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

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        return

    def log_message(self, format: str, *args: object) -> None:
        """Say what was wrong, and with which request: a test that fails shows it."""
        print(format % args, repr(self.requestline), file=sys.stderr)


@contextmanager
def _http(bare: Path, handler: type[HttpBackend]) -> Iterator[str]:
    HttpBackend.project_root = bare.parent
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def by_http(bare: Path) -> Iterator[str]:
    with _http(bare, HttpBackend) as address:
        yield f"{address}/{bare.name}"


class Guarded(HttpBackend):
    """Answers as a proxy does, and only whoever gives the user's own password."""

    def _answer(self, body: bytes) -> None:
        scheme, _, rest = self.path.partition("://")
        if scheme != "http":
            self.send_error(400, "this is a proxy")
        elif self.headers.get("Authorization") != f"Basic {b64encode(b'me:MINE').decode()}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.path = f"/{rest.partition('/')[2]}"
            super()._answer(body)


@contextmanager
def by_proxy(bare: Path) -> Iterator[str]:
    """Give it behind a proxy and a password, which the user's own configuration names."""
    helper = "!f() { echo username=me; echo password=MINE; }; f"
    with _http(bare, Guarded) as address:
        for key, value in (("http.proxy", address), ("credential.helper", helper)):
            subprocess.run(["git", "config", "--global", key, value], check=True)
        yield f"http://example.invalid/{bare.name}"


SERVERS: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "file": by_path,
    "git": by_git_daemon,
    "ssh": by_ssh,
    "http": by_http,
    "proxy": by_proxy,
}
