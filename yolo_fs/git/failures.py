"""What git's errors mean: a reason, and the step that is safe."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from yolo_fs.core.reasons import FETCH_LACKING, Exit, Reason, YoloError, safe

TIMEOUT_S = 10.0
"""Longest wait for one answer of git, seconds."""
BRINGS_BACK = f"'{FETCH_LACKING}' from a remote that has it brings it."


class GitError(YoloError):
    """git ended with an error."""

    def __init__(self, reason: Reason, message: str, complaints: str, exit_code: Exit):
        super().__init__(reason, message, hint=_hint_for(complaints), exit_code=exit_code)
        self.said = complaints
        """All of git's error output, uncut and unescaped: to be searched, never to be shown."""


class GitOutput(NamedTuple):
    """Result of a git command."""

    code: int
    out: bytes
    err: str


def failure(command: str, answer: GitOutput) -> GitError:
    """Return the error for a failed git command."""
    if lacked := _IS_LEFT_OUT.search(answer.err):
        message = f"this clone is partial and lacks {lacked[1]}: git {command} needs it"
        return GitError(Reason.OBJECT_MISSING, message, answer.err, Exit.NOT_HERE)
    shown = safe(answer.err.strip().replace("\n", " ")) or f"exit code {answer.code}"
    full = "No space left on device" in answer.err or "Disk quota exceeded" in answer.err
    reason, code = (
        (Reason.NO_SPACE, Exit.TRY_AGAIN) if full else (Reason.GIT_FAILED, Exit.GIT_FAILED)
    )
    return GitError(reason, f"git {command}: {shown}", answer.err, code)


_DAMAGED_INDEX = re.compile(r"index: (?:index file|bad )|index file corrupt")
_NO_REPOSITORY = "not a git repository: '"
_IS_DAMAGED = (" is empty", " is corrupt")
_IS_LEFT_OUT = re.compile("could not fetch ([0-9a-f]{40,}) from promisor remote")
_IS_MISSING = ("missing blob", "missing tree", "missing commit")


_BAD_VALUE = re.compile(r"bad (?:\w+ )?config (?:variable|value '.{0,200}?' for) '([\w.-]+)'")
"""What git says of a value that only some of its commands read."""
_READ_BY_EVERY_GIT = ("core.bare", "core.repositoryformatversion")
_IS_DENIED = re.compile(r": Permission denied$", re.MULTILINE)
"""The system's word about a file; that of a server goes on, as `(publickey)`."""
NO_RIGHT = "Give yourself permission to read and write it; root or a container may have created it."


def _hint_for(complaints: str) -> str:
    """Return which step is safe where git complains about a file of its own."""
    if _IS_LEFT_OUT.search(complaints):
        return BRINGS_BACK
    if _IS_DENIED.search(complaints):  # whatever else git calls it, nothing is damaged
        return NO_RIGHT
    refused = _BAD_VALUE.search(complaints)
    if refused and refused[1] not in _READ_BY_EVERY_GIT:
        shown_by = f"git config --show-origin --get-all {refused[1]}"
        return f"'{shown_by}' shows where it is set: correct it there."
    if refused or "bad config " in complaints:
        return "Correct that line in an editor: until then no git command works."
    if match := _DAMAGED_INDEX.search(complaints):
        is_named = complaints.startswith("index: ", match.start())
        before = complaints[: match.start() + len("index")].rsplit(maxsplit=1)
        path = before[-1] if is_named else ".git/index"
        return (
            "The index is damaged: what was staged is lost, your files are not. "
            f"Move {path} away, then 'git reset' makes a new one."
        )
    _, is_there, rest = complaints.partition(_NO_REPOSITORY)
    folder = rest.partition("'")[0]
    if is_there and is_locked_away(f"{folder}/HEAD"):
        return f"{folder}/HEAD cannot be read. {NO_RIGHT}"
    if is_there:
        return (
            f"If that folder is there, {folder}/HEAD is empty or damaged: its one "
            "line must be 'ref: refs/heads/BRANCH', with the name of your branch."
        )
    for line in complaints.splitlines():
        is_damaged = "object " in line and any(words in line for words in _IS_DAMAGED)
        if is_damaged or any(words in line for words in _IS_MISSING):
            return f"'git fsck' names what is damaged. {BRINGS_BACK}"
    return ""


def is_locked_away(path: str) -> bool:
    """Return whether something is there that this user may not read, or look into."""
    is_folder = os.path.isdir(path)
    return os.path.lexists(path) and not os.access(path, os.R_OK | (os.X_OK if is_folder else 0))


def timeout_error(command: str) -> YoloError:
    return YoloError(Reason.GIT_TIMEOUT, f"git {command} took longer than {TIMEOUT_S:.0f} s")
