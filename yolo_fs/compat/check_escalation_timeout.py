"""`check-escalation-timeout`: which pending escalations have waited too long at one level."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from yolo_fs.compat.arguments import parse
from yolo_fs.compat.folder import read_object
from yolo_fs.compat.output import print_json, warn
from yolo_fs.protocol.workflow import LIMIT_BY_KEY
from yolo_fs.reasons import YoloError
from yolo_fs.rules.phase.waves import section

CONFIG = "config/defaults.json"
ACTION = "Auto-escalate to next level"


USAGE = "check-escalation-timeout.sh --phase-dir PATH [--config PATH]"


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, USAGE, valued=("--phase-dir", "--config"))
    state = os.path.join(given.need("--phase-dir"), ".execution-state.json")
    timeout_s = _timeout(given.values.get("--config", CONFIG))
    entries = _entries(state)
    waiting = [_waiting(entry) for entry in entries if entry.get("status") == "pending"]
    timed_out = [
        {**one, "recommended_action": ACTION}
        for one in waiting
        if one["elapsed_seconds"] > timeout_s
    ]
    active = [one for one in waiting if one["elapsed_seconds"] <= timeout_s]
    resolved = sum(entry.get("status") == "resolved" for entry in entries)
    print_json({"timed_out": timed_out, "active": active, "resolved": resolved})
    return 1 if timed_out else 0


def _timeout(path: str) -> float:
    default = LIMIT_BY_KEY["escalation.timeout_seconds"].value
    try:
        config = read_object(path) or {}
    except YoloError as error:
        warn(f"{error.message}; the timeout is {default} s")
        return default
    value = section(config, "escalation").get("timeout_seconds", default)
    return value if isinstance(value, int | float) else default


def _entries(path: str) -> Sequence[Mapping[str, Any]]:
    """Return the escalations; none, with a warning, when the file cannot be read: 1 means "timed
    out".
    """
    try:
        entries = (read_object(path) or {}).get("escalations") or []
    except YoloError as error:
        warn(error.message)
        return ()
    if not isinstance(entries, list):
        warn(f"{path}: escalations is not a list")
        return ()
    return [entry for entry in entries if isinstance(entry, dict)]


def _waiting(entry: Mapping[str, Any]) -> dict[str, Any]:
    name = _text(entry, "id")
    elapsed_s = int(time.time()) - _moment(entry, name)
    if elapsed_s < 0:
        warn(f"{name}: last_escalated_at lies in the future")
    return {"id": name, "task": _text(entry, "task"), "elapsed_seconds": max(elapsed_s, 0)}


def _moment(entry: Mapping[str, Any], name: str) -> int:
    """Return when it came to its level, seconds since the epoch; 0 when that cannot be read:
    silence is no consent.
    """
    said = entry.get("last_escalated_at") or ""
    try:
        at = datetime.fromisoformat(said)
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    except (ValueError, TypeError, OverflowError):
        if said:
            warn(f"{name}: last_escalated_at is not a timestamp: {said}")
        return 0


def _text(entry: Mapping[str, Any], key: str) -> str:
    return str(entry.get(key) or "unknown")
