"""Gates between departments: open or closed by committed evidence alone, with each missing piece named.

A sentinel file never opens anything here; it is a cache for others, bound to the evidence it rests on.
Source: protocol 3.4, 8.11, 10 #7 to #10; document 002 ("Integration Pipeline"); reliability F58.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.gates import (
    GATES,
    INTEGRATION_CHECKS,
    SENTINELS,
    SIGN_OFFS,
    Decision,
    Evidence,
    Gate,
    Need,
    Sentinel,
)
from yolo_fs.protocol.names import Dept
from yolo_fs.reasons import errors
from yolo_fs.rules.handoffs.contents import faults_of_handoffs
from yolo_fs.rules.phase.facts import PhaseFacts
from yolo_fs.rules.phase.progress import DepartmentProgress, PhaseProgress, StepStanding

AGREED = frozenset({"agreed", "implemented"})
READY = frozenset({"complete", "ready", "delivered", "deferred"})
"""What a design handoff, or one of its components, says when nobody has to wait for it (protocol 10 #9)."""

INTEGRATION = "integration"
"""Name of the integration gate beside those of the table."""


@dataclass(frozen=True, slots=True)
class Missing:
    """One piece of evidence that a gate lacks."""

    what: str
    file: str
    """File that would carry it, in the phase directory."""
    line: int = 0
    """Line that says otherwise; 0 when there is none yet."""
    command: str = ""
    """What to type to see or to supply it."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.what} ({place})"


@dataclass(frozen=True, slots=True)
class GateProgress:
    """One gate of one phase."""

    name: str
    missing: tuple[Missing, ...]
    evidence: tuple[tuple[str, str], ...]
    """(path, commit) of what it rests on."""
    blocking: bool = True

    @property
    def is_open(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    def as_json(self) -> dict[str, Any]:
        """Return the gate as `gate --json` and `status --json` show it."""
        return {
            "gate": self.name,
            "open": self.is_open,
            "blocking": self.blocking,
            "missing": [asdict(lack) for lack in self.missing],
            "evidence": [{"path": path, "commit": commit} for path, commit in self.evidence],
        }


@dataclass(frozen=True, slots=True)
class GateView:
    """What the predicates of a gate look at."""

    facts: PhaseFacts
    progress: PhaseProgress


def gates_of(facts: PhaseFacts, progress: PhaseProgress) -> tuple[GateProgress, ...]:
    """Return the gates that this phase has: those of its departments, and the integration gate."""
    view = GateView(facts, progress)
    active = facts.switches.departments
    rows = [gate for gate in GATES if _concerns(gate, active)]
    return (*(_gate(view, gate) for gate in rows), _integration_gate(view))


def _concerns(gate: Gate, active: tuple[Dept, ...]) -> bool:
    if gate.name == "ux-complete":
        return Dept.UIUX in active
    return gate.name != "api-contract" or {Dept.BACKEND, Dept.FRONTEND} <= set(active)


def _gate(view: GateView, gate: Gate) -> GateProgress:
    missing = tuple(lack for need in gate.needs for lack in NEEDS[need](view))
    kinds = {kind for need in gate.needs for kind in _KINDS.get(need, ())}
    return GateProgress(gate.name, missing, _evidence(view.facts, kinds), gate.blocking)


def _evidence(facts: PhaseFacts, kinds: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (filed.place.path, filed.commit) for kind in sorted(kinds) for filed in facts.of_kind(kind) if filed.commit
    )


# --- what the gates of the table need ---


def _ux_said_complete(view: GateView) -> Iterator[Missing]:
    """The sentinel stands for this: every handed-over component is ready, and the handoff says so."""
    for number, line in enumerate(view.facts.lines_of("design-handoff"), 1):
        if line.get("status") not in READY:
            name = line.get("component", "the design handoff")
            yield Missing(f"{name} is {line.get('status')}", "design-handoff.jsonl", number, _SHOW)


def _design_handoff(view: GateView) -> Iterator[Missing]:
    yield from _committed(view, "design-handoff")


def _design_tokens(view: GateView) -> Iterator[Missing]:
    yield from _committed(view, "design-tokens")


def _component_specs(view: GateView) -> Iterator[Missing]:
    yield from _committed(view, "component-specs")
    for number, line in enumerate(view.facts.lines_of("component-specs"), 1):
        if line.get("status") not in READY:
            yield Missing(f"{line.get('name')} is {line.get('status')}", "component-specs.jsonl", number, _SHOW)


def _contract_agreed(view: GateView) -> Iterator[Missing]:
    lines = view.facts.lines_of("api-contracts")
    if not any(line.get("status") in AGREED for line in lines):
        yield Missing("no contract is agreed", "api-contracts.jsonl", 0, _VALIDATE.format("api-contracts.jsonl"))
    in_force = {_contract(line): (number, line) for number, line in enumerate(lines, 1)}
    for name, (number, line) in in_force.items():
        if line.get("status") not in AGREED:
            yield Missing(f"{name} is {line.get('status')}", "api-contracts.jsonl", number, _SHOW)


def _contract(line: Mapping[str, Any]) -> str:
    """Return what a contract line is about, so that a later line about the same replaces it."""
    if endpoint := line.get("endpoint"):
        return str(endpoint)
    endpoints = [
        f"{item.get('method')} {item.get('path')}" for item in line.get("endpoints") or () if isinstance(item, dict)
    ]
    return ", ".join(sorted(endpoints)) or "the contract"


def _all_departments(view: GateView) -> Iterator[Missing]:
    for department in view.progress.departments:
        current = department.current
        if current is not None:
            why = "; ".join(current.missing[:3]) or "nothing of it is there"
            what = f"{department.department} is at {current.step.key}: {why}"
            yield Missing(what, ", ".join(current.step.outputs), 0, "yolo-fs status")


def _each_has_a_summary(view: GateView) -> Iterator[Missing]:
    for department in view.progress.departments:
        if not view.facts.of_kind("summary", department.department):
            yield Missing(f"{department.department} has no summary", "NN-MM.summary.jsonl", 0, "yolo-fs status")


def _committed(view: GateView, kind: str) -> Iterator[Missing]:
    if not view.facts.of_kind(kind):
        yield Missing(f"no valid {kind}.jsonl is committed", f"{kind}.jsonl", 0, _VALIDATE.format(f"{kind}.jsonl"))


_SHOW = "yolo-fs status"
_VALIDATE = "yolo-fs validate {}"

NEEDS: Mapping[Need, Callable[[GateView], Iterator[Missing]]] = {
    Need.UX_SENTINEL: _ux_said_complete,
    Need.DESIGN_HANDOFF: _design_handoff,
    Need.DESIGN_TOKENS: _design_tokens,
    Need.COMPONENT_SPECS: _component_specs,
    Need.CONTRACT_AGREED: _contract_agreed,
    Need.SOME_STATUS: lambda _: iter(()),
    Need.ALL_COMPLETE: _all_departments,
    Need.SOME_SUMMARY: _each_has_a_summary,
}
"""`SOME_STATUS` asks for a file that is a projection of what `ALL_COMPLETE` looks at directly."""

_KINDS: Mapping[Need, tuple[str, ...]] = {
    Need.DESIGN_HANDOFF: ("design-handoff",),
    Need.DESIGN_TOKENS: ("design-tokens",),
    Need.COMPONENT_SPECS: ("component-specs",),
    Need.CONTRACT_AGREED: ("api-contracts",),
    Need.ALL_COMPLETE: ("code-review", "security-audit", "verification"),
    Need.SOME_SUMMARY: ("summary",),
}


# --- the integration gate ---


def integration_checks(view: GateView) -> dict[str, tuple[str, tuple[Missing, ...]]]:
    """Return each of the four checks: pass, fail or skip, with what fails it. Source: protocol 8.11."""
    several = view.facts.switches.several_departments
    wanted = view.facts.switches.config.integration_gate.checks
    found: dict[str, tuple[str, tuple[Missing, ...]]] = {}
    for row in INTEGRATION_CHECKS:
        if not getattr(wanted, row.config) or (row.key in ("api", "design") and not several):
            found[row.key] = ("skip", ())
            continue
        applies, lacks = _CHECKS[row.key](view)
        found[row.key] = ("fail" if lacks else "pass" if applies else "skip", lacks)
    return found


def _api(view: GateView) -> tuple[bool, tuple[Missing, ...]]:
    applies = bool(view.facts.of_kind("api-contracts"))
    return applies, (*_contract_agreed(view), *_untrue(view, "api-contracts")) if applies else ()


def _design(view: GateView) -> tuple[bool, tuple[Missing, ...]]:
    applies = Dept.UIUX in view.facts.switches.departments and bool(view.facts.of_kind("design-handoff"))
    lacks = (*_ux_said_complete(view), *_component_specs(view), *_untrue(view, "design-handoff"))
    return applies, lacks if applies else ()


def _handoffs(view: GateView) -> tuple[bool, tuple[Missing, ...]]:
    lines = view.facts.lines_of("dept-handoff")
    in_force = {(line.get("from_dept"), line.get("to_dept")): (number, line) for number, line in enumerate(lines, 1)}
    blocked = tuple(
        Missing(f"{giver} → {taker}: {blocker}", "dept-handoff.jsonl", number, _SHOW)
        for (giver, taker), (number, line) in in_force.items()
        for blocker in line.get("blockers") or ()
    )
    return bool(lines), (*blocked, *_untrue(view, "dept-handoff"))


def _untrue(view: GateView, kind: str) -> Iterator[Missing]:
    """What a handoff claims and the branch does not have. Source: document 000, dept-handoff.jsonl ("Flow")."""
    for finding in errors(faults_of_handoffs(view.facts)):
        name = finding.path.rpartition("/")[2]
        if name == f"{kind}.jsonl":
            yield Missing(finding.message, name, finding.line, _VALIDATE.format(finding.path))


def _tests(view: GateView) -> tuple[bool, tuple[Missing, ...]]:
    filed = view.facts.of_kind("test-results")
    last = {
        line.get("plan"): (one.place.name, number, line) for one in filed for number, line in enumerate(one.lines, 1)
    }
    failing = tuple(
        Missing(f"{line['fl']} tests of plan {plan} fail", name, number, _SHOW)
        for plan, (name, number, line) in last.items()
        if line.get("fl")
    )
    return bool(filed), (*failing, *_untested(view))


_PREFIX = {row.name: row.prefix for row in WORKING}


def _untested(view: GateView) -> Iterator[Missing]:
    """Where several departments work, each that wrote tests says how they ended. Source: protocol 3.4."""
    if not view.facts.switches.several_departments:
        return
    for one in view.progress.departments:
        wrote = any(step.step.key == "test_authoring" and step.standing is StepStanding.COMPLETE for step in one.steps)
        if wrote and not view.facts.of_kind("test-results", one.department):
            name = f"{_PREFIX[one.department]}test-results.jsonl"
            yield Missing(f"{one.department} has no test results", name, 0, _VALIDATE.format(name))


_CHECKS: Mapping[str, Callable[[GateView], tuple[bool, tuple[Missing, ...]]]] = {
    "api": _api,
    "design": _design,
    "handoffs": _handoffs,
    "tests": _tests,
}


def _integration_gate(view: GateView) -> GateProgress:
    waiting = tuple(_all_departments(view))
    failed = tuple(lack for _, lacks in integration_checks(view).values() for lack in lacks)
    evidence = _evidence(view.facts, {"api-contracts", "design-handoff", "dept-handoff", "test-results"})
    return GateProgress(INTEGRATION, waiting + failed, evidence)


def integration_result(view: GateView, date: str) -> dict[str, Any]:
    """Return the line of `integration-gate-result.jsonl`. Source: protocol 1.3."""
    checks = integration_checks(view)
    failures = [
        {"check": key, "detail": lack.what, "file": lack.file} for key, (_, lacks) in checks.items() for lack in lacks
    ]
    return {
        "r": "FAIL" if failures else "PASS",
        "checks": {key: result for key, (result, _) in checks.items()},
        "failures": failures,
        "dt": date,
    }


# --- the Owner's decision ---


def sign_off(view: GateView) -> tuple[Decision, str]:
    """Return what the Owner is to decide by the matrix, and why. Source: protocol 3.4 ("Decision matrix")."""
    security = [_verdict(view, "security-audit", one) for one in view.progress.departments]
    quality = [_verdict(view, "verification", one) for one in view.progress.departments]
    failed = next((lack for _, lacks in integration_checks(view).values() for lack in lacks), None)
    behind = next((lack.what for lack in _all_departments(view)), "")
    found = {
        Evidence.SECURITY_FAIL: "security says FAIL" if "FAIL" in security else "",
        Evidence.FAIL: str(failed) if failed else "verification says FAIL" if "FAIL" in quality else behind,
        Evidence.PARTIAL: "verification says PARTIAL" if "PARTIAL" in quality else "",
        Evidence.ALL_PASS: "all departments, the integration gate and security pass",
    }
    return next((row.decision, found[row.when]) for row in SIGN_OFFS if found[row.when])


def _verdict(view: GateView, kind: str, department: DepartmentProgress) -> str:
    lines = view.facts.lines_of(kind, department.department)
    return str(next((line.get("r") for line in lines if "r" in line), ""))


# --- sentinels ---


def sentinels_of(facts: PhaseFacts, progress: PhaseProgress) -> dict[str, str]:
    """Return the sentinel files that the evidence bears out: file name → exact content.

    A sentinel on disk with any other content is stale or forged.
    """
    open_gates = {gate.name: gate for gate in gates_of(facts, progress) if gate.is_open}
    return {
        row.file: _content(row, facts, open_gates, progress)
        for row in SENTINELS
        if _is_borne_out(row, open_gates, progress)
    }


def _is_borne_out(row: Sentinel, open_gates: Mapping[str, GateProgress], progress: PhaseProgress) -> bool:
    if row.department is None:
        return "api-contract" in open_gates
    if row.department is Dept.UIUX:
        return "ux-complete" in open_gates
    return any(one.department is row.department and one.is_complete and one.plans for one in progress.departments)


def _content(row: Sentinel, facts: PhaseFacts, open_gates: Mapping[str, GateProgress], progress: PhaseProgress) -> str:
    if row.department is Dept.UIUX:
        evidence = open_gates["ux-complete"].evidence
    elif row.department is None:
        evidence = open_gates["api-contract"].evidence
    else:
        evidence = tuple((str(plan.id), plan.commit) for one in progress.departments for plan in one.plans)
    bound = {"sentinel": row.file, "phase": str(facts.phase), "evidence": [list(pair) for pair in evidence]}
    return json.dumps(bound, sort_keys=True) + "\n"
