"""Hands a command to the warm process beside the daemon, which answers by a fork of itself instead
of by an import.

The idea is that of Mercurial's `chg`. Nothing but built-in modules is imported here, since this
decides what each command costs; `signal` alone would double it. Whatever is odd, the command runs
in this process as if nobody had been asked. See docs/faults.md#f64.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys

from yolo_fs.edges import IS_LINUX

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost a third of what an answer may cost
    import _socket
    from collections.abc import Sequence

COLD = "YOLO_FS_COLD"
"""Variable that keeps commands out of the warm process, and the daemon from starting one."""
FAILPOINTS = "YOLO_FP"
"""Variable of the tests that break us on purpose: it is heard when a module is imported."""
OWN_FOLDER = "yolo-fs"
"""Name of the folder that holds our own files, in the git directory of each work tree."""
SOCKET = "warm.sock"
"""Name of the socket, below `.git/yolo-fs` of a work tree."""
HELLO = b"yolo-fs warm 1\n"
FRAME_BYTES = 5
"""A reply is a letter and a number: R refused, S ready (process), C ended (exit code), K killed
(signal)."""
GO = b"g"
"""After this word of the client, and not before it, a command has begun."""
PATIENCE_S = 0.25
"""How long the warm process may take to answer at all: half of what a command costs without it."""
READY_S = 2.0
"""How long it may then take until the command can begin."""
HEARD_S = 0.5
"""How late a signal may be passed on: Python hears one that comes just before it blocks no sooner
than it wakes."""
STREAMS = ("stdin", "stdout", "stderr")

_LONG_LIVED = frozenset(
    ("run", "start", "stop", "restart", "logs", "service", "board", "mcp", "demo", "statusline")
)
"""Verbs that live long, or on which the warm process itself depends."""
_FOLLOWING = frozenset(("--watch", "--follow", "-f", "-w", "wait"))
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
_CREDENTIALS_BYTES = 12


def run_warm(
    arguments: Sequence[str], start: str = "", streams: tuple[int, int, int] = (0, 1, 2)
) -> int | None:
    """Run a command in the warm process and return its exit code; None when it has to run in this
    one.

    `start`: where it works, if that is not its own `-C`; `streams`: descriptors that are its
    standard streams.
    """
    if not _is_ordinary(arguments):
        return None
    connection = None
    try:
        folder = _folder(start or _start(arguments))
        connection = _connect(folder) if folder else None
        return None if connection is None else _converse(connection, arguments, streams)
    except (OSError, ValueError):
        return None
    finally:
        if connection is not None:
            connection.close()


def ends_soon(arguments: Sequence[str]) -> bool:
    """Return whether a command does something and ends, rather than live on beside others."""
    is_long_lived = arguments and arguments[0] in _LONG_LIVED
    return not is_long_lived and not _FOLLOWING.intersection(arguments)


def _is_ordinary(arguments: Sequence[str]) -> bool:
    """Return whether a command ends soon, and this process is one that another can stand in for."""
    return (
        IS_LINUX
        and not any(map(os.environ.get, (COLD, FAILPOINTS)))
        and ends_soon(arguments)
        and None not in (sys.stdin, sys.stdout, sys.stderr)
    )


def signature() -> str:
    """Return what makes two interpreters behave alike, beside environment and streams."""
    flags = sys.flags
    kept = ("debug", "inspect", "interactive", "optimize", "dev_mode", "verbose", "bytes_warning")
    unsafe = 0 if flags.safe_path or not sys.path else 1  # there the first folder is the command's
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PYTHON", "GIT_PYTHON_GIT", "GIT_PYTHON_TRACE"))
    }
    return repr(
        (
            sys.executable,
            sys.hexversion,
            os.path.dirname(os.path.dirname(__file__)),
            [getattr(flags, name) for name in kept],
            flags.hash_randomization,
            sys.warnoptions,
            sorted(sys._xoptions.items()),
            sys.path[unsafe:],
            sys.getfilesystemencoding(),
            _text_encoding(),
            [] if flags.ignore_environment else sorted(inherited.items()),
        )
    )


def _text_encoding() -> str:
    import _locale

    return "utf-8" if sys.flags.utf8_mode else _locale.getencoding().lower()


def own_folder(root: str) -> str:
    """Return `.git/yolo-fs` of the work tree at `root`, also of a linked one; empty outside any."""
    git = os.path.join(root, ".git")
    if os.path.isfile(git):  # to open a pipe would wait for its writer
        try:
            with open(git, "rb") as file:
                said = file.read(4096).decode("utf-8", "surrogateescape")
        except OSError:
            return ""
        name, _, place = said.strip().partition(": ")
        git = os.path.join(root, place) if name == "gitdir" else ""
    return os.path.join(git, OWN_FOLDER) if git and os.path.isdir(git) else ""


def quick_stamp(path: str) -> list[int] | None:
    """Return what changes when a file does, as JSON keeps it; None where nothing is."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _start(arguments: Sequence[str]) -> str:
    return arguments[arguments.index("-C") + 1] if "-C" in arguments[:-1] else os.curdir


def _folder(start: str) -> str:
    """Return our folder of the work tree that `start` lies in; any other's would do as well."""
    root = os.path.abspath(start)
    while not os.path.exists(os.path.join(root, ".git")):
        if root == os.path.dirname(root):
            return ""
        root = os.path.dirname(root)
    return own_folder(root)


def _connect(folder: str, patience_s: float = PATIENCE_S) -> _socket.socket | None:
    """Return a connection to a warm process of the same user that answers at once, else None.

    Raises:
        OSError: there is none, or it is stopped or busy.
    """
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    connection = None
    try:
        if not is_private(os.fstat(place)) or not os.path.lexists(f"{folder}/{SOCKET}"):
            return None
        import _socket

        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        connection.settimeout(patience_s)
        # By the open folder: its path may be longer than an address, and be another one by now.
        connection.connect(f"/proc/self/fd/{place}/{SOCKET}")
        if peer_of(connection)[1] == os.geteuid() and _read(connection, len(HELLO)) == HELLO:
            answering, connection = connection, None
            return answering
        return None
    finally:
        os.close(place)
        if connection is not None:
            connection.close()


_TRUSTED: dict[str, frozenset[int]] = {}
"""Git directory → the users that git trusts in its repository."""


def trust_in(git_dir: str, users: frozenset[int]) -> None:
    """Let what lies in a git directory belong to whoever git trusts there."""
    _TRUSTED[git_dir] = users


def owners_of(path: str) -> frozenset[int]:
    """Return the users to whom something of ours may belong: this one, and whoever git trusts in
    the repository that it lies in, once that was opened.
    """
    known = (users for place, users in _TRUSTED.items() if path.startswith(f"{place}/"))
    return frozenset((os.geteuid(),)).union(*known)


class ForeignFolderError(OSError):
    """A folder that should be ours belongs to another user."""


def open_own(folder: str) -> int:
    """Open a folder of ours, which is no link and belongs to one of its `owners_of`; others may not
    even pass it then.

    Raises:
        ForeignFolderError: it belongs to another user.
        OSError: there is none, or a link or a file in its place.
    """
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(place)
    if status.st_uid not in owners_of(folder):
        os.close(place)
        raise ForeignFolderError(f"it belongs to user {status.st_uid}")
    if status.st_mode & 0o077:
        try:
            os.fchmod(place, 0o700)
        except OSError:
            os.close(place)
            raise
    return place


def is_private(status: os.stat_result) -> bool:
    """Return whether a folder is this user's, and nobody else may write in it or pass it."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077


def peer_of(connection: _socket.socket) -> tuple[int, int]:
    """Return process and user at the other end, as the kernel tells them."""
    import _socket

    facts = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS_BYTES)
    return int.from_bytes(facts[:4], sys.byteorder), int.from_bytes(facts[4:8], sys.byteorder)


def answers(folder: str) -> bool:
    """Return whether a warm process answers in a folder of ours, be it late."""
    try:
        connection = _connect(folder, READY_S)
    except OSError:
        return False
    if connection is not None:
        connection.close()
    return connection is not None


def _converse(
    connection: _socket.socket, arguments: Sequence[str], streams: tuple[int, int, int]
) -> int | None:
    here = os.open(os.curdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _send(connection, _request(arguments), (*streams, here))
    finally:
        os.close(here)
    connection.settimeout(READY_S)
    letter, number = _reply(connection)
    if letter != "S":
        return None
    connection.settimeout(HEARD_S)
    signals = _Signals(number)
    connection.sendall(GO)  # from here on the command has begun, and is not begun again
    try:
        letter, number = _reply_at_last(connection)
    finally:
        signals.end()
    if letter == "C":
        return number
    if letter == "K" and number != _signal.SIGKILL:
        _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os.write(2, b"yolo-fs: the process that ran this command was killed\n")
    return 128 + (number if letter == "K" else int(_signal.SIGKILL))


def _request(arguments: Sequence[str]) -> bytes:
    """Return what a command is made of: fields without a NUL, after the length of all."""
    umask = os.umask(0o077)
    os.umask(umask)
    streams = [getattr(sys, name) for name in STREAMS]
    fields = [
        os.fsencode(signature()),
        b"%d" % umask,
        ",".join(str(number) for number in _ignored()).encode(),
        *(
            f"{stream.encoding},{stream.errors},{stream.line_buffering:d},"
            f"{stream.write_through:d}".encode()
            for stream in streams
        ),
        b"%d" % len(arguments),
        *map(os.fsencode, arguments),
        *(name + b"=" + value for name, value in os.environb.items()),
    ]
    text = b"\0".join(fields)
    return len(text).to_bytes(4, "big") + text


def _ignored() -> list[int]:
    """Return the signals that whoever started us wants ignored, as `nohup` does."""
    return [
        number for number in range(1, 32)
        if number != _signal.SIGPIPE and _signal.getsignal(number) == _signal.SIG_IGN
    ]  # fmt: skip


def _send(connection: _socket.socket, data: bytes, descriptors: Sequence[int]) -> None:
    import _socket

    packed = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
    first = connection.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])
    connection.sendall(data[first:])


def _reply(connection: _socket.socket) -> tuple[str, int]:
    frame = _read(connection, FRAME_BYTES)
    return (
        (chr(frame[0]), int.from_bytes(frame[1:], "big")) if len(frame) == FRAME_BYTES else ("", 0)
    )


def _reply_at_last(connection: _socket.socket) -> tuple[str, int]:
    while True:
        try:
            return _reply(connection)  # so small a frame comes whole
        except TimeoutError:
            continue


def _read(connection: _socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (part := connection.recv(count - len(data))):
        data += part
    return data


class _Signals:
    """Passes on to the process that runs the command what this one is sent."""

    def __init__(self, pid: int):
        self._process = os.pidfd_open(pid)
        numbers = [getattr(_signal, name) for name in _FORWARDED]
        self._before = {
            number: _signal.signal(number, self._forward)
            for number in numbers
            if _signal.getsignal(number) != _signal.SIG_IGN
        }
        self._before[_signal.SIGTSTP] = _signal.signal(_signal.SIGTSTP, self._pause)

    def end(self) -> None:
        """Let signals mean again what they meant before."""
        for number, handler in self._before.items():
            _signal.signal(number, handler)
        os.close(self._process)

    def _forward(self, number: int, _frame: object) -> None:
        try:
            _signal.pidfd_send_signal(self._process, number)
        except ProcessLookupError:  # it has just ended, and its answer is on the way
            return

    def _pause(self, _number: int, frame: object) -> None:
        self._forward(_signal.SIGSTOP, frame)
        os.kill(os.getpid(), _signal.SIGSTOP)
        self._forward(_signal.SIGCONT, frame)
