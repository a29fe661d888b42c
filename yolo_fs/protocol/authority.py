"""Authority: what each role may decide, and what it must hand up, topic by topic; and where each
command enters, whom it spawns, and how it escalates.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from yolo_fs.protocol.departments import Role


class Topic(NamedTuple):
    """A question that is out of a role's scope."""

    text: str
    """As printed, without the arrow."""
    ask: tuple[Role, ...] = ()
    """Who is asked, nearest first; empty for the role's direct report-to."""
    arrow: str = ""
    """The words that name whom to ask, as printed."""

    def __str__(self) -> str:
        return f"{self.text} {self.arrow}".rstrip()


class Authority(NamedTuple):
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


@dataclass(frozen=True, slots=True)
class Route:
    """One command."""

    command: str
    """As printed, with its mode in parentheses."""
    entry: Role
    """Where it enters."""
    spawns: tuple[Role, ...]
    """Whom the entry point spawns, in order."""
    chain: tuple[str, ...]
    """Stations of the hierarchy, as printed."""
    escalation: str
    """As printed."""
    source: str = 'document 002 ("Command Routing Table")'
    """Section that the row restates."""

    JSON_KEYS: ClassVar = {
        key: key for key in ("command", "entry", "spawns", "chain", "escalation")
    }


ROUTES = (
    Route(
        command="/yolo:go (analyze)",
        entry=Role.GO,
        spawns=(Role.ANALYZE,),
        chain=("go.md", "Analyze", "routing decision (trivial/medium/high)"),
        escalation="Ambiguous intent (confidence < 0.6) → go.md prompts user",
    ),
    Route(
        command="/yolo:go (execute)",
        entry=Role.GO,
        spawns=(Role.PO, Role.CRITIC, Role.ARCHITECT, Role.LEAD),
        chain=(
            "go.md",
            "Analyze",
            "PO",
            "Questionary",
            "Roadmap",
            "Critic",
            "Architect",
            "Lead",
            "Senior",
            "Tester",
            "Dev",
            "QA",
            "Security",
            "Sign-off",
        ),
        escalation="Per-step escalation (see 11-Step Workflow above)",
    ),
    Route(
        command="/yolo:debug",
        entry=Role.GO,
        spawns=(Role.LEAD,),
        chain=("go.md", "Lead", "Debugger(s)"),
        escalation="Debugger -> Lead -> Architect (if >3 files or interface change)",
    ),
    Route(
        command="/yolo:fix",
        entry=Role.GO,
        spawns=(Role.LEAD,),
        chain=("go.md", "Lead", "{trivial: Dev, needs-spec: Senior -> Dev}"),
        escalation="Dev -> Senior -> Lead -> go.md (scope too large -> /yolo:go)",
    ),
    Route(
        command="/yolo:research",
        entry=Role.GO,
        spawns=(Role.LEAD,),
        chain=("go.md", "Lead", "Scout(s)"),
        escalation="Scout -> Lead -> go.md (contradictions or architecture impact)",
    ),
    Route(
        command="/yolo:qa",
        entry=Role.GO,
        spawns=(Role.LEAD,),
        chain=("go.md", "Lead", "QA Lead + QA Code"),
        escalation="QA -> Lead -> Senior -> Architect (after 3rd failure)",
    ),
)


class RoutingRule(NamedTuple):
    """One of the five rules below the table."""

    number: int
    """Number in the list."""
    text: str
    """As printed."""
    source: str = 'document 002 ("Command Routing Table", "Rules")'
    """Section that the row restates."""


ROUTING_RULES = (
    RoutingRule(
        1, "go.md is always the entry point. It acts as the Owner proxy for user communication."
    ),
    RoutingRule(
        2, "Lead is the primary dispatcher for all specialist commands (debug, fix, research, qa)."
    ),
    RoutingRule(
        3, "Specialists (Debugger, Scout, QA, Dev) are spawned BY Lead, never directly by go.md."
    ),
    RoutingRule(4, "Escalation follows the chain strictly -- no level skipping."),
    RoutingRule(
        5, "Only go.md talks to the user. No spawned agent communicates with the user directly."
    ),
)
