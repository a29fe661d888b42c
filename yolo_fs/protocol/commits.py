"""Commit every artifact: which step commits what, immediately after it was made.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from dataclasses import dataclass

from yolo_fs.protocol.names import Role
from yolo_fs.subject import Subject

SOURCE_FORMAT = Subject("{type}({plan}): {task}")
"""Format of a Dev's source commits; the document's `{phase}-{plan}` is what our gap `{plan}`
spells: NN-MM.
"""


@dataclass(frozen=True, slots=True)
class StepCommit:
    """What one step commits."""

    name: str
    """The step as printed."""
    step: str
    """Its key in the workflow."""
    agents: tuple[Role, ...]
    """Who makes the commit's content."""
    commits: tuple[str, ...]
    """What is committed, as printed."""
    note: str = ""
    """What the agent column adds in parentheses."""
    via: Role | None = None
    """Who writes the file for an agent that cannot."""


COMMITS = (
    StepCommit(
        "Critique", "critique", (Role.CRITIC,), ("critique.jsonl",), "via Lead", via=Role.LEAD
    ),
    StepCommit("Architecture", "architecture", (Role.ARCHITECT,), ("architecture.toon",)),
    StepCommit("Planning", "planning", (Role.LEAD,), ("{plan}.plan.jsonl",)),
    StepCommit(
        "Design Review", "design_review", (Role.SENIOR,), ("enriched plan.jsonl (spec + ts)",)
    ),
    StepCommit(
        "Test Authoring", "test_authoring", (Role.TESTER,), ("test files", "test-plan.jsonl")
    ),
    StepCommit(
        "Implementation", "implementation", (Role.DEV,), ("source code per task", "summary.jsonl")
    ),
    StepCommit("Code Review", "code_review", (Role.SENIOR,), ("code-review.jsonl",)),
    StepCommit(
        "Documentation", "documentation", (Role.DOCUMENTER,), ("docs.jsonl",), "config-gated"
    ),
    StepCommit("QA", "qa", (Role.QA, Role.QA_CODE), ("verification.jsonl", "qa-code.jsonl")),
    StepCommit("Security", "security", (Role.SECURITY,), ("security-audit.jsonl",)),
    StepCommit("Sign-off", "signoff", (Role.LEAD,), ("state.json", "ROADMAP.md")),
)
