"""What the guard answers when its time runs out, or it fails by a defect of ours: no to what is
certainly forbidden, decided by what is imported already; and no to whatever an agent of the company
asks that takes too long, since it decides itself how long that is.

A host that waits in vain lets the tool run, which would be the wrong answer to exactly these.
"""

from __future__ import annotations

import os
import re

from yolo_fs.cli import hook_question
from yolo_fs.cli.hook_question import (
    PATHS,
    find_root,
    is_mcp,
    is_one_of_ours,
    may_destroy,
    read_command_of,
    read_given,
    root_of,
    texts_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

UNKEPT = "What this destroys was not kept: the check did not come so far. Commit or copy it before."
_NAMES = (
    r"\.dept-status-|\.dept-lock-|\.handoff-|\.escalation-state\.json$|\.escalation-resolution-"
)
"""How the names begin that nobody writes by hand; a test keeps them equal to the table of guarded
files."""
GUARDED_NAME = re.compile(_NAMES)
_TREE = ".yolo-planning"
_LONGEST_PATH = 4_096
_TARGET = re.compile(r"(?:>\s*+|\*\*\* (?:Add|Update|Delete) File: )([^\s>]*+)")
"""What a redirection or a patch writes."""
_QUOTES = "\"'"
_BELOW_TREE = re.compile(rf"/(?:{_NAMES.replace('$', '')})")
_REMOVED = re.compile(rf"\s*rm\s+(?:-\S+\s+)*[\"']?(?:\./)?(?:\.git|{re.escape(_TREE)})/?[\"']?\s*")
WRITERS = ("Write", "Edit", "MultiEdit", "NotebookEdit", "StrReplace", "Delete")
"""Tools that write the file they name; a test keeps them equal to the table of tools."""


def answer_late(
    asked: tuple[str, str, str, Mapping[str, Any]], failure: str = ""
) -> tuple[dict[str, Any], str, int]:
    """Return what goes to stdout and stderr and the exit code. `failure`: why there was no whole
    check, if not for lack of time.
    """
    _, host, cwd, told = asked
    is_cursor = host == "cursor"
    took = f"the whole check did not end within {hook_question.LIMIT_S:g} s"
    cause = failure or took
    if why := _forbidden(told, cwd):
        first = f"{why} (decided by its name alone: {cause})."
        instead = "ask again in a moment; 'yolo-fs doctor' says what is slow"
    elif not failure and is_one_of_ours(told, root_of(told, cwd)):
        first = f"It is not known whether this may run: {took}."
        instead = (
            "split it into several shorter commands, or ask again in a moment; "
            "'yolo-fs doctor' says what is slow"
        )
    else:
        note = f"yolo-fs hook: not checked, {cause}; the tool may run. "
        is_told = not is_cursor and may_destroy(read_given(told))
        told_agent = _context(UNKEPT) if is_told else {}
        return told_agent, f"{note}The daemon and 'yolo-fs verify' check what it leaves behind.", 0
    return _refusal(host, first, instead)


def answer_unread(host: str, note: str) -> tuple[Mapping[str, Any], str, int]:
    """Return the answer to a question that cannot be read; `note`: why."""
    first = "It is not known what this does: what the host told of it is too large or too deep."
    instead = "write less at once, in several calls"
    return _refusal(host, first, instead)[0], note, 0


def _refusal(host: str, first: str, instead: str) -> tuple[dict[str, Any], str, int]:
    reason = f"{first}\nInstead: {instead}."
    if host == "cursor":
        return {"permission": "deny", "user_message": first, "agent_message": reason}, "", 0
    denied = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}}, "", 0


def _context(text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": text}}


def _forbidden(told: Mapping[str, Any], cwd: str) -> str:
    """Return why a tool may certainly not run; empty where only the whole check tells."""
    given = read_given(told)
    for key in PATHS if told.get("tool_name") in WRITERS else ():
        path = given.get(key)
        if isinstance(path, str) and _is_guarded(os.path.join(cwd, path)):
            return (
                f"{ascii(os.path.basename(path))[1:-1]:.200} is a file that only a command "
                "of yolo-fs writes"
            )
    if is_mcp(told):
        texts = texts_of(given)
        if texts is None or any(_is_guarded_argument(cwd, text) for text in texts):
            return "a file that only a command of yolo-fs writes may be among the arguments"
    text = read_command_of(given)
    if any(map(_is_below_tree, _TARGET.findall(text))):
        return "a file that only a command of yolo-fs writes would be written"
    if _REMOVED.fullmatch(text) and os.path.isdir(os.path.join(cwd, _TREE)):
        return "the planning tree or the repository itself would be removed"
    return ""


def _is_guarded_argument(cwd: str, text: str) -> bool:
    """Return whether an argument of a server's tool is the path or address of a guarded file."""
    from urllib.parse import unquote

    if len(text) > _LONGEST_PATH or _TREE not in unquote(text):
        return False
    path = unquote(text).removeprefix("file://")
    root = find_root(cwd) or cwd
    return any(_is_guarded(os.path.join(base, path)) for base in (cwd, root))


def _is_below_tree(target: str) -> bool:
    _, tree, below = f"/{target.lstrip(_QUOTES)}".partition(f"/{_TREE}/")
    return bool(tree) and _BELOW_TREE.search(f"/{below}") is not None


def _is_guarded(path: str) -> bool:
    folder, name = os.path.split(os.path.realpath(path))
    return f"/{_TREE}/" in f"{folder}/" and GUARDED_NAME.match(name) is not None
