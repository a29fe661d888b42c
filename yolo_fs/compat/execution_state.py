"""`generate-execution-state`: writes `.execution-state.json` of a phase that was just planned, and
prints its path; and `check-escalation-timeout`: which of its pending escalations have been at one
level for too long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from yolo_fs.compat.script_io import (
    Folder,
    UsageError,
    first,
    folder_to_write,
    now,
    parse,
    print_json,
    read_object,
    require_folder,
    says,
    warn,
)
from yolo_fs.core.ids import PhaseId, PlanId
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.evidence.facts import section
from yolo_fs.protocol.workflow import LIMIT_BY_KEY
from yolo_fs.system.store import SHARED, write_json

STEPS = (
    "critique", "architecture", "planning", "design_review", "test_authoring", "implementation",
    "code_review", "qa", "security", "signoff",
)  # fmt: skip
"""The steps that the reference writes; readers accept any subset."""
_EARLIER = {"critique": "critique.jsonl", "architecture": "architecture.toon"}
STATE_USAGE = "generate-execution-state.sh --phase-dir PATH --phase NN [--force]"
_PLAN, _SUMMARY = ".plan.jsonl", ".summary.jsonl"


def generate_execution_state(arguments: Sequence[str]) -> int:
    given = parse(arguments, STATE_USAGE, valued=("--phase-dir", "--phase"), switches=("--force",))
    path, phase = given.need("--phase-dir"), given.need("--phase")
    require_folder(path, "Error: Phase directory does not exist")
    name = os.path.basename(os.path.abspath(path))
    number = _number(phase, name)
    target = os.path.join(path, ".execution-state.json")
    root, folder = folder_to_write(path)
    if "--force" not in given.switches:
        _refuse_existing(target)
    plans = list(_plans(Folder(path)))
    if not plans:
        raise UsageError(f"Error: No plan.jsonl files found in {path}")
    state = _state(Folder(path), number, name, plans)
    write_json(os.path.join(folder, os.path.basename(target)), state, root=root, mode=SHARED)
    print(target)
    return 0


def _number(text: str, directory: str) -> int:
    phase = PhaseId.parse(directory)
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise UsageError(f"Error: --phase: not a phase number: {text}")
    if phase and int(phase.number) != int(text):
        raise UsageError(f"Error: --phase: {text} is not the phase of {directory}")
    return int(text)


def _refuse_existing(target: str) -> None:
    status = (read_object(target) or {}).get("status")
    if status == "complete":
        raise UsageError("Phase already complete. Use --force to regenerate.")
    if status == "running":
        raise UsageError("Existing state found (status: running). Use --force to regenerate.")


def _plans(folder: Folder) -> Iterator[dict[str, Any]]:
    for file in folder.names("", _PLAN):
        header = first(folder.rows(file))
        if not header:
            raise YoloError(Reason.BAD_FORMAT, f"{file}: line 1 is not the header of a plan")
        plan = f"{header.get('p', '')}-{header.get('n', '')}"
        if not PlanId.parse(plan):
            warn(f"{file}: p and n of its header do not name a plan: {plan}")
        names = [file.removesuffix(_PLAN) + _SUMMARY]
        if "/" not in plan:
            names.append(plan + _SUMMARY)
        summaries = [first(folder.rows(name)) for name in names]
        is_done = any(says(summary, "s", "complete") for summary in summaries)
        yield {
            "id": plan,
            "title": str(header.get("t", "")),
            "wave": _read_wave(file, header.get("w")),
            "status": "complete" if is_done else "pending",
        }


def _read_wave(file: str, wave: object) -> int:
    """Return the wave of a plan: 1 if the header has none."""
    text = str(wave)
    if text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text) > 0:
        return int(text)
    warn(f"{file}: its header has no wave; taken for wave 1")
    return 1


def _state(
    folder: Folder, number: int, name: str, plans: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    moment = now()
    waves = [plan["wave"] for plan in plans]
    unfinished = [plan["wave"] for plan in plans if plan["status"] != "complete"]
    phase = PhaseId.parse(name)
    return {
        "phase": number,
        "phase_name": phase.slug if phase else name,
        "status": "running",
        "started_at": moment,
        "step": "planning",
        "wave": min(unfinished, default=max(waves)),
        "total_waves": max(waves),
        "plans": list(plans),
        "steps": {step: _step(folder, step, moment) for step in STEPS},
    }


def _step(folder: Folder, step: str, moment: str) -> dict[str, str]:
    artifact = _EARLIER.get(step, "")
    is_done = step == "planning" or (artifact != "" and folder.has(artifact))
    return {
        "status": "complete" if is_done else "pending",
        "started_at": "",
        "completed_at": moment if is_done else "",
        "artifact": os.path.join(folder.path, artifact) if is_done and artifact else "",
        "reason": "",
    }


CONFIG = "config/defaults.json"
ACTION = "Auto-escalate to next level"


TIMEOUT_USAGE = "check-escalation-timeout.sh --phase-dir PATH [--config PATH]"


def check_escalation_timeout(arguments: Sequence[str]) -> int:
    given = parse(arguments, TIMEOUT_USAGE, valued=("--phase-dir", "--config"))
    state = os.path.join(given.need("--phase-dir"), ".execution-state.json")
    timeout_s = _timeout(given.values.get("--config", CONFIG))
    entries = _entries(state)
    waiting = [_waiting(entry) for entry in entries if entry.get("status") == "pending"]
    timed_out = [
        {**escalation, "recommended_action": ACTION}
        for escalation in waiting
        if escalation["elapsed_seconds"] > timeout_s
    ]
    active = [escalation for escalation in waiting if escalation["elapsed_seconds"] <= timeout_s]
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
    """Return the escalations; none, with a warning, if unreadable: exit 1 means "timed out"."""
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
    elapsed_s = int(time.time()) - _read_escalation_time(entry, name)
    if elapsed_s < 0:
        warn(f"{name}: last_escalated_at is in the future")
    return {"id": name, "task": _text(entry, "task"), "elapsed_seconds": max(elapsed_s, 0)}


def _read_escalation_time(entry: Mapping[str, Any], name: str) -> int:
    """Return when it reached its level, in seconds since the epoch; 0 if unreadable."""
    timestamp = entry.get("last_escalated_at") or ""
    try:
        at = datetime.fromisoformat(timestamp)
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    except (ValueError, TypeError, OverflowError):
        if timestamp:
            warn(f"{name}: last_escalated_at is not a timestamp: {timestamp}")
        return 0


def _text(entry: Mapping[str, Any], key: str) -> str:
    return str(entry.get(key) or "unknown")
