"""What the gates need: each `Need`, and each check of the integration gate, bound to its one
predicate. Pure.

The predicates ask a `GateSource`, so the same ones serve our gates, which look at commits, and the
drop-in scripts, which look at files. See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from yolo_fs.protocol.gates import INTEGRATION_CHECKS, Gate, Need
from yolo_fs.rules.phase.gate_sources import (
    READY,
    SHOW,
    VALIDATE,
    GateSource,
    MissingEvidence,
    says,
)

AGREED = frozenset({"agreed", "implemented"})

Predicate = Callable[[GateSource], Iterator[MissingEvidence]]
"""Yields what is missing; nothing means that the need is met."""


def lacking(gate: Gate, source: GateSource) -> tuple[Need, ...]:
    """Return the needs of a gate that are not met."""
    return tuple(need for need in gate.needs if any(NEEDS[need](source)))


# --- needs of the gates between departments ---


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


# --- checks of the integration gate ---

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


def _tests(source: GateSource) -> Iterator[MissingEvidence] | None:
    return source.lacks_passing_tests()


CHECKS: Mapping[str, Callable[[GateSource], Iterator[MissingEvidence] | None]] = {
    "api": _api,
    "design": _design,
    "handoffs": _handoffs,
    "tests": _tests,
}
"""Key of a check → what fails it; None where it does not apply."""
