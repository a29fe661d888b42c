"""What the fold writes down of a department. Pure; merges, never overwrites blind.

What can be computed is computed; what only its writer knows (`started_at`, `blockers`, `eta`, a
declared failure, keys that we do not know) survives. A declaration that the evidence does not bear
out is kept beside the derived value and shown as drift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.rules.phase.progress import DepartmentStatus, StepStanding

DECLARABLE = ("status", "step", "plans_complete", "plans_total")
"""Keys of a department's status that a Lead may declare and the fold derives."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Something that was declared and is not what the evidence says."""

    where: str
    """Department, or the state file."""
    key: str
    declared: object
    derived: object

    def __str__(self) -> str:
        return (
            f"{self.where}: {self.key} is declared {self.declared!r}, the evidence says "
            f"{self.derived!r}"
        )


def derived_status(progress: DepartmentStatus) -> dict[str, Any]:
    """Return what the evidence says of a department, under the keys of its status file."""
    current = progress.current
    begun = any(one.standing in _BEGUN for one in progress.steps) or bool(progress.plans)
    status = "running" if begun else "pending"
    if current is None:
        status = "complete"
    return {
        "status": status,
        "step": current.step.key if current else "signoff",
        "plans_complete": progress.plans_complete,
        "plans_total": len(progress.plans),
    }


_BEGUN = (StepStanding.COMPLETE, StepStanding.RUNNING)


def department_status(
    progress: DepartmentStatus, before: Mapping[str, Any], now: str, error: str
) -> dict[str, Any]:
    """Return the status file of a department: eight keys in the reference's order, then ours, then
    what others added.

    `before`: the file as it is; empty when there is none. `now`: ISO time. `error`: the first
    finding of a rejected artifact. The same evidence gives the same file: only a change moves
    `updated_at` and `seq`.
    """
    derived = derived_status(progress)
    declared = declarations(before, derived)
    if declared.get("status") == "failed" and derived["status"] != "complete":
        derived["status"] = "failed"  # a judgement of the Lead; no evidence can contradict it
    started = before.get("started_at") or (now if derived["status"] != "pending" else "")
    first = {
        "dept": progress.department.value,
        "status": derived["status"],
        "step": derived["step"],
        "started_at": started,
        "updated_at": before.get("updated_at") or now,
        "plans_complete": derived["plans_complete"],
        "plans_total": derived["plans_total"],
        "error": error,
        "percent_complete": progress.percent,
        "blockers": before.get("blockers") or [],
        "eta": before.get("eta") or "",
        "seq": before.get("seq", 0),
    }
    others = {key: value for key, value in before.items() if key not in first and key != "declared"}
    fresh = first | ({"declared": declared} if declared else {}) | others
    if fresh == dict(before):
        return fresh
    return fresh | {"updated_at": now, "seq": seq_of(before) + 1}


def seq_of(status: Mapping[str, Any]) -> int:
    """Return how often a status file was written; 0 where it does not say so as a whole number."""
    seq = status.get("seq")
    return seq if type(seq) is int else 0


def declarations(before: Mapping[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was declared of a department and differs from the evidence.

    A file that was written by others since our last write speaks for itself; in one of ours, what
    was declared stands under `declared`.
    """
    declared = before.get("declared")
    said = dict(declared) if isinstance(declared, dict) else {}
    if said.pop("by", None) is None and before and "seq" not in before:
        said = {key: before[key] for key in DECLARABLE if key in before}
    return {
        key: value for key, value in said.items() if key in DECLARABLE and value != derived[key]
    }


def drift_of_department(progress: DepartmentStatus, status: Mapping[str, Any]) -> Iterator[Drift]:
    """Yield where a department's status file disagrees with the evidence, whoever wrote it.

    A declared failure is a judgement, which no evidence can contradict.
    """
    derived = derived_status(progress)
    written = {key: status[key] for key in DECLARABLE if key in status}
    for key, value in (written | declarations(status, derived)).items():
        if value != derived[key] and not (key == "status" and value == "failed"):
            yield Drift(progress.department.value, key, value, derived[key])


def drift_of_state(where: str, state: Mapping[str, Any]) -> Iterator[Drift]:
    """Yield what is declared in a state file of ours beside what it derives (see
    `rules.states.seal`).
    """
    declared = state.get("declared")
    for key, value in declared.items() if isinstance(declared, dict) else ():
        yield Drift(where, key, value, _status_in(state, key))


def _status_in(state: Mapping[str, Any], key: str) -> object:
    """Return what a state file says under a key such as `status`, `steps.qa` or
    `gates.all-depts`.
    """
    group, _, name = key.partition(".")
    found = state.get(group)
    if name and isinstance(found, list):
        found = {str(one.get("id")): one for one in found if isinstance(one, dict)}
    entry = found.get(name) if name and isinstance(found, dict) else found
    return entry.get("status") if isinstance(entry, dict) else entry
