"""Gates between departments: open or closed by committed evidence alone, with each missing piece named.

A sentinel file never opens anything here; it is a cache for others, bound to the evidence it rests
on. See docs/sources.md#document-002.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from yolo_fs.protocol.gates import (
    GATES,
    SENTINELS,
    SIGN_OFFS,
    Decision,
    Evidence,
    Gate,
    Sentinel,
)
from yolo_fs.protocol.names import Dept
from yolo_fs.rules.evidence.facts import PhaseFacts
from yolo_fs.rules.phase.gateview import GateStatus, GateView, evidence_of
from yolo_fs.rules.phase.integration import integration_checks, integration_gate
from yolo_fs.rules.phase.needs import KINDS, NEEDS, all_departments
from yolo_fs.rules.phase.progress import DepartmentStatus, PhaseStatus


def gates_of(facts: PhaseFacts, progress: PhaseStatus) -> tuple[GateStatus, ...]:
    """Return the gates that this phase has: those of its departments, and the integration gate."""
    view = GateView(facts, progress)
    active = facts.switches.departments
    rows = [gate for gate in GATES if _concerns(gate, active)]
    return (*(_gate(view, gate) for gate in rows), integration_gate(view))


def _concerns(gate: Gate, active: tuple[Dept, ...]) -> bool:
    return set(gate.requires) <= set(active)


def _gate(view: GateView, gate: Gate) -> GateStatus:
    missing = tuple(lack for need in gate.needs for lack in NEEDS[need](view))
    kinds = {kind for need in gate.needs for kind in KINDS.get(need, ())}
    return GateStatus(gate.name, missing, evidence_of(view.facts, kinds), gate.blocking)


# --- the Owner's decision ---


def sign_off(view: GateView) -> tuple[Decision, str]:
    """Return what the Owner is to decide by the matrix, and why."""
    security = [verdict_of(view, "security-audit", one) for one in view.progress.departments]
    quality = [verdict_of(view, "verification", one) for one in view.progress.departments]
    failed = next((lack for _, lacks in integration_checks(view).values() for lack in lacks), None)
    behind = next((lack.what for lack in all_departments(view)), "")
    found = {
        Evidence.SECURITY_FAIL: "security says FAIL" if "FAIL" in security else "",
        Evidence.FAIL: str(failed)
        if failed
        else "verification says FAIL"
        if "FAIL" in quality
        else behind,
        Evidence.PARTIAL: "verification says PARTIAL" if "PARTIAL" in quality else "",
        Evidence.ALL_PASS: "all departments, the integration gate and security pass",
    }
    return next((row.decision, found[row.when]) for row in SIGN_OFFS if found[row.when])


def verdict_of(view: GateView, kind: str, department: DepartmentStatus) -> str:
    """Return `r` of a department's verification or audit; empty while there is none."""
    lines = view.facts.lines_of(kind, department.department)
    return str(next((line.get("r") for line in lines if "r" in line), ""))


# --- sentinels ---


def sentinels_of(facts: PhaseFacts, progress: PhaseStatus) -> dict[str, str]:
    """Return the sentinel files that the evidence bears out: file name → exact content.

    A sentinel on disk with any other content is stale or forged.
    """
    open_gates = {gate.name: gate for gate in gates_of(facts, progress) if gate.is_open}
    return {
        row.file: _content(row, facts, open_gates, progress)
        for row in SENTINELS
        if _is_borne_out(row, open_gates, progress)
    }


def _is_borne_out(
    row: Sentinel, open_gates: Mapping[str, GateStatus], progress: PhaseStatus
) -> bool:
    if row.gate:
        return row.gate in open_gates
    return any(
        one.department is row.department and one.is_complete and one.plans
        for one in progress.departments
    )


def _content(
    row: Sentinel,
    facts: PhaseFacts,
    open_gates: Mapping[str, GateStatus],
    progress: PhaseStatus,
) -> str:
    if row.gate:
        evidence = open_gates[row.gate].evidence
    else:
        evidence = tuple(
            (str(plan.id), plan.commit) for one in progress.departments for plan in one.plans
        )
    bound = {
        "sentinel": row.file,
        "phase": str(facts.phase),
        "evidence": [list(pair) for pair in evidence],
    }
    return json.dumps(bound, sort_keys=True) + "\n"
