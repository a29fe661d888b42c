"""Every verb that somebody may run in a repository that they do not know, and what hosts of agents ask there."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from typing import Any

from tests.e2e.artifacts import PLANNING
from tests.security.asking import Question
from tests.security.doors import Door, rows_of, verbs

PHASE = f"{PLANNING}/phases/01-phase-1"
_NOT_ASKED = ("start", "restart", "stop", "board", "mcp", "agent shutdown")
"""Verbs that begin or end a process, which whoever asks many questions in a row does for themselves."""


def _lines() -> Iterator[str]:
    for name, _ in verbs():
        for row in () if name in _NOT_ASKED else rows_of(Door("verb", name))[:1]:
            yield f"{name} {row.words}".strip()


READERS = tuple(_lines())
"""Each verb of the program, in its shortest way."""


def questions(lines: tuple[str, ...]) -> list[Question]:
    return [Question(tuple(shlex.split(line))) for line in lines]


def of_hosts(root: str, path: str) -> list[Question]:
    """Return what a host asks of an agent that edits a file; the most telling questions, or all with YOLO_SECURITY."""
    edit = {"tool_name": "Write", "tool_input": {"file_path": path, "content": "x"}}
    shell = {"tool_name": "Bash", "tool_input": {"command": f"cat {PLANNING}/config.json > {path}"}}
    asked = [
        _of_host("session-start", root, {}),
        _of_host("pre-tool-use", root, edit),
        _of_host("pre-tool-use", root, {**edit, "agent_type": "yolo-dev"}),
        _of_host("pre-tool-use", root, shell),
        _of_host("post-tool-use", root, edit),
        _of_host("subagent-stop", root, {"agent_type": "yolo-dev"}),
        _of_host("stop", root, {}),
    ]
    return asked if os.environ.get("YOLO_SECURITY") else asked[0:7:3]


def _of_host(event: str, root: str, more: dict[str, Any]) -> Question:
    return Question(("hook", event), json.dumps({"cwd": root, "hook_event_name": event, **more}))
