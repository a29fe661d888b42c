"""Asks a long-running git over pipes, and tells git's errors from its answers."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from typing import IO, NamedTuple, cast

from yolo_fs.reasons import Exit, Reason, YoloError, safe

TIMEOUT_S = 10.0
"""Longest wait for one answer of git."""

_COMPLAINTS_BYTES = 1 << 16


class GitError(YoloError):
    """git ended with an error."""

    def __init__(self, reason: Reason, message: str, said: str, exit_code: Exit):
        super().__init__(reason, message, exit_code=exit_code)
        self.said = said
        """All that git complained about, uncut and unescaped: to be searched, never to be shown."""


class GitOutput(NamedTuple):
    """What a git command said."""

    code: int
    out: bytes
    err: str


def failure(command: str, answer: GitOutput) -> GitError:
    """Return the error that an answer of git amounts to."""
    shown = safe(answer.err.strip().replace("\n", " ")) or f"exit code {answer.code}"
    full = "No space left on device" in answer.err or "Disk quota exceeded" in answer.err
    reason, code = (
        (Reason.NO_SPACE, Exit.TRY_AGAIN) if full else (Reason.GIT_FAILED, Exit.GIT_FAILED)
    )
    return GitError(reason, f"git {command}: {shown}", answer.err, code)


def timeout_error(command: str) -> YoloError:
    return YoloError(
        Reason.GIT_TIMEOUT,
        f"git {command} took longer than {TIMEOUT_S:.0f} s",
        exit_code=Exit.GIT_FAILED,
    )


class Conversation:
    """A git process that is asked and answers over pipes, such as `cat-file --batch`."""

    def __init__(self, command: str, process: subprocess.Popen[bytes]):
        self.command = command
        self.pid = process.pid
        self._process = process
        self._in = cast("IO[bytes]", process.stdin)
        self._out = cast("IO[bytes]", process.stdout).fileno()
        self._err = cast("IO[bytes]", process.stderr).fileno()
        self._ahead = b""
        """Read from the process, not yet asked for."""
        self._complaints = b""
        """The last of what it complained about; read as it comes, or it would fill the pipe and
        stop."""

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

    def end_questions(self) -> None:
        """Let the process see the end of its input; `has_ended` tells when it is done."""
        with contextlib.suppress(OSError):
            self._in.close()
        self._process.stdin = None

    def has_ended(self) -> bool:
        """Return whether the process has ended; what it said is still there."""
        return self._process.poll() is not None

    def finish(self) -> GitOutput:
        """End the questions and return how the process ended.

        Raises:
            YoloError: GIT_TIMEOUT after `TIMEOUT_S`.
        """
        self.end_questions()
        try:
            out, err = self._process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise timeout_error(self.command) from None
        return GitOutput(self._process.returncode, out, err.decode("utf-8", "replace"))

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
        """Return what comes next, however little.

        Raises:
            YoloError: GIT_TIMEOUT after `TIMEOUT_S` of silence; GIT_FAILED when the process is
                gone.
        """
        listened = [self._out, self._err]
        while ready := select.select(listened, [], [], TIMEOUT_S)[0]:
            if self._err in ready:
                said = os.read(self._err, 1 << 16)
                self._complaints = (self._complaints + said)[-_COMPLAINTS_BYTES:]
                if not said:
                    listened.remove(self._err)
            if self._out in ready:
                piece = os.read(self._out, 1 << 16)
                if not piece:
                    raise self._ended()
                return piece
        self._process.kill()
        raise timeout_error(self.command)

    def _ended(self) -> YoloError:
        try:
            _, err = self._process.communicate(timeout=TIMEOUT_S)
        except (ValueError, subprocess.TimeoutExpired):
            err = b""
        said = (self._complaints + err).decode("utf-8", "replace")
        return failure(self.command, GitOutput(self._process.returncode or 0, b"", said))
