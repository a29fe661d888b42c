"""Asks a person on a terminal for open decisions, and settles them as `answer` does."""

from __future__ import annotations

import os
import select
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from yolo_fs.cli.answer import put_answer, show_moves
from yolo_fs.cli.decide import decide
from yolo_fs.core.ids import EscalationId
from yolo_fs.core.reasons import YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.snapshots.inbox import InboxItem

if TYPE_CHECKING:
    from rich.console import Console

_AGREED = frozenset({"y", "yes"})
_YES_OR_LATER = frozenset({"agent", "approval", "budget"})
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LINE_BYTES = 65_536
"""More than a terminal gives as one line."""


class StoppedError(Exception):
    """The person wants to end the run."""


class InboxPrompt:
    """Asks questions on the terminal."""

    def __init__(self, repository: Repository, console: Console):
        self._repository, self._console = repository, console

    def settle(self, items: Sequence[InboxItem]) -> frozenset[str]:
        """Ask each question in turn, and return the ids of those that are settled.

        Raises:
            StoppedError: Ctrl-C, or another signal that ends a run.
        """
        return frozenset(item.id for item in items if self._settle(item))

    def choose(self, question: str, options: Sequence[str], default: str) -> str:
        """Return one of the options, by its number or its name; the default for an empty line.

        Raises:
            StoppedError: as above.
        """
        self._console.print(safe(question, 500), style="bold")
        for at, each in enumerate(options, 1):
            self._console.print(safe(f"  {at} {each}", 300))
        names = [each.partition(":")[0] for each in options]
        while answer := self._read(f"1 to {len(options)} [{default}]: "):
            if answer in names:
                return answer
            if answer.isdecimal() and 0 < int(answer) <= len(names):
                return names[int(answer) - 1]
        return default

    def _settle(self, item: InboxItem) -> bool:
        self._console.print(safe(item.question, 1000), style="bold")
        if item.kind in _YES_OR_LATER:
            return self._read("y to continue, Enter for later: ").lower() in _AGREED
        name = EscalationId.parse(item.id)
        if name is None:
            self._console.print(safe(f"  run: {item.command}", 500))
            return self._decide(shlex.split(item.command))
        for at, each in enumerate(item.options, 1):
            self._console.print(safe(f"  {at} {each}", 500))
        if item.recommendation:
            self._console.print(safe(f"  recommended: {item.recommendation}", 500))
        numbers = f"1 to {len(item.options)}, or " if item.options else ""
        while answer := self._read(f"{numbers}your own words, Enter for later: "):
            try:
                return self._answer(name, item, answer)
            except YoloError as error:
                self._console.print(safe(error.message, 500), style="red")
        return False

    def _decide(self, words: Sequence[str]) -> bool:
        """Ask for the reason of a decision and record it; return whether that was done."""
        if tuple(words[:2]) != ("yolo-fs", "decide") or words[-1] != "…":
            return False
        while reason := self._read("your reason, Enter for later: "):
            given = [*words[2:-1], reason, "-C", self._repository.root]
            try:
                decide.main(args=given, prog_name="yolo-fs decide", standalone_mode=False)
            except YoloError as error:
                self._console.print(safe(error.message, 500), style="red")
            else:
                return True
        return False

    def _answer(self, name: EscalationId, item: InboxItem, answer: str) -> bool:
        """Log an answer; if somebody else was faster, show that theirs holds."""
        is_choice = answer in item.options
        is_choice = is_choice or (answer.isdecimal() and 0 < int(answer) <= len(item.options))
        choice, text = (answer, "") if is_choice else ("", answer)
        moves = put_answer(self._repository, name, choice, text)
        show_moves(self._console, moves)
        for finding in moves[-1].findings:
            self._console.print(safe(str(finding), 500), style="yellow")
        return True

    def _read(self, prompt: str) -> str:
        """Return the typed line; an end of input defers the question."""
        with _stop_on_signal() as signalled:
            print(prompt, end="", flush=True)
            ready, _, _ = select.select((sys.stdin, signalled), (), ())
            if signalled in ready:
                raise StoppedError
            line = os.read(sys.stdin.fileno(), _LINE_BYTES)
        if not line:
            print()
        return line.decode(sys.stdin.encoding, sys.stdin.errors or "strict").strip()


@contextmanager
def _stop_on_signal() -> Iterator[int]:
    """Yield a descriptor that can be read once a signal has come that ends a run.

    `input` misses a signal that comes just before it begins to read.
    """

    def stop(_number: int, _frame: object) -> None:
        raise StoppedError

    signalled, written = os.pipe()
    os.set_blocking(written, False)
    before = {number: signal.signal(number, stop) for number in _STOPPING}
    woken = signal.set_wakeup_fd(written)
    try:
        yield signalled
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(signalled)
        os.close(written)
