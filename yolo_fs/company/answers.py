"""The answer of an agent in place of a tool that its role lacks: the content of a file, a decision.

The roster gives some roles no tool to write or to run commands; the runner writes their answer for
them, word for word. It is validated like any other file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from yolo_fs.authority.actors import Actor
from yolo_fs.authority.authority import has_tool
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.system.store import SHARED, make_folders, write_text

_FENCE = re.compile(r"(`{3,})[\w-]*[ \t]*\n?")
_SAID = re.compile(r"^(Decision|Escalate): +(\S.*)$", re.MULTILINE)

OPTION = " | "
"""Stands before each option of an escalation, after the question; the first option is the
recommended one.
"""


class Spoken(NamedTuple):
    """The parts of an act that its agent has no tool for, and states in its answer."""

    files: tuple[str, ...] = ()
    """Paths whose content the answer gives."""
    decides: bool = False
    """The answer gives what the act's command is to record."""


NOTHING_SPOKEN = Spoken()


def spoken_by(actor: Actor, writes: Sequence[str], command: str) -> Spoken:
    """Return what an agent says rather than does, by the tools that the roster gives it.

    A shell is none to write with: without a terminal a host lets it run `yolo-fs` alone.
    """
    row = AGENT_BY_NAME.get(actor.name)
    if row is None or not row.tools:
        return NOTHING_SPOKEN
    can_write = has_tool(actor, "Write") or has_tool(actor, "Edit")
    files = () if can_write else tuple(writes)
    return Spoken(files, bool(command) and not has_tool(actor, "Bash"))


def contents_in(answer: str, files: Sequence[str]) -> Mapping[str, str]:
    """Return path → content: the last fenced blocks of an answer, one per file.

    Return nothing if there are fewer blocks than files.
    """
    blocks = [*_blocks_in(answer.replace("\r\n", "\n"))]
    if not files or len(blocks) < len(files):
        return {}
    return dict(zip(files, blocks[-len(files) :], strict=True))


def _blocks_in(text: str) -> Iterator[str]:
    """Yield the text between two fences of the same length; an unclosed block does not count."""
    fence, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        if fence and line.rstrip() == fence:
            yield "".join(lines)
            fence, lines = "", []
        elif fence:
            lines.append(line)
        elif opened := _FENCE.fullmatch(line):
            fence = opened[1]


def decision_in(answer: str) -> tuple[str, str]:
    """Return `Decision` or `Escalate` and the text after it, from the last such line.

    Both are empty if there is no such line.
    """
    matches = _SAID.findall(answer)
    return matches[-1] if matches else ("", "")


def put(root: str, contents: Mapping[str, str]) -> None:
    """Write the files of an answer into the work tree.

    Raises:
        YoloError: as `store.write_atomic`.
    """
    for path, text in contents.items():
        full = os.path.join(root, path)
        make_folders(os.path.dirname(full), root=root)
        write_text(full, text, root=root, mode=SHARED)
