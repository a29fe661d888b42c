"""The five teams and pipelines: who belongs to them, when they are active, what they hand on.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from dataclasses import dataclass

from yolo_fs.protocol.names import Role, Team


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of a team's list of agents."""

    role: Role
    """What the member does."""
    text: str
    """The entry as printed, such as `Dev (x1-3)`."""


@dataclass(frozen=True, slots=True)
class TeamRow:
    """A team, or a pipeline that crosses teams."""

    name: Team
    """As printed."""
    members: tuple[Member, ...]
    """Who belongs to it, in order."""
    active_during: tuple[str, ...]
    """Activities in which the team works, as printed."""
    handoff: str
    """What goes from whom to whom, as printed."""
    notes: tuple[str, ...] = ()
    """Further sentences of the section."""
    source: str = 'document 002 ("Team Structure")'
    """Section that the row restates."""


def _members(*roles: Role) -> tuple[Member, ...]:
    return tuple(Member(role, role.label) for role in roles)


TEAMS = (
    TeamRow(
        name=Team.PLANNING,
        members=_members(
            Role.ANALYZE,
            Role.PO,
            Role.QUESTIONARY,
            Role.ROADMAP,
            Role.CRITIC,
            Role.ARCHITECT,
            Role.SCOUT,
            Role.LEAD,
        ),
        active_during=(
            "Analysis",
            "Product Ownership",
            "Scope Clarification",
            "Roadmap Planning",
            "Critique",
            "Scope",
            "Research",
            "Plan",
        ),
        handoff=(
            "analysis.json → PO routing, PO → Questionary (scope_clarification, max 3 rounds) → PO → "
            "Roadmap (roadmap_plan) → PO (scope-document.json) → Critic, critique.jsonl → Architect, "
            "architecture.toon → Lead, research.jsonl → Lead"
        ),
        notes=(
            "PO layer optional: when po.enabled=false, Analyze routes directly to Critic → Architect → Lead "
            "(backward compatible)",
        ),
    ),
    TeamRow(
        name=Team.EXECUTION,
        members=(
            *_members(Role.SENIOR, Role.TESTER),
            Member(Role.DEV, "Dev (x1-3)"),
            Member(Role.DEBUGGER, "Debugger (on-call)"),
        ),
        active_during=("Design Review", "Test Authoring (RED)", "Implementation"),
        handoff="enriched plan.jsonl (spec+ts) → Tester → Dev, code commits → Senior",
    ),
    TeamRow(
        name=Team.QUALITY,
        members=(
            *_members(Role.QA, Role.QA_CODE),
            Member(Role.SENIOR, "Senior (escalation)"),
            Member(
                Role.SECURITY, "Security Reviewers (per-dept: Security, FE Security, UX Security)"
            ),
        ),
        active_during=("Code Review", "QA", "Security"),
        handoff="code-review.jsonl → Lead, verification.jsonl → Lead, security-audit.jsonl → Lead",
    ),
    TeamRow(
        name=Team.RND,
        members=_members(
            Role.PO,
            Role.QUESTIONARY,
            Role.ROADMAP,
            Role.CRITIC,
            Role.SCOUT,
            Role.ARCHITECT,
        ),
        active_during=(
            "Product Ownership (after Analyze)",
            "Scope Clarification",
            "Roadmap Planning",
            "Critique (Step 1)",
            "Research (Step 2)",
            "Architecture (Step 3)",
        ),
        handoff=(
            "analysis.json -> PO(scope-document.json) -> Critic, critique.jsonl (critical/major) -> "
            "Scout research directives -> research.jsonl -> Architect"
        ),
        notes=(
            "Stage-gate: Architect->Lead handoff uses Go/Recycle/Kill model. See @references/rnd-handoff-protocol.md.",
        ),
    ),
    TeamRow(
        name=Team.INTEGRATION,
        members=(
            *_members(Role.INTEGRATION_GATE),
            Member(Role.PO, "PO (Mode 4 QA)"),
            Member(Role.OWNER, "Owner (Delivery)"),
        ),
        active_during=("Post-Security (Step 11.5)", "Final Delivery (Step 12)"),
        handoff=(
            "integration-gate-result.jsonl → Lead/Owner. PO QA verdict (po-qa-verdict.jsonl) → Owner. "
            "Owner Delivery mode presents final results to user."
        ),
        notes=(
            "Flow: After Security (Step 10) passes → Integration Gate validates cross-dept convergence "
            "(API contracts, design sync, handoffs, test results) → PO QA verifies scope alignment against "
            "scope-document.json → Owner Delivery presents to user.",
            "Multi-dept only: Integration Gate is skipped in single-department mode. PO QA requires po.enabled=true.",
        ),
    ),
)
