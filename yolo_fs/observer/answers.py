"""Runs one command after another, each from the text of a request to the text of an answer.

What a command reads of the branch is kept for the next one. A command that is not answered here, or
fails in an unusual way, is left to the client process.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import shutil
import sys
import threading
import time
from typing import Any, NamedTuple, NoReturn

from yolo_fs.agents.snapshot import AgentsObserver
from yolo_fs.cli.entry import run_here
from yolo_fs.git.repository import Head, Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.board import board
from yolo_fs.progress.drift import notes_of_work_tree
from yolo_fs.reports.status import report
from yolo_fs.scanning.scanner import Scanner
from yolo_fs.system.ask import IN_ASCII, STREAMS, frame, package_folder, register_signs
from yolo_fs.system.pausing import RESUMED, Pause, PausedError
from yolo_fs.system.warm_path import ASKED_BY_GIT, HOOK_IN_FULL
from yolo_fs.workspace.settings import load

ANSWERED = frozenset(
    (
        HOOK_IN_FULL, ASKED_BY_GIT, "agent answers", "agent list",
        "compat phase-detect", "compat resolve-departments",
        "compat resolve-task-deps", "compat validate", "compat validate-commit",
        "compat validate-config", "compat validate-frontmatter", "compat validate-gates",
        "compat validate-naming", "compat validate-plan", "compat validate-send-message",
        "compat validate-summary", "dept show", "envelope check", "envelope choose",
        "envelope show", "escalate list", "events", "forecast", "gate check", "gate list",
        "gate wait", "gate why", "handoff parse", "handoff report", "kept list", "may",
        "message check", "message route", "phase list", "resume", "schema list", "schema show",
        "status", "task claims", "task summary", "team status", "validate", "workflow next",
        "workflow show",
    )
)  # fmt: skip
"""Verbs that write nothing. Those that do run in the caller's own process."""
ANSWERS_MOST = 2_000
"""Answers after which a worker is replaced, so that what commands leave behind does not accumulate.
"""


REFUSAL = frame("R", 0)
"""Answer that has the client run the command in its own process."""


class NotHereError(Exception):
    """The client has to run the command in its own process."""


class InputWantedError(BaseException):
    """A command reads input that was not sent with it. `except Exception` does not catch this."""


class _Stream(NamedTuple):
    """How a stream of the client writes."""

    encoding: str
    errors: str
    line_buffering: bool
    write_through: bool
    isatty: bool

    @classmethod
    def parse(cls, field: bytes) -> _Stream:
        encoding, errors, *flags = field.decode("ascii").split(",")
        if errors == IN_ASCII:
            register_signs()
        return cls(encoding, errors, *(flag == "1" for flag in flags))

    def writing(self, letter: str, printed: list[bytes]) -> io.TextIOWrapper:
        raw: Any = _Printed(letter, printed, isatty=self.isatty)
        buffer = raw if self.write_through else io.BufferedWriter(raw)
        by_line, through = self.line_buffering, self.write_through
        return io.TextIOWrapper(buffer, self.encoding, self.errors, "\n", by_line, through)

    def reading(self, given: bytes | None) -> io.TextIOWrapper:
        raw: Any = _Given(given, isatty=self.isatty)
        return io.TextIOWrapper(io.BufferedReader(raw), self.encoding, self.errors)


class _Printed(io.RawIOBase):
    """Collects output as parts of an answer, in order with the output of the other stream."""

    def __init__(self, letter: str, printed: list[bytes], *, isatty: bool):
        self._letter = letter
        self._printed = printed
        self._isatty = isatty

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._isatty

    def write(self, data: Any) -> int:
        text = bytes(data)
        if text:
            self._printed += (frame(self._letter, len(text)), text)
        return len(text)


class _Given(io.RawIOBase):
    """The input of a command. Reading input that was not sent ends the command."""

    def __init__(self, given: bytes | None, *, isatty: bool):
        self._given = None if given is None else io.BytesIO(given)
        self._isatty = isatty

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._isatty

    def fileno(self) -> NoReturn:
        raise InputWantedError

    def readinto(self, room: Any) -> int:
        if self._given is None:
            raise InputWantedError
        return self._given.readinto(room)


class CommandRequest(NamedTuple):
    """One command, and what it needs of the client process."""

    package: str
    folder: bytes
    place: bytes
    """Device and inode of the folder, which another container may have under that name."""
    size: tuple[int, int]
    """Columns and lines of the terminal; zero without one."""
    streams: tuple[_Stream, ...]
    given: bytes | None
    arguments: tuple[str, ...]
    environment: dict[bytes, bytes]

    @classmethod
    def parse(cls, text: bytes) -> CommandRequest:
        """Parse what a client sent.

        Raises:
            ValueError: it is not what `ask` sends.
        """
        length, rest = int.from_bytes(text[:4], "big"), text[8:]
        package, folder, place, size, *fields = rest[:length].split(b"\0")
        columns, lines = map(int, size.split(b","))
        streams = tuple(map(_Stream.parse, fields[:3]))
        given = rest[length:] if fields[3] == b"1" else None
        count, fields = int(fields[4]), fields[5:]
        pairs = (entry.partition(b"=") for entry in fields[count:])
        return cls(
            os.fsdecode(package),
            folder,
            place,
            (columns, lines),
            streams,
            given,
            tuple(map(os.fsdecode, fields[:count])),
            {name: value for name, _, value in pairs},
        )

    @property
    def verb(self) -> str:
        """Name of the verb in `ANSWERED`; empty for any other."""
        names = (" ".join(self.arguments[:count]) for count in (1, 2))
        return next((name for name in names if name in ANSWERED), "")


class Answerer:
    """Runs commands for clients, and caches what they read of the branch."""

    def __init__(self, root: str):
        self._root = root
        self._head: Head | None = None
        self._path = os.environ.get("PATH", "")
        self._git = shutil.which("git")
        self._answered = 0

    @property
    def is_used_up(self) -> bool:
        """Whether this process should be replaced.

        It has run many commands, or one of them has left a thread behind.
        """
        return self._answered >= ANSWERS_MOST or threading.active_count() > 1

    def follow(self) -> bool:
        """Read and fold the branch's new commits for later commands, which report any error.

        Return False where files are so new that it is worth a second look.
        """
        is_settled = True
        with contextlib.suppress(Exception), Repository(self._root) as repository:
            head = repository.head()
            if head == self._head:
                return True
            settings = load(repository.root)
            with Scanner(repository, settings) as scanner:
                is_settled = scanner.hold()
            report(repository, settings)
            facts_reader = FactsReader(repository, settings)
            team_board = board(facts_reader, head.tip)
            for phase in team_board.phases:
                phase.work_out()
            AgentsObserver(repository, settings, facts_reader).look({}, head.tip)
            notes_of_work_tree(team_board, facts_reader)
            facts_reader.hold()
            gc.collect()
            gc.freeze()
            self._head = head if is_settled else None
        return is_settled

    def answer(self, text: bytes, resumed: Pause) -> bytes:
        """Return the parts of an answer; `REFUSAL` when the client has to run the command itself,
        and a pause where it has to wait. `resumed`: the last pause.
        """
        self._answered += 1
        RESUMED.set(resumed)
        try:
            request = CommandRequest.parse(text)
            is_ours = bool(request.verb) and request.package == package_folder()
            return self._run(request) if is_ours else REFUSAL
        except PausedError as paused:
            pause = paused.pause.to_bytes()
            return frame("P", len(pause)) + pause
        except (Exception, InputWantedError):
            return REFUSAL
        finally:
            os.chdir("/")

    def _run(self, request: CommandRequest) -> bytes:
        os.chdir(request.folder)
        here = os.stat(os.curdir)
        if b"%d,%d" % (here.st_dev, here.st_ino) != request.place:
            raise NotHereError
        self._put_on(request.environment)
        printed: list[bytes] = []
        given = (sys.stdin, sys.stdout, sys.stderr, os.get_terminal_size, sys.argv)
        try:
            sys.stdin = request.streams[0].reading(request.given)
            sys.stdout = request.streams[1].writing("O", printed)
            sys.stderr = request.streams[2].writing("E", printed)
            os.get_terminal_size = _fake_terminal_size(request.size)
            sys.argv = ["yolo-fs", *request.arguments]
            try:
                code = run_here(request.arguments) & 0xFF
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
            for name in STREAMS[1:]:
                getattr(sys, name).flush()
        finally:
            sys.stdin, sys.stdout, sys.stderr, os.get_terminal_size, sys.argv = given
        return b"".join((*printed, frame("C", code)))

    def _put_on(self, environment: dict[bytes, bytes]) -> None:
        """Adopt the environment of a client, whose git has to be the same as ours."""
        zone = os.environ.get("TZ")
        os.environ.clear()
        os.environb.update(environment)
        if os.environ.get("TZ") != zone:
            time.tzset()
        path = os.environ.get("PATH", "")
        if path != self._path and shutil.which("git") != self._git:
            raise NotHereError


def _fake_terminal_size(size: tuple[int, int]) -> Any:
    """Return a substitute for `os.get_terminal_size`: this process has no terminal."""

    def get_terminal_size(_descriptor: int = 1) -> os.terminal_size:
        if not size[0]:
            raise OSError("no terminal")
        return os.terminal_size(size)

    return get_terminal_size
