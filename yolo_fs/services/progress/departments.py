"""What a Lead says of its department, written under the department's lock and merged with what the
evidence says.

See docs/faults.md#f47 and #f51.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yolo_fs.edges.store import SHARED, Damaged, read_json, reap_temporaries, update
from yolo_fs.ids import PhaseId
from yolo_fs.protocol.names import Dept
from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.rules.states.department import DECLARABLE, seq_of
from yolo_fs.rules.timestamps import iso
from yolo_fs.services.workspace.places import own_phase_folder, phase_folder

STATUSES = ("pending", "running", "complete", "failed")


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a Lead declares; None leaves a value as it is."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """Any of `status`, `step`, `plans_complete`, `plans_total`, `error`, `eta`."""
    blockers: tuple[str, ...] | None = None
    expect_seq: int | None = None
    """Write only if the file still has this number."""


def declare(root: str, department: Dept, phase: PhaseId, said: Declaration) -> dict[str, Any]:
    """Write a declaration and return the file as it is afterwards.

    Raises:
        YoloError: UNKNOWN_NAME for a status or step that the protocol does not know, LOCK_TIMEOUT,
            STATE_CONFLICT when the file has another number than expected, NOT_REGULAR.
    """
    _refuse_unknown(said.values)
    folder = own_phase_folder(root, phase)
    path = os.path.join(folder, f".dept-status-{department}.json")
    lock = os.path.join(folder, f".dept-lock-{department}")
    reap_temporaries(folder, 0)
    written = update(path, lock, lambda before: _declared(department, before, said), mode=SHARED)
    return written or {}


def shown(root: str, phase: PhaseId) -> dict[str, dict[str, Any]]:
    """Return the status files of a phase, department by department, as they are."""
    folder = phase_folder(root, phase)
    found = {
        dept.value: read_json(os.path.join(folder, f".dept-status-{dept}.json")) for dept in Dept
    }
    return {name: value for name, value in found.items() if isinstance(value, dict)}


def _refuse_unknown(values: Mapping[str, Any]) -> None:
    known = {"status": STATUSES, "step": tuple(STEP_BY_KEY)}
    for key, allowed in known.items():
        if key in values and values[key] not in allowed:
            hint = f"One of: {', '.join(allowed)}."
            raise YoloError(
                Reason.UNKNOWN_NAME,
                f"no {key} {safe(str(values[key]))!r}",
                hint=hint,
                exit_code=Exit.USAGE,
            )


def _declared(
    department: Dept, before: dict[str, Any] | Damaged | None, said: Declaration
) -> dict[str, Any]:
    old = before if isinstance(before, dict) else {}
    seq = seq_of(old)
    if said.expect_seq is not None and said.expect_seq != seq:
        message = f"the status has number {seq}, not {said.expect_seq}"
        raise YoloError(Reason.STATE_CONFLICT, message, hint="Read it again, then decide anew.")
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
    declared |= {key: said.values[key] for key in DECLARABLE if key in said.values}
    fresh = {**empty, **old, **said.values, "updated_at": now, "seq": seq + 1}
    if said.blockers is not None:
        fresh["blockers"] = list(said.blockers)
    return fresh | ({"declared": declared} if declared else {})
