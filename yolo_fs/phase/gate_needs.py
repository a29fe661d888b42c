"""What a gate needs, and what the integration gate checks.

Each has one predicate over the committed evidence of a phase. No file of the work tree opens a
gate. Pure.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from yolo_fs.core.reasons import errors, shortened
from yolo_fs.evidence.failures import failing_tests
from yolo_fs.phase.gate_status import GateSource, MissingEvidence
from yolo_fs.phase.progress import StepStanding
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME
from yolo_fs.protocol.gates import Need

SHOW = "yolo-fs status"
READY = frozenset({"complete", "ready", "delivered", "deferred"})
"""Statuses of a design handoff, or of a component in it, that block nobody."""
AGREED = frozenset({"agreed", "implemented"})


Predicate = Callable[[GateSource], Iterator[MissingEvidence]]
"""Yields what is missing; nothing means that the need is met."""


def _validate(phase: GateSource, file: str) -> str:
    return f"yolo-fs validate {shlex.quote(f'{phase.facts.folder}/{file}')}"


def _committed(kind: str) -> Predicate:
    def lacks(phase: GateSource) -> Iterator[MissingEvidence]:
        if not phase.facts.of_kind(kind):
            file = f"{kind}.jsonl"
            what = f"no valid {file} is committed"
            yield MissingEvidence(what, file, 0, _validate(phase, file))

    return lacks


def _check_design_handoff(phase: GateSource) -> Iterator[MissingEvidence]:
    """Yield handed-over components that are not ready, and a handoff that does not say ready."""
    for number, line in enumerate(phase.facts.lines_of("design-handoff"), 1):
        if line.get("status") not in READY:
            name = line.get("component", "the design handoff")
            what = f"{name} is {line.get('status')}"
            yield MissingEvidence(what, "design-handoff.jsonl", number, SHOW)


def _check_component_specs(phase: GateSource) -> Iterator[MissingEvidence]:
    yield from _committed("component-specs")(phase)
    for number, line in enumerate(phase.facts.lines_of("component-specs"), 1):
        if line.get("status") not in READY:
            what = f"{line.get('name')} is {line.get('status')}"
            yield MissingEvidence(what, "component-specs.jsonl", number, SHOW)


def _check_contracts(phase: GateSource) -> Iterator[MissingEvidence]:
    file = "api-contracts.jsonl"
    lines = phase.facts.lines_of("api-contracts")
    in_force = {_contract(line): (number, line) for number, line in enumerate(lines, 1)}
    unanswered = []
    for name, (number, line) in in_force.items():
        if line.get("status") not in AGREED:
            asked = _working(phase, str(line.get("direction")).partition("_to_")[2])
            what = f"{name} is {line.get('status')}"
            unanswered.append(MissingEvidence(what, file, number, SHOW, asked))
    if not any(line.get("status") in AGREED for line in lines):
        asked = next((lack.owed_by for lack in unanswered), "")
        yield MissingEvidence("no contract is agreed", file, 0, _validate(phase, file), asked)
    yield from unanswered


def _working(phase: GateSource, name: str) -> str:
    """Return the name of a department that works on the phase; empty for any other text."""
    working = (department.value for department in phase.facts.options.departments)
    return name if name in working else ""


def _contract(line: Mapping[str, Any]) -> str:
    """Return what a contract line is about. A later line about the same replaces it."""
    if endpoint := line.get("endpoint"):
        return str(endpoint)
    endpoints = [
        f"{item.get('method')} {item.get('path')}"
        for item in line.get("endpoints") or ()
        if isinstance(item, dict)
    ]
    return ", ".join(sorted(endpoints)) or "the contract"


def _status(_: GateSource) -> Iterator[MissingEvidence]:
    """Yield nothing: status files only project what `lacks_completion` checks directly."""
    yield from ()


def lacks_completion(phase: GateSource) -> Iterator[MissingEvidence]:
    """Yield the departments whose part is not done."""
    for department in phase.behind:
        current = department.current
        assert current is not None
        own = f"--phase {phase.facts.spelled}"
        check = f"'yolo-fs workflow check {current.step.key} {own}'"
        lacks = shortened(current.missing, 3, shown_by=check, between="; ")
        why = lacks or "nothing of it exists"
        what = f"{department.department} is at {current.step.key}: {why}"
        yield MissingEvidence(what, ", ".join(current.step.outputs), 0, SHOW)


def _summary(phase: GateSource) -> Iterator[MissingEvidence]:
    for department in phase.facts.options.departments:
        if not phase.facts.of_kind("summary", department):
            name = f"{DEPARTMENT_BY_NAME[department].prefix}NN-MM.summary.jsonl"
            yield MissingEvidence(f"{department} has no summary", name, 0, SHOW)


NEEDS: Mapping[Need, Predicate] = {
    Need.UX_SENTINEL: _check_design_handoff,
    Need.DESIGN_HANDOFF: _committed("design-handoff"),
    Need.DESIGN_TOKENS: _committed("design-tokens"),
    Need.COMPONENT_SPECS: _check_component_specs,
    Need.CONTRACT_AGREED: _check_contracts,
    Need.SOME_STATUS: _status,
    Need.ALL_COMPLETE: lacks_completion,
    Need.SOME_SUMMARY: _summary,
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
"""Need → artifact kinds that an open gate rests on. They date it and are named as its evidence."""


def _check_api(phase: GateSource) -> Iterator[MissingEvidence] | None:
    if unread := tuple(_find_unread(phase, "api-contracts")):
        return iter(unread)
    if not phase.facts.of_kind("api-contracts"):
        return None
    return _all(phase, _check_contracts, _build_claims_check("api-contracts"))


def _design(phase: GateSource) -> Iterator[MissingEvidence] | None:
    if unread := tuple(_find_unread(phase, "design-handoff", "component-specs")):
        return iter(unread)
    if not phase.facts.of_kind("design-handoff"):
        return None
    return _all(
        phase, _check_design_handoff, _check_component_specs, _build_claims_check("design-handoff")
    )


def _handoffs(phase: GateSource) -> Iterator[MissingEvidence] | None:
    if not phase.facts.lines_of("dept-handoff"):
        return None
    return _all(phase, _check_blockers, _build_claims_check("dept-handoff"))


def _find_unread(phase: GateSource, *kinds: str) -> Iterator[MissingEvidence]:
    """Yield what cannot be read of these kinds: it may say anything."""
    for committed in sorted(phase.facts.committed, key=lambda artifact: artifact.place.path):
        place = committed.place
        if not committed.valid and place.artifact.kind in kinds and place.phase:
            what = f"{place.name} is on the branch and cannot be read"
            yield MissingEvidence(what, place.name, 0, _validate(phase, place.name))


def _all(phase: GateSource, *predicates: Predicate) -> Iterator[MissingEvidence]:
    for lacks in predicates:
        yield from lacks(phase)


def _build_claims_check(kind: str) -> Predicate:
    """Return the predicate for what a handoff of this kind claims and history lacks."""

    def lacks(phase: GateSource) -> Iterator[MissingEvidence]:
        for finding in errors(phase.false_claims):
            name = finding.path.rpartition("/")[2]
            if name == f"{kind}.jsonl":
                yield MissingEvidence(finding.message, name, finding.line, SHOW)

    return lacks


def _check_blockers(phase: GateSource) -> Iterator[MissingEvidence]:
    in_force = {
        (line.get("from_dept"), line.get("to_dept")): (number, line)
        for number, line in enumerate(phase.facts.lines_of("dept-handoff"), 1)
    }
    for (giver, taker), (number, line) in in_force.items():
        for blocker in line.get("blockers") or ():
            what, owed_by = f"{giver} → {taker}: {blocker}", _working(phase, str(giver))
            yield MissingEvidence(what, "dept-handoff.jsonl", number, SHOW, owed_by)


def _tests(phase: GateSource) -> Iterator[MissingEvidence] | None:
    missing = tuple(_find_missing_tests(phase))
    return iter(missing) if missing or phase.facts.of_kind("test-results") else None


def _find_missing_tests(phase: GateSource) -> Iterator[MissingEvidence]:
    for failure in failing_tests(phase.facts):
        yield MissingEvidence(failure.what, failure.file, failure.line, SHOW)
    if phase.facts.options.several_departments:
        yield from _find_missing_results(phase)


def _find_missing_results(phase: GateSource) -> Iterator[MissingEvidence]:
    """Yield departments that wrote tests but no results, where several departments work."""
    for status in phase.folded.departments:
        wrote_tests = any(
            step.step.key == "test_authoring" and step.standing is StepStanding.COMPLETE
            for step in status.steps
        )
        if wrote_tests and not phase.facts.of_kind("test-results", status.department):
            name = f"{DEPARTMENT_BY_NAME[status.department].prefix}test-results.jsonl"
            what = f"{status.department} has no test results"
            yield MissingEvidence(what, name, 0, _validate(phase, name))


CHECKS: Mapping[str, Callable[[GateSource], Iterator[MissingEvidence] | None]] = {
    "api": _check_api,
    "design": _design,
    "handoffs": _handoffs,
    "tests": _tests,
}
"""Check → predicate that yields what fails it, or returns None where it does not apply."""
