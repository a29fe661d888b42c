"""What the fold writes down: department status, execution state, project state. Pure; merges, never overwrites blind.

What can be computed is computed; what only its writer knows (`started_at`, `blockers`, `eta`, a declared failure,
keys that we do not know) survives. A declaration that the evidence does not bear out is kept beside the derived
value and shown as drift. Source: protocol 2.3, 2.4, 3.2; design 1; peers, pain 16.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.protocol.names import Dept
from yolo_fs.rules.evidence import PlanStanding
from yolo_fs.rules.progress import DepartmentProgress, PhaseProgress, StepProgress, StepStanding

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
        return f"{self.where}: {self.key} is declared {self.declared!r}, the evidence says {self.derived!r}"


def derived_status(progress: DepartmentProgress) -> dict[str, Any]:
    """Return what the evidence says of a department, under the keys of its status file."""
    current = progress.current
    begun = any(one.standing in _BEGUN for one in progress.steps) or bool(progress.plans)
    return {
        "status": "complete" if current is None else "running" if begun else "pending",
        "step": current.step.key if current else "signoff",
        "plans_complete": progress.plans_complete,
        "plans_total": len(progress.plans),
    }


_BEGUN = (StepStanding.COMPLETE, StepStanding.RUNNING)


def department_status(progress: DepartmentProgress, before: Mapping[str, Any], now: str, error: str) -> dict[str, Any]:
    """Return the status file of a department: eight keys in the reference's order, then ours, then what others added.

    `before`: the file as it is; empty when there is none. `now`: ISO time. `error`: the first finding of a
    rejected artifact. The same evidence gives the same file: only a change moves `updated_at` and `seq`.
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
    return fresh | {"updated_at": now, "seq": int(before.get("seq") or 0) + 1}


def declarations(before: Mapping[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was declared of a department and differs from the evidence.

    A file that was written by others since our last write speaks for itself; in one of ours, what was declared
    stands under `declared`.
    """
    said = dict(before.get("declared") or {})
    if said.pop("by", None) is None and before and "seq" not in before:
        said = {key: before[key] for key in DECLARABLE if key in before}
    return {key: value for key, value in said.items() if key in DECLARABLE and value != derived[key]}


def drift_of_department(progress: DepartmentProgress, status: Mapping[str, Any]) -> Iterator[Drift]:
    """Yield where a department's declared status and the evidence part."""
    derived = derived_status(progress)
    for key, value in declarations(status, derived).items():
        if not (key == "status" and value == "failed"):
            yield Drift(progress.department.value, key, value, derived[key])


def execution_state(progress: PhaseProgress, before: Mapping[str, Any], times: Mapping[str, str]) -> dict[str, Any]:
    """Return the execution state of a phase, with everything in `before` that cannot be computed.

    `times`: commit → ISO time, so that the file depends on history alone and not on when it is written.
    Source: protocol 2.3.
    """
    steps = {one.step.key: one for one in _all_steps(progress)}
    old_steps: Mapping[str, Any] = steps_ if isinstance(steps_ := before.get("steps"), dict) else {}
    plans = [plan for department in progress.departments for plan in department.plans]
    old_plans = {plan.get("id"): plan for plan in before.get("plans") or () if isinstance(plan, dict)}
    waves = [int(plan.wave) for plan in plans]
    open_waves = [int(plan.wave) for plan in plans if not plan.is_done]
    fresh: dict[str, Any] = {
        "phase": int(progress.phase.number),
        "phase_name": before.get("phase_name") or str(progress.phase),
        "status": "complete" if progress.is_complete else "running",
        "started_at": before.get("started_at") or min(times.values(), default=""),
        "step": progress.step,
        "wave": min(open_waves or waves, default=1),
        "total_waves": max(waves, default=1),
        "plans": [
            dict(old_plans.get(str(plan.id), {}))
            | {
                "id": str(plan.id),
                "title": plan.title,
                "wave": max(1, int(plan.wave)),
                "status": "complete" if plan.standing is PlanStanding.COMPLETE else "pending",
            }
            for plan in plans
        ],
        "steps": {key: _step_state(one, old_steps.get(key) or {}, times) for key, one in steps.items()},
        "escalations": before.get("escalations") or [],
    }
    if progress.is_complete:
        fresh["completed_at"] = before.get("completed_at") or max(times.values(), default="")
    if len(progress.departments) > 1:
        fresh["departments"] = {
            one.department.value: {key: derived_status(one)[key] for key in ("status", "step")}
            for one in progress.departments
        }
    return fresh | {key: value for key, value in before.items() if key not in fresh}


def _all_steps(progress: PhaseProgress) -> list[StepProgress]:
    """Return one entry per step, in the workflow's order; of several departments the one that is furthest behind."""
    behind: dict[str, StepProgress] = {}
    for department in progress.departments:
        for one in department.steps:
            known = behind.get(one.step.key)
            if known is None or _RANK[one.standing] < _RANK[known.standing]:
                behind[one.step.key] = one
    every = [*behind.values(), *progress.steps]
    return sorted(every, key=lambda one: float(one.step.number))


_RANK = {
    StepStanding.PENDING: 0,
    StepStanding.READY: 1,
    StepStanding.RUNNING: 2,
    StepStanding.SKIPPED: 3,
    StepStanding.COMPLETE: 4,
}
_STEP_STATUS = {
    StepStanding.PENDING: "pending",
    StepStanding.READY: "pending",
    StepStanding.RUNNING: "running",
    StepStanding.SKIPPED: "skipped",
    StepStanding.COMPLETE: "complete",
}


def _step_state(one: StepProgress, before: Mapping[str, Any], times: Mapping[str, str]) -> dict[str, Any]:
    status = _STEP_STATUS[one.standing]
    fresh: dict[str, Any] = {**before, "status": status}
    if status == "complete":
        fresh |= {"completed_at": before.get("completed_at") or times.get(one.by, ""), "reason": ""}
        fresh.setdefault("artifact", ", ".join(one.step.outputs))
    elif status == "skipped":
        fresh |= {"reason": one.by}
        fresh.setdefault("skipped_at", "")
    return fresh


def project_state(phases: tuple[PhaseProgress, ...], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return `state.json`: the first phase that is not complete, or the last one. Source: protocol 1.3, 2.4."""
    current = next((one for one in phases if not one.is_complete), phases[-1])
    plans = [plan for phase in phases for department in phase.departments for plan in department.plans]
    done = sum(plan.is_done for plan in plans)
    everything = all(one.is_complete for one in phases)
    fresh = {
        "ms": before.get("ms") or "default",
        "ph": int(current.phase.number),
        "tt": len(phases),
        "st": "complete" if everything else "executing" if plans else "planning",
        "step": current.step,
        "pr": 100 * done // len(plans) if plans else 0,
        "started": before.get("started") or "",
    }
    return fresh | {key: value for key, value in before.items() if key not in fresh}


def department_of(name: str) -> Dept | None:
    """Return the working department of a name, or None."""
    return next((dept for dept in (Dept.BACKEND, Dept.FRONTEND, Dept.UIUX) if dept.value == name), None)
