"""The tools of every host that reach files, and what each does with them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Act(StrEnum):
    """What a tool does with what it is given."""

    READ = "read"
    WRITE = "write"
    RUN = "run"
    """Runs a command of a shell, or a patch, which tells itself what it touches."""
    TELL = "tell"
    """Writes to another agent."""


TOOLS: Mapping[str, Act] = {
    "Read": Act.READ,
    "NotebookRead": Act.READ,
    "Grep": Act.READ,
    "Glob": Act.READ,
    "Write": Act.WRITE,
    "Edit": Act.WRITE,
    "MultiEdit": Act.WRITE,
    "NotebookEdit": Act.WRITE,
    "StrReplace": Act.WRITE,
    "Delete": Act.WRITE,
    "Bash": Act.RUN,
    "Shell": Act.RUN,
    "shell": Act.RUN,
    "exec_command": Act.RUN,
    "apply_patch": Act.RUN,
    "SendMessage": Act.TELL,
}
"""Tools of every host that reach files or other agents; the rest are none of our business."""

PATH_KEYS = ("file_path", "path", "notebook_path", "target_file")
"""Keys of `tool_input` that name a file."""

RECIPIENT_KEYS = ("recipient", "to")
"""Keys of `tool_input` that name who is written to."""
