"""What a gate needs, and what the integration gate checks: each has its one predicate, which looks
at the committed evidence of a phase. No file of the work tree opens a gate. Pure.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from yolo_fs.core.reasons import errors, shortened
from yolo_fs.evidence.facts import failing_tests
from yolo_fs.phase.gate_status import GateSource, MissingEvidence
from yolo_fs.phase.progress import StepStanding
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME
from yolo_fs.protocol.gates import Need

SHOW = "yolo-fs status"
VALIDATE = "yolo-fs validate {}"
READY = frozenset({"complete", "ready", "delivered", "deferred"})
"""What a design handoff, or one of its components, says when nobody has to wait for it."""
AGREED = frozenset({"agreed", "implemented"})


Predicate = Callable[[GateSource], Iterator[MissingEvidence]]
"""Yields what is missing; nothing means that the need is met."""


def _committed(kind: str) -> Predicate:
    def lacks(phase: GateSource) -> Iterator[MissingEvidence]:
        if not phase.facts.of_kind(kind):
            file = f"{kind}.jsonl"
            what = f"no valid {file} is committed"
            yield MissingEvidence(what, file, 0, VALIDATE.format(file))

    return lacks


def _design_handover(phase: GateSource) -> Iterator[MissingEvidence]:
    """Every handed-over component is ready, and the handoff says so."""
    for number, line in enumerate(phase.facts.lines_of("design-handoff"), 1):
        if line.get("status") not in READY:
            name = line.get("component", "the design handoff")
            what = f"{name} is {line.get('status')}"
            yield MissingEvidence(what, "design-handoff.jsonl", number, SHOW)


def _component_specs(phase: GateSource) -> Iterator[MissingEvidence]:
    yield from _committed("component-specs")(phase)
    for number, line in enumerate(phase.facts.lines_of("component-specs"), 1):
        if line.get("status") not in READY:
            what = f"{line.get('name')} is {line.get('status')}"
            yield MissingEvidence(what, "component-specs.jsonl", number, SHOW)


def _contract_agreed(phase: GateSource) -> Iterator[MissingEvidence]:
    file = "api-contracts.jsonl"
    lines = phase.facts.lines_of("api-contracts")
    if not any(line.get("status") in AGREED for line in lines):
        yield MissingEvidence("no contract is agreed", file, 0, VALIDATE.format(file))
    in_force = {_contract(line): (number, line) for number, line in enumerate(lines, 1)}
    for name, (number, line) in in_force.items():
        if line.get("status") not in AGREED:
            yield MissingEvidence(f"{name} is {line.get('status')}", file, number, SHOW)


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


def _status(_: GateSource) -> Iterator[MissingEvidence]:
    """Status files are projections of what `lacks_completion` looks at directly."""
    yield from ()


def lacks_completion(phase: GateSource) -> Iterator[MissingEvidence]:
    """Yield the departments whose part is not done."""
    for department in phase.behind:
        current = department.current
        assert current is not None
        check = f"'yolo-fs workflow check {current.step.key}'"
        lacks = shortened(current.missing, 3, shown_by=check, between="; ")
        why = lacks or "nothing of it is there"
        what = f"{department.department} is at {current.step.key}: {why}"
        yield MissingEvidence(what, ", ".join(current.step.outputs), 0, SHOW)


def _summary(phase: GateSource) -> Iterator[MissingEvidence]:
    for department in phase.facts.switches.departments:
        if not phase.facts.of_kind("summary", department):
            name = f"{DEPARTMENT_BY_NAME[department].prefix}NN-MM.summary.jsonl"
            yield MissingEvidence(f"{department} has no summary", name, 0, SHOW)


NEEDS: Mapping[Need, Predicate] = {
    Need.UX_SENTINEL: _design_handover,
    Need.DESIGN_HANDOFF: _committed("design-handoff"),
    Need.DESIGN_TOKENS: _committed("design-tokens"),
    Need.COMPONENT_SPECS: _component_specs,
    Need.CONTRACT_AGREED: _contract_agreed,
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
"""Kinds of artifacts that an open gate rests on: they date it and name its evidence."""


def _api(phase: GateSource) -> Iterator[MissingEvidence] | None:
    if not phase.facts.of_kind("api-contracts"):
        return None
    return _all(phase, _contract_agreed, _false_claims("api-contracts"))


def _design(phase: GateSource) -> Iterator[MissingEvidence] | None:
    if not phase.facts.of_kind("design-handoff"):
        return None
    return _all(phase, _design_handover, _component_specs, _false_claims("design-handoff"))


def _handoffs(phase: GateSource) -> Iterator[MissingEvidence] | None:
    if not phase.facts.lines_of("dept-handoff"):
        return None
    return _all(phase, _blocked_handoffs, _false_claims("dept-handoff"))


def _all(phase: GateSource, *predicates: Predicate) -> Iterator[MissingEvidence]:
    for lacks in predicates:
        yield from lacks(phase)


def _false_claims(kind: str) -> Predicate:
    """What a handoff of this kind claims and history does not have."""

    def lacks(phase: GateSource) -> Iterator[MissingEvidence]:
        for finding in errors(phase.false_claims):
            name = finding.path.rpartition("/")[2]
            if name == f"{kind}.jsonl":
                command = VALIDATE.format(finding.path)
                yield MissingEvidence(finding.message, name, finding.line, command)

    return lacks


def _blocked_handoffs(phase: GateSource) -> Iterator[MissingEvidence]:
    in_force = {
        (line.get("from_dept"), line.get("to_dept")): (number, line)
        for number, line in enumerate(phase.facts.lines_of("dept-handoff"), 1)
    }
    for (giver, taker), (number, line) in in_force.items():
        for blocker in line.get("blockers") or ():
            what = f"{giver} → {taker}: {blocker}"
            yield MissingEvidence(what, "dept-handoff.jsonl", number, SHOW)


def _tests(phase: GateSource) -> Iterator[MissingEvidence] | None:
    missing = tuple(_lacks_tests(phase))
    return iter(missing) if missing or phase.facts.of_kind("test-results") else None


def _lacks_tests(phase: GateSource) -> Iterator[MissingEvidence]:
    for one in failing_tests(phase.facts):
        yield MissingEvidence(one.what, one.file, one.line, SHOW)
    if phase.facts.switches.several_departments:
        yield from _lacks_results(phase)


def _lacks_results(phase: GateSource) -> Iterator[MissingEvidence]:
    """Where several departments work, each that wrote tests says how they ended."""
    for one in phase.folded.departments:
        wrote_tests = any(
            step.step.key == "test_authoring" and step.standing is StepStanding.COMPLETE
            for step in one.steps
        )
        if wrote_tests and not phase.facts.of_kind("test-results", one.department):
            name = f"{DEPARTMENT_BY_NAME[one.department].prefix}test-results.jsonl"
            what = f"{one.department} has no test results"
            yield MissingEvidence(what, name, 0, VALIDATE.format(name))


CHECKS: Mapping[str, Callable[[GateSource], Iterator[MissingEvidence] | None]] = {
    "api": _api,
    "design": _design,
    "handoffs": _handoffs,
    "tests": _tests,
}
"""Key of a check → what fails it; None where it does not apply."""
