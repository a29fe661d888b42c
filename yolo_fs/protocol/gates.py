"""Gates between departments and phases: what opens them, and what their verdicts mean.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from yolo_fs.protocol.names import Dept


class Need(StrEnum):
    """A piece of evidence that a gate asks for."""

    UX_SENTINEL = "`.handoff-ux-complete` exists"
    DESIGN_HANDOFF = "design-handoff.jsonl exists and whole file parses as JSON"
    DESIGN_TOKENS = "design-tokens.jsonl exists"
    COMPONENT_SPECS = "component-specs.jsonl exists and parses"
    CONTRACT_AGREED = (
        'api-contracts.jsonl has ≥1 line with status=="agreed" (unparsable lines skipped)'
    )
    SOME_STATUS = "≥1 `.dept-status-*.json`"
    ALL_COMPLETE = 'every one status=="complete" (unparsable ⇒ not met)'
    SOME_SUMMARY = "≥1 `*.summary.jsonl`"


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate that departments wait at."""

    name: str
    """As in `yolo-fs gate check NAME`."""
    needs: tuple[Need, ...]
    """It is open when all of them are met."""
    claim: str
    """What the protocol's text asks beyond the reference script; empty for nothing."""
    blocking: bool = True
    """Later waves wait for it."""
    source: str = "the reference scripts"
    """Section that the row restates."""


GATES = (
    Gate(
        name="ux-complete",
        needs=(Need.UX_SENTINEL, Need.DESIGN_HANDOFF, Need.DESIGN_TOKENS, Need.COMPONENT_SPECS),
        claim="status complete / all components ready",
    ),
    Gate(name="api-contract", needs=(Need.CONTRACT_AGREED,), claim="", blocking=False),
    Gate(
        name="all-depts",
        needs=(Need.SOME_STATUS, Need.ALL_COMPLETE, Need.SOME_SUMMARY),
        claim='"every *active* department", "summary per department"',
    ),
)

GATE_BY_NAME = {row.name: row for row in GATES}


@dataclass(frozen=True, slots=True)
class WaveGate:
    """The name of the gate between two waves, and the gate that it means."""

    name: str
    """As the orchestration prints it."""
    gate: str
    """A gate of `GATES`; empty when the sentinel of `department` alone opens it."""
    department: Dept | None
    """The department whose completion it waits for; None for all."""
    source: str = "the reference scripts"
    """Section that the row restates."""


WAVE_GATES = (
    WaveGate("handoff-ux-complete", "ux-complete", Dept.UIUX),
    WaveGate("handoff-frontend-complete", "", Dept.FRONTEND),
    WaveGate("handoff-backend-complete", "", Dept.BACKEND),
    WaveGate("all-depts-complete", "all-depts", None),
)


GATE_TIMEOUT_MINUTES = 30
"""How long a gate between departments is waited for."""


@dataclass(frozen=True, slots=True)
class Sentinel:
    """An empty file that tells a handoff is made."""

    file: str
    """Name in the phase directory."""
    department: Dept | None
    """The department that is ready; None for a matter between departments."""
    opens: tuple[str, ...] = ()
    """Gates that ask for it, one accepted spelling being enough."""
    source: str = "the reference scripts"
    """Section that the row restates."""


SENTINELS = (
    Sentinel(".handoff-ux-complete", Dept.UIUX, ("ux-complete", "integration")),
    Sentinel(".handoff-uiux-complete", Dept.UIUX, ("ux-complete", "integration")),
    Sentinel(".handoff-frontend-complete", Dept.FRONTEND, ("integration",)),
    Sentinel(".handoff-backend-complete", Dept.BACKEND, ("integration",)),
    Sentinel(".handoff-api-contract", None),
)
"""Both spellings for UI/UX are written, either is accepted."""


@dataclass(frozen=True, slots=True)
class IntegrationCheck:
    """One of the four checks of the integration gate."""

    key: str
    """Key in `checks` of the result; each is pass, fail or skip."""
    name: str
    """As in document 002."""
    config: str
    """Key below `integration_gate.checks` of the configuration."""
    source: str = 'document 002 ("Integration Pipeline")'
    """Section that the row restates."""


INTEGRATION_CHECKS = (
    IntegrationCheck("api", "API contracts", "api_contracts"),
    IntegrationCheck("design", "design sync", "design_sync"),
    IntegrationCheck("handoffs", "handoffs", "handoffs"),
    IntegrationCheck("tests", "test results", "tests"),
)


class Outcome(StrEnum):
    """What the stage gate between Architect and Lead decides."""

    GO = "Go"
    RECYCLE = "Recycle"
    KILL = "Kill"


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """An outcome of the stage gate."""

    outcome: Outcome
    """As printed."""
    meaning: str
    """What follows."""
    source: str = 'document 002 ("R&D Pipeline"), which names the outcome only; the meaning is ours'
    """Section that the row restates."""


STAGE_OUTCOMES = (
    StageOutcome(
        Outcome.GO,
        "no critique entry is open: the Lead plans",
        source='document 002 ("R&D Pipeline")',
    ),
    StageOutcome(
        Outcome.RECYCLE,
        "critique entries are open: the Architect addresses, defers or rejects them",
    ),
    StageOutcome(Outcome.KILL, "the phase stops; the Architect escalates with the reason"),
)


class Evidence(StrEnum):
    """What the departments' results and the checks amount to."""

    SECURITY_FAIL = "any security FAIL"
    FAIL = "any FAIL"
    PARTIAL = "any PARTIAL"
    ALL_PASS = "all PASS + integration PASS + security PASS"


class Decision(StrEnum):
    """What the Owner decides at the end."""

    HARD_STOP = "hard stop to the user"
    HOLD = "HOLD"
    REVIEW = "review"
    SHIP = "SHIP"


@dataclass(frozen=True, slots=True)
class SignOff:
    """One row of the Owner's decision matrix; the first row that applies decides."""

    when: Evidence
    """What the results amount to."""
    decision: Decision
    """What the Owner decides."""
    source: str = "the reference scripts"
    """Section that the row restates."""


SIGN_OFFS = (
    SignOff(Evidence.SECURITY_FAIL, Decision.HARD_STOP),
    SignOff(Evidence.FAIL, Decision.HOLD),
    SignOff(Evidence.PARTIAL, Decision.REVIEW),
    SignOff(Evidence.ALL_PASS, Decision.SHIP),
)
"""Gravest first; the document lists the same four from the mildest to the gravest."""
