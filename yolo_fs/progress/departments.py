"""Writes what a Lead declares about its department, and removes coordination files.

A declaration is written under the department's lock and merged with the evidence. The files by
which departments coordinate are removed when a phase is over or given up.

An allow-list decides what is removed, so that no plan, summary or other artifact can be touched.
`.phase-orchestration.json` is an artifact all the same: it is removed only while the branch has
exactly its content. A lock that is held is left, because otherwise two processes would hold it. See
docs/dev/faults.md#f44, #f47 and #f51.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from yolo_fs.artifacts.classify import classify
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.states.project import DECLARABLE, says_ours, seq_of
from yolo_fs.system.file_locks import update
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import (
    SHARED,
    Damaged,
    ListedFolder,
    RefusedError,
    opened,
    reap_temporaries,
)
from yolo_fs.system.system import try_lock
from yolo_fs.workspace.planning_tree import own_phase_folder

if TYPE_CHECKING:
    from yolo_fs.git.repository import Repository


STATUSES = ("pending", "running", "complete", "failed")


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a Lead declares; None leaves a value as it is."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """Any of `status`, `step`, `plans_complete`, `plans_total`, `error`, `eta`."""
    blockers: tuple[str, ...] | None = None
    expect_seq: int | None = None
    """Write only if the file still has this sequence number."""


def declare(
    root: str, department: Dept, phase: PhaseId, declaration: Declaration
) -> dict[str, Any]:
    """Write a declaration and return the resulting file.

    Raises:
        YoloError: UNKNOWN_NAME for a status or step that the protocol does not know, LOCK_TIMEOUT,
            STATE_CONFLICT when the file has another number than expected, NOT_REGULAR.
    """
    _refuse_unknown(declaration.values)
    folder = own_phase_folder(root, phase)
    path = os.path.join(folder, f".dept-status-{department}.json")
    lock = os.path.join(folder, f".dept-lock-{department}")
    reap_temporaries(folder)
    declared = partial(_declared, department, declaration=declaration)
    written = update(path, lock, declared, root=root, mode=SHARED)
    return written or {}


_FILES = {dept.value: f".dept-status-{dept}.json" for dept in Dept}


Statuses = dict[str, dict[str, Any]]
"""Department → its status file."""


def shown(folder: ListedFolder) -> Statuses:
    """Return the status files of a phase unchanged, by department."""
    contents = {
        name: folder.read_json(file) for name, file in _FILES.items() if file in folder.names
    }
    return {name: value for name, value in contents.items() if isinstance(value, dict)}


def _refuse_unknown(values: Mapping[str, Any]) -> None:
    known = {"status": STATUSES, "step": tuple(STEP_BY_KEY)}
    for key, allowed in known.items():
        if key in values and values[key] not in allowed:
            hint = f"One of: {', '.join(allowed)}."
            raise YoloError(Reason.UNKNOWN_NAME, f"no {key} {safe(str(values[key]))!r}", hint=hint)


def _declared(
    department: Dept, before: dict[str, Any] | Damaged | None, declaration: Declaration
) -> dict[str, Any]:
    old = before if isinstance(before, dict) else {}
    seq = seq_of(old)
    if declaration.expect_seq is not None and declaration.expect_seq != seq:
        message = f"the status has number {seq}, not {declaration.expect_seq}"
        raise YoloError(Reason.STATE_CONFLICT, message, hint="Read it again, then decide again.")
    now = iso(time.time())
    empty: dict[str, Any] = {
        "dept": department.value,
        "status": "running",
        "step": "planning",
        "started_at": now,
        "updated_at": now,
        "plans_complete": 0,
        "plans_total": 0,
        "error": "",
        "percent_complete": 0,
        "blockers": [],
        "eta": "",
        "seq": 0,
    }
    before = old.get("declared")
    declared = dict(before) if isinstance(before, dict) else {}
    declared |= {key: declaration.values[key] for key in DECLARABLE if key in declaration.values}
    fresh = {**empty, **old, **declaration.values, "updated_at": now, "seq": seq + 1}
    if declaration.blockers is not None:
        fresh["blockers"] = list(declaration.blockers)
    return fresh | ({"declared": declared} if declared else {})


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


class Cleaned(NamedTuple):
    """Result of cleaning up the coordination files of one phase."""

    removed: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    """(name, why it was left)."""


def clean(folder: str, reason: str, is_unique: Callable[[str], bool], *, root: str) -> Cleaned:
    """Remove the files on the allow-list.

    `is_unique`: whether a path holds an artifact that no commit has. `root`: the folder itself or
    one above it; no link below it is followed.

    Raises:
        YoloError: STORAGE_FAILED when the directory cannot be listed; NOT_REGULAR.
    """
    patterns = REMOVED + (WHEN_COMPLETE if reason == "complete" else ())
    removed, left = [], []
    for name in _named(folder, patterns):
        if why := _remove_unless_unique(os.path.join(folder, name), is_unique, root):
            left.append((name, why))
        else:
            removed.append(name)
    return Cleaned(tuple(removed), tuple(left))


def is_unique_in(repository: Repository) -> Callable[[str], bool]:
    """Return a predicate: whether a path holds an artifact whose content its branch lacks."""
    tip = repository.head().tip

    def is_unique(path: str) -> bool:
        relative = os.path.relpath(path, repository.root)
        if classify(relative) is None:
            return False
        content, blob = (
            read(repository.root, relative, _LIMIT_BYTES),
            repository.blob_at(tip, relative),
        )
        if isinstance(content, Content) and blob is None and says_ours(content.data):
            return False  # it follows from the branch, which need not have it
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
    matching = ([name for name in names if fnmatchcase(name, pattern)] for pattern in patterns)
    return [name for named in matching for name in named]


def _remove_unless_unique(path: str, is_unique: Callable[[str], bool], root: str) -> str:
    """Remove a file and return nothing, or return why it was left."""
    try:
        if is_unique(path):
            return UNIQUE
        with opened(path, root) as (place, name):
            return _remove(place, name)
    except FileNotFoundError:
        return ""
    except (OSError, RefusedError) as error:
        return (isinstance(error, OSError) and error.strerror) or str(error)


def _remove(place: int, name: str) -> str:
    """Remove a file, a link or a lock's empty directory from a folder; return why not.

    `place`: descriptor of the open folder.
    """
    is_lock = fnmatchcase(name, _LOCK)
    kind = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
    if stat.S_ISDIR(kind):
        if not is_lock:
            return "it is a directory"
        os.rmdir(name, dir_fd=place)
        return ""
    if is_lock and stat.S_ISREG(kind) and _is_held(place, name):
        return HELD
    os.unlink(name, dir_fd=place)
    return ""


def _is_held(place: int, name: str) -> bool:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=place)
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)
