"""`validate-commit`: advises when the subject of a `git commit` is not `{type}({scope}): {text}`. Always 0.

Only the text of `-m` is seen, and of several the last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from yolo_fs.compat.hook import advise, read_input, tool_input
from yolo_fs.reasons import safe
from yolo_fs.subject import GRAMMAR, TYPES

_FLAG = r"(?:^|\s)(?:-[a-zA-Z]*m|--message)(?:\s+|=)?"
_TEXTS = (
    re.compile(_FLAG + r'"((?:[^"\\]|\\.)*)"', re.DOTALL),
    re.compile(_FLAG + r"'([^']*)'"),
    re.compile(_FLAG + r"([^\s\"']\S*)"),
)


def run(_: Sequence[str]) -> int:
    subject = _subject(tool_input(read_input(), "command"))
    if subject and not GRAMMAR.match(subject):
        form = f"{{type}}({{scope}}): {{desc}}, type one of {', '.join(TYPES)}"
        advise(f"Commit message does not match format {form}: {safe(subject)}")
    return 0


def _subject(command: str) -> str:
    """Return the first line of the message that a commit is given; nothing when it is given none on the line."""
    if "git commit" not in command or "cat <<" in command:
        return ""
    found = next((texts for pattern in _TEXTS if (texts := pattern.findall(command))), [])
    return str(found[-1]).lstrip("\n").partition("\n")[0] if found else ""
