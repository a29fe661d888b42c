"""The warm process: has imported every verb, and answers each client by a fork that becomes its
command.

One thread, so that a fork is whole; one pipe from the daemon, whose end is the server's end. A
client is served by the child alone: nothing that it sends or leaves unsaid can hold up the server.
See docs/faults.md#f64.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import io
import os
import pkgutil
import resource
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn

import yolo_fs
from yolo_fs.cli.entry import finish, run_here
from yolo_fs.edges import warm_path
from yolo_fs.edges.git.repository import Head, Repository
from yolo_fs.edges.git.runner import load_git_python
from yolo_fs.edges.store import write_json
from yolo_fs.edges.system import package_stamp
from yolo_fs.edges.warm_path import FRAME_BYTES, GO, HELLO, SOCKET
from yolo_fs.reasons import YoloError
from yolo_fs.schemas.base import build_shapes, shape_of
from yolo_fs.schemas.config import Config
from yolo_fs.services.agents.snapshot import AgentsObserver
from yolo_fs.services.history.team import Team
from yolo_fs.services.progress.board import board
from yolo_fs.services.progress.drift import asides
from yolo_fs.services.reports.status import report
from yolo_fs.services.surveyor import Surveyor
from yolo_fs.services.workspace import WARM, load

BACKLOG = 128
STALE = 3
"""Exit code of a child that found the package changed: the server then ends and starts anew."""
REQUEST_S = 10.0
"""How long a client may take to say what it wants."""
LONGEST_BYTES = 64 << 20
QUIET_MS = 1_000
"""How long nobody has asked for anything when the branch is read on: who asks meanwhile would find
the server busy."""
READ_ON_MS = 300_000
"""The same where nobody has asked for long: who asks after a busy hour would wait for all of it."""
REHEARSED = (("may", "dev", "decide", "architecture"), ("status",), ("resume",), ("gate", "list"))
"""What is run once before the first client, without its output; each of them only reads."""
_HANGUP = signal.SIGRTMIN
"""What the kernel sends a child whose client is gone; by default it ends the child at once."""
_PASSED_ON = (signal.SIGINT, signal.SIGHUP)
_LIMITS = sorted(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
_SAME = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs",
         "Seccomp", "Seccomp_filters")  # fmt: skip
"""Lines of /proc/PID/status in which a client must not differ: it gets no more rights here than it
has."""
_SPACES = ("mnt", "net", "user", "pid", "ipc", "uts")


class RefusedClientError(Exception):
    """Why a client has to run its command itself."""


class LeftUnwrittenError(Exception):
    """A command has ended, and the rest of its output cannot be written."""

    def __init__(self, code: int):
        super().__init__(code)
        self.code = code


class _Stream(NamedTuple):
    encoding: str
    errors: str
    line_buffering: bool
    write_through: bool

    @classmethod
    def parse(cls, field: bytes) -> _Stream:
        encoding, errors, by_line, through = field.decode("ascii").split(",")
        return cls(encoding, errors, by_line == "1", through == "1")

    def open(self, descriptor: int) -> io.TextIOWrapper:
        """Return the stream as an interpreter makes it at its start."""
        mode = "w" if descriptor else "r"
        buffer = open(  # noqa: SIM115
            descriptor, f"{mode}b", 0 if self.write_through and descriptor else -1, closefd=False
        )
        raw: Any = getattr(buffer, "raw", buffer)
        raw.name = f"<{warm_path.STREAMS[descriptor]}>"
        text = io.TextIOWrapper(
            buffer,
            self.encoding,
            self.errors,
            None if descriptor == 0 else "\n",
            self.line_buffering,
            self.write_through,
        )
        text.mode = mode  # type: ignore[misc]
        return text


class WarmRequest(NamedTuple):
    """One command, and all that a process inherits."""

    signature: bytes
    umask: int
    ignored: tuple[int, ...]
    streams: tuple[_Stream, ...]
    arguments: tuple[bytes, ...]
    environment: dict[bytes, bytes]

    @classmethod
    def parse(cls, text: bytes) -> WarmRequest:
        """Return what a client sent.

        Raises:
            ValueError: it is not what `warm_path` sends.
        """
        signature, umask, ignored, *rest = text.split(b"\0")
        streams, count, rest = tuple(map(_Stream.parse, rest[:3])), int(rest[3]), rest[4:]
        pairs = (entry.partition(b"=") for entry in rest[count:])
        return cls(
            signature,
            int(umask),
            tuple(int(number) for number in ignored.split(b",") if number),
            streams,
            tuple(rest[:count]),
            {name: value for name, _, value in pairs},
        )


def main() -> int:
    """Serve below the given folder, for its work tree, until stdin ends or the package changes."""
    folder, root = sys.argv[1:]
    lifeline = os.dup(0)
    os.set_inheritable(lifeline, False)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    for number in _PASSED_ON:
        signal.signal(number, signal.SIG_IGN)
    stamp = package_stamp(sys.path)
    _prepare()
    head = hold_team(root)
    _rehearse(root)
    gc.collect()
    gc.freeze()
    try:
        return _Server(folder, root, lifeline, stamp, head).serve()
    except LeftUnwrittenError as ended:  # in a child
        return ended.code


def _prepare() -> None:
    """Import every verb, and build the shapes."""
    for module in pkgutil.walk_packages(yolo_fs.__path__, "yolo_fs.", lambda _: None):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    for name in ("rich.table", "rich.progress", "pydantic.json_schema"):
        importlib.import_module(name)
    with contextlib.suppress(YoloError):
        load_git_python()
    shape_of(Config)
    build_shapes()


def _rehearse(root: str) -> None:
    """Run some commands with what is held: what has run once is faster the second time."""
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        for command in REHEARSED:
            run_here([*command, "-C", root])


def hold_team(root: str, known: Head | None = None) -> Head | None:
    """Read and fold what the branch has by now, for the commands to come, and return where it is.
    Nothing is done where it is as it was `known`; whatever is wrong, the commands will say.
    """
    with contextlib.suppress(Exception), Repository(root) as repository:
        head = repository.head()
        if head == known:
            return head
        settings = load(repository.root)
        with Surveyor(repository, settings) as surveyor:
            surveyor.hold()
        report(repository, settings)
        team = Team(repository, settings)
        found = board(repository, settings, head.tip, team)
        for phase in found.phases:
            phase.work_out()
        AgentsObserver(repository, settings, team).look({}, head.tip)
        asides(repository.root, settings, found, team)
        team.hold()
        gc.collect()
        gc.freeze()
        return head
    return known


class _Server:
    """Accepts clients, forks for each, and tells it if its child dies without a word."""

    def __init__(
        self,
        folder: str,
        root: str,
        lifeline: int,
        stamp: tuple[object, ...],
        head: Head | None,
    ):
        self._folder = folder
        self._root = root
        self._head = head
        self._lifeline = lifeline
        self._stamp = stamp
        self._identity = identity_of(os.getpid())
        self._git = _git_of(os.environ.get("PATH", ""))
        self._children: dict[int, socket.socket] = {}
        self._is_stale = False
        self._pause_ms = READ_ON_MS
        """How long nobody may ask for anything until the branch is read on."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._wake, self._woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def serve(self) -> int:
        """Serve until the daemon has ended or the package has changed."""
        with self._listener:
            try:
                return self._serve()
            finally:  # a child that still runs has its own end of what leads to its client
                for connection in self._children.values():
                    connection.close()

    def _serve(self) -> int:
        signal.set_wakeup_fd(self._woken)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._listen()
        poll = select.poll()
        for descriptor in (self._lifeline, self._wake, self._listener.fileno()):
            poll.register(descriptor, select.POLLIN)
        while not self._is_stale:
            ready = {descriptor for descriptor, _ in poll.poll(self._pause_ms)}
            if not ready:
                self._head, self._pause_ms = hold_team(self._root, self._head), READ_ON_MS
            if self._lifeline in ready:
                return 0
            if self._wake in ready:
                os.read(self._wake, 1 << 16)
                self._reap()
            if self._listener.fileno() in ready:
                self._accept()
        return 0

    def _listen(self) -> None:
        """Appear under the name that clients know, in one step, in place of a killed server."""
        place = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if not warm_path.is_private(os.fstat(place)):
            raise SystemExit(f"{self._folder} is open to others")
        fresh = f"{SOCKET}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=place)
        before = os.umask(0o177)
        self._listener.bind(f"/proc/self/fd/{place}/{fresh}")
        os.umask(before)
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        os.replace(fresh, SOCKET, src_dir_fd=place, dst_dir_fd=place)
        os.close(place)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        pid, user = warm_path.peer_of(connection)
        if user != os.geteuid():
            connection.close()
            return
        try:
            connection.setblocking(False)
            connection.send(HELLO)
            child = os.fork()
        except OSError:  # it is gone, or there may be no more processes: it runs its command itself
            connection.close()
            return
        if child == 0:
            self._become(connection, pid)
        self._children[child] = connection

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with self._children.pop(pid) as connection:
                number, self._pause_ms = os.waitstatus_to_exitcode(status), QUIET_MS
                self._is_stale |= number == STALE
                with contextlib.suppress(OSError):
                    connection.send(_frame("K", -number) if number < 0 else _frame("C", number))

    def _become(self, connection: socket.socket, peer: int) -> NoReturn:
        """Be what one client asks for, and end."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            for open_ in (self._lifeline, self._wake, self._woken):
                os.close(open_)
            self._listener.close()
            for other in self._children.values():
                other.close()
            self._children.clear()
            code = self._serve_one(connection, peer)
        except RefusedClientError as refusal:
            _note(self._folder, str(refusal))
            with contextlib.suppress(OSError):
                connection.sendall(_frame("R", 0))
        except (OSError, ValueError, EOFError):
            pass  # the client is gone, or none of ours
        os._exit(code)

    def _serve_one(self, connection: socket.socket, peer: int) -> int:
        connection.settimeout(REQUEST_S)
        request, descriptors = _receive(connection)
        if package_stamp(sys.path) != self._stamp:
            _note(self._folder, "the installed package has changed")
            connection.sendall(_frame("R", 0))
            return STALE
        if request.signature != os.fsencode(warm_path.signature()):
            raise RefusedClientError(
                "the client runs another Python, or has other PYTHON… variables"
            )
        if identity_of(peer) != self._identity:
            raise RefusedClientError("the client has other rights, or lives in another container")
        if _git_of(os.fsdecode(request.environment.get(b"PATH", b""))) != self._git:
            raise RefusedClientError("the client's PATH leads to another git")
        _take_limits(peer)
        # From here on the client passes on what it is sent; until there is somebody to hear it, it
        # waits: this process ignores it still.
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        connection.sendall(_frame("S", os.getpid()))
        if connection.recv(1) != GO:
            return 0
        connection.settimeout(None)
        _inherit(request, descriptors)
        _end_with(connection)
        code = _ended(_run([os.fsdecode(word) for word in request.arguments]))
        with contextlib.suppress(OSError):
            connection.sendall(_frame("C", code))
        return code


def identity_of(pid: int) -> tuple[str, ...]:
    """Return the rights of a process and the spaces that it lives in.

    Raises:
        OSError: there is no such process.
    """
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.partition(":")[0] in _SAME]
    spaces = [os.readlink(f"/proc/{pid}/ns/{name}") for name in _SPACES]
    label = b""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/attr/current", "rb") as file:
        label = file.read()
    return (*lines, *spaces, os.readlink(f"/proc/{pid}/root"), repr(label))


def _git_of(path: str) -> str | None:
    return shutil.which("git", path=path)


def _receive(connection: socket.socket) -> tuple[WarmRequest, list[int]]:
    data, packed, _, _ = connection.recvmsg(1 << 16, socket.CMSG_SPACE(4 * 4))
    descriptors = [
        int.from_bytes(part[at : at + 4], sys.byteorder)
        for _, _, part in packed
        for at in range(0, len(part), 4)
    ]
    parts = [data]
    length, have = 4 + int.from_bytes(data[:4], "big"), len(data)
    while have < length <= LONGEST_BYTES:
        part = connection.recv(1 << 20)
        if not part:
            raise EOFError
        parts.append(part)
        have += len(part)
    if have != length or len(descriptors) != 4:
        raise RefusedClientError("the request is not of this version")
    return WarmRequest.parse(b"".join(parts)[4:]), descriptors


def _take_limits(peer: int) -> None:
    """Take over what the client's process may use."""
    try:
        for limit in _LIMITS:
            wanted = resource.prlimit(peer, limit)
            if wanted != resource.getrlimit(limit):
                resource.setrlimit(limit, wanted)
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, peer))
    except (ValueError, OSError):
        raise RefusedClientError("the client has higher limits than the daemon") from None


def _inherit(request: WarmRequest, descriptors: Sequence[int]) -> None:
    """Become what the client is: streams, folder, mask, environment, signals, time zone."""
    here = descriptors[3]
    for wanted, given in enumerate(descriptors[:3]):
        os.dup2(given, wanted)
    os.fchdir(here)
    for given in descriptors:
        os.close(given)
    os.umask(request.umask)
    os.environ.clear()
    os.environb.update(request.environment)
    time.tzset()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in request.ignored:
        signal.signal(ignored, signal.SIG_IGN)
    streams = [stream.open(number) for number, stream in enumerate(request.streams)]
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc]
    sys.argv = ["yolo-fs", *(os.fsdecode(word) for word in request.arguments)]


def _end_with(connection: socket.socket) -> None:
    """Let the kernel end this process when the client's end of the connection closes."""
    descriptor = connection.fileno()
    fcntl.fcntl(descriptor, fcntl.F_SETSIG, _HANGUP)
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLRDHUP)
    if poll.poll(0):
        os.kill(os.getpid(), _HANGUP)


def _run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code, also where an exception would end Python."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        return run_here(arguments) & 0xFF
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        return 128 + signal.SIGINT
    except BaseException as defect:
        sys.excepthook(type(defect), defect, defect.__traceback__)
        return 1


def _ended(code: int) -> int:
    """Do what an interpreter does at its end, short of taking itself apart.

    Raises:
        LeftUnwrittenError: what is printed cannot be written; the interpreter itself has to say so.
    """
    try:
        finish()
    except (OSError, ValueError):
        raise LeftUnwrittenError(code) from None
    return code


def _note(folder: str, why: str) -> None:
    """Keep the last refusal for `doctor`."""
    at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    with contextlib.suppress(OSError, YoloError):
        write_json(os.path.join(folder, WARM.name), {"at": at, "why": why}, durable=False)


def _frame(letter: str, number: int) -> bytes:
    return letter.encode("ascii") + number.to_bytes(FRAME_BYTES - 1, "big")


if __name__ == "__main__":
    sys.exit(main())
