"""Questions on a terminal: `cli/asking.py`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.support.terminal import Terminal

ASKED = """
import sys
from typing import Any, cast
from yolo_fs.cli.asking import InboxPrompt, StoppedError

prompt = InboxPrompt(cast(Any, None), cast(Any, None))
for number in range(int(sys.argv[1])):
    try:
        print("got", prompt._read(f"question {number}: "))
    except StoppedError:
        print(f"ended {number}.", flush=True)
"""
TIMES = 12


def asked(place: Path, count: int = 1) -> Terminal:
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-P", "-c", ASKED, str(count)]
    return Terminal(command, place, {**os.environ, "PYTHONPATH": root})


def test_a_signal_that_comes_as_a_question_is_shown_ends_it(tmp_path: Path) -> None:
    """A new process for each: only the first question takes a moment before it reads."""
    for _ in range(TIMES):
        terminal = asked(tmp_path)
        terminal.until("question 0: ")
        terminal.process.send_signal(signal.SIGTERM)
        terminal.until("ended 0.", within_s=30)
        assert terminal.end() == 0


def test_lines_that_are_typed_ahead_answer_one_question_each(tmp_path: Path) -> None:
    terminal = asked(tmp_path, count=3)
    terminal.type("one\nzwö\n\x04")
    assert terminal.end() == 0
    for answer in ("got one", "got zwö", "question 2: \r\ngot"):
        assert answer.encode() in terminal.shown, terminal.shown
