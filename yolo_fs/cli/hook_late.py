"""The guard's answer when its time runs out or it fails by a defect of ours.

It refuses what is certainly forbidden, using only what is already imported, and any request of an
agent of the company that takes too long, because the agent controls how long that is. A host whose
hook times out lets the tool run, which would be wrong for exactly these requests.
"""

from __future__ import annotations

import os
import re

from yolo_fs.cli import hook_question
from yolo_fs.cli.hook_question import find_root, is_one_of_ours, may_destroy, root_of, texts_of
from yolo_fs.core.tool_calls import PATH_KEYS, command_in, given_to, is_mcp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

UNKEPT = "What this destroys was not saved: the check ended too early. Commit or copy it first."
_NAMES = (
    r"\.dept-status-|\.dept-lock-|\.handoff-|\.escalation-state\.json$|\.escalation-resolution-"
)
"""Patterns of the beginnings of file names that are never written by hand; a test keeps them equal
to the table of guarded files.
"""
GUARDED_NAME = re.compile(_NAMES)
_TREE = ".yolo-planning"
_LONGEST_PATH = 4_096
_TARGET = re.compile(r"(?:>\s*+|\*\*\* (?:Add|Update|Delete) File: )([^\s>]*+)")
"""The target of a redirection or a patch."""
_QUOTES = "\"'"
_BELOW_TREE = re.compile(rf"/(?:{_NAMES.replace('$', '')})")
_REMOVED = re.compile(rf"\s*rm\s+(?:-\S+\s+)*[\"']?(?:\./)?(?:\.git|{re.escape(_TREE)})/?[\"']?\s*")
WRITERS = ("Write", "Edit", "MultiEdit", "NotebookEdit", "StrReplace", "Delete")
"""Tools that write the file they name; a test keeps them equal to the table of tools."""


def answer_late(
    request: tuple[str, str, str, Mapping[str, Any]], failure: str = ""
) -> tuple[dict[str, Any], str, int]:
    """Return what goes to stdout and stderr and the exit code.

    `failure`: why there was no full check; empty if it ran out of time.
    """
    _, host, cwd, payload = request
    is_cursor = host == "cursor"
    took = f"the whole check did not end within {hook_question.LIMIT_S:g} s"
    cause = failure or took
    if why := _forbidden(payload, cwd):
        first = f"{why} (decided by its name alone: {cause})."
        instead = "try again in a moment; 'yolo-fs doctor' shows what is slow"
    elif not failure and is_one_of_ours(payload, root_of(payload, cwd)):
        first = f"The check whether this may run is not finished: {took}."
        instead = (
            "split it into several shorter commands, or try again in a moment; "
            "'yolo-fs doctor' shows what is slow"
        )
    else:
        note = f"yolo-fs hook: not checked, {cause}; the tool may run. "
        is_told = not is_cursor and may_destroy(given_to(payload))
        context = {"hookEventName": "PreToolUse", "additionalContext": UNKEPT}
        told_agent = {"hookSpecificOutput": context} if is_told else {}
        return told_agent, f"{note}The daemon and 'yolo-fs verify' check what it leaves behind.", 0
    return _refusal(host, first, instead)


def answer_unread(host: str, note: str) -> tuple[Mapping[str, Any], str, int]:
    """Return the refusal of a request that cannot be parsed; `note`: why."""
    first = "The call cannot be checked: its description by the host is too large or too deep."
    instead = "write less at once, in several calls"
    return _refusal(host, first, instead)[0], note, 0


def _refusal(host: str, first: str, instead: str) -> tuple[dict[str, Any], str, int]:
    reason = f"{first}\nInstead: {instead}."
    if host == "cursor":
        return {"permission": "deny", "user_message": first, "agent_message": reason}, "", 0
    denied = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}}, "", 0


def _forbidden(payload: Mapping[str, Any], cwd: str) -> str:
    """Return why a tool is certainly forbidden; empty if only the full check can tell."""
    given = given_to(payload)
    for key in PATH_KEYS if payload.get("tool_name") in WRITERS else ():
        path = given.get(key)
        if isinstance(path, str) and _is_guarded(os.path.join(cwd, path)):
            return (
                f"{ascii(os.path.basename(path))[1:-1]:.200} is a file that only a command "
                "of yolo-fs writes"
            )
    if is_mcp(payload.get("tool_name")):
        texts = texts_of(given)
        if texts is None or any(_is_guarded_argument(cwd, text) for text in texts):
            return "a file that only a command of yolo-fs writes may be among the arguments"
    text = command_in(given)
    if any(map(_is_below_tree, _TARGET.findall(text))):
        return "a file that only a command of yolo-fs writes would be written"
    if _REMOVED.fullmatch(text) and os.path.isdir(os.path.join(cwd, _TREE)):
        return "the planning tree or the repository itself would be removed"
    return ""


def _is_guarded_argument(cwd: str, text: str) -> bool:
    """Return whether an argument of an MCP tool is the path or URL of a guarded file."""
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
