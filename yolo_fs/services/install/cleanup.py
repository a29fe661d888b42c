"""Removes the files that departments coordinate by, when a phase is over or given up.

An allow-list decides, so that no plan, summary or other artifact can be touched; what is an
artifact all the same, `.phase-orchestration.json`, goes only while the branch has the very same
content. A lock that somebody holds is left, for two holders would follow. See docs/faults.md#f44.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from yolo_fs.edges.files import Content, read
from yolo_fs.edges.locking import try_lock
from yolo_fs.reasons import Reason, YoloError
from yolo_fs.rules.artifacts.classify import classify

if TYPE_CHECKING:
    from yolo_fs.edges.git.repository import Repository

REASONS = ("complete", "failure", "timeout")
REMOVED = (".dept-status-*.json", ".handoff-*", ".dept-lock-*", ".phase-orchestration.json")
WHEN_COMPLETE = (".escalation-resolution-*.json",)
"""The reference never removes these.

Before the phase is complete, somebody may still have to read one.
"""
_LOCK = ".dept-lock-*"
_LIMIT_BYTES = 8 << 20

HELD = "somebody holds this lock"
UNIQUE = "no commit has this content"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What became of the coordination files of one phase."""

    removed: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    """(name, why it was left)."""


def clean(folder: str, reason: str, is_unique: Callable[[str], bool]) -> Cleaned:
    """Remove what the allow-list names.

    `is_unique`: whether a path holds an artifact that no commit has.

    Raises:
        YoloError: STORAGE_FAILED when the directory cannot be listed.
    """
    patterns = REMOVED + (WHEN_COMPLETE if reason == "complete" else ())
    removed, left = [], []
    for name in _named(folder, patterns):
        if why := _why_left(os.path.join(folder, name), is_unique):
            left.append((name, why))
        else:
            removed.append(name)
    return Cleaned(tuple(removed), tuple(left))


def is_unique_in(repository: Repository) -> Callable[[str], bool]:
    """Return what tells whether a path of a work tree holds an artifact with a content that its
    branch has not.
    """
    tip = repository.head().tip

    def is_unique(path: str) -> bool:
        relative = os.path.relpath(path, repository.root)
        if classify(relative) is None:
            return False
        content, blob = (
            read(repository.root, relative, _LIMIT_BYTES),
            repository.blob_at(tip, relative),
        )
        return (
            not isinstance(content, Content)
            or repository.object_format.hash_object("blob", content.data).oid != blob
        )

    return is_unique


def _named(folder: str, patterns: Sequence[str]) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise YoloError(Reason.STORAGE_FAILED, f"{folder}: {error.strerror}") from error
    matching = ([name for name in names if fnmatchcase(name, one)] for one in patterns)
    return [name for named in matching for name in named]


def _why_left(path: str, is_unique: Callable[[str], bool]) -> str:
    """Remove a file and return nothing, or return why it was left."""
    try:
        return UNIQUE if is_unique(path) else _remove(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or type(error).__name__


def _remove(path: str) -> str:
    """Remove a file, a link, or the empty directory that stands in for a lock; return why not."""
    is_lock, kind = fnmatchcase(os.path.basename(path), _LOCK), os.lstat(path).st_mode
    if stat.S_ISDIR(kind):
        if not is_lock:
            return "it is a directory"
        os.rmdir(path)
        return ""
    if is_lock and stat.S_ISREG(kind) and _is_held(path):
        return HELD
    os.unlink(path)
    return ""


def _is_held(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)
