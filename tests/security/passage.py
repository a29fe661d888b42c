"""Goes through doors, and says what each let happen that it must not.

Eight things are judged for each way through a door: no program of the repository ran, nothing was written
outside, no defect of ours came to light (exit 70, a traceback, an internal error), it ended in time, it left
no process behind, and no raw control or bidirectional character is in what it said.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import signal
import tempfile
import time
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, NamedTuple

from tests.security.doors import Door, Row
from tests.security.every_duty import FIRED, TURNS
from tests.security.place import ArtifactPath
from tests.support import forked

LIMIT_S = 25.0
"""How long a way through a door may take at the most."""
ENDLESS_S = 1.0
"""How long what has no end is let go on."""
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Control, format (bidirectional), lone surrogate (a byte that is no UTF-8), private use, separators."""
SHOWN_RAW = (
    "kept show",
    "/{name}",
    "/",
    "service print",
    "completion",
    "yolo-fs://artifacts/{+path}",
)
"""Doors whose answer is a file as it is; where that is one of the repository, `threats.md` says so."""
_STAYS = frozenset({"start", "restart", "observer", "init --start"})
"""Doors, or ways through one, that leave a daemon behind."""


Way = tuple[Door, Row]
"""A door, and one way through it."""


class Fault(NamedTuple):
    """One thing that a door must not have let happen."""

    door: Door
    words: str
    what: str
    """ran, wrote, defect, hung, left or raw."""
    detail: str

    def __str__(self) -> str:
        return f"{self.door} [{self.words[:70]}]: {self.what}: {self.detail}"


class Passage:
    """Goes through doors in one place, which is put back whenever one of them changed it."""

    def __init__(self, place: ArtifactPath, kept: str, *, is_joined: bool = True) -> None:
        """`is_joined`: its user has joined a team, so that its remote may be written to."""
        self.place = place
        self.kept = kept
        self._is_joined = is_joined
        self.passed = 0
        """Ways through a door so far."""
        self.doors = 0
        """Doors so far."""
        self.answers: list[tuple[Door, Row, int | None, bytes]] = []
        """What each said that is a process of its own: its exit code, and its text."""

    def through(self, ways: Sequence[Way]) -> Iterator[Fault]:
        """Go through doors, and yield what went wrong."""
        in_one_go = {
            "tool": self._tools,
            "resource": self._tools,
            "prompt": self._tools,
            "address": self._addresses,
            "duty": self._duties,
        }
        self.passed += len(ways)
        self.doors += len({door for door, _ in ways})
        for sort in dict.fromkeys(door.sort for door, _ in ways):
            chosen = [(door, row) for door, row in ways if door.sort == sort]
            if sort in in_one_go:
                yield from in_one_go[sort](chosen)
            else:
                for door, row in chosen:
                    yield from self._verb(door, row)

    # --- one process for each way ---

    def _verb(self, door: Door, row: Row) -> Iterator[Fault]:
        name = "hook" if door.sort == "event" else f"{_BELOW.get(door.sort, '')} {door.name}"
        words = [*name.split(), *shlex.split(row.words.replace("@ROOT@", str(self.place.root)))]
        with ended(
            self, words, row.given.replace("@ROOT@", str(self.place.root)), row.is_endless
        ) as run:
            code, out, err = run
        self.answers.append((door, row, code, out + err))
        yield from self._judged(door, row, code, out, err)

    def _judged(
        self, door: Door, row: Row, code: int | None, out: bytes, err: bytes
    ) -> Iterator[Fault]:
        def fault(what: str, detail: object) -> Fault:
            return Fault(door, row.words or row.given, what, str(detail)[:600])

        if code is None and not row.runs_hooks:
            yield fault("hung", f"for {LIMIT_S} s")
        if found := _defects(code, out, err):
            yield fault("defect", found)
        if found := _raw(door, out, err):
            yield fault("raw", found)
        yield from self._marks(door, row)

    def _marks(self, door: Door, row: Row) -> Iterator[Fault]:
        """Say what is left in the place, and put it back."""
        place, words = self.place, row.words or row.given
        left = place.leftovers()
        ways = {door.name, f"{door.name} {words.strip()}"}
        if left and not ways & _STAYS and not row.runs_hooks:
            yield Fault(door, words, "left", _names_of(left))
        place.end_leftovers()
        if (sang := place.sang()) and not row.runs_hooks:
            told = {name: (place.fired / name).read_text(errors="replace")[:160] for name in sang}
            yield Fault(door, words, "ran", str(told))
        may_push = self._is_joined or door.name == "team join"
        writes = [each for each in row.writes if may_push or not each.startswith("remote.git")]
        if changed := place.changed(tuple(writes)):
            yield Fault(door, words, "wrote", ", ".join(changed[:12]))
        place.silence()
        place.put_back(self.kept)

    # --- one process for all of a sort ---

    def _duties(self, ways: Sequence[Way]) -> Iterator[Fault]:
        with ended(self, ["run", "--json"], "", False, "tests.security.every_duty:prepare") as run:
            code, out, err = run
        said = [line for line in map(_object, out.splitlines()) if line]
        told = {line["duty"]: [] for line in said if "duty" in line}
        before: set[str] = set()
        for line in said:
            if "duty" in line:
                told[line["duty"]].append(line)
                if new := set(line["fired"]) - before:
                    yield Fault(Door("duty", line["duty"]), "", "ran", str(sorted(new)))
                before |= set(line["fired"])
                if line["reason"] == "internal_error":
                    yield Fault(Door("duty", line["duty"]), "", "defect", line["what"])
        refused = not told and code in _REFUSALS
        for door, _ in ways:
            if len(told.get(door.name, ())) != TURNS and not refused:
                yield Fault(
                    door, "", "defect", f"not run in each turn: exit {code}, {err[-300:]!r}"
                )
        remote = Row(
            "run", writes=("remote.git*", "repo/.git/refs/remotes*", "repo/.git/logs/refs/remotes*")
        )
        yield from (
            fault for fault in self._judged(Door("duty", "(all)"), remote, code, out, err)
            if fault.what != "ran" or not before
        )  # fmt: skip

    def _tools(self, ways: Sequence[Way]) -> Iterator[Fault]:
        with _streams(self, ["mcp"]) as (process, to, out, err):
            client = _McpClient(to, out)
            greeting = client.begin()
            if "eof" in greeting:
                process.wait(5)
                yield from self._judged(
                    Door("verb", "mcp"), Row("(greeting)"), process.returncode, b"", err()
                )
                return
            for door, row in ways:
                answer = client.ask(door, row)
                if answer is None:
                    yield Fault(door, row.words, "hung", "no answer")
                    break
                told = json.dumps(answer, ensure_ascii=False)
                if "internal_error" in told:
                    yield Fault(door, row.words, "defect", told[:600])
                if found := _raw(door, _texts(answer).encode("utf-8", "surrogateescape"), b""):
                    yield Fault(door, row.words, "raw", found)
                yield from self._marks_between(door, row)
            to.close()
            with suppress(TimeoutError):
                process.wait(8)
            code = process.poll()
        yield from self._judged(Door("verb", "mcp"), Row("(all)"), code, b"", err.last)

    def _addresses(self, ways: Sequence[Way]) -> Iterator[Fault]:
        with _streams(self, ["board", "--no-open"]) as (process, _to, out, err):
            line = out.readline().decode()
            found = re.search(r"http://[\d.]+:(\d+)/\S*?token=([\w-]+)", line)
            if found is None:
                with suppress(TimeoutError):
                    process.wait(8)
                yield from self._judged(
                    Door("verb", "board"), Row("--no-open"), process.poll(), b"", err()
                )
                return
            port, token = int(found[1]), found[2]
            for door, row in ways:
                status, body = _http(port, token, door.name, row.words)
                if status == 0:
                    yield Fault(door, row.words, "hung", body[:200])
                if status == 500 or b"internal_error" in body:
                    yield Fault(door, row.words, "defect", f"{status} {body[:300]!r}")
                if raw := _raw(door, body, b""):
                    yield Fault(door, row.words, "raw", raw)
                yield from self._marks_between(door, row)
            process.send(signal.SIGTERM)
            with suppress(TimeoutError):
                process.wait(8)
            code = process.poll()
        yield from self._judged(Door("verb", "board"), Row("(all)"), code, b"", err.last)

    def _marks_between(self, door: Door, row: Row) -> Iterator[Fault]:
        """Say what one question to a process that lives on has left."""
        if sang := self.place.sang():
            yield Fault(door, row.words, "ran", str(sang))
            self.place.silence()
        if changed := self.place.changed():
            yield Fault(door, row.words, "wrote", ", ".join(changed[:12]))
            self.place.before = self.place.snapshot()


_BELOW = {"script": "compat", "git hook": "git-hook"}
"""Sort of door → the verb that it is below."""
_REFUSALS = (3, 4, 75, 78)


# --- processes ---


class _Tail:
    """What stands on stderr, now and in the end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.last = b""

    def __call__(self) -> bytes:
        self._file.seek(0)
        self.last = self._file.read()
        return self.last


@contextmanager
def ended(
    passage: Passage, words: Sequence[str], given: str, is_endless: bool, prepare: str = ""
) -> Iterator[tuple[int | None, bytes, bytes]]:
    """Run a command to its end, or to the limit; None for the code of one that went beyond."""
    place = passage.place
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        stdin.write(given.encode("utf-8", "surrogateescape"))
        stdin.seek(0)
        process = forked.begin(
            words, place.root, place.repo.env, [each.fileno() for each in (stdin, out, err)],
            prepare=prepare, session=True,
        )  # fmt: skip
        code: int | None = None
        if is_endless:
            with suppress(TimeoutError):
                process.wait(ENDLESS_S)
            process.send(signal.SIGTERM)
        with suppress(TimeoutError):
            code = process.wait(LIMIT_S)
        if code is None:
            _kill(process)
        for stream in (out, err):
            stream.seek(0)
        yield (0 if is_endless and code in (-15, 143, 130) else code), out.read(), err.read()


def _kill(process: forked.Forked) -> None:
    process.send(signal.SIGKILL)
    process.wait()


@contextmanager
def _streams(
    passage: Passage, words: Sequence[str]
) -> Iterator[tuple[forked.Forked, IO[bytes], IO[bytes], _Tail]]:
    """Run a command that answers on and on; it is killed in the end, if it is still there."""
    place = passage.place
    (in_, to), (from_, out) = os.pipe(), os.pipe()
    with tempfile.TemporaryFile() as err:
        process = forked.begin(
            words, place.root, place.repo.env, [in_, out, err.fileno()], session=True
        )
        os.close(in_)
        os.close(out)
        tail = _Tail(err)
        with os.fdopen(to, "wb", 0) as written, os.fdopen(from_, "rb", 0) as read:
            try:
                yield process, written, read, tail
            finally:
                tail()
                _kill(process)


class _McpClient:
    """Asks a server on its streams, one question after the other."""

    def __init__(self, to: IO[bytes], out: IO[bytes]) -> None:
        self._to, self._out = to, out
        self._number = 0
        self._heard = b""

    def begin(self) -> dict[str, Any]:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}  # fmt: skip
        answer = self._call("initialize", client) or {"eof": True}
        with suppress(OSError):
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def ask(self, door: Door, row: Row) -> dict[str, Any] | None:
        """Return the answer to one way through a door; None where there is none."""
        if door.sort == "tool":
            return self._call("tools/call", {"name": door.name, "arguments": json.loads(row.words)})
        if door.sort == "prompt":
            return self._call(
                "prompts/get", {"name": door.name, "arguments": json.loads(row.words)}
            )
        uri = re.sub(r"\{.*\}", lambda _: row.words, door.name)
        return self._call("resources/read", {"uri": uri})

    def _send(self, message: dict[str, Any]) -> None:
        self._to.write(json.dumps(message).encode() + b"\n")

    def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        self._number += 1
        try:
            self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        except OSError:
            return None
        until = time.monotonic() + LIMIT_S
        while line := self._line(until):
            answer = _object(line)
            if answer.get("id") == self._number:
                return answer
        return None

    def _line(self, until: float) -> bytes:
        import select

        while b"\n" not in self._heard:
            if not select.select([self._out], [], [], max(0.0, until - time.monotonic()))[0]:
                return b""
            more = os.read(self._out.fileno(), 1 << 16)
            if not more:
                return b""
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return line


def _http(port: int, token: str, path: str, given: str) -> tuple[int, bytes]:
    """Ask the board as its page does; status 0 and why where there is no answer."""
    target = path.replace("{name}", "") + given
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    try:
        connection.request("GET", target, headers={"cookie": f"yolo_fs_board_{port}={token}"})
        answer = connection.getresponse()
        if path != "/api/events":
            return answer.status, answer.read()
        assert connection.sock is not None
        connection.sock.settimeout(ENDLESS_S)
        body = b""
        with suppress(TimeoutError, OSError):
            while more := answer.read1(1 << 16):
                body += more
    except (OSError, http.client.HTTPException) as error:
        return 0, repr(error).encode()
    else:
        return answer.status, body
    finally:
        connection.close()


# --- judging ---

_WARNED = re.compile(
    r"Exception ignored in: <[^\n]*\nTraceback \(most recent call last\):\n"
    r"(?:  [^\n]*\n)++ResourceWarning: [^\n]*\n"
)
"""What the interpreter of the tests says of a daemon that is meant to live on, and of what was open
when a verb without end was ended.
"""


def _defects(code: int | None, out: bytes, err: bytes) -> str:
    text = _WARNED.sub("", (out + err).decode("utf-8", "replace"))
    for mark in ("internal_error", "Traceback (most recent call last)"):
        if mark in text:
            at = text.index(mark)
            return f"exit {code}: {text[max(0, at - 200) : at + 900]}"
    bad = code is not None and (code == 70 or code < 0 or code == 99)
    return f"exit {code}: {text[-400:]}" if bad else ""


def _raw(door: Door, out: bytes, err: bytes) -> str:
    if door.name in SHOWN_RAW:
        out = b""
    text = (out + err).decode("utf-8", "surrogateescape")
    found = {char for char in text if char != "\n" and unicodedata.category(char) in HIDDEN}
    if not found:
        return ""
    at = next(at for at, char in enumerate(text) if char in found)
    return f"{sorted(found)!a} in {text[max(0, at - 80) : at + 40]!a}"


def _texts(value: Any) -> str:
    """Return every text of an answer, as a host shows it."""
    if isinstance(value, dict):
        return "\n".join(f"{_texts(key)}\n{_texts(each)}" for key, each in value.items())
    if isinstance(value, list):
        return "\n".join(map(_texts, value))
    return value if isinstance(value, str) else ""


def _object(line: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        value = json.loads(line)
        return value if isinstance(value, dict) else {}
    return {}


def _names_of(pids: Sequence[int]) -> str:
    names = []
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            names.append(file.read().replace(b"\0", b" ").decode(errors="replace")[:120])
    return "; ".join(names)


__all__ = ["FIRED", "Fault", "Passage"]
