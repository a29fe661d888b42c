"""State files as the evidence has them: `state.json`, `.phase-orchestration.json` and what is
written down of a department; and how to tell our own last word from somebody else's. Pure; merges,
never overwrites blind.

What can be computed is computed; what only its writer knows (`started_at`, `blockers`, `eta`, a
declared failure, keys that we do not know) survives. What we derive carries a checksum of the whole
file. As long as it fits, every value is ours and may be replaced; once somebody edits the file it
does not, and what they said that the evidence does not bear out is kept under `declared`, beside
what the evidence says, and shown as drift. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yolo_fs.core.foreign_json import parse
from yolo_fs.core.timestamps import day, iso
from yolo_fs.evidence.facts import Filed, PhaseFacts
from yolo_fs.phase.gate_status import GateStatus
from yolo_fs.phase.gates import integration_result
from yolo_fs.phase.phase import Phase, Phases
from yolo_fs.phase.progress import DepartmentStatus, StepStanding
from yolo_fs.phase.waves import Routing, dispatched, waves
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.gates import GATE_BY_NAME, GATE_TIMEOUT_MINUTES
from yolo_fs.protocol.workflow import STEP_BY_KEY

SEAL = "projected"
DECLARED = "declared"

Rank = Callable[[str, Any], float]
"""How far a value is on its way, by key: what is behind the evidence cannot stay different."""


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with the checksum that says it is ours."""
    return {**_bare(content), SEAL: _checksum(content)}


def renewed(before: Mapping[str, Any] | None, fresh: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fresh content, sealed; None if the file says so already, whoever wrote it."""
    return None if before is not None and _bare(before) == _bare(fresh) else sealed(fresh)


def is_ours(content: Mapping[str, Any]) -> bool:
    """Return whether nobody changed the content since we wrote it."""
    return content.get(SEAL) == _checksum(content)


def says_ours(data: bytes) -> bool:
    """Return whether the bytes of a state file are what we wrote."""
    try:
        content = parse(data, len(data))
    except ValueError:
        return False
    return isinstance(content, dict) and is_ours(content)


def declared_in(
    before: Mapping[str, Any],
    said: Iterable[tuple[str, Any]],
    derived: Mapping[str, Any],
    rank: Rank,
) -> dict[str, Any]:
    """Return what is declared and not borne out: key → value.

    What the evidence has overtaken was true, and is dropped.

    `said`: what the file says in places that the evidence decides, by key; it counts only where the
    file is not ours. `derived`: what the evidence says, under the same keys.
    """
    old = before.get(DECLARED)
    kept = dict(old) if isinstance(old, dict) else {}
    fresh = {} if is_ours(before) else dict(said)
    return {
        key: value
        for key, value in (kept | fresh).items()
        if key in derived and value != derived[key] and rank(key, value) >= rank(key, derived[key])
    }


def rank_of_status(_: str, status: object) -> int:
    """Return how far a status is; a verdict is as far as a completion."""
    return _RANKS.get(str(status), 2)


_RANKS = {"": 0, "pending": 0, "running": 1}


def _bare(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != SEAL}


def _checksum(content: Mapping[str, Any]) -> str:
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
}
"""What the project does while a phase is at a step."""


def project_state(phases: Phases, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the content of `state.json`; None when it says already what the evidence says, or
    there is no phase.

    A file in which somebody declares more than the evidence bears out is left as it is, and shown
    as drift: a Lead who signs off writes it moments before the rest of the evidence is there.
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


def claims(phases: Phases, said: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what a `state.json` declares beyond the evidence: key → what either says."""
    derived = {key: value for key, value in _derived(phases).items() if key != "tt"}
    ahead = declared_in(said, ((key, said[key]) for key in derived if key in said), derived, _rank)
    return {key: (value, derived[key]) for key, value in ahead.items()}


def current(phases: Phases) -> Phase:
    """Return the phase that the project is at: the first that is not complete, else the last."""
    return next((one for one in phases if not one.is_complete), phases[-1])


def summary_line(phases: Phases) -> str:
    """Return phase, steps done and the next act, for a status line; empty without a phase."""
    if not phases:
        return ""
    progress = current(phases).progress
    if progress.is_complete:
        return f"{progress.phase} complete"
    steps = f"{progress.steps_passed}/{len(progress.every_step)} steps"
    turn = progress.next
    run = f" → {turn.command}" if turn and turn.command else ""
    asked = f", next: {turn.sentence}{run}" if turn else ""
    return f"{progress.phase} {progress.step} {steps}{asked}"


def _derived(phases: Phases) -> dict[str, Any]:
    phase = current(phases)
    plans = [plan for one in phases for plan in one.progress.plans]
    done = sum(plan.is_done for plan in plans)
    return {
        "ph": int(phase.id.number),
        "tt": len(phases),
        "st": "complete" if phase.is_complete else _status(phase.progress.step),
        "step": phase.progress.step,
        "pr": 100 * done // len(plans) if plans else 0,
    }


def _status(step: str) -> str:
    return next(status for status, steps in _STATUS.items() if step in steps)


def _begin(phases: Phases) -> str:
    filed = (one for phase in phases for one in phase.facts.filed)
    return day(min((one.at_s for one in filed if one.commit), default=0))


def _rank(key: str, value: object) -> float:
    """Return how far a value is: numbers as they are, words by the protocol's order; else -1."""
    order = _ORDER.get(key)
    if order is not None:
        return order.index(value) if value in order else -1
    return value if isinstance(value, int | float) else -1


_ORDER: Mapping[str, tuple[object, ...]] = {
    "st": (*_STATUS, "complete"),
    "step": tuple(STEP_BY_KEY),
}


def orchestration(phase: Phase, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the content of a phase's orchestration state; None when it agrees with evidence."""
    facts, old = phase.facts, dict(before or {})
    gates = {gate.name: gate for gate in phase.gates}
    first = {
        "phase": facts.phase.number,
        "multi_dept": facts.switches.several_departments,
        "workflow": _dispatched(facts).workflow,
        "departments": {one.department.value: _department(facts, one) for one in _in_waves(phase)},
        "gates": {name: _gate(facts, gates[name]) for name in GATE_BY_NAME if name in gates},
        "integration_qa": {"status": _integration(phase)},
        "security": {"status": _security(facts)},
        "owner_signoff": {"status": _owner(phase)},
        "started_at": old.get("started_at") or iso(_begun_s(facts)),
        "timeout_minutes": old.get("timeout_minutes") or GATE_TIMEOUT_MINUTES,
        "waves": _waves(facts),
    }
    others = {key: value for key, value in old.items() if key not in first and key != DECLARED}
    declared = declared_in(old, _said(old), dict(_said(first)), rank_of_status)
    return renewed(before, first | others | ({DECLARED: declared} if declared else {}))


def _begun_s(facts: PhaseFacts) -> int:
    """Return when the phase began: with its first evidence, or with whatever came before that."""
    present = [one.at_s for one in facts.filed if one.commit and one.place.phase]
    return min(_moments(facts.filed) or present, default=facts.at_s)


def _dispatched(facts: PhaseFacts) -> Routing:
    return dispatched(facts.switches)


def _waves(facts: PhaseFacts) -> list[dict[str, Any]]:
    """Return which Leads are spawned together, in order, and the gate behind each wave."""
    found = waves(_dispatched(facts))
    return [
        {"id": number, "depts": [dept.value for dept in wave.departments], "gate": wave.gate}
        for number, wave in enumerate(found, 1)
    ]


def _in_waves(phase: Phase) -> list[DepartmentStatus]:
    order = [name for wave in _waves(phase.facts) for name in wave["depts"]]
    return sorted(phase.progress.departments, key=lambda one: order.index(one.department.value))


def _department(facts: PhaseFacts, one: DepartmentStatus) -> dict[str, str]:
    said = derived_status(one)
    moments = _moments(_of(facts, one.department))
    return {
        "status": said["status"],
        "step": said["step"] if moments else "",
        "started": iso(min(moments, default=0)),
        "completed": iso(max(moments, default=0)) if one.is_complete else "",
    }


def _gate(facts: PhaseFacts, gate: GateStatus) -> dict[str, str]:
    if not gate.is_open:
        return {"status": "pending", "passed_at": ""}
    commits = {commit for _, commit in gate.evidence}
    return {
        "status": "passed",
        "passed_at": iso(
            max(_moments(one for one in facts.filed if one.commit in commits), default=0)
        ),
    }


def _integration(phase: Phase) -> str:
    if phase.behind:
        return "pending"
    return str(integration_result(phase, "")["r"])


def _security(facts: PhaseFacts) -> str:
    said = [str(line["r"]) for line in facts.lines_of("security-audit") if "r" in line]
    return next((word for word in ("FAIL", "WARN", "PASS") if word in said), "pending")


def _owner(phase: Phase) -> str:
    if phase.behind:
        return "pending"
    return phase.sign_off[0].value


def _of(facts: PhaseFacts, department: Dept) -> Iterator[Filed]:
    return (one for one in facts.filed if one.place.department == department)


def _moments(filed: Any) -> list[int]:
    return [one.at_s for one in filed if one.commit and one.place.phase and one.place.artifact.step]


def _said(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
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
    progress: DepartmentStatus,
    before: Mapping[str, Any],
    now: str,
    error: str,
    held_up: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the status file of a department: eight keys in the reference's order, then ours, then
    what others added.

    `before`: the file as it is; empty when there is none. `now`: ISO time. `error`: the first
    finding of a rejected artifact. `held_up`: by what, as the evidence says; it stands among the
    blockers beside what was declared. The same evidence gives the same file: only a change moves
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
    """Return what a Lead said that holds a department up: not what we had written beside it."""
    said, ours = before.get("blockers"), before.get("held_up")
    listed = said if isinstance(said, list) else []
    return [one for one in listed if not (isinstance(ours, list) and one in ours)]


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
    """Yield what a state file of ours declares beside what it derives (see `sealed`)."""
    declared = state.get("declared")
    for key, value in declared.items() if isinstance(declared, dict) else ():
        yield Drift(where, key, value, _status_in(state, key))


def _status_in(state: Mapping[str, Any], key: str) -> object:
    """Return what a state file says under a key: `status`, `steps.qa`, `gates.all-depts`."""
    group, _, name = key.partition(".")
    found = state.get(group)
    if name and isinstance(found, list):
        found = {str(one.get("id")): one for one in found if isinstance(one, dict)}
    entry = found.get(name) if name and isinstance(found, dict) else found
    return entry.get("status") if isinstance(entry, dict) else entry
