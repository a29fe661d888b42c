"""Gates between departments and phases: what opens them, what their verdicts mean, and the chains
of repair that follow a failed QA or a code review.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, DEPARTMENT_BY_NAME, WORKING, Dept, Role


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


class Owed(StrEnum):
    """Who owes a closed gate its evidence; each is bound to a function of the rules on waiting."""

    BEHIND = "every department whose part is not done"
    REQUIRED = "the departments that the gate requires"
    UNANSWERED = "the Lead who has not answered a contract"


class Gate(NamedTuple):
    """A gate that departments wait at."""

    name: str
    """As in `yolo-fs gate check NAME`."""
    needs: tuple[Need, ...]
    """It is open when all of them are met."""
    claim: str = ""
    """What the protocol's text asks beyond the reference script; empty for nothing."""
    requires: tuple[Dept, ...] = ()
    """Departments without which a phase does not have this gate."""
    owed_by: Owed = Owed.BEHIND
    """Whom the departments behind it wait for while it is closed."""
    sentinels: tuple[str, ...] = ()
    """Empty files that say that it is open; any one is enough."""
    blocking: bool = True
    """The phase is not complete without it; a later wave waits where a sentinel of it is that of a
    department."""
    ends_last_wave: bool = False
    """It stands behind the last wave of departments."""


GATES = (
    Gate(
        name="ux-complete",
        needs=(Need.UX_SENTINEL, Need.DESIGN_HANDOFF, Need.DESIGN_TOKENS, Need.COMPONENT_SPECS),
        claim="status complete / all components ready",
        requires=(Dept.UIUX,),
        owed_by=Owed.REQUIRED,
        sentinels=DEPARTMENT_BY_NAME[Dept.UIUX].sentinels,
    ),
    Gate(
        name="api-contract",
        needs=(Need.CONTRACT_AGREED,),
        requires=(Dept.BACKEND, Dept.FRONTEND),
        owed_by=Owed.UNANSWERED,
        sentinels=(".handoff-api-contract",),
        blocking=False,
    ),
    Gate(
        name="all-depts",
        needs=(Need.SOME_STATUS, Need.ALL_COMPLETE, Need.SOME_SUMMARY),
        claim='"every *active* department", "summary per department"',
        ends_last_wave=True,
    ),
)

GATE_BY_NAME = {row.name: row for row in GATES}

INTEGRATION = "integration"
"""Name of the integration gate, which stands beside those of the table."""


class Sentinel(NamedTuple):
    """An empty file that says that a handoff is made."""

    file: str
    """Name in the phase directory."""
    department: Dept | None
    """The department that is ready; None for a matter between departments."""
    gate: str = ""
    """The gate whose opening it records; empty when it records that the department is done."""


def _sentinels() -> tuple[Sentinel, ...]:
    gate_of = {file: gate.name for gate in GATES for file in gate.sentinels}
    own = [(file, row.name) for row in reversed(WORKING) for file in row.sentinels]
    known = {file for file, _ in own}
    between = [file for file in gate_of if file not in known]
    return (
        *(Sentinel(file, name, gate_of.get(file, "")) for file, name in own),
        *(Sentinel(file, None, gate_of[file]) for file in between),
    )


SENTINELS = _sentinels()
"""Every accepted spelling of a sentinel is written."""


class WaveGate(NamedTuple):
    """The name of the gate between two waves, and the gate that it means."""

    name: str
    """As the orchestration prints it."""
    gate: str
    """A gate of `GATES`; empty when the sentinel of `department` alone opens it."""
    department: Dept | None
    """The department whose completion it waits for; None for all."""


def _wave_gates() -> tuple[WaveGate, ...]:
    preferred = [(row, row.sentinels[0]) for row in reversed(WORKING)]
    gate_of = {row.file: row.gate for row in SENTINELS}
    return (
        *(WaveGate(file.lstrip("."), gate_of[file], row.name) for row, file in preferred),
        *(WaveGate(f"{row.name}-complete", row.name, None) for row in GATES if row.ends_last_wave),
    )


WAVE_GATES = _wave_gates()

GATE_TIMEOUT_MINUTES = 30
"""How long a gate between departments is waited for."""


class IntegrationCheck(NamedTuple):
    """One of the four checks of the integration gate."""

    key: str
    """Key in `checks` of the result; each is pass, fail or skip."""
    name: str
    """As in document 002."""
    config: str
    """Key below `integration_gate.checks` of the configuration."""
    needs_several: bool = False
    """It is skipped where one department works alone."""
    requires: tuple[Dept, ...] = ()
    """Departments without which it is skipped."""

    def applies_to(self, departments: Collection[Dept]) -> bool:
        """Return whether it is checked where these departments work."""
        are_enough = not self.needs_several or bool(set(departments) - {DEFAULT_DEPARTMENT})
        return are_enough and set(self.requires) <= set(departments)


INTEGRATION_CHECKS = (
    IntegrationCheck("api", "API contracts", "api_contracts", needs_several=True),
    IntegrationCheck(
        "design", "design sync", "design_sync", needs_several=True, requires=(Dept.UIUX,)
    ),
    IntegrationCheck("handoffs", "handoffs", "handoffs"),
    IntegrationCheck("tests", "test results", "tests"),
)


class ApprovalGate(NamedTuple):
    """Where a person is asked before a department's work goes on, if the configuration says so."""

    key: str
    """Its switch in `approval_gates`."""
    step: str
    """The step that waits."""
    kinds: tuple[str, ...]
    """The verdicts that it is about."""
    results: tuple[str, ...]
    """The results at which it asks; empty for any."""
    asks: str
    """What the person does."""


APPROVAL_GATES = (
    ApprovalGate("code_review", "code_review", ("code-review",), (), "approves the code review"),
    ApprovalGate(
        "qa_fail", "qa", ("verification", "qa-code"), ("FAIL",), "lets what QA found be repaired"
    ),
    ApprovalGate(
        "security_warn",
        "security",
        ("security-audit",),
        ("WARN",),
        "accepts what security warns of",
    ),
)
APPROVAL_GATE_BY_KEY = {row.key: row for row in APPROVAL_GATES}


class Outcome(StrEnum):
    """What the stage gate between Architect and Lead decides."""

    GO = "Go"
    RECYCLE = "Recycle"
    KILL = "Kill"


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


class SignOff(NamedTuple):
    """One row of the Owner's decision matrix; the first row that applies decides."""

    when: Evidence
    """What the results amount to."""
    decision: Decision
    """What the Owner decides."""


SIGN_OFFS = (
    SignOff(Evidence.SECURITY_FAIL, Decision.HARD_STOP),
    SignOff(Evidence.FAIL, Decision.HOLD),
    SignOff(Evidence.PARTIAL, Decision.REVIEW),
    SignOff(Evidence.ALL_PASS, Decision.SHIP),
)
"""Gravest first; the document lists the same four from the mildest to the gravest."""


class Move(NamedTuple):
    """One link of a chain."""

    text: str
    """As printed."""
    role: Role | None = None
    """Who moves; None for a consequence that nobody carries out."""


class Remedy(NamedTuple):
    """What follows one occasion, link by link."""

    occasion: str
    """As printed."""
    moves: tuple[Move, ...]
    """What happens, in order."""
    failures: int = 0
    """For QA: how many times it has failed."""


QA_REMEDIES = (
    Remedy(
        "QA Code FAIL",
        (
            Move("Lead assigns", Role.LEAD),
            Move("Senior re-specs", Role.SENIOR),
            Move("Dev fixes", Role.DEV),
            Move("QA re-verifies", Role.QA),
        ),
        failures=1,
    ),
    Remedy(
        "2nd QA FAIL",
        (Move("Lead assigns", Role.LEAD), Move("Senior reviews approach", Role.SENIOR)),
        failures=2,
    ),
    Remedy(
        "3rd QA FAIL",
        (Move("Lead escalates", Role.LEAD), Move("Architect re-evaluates design", Role.ARCHITECT)),
        failures=3,
    ),
)

REVIEW_REMEDIES = (
    Remedy("Senior: changes_requested", (Move("classify as Minor or Major", Role.SENIOR),)),
    Remedy(
        "Minor only (nits/style)", (Move("Dev fixes", Role.DEV), Move("auto-approve (no cycle 2)"))
    ),
    Remedy(
        "Major findings",
        (Move("Dev fixes", Role.DEV), Move("Senior re-reviews (cycle 2)", Role.SENIOR)),
    ),
    Remedy("Cycle 2 fail", (Move("Senior escalates to Lead", Role.SENIOR),)),
    Remedy("Lead decides", (Move("Accept with known issues OR escalate to Architect", Role.LEAD),)),
)


class Weight(StrEnum):
    """How grave the findings of a review are together."""

    MINOR = "Minor"
    MAJOR = "Major"


class ChangeClass(NamedTuple):
    """A class of review findings and its consequence."""

    weight: Weight
    """Name of the class."""
    kinds: tuple[str, ...]
    """Kinds of finding, as printed."""
    consequence: str
    """As printed."""
    severities: tuple[str, ...]
    """Values of `sev` in `code-review.jsonl` that fall into the class."""


CHANGE_CLASSES = (
    ChangeClass(
        Weight.MINOR,
        ("Nits", "style", "naming", "formatting"),
        "Auto-approve after cycle 1 fix if only minor findings.",
        severities=("minor", "nit"),
    ),
    ChangeClass(
        Weight.MAJOR,
        ("Logic errors", "missing error handling", "architecture violations"),
        "Require cycle 2 re-review.",
        severities=("critical", "major"),
    ),
)


class Metric(NamedTuple):
    """A point at which the code review is measured."""

    name: str
    """What is measured, as printed."""


METRICS = (
    Metric("cycle_count"),
    Metric("finding_severity_distribution"),
    Metric("time_per_cycle"),
    Metric("escalation_triggered"),
)
