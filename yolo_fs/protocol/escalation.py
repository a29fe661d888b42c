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
    Escalates(Role.DEV, Role.SENIOR,
        ("Blocker", "spec unclear", "2 task failures", "architectural issue"),
        "NEVER contacts Lead or Architect"),
    Escalates(Role.SENIOR, Role.LEAD,
        ("Can't resolve Dev blocker", "design conflict", "code review cycle 2 fail"),
        "NEVER contacts Architect directly"),
    Escalates(Role.LEAD, Role.ARCHITECT,
        ("Can't resolve Senior escalation", "design problem", "cross-phase issue"),
        "NEVER contacts User directly"),
    Escalates(Role.ARCHITECT, Role.USER, ("Design-level decision needed", "scope change required"),
        "Final escalation point"),
    Escalates(Role.TESTER, Role.SENIOR, ("`ts` field unclear", "tests pass unexpectedly"),
        "Via Senior, NOT Lead"),
    Escalates(Role.QA, Role.LEAD, ("Verification findings", "FAIL result"),
        "Lead assigns remediation"),
    Escalates(Role.QA_CODE, Role.LEAD, ("Critical/major findings", "FAIL result"),
        "Lead routes to Senior → Dev"),
    Escalates(Role.SECURITY, Role.LEAD, ("Findings to report",),
        "FAIL = HARD STOP → User only (per-dept: Security→Lead, FE Security→FE Lead, UX "
        "Security→UX Lead)", on_fail=Role.USER),
    Escalates(Role.DOCUMENTER, Role.LEAD, ("Findings only",),
        "Per-dept: Documenter→Lead, FE Documenter→FE Lead, UX Documenter→UX Lead"),
    Escalates(Role.SCOUT, Role.LEAD, ("Cannot find information", "conflicting sources"),
        "Advisory only"),
    Escalates(Role.DEBUGGER, Role.LEAD, ("Investigation complete", "fix recommendation"),
        "Lead decides action"),
    Escalates(Role.CRITIC, Role.LEAD, ("Findings are advisory",), "Lead forwards to Architect"),
)  # fmt: skip

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
    EscalationRule(1, Rule.DIRECT_REPORT, "Each agent escalates ONLY to their direct report-to.",
        "No skipping levels."),
    EscalationRule(2, Rule.PROPAGATES,
        "If report-to cannot resolve → they escalate to THEIR report-to.",
        "Chain propagates upward."),
    EscalationRule(3, Rule.DEV_TO_SENIOR_ONLY, "Dev NEVER contacts Lead, Architect, or User.",
        "Senior is Dev's single contact."),
    EscalationRule(4, Rule.QA_NOT_TO_ARCHITECT, "QA/Tester NEVER contact Architect.",
        "Findings route through Lead."),
    EscalationRule(5, Rule.OWNER_TO_USER_ONLY, "Only Owner/go.md talks to the User.",
        "In single-dept mode, Architect escalates to go.md (which acts as Owner proxy) → User. "
        "In multi-dept mode, Architect escalates to Owner → User. No other agent communicates "
        "with the user directly."),
    EscalationRule(6, Rule.SECURITY_FAIL_BYPASSES, "Only Security FAIL bypasses chain",
        "→ User (via go.md/Owner)."),
    EscalationRule(7, Rule.EVIDENCE, "Escalation includes evidence.",
        "Use `escalation` handoff schema with issue + evidence + recommendation."),
    EscalationRule(8, Rule.LANE, "Stay in your lane.",
        "Each agent decides ONLY within their Decision Authority (see matrix above). "
        "Out-of-scope questions escalate immediately."),
)  # fmt: skip


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
    Transformation("1", Role.DEV, "Reports blocker with evidence of what was tried",
        "`dev_blocker` schema", "dev_blocker"),
    Transformation("2", Role.SENIOR,
        "Adds spec context, attempts resolution. If cannot: adds assessment",
        "`escalation` schema to Lead", "escalation"),
    Transformation("3", Role.LEAD,
        "Checks decision authority. If beyond scope: adds Lead assessment",
        "`escalation` schema to Architect/Owner", "escalation"),
    Transformation("4", Role.ARCHITECT, "Evaluates design impact, constructs 2-3 concrete options",
        "Structured escalation with options array"),
    Transformation("4a", Role.OWNER, "Checks cross-department implications, routes to go.md",
        "Escalation context to go.md", mode=Mode.MULTI, mode_note="multi-dept"),
    Transformation("5", Role.GO, "Formats for user, presents via AskUserQuestion",
        "User sees blocker + options"),
)  # fmt: skip

DOWNWARD = (
    Transformation("1", Role.GO, "Packages user choice as escalation_resolution",
        "`escalation_resolution` schema", "escalation_resolution"),
    Transformation("2", Role.OWNER, "Adds strategic context, identifies target dept Lead",
        "Enriched resolution", mode=Mode.MULTI, mode_note="multi-dept"),
    Transformation("2a", Role.ARCHITECT, "Updates architecture.toon if decision affects design",
        "Resolution + architecture update", mode=Mode.SINGLE, mode_note="single-dept"),
    Transformation("3", Role.LEAD, "Routes to originating Senior, updates .execution-state.json",
        "Forward resolution to Senior"),
    Transformation("4", Role.SENIOR,
        "Translates resolution to Dev instructions: spec update or code_review_changes",
        "`code_review_changes` schema", "code_review_changes"),
    Transformation("5", Role.DEV, "Applies resolution, resumes blocked task",
        "Commit with escalation reference"),
)  # fmt: skip
