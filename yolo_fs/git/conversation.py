"""A long-running git that answers requests over pipes, such as `cat-file --batch`."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from typing import IO, cast

from yolo_fs.core.reasons import YoloError
from yolo_fs.git.failures import TIMEOUT_S, GitOutput, failure, timeout_error

_COMPLAINTS_BYTES = 1 << 16


class Conversation:
    """A git process that answers requests over pipes, such as `cat-file --batch`."""

    def __init__(self, command: str, process: subprocess.Popen[bytes]):
        self.command = command
        self.pid = process.pid
        self._process = process
        self._in = cast("IO[bytes]", process.stdin)
        self._out = cast("IO[bytes]", process.stdout).fileno()
        self._err = cast("IO[bytes]", process.stderr).fileno()
        self._ahead = b""
        """Output that was read but not requested yet."""
        self._complaints = b""
        """The end of its stderr, which is read continuously, or it would fill the pipe."""

    def ask(self, question: bytes) -> None:
        """Send bytes.

        Raises:
            YoloError: the process is gone; says what it complained about.
        """
        try:
            self._in.write(question)
            self._in.flush()
        except (BrokenPipeError, ValueError):
            raise self._ended() from None

    def line(self) -> bytes:
        """Return the next line of the answer without its newline."""
        return self.until(b"\n")

    def until(self, end: bytes) -> bytes:
        """Return the answer up to the byte `end`."""
        while (at := self._ahead.find(end)) < 0:
            self._ahead += self._more()
        answer, self._ahead = self._ahead[:at], self._ahead[at + 1 :]
        return answer

    def exactly(self, size_bytes: int) -> bytes:
        """Return that many bytes of the answer."""
        parts, size = [self._ahead], len(self._ahead)
        while size < size_bytes:
            parts.append(self._more())
            size += len(parts[-1])
        whole = b"".join(parts)
        self._ahead = whole[size_bytes:]
        return whole[:size_bytes]

    def rest(self, most_bytes: int, silence_s: float = TIMEOUT_S) -> bytes | None:
        """Return all further output; if it exceeds `most_bytes`, kill the process and return None.

        Raises:
            YoloError: GIT_FAILED; GIT_TIMEOUT after `silence_s` of silence.
        """
        self.end_questions()
        parts, size = [self._ahead], len(self._ahead)
        while size <= most_bytes and (piece := self._next(silence_s)):
            parts.append(piece)
            size += len(piece)
        if size > most_bytes:
            self.kill()
            return None
        ended = self.finish()
        if ended.code:
            raise failure(self.command, ended)
        return b"".join(parts)

    def end_questions(self) -> None:
        """Close the process's input; `has_ended` tells when it is done."""
        with contextlib.suppress(OSError):
            self._in.close()
        self._process.stdin = None

    def has_ended(self) -> bool:
        """Return whether the process has ended; its output can still be read."""
        return self._process.poll() is not None

    def finish(self) -> GitOutput:
        """Close the process's input, and return its result once it has ended.

        Raises:
            YoloError: GIT_TIMEOUT after `TIMEOUT_S`.
        """
        self.end_questions()
        try:
            out, err = self._process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise timeout_error(self.command) from None
        complaints = (self._complaints + err).decode("utf-8", "replace")
        return GitOutput(self._process.returncode, out, complaints)

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """End the conversation; the process sees the end of its input and stops."""
        try:
            with contextlib.suppress(OSError, ValueError):
                self._process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _more(self) -> bytes:
        """Return the next chunk of output, however small.

        Raises:
            YoloError: GIT_TIMEOUT after `TIMEOUT_S` of silence; GIT_FAILED when the process is
                gone.
        """
        if piece := self._next(TIMEOUT_S):
            return piece
        raise self._ended()

    def _next(self, silence_s: float) -> bytes:
        """Return the next chunk of output, empty at the end. Raises YoloError(GIT_TIMEOUT)."""
        listened = select.poll()  # select(2) knows no descriptor beyond 1,023
        for descriptor in (self._out, self._err):
            listened.register(descriptor, select.POLLIN)
        while ready := [descriptor for descriptor, _ in listened.poll(1000 * silence_s)]:
            if self._err in ready:
                chunk = os.read(self._err, 1 << 16)
                self._complaints = (self._complaints + chunk)[-_COMPLAINTS_BYTES:]
                if not chunk:
                    listened.unregister(self._err)
            if self._out in ready:
                return os.read(self._out, 1 << 16)
        self._process.kill()
        raise timeout_error(self.command)

    def _ended(self) -> YoloError:
        try:
            _, err = self._process.communicate(timeout=TIMEOUT_S)
        except (ValueError, subprocess.TimeoutExpired):
            err = b""
        complaints = (self._complaints + err).decode("utf-8", "replace")
        return failure(self.command, GitOutput(self._process.returncode or 0, b"", complaints))
