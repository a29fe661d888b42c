"""`generate-execution-state`: writes `.execution-state.json` of a phase that was just planned, and
prints its path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.folder import Folder, read_object
from yolo_fs.compat.output import now
from yolo_fs.edges.store import SHARED, write_json
from yolo_fs.ids import PhaseId, PlanId
from yolo_fs.reasons import Reason, YoloError
from yolo_fs.rules.phase.gate_sources import first, says

STEPS = (
    "critique", "architecture", "planning", "design_review", "test_authoring", "implementation", "code_review", "qa",
    "security", "signoff",
)  # fmt: skip
"""Those that the reference writes; readers accept any subset."""
_EARLIER = {"critique": "critique.jsonl", "architecture": "architecture.toon"}
_PLAN, _SUMMARY = ".plan.jsonl", ".summary.jsonl"


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, valued=("--phase-dir", "--phase"), switches=("--force",))
    path = given.need_folder("--phase-dir")
    name = os.path.basename(os.path.abspath(path))
    number = _number(given.need("--phase"), name)
    target = os.path.join(path, ".execution-state.json")
    if "--force" not in given.switches:
        _refuse_existing(target)
    plans = list(_plans(Folder(path)))
    if not plans:
        raise UsageError(f"no plans found in {path}")
    write_json(target, _state(Folder(path), number, name, plans), mode=SHARED)
    print(target)
    return 0


def _number(text: str, directory: str) -> int:
    phase = PhaseId.parse(directory)
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise UsageError(f"--phase: not a phase number: {text}")
    if phase and int(phase.number) != int(text):
        raise UsageError(f"--phase: {text} is not the phase of {directory}")
    return int(text)


def _refuse_existing(target: str) -> None:
    status = (read_object(target) or {}).get("status")
    if status in ("running", "complete"):
        raise YoloError(
            Reason.STATE_CONFLICT,
            f"{target} exists already, with status {status}",
            hint="--force replaces it",
        )


def _plans(folder: Folder) -> Iterator[dict[str, Any]]:
    for file in folder.names("", _PLAN):
        header = first(folder.rows(file))
        plan = PlanId.parse(f"{header.get('p')}-{header.get('n')}")
        wave = header.get("w")
        if plan is None or type(wave) is not int or wave < 1:
            raise YoloError(
                Reason.BAD_FORMAT, f"{file}: line 1 is not a plan header with p, n and w"
            )
        summaries = (f"{plan}{_SUMMARY}", file.removesuffix(_PLAN) + _SUMMARY)
        is_done = any(
            says(row, "s", "complete") for name in summaries for row in folder.rows(name)[:1]
        )
        title, status = str(header.get("t", "")), "complete" if is_done else "pending"
        yield {"id": str(plan), "title": title, "wave": wave, "status": status}


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
