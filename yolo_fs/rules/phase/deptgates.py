"""The gates between departments, as the reference scripts check them: files alone decide, no commit is asked for. Pure.

Each `Need` and each integration check is bound here to its predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from yolo_fs.protocol.gates import GATES, INTEGRATION_CHECKS, SENTINELS, Gate, Need
from yolo_fs.protocol.names import Dept
from yolo_fs.rules.phase.folder import PhaseFolder, says

STATUS = ".dept-status-"
SUMMARY = ".summary.jsonl"

# --- dept-gate -------------------------------------------------------------------------------------------------------


def lacking(gate: Gate, folder: PhaseFolder) -> tuple[Need, ...]:
    """Return what the gate asks for and the directory does not have."""
    return tuple(need for need in gate.needs if not NEEDS[need](folder))


def _ux_sentinel(folder: PhaseFolder) -> bool:
    return any(
        folder.stands(file)
        for gate in GATES
        if Need.UX_SENTINEL in gate.needs
        for file in gate.sentinels
    )


def _all_complete(folder: PhaseFolder) -> bool:
    return all(
        folder.object(name).get("status") == "complete" for name in folder.names(STATUS, ".json")
    )


NEEDS: Mapping[Need, Callable[[PhaseFolder], bool]] = {
    Need.UX_SENTINEL: _ux_sentinel,
    Need.DESIGN_HANDOFF: lambda folder: folder.is_json("design-handoff.jsonl"),
    Need.DESIGN_TOKENS: lambda folder: folder.has("design-tokens.jsonl"),
    Need.COMPONENT_SPECS: lambda folder: folder.is_json("component-specs.jsonl"),
    Need.CONTRACT_AGREED: lambda folder: any(
        says(r, "status", "agreed") for r in folder.rows("api-contracts.jsonl")
    ),
    Need.SOME_STATUS: lambda folder: bool(folder.names(STATUS, ".json")),
    Need.ALL_COMPLETE: _all_complete,
    Need.SOME_SUMMARY: lambda folder: bool(folder.names("", SUMMARY)),
}

# --- integration-gate ------------------------------------------------------------------------------------------------


def statuses(folder: PhaseFolder, departments: Sequence[Dept]) -> dict[str, str]:
    """Return the status that each department gives itself; `pending` when it gives none."""
    said = {dept.value: folder.object(f"{STATUS}{dept}.json").get("status") for dept in departments}
    return {name: status if isinstance(status, str) else "pending" for name, status in said.items()}


def cross_checks(
    folder: PhaseFolder, departments: Sequence[Dept], off: frozenset[str]
) -> dict[str, str]:
    """Return the outcome of each integration check; those in `off` are skipped."""
    return {
        row.key: CHECKS[row.key](folder, departments)
        if row.key not in off and row.applies_to(departments)
        else "skip"
        for row in INTEGRATION_CHECKS
    }


def _api(folder: PhaseFolder, departments: Sequence[Dept]) -> str:
    """An unreadable line may be a contract that is still disputed, so it fails."""
    if not folder.has("api-contracts.jsonl"):
        return "skip"
    rows = folder.rows("api-contracts.jsonl")
    return _verdict(
        passed=not any(row is None or says(row, "status", "proposed", "disputed") for row in rows)
    )


def _design(folder: PhaseFolder, departments: Sequence[Dept]) -> str:
    if not folder.has("design-handoff.jsonl"):
        return "skip"
    is_ready = any(says(row, "status", "ready") for row in folder.rows("design-handoff.jsonl"))
    return _verdict(passed=not is_ready or bool(folder.names("", SUMMARY)))


def _handoffs(folder: PhaseFolder, departments: Sequence[Dept]) -> str:
    return _verdict(passed=all(has_handed_over(folder, dept) for dept in departments))


def _tests(folder: PhaseFolder, _: Sequence[Dept]) -> str:
    if not folder.has("test-results.jsonl"):
        return "skip"
    rows = folder.rows("test-results.jsonl")
    return _verdict(passed=not any(row is None or _is_positive(row.get("fl")) for row in rows))


def _is_positive(count: object) -> bool:
    return isinstance(count, int | float) and count > 0


def _verdict(*, passed: bool) -> str:
    return "pass" if passed else "fail"


CHECKS: Mapping[str, Callable[[PhaseFolder, Sequence[Dept]], str]] = {
    "api": _api,
    "design": _design,
    "handoffs": _handoffs,
    "tests": _tests,
}


def has_handed_over(folder: PhaseFolder, department: Dept) -> bool:
    """Tell whether the department's sentinel stands; of two spellings one is enough."""
    return any(folder.stands(row.file) for row in SENTINELS if row.department is department)


# --- pre-integration-check -------------------------------------------------------------------------------------------


def issues(folder: PhaseFolder, department: Dept, departments: Sequence[Dept]) -> Iterator[str]:
    """Yield what keeps a department from the integration gate."""
    if not has_handed_over(folder, department):
        yield f"handoff sentinel missing: .handoff-{department}-complete"
    results = folder.rows("test-results.jsonl")
    if len(departments) > 1 and not any(says(row, "dept", department.value) for row in results):
        yield "no test results in test-results.jsonl"
    latest = {str(row.get("id")): row for row in folder.rows("escalation.jsonl") if row is not None}
    for name, row in latest.items():
        # The reference looks for severity `critical`, which no escalation can have
        # (docs/sources.md#c03).
        blocks = says(row, "sev", "blocking", "critical") and says(row, "st", "open", "escalated")
        if blocks and row.get("dept") in (None, "", department.value):
            yield f"blocking escalation is not resolved: {name}"
