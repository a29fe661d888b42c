"""Authority: what each role may decide, and what it must hand up, topic by topic; and where each
command enters, whom it spawns, and how it escalates.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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


_ASKED: Mapping[str, tuple[Role, ...]] = {
    "(→ User)": (Role.USER,),
    "(→ PO)": (Role.PO,),
    "(→ Architect via PO)": (Role.PO, Role.ARCHITECT),
    "(→ Architect)": (Role.ARCHITECT,),
    "(→ PO → User)": (Role.PO, Role.USER),
    "(→ Lead)": (Role.LEAD,),
    "→ User": (Role.USER,),
    "(→ Lead → Senior)": (Role.LEAD, Role.SENIOR),
    "— Lead decides what to act on": (Role.LEAD,),
    "— Lead decides relevance": (Role.LEAD,),
    "(→ Lead decides)": (Role.LEAD,),
    "(→ Senior if architectural)": (Role.SENIOR,),
}
"""Words behind a topic → whom they name."""


def _row(role: Role, decides: str, escalates: str) -> Authority:
    """Return a row, given its cells as printed."""
    return Authority(role, _split(decides), tuple(map(_topic, _split(escalates))))


def _topic(printed: str) -> Topic:
    arrow = next((arrow for arrow in _ASKED if printed.endswith(arrow)), "")
    return Topic(printed.removesuffix(arrow).rstrip(), _ASKED.get(arrow, ()), arrow)


def _split(cell: str) -> tuple[str, ...]:
    """Return the entries of a cell; a comma in parentheses separates none."""
    return tuple(re.split(r", (?![^()]{0,200}\))", cell))


AUTHORITY = (
    _row(
        Role.ANALYZE,
        "Complexity classification (trivial/medium/high), department detection, intent "
        "classification, suggested routing path",
        "Ambiguous intent (confidence < 0.6), scope changes, architecture decisions",
    ),
    _row(
        Role.PO,
        "Scope boundaries (in/out), acceptance criteria, milestone decomposition, user "
        "presentation formatting, scope-document.json content",
        "Architecture decisions, technology choices, implementation details, budget/timeline "
        "constraints (→ User)",
    ),
    _row(
        Role.QUESTIONARY,
        "Question selection strategy, clarification round structure, when requirements are "
        "sufficient, scope_clarification content",
        "Scope expansion beyond original intent (→ PO), architecture questions (→ Architect "
        "via PO)",
    ),
    _row(
        Role.ROADMAP,
        "Phase ordering, dependency graph construction, milestone grouping, roadmap_plan content",
        "Scope changes (→ PO), architecture decisions (→ Architect), priority changes (→ PO → "
        "User)",
    ),
    _row(
        Role.DEV,
        "Implementation details within spec (variable names, loop structure, error messages), "
        "which library API to call per spec, test fixes within spec boundaries",
        "Spec ambiguity, missing requirements, architectural choices, new file/module creation "
        "not in spec, performance tradeoffs, API design",
    ),
    _row(
        Role.TESTER,
        "Test structure, mock strategy, assertion approach, test naming",
        "Test scope beyond `ts` field, testing infrastructure changes, whether a feature needs "
        "tests",
    ),
    _row(
        Role.SENIOR,
        "Spec enrichment details, code review decisions (approve/request changes), "
        "implementation patterns within architecture, test spec design",
        "Architecture changes, new dependencies, scope changes, cross-phase impacts, design "
        "pattern choices that affect architecture",
    ),
    _row(
        Role.LEAD,
        "Plan decomposition, task ordering, wave grouping, resource allocation, which tasks to "
        "parallelize, remediation assignment routing",
        "Architecture decisions, technology choices, scope changes, cross-department "
        "coordination, user-facing decisions",
    ),
    _row(
        Role.ARCHITECT,
        "Technology choices, design patterns, system architecture, dependency decisions, "
        "performance strategy, addressing critique findings",
        "Scope changes (add/remove features), budget/timeline decisions, user preference "
        "questions, business priority changes",
    ),
    _row(
        Role.QA,
        "Pass/fail determination, finding severity classification, whether gaps need remediation",
        "Whether to ship with known issues (→ Lead), scope reduction to pass QA (→ Lead)",
    ),
    _row(
        Role.QA_CODE,
        "Test execution, lint/coverage assessment, pattern compliance",
        "Changing test expectations, modifying source code, architectural feedback (→ Lead)",
    ),
    _row(
        Role.SECURITY,
        "Vulnerability severity, compliance assessment, audit pass/fail",
        "FAIL = hard STOP → User, Remediation approach (→ Lead → Senior)",
    ),
    _row(
        Role.CRITIC,
        "Gap identification, risk assessment, alternative suggestions",
        "All findings are advisory — Lead decides what to act on",
    ),
    _row(
        Role.SCOUT,
        "Research methodology, source selection, information synthesis",
        "All findings are advisory — Lead decides relevance",
    ),
    _row(
        Role.DEBUGGER,
        "Investigation methodology, evidence gathering, root cause diagnosis, fix recommendation",
        "Whether to apply fix (→ Lead decides), scope of fix (→ Senior if architectural)",
    ),
    _row(
        Role.DOCUMENTER,
        "Doc structure, content selection, formatting, inline doc generation",
        "Scope changes, architecture docs, API contract docs (→ Lead)",
    ),
    _row(
        Role.OWNER,
        "Cross-department priority, conflict resolution, ship/hold decisions, department "
        "dispatch order",
        "Scope changes, new features, budget decisions (→ User)",
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


_EXECUTE = ("go.md", "Analyze", "PO", "Questionary", "Roadmap", "Critic", "Architect", "Lead",
            "Senior", "Tester", "Dev", "QA", "Security", "Sign-off")  # fmt: skip

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
        chain=_EXECUTE,
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
