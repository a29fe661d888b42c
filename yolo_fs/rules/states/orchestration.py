"""`.phase-orchestration.json` as the evidence has it: departments, gates, closing stages and waves of a phase. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from yolo_fs.protocol.gates import GATE_BY_NAME, GATE_TIMEOUT_MINUTES
from yolo_fs.protocol.names import Dept
from yolo_fs.rules.evidence.facts import Filed, PhaseFacts
from yolo_fs.rules.phase.gates import GateStatus, integration_result
from yolo_fs.rules.phase.phase import Phase
from yolo_fs.rules.phase.progress import DepartmentStatus
from yolo_fs.rules.phase.waves import routing, waves
from yolo_fs.rules.states.checksum import DECLARED, declared_in, rank_of_status, renewed
from yolo_fs.rules.states.department import derived_status
from yolo_fs.rules.timestamps import iso


def orchestration(phase: Phase, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the content of a phase's orchestration state; None when it says already what the evidence says."""
    facts, old = phase.facts, dict(before or {})
    gates = {gate.name: gate for gate in phase.gates}
    first = {
        "phase": facts.phase.number,
        "multi_dept": facts.switches.several_departments,
        "workflow": facts.switches.config.department_workflow,
        "departments": {one.department.value: _department(facts, one) for one in _in_waves(phase)},
        "gates": {name: _gate(facts, gates[name]) for name in GATE_BY_NAME if name in gates},
        "integration_qa": {"status": _integration(phase)},
        "security": {"status": _security(facts)},
        "owner_signoff": {"status": _owner(phase)},
        "started_at": old.get("started_at") or iso(min(_moments(facts.filed), default=0)),
        "timeout_minutes": old.get("timeout_minutes") or GATE_TIMEOUT_MINUTES,
        "waves": _waves(facts),
    }
    others = {key: value for key, value in old.items() if key not in first and key != DECLARED}
    declared = declared_in(old, _said(old), dict(_said(first)), rank_of_status)
    return renewed(before, first | others | ({DECLARED: declared} if declared else {}))


def _waves(facts: PhaseFacts) -> list[dict[str, Any]]:
    """Return which Leads are spawned together, in order, and the gate behind each wave."""
    found = waves(routing(facts.switches.config.model_dump(mode="json")))
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
