"""Chains of repair: what follows a failed QA, what follows a code review, and what is measured.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from yolo_fs.protocol.names import Role


@dataclass(frozen=True, slots=True)
class Move:
    """One link of a chain."""

    text: str
    """As printed."""
    role: Role | None = None
    """Who moves; None for a consequence that nobody carries out."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What follows one occasion, link by link."""

    occasion: str
    """As printed."""
    moves: tuple[Move, ...]
    """What happens, in order."""
    failures: int = 0
    """For QA: how many times it has failed."""


QA_REMEDIES = (
    Remedy(
        "QA Code FAIL",
        (
            Move("Lead assigns", Role.LEAD),
            Move("Senior re-specs", Role.SENIOR),
            Move("Dev fixes", Role.DEV),
            Move("QA re-verifies", Role.QA),
        ),
        failures=1,
    ),
    Remedy(
        "2nd QA FAIL",
        (Move("Lead assigns", Role.LEAD), Move("Senior reviews approach", Role.SENIOR)),
        failures=2,
    ),
    Remedy(
        "3rd QA FAIL",
        (Move("Lead escalates", Role.LEAD), Move("Architect re-evaluates design", Role.ARCHITECT)),
        failures=3,
    ),
)

_REVIEW = 'document 002 ("Code Review Chain")'

REVIEW_REMEDIES = (
    Remedy("Senior: changes_requested", (Move("classify as Minor or Major", Role.SENIOR),)),
    Remedy(
        "Minor only (nits/style)", (Move("Dev fixes", Role.DEV), Move("auto-approve (no cycle 2)"))
    ),
    Remedy(
        "Major findings",
        (Move("Dev fixes", Role.DEV), Move("Senior re-reviews (cycle 2)", Role.SENIOR)),
    ),
    Remedy("Cycle 2 fail", (Move("Senior escalates to Lead", Role.SENIOR),)),
    Remedy("Lead decides", (Move("Accept with known issues OR escalate to Architect", Role.LEAD),)),
)


class Weight(StrEnum):
    """How grave the findings of a review are together."""

    MINOR = "Minor"
    MAJOR = "Major"


@dataclass(frozen=True, slots=True)
class ChangeClass:
    """A class of review findings and its consequence."""

    weight: Weight
    """Name of the class."""
    kinds: tuple[str, ...]
    """Kinds of finding, as printed."""
    consequence: str
    """As printed."""
    severities: tuple[str, ...]
    """Values of `sev` in `code-review.jsonl` that fall into the class."""


CHANGE_CLASSES = (
    ChangeClass(
        Weight.MINOR,
        ("Nits", "style", "naming", "formatting"),
        "Auto-approve after cycle 1 fix if only minor findings.",
        severities=("minor", "nit"),
    ),
    ChangeClass(
        Weight.MAJOR,
        ("Logic errors", "missing error handling", "architecture violations"),
        "Require cycle 2 re-review.",
        severities=("critical", "major"),
    ),
)


@dataclass(frozen=True, slots=True)
class Metric:
    """A point at which the code review is measured."""

    name: str
    """What is measured, as printed."""


METRICS = (
    Metric("cycle_count"),
    Metric("finding_severity_distribution"),
    Metric("time_per_cycle"),
    Metric("escalation_triggered"),
)
