"""Lets each command that is printed after `yolo-fs -C DIR` work where the person stands.

Hundreds of sentences name a command, most in rules that know of no folder, and some in answers
of the observer: so the text is changed, once, where it is printed.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_EXACT = frozenset(
    ("compat", "completion", "context", "git-hook", "kept", "log", "logs", "mcp", "schema")
)
"""Verbs that print what is there, byte for byte."""
_OF_PROGRAMS = frozenset(("--format", "--help", "--json", "--watch", "-h"))
"""Options whose output a program reads, or that has no command of this work tree."""

_GITS = (
    "add", "branch", "check-attr", "check-ignore", "commit", "config", "diff", "fetch", "fsck",
    "gc", "log", "merge", "mv", "rebase", "remote", "reset", "rev-parse", "show", "stash", "status",
    "switch", "worktree",
)  # fmt: skip
"""What we name of git. Other words after it are prose."""


@contextmanager
def carried(arguments: Sequence[str]) -> Iterator[None]:
    """Add the `-C DIR` of a command line to each command that is printed meanwhile.

    Nothing is added where the person stands in the same work tree.
    """
    start = _start(arguments)
    is_same = not start or _root(start) == _root(os.curdir)
    if is_same or {*arguments} & _OF_PROGRAMS or {*arguments} & _EXACT:
        yield
        return
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_Carrying(stream, start) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _start(arguments: Sequence[str]) -> str:
    """Return the last `-C` of a command line; empty without one."""
    start = ""
    for at, word in enumerate(arguments):
        if word == "--":
            break
        if word == "-C":
            start = "".join(arguments[at + 1 : at + 2])
        elif word.startswith("-C"):
            start = word.removeprefix("-C")
    return start


def _root(folder: str) -> str:
    """Return the folder above with a repository, or the one at the top."""
    root = os.path.realpath(folder)
    while not os.path.lexists(f"{root}/.git") and root != os.path.dirname(root):
        root = os.path.dirname(root)
    return root


class _Carrying:
    """A stream that names a folder in each command."""

    def __init__(self, stream: Any, start: str):
        from yolo_fs.cli.main import VERBS

        verbs = "|".join(verb.name for verb in VERBS)
        self._ours = re.compile(rf"(?<!# )(?<!Usage: )(?<![\w/.@-])yolo-fs (?=(?:{verbs})\b)")
        self._gits = re.compile(rf"(?m)(^ *|'|run: )git (?=(?:{'|'.join(_GITS)})\b)")
        self._stream, self._folder = stream, shlex.quote(start)

    def write(self, text: str) -> int:
        """Write a text with the folder in its commands."""
        text = self._ours.sub(lambda _: f"yolo-fs -C {self._folder} ", text)
        text = self._gits.sub(lambda match: f"{match[1]}git -C {self._folder} ", text)
        self._stream.write(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
