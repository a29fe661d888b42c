"""A command on a real terminal, which is read and typed to."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

DEADLINE_S = 180.0


class Terminal:
    """A command on a terminal, at which somebody types."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self.shown = b""
        self._mine, other = pty.openpty()
        self.process = subprocess.Popen(
            command, cwd=folder, env={**env, "TERM": "dumb"},
            stdin=other, stdout=other, stderr=other, start_new_session=True,
        )  # fmt: skip
        os.close(other)

    def until(self, text: str, within_s: float = DEADLINE_S) -> None:
        """Read until a text is shown, or the run ends."""
        until = time.monotonic() + within_s
        while text.encode() not in self.shown:
            assert time.monotonic() < until, self.shown
            if not self._read():
                raise AssertionError(self.shown)

    def type(self, text: str) -> None:
        os.write(self._mine, text.encode())

    def close(self) -> None:
        os.close(self._mine)

    def end(self) -> int:
        while self._read():
            pass
        os.close(self._mine)
        return self.process.wait(timeout=DEADLINE_S)

    def _read(self) -> bytes:
        assert select.select([self._mine], [], [], DEADLINE_S)[0], self.shown
        try:
            part = os.read(self._mine, 65536)
        except OSError:  # the other side is closed
            part = b""
        self.shown += part
        return part
