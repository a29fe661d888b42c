"""`dept-gate`: whether a gate between departments is met, at once or by waiting."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence

from yolo_fs.compat.arguments import Given, UsageError, parse
from yolo_fs.compat.folder import Folder
from yolo_fs.protocol.gates import GATE_BY_NAME, Gate
from yolo_fs.reasons import safe
from yolo_fs.rules.phase.gate_needs import lacking
from yolo_fs.rules.phase.gate_sources import FolderEvidence

TIMEOUT_S = 1800.0
POLL_S = 0.5


def run(arguments: Sequence[str]) -> int:
    given = parse(
        arguments,
        valued=("--gate", "--phase-dir", "--timeout", "--poll-interval"),
        switches=("--no-poll",),
    )
    name = given.need("--gate")
    if name not in GATE_BY_NAME:
        raise UsageError(f"Unknown gate: {name}", hint=f"it is one of {', '.join(GATE_BY_NAME)}")
    folder = Folder(given.need_folder("--phase-dir"))
    timeout_s, poll_s = (
        _seconds(given, "--timeout", TIMEOUT_S),
        _seconds(given, "--poll-interval", POLL_S),
    )
    if "--no-poll" in given.switches:
        return 1 if lacking(GATE_BY_NAME[name], FolderEvidence(folder)) else 0
    return _wait(GATE_BY_NAME[name], folder, timeout_s, poll_s)


def _seconds(given: Given, flag: str, default: float) -> float:
    text = given.values.get(flag, "")
    try:
        value = float(text) if flag in given.values else default
    except ValueError:
        value = -1
    if math.isfinite(value) and value >= 0:
        return value
    raise UsageError(f"{flag}: not a number of seconds: {text}")


def _wait(gate: Gate, folder: Folder, timeout_s: float, poll_s: float) -> int:
    deadline = time.monotonic() + timeout_s
    while missing := _lacking(gate, folder):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            needs = "; ".join(safe(need) for need in missing)
            print(
                f"TIMEOUT: gate {gate.name} not met after {timeout_s:g} s: {needs}", file=sys.stderr
            )
            return 1
        time.sleep(min(max(poll_s, 0.01), left_s))
    return 0


def _lacking(gate: Gate, folder: Folder) -> Sequence[str]:
    """Return what is missing; everything, when the directory itself went away while we waited."""
    try:
        return lacking(gate, FolderEvidence(folder))
    except OSError:
        return gate.needs
