"""Asks the observer beside the daemon for a command's output, to save the command's imports.

A request is text: arguments, folder, environment, the width of the terminal, and the input of a
command that reads one. The answer is text: what goes to stdout and stderr, and the exit code. On
any irregularity, the command runs in this process as if the observer had not been asked. Only
built-in modules are imported here, since this decides what each command costs. See
docs/dev/faults.md#f64.
"""

from __future__ import annotations

import io
import os
import sys
import time

from yolo_fs.system import IS_LINUX
from yolo_fs.system.warm_path import is_private, own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost a third of what an answer may cost
    import _socket
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TextIO

COLD = "YOLO_FS_COLD"
"""Variable that keeps commands from asking, and the daemon from starting an observer."""
FAILPOINTS = "YOLO_FP"
"""Environment variable of tests that inject faults. It is read when a module is imported."""
SOCKET = "observer.sock"
"""Name of the socket, below `.git/yolo-fs` of a work tree."""
HELLO = b"yolo-fs observer 1\n"
FRAME_BYTES = 5
"""Size of the header of an answer's part: a letter and a number. O and E: so many bytes for stdout
and stderr follow; C: exit code, the last part; R: run the command yourself; W: wait on.
P: only from a worker: so many bytes of a pause follow, after which it is asked again."""
LONGEST_BYTES = 64 << 20
PATIENCE_S = 0.25
"""Timeout for the observer's first response: half of what a command costs without it."""
SILENT_S = 2.0
"""Longest silence after that: while it works, it reports more often."""
INPUT_BYTES = 16 << 20
"""Longest input of a command that is sent."""
STREAMS = ("stdin", "stdout", "stderr")

IN_ASCII = "yolo_fs.in_ascii"
"""Name of the handler by which a stream prints what its encoding does not have."""
_SIGNS = {"→": "->", "…": "...", "·": "-", "–": "-", "—": "-", "−": "-", "≤": "<=", "≥": ">="}
"""Our own signs in what every terminal has."""

_LONG_LIVED = frozenset(
    ("run", "start", "stop", "restart", "logs", "service", "board", "mcp", "demo", "statusline")
)
"""Verbs that live long, or on which the observer depends."""
_FOLLOWING = frozenset(("--watch", "--follow", "-f", "-w"))
_READ_INPUT = frozenset(
    ("pre-push", "post-rewrite", "validate-summary", "validate-frontmatter", "validate-commit",
     "validate-send-message")
)  # fmt: skip
"""Hooks of git and drop-in scripts that read their input."""
_CREDENTIALS_BYTES = 12

asked_at_s: float | None = None
"""When this process asked for its command, on the monotonic clock; None where it has not."""

Part = tuple[int, bytes]
"""(number of a stream, bytes for it)."""


class Answer:
    """What a command printed, in order, and its exit code."""

    def __init__(self, parts: list[Part], code: int):
        self.parts = parts
        self.code = code

    def of(self, stream: int) -> bytes:
        """Return what goes to one stream."""
        return b"".join(text for number, text in self.parts if number == stream)


def register_signs() -> None:
    """Make the handler known to this process. An observer prints as the stream of who asks."""
    import _codecs

    _codecs.register_error(IN_ASCII, _in_ascii)


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    escaped = (_SIGNS.get(each) or ascii(each)[1:-1] for each in lacking)
    return "".join(escaped), error.end


def run_by_observer(arguments: Sequence[str]) -> int | None:
    """Print the observer's answer to a command, and return the exit code.

    Return None when the command has to run in this process.
    """
    global asked_at_s
    if not _is_ordinary(arguments):
        return None
    asked_at_s = time.monotonic()
    answer = ask(arguments, take=_take_input if _reads_input(arguments) else None)
    if answer is None:
        return None
    try:
        for number, text in answer.parts:
            _write((sys.stdout if number == 1 else sys.stderr).fileno(), text)
    except (OSError, ValueError):  # a full disk, a closed pipe: whoever runs here tells it
        return None
    return answer.code


def _write(descriptor: int, text: bytes) -> None:
    """Write past the buffer, which would keep its content on a full disk and write it again."""
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def lives_long(arguments: Sequence[str]) -> bool:
    """Return whether a command lives on beside others until it is ended."""
    return bool(arguments) and arguments[0] in _LONG_LIVED


def ends_soon(arguments: Sequence[str]) -> bool:
    """Return whether a command does its work and exits, rather than live on."""
    return not lives_long(arguments) and not _FOLLOWING.intersection(arguments)


def ask(
    arguments: Sequence[str], start: str = "", take: Callable[[], bytes | None] | None = None
) -> Answer | None:
    """Return a command's output from the observer of a work tree; None without an answer.

    `start`: where the command works, if that is not its own `-C`. `take`: returns the command's
    input, if it may read one, and None where that is too long; it is not called when no observer
    answers.
    """
    if not IS_LINUX or any(map(os.environ.get, (COLD, FAILPOINTS))):
        return None
    connection = None
    try:
        folder = _folder(start or _start(arguments))
        connection = _connect(folder) if folder else None
        if connection is None:
            return None
        given = take() if take else None
        return None if take and given is None else _converse(connection, arguments, given)
    except (OSError, ValueError):
        return None
    finally:
        if connection is not None:
            connection.close()


def answers(folder: str) -> bool:
    """Return whether an observer answers in a folder of ours, even if late."""
    try:
        connection = _connect(folder, SILENT_S)
    except OSError:
        return False
    if connection is not None:
        connection.close()
    return connection is not None


def peer_of(connection: _socket.socket) -> tuple[int, int]:
    """Return (process, user) at the other end, as the kernel reports them."""
    import _socket

    facts = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS_BYTES)
    return int.from_bytes(facts[:4], sys.byteorder), int.from_bytes(facts[4:8], sys.byteorder)


def frame(letter: str, number: int) -> bytes:
    """Return the header of an answer's part."""
    return letter.encode("ascii") + number.to_bytes(FRAME_BYTES - 1, "big")


def package_folder() -> str:
    """Return the folder with the code of this process."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _is_ordinary(arguments: Sequence[str]) -> bool:
    """Return whether a command ends soon, and this process has streams to print to."""
    return ends_soon(arguments) and None not in (sys.stdin, sys.stdout, sys.stderr)


def _reads_input(arguments: Sequence[str]) -> bool:
    return "-" in arguments or bool(_READ_INPUT.intersection(arguments[1:2]))


def _take_input() -> bytes | None:
    """Return the input, and keep it for a command in this process; None where it is too long."""
    data = sys.stdin.buffer.read(INPUT_BYTES + 1)
    joined: Any = _Joined(data, sys.stdin)
    encoding, errors = sys.stdin.encoding, sys.stdin.errors
    sys.stdin = io.TextIOWrapper(io.BufferedReader(joined), encoding, errors)
    return data if len(data) <= INPUT_BYTES else None


class _Joined(io.RawIOBase):
    """A text that was read already, followed by the rest of its stream."""

    def __init__(self, data: bytes, rest: TextIO):
        self._data = memoryview(data)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, room: bytearray) -> int:  # type: ignore[override]
        if not self._data:
            data = self._rest.buffer.read1(len(room))  # type: ignore[attr-defined]
            room[: len(data)] = data
            return len(data)
        size = min(len(room), len(self._data))
        room[:size], self._data = self._data[:size], self._data[size:]
        return size


def _start(arguments: Sequence[str]) -> str:
    return arguments[arguments.index("-C") + 1] if "-C" in arguments[:-1] else os.curdir


def _folder(start: str) -> str:
    """Return our folder of the work tree that `start` lies in; any other's would do as well."""
    root = os.path.realpath(start)
    while not os.path.exists(os.path.join(root, ".git")):
        if root == os.path.dirname(root):
            return ""
        root = os.path.dirname(root)
    return own_folder(root)


def _connect(folder: str, patience_s: float = PATIENCE_S) -> _socket.socket | None:
    """Return a connection to an observer of the same user that answers at once, else None.

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
        # Through the open folder: its path may be too long for a socket address, or lead elsewhere
        # by now.
        connection.connect(f"/proc/self/fd/{place}/{SOCKET}")
        if peer_of(connection)[1] == os.geteuid() and _read(connection, len(HELLO)) == HELLO:
            answering, connection = connection, None
            return answering
        return None
    finally:
        os.close(place)
        if connection is not None:
            connection.close()


def _converse(
    connection: _socket.socket, arguments: Sequence[str], given: bytes | None
) -> Answer | None:
    connection.settimeout(SILENT_S)
    connection.sendall(_request(arguments, given))
    parts: list[Part] = []
    for letter, number in _read_frames(connection):
        if letter == "C":
            return Answer(parts, number)
        if letter == "R":
            return None
        if letter in "OE":
            parts.append((1 + "OE".index(letter), _read(connection, number)))
    return None


def _read_frames(connection: _socket.socket) -> Iterator[tuple[str, int]]:
    while len(head := _read(connection, FRAME_BYTES)) == FRAME_BYTES:
        yield chr(head[0]), int.from_bytes(head[1:], "big")


def _request(arguments: Sequence[str], given: bytes | None) -> bytes:
    """Return all that a command reads, as a request.

    It has fields without a NUL, then the input, each preceded by its length.
    """
    here = os.stat(os.curdir)
    fields = [
        os.fsencode(package_folder()),
        os.getcwdb(),
        b"%d,%d" % (here.st_dev, here.st_ino),
        b"%d,%d" % _size(),
        *(_said_of(getattr(sys, name)) for name in STREAMS),
        b"%d" % (given is not None),
        b"%d" % len(arguments),
        *map(os.fsencode, arguments),
        *(name + b"=" + value for name, value in os.environb.items()),
    ]
    text, given = b"\0".join(fields), given or b""
    return b"".join((len(text).to_bytes(4, "big"), len(given).to_bytes(4, "big"), text, given))


def _said_of(stream: io.TextIOWrapper) -> bytes:
    """Return how a stream writes what is printed."""
    by_line, through = stream.line_buffering, stream.write_through
    description = f"{stream.encoding},{stream.errors},{by_line:d},{through:d},{stream.isatty():d}"
    return description.encode()


def _size() -> tuple[int, int]:
    """Return columns and lines of the terminal that a stream is; zero without one."""
    for number in range(3):
        try:
            columns, lines = os.get_terminal_size(number)
        except OSError:
            continue
        return columns, lines
    return 0, 0


def _read(connection: _socket.socket, count: int) -> bytes:
    parts = []
    while count and (part := connection.recv(min(count, 1 << 20))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
