"""Gates between departments.

Committed evidence alone opens them, and each missing piece is named. Pure.

A sentinel file opens nothing here. It is a cache for other tools, bound to the evidence that it
rests on. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from yolo_fs.artifacts.classify import classify
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import safe
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.evidence.failures import failures_of, unreadable
from yolo_fs.phase.gate_needs import CHECKS, KINDS, NEEDS, SHOW, lacks_completion
from yolo_fs.phase.gate_status import CheckResult, GateSource, GateStatus, MissingEvidence
from yolo_fs.phase.progress import DepartmentStatus, StepStanding
from yolo_fs.protocol.gates import (
    GATE_BY_NAME,
    GATES,
    INTEGRATION,
    INTEGRATION_CHECKS,
    SENTINELS,
    SIGN_OFFS,
    Decision,
    Evidence,
    Gate,
    Sentinel,
)


def gates_of(phase: GateSource) -> tuple[GateStatus, ...]:
    """Return the gates that this phase has: those of its departments, and the integration gate."""
    active = phase.facts.options.departments
    rows = [gate for gate in GATES if set(gate.requires) <= set(active)]
    return (*(_gate(phase, gate) for gate in rows), _build_integration_gate(phase))


def _gate(phase: GateSource, gate: Gate) -> GateStatus:
    missing = tuple(lack for need in gate.needs for lack in NEEDS[need](phase))
    kinds = {kind for need in gate.needs for kind in KINDS[need]}
    return GateStatus(gate.name, missing, _evidence_of(phase.facts, kinds), gate.blocking)


def _evidence_of(facts: PhaseFacts, kinds: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return (path, commit) of the committed artifacts of some kinds, in the order of the kinds."""
    committed = [artifact for kind in sorted(kinds) for artifact in facts.of_kind(kind)]
    return tuple(
        (artifact.place.path, artifact.commit) for artifact in committed if artifact.commit
    )


def integration_checks_of(phase: GateSource) -> dict[str, CheckResult]:
    """Return each check across departments: pass, fail or skip, with what fails it."""
    wanted = phase.facts.options.config.integration_gate.checks
    return {
        row.key: _result(CHECKS[row.key](phase))
        if getattr(wanted, row.config) and row.applies_to(phase.facts.options.departments)
        else ("skip", ())
        for row in INTEGRATION_CHECKS
    }


def _result(lacks: Iterator[MissingEvidence] | None) -> CheckResult:
    if lacks is None:
        return "skip", ()
    missing = tuple(lacks)
    return "fail" if missing else "pass", missing


def _build_integration_gate(phase: GateSource) -> GateStatus:
    """Return the integration gate: open once all departments are done and no check fails."""
    waiting = tuple(lacks_completion(phase))
    failed = tuple(lack for _, lacks in phase.integration_checks.values() for lack in lacks)
    recorded = tuple(_find_recorded_failures(phase))
    kinds = ("api-contracts", "design-handoff", "dept-handoff", "test-results")
    return GateStatus(INTEGRATION, waiting + failed + recorded, _evidence_of(phase.facts, kinds))


def _find_recorded_failures(phase: GateSource) -> Iterator[MissingEvidence]:
    for failure in failures_of(phase.facts, "integration_gate"):
        yield MissingEvidence(failure.what, failure.file, failure.line, SHOW)


class DueDecision(NamedTuple):
    """What the Owner is to decide about a phase by the matrix, and why."""

    decision: Decision
    why: str

    @property
    def sentence(self) -> str:
        """Both, in words."""
        return f"sign-off: {self.decision} ({safe(self.why)})"


def sign_off(phase: GateSource) -> DueDecision:
    """Return the Owner's due decision by the matrix, and the reason."""
    departments = phase.folded.departments
    security = [verdict_of(phase, "security-audit", status) for status in departments]
    failure = _find_first_failure(phase)
    if not failure:
        failure = next((lack.what for lack in lacks_completion(phase)), "")
    if not failure:
        closed = (gate for gate in gates_of(phase) if gate.holds_sign_off)
        failure = next((gate.why_closed for gate in closed), "")
    reasons = {
        Evidence.SECURITY_FAIL: "security says FAIL" if "FAIL" in security else "",
        Evidence.FAIL: failure,
        Evidence.PARTIAL: next(_find_partial(phase), ""),
        Evidence.ALL_PASS: _say_all_pass(departments),
    }
    due = (DueDecision(row.decision, reasons[row.when]) for row in SIGN_OFFS if reasons[row.when])
    return next(due)


def _say_all_pass(departments: Iterable[DepartmentStatus]) -> str:
    """Return who passed; a security audit that was skipped has passed nothing."""
    skipped = [
        status.department.value
        for status in departments
        for each in status.steps
        if each.step.key == "security" and each.standing is StepStanding.SKIPPED
    ]
    if not skipped:
        return "all departments, the integration gate and security pass"
    where = ", ".join(skipped)
    return f"all departments and the integration gate pass; security was skipped in {where}"


def _find_partial(phase: GateSource) -> Iterator[str]:
    for kind in ("verification", "qa-code"):
        for status in phase.folded.departments:
            if verdict_of(phase, kind, status) == "PARTIAL":
                yield f"{kind} says PARTIAL"
    for line in phase.facts.lines_of("integration-gate-result")[-1:]:
        if line.get("r") == "PARTIAL":
            yield "the integration gate says PARTIAL"


def _find_first_failure(phase: GateSource) -> str:
    lacks = (lack for _, lacks in phase.integration_checks.values() for lack in lacks)
    recorded = (failure for failure in failures_of(phase.facts) if failure.step != "security")
    return str(next(chain(lacks, recorded, unreadable(phase.facts)), ""))


def verdict_of(phase: GateSource, kind: str, department: DepartmentStatus) -> str:
    """Return `r` of a department's verification or audit; empty while there is none."""
    lines = phase.facts.lines_of(kind, department.department)
    return str(next((line.get("r") for line in lines if "r" in line), ""))


def sentinels_of(phase: GateSource) -> dict[str, str]:
    """Return the sentinel files that the evidence proves: file name → exact content.

    A sentinel on disk with any other content is stale or forged.
    """
    open_gates = {gate.name: gate for gate in phase.gates if gate.is_open}
    return {
        row.file: _content(row, phase, open_gates)
        for row in SENTINELS
        if _is_proved(row, phase, open_gates)
    }


def was_proved(
    name: str, phase: PhaseId, sentinel: object, changed_by: Callable[[str], Collection[str]]
) -> bool:
    """Return whether a sentinel is one of ours and was true once.

    Each commit that it rests on must be on the branch and have made the artifact it is named for.
    `changed_by`: the paths that a commit of the branch changed; none for any other name.
    """
    row = next((row for row in SENTINELS if row.file == name), None)
    pairs = sentinel.get("evidence") if isinstance(sentinel, dict) else None
    if row is None or not isinstance(pairs, list) or not pairs:
        return False
    return sentinel == {"sentinel": name, "phase": str(phase), "evidence": pairs} and all(
        _is_piece(pair, row, phase, changed_by) for pair in pairs
    )


def _is_piece(
    pair: object, row: Sentinel, phase: PhaseId, changed_by: Callable[[str], Collection[str]]
) -> bool:
    """Return whether a commit made the artifact that a sentinel names with it."""
    if not isinstance(pair, list) or len(pair) != 2:
        return False
    source, commit = map(str, pair)
    gate = GATE_BY_NAME.get(row.gate)
    kinds = {kind for need in gate.needs for kind in KINDS[need]} if gate else {"plan"}
    places = [place for path in changed_by(commit) if (place := classify(path))]
    return any(
        place.phase == phase
        and place.artifact.kind in kinds
        and source == (place.path if row.gate else str(place.plan))
        for place in places
    )


def _is_proved(row: Sentinel, phase: GateSource, open_gates: Mapping[str, GateStatus]) -> bool:
    if row.gate:
        return row.gate in open_gates
    return any(
        status.department is row.department and status.is_complete and status.plans
        for status in phase.folded.departments
    )


def _content(row: Sentinel, phase: GateSource, open_gates: Mapping[str, GateStatus]) -> str:
    if row.gate:
        evidence = open_gates[row.gate].evidence
    else:
        plans = phase.folded.plans
        evidence = tuple((str(plan.id), plan.commit) for plan in plans)
    bound = {
        "sentinel": row.file,
        "phase": str(phase.id),
        "evidence": [list(pair) for pair in evidence],
    }
    return json.dumps(bound, sort_keys=True) + "\n"
