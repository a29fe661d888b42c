"""The coordination files of departments: `dept-status` reads or writes `.dept-status-{dept}.json`,
under the lock of flock(1); `dept-cleanup` wraps `progress.departments`, which removes all of them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from yolo_fs.compat.script_io import (
    ScriptInput,
    UsageError,
    folder_to_write,
    now,
    parse,
    require_folder,
)
from yolo_fs.compat.scripts import complain
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.system.file_locks import update
from yolo_fs.system.store import SHARED, Damaged

if TYPE_CHECKING:
    from yolo_fs.progress.departments import Cleaned

STATUSES = ("pending", "running", "complete", "failed")
"""A copy of `schemas.state.DeptStatus`, whose import costs 100 ms."""
DECLARED = ("status", "step", "plans_complete", "plans_total")
"""A copy of `states.project.DECLARABLE`, whose import costs as much."""
LOCK_TIMEOUT_S = 10.0
LOCKED = 2

STATUS_USAGE = (
    "dept-status.sh --dept DEPT --phase-dir PATH --action read|write [--status STATUS --step STEP]"
    " [--error TEXT] [--plans-complete N] [--plans-total N]"
)
_FLAGS = (
    "--dept", "--phase-dir", "--action", "--status", "--step", "--error", "--plans-complete",
    "--plans-total",
)  # fmt: skip


def dept_status(arguments: Sequence[str]) -> int:
    given = parse(arguments, STATUS_USAGE, valued=_FLAGS)
    for flag in ("--dept", "--phase-dir", "--action"):
        given.need(flag)
    dept = given.choose("--dept", [row.name.value for row in WORKING])
    action = given.choose("--action", ("read", "write"))
    if action == "write":
        for flag in ("--status", "--step"):
            given.need(flag, f"ERROR: {flag} required for write action")
    folder = require_folder(given.values["--phase-dir"], "ERROR: --phase-dir: directory not found")
    if action == "read":
        return _read(folder, f".dept-status-{dept}.json")
    return _write(folder, dept, given)


def _escape_hidden(data: bytes) -> bytes:
    """Return equivalent JSON in which every character is visible."""
    text = data.decode("utf-8", "replace").replace("\r", "")  # means nothing between values
    plain = (
        char if char.isprintable() or char in "\n\t" else json.dumps(char)[1:-1] for char in text
    )
    return "".join(plain).replace("\x7f", "\\u007f").encode()


def _read(folder: str, name: str) -> int:
    from yolo_fs.compat.script_io import Folder

    data = Folder(folder).content(name)
    if isinstance(data, bytes):
        sys.stdout.buffer.write(_escape_hidden(data))
        return 0
    if data.reason is Reason.FILE_MISSING:
        raise UsageError(f"ERROR: Status file not found: {folder}/{name}")
    raise YoloError(data.reason, f"Status file refused: {folder}/{name}: {data.message}")


def _write(folder: str, dept: str, given: ScriptInput) -> int:
    fresh = {
        "dept": dept,
        "status": given.choose("--status", STATUSES),
        "step": _step(given.values["--step"]),
        "started_at": "",
        "updated_at": now(),
        "plans_complete": _count(given, "--plans-complete"),
        "plans_total": _count(given, "--plans-total"),
        "error": given.values.get("--error", ""),
    }
    root, folder = folder_to_write(folder)
    path = os.path.join(folder, f".dept-status-{dept}.json")
    lock = os.path.join(folder, f".dept-lock-{dept}")
    try:
        merged = partial(_merged, path, fresh=fresh)
        update(path, lock, merged, LOCK_TIMEOUT_S, root=root, mode=SHARED)
    except YoloError as error:
        if error.reason is not Reason.LOCK_TIMEOUT:
            raise
        complain(error)
        return LOCKED
    return 0


def _step(step: str) -> str:
    """Return the step, with a warning if unknown: a refused write would leave a stale status."""
    if step not in STEP_BY_KEY:
        print(f"[warn] --step: not a step of the workflow: {safe(step)}", file=sys.stderr)
    return step


def _count(given: ScriptInput, flag: str) -> int:
    """Return a counter; 0 if omitted, whatever the file had before."""
    text = given.values.get(flag, "0")
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise UsageError(f"ERROR: {flag}: not a count: {text}")


def _merged(
    path: str, before: Mapping[str, Any] | Damaged | None, fresh: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the eight keys, then the keys that others added to the file."""
    if isinstance(before, Damaged):
        hint = "look at what it is, then remove it; the next write creates it again"
        raise YoloError(
            before.reason, f"{path}: {before.reason.sentence}: {before.detail}", hint=hint
        )
    old = before or {}
    value = {**fresh, "started_at": _started(old, fresh["updated_at"])}
    others = {key: item for key, item in old.items() if key not in value}
    return value | others | _mark_declared(value, others)


def _mark_declared(value: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Mark a file of the coordinator as declared by a Lead.

    The fold compares the declaration with the evidence. A file without `seq` is not the
    coordinator's and keeps the eight keys.
    """
    if not isinstance(number := others.get("seq"), int):
        return {}
    return {"seq": number + 1, "declared": {key: value[key] for key in DECLARED}}


def _started(old: Mapping[str, Any], moment: str) -> str:
    """Return the time of the first write; now if the file has none, or one in the future."""
    started = old.get("started_at")
    try:
        at = datetime.fromisoformat(started) if isinstance(started, str) else None
        is_past = at is not None and at <= datetime.now(UTC)
    except (ValueError, TypeError):
        is_past = False
    return str(started) if is_past else moment


ORCHESTRATION = ".phase-orchestration.json"
CLEANUP_USAGE = "dept-cleanup.sh --phase-dir PATH --reason complete|failure|timeout"


def dept_cleanup(arguments: Sequence[str]) -> int:
    from yolo_fs.progress.departments import REASONS  # dept-status does without them

    given = parse(arguments, CLEANUP_USAGE, valued=("--phase-dir", "--reason"))
    folder, reason = given.need("--phase-dir"), given.choose("--reason", REASONS)
    if not os.path.isdir(folder):
        print(f"WARNING: Phase dir does not exist: {safe(folder, 500)}", file=sys.stderr)
        return 0
    cleaned = _clean_phase(*folder_to_write(folder), reason)
    for name, why in cleaned.left:
        print(f"WARNING: not removed: {safe(name)}: {safe(why)}", file=sys.stderr)
    if not cleaned.removed:
        print(f"No coordination files to clean up in {safe(folder, 500)}")
        return 0
    print(f"Cleaned up {len(cleaned.removed)} coordination files (reason: {reason}):")
    for name in cleaned.removed:
        print(f"  removed: {safe(name)}")
    return 0


def _clean_phase(root: str, folder: str, reason: str) -> Cleaned:
    """Clean a phase; outside of a repository, by the allow-list alone, since no branch exists.

    If git fails, the only artifact of the list stays.
    """
    from yolo_fs.progress.departments import clean, is_unique_in

    try:
        from yolo_fs.git.repository import Repository  # fails where git does not work

        with Repository(folder) as repository:
            is_unique = is_unique_in(repository)
            return clean(folder, reason, is_unique, root=root)
    except YoloError as error:
        is_outside = error.reason is Reason.NOT_A_REPOSITORY
    return clean(
        folder, reason, lambda path: not is_outside and path.endswith(ORCHESTRATION), root=root
    )
