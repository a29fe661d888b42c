"""Decision authority: what each role may decide, and what it must hand up, topic by topic.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from dataclasses import dataclass

from yolo_fs.protocol.names import Role


@dataclass(frozen=True, slots=True)
class Topic:
    """A question that is out of a role's scope."""

    text: str
    """As printed, without the arrow."""
    ask: tuple[Role, ...] = ()
    """Who is asked, nearest first; empty for the role's direct report-to."""
    arrow: str = ""
    """The words that name whom to ask, as printed."""

    def __str__(self) -> str:
        return f"{self.text} {self.arrow}".rstrip()


@dataclass(frozen=True, slots=True)
class Authority:
    """One row of the matrix."""

    role: Role
    """Whose authority it is."""
    decides: tuple[str, ...]
    """Topics of its own authority, as printed."""
    escalates: tuple[Topic, ...]
    """Topics that it must escalate."""


AUTHORITY = (
    Authority(
        role=Role.ANALYZE,
        decides=(
            "Complexity classification (trivial/medium/high)",
            "department detection",
            "intent classification",
            "suggested routing path",
        ),
        escalates=(
            Topic("Ambiguous intent (confidence < 0.6)"),
            Topic("scope changes"),
            Topic("architecture decisions"),
        ),
    ),
    Authority(
        role=Role.PO,
        decides=(
            "Scope boundaries (in/out)",
            "acceptance criteria",
            "milestone decomposition",
            "user presentation formatting",
            "scope-document.json content",
        ),
        escalates=(
            Topic("Architecture decisions"),
            Topic("technology choices"),
            Topic("implementation details"),
            Topic("budget/timeline constraints", (Role.USER,), "(→ User)"),
        ),
    ),
    Authority(
        role=Role.QUESTIONARY,
        decides=(
            "Question selection strategy",
            "clarification round structure",
            "when requirements are sufficient",
            "scope_clarification content",
        ),
        escalates=(
            Topic("Scope expansion beyond original intent", (Role.PO,), "(→ PO)"),
            Topic("architecture questions", (Role.PO, Role.ARCHITECT), "(→ Architect via PO)"),
        ),
    ),
    Authority(
        role=Role.ROADMAP,
        decides=(
            "Phase ordering",
            "dependency graph construction",
            "milestone grouping",
            "roadmap_plan content",
        ),
        escalates=(
            Topic("Scope changes", (Role.PO,), "(→ PO)"),
            Topic("architecture decisions", (Role.ARCHITECT,), "(→ Architect)"),
            Topic("priority changes", (Role.PO, Role.USER), "(→ PO → User)"),
        ),
    ),
    Authority(
        role=Role.DEV,
        decides=(
            "Implementation details within spec (variable names, loop structure, error messages)",
            "which library API to call per spec",
            "test fixes within spec boundaries",
        ),
        escalates=(
            Topic("Spec ambiguity"),
            Topic("missing requirements"),
            Topic("architectural choices"),
            Topic("new file/module creation not in spec"),
            Topic("performance tradeoffs"),
            Topic("API design"),
        ),
    ),
    Authority(
        role=Role.TESTER,
        decides=("Test structure", "mock strategy", "assertion approach", "test naming"),
        escalates=(
            Topic("Test scope beyond `ts` field"),
            Topic("testing infrastructure changes"),
            Topic("whether a feature needs tests"),
        ),
    ),
    Authority(
        role=Role.SENIOR,
        decides=(
            "Spec enrichment details",
            "code review decisions (approve/request changes)",
            "implementation patterns within architecture",
            "test spec design",
        ),
        escalates=(
            Topic("Architecture changes"),
            Topic("new dependencies"),
            Topic("scope changes"),
            Topic("cross-phase impacts"),
            Topic("design pattern choices that affect architecture"),
        ),
    ),
    Authority(
        role=Role.LEAD,
        decides=(
            "Plan decomposition",
            "task ordering",
            "wave grouping",
            "resource allocation",
            "which tasks to parallelize",
            "remediation assignment routing",
        ),
        escalates=(
            Topic("Architecture decisions"),
            Topic("technology choices"),
            Topic("scope changes"),
            Topic("cross-department coordination"),
            Topic("user-facing decisions"),
        ),
    ),
    Authority(
        role=Role.ARCHITECT,
        decides=(
            "Technology choices",
            "design patterns",
            "system architecture",
            "dependency decisions",
            "performance strategy",
            "addressing critique findings",
        ),
        escalates=(
            Topic("Scope changes (add/remove features)"),
            Topic("budget/timeline decisions"),
            Topic("user preference questions"),
            Topic("business priority changes"),
        ),
    ),
    Authority(
        role=Role.QA,
        decides=(
            "Pass/fail determination",
            "finding severity classification",
            "whether gaps need remediation",
        ),
        escalates=(
            Topic("Whether to ship with known issues", (Role.LEAD,), "(→ Lead)"),
            Topic("scope reduction to pass QA", (Role.LEAD,), "(→ Lead)"),
        ),
    ),
    Authority(
        role=Role.QA_CODE,
        decides=("Test execution", "lint/coverage assessment", "pattern compliance"),
        escalates=(
            Topic("Changing test expectations"),
            Topic("modifying source code"),
            Topic("architectural feedback", (Role.LEAD,), "(→ Lead)"),
        ),
    ),
    Authority(
        role=Role.SECURITY,
        decides=("Vulnerability severity", "compliance assessment", "audit pass/fail"),
        escalates=(
            Topic("FAIL = hard STOP", (Role.USER,), "→ User"),
            Topic("Remediation approach", (Role.LEAD, Role.SENIOR), "(→ Lead → Senior)"),
        ),
    ),
    Authority(
        role=Role.CRITIC,
        decides=("Gap identification", "risk assessment", "alternative suggestions"),
        escalates=(
            Topic("All findings are advisory", (Role.LEAD,), "— Lead decides what to act on"),
        ),
    ),
    Authority(
        role=Role.SCOUT,
        decides=("Research methodology", "source selection", "information synthesis"),
        escalates=(Topic("All findings are advisory", (Role.LEAD,), "— Lead decides relevance"),),
    ),
    Authority(
        role=Role.DEBUGGER,
        decides=(
            "Investigation methodology",
            "evidence gathering",
            "root cause diagnosis",
            "fix recommendation",
        ),
        escalates=(
            Topic("Whether to apply fix", (Role.LEAD,), "(→ Lead decides)"),
            Topic("scope of fix", (Role.SENIOR,), "(→ Senior if architectural)"),
        ),
    ),
    Authority(
        role=Role.DOCUMENTER,
        decides=("Doc structure", "content selection", "formatting", "inline doc generation"),
        escalates=(
            Topic("Scope changes"),
            Topic("architecture docs"),
            Topic("API contract docs", (Role.LEAD,), "(→ Lead)"),
        ),
    ),
    Authority(
        role=Role.OWNER,
        decides=(
            "Cross-department priority",
            "conflict resolution",
            "ship/hold decisions",
            "department dispatch order",
        ),
        escalates=(
            Topic("Scope changes"),
            Topic("new features"),
            Topic("budget decisions", (Role.USER,), "(→ User)"),
        ),
    ),
)

AUTHORITY_BY_ROLE = {row.role: row for row in AUTHORITY}
