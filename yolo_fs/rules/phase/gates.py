"""Gates between departments: open or closed by committed evidence alone, with each missing piece
named; each `Need`, and each check of the integration gate, is bound to its one predicate. Pure.

The predicates ask a `GateSource`, so the same ones serve our gates, which look at commits, and the
drop-in scripts, which look at files. A sentinel file never opens anything here; it is a cache for
others, bound to the evidence it rests on. See docs/sources.md#document-002.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from yolo_fs.ids import PhaseId
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
    Need,
    Sentinel,
)
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.evidence import PhaseFacts, failures_of
from yolo_fs.rules.phase.gate_sources import (
    READY,
    SHOW,
    VALIDATE,
    CommittedEvidence,
    GateSource,
    MissingEvidence,
    says,
)
from yolo_fs.rules.phase.progress import DepartmentStatus

if TYPE_CHECKING:
    from yolo_fs.rules.phase.phase import Phase


@dataclass(frozen=True, slots=True)
class GateStatus:
    """One gate of one phase."""

    name: str
    missing: tuple[MissingEvidence, ...]
    evidence: tuple[tuple[str, str], ...]
    """(path, commit) of what it rests on."""
    blocking: bool = True

    @property
    def is_open(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    @property
    def rests_on(self) -> list[dict[str, str]]:
        """The evidence with its keys."""
        return [{"path": path, "commit": commit} for path, commit in self.evidence]

    JSON_KEYS: ClassVar = {
        "gate": "name",
        "open": "is_open",
        "blocking": "blocking",
        "missing": "missing",
        "evidence": "rests_on",
    }


def gates_of(phase: Phase) -> tuple[GateStatus, ...]:
    """Return the gates that this phase has: those of its departments, and the integration gate."""
    active = phase.facts.switches.departments
    rows = [gate for gate in GATES if set(gate.requires) <= set(active)]
    return (*(_gate(phase, gate) for gate in rows), _integration_gate(phase))


def _gate(phase: Phase, gate: Gate) -> GateStatus:
    source = CommittedEvidence(phase)
    missing = tuple(lack for need in gate.needs for lack in NEEDS[need](source))
    kinds = {kind for need in gate.needs for kind in KINDS[need]}
    return GateStatus(gate.name, missing, _evidence(phase.facts, kinds), gate.blocking)


def _evidence(facts: PhaseFacts, kinds: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return (path, commit) of the committed artifacts of some kinds, in the order of the kinds."""
    filed = [one for kind in sorted(kinds) for one in facts.of_kind(kind)]
    return tuple((one.place.path, one.commit) for one in filed if one.commit)


def integration_checks_of(phase: Phase) -> dict[str, CheckResult]:
    """Return each check across departments: pass, fail or skip, with what fails it."""
    wanted = phase.facts.switches.config.integration_gate.checks
    off = {row.key for row in INTEGRATION_CHECKS if not getattr(wanted, row.config)}
    return integration_checks(CommittedEvidence(phase), off)


def _integration_gate(phase: Phase) -> GateStatus:
    """Return the integration gate: open once all departments are done and no check fails."""
    waiting = tuple(CommittedEvidence(phase).lacks_completion())
    failed = tuple(lack for _, lacks in phase.integration_checks.values() for lack in lacks)
    recorded = tuple(_recorded_failures(phase))
    kinds = ("api-contracts", "design-handoff", "dept-handoff", "test-results")
    return GateStatus(INTEGRATION, waiting + failed + recorded, _evidence(phase.facts, kinds))


def _recorded_failures(phase: Phase) -> Iterator[MissingEvidence]:
    for one in failures_of(phase.facts, "integration_gate"):
        yield MissingEvidence(one.what, one.file, one.line, SHOW)


def integration_result(phase: Phase, date: str) -> dict[str, Any]:
    """Return the line of `integration-gate-result.jsonl`."""
    failures = [
        {"check": key, "detail": lack.what, "file": lack.file}
        for key, (_, lacks) in phase.integration_checks.items()
        for lack in lacks
    ]
    return {
        "r": "FAIL" if failures else "PASS",
        "checks": {key: result for key, (result, _) in phase.integration_checks.items()},
        "failures": failures,
        "dt": date,
    }


def sign_off(phase: Phase) -> tuple[Decision, str]:
    """Return what the Owner is to decide by the matrix, and why."""
    departments = phase.folded.departments
    security = [verdict_of(phase, "security-audit", one) for one in departments]
    quality = [verdict_of(phase, "verification", one) for one in departments]
    failure = _first_failure(phase)
    if not failure:
        failure = next((lack.what for lack in CommittedEvidence(phase).lacks_completion()), "")
    reasons = {
        Evidence.SECURITY_FAIL: "security says FAIL" if "FAIL" in security else "",
        Evidence.FAIL: failure,
        Evidence.PARTIAL: "verification says PARTIAL" if "PARTIAL" in quality else "",
        Evidence.ALL_PASS: "all departments, the integration gate and security pass",
    }
    return next((row.decision, reasons[row.when]) for row in SIGN_OFFS if reasons[row.when])


def _first_failure(phase: Phase) -> str:
    lacks = (lack for _, lacks in phase.integration_checks.values() for lack in lacks)
    recorded = (one for one in failures_of(phase.facts) if one.step != "security")
    return str(next(chain(lacks, recorded), ""))


def verdict_of(phase: Phase, kind: str, department: DepartmentStatus) -> str:
    """Return `r` of a department's verification or audit; empty while there is none."""
    lines = phase.facts.lines_of(kind, department.department)
    return str(next((line.get("r") for line in lines if "r" in line), ""))


def sentinels_of(phase: Phase) -> dict[str, str]:
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
    name: str, phase: PhaseId, said: object, changed_by: Callable[[str], Collection[str]]
) -> bool:
    """Return whether a sentinel is one of ours that was true once: each commit that it rests on is
    on the branch, and made what it is named for.

    `changed_by`: the paths that a commit of the branch changed; none for any other name.
    """
    row = next((row for row in SENTINELS if row.file == name), None)
    pairs = said.get("evidence") if isinstance(said, dict) else None
    if row is None or not isinstance(pairs, list) or not pairs:
        return False
    return said == {"sentinel": name, "phase": str(phase), "evidence": pairs} and all(
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


def _is_proved(row: Sentinel, phase: Phase, open_gates: Mapping[str, GateStatus]) -> bool:
    if row.gate:
        return row.gate in open_gates
    return any(
        one.department is row.department and one.is_complete and one.plans
        for one in phase.folded.departments
    )


def _content(row: Sentinel, phase: Phase, open_gates: Mapping[str, GateStatus]) -> str:
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


AGREED = frozenset({"agreed", "implemented"})

Predicate = Callable[[GateSource], Iterator[MissingEvidence]]
"""Yields what is missing; nothing means that the need is met."""


def lacking(gate: Gate, source: GateSource) -> tuple[Need, ...]:
    """Return the needs of a gate that are not met."""
    return tuple(need for need in gate.needs if any(NEEDS[need](source)))


def _present(kind: str) -> Predicate:
    def lacks(source: GateSource) -> Iterator[MissingEvidence]:
        if not source.has(kind):
            yield _not_committed(kind)

    return lacks


def _readable(kind: str) -> Predicate:
    def lacks(source: GateSource) -> Iterator[MissingEvidence]:
        if not source.is_readable(kind):
            yield _not_committed(kind)

    return lacks


def _not_committed(kind: str) -> MissingEvidence:
    file = f"{kind}.jsonl"
    return MissingEvidence(f"no valid {file} is committed", file, 0, VALIDATE.format(file))


def _component_specs(source: GateSource) -> Iterator[MissingEvidence]:
    yield from _readable("component-specs")(source)
    if not source.is_strict:
        return
    for number, row in enumerate(source.rows("component-specs"), 1):
        if row is not None and row.get("status") not in READY:
            what = f"{row.get('name')} is {row.get('status')}"
            yield MissingEvidence(what, "component-specs.jsonl", number, SHOW)


def _contract_agreed(source: GateSource) -> Iterator[MissingEvidence]:
    file = "api-contracts.jsonl"
    rows = source.rows("api-contracts")
    agreed = AGREED if source.is_strict else ("agreed",)
    if not any(says(row, "status", *agreed) for row in rows):
        yield MissingEvidence("no contract is agreed", file, 0, VALIDATE.format(file))
    if not source.is_strict:
        return
    in_force = {_contract(row): (number, row) for number, row in enumerate(rows, 1) if row}
    for name, (number, row) in in_force.items():
        if row.get("status") not in AGREED:
            yield MissingEvidence(f"{name} is {row.get('status')}", file, number, SHOW)


def _contract(line: Mapping[str, Any]) -> str:
    """Return what a contract line is about, so that a later line about the same replaces it."""
    if endpoint := line.get("endpoint"):
        return str(endpoint)
    endpoints = [
        f"{item.get('method')} {item.get('path')}"
        for item in line.get("endpoints") or ()
        if isinstance(item, dict)
    ]
    return ", ".join(sorted(endpoints)) or "the contract"


NEEDS: Mapping[Need, Predicate] = {
    Need.UX_SENTINEL: lambda source: source.lacks_design_handover(),
    Need.DESIGN_HANDOFF: _readable("design-handoff"),
    Need.DESIGN_TOKENS: _present("design-tokens"),
    Need.COMPONENT_SPECS: _component_specs,
    Need.CONTRACT_AGREED: _contract_agreed,
    Need.SOME_STATUS: lambda source: source.lacks_status(),
    Need.ALL_COMPLETE: lambda source: source.lacks_completion(),
    Need.SOME_SUMMARY: lambda source: source.lacks_summary(),
}

KINDS: Mapping[Need, tuple[str, ...]] = {
    Need.UX_SENTINEL: (),
    Need.DESIGN_HANDOFF: ("design-handoff",),
    Need.DESIGN_TOKENS: ("design-tokens",),
    Need.COMPONENT_SPECS: ("component-specs",),
    Need.CONTRACT_AGREED: ("api-contracts",),
    Need.SOME_STATUS: (),
    Need.ALL_COMPLETE: ("code-review", "security-audit", "verification"),
    Need.SOME_SUMMARY: ("summary",),
}
"""Kinds of artifacts that an open gate rests on: they date it and name its evidence."""


CheckResult = tuple[str, tuple[MissingEvidence, ...]]
"""`pass`, `fail` or `skip`, and what fails the check."""


def integration_checks(source: GateSource, off: Collection[str]) -> dict[str, CheckResult]:
    """Return the result of each check; those in `off` are skipped."""
    return {
        row.key: _result(CHECKS[row.key](source))
        if row.key not in off and row.applies_to(source.departments)
        else ("skip", ())
        for row in INTEGRATION_CHECKS
    }


def _result(lacks: Iterator[MissingEvidence] | None) -> CheckResult:
    if lacks is None:
        return "skip", ()
    missing = tuple(lacks)
    return "fail" if missing else "pass", missing


def _api(source: GateSource) -> Iterator[MissingEvidence] | None:
    if not source.has("api-contracts"):
        return None
    return _contracts_in_force(source) if source.is_strict else _open_contracts(source)


def _contracts_in_force(source: GateSource) -> Iterator[MissingEvidence]:
    yield from _contract_agreed(source)
    yield from source.false_claims("api-contracts")


def _open_contracts(source: GateSource) -> Iterator[MissingEvidence]:
    """An unreadable line may be a contract that is still disputed, so it fails."""
    for number, row in enumerate(source.rows("api-contracts"), 1):
        if row is None or says(row, "status", "proposed", "disputed"):
            yield MissingEvidence("a contract is open", "api-contracts.jsonl", number)


def _design(source: GateSource) -> Iterator[MissingEvidence] | None:
    if not source.has("design-handoff"):
        return None
    return _design_is_ready(source) if source.is_strict else _design_is_built(source)


def _design_is_ready(source: GateSource) -> Iterator[MissingEvidence]:
    yield from source.lacks_design_handover()
    yield from _component_specs(source)
    yield from source.false_claims("design-handoff")


def _design_is_built(source: GateSource) -> Iterator[MissingEvidence]:
    if any(says(row, "status", "ready") for row in source.rows("design-handoff")):
        yield from source.lacks_summary()


def _handoffs(source: GateSource) -> Iterator[MissingEvidence] | None:
    if source.is_strict and not source.rows("dept-handoff"):
        return None
    return source.lacks_handoff()


CHECKS: Mapping[str, Callable[[GateSource], Iterator[MissingEvidence] | None]] = {
    "api": _api,
    "design": _design,
    "handoffs": _handoffs,
    "tests": lambda source: source.lacks_passing_tests(),
}
"""Key of a check → what fails it; None where it does not apply."""
