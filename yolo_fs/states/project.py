"""State files as the evidence has them, and how to tell our own last write from others'. Pure.

The files are `state.json`, `.phase-orchestration.json` and the status of a department. They are
merged, and never overwritten blindly.

What can be computed is computed. What only its writer knows (`started_at`, `blockers`, `eta`, a
declared failure, unknown keys) survives. Derived content carries a checksum of the whole file.
While the checksum matches, every value is ours and may be replaced. An edit by somebody else breaks
it. Edited values that the evidence does not support are kept under `declared`, beside the derived
ones, and shown as drift. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yolo_fs.core.foreign_json import parse
from yolo_fs.core.timestamps import day, iso
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts
from yolo_fs.phase.gate_status import GateStatus
from yolo_fs.phase.phase import Phase, Phases
from yolo_fs.phase.progress import DepartmentStatus, StepStanding, count_steps
from yolo_fs.phase.waves import dispatched, waves
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.gates import GATE_BY_NAME, GATE_TIMEOUT_MINUTES
from yolo_fs.protocol.workflow import STEP_BY_KEY

SEAL = "projected"
DECLARED = "declared"

Rank = Callable[[str, Any], float]
"""(key, value) → how far along the value is. A value behind the evidence cannot stay different."""


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with the checksum that marks it as ours."""
    return {**_bare(content), SEAL: _checksum_of(content)}


def renewed(before: Mapping[str, Any] | None, fresh: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fresh content, sealed; None if the file has it already, whoever wrote it."""
    return None if before is not None and _bare(before) == _bare(fresh) else sealed(fresh)


def is_ours(content: Mapping[str, Any]) -> bool:
    """Return whether the content is unchanged since we wrote it."""
    return content.get(SEAL) == _checksum_of(content)


def says_ours(data: bytes) -> bool:
    """Return whether the bytes of a state file are what we wrote."""
    try:
        content = parse(data, len(data))
    except ValueError:
        return False
    return isinstance(content, dict) and is_ours(content)


def declared_in(
    before: Mapping[str, Any],
    statements: Iterable[tuple[str, Any]],
    derived: Mapping[str, Any],
    rank: Rank,
) -> dict[str, Any]:
    """Return what is declared and not supported by evidence: key → value.

    What the evidence has overtaken was true, and is dropped.

    `statements`: (key, value) of what the file says and the evidence decides; they count only where
    the file is not ours. `derived`: what the evidence says, under the same keys.
    """
    old = before.get(DECLARED)
    kept = dict(old) if isinstance(old, dict) else {}
    fresh = {} if is_ours(before) else dict(statements)
    return {
        key: value
        for key, value in (kept | fresh).items()
        if key in derived and value != derived[key] and rank(key, value) >= rank(key, derived[key])
    }


def rank_of_status(_: str, status: object) -> int:
    """Return how far along a status is; a verdict ranks like a completion."""
    return _RANKS.get(str(status), 2)


_RANKS = {"": 0, "pending": 0, "running": 1}


def _bare(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != SEAL}


def _checksum_of(content: Mapping[str, Any]) -> str:
    text = json.dumps(_bare(content), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


NO_MILESTONE = "default"
_STATUS = {
    "planning": ("po", "critique", "research", "architecture", "planning"),
    "executing": ("design_review", "test_authoring", "implementation"),
    "verifying": (
        "code_review",
        "documentation",
        "qa",
        "security",
        "signoff",
        "integration_gate",
        "delivery",
    ),
    "complete": (),
}
"""Status of the project → the steps of a phase in which it has that status."""
_AFTER_SIGN_OFF = ("integration_gate", "delivery")


def project_state(phases: Phases, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the content of `state.json`; None when it is up to date, or there is no phase.

    A file that declares more than the evidence supports is left as it is, and shown as drift: a
    Lead who signs off writes it moments before the rest of the evidence is there.
    """
    old = dict(before or {})
    if not phases or claims(phases, old):
        return None
    derived = _derived(phases)
    derived["tt"] = max(
        derived["tt"], int(_rank("tt", old.get("tt")))
    )  # a roadmap knows of phases yet to begin
    first = {
        "ms": old.get("ms") or NO_MILESTONE,
        **derived,
        "started": old.get("started") or _begin(phases),
    }
    return renewed(before, first | {key: value for key, value in old.items() if key not in first})


def claims(phases: Phases, state: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what a `state.json` declares beyond the evidence: key → what either says."""
    derived = {key: value for key, value in _derived(phases).items() if key != "tt"}
    ahead = declared_in(
        state, ((key, state[key]) for key in derived if key in state), derived, _rank
    )
    return {key: (value, derived[key]) for key, value in ahead.items()}


def current(phases: Phases) -> Phase:
    """Return the project's current phase: the first incomplete one, else the last."""
    return next((phase for phase in phases if not phase.is_complete), phases[-1])


def summary_line(phases: Phases) -> str:
    """Return phase, steps done and the next act, for a status line; empty without a phase."""
    if not phases:
        return ""
    progress = current(phases).progress
    if progress.is_complete:
        return f"{progress.phase} complete"
    done, steps = count_steps(progress.every_step)
    turn = progress.next
    run = f" → {turn.command}" if turn and turn.command else ""
    tail = f", next: {turn.sentence}{run}" if turn else ""
    return f"{progress.phase} {progress.step} {done}/{steps} steps{tail}"


def _derived(phases: Phases) -> dict[str, Any]:
    phase = current(phases)
    plans = [plan for any_phase in phases for plan in any_phase.progress.plans]
    done = sum(plan.is_done for plan in plans)
    return {
        "ph": int(phase.id.number),
        "tt": len(phases),
        "st": _status(phase),
        "step": phase.progress.step,
        "pr": 100 * done // len(plans) if plans else 0,
    }


def _status(phase: Phase) -> str:
    """Return the status of a phase.

    The Lead's sign-off makes it complete, as document 002 has it, until what follows has a result
    that is not enough.
    """
    key = phase.progress.step
    has_begun = any(
        step.step.key == key and step.standing is StepStanding.RUNNING
        for step in phase.progress.steps
    )
    if phase.is_complete or (key in _AFTER_SIGN_OFF and not has_begun):
        return "complete"
    return next(status for status, steps in _STATUS.items() if key in steps)


def _begin(phases: Phases) -> str:
    committed = (artifact for phase in phases for artifact in phase.facts.committed)
    return day(min((artifact.at_s for artifact in committed if artifact.commit), default=0))


def _rank(key: str, value: object) -> float:
    """Return the rank of a value: a number itself, a word by the protocol's order, else -1."""
    order = _ORDER.get(key)
    if order is not None:
        return order.index(value) if value in order else -1
    return value if isinstance(value, int | float) else -1


_ORDER: Mapping[str, tuple[object, ...]] = {"st": tuple(_STATUS), "step": tuple(STEP_BY_KEY)}


def orchestration(phase: Phase, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the content of a phase's orchestration state; None when it is up to date."""
    facts, old = phase.facts, dict(before or {})
    gates = {gate.name: gate for gate in phase.gates}
    first = {
        "phase": facts.phase.number,
        "multi_dept": facts.options.several_departments,
        "workflow": dispatched(facts.options).workflow,
        "departments": {
            status.department.value: _department(facts, status) for status in _sort_by_wave(phase)
        },
        "gates": {name: _gate(facts, gates[name]) for name in GATE_BY_NAME if name in gates},
        "integration_qa": {"status": _integration(phase)},
        "security": {"status": _security(facts)},
        "owner_signoff": {"status": _owner(phase)},
        "started_at": old.get("started_at") or iso(_find_start_s(facts)),
        "timeout_minutes": old.get("timeout_minutes") or GATE_TIMEOUT_MINUTES,
        "waves": _waves(facts),
    }
    others = {key: value for key, value in old.items() if key not in first and key != DECLARED}
    declared = declared_in(old, _claims_in(old), dict(_claims_in(first)), rank_of_status)
    return renewed(before, first | others | ({DECLARED: declared} if declared else {}))


def _find_start_s(facts: PhaseFacts) -> int:
    """Return when the phase began: with its first evidence, or with whatever came before that."""
    present = [
        artifact.at_s for artifact in facts.committed if artifact.commit and artifact.place.phase
    ]
    return min(_moments(facts.committed) or present, default=facts.at_s)


def _waves(facts: PhaseFacts) -> list[dict[str, Any]]:
    """Return which Leads are spawned together, in order, and the gate behind each wave."""
    all_waves = waves(dispatched(facts.options))
    return [
        {"id": number, "depts": [dept.value for dept in wave.departments], "gate": wave.gate}
        for number, wave in enumerate(all_waves, 1)
    ]


def _sort_by_wave(phase: Phase) -> list[DepartmentStatus]:
    order = [name for wave in _waves(phase.facts) for name in wave["depts"]]
    return sorted(
        phase.progress.departments, key=lambda status: order.index(status.department.value)
    )


def _department(facts: PhaseFacts, status: DepartmentStatus) -> dict[str, str]:
    derived = derived_status(status)
    moments = _moments(_of(facts, status.department))
    return {
        "status": derived["status"] if moments else "pending",
        "step": derived["step"] if moments else "",
        "started": iso(min(moments, default=0)),
        "completed": iso(max(moments, default=0)) if status.is_complete else "",
    }


def _gate(facts: PhaseFacts, gate: GateStatus) -> dict[str, str]:
    if not gate.is_open:
        return {"status": "pending", "passed_at": ""}
    commits = {commit for _, commit in gate.evidence}
    passed = (artifact.at_s for artifact in facts.committed if artifact.commit in commits)
    return {"status": "passed", "passed_at": iso(max(passed, default=0))}


def _integration(phase: Phase) -> str:
    if phase.behind:
        return "pending"
    is_failing = any(lacks for _, lacks in phase.integration_checks.values())
    return "FAIL" if is_failing else "PASS"


def _security(facts: PhaseFacts) -> str:
    verdicts = [str(line["r"]) for line in facts.lines_of("security-audit") if "r" in line]
    return next((word for word in ("FAIL", "WARN", "PASS") if word in verdicts), "pending")


def _owner(phase: Phase) -> str:
    if phase.behind:
        return "pending"
    return phase.sign_off.decision.value


def _of(facts: PhaseFacts, department: Dept) -> Iterator[CommittedArtifact]:
    return (artifact for artifact in facts.committed if artifact.place.department == department)


def _moments(committed: Any) -> list[int]:
    return [
        artifact.at_s
        for artifact in committed
        if artifact.commit and artifact.place.phase and artifact.place.artifact.step
    ]


def _claims_in(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what a file says of departments, gates and stages."""
    for group in ("departments", "gates"):
        entries = content.get(group)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            if isinstance(entry, dict) and "status" in entry:
                yield f"{group}.{name}", entry["status"]
    for stage in ("integration_qa", "security", "owner_signoff"):
        entry = content.get(stage)
        if isinstance(entry, dict) and "status" in entry:
            yield stage, entry["status"]


DECLARABLE = ("status", "step", "plans_complete", "plans_total")
"""Keys of a department's status that a Lead may declare and the fold derives."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A declaration that differs from the evidence."""

    where: str
    """Department, or the state file."""
    key: str
    declared: object
    derived: object
    command: str
    """Command that takes it back, proves it, or names what it lacks."""

    def __str__(self) -> str:
        return (
            f"{self.where}: {self.key} is declared {self.declared!r}, the evidence says "
            f"{self.derived!r}"
        )


def derived_status(progress: DepartmentStatus) -> dict[str, Any]:
    """Return what the evidence says of a department, under the keys of its status file."""
    current = progress.current
    begun = any(step.standing in _BEGUN for step in progress.steps) or bool(progress.plans)
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
    progress: DepartmentStatus,
    before: Mapping[str, Any],
    now: str,
    error: str,
    held_up: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the status file of a department.

    It has eight keys in the reference's order, then ours, then what others added.

    `before`: the file as it is; empty when there is none. `now`: ISO time. `error`: the first
    finding of a rejected artifact. `held_up`: blockers by the evidence, which are listed beside the
    declared ones. The same evidence gives the same file: only a change moves `updated_at` and
    `seq`.
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
        "blockers": [*declared_blockers(before), *held_up],
        "eta": before.get("eta") or "",
        "seq": before.get("seq", 0),
    }
    known = {*first, "declared", "held_up"}
    others = {key: value for key, value in before.items() if key not in known}
    ours = {"declared": declared, "held_up": list(held_up)}
    fresh = first | {key: value for key, value in ours.items() if value} | others
    if fresh == dict(before):
        return fresh
    return fresh | {"updated_at": now, "seq": seq_of(before) + 1}


def declared_blockers(before: Mapping[str, Any]) -> list[Any]:
    """Return the blockers that a Lead declared, without those that we had written beside them."""
    blockers, ours = before.get("blockers"), before.get("held_up")
    listed = blockers if isinstance(blockers, list) else []
    return [blocker for blocker in listed if not (isinstance(ours, list) and blocker in ours)]


def seq_of(status: Mapping[str, Any]) -> int:
    """Return how often a status file was written; 0 when it has no whole number."""
    seq = status.get("seq")
    return seq if type(seq) is int else 0


def declarations(before: Mapping[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was declared of a department and differs from the evidence.

    A file that others have written since our last write is itself the declaration. In one of ours,
    the declarations are under `declared`.
    """
    declared = before.get("declared")
    statements = dict(declared) if isinstance(declared, dict) else {}
    if statements.pop("by", None) is None and before and "seq" not in before:
        statements = {key: before[key] for key in DECLARABLE if key in before}
    return {
        key: value
        for key, value in statements.items()
        if key in DECLARABLE and value != derived[key]
    }


def drift_of_department(
    progress: DepartmentStatus, status: Mapping[str, Any], command: str
) -> Iterator[Drift]:
    """Yield where a department's status file disagrees with the evidence, whoever wrote it.

    A declared failure is a judgement, which no evidence can contradict. `command`: what names the
    evidence that is lacking.
    """
    derived = derived_status(progress)
    written = {key: status[key] for key in DECLARABLE if key in status}
    for key, value in (written | declarations(status, derived)).items():
        if value != derived[key] and not (key == "status" and value == "failed"):
            yield Drift(progress.department.value, key, value, derived[key], command)


def drift_of_state(where: str, state: Mapping[str, Any], command: str) -> Iterator[Drift]:
    """Yield what a state file of ours declares beside what it derives (see `sealed`).

    `command`: what names the evidence that is lacking.
    """
    declared = state.get("declared")
    for key, value in declared.items() if isinstance(declared, dict) else ():
        yield Drift(where, key, value, _status_in(state, key), command)


def _status_in(state: Mapping[str, Any], key: str) -> object:
    """Return what a state file says under a key: `status`, `steps.qa`, `gates.all-depts`."""
    group, _, name = key.partition(".")
    section = state.get(group)
    if name and isinstance(section, list):
        section = {str(row.get("id")): row for row in section if isinstance(row, dict)}
    entry = section.get(name) if name and isinstance(section, dict) else section
    return entry.get("status") if isinstance(entry, dict) else entry
