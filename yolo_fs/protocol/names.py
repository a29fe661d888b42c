"""The closed lists of names that all tables of the protocol share: who, where, in which team.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What somebody does, whatever the department; value as in agent names, `label` as in the other
    tables.
    """

    label: str

    def __new__(cls, name: str, label: str) -> Role:
        member = str.__new__(cls, name)
        member._value_ = name
        member.label = label
        return member

    ANALYZE = "analyze", "Analyze"
    PO = "po", "PO"
    QUESTIONARY = "questionary", "Questionary"
    ROADMAP = "roadmap", "Roadmap"
    CRITIC = "critic", "Critic"
    ARCHITECT = "architect", "Architect"
    LEAD = "lead", "Lead"
    SENIOR = "senior", "Senior"
    TESTER = "tester", "Tester"
    DEV = "dev", "Dev"
    QA = "qa", "QA Lead"
    QA_CODE = "qa-code", "QA Code"
    SECURITY = "security", "Security"
    DOCUMENTER = "documenter", "Documenter"
    SCOUT = "scout", "Scout"
    DEBUGGER = "debugger", "Debugger"
    INTEGRATION_GATE = "integration-gate", "Integration Gate"
    OWNER = "owner", "Owner"
    GO = "go.md", "go.md"
    """The entry point of every command, proxy of the Owner; not an agent."""
    USER = "user", "User"
    """The human; not an agent."""


class Dept(StrEnum):
    """A group of agents that shares a protocol file."""

    BACKEND = "backend"
    FRONTEND = "frontend"
    UIUX = "uiux"
    SHARED = "shared"


class Mode(StrEnum):
    """Whether one department works or several."""

    SINGLE = "single-department"
    MULTI = "multi-department"
