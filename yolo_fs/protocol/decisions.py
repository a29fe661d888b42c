"""Decisions on which evidence rests: records of `decisions.jsonl` with a kind.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from typing import NamedTuple

from yolo_fs.protocol.departments import WORKING_NAMES, Role
from yolo_fs.protocol.gates import APPROVAL_GATES

ACCEPT = "accept"
ACCEPT_RISK = "accept_risk"
APPROVE = "approve"
ASSIGN = "assign"
SUPERSEDE = "supersede"

_DEPARTMENT = "|".join(WORKING_NAMES)
_APPROVED = "|".join(row.key for row in APPROVAL_GATES)


class DecisionKind(NamedTuple):
    """What a decision decides, who takes it, and what it is about."""

    kind: str
    decides: str
    by: Role | None
    """Role of the agent, or the user; None for whoever may write what it is about."""
    of: str
    """Regular expression of what it is about."""
    example: str
    """What it is about, with an example."""


DECISION_KINDS = (
    DecisionKind(
        kind=ACCEPT,
        decides="a plan passes its code review with known issues",
        by=Role.LEAD,
        of=r"[0-9]{2}-[0-9]{2}",
        example="a plan, such as 01-02",
    ),
    DecisionKind(
        kind=ACCEPT_RISK,
        decides="what a security audit has found is accepted",
        by=Role.USER,
        of=_DEPARTMENT,
        example="a department, such as backend",
    ),
    DecisionKind(
        kind=APPROVE,
        decides="the work continues at an approval gate",
        by=Role.USER,
        of=f"({_DEPARTMENT}):({_APPROVED})",
        example="a department and an approval gate, such as backend:code_review",
    ),
    DecisionKind(
        kind=ASSIGN,
        decides="a task is done again",
        by=Role.LEAD,
        of=r"[0-9]{2}-[0-9]{2}/T[1-9][0-9]*",
        example="a task, such as 01-02/T1",
    ),
    DecisionKind(
        kind=SUPERSEDE,
        decides="a record is withdrawn",
        by=None,
        of=r"[^:]+:.+",
        example="a file and a record of it, such as critique.jsonl:C3",
    ),
)
DECISION_KIND_BY_NAME = {row.kind: row for row in DECISION_KINDS}
