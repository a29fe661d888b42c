"""The integration gate: four checks across departments, each told with what fails it.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.gates import INTEGRATION, INTEGRATION_CHECKS
from yolo_fs.reasons import errors
from yolo_fs.rules.handoffs.contents import faults_of_handoffs
from yolo_fs.rules.phase.gateview import GateStatus, GateView, MissingEvidence, evidence_of
from yolo_fs.rules.phase.needs import (
    SHOW,
    VALIDATE,
    all_departments,
    component_specs,
    contract_agreed,
    ux_said_complete,
)
from yolo_fs.rules.phase.progress import StepStanding


def integration_checks(view: GateView) -> dict[str, tuple[str, tuple[MissingEvidence, ...]]]:
    """Return each of the four checks: pass, fail or skip, with what fails it."""
    active = view.facts.switches.departments
    wanted = view.facts.switches.config.integration_gate.checks
    found: dict[str, tuple[str, tuple[MissingEvidence, ...]]] = {}
    for row in INTEGRATION_CHECKS:
        if not getattr(wanted, row.config) or not row.applies_to(active):
            found[row.key] = ("skip", ())
            continue
        applies, lacks = _CHECKS[row.key](view)
        found[row.key] = ("fail" if lacks else "pass" if applies else "skip", lacks)
    return found


def _api(view: GateView) -> tuple[bool, tuple[MissingEvidence, ...]]:
    applies = bool(view.facts.of_kind("api-contracts"))
    return applies, (*contract_agreed(view), *_untrue(view, "api-contracts")) if applies else ()


def _design(view: GateView) -> tuple[bool, tuple[MissingEvidence, ...]]:
    applies = bool(view.facts.of_kind("design-handoff"))
    lacks = (*ux_said_complete(view), *component_specs(view), *_untrue(view, "design-handoff"))
    return applies, lacks if applies else ()


def _handoffs(view: GateView) -> tuple[bool, tuple[MissingEvidence, ...]]:
    lines = view.facts.lines_of("dept-handoff")
    in_force = {
        (line.get("from_dept"), line.get("to_dept")): (number, line)
        for number, line in enumerate(lines, 1)
    }
    blocked = tuple(
        MissingEvidence(f"{giver} → {taker}: {blocker}", "dept-handoff.jsonl", number, SHOW)
        for (giver, taker), (number, line) in in_force.items()
        for blocker in line.get("blockers") or ()
    )
    return bool(lines), (*blocked, *_untrue(view, "dept-handoff"))


def _untrue(view: GateView, kind: str) -> Iterator[MissingEvidence]:
    """What a handoff claims and the branch does not have."""
    for finding in errors(faults_of_handoffs(view.facts)):
        name = finding.path.rpartition("/")[2]
        if name == f"{kind}.jsonl":
            yield MissingEvidence(
                finding.message, name, finding.line, VALIDATE.format(finding.path)
            )


def _tests(view: GateView) -> tuple[bool, tuple[MissingEvidence, ...]]:
    filed = view.facts.of_kind("test-results")
    last = {
        line.get("plan"): (one.place.name, number, line)
        for one in filed
        for number, line in enumerate(one.lines, 1)
    }
    failing = tuple(
        MissingEvidence(f"{line['fl']} tests of plan {plan} fail", name, number, SHOW)
        for plan, (name, number, line) in last.items()
        if line.get("fl")
    )
    return bool(filed), (*failing, *_untested(view))


_PREFIX = {row.name: row.prefix for row in WORKING}


def _untested(view: GateView) -> Iterator[MissingEvidence]:
    """Where several departments work, each that wrote tests says how they ended."""
    if not view.facts.switches.several_departments:
        return
    for one in view.progress.departments:
        wrote = any(
            step.step.key == "test_authoring" and step.standing is StepStanding.COMPLETE
            for step in one.steps
        )
        if wrote and not view.facts.of_kind("test-results", one.department):
            name = f"{_PREFIX[one.department]}test-results.jsonl"
            yield MissingEvidence(
                f"{one.department} has no test results", name, 0, VALIDATE.format(name)
            )


_CHECKS: Mapping[str, Callable[[GateView], tuple[bool, tuple[MissingEvidence, ...]]]] = {
    "api": _api,
    "design": _design,
    "handoffs": _handoffs,
    "tests": _tests,
}


def integration_gate(view: GateView) -> GateStatus:
    """Return the integration gate: open once all departments are done and no check fails."""
    waiting = tuple(all_departments(view))
    failed = tuple(lack for _, lacks in integration_checks(view).values() for lack in lacks)
    evidence = evidence_of(
        view.facts, {"api-contracts", "design-handoff", "dept-handoff", "test-results"}
    )
    return GateStatus(INTEGRATION, waiting + failed, evidence)


def integration_result(view: GateView, date: str) -> dict[str, Any]:
    """Return the line of `integration-gate-result.jsonl`."""
    checks = integration_checks(view)
    failures = [
        {"check": key, "detail": lack.what, "file": lack.file}
        for key, (_, lacks) in checks.items()
        for lack in lacks
    ]
    return {
        "r": "FAIL" if failures else "PASS",
        "checks": {key: result for key, (result, _) in checks.items()},
        "failures": failures,
        "dt": date,
    }
