"""`state.json` and `.phase-orchestration.json` as the evidence has them. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from yolo_fs.protocol.gates import GATE_BY_NAME, GATE_TIMEOUT_MINUTES
from yolo_fs.protocol.names import Dept
from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.rules.evidence.facts import Filed, PhaseFacts
from yolo_fs.rules.phase.gates import GateStatus, integration_result
from yolo_fs.rules.phase.phase import Phase, Phases
from yolo_fs.rules.phase.progress import DepartmentStatus
from yolo_fs.rules.phase.waves import Routing, dispatch, waves
from yolo_fs.rules.states.checksum import DECLARED, declared_in, rank_of_status, renewed
from yolo_fs.rules.states.department import derived_status
from yolo_fs.rules.timestamps import day, iso

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
    """Return what a `state.json` declares beyond the evidence: key → what it says, what the
    evidence says.
    """
    derived = {key: value for key, value in _derived(phases).items() if key != "tt"}
    ahead = declared_in(said, ((key, said[key]) for key in derived if key in said), derived, _rank)
    return {key: (value, derived[key]) for key, value in ahead.items()}


def current(phases: Phases) -> Phase:
    """Return the phase that the project is at: the first that is not complete, else the last."""
    return next((one for one in phases if not one.is_complete), phases[-1])


def summary_line(phases: Phases) -> str:
    """Return the phase, its step and percentage, and who is next, for a status line; empty without
    a phase.
    """
    if not phases:
        return ""
    progress = current(phases).progress
    if progress.is_complete:
        return f"{progress.phase} complete"
    turn = f", next {progress.next.agent}" if progress.next else ""
    return f"{progress.phase} {progress.step} {progress.percent}%{turn}"


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
    """Return how far a value is: numbers by themselves, words by their order in the protocol; -1
    for anything else.
    """
    order = _ORDER.get(key)
    if order is not None:
        return order.index(value) if value in order else -1
    return value if isinstance(value, int | float) else -1


_ORDER: Mapping[str, tuple[object, ...]] = {
    "st": (*_STATUS, "complete"),
    "step": tuple(STEP_BY_KEY),
}


def orchestration(phase: Phase, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the content of a phase's orchestration state; None when it says already what the
    evidence says.
    """
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
    return dispatch(facts.switches.config.model_dump(mode="json"))


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
