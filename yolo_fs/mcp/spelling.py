"""How a tool is called where a text of ours names a command: a model that sees tools alone can run
no command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOOLS: Mapping[str, str] = {
    r"yolo-fs schema example (?P<path>[^\s']+)": r"`whose_turn`",
    r"yolo-fs phase sign-off (?P<phase>\w+)(?: --as \S*\w)?": (
        r"`task` action=sign-off phase=\g<phase>"
    ),
    r"yolo-fs decide assign (?P<task>\S+) --as (?P<agent>\S+) --reason": (
        r"`task` action=assign task=\g<task> agent=\g<agent> reason"
    ),
    r"yolo-fs escalate resolve (?P<id>\S+) --by (?P<agent>\S+) --decision ": (
        r"`escalate` action=resolve id=\g<id> agent=\g<agent> decision="
    ),
    r"yolo-fs escalate (?P<action>list|open)": r"`escalate` action=\g<action>",
    r"yolo-fs workflow next(?: --phase \w+)?": r"`whose_turn`",
    r"yolo-fs validate (?P<path>[^\s']+)": r"`validate_artifact` path=\g<path>",
    r"(?<!# )yolo-fs (?:status|resume)(?![\w -])": r"`team_status`",
    r"yolo-fs inbox": r"`inbox`",
}
"""Command → tool with its arguments. What is not here a person runs: it keeps its name."""
_PATTERNS = {
    re.compile(f"(?P<quote>'?){command}(?P=quote)"): tool for command, tool in _TOOLS.items()
}


def name_tools(text: str) -> str:
    """Return a text in which each command that a tool carries out is that tool."""
    if "yolo-fs " in text:
        for pattern, tool in _PATTERNS.items():
            text = pattern.sub(tool, text)
    return text
