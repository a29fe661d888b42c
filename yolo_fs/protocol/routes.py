"""Routing of commands: where each enters, whom it spawns, and how it escalates.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from yolo_fs.protocol.names import Role


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


@dataclass(frozen=True, slots=True)
class RoutingRule:
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
