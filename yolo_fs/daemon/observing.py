"""The daemon's side of its observer: starts it, sends it changes, and receives its results.

An observer that ends or is suspended is replaced; its unfinished work follows from the branch and
is done again. See docs/dev/faults.md#f64.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.decide import describe
from yolo_fs.artifacts.verdicts import Accepted, Held, Rejected, Verdict, Waiting
from yolo_fs.core.reasons import Finding, Reason, YoloError
from yolo_fs.progress.state_move import FreshArtifact, StateMove
from yolo_fs.system.ask import SOCKET
from yolo_fs.system.store import remove
from yolo_fs.system.system import is_stopped

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
SHORT_LIFE_S = 2.0
"""An observer that ends sooner is restarted after a pause, which doubles each time."""
ASKED_FOR_S = 0.03
"""Seconds that a commit waits for the observer to name the state file that changes."""
_END_S = 5.0
_LONGEST_BYTES = 64 << 20
_RECEIVED = 1 << 18


def start_observer(folder: str, root: str, line: int) -> subprocess.Popen[bytes]:
    """Start the observer of the work tree `root`; `line` is its end of the socket to the daemon."""
    # -P: modules in the user's repository must not be imported instead of ours.
    command = [sys.executable, "-P", "-m", "yolo_fs.observer", folder, root, str(line)]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(line,),
        start_new_session=True,
    )


class ObserverKeeper:
    """Keeps one observer running, with its unread messages."""

    def __init__(self, folder: str, root: str, wake: Callable[[], object]):
        """Keep an observer for the work tree `root`, whose `.git/yolo-fs` is `folder`.

        `wake`: called, from another thread, when the observer has sent something.
        """
        self._folder = folder
        self._root = root
        self._wake = wake
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._listener: threading.Thread | None = None
        self._received: deque[Mapping[str, Any]] = deque()
        self._sent: tuple[str | None, Mapping[str, Verdict]] | None = None
        """The tip and the verdicts that it was sent last."""
        self._unsent = b""
        self._answer: tuple[int, Any] | None = None
        self._answered = threading.Event()
        self._questions = 0
        self._has_read: str | None = None
        """The tip for which it has finished everything."""
        self._was_stopped = False
        self._started_at = 0.0
        self._ended_at = 0.0
        self._pause_s = 0.0

    def keep(self) -> None:
        """Start it if it does not run; if it soon ends, with growing pauses."""
        if self._process is not None:
            is_stopped_now = is_stopped(self._process.pid)
            if is_stopped_now and self._was_stopped:
                self._process.kill()
            self._was_stopped = is_stopped_now
            if self._process.poll() is None:
                return
            self._note_end(time.monotonic())
        if time.monotonic() - self._ended_at >= self._pause_s:
            self._start()

    def send_changes(self, tip: str | None, verdicts: Mapping[str, Verdict]) -> None:
        """Send the tip of the branch and the verdicts that changed since the last message."""
        if self._line is None or (self._unsent and not self._send()):
            return
        before = self._sent
        if before is not None and before[0] == tip and before[1] == verdicts:
            return
        message = {"tip": tip, "verdicts": changed(before[1] if before else {}, verdicts)}
        self._sent = tip, dict(verdicts)
        self._unsent = json.dumps(message).encode() + b"\n"
        self._send()

    def receive_all(self) -> list[Mapping[str, Any]]:
        """Return its new messages, in order."""
        messages = []
        with contextlib.suppress(IndexError):
            while True:
                messages.append(self._received.popleft())
        return messages

    def state_moved(self, tip: str | None, fresh: Sequence[FreshArtifact]) -> StateMove | None:
        """Return the change of `state.json` by commits on a tip; None without change or answer.

        Only an idle observer is asked, for a short time; otherwise the state file follows in a
        commit of its own. The daemon does not fold history, and no artifact waits for a process
        that does.
        """
        if self._line is None or self._unsent or tip is None or self._has_read != tip:
            return None
        self._questions += 1
        self._answered.clear()
        question = {
            "ask": self._questions,
            "tip": tip,
            "fresh": [_encode_artifact(artifact) for artifact in fresh],
        }
        self._unsent = json.dumps(question).encode() + b"\n"
        if not self._send() or not self._answered.wait(ASKED_FOR_S):
            self._has_read = None  # until it says again that it is at rest
            return None
        number, state = self._answer or (0, None)
        if number != self._questions or not isinstance(state, list):
            return None
        path, before, after = state
        return StateMove(str(path), b64decode(before), b64decode(after))

    def close(self) -> None:
        """End it, and wait for its end and its last messages.

        It lives as long as its socket to this process.
        """
        process, line, listener = self._process, self._line, self._listener
        self._process = self._line = self._listener = self._sent = None
        self._unsent, self._has_read = b"", None
        if process is None or line is None or listener is None:
            return
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_WR)
        try:
            process.wait(_END_S)
        except (TimeoutError, subprocess.TimeoutExpired):
            process.kill()
            process.wait(_END_S)
        listener.join(_END_S)
        line.close()
        with contextlib.suppress(OSError, YoloError):
            remove(os.path.join(self._folder, SOCKET))

    def _start(self) -> None:
        self._started_at = time.monotonic()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = start_observer(self._folder, self._root, theirs.fileno())
        self._line = ours
        self._listener = threading.Thread(target=self._listen, args=(ours.dup(),), daemon=True)
        self._listener.start()

    def _listen(self, line: socket.socket) -> None:
        """Receive its messages until it ends; runs in a thread of its own."""
        with line, line.makefile("rb") as lines:
            for message in _lines(lines):
                if "answer" in message:
                    self._answer = int(message["answer"]), message.get("state")
                    self._answered.set()
                    continue
                self._has_read = message.get("at", self._has_read)
                self._received.append(message)
                self._wake()
        self._wake()

    def _send(self) -> bool:
        """Send the unsent bytes as far as the buffer has room; return whether none are left."""
        assert self._line is not None
        try:
            while self._unsent:
                size = self._line.send(self._unsent, socket.MSG_DONTWAIT)
                self._unsent = self._unsent[size:]
        except BlockingIOError:
            return False
        except OSError:  # it has just ended, and the next is told everything
            self._unsent = b""
        return True

    def _note_end(self, now: float) -> None:
        self.close()
        self._ended_at, self._was_stopped = now, False
        is_short = now - self._started_at < SHORT_LIFE_S
        self._pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * self._pause_s)) * is_short


def _encode_artifact(fresh: FreshArtifact) -> list[str]:
    return [fresh.place.path, b64encode(fresh.data).decode(), fresh.blob]


def fresh_from(rows: Iterable[Sequence[str]]) -> tuple[FreshArtifact, ...]:
    """Return the artifacts in a question of the daemon."""
    places = ((classify(path), b64decode(data), blob) for path, data, blob in rows)
    return tuple(FreshArtifact(place, data, blob) for place, data, blob in places if place)


def _lines(stream: BinaryIO) -> Iterator[Mapping[str, Any]]:
    with contextlib.suppress(OSError, ValueError):
        while line := stream.readline(_LONGEST_BYTES):
            message = json.loads(line)
            if isinstance(message, dict):
                yield message


class Channel:
    """The observer's end of the socket."""

    def __init__(self, line: socket.socket):
        self._line = line
        self._lock = threading.Lock()
        self._received = b""
        self.is_open = True

    def fileno(self) -> int:
        return self._line.fileno()

    def send(self, message: Mapping[str, object]) -> None:
        """Send the daemon a message; do nothing if it has ended."""
        data = json.dumps(message).encode() + b"\n"
        with self._lock:
            try:
                self._line.sendall(data)
            except OSError:
                self.is_open = False

    def emit(self, event: str, path: str, data: Mapping[str, Any]) -> None:
        """Make the daemon write an event to the journal."""
        self.send({"event": [event, path, data]})

    def answer(self, number: int, move: StateMove | None) -> None:
        """Answer the daemon's question which state file changes."""
        pieces = (move.before, move.after) if move else ()
        state = [move.path, *(b64encode(piece).decode() for piece in pieces)] if move else None
        self.send({"answer": number, "state": state})

    def wrote(self, paths: Sequence[str]) -> None:
        """Report the artifacts that were written."""
        self.send({"wrote": list(paths)})

    def receive(self) -> list[Mapping[str, Any]]:
        """Return the complete messages received; call it when the socket is readable."""
        try:
            part = self._line.recv(_RECEIVED)
        except OSError:
            part = b""
        self.is_open &= bool(part)
        *lines, self._received = (self._received + part).split(b"\n")
        return [json.loads(line) for line in lines]


def verdict_as_json(verdict: Verdict) -> dict[str, Any] | None:
    """Return the JSON for a verdict on an uncommitted file; None for any other verdict."""
    match verdict:
        case Accepted():
            return {"kind": "held", **describe(Held(Reason.QUEUED))}
        case Rejected():
            return {"kind": "rejected", **describe(verdict)}
        case Held():
            return {"kind": "held", **describe(verdict)}
        case Waiting():
            return {"kind": "waiting", **describe(verdict)}
    return None


def verdict_from_json(payload: Mapping[str, Any]) -> Verdict:
    """Return the verdict from the JSON of `verdict_as_json`.

    Raises:
        ValueError, KeyError: it is of another version.
    """
    findings, reason = (
        tuple(map(Finding.from_json, payload["findings"])),
        Reason.of(payload["reason"]),
    )
    match payload["kind"]:
        case "rejected":
            return Rejected(findings)
        case "held":
            return Held(reason, findings)
        case "waiting":
            return Waiting(reason)
    raise ValueError(payload["kind"])


def changed(before: Mapping[str, Verdict], now: Mapping[str, Verdict]) -> dict[str, Any]:
    """Return the changes for `applied`: path → verdict, None if it is gone."""
    gone: dict[str, Any] = dict.fromkeys(before.keys() - now.keys())
    fresh: Iterable[tuple[str, Verdict]] = (
        (path, verdict) for path, verdict in now.items() if before.get(path) is not verdict
    )
    return gone | {path: verdict_as_json(verdict) for path, verdict in fresh}


def applied(before: Mapping[str, Verdict], changes: Mapping[str, Any]) -> dict[str, Verdict]:
    """Return the verdicts after some changes.

    Raises:
        ValueError, KeyError: they are of another version.
    """
    made = {path: verdict for path, verdict in before.items() if path not in changes}
    return made | {path: verdict_from_json(payload) for path, payload in changes.items() if payload}
