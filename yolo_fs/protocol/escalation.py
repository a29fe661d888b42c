"""Escalation: who escalates to whom and why, level by level up, and the resolution back down.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from yolo_fs.protocol.departments import Mode, Role


class Escalates(NamedTuple):
    """To whom one role escalates."""

    role: Role
    """Who escalates."""
    to: Role
    """Its direct report-to."""
    triggers: tuple[str, ...]
    """Occasions, as printed."""
    notes: str
    """As printed."""
    on_fail: Role | None = None
    """To whom a FAIL goes past the chain."""
    source: str = 'document 002 ("Full Escalation Table")'
    """Section that the row restates."""


ESCALATIONS = (
    Escalates(
        role=Role.DEV,
        to=Role.SENIOR,
        triggers=("Blocker", "spec unclear", "2 task failures", "architectural issue"),
        notes="NEVER contacts Lead or Architect",
    ),
    Escalates(
        role=Role.SENIOR,
        to=Role.LEAD,
        triggers=("Can't resolve Dev blocker", "design conflict", "code review cycle 2 fail"),
        notes="NEVER contacts Architect directly",
    ),
    Escalates(
        role=Role.LEAD,
        to=Role.ARCHITECT,
        triggers=("Can't resolve Senior escalation", "design problem", "cross-phase issue"),
        notes="NEVER contacts User directly",
    ),
    Escalates(
        role=Role.ARCHITECT,
        to=Role.USER,
        triggers=("Design-level decision needed", "scope change required"),
        notes="Final escalation point",
    ),
    Escalates(
        role=Role.TESTER,
        to=Role.SENIOR,
        triggers=("`ts` field unclear", "tests pass unexpectedly"),
        notes="Via Senior, NOT Lead",
    ),
    Escalates(
        role=Role.QA,
        to=Role.LEAD,
        triggers=("Verification findings", "FAIL result"),
        notes="Lead assigns remediation",
    ),
    Escalates(
        role=Role.QA_CODE,
        to=Role.LEAD,
        triggers=("Critical/major findings", "FAIL result"),
        notes="Lead routes to Senior → Dev",
    ),
    Escalates(
        role=Role.SECURITY,
        to=Role.LEAD,
        triggers=("Findings to report",),
        notes=(
            "FAIL = HARD STOP → User only (per-dept: Security→Lead, FE Security→FE Lead, "
            "UX Security→UX Lead)"
        ),
        on_fail=Role.USER,
    ),
    Escalates(
        role=Role.DOCUMENTER,
        to=Role.LEAD,
        triggers=("Findings only",),
        notes="Per-dept: Documenter→Lead, FE Documenter→FE Lead, UX Documenter→UX Lead",
    ),
    Escalates(
        role=Role.SCOUT,
        to=Role.LEAD,
        triggers=("Cannot find information", "conflicting sources"),
        notes="Advisory only",
    ),
    Escalates(
        role=Role.DEBUGGER,
        to=Role.LEAD,
        triggers=("Investigation complete", "fix recommendation"),
        notes="Lead decides action",
    ),
    Escalates(
        role=Role.CRITIC,
        to=Role.LEAD,
        triggers=("Findings are advisory",),
        notes="Lead forwards to Architect",
    ),
)

ESCALATES_BY_ROLE = {row.role: row for row in ESCALATIONS}


class Chain(NamedTuple):
    """The primary chain from a blocked Dev to the user."""

    mode: Mode
    """When it is the chain."""
    roles: tuple[Role, ...]
    """From the lowest to the highest level."""

    def above(self, role: Role) -> Role | None:
        """Return the next level up, or None above the user and for roles outside the chain."""
        place = self.roles.index(role) + 1 if role in self.roles else len(self.roles)
        return self.roles[place] if place < len(self.roles) else None


CHAINS = (
    Chain(Mode.SINGLE, (Role.DEV, Role.SENIOR, Role.LEAD, Role.ARCHITECT, Role.USER)),
    Chain(Mode.MULTI, (Role.DEV, Role.SENIOR, Role.LEAD, Role.ARCHITECT, Role.OWNER, Role.USER)),
)

LEVELS = (Role.SENIOR, Role.LEAD, Role.ARCHITECT, Role.OWNER, Role.USER)
"""Levels that may hold an escalation, lowest first."""


class Rule(StrEnum):
    """What a rule of escalation is about."""

    DIRECT_REPORT = "direct report"
    PROPAGATES = "propagates"
    DEV_TO_SENIOR_ONLY = "dev to senior only"
    QA_NOT_TO_ARCHITECT = "qa not to architect"
    OWNER_TO_USER_ONLY = "owner to user only"
    SECURITY_FAIL_BYPASSES = "security fail bypasses"
    EVIDENCE = "evidence"
    LANE = "lane"


class EscalationRule(NamedTuple):
    """One of the eight rules."""

    number: int
    """Number in the list."""
    rule: Rule
    """What it is about."""
    head: str
    """The sentence in bold."""
    text: str
    """The rest, as printed."""
    source: str = 'document 002 ("Escalation Chain", "Rules")'
    """Section that the row restates."""


RULES = (
    EscalationRule(
        1,
        Rule.DIRECT_REPORT,
        "Each agent escalates ONLY to their direct report-to.",
        "No skipping levels.",
    ),
    EscalationRule(
        2,
        Rule.PROPAGATES,
        "If report-to cannot resolve → they escalate to THEIR report-to.",
        "Chain propagates upward.",
    ),
    EscalationRule(
        3,
        Rule.DEV_TO_SENIOR_ONLY,
        "Dev NEVER contacts Lead, Architect, or User.",
        "Senior is Dev's single contact.",
    ),
    EscalationRule(
        4,
        Rule.QA_NOT_TO_ARCHITECT,
        "QA/Tester NEVER contact Architect.",
        "Findings route through Lead.",
    ),
    EscalationRule(
        5,
        Rule.OWNER_TO_USER_ONLY,
        "Only Owner/go.md talks to the User.",
        "In single-dept mode, Architect escalates to go.md (which acts as Owner proxy) → User. "
        "In multi-dept mode, Architect escalates to Owner → User. "
        "No other agent communicates with the user directly.",
    ),
    EscalationRule(
        6,
        Rule.SECURITY_FAIL_BYPASSES,
        "Only Security FAIL bypasses chain",
        "→ User (via go.md/Owner).",
    ),
    EscalationRule(
        7,
        Rule.EVIDENCE,
        "Escalation includes evidence.",
        "Use `escalation` handoff schema with issue + evidence + recommendation.",
    ),
    EscalationRule(
        8,
        Rule.LANE,
        "Stay in your lane.",
        "Each agent decides ONLY within their Decision Authority (see matrix above). "
        "Out-of-scope questions escalate immediately.",
    ),
)


class Transformation(NamedTuple):
    """What one level does with an escalation, or with its resolution, before it passes it on."""

    level: str
    """As printed; `4a` and `2a` are levels of one mode only."""
    role: Role
    """Who holds the level."""
    action: str
    """As printed."""
    output: str
    """As printed."""
    message: str = ""
    """Type of the message that leaves the level, where the document names one."""
    mode: Mode | None = None
    """The only mode in which the level exists; None for both."""
    mode_note: str = ""
    """What the agent column adds in parentheses."""


UPWARD = (
    Transformation(
        level="1",
        role=Role.DEV,
        action="Reports blocker with evidence of what was tried",
        output="`dev_blocker` schema",
        message="dev_blocker",
    ),
    Transformation(
        level="2",
        role=Role.SENIOR,
        action="Adds spec context, attempts resolution. If cannot: adds assessment",
        output="`escalation` schema to Lead",
        message="escalation",
    ),
    Transformation(
        level="3",
        role=Role.LEAD,
        action="Checks decision authority. If beyond scope: adds Lead assessment",
        output="`escalation` schema to Architect/Owner",
        message="escalation",
    ),
    Transformation(
        level="4",
        role=Role.ARCHITECT,
        action="Evaluates design impact, constructs 2-3 concrete options",
        output="Structured escalation with options array",
    ),
    Transformation(
        level="4a",
        role=Role.OWNER,
        action="Checks cross-department implications, routes to go.md",
        output="Escalation context to go.md",
        mode=Mode.MULTI,
        mode_note="multi-dept",
    ),
    Transformation(
        level="5",
        role=Role.GO,
        action="Formats for user, presents via AskUserQuestion",
        output="User sees blocker + options",
    ),
)

DOWNWARD = (
    Transformation(
        level="1",
        role=Role.GO,
        action="Packages user choice as escalation_resolution",
        output="`escalation_resolution` schema",
        message="escalation_resolution",
    ),
    Transformation(
        level="2",
        role=Role.OWNER,
        action="Adds strategic context, identifies target dept Lead",
        output="Enriched resolution",
        mode=Mode.MULTI,
        mode_note="multi-dept",
    ),
    Transformation(
        level="2a",
        role=Role.ARCHITECT,
        action="Updates architecture.toon if decision affects design",
        output="Resolution + architecture update",
        mode=Mode.SINGLE,
        mode_note="single-dept",
    ),
    Transformation(
        level="3",
        role=Role.LEAD,
        action="Routes to originating Senior, updates .execution-state.json",
        output="Forward resolution to Senior",
    ),
    Transformation(
        level="4",
        role=Role.SENIOR,
        action="Translates resolution to Dev instructions: spec update or code_review_changes",
        output="`code_review_changes` schema",
        message="code_review_changes",
    ),
    Transformation(
        level="5",
        role=Role.DEV,
        action="Applies resolution, resumes blocked task",
        output="Commit with escalation reference",
    ),
)
