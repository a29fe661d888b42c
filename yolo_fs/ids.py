"""The four kinds of name that agents use for their work: phase, plan, task, escalation."""

from __future__ import annotations

import re
from typing import NamedTuple

PHASE_DIRECTORY = re.compile(r"(?P<number>[0-9]{2})-(?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)")
PLAN = re.compile(r"(?P<phase>[0-9]{2})-(?P<number>[0-9]{2})")
TASK = re.compile(r"(?P<plan>[0-9]{2}-[0-9]{2})/T(?P<number>[1-9][0-9]*)")
ESCALATION = re.compile(r"ESC-(?P<plan>[0-9]{2}-[0-9]{2})-T(?P<number>[1-9][0-9]*)")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Departments, gates and other names that reach a path."""


class PhaseId(NamedTuple):
    """A phase directory `{NN}-{slug}`."""

    number: str
    """Two digits, as in `01`."""
    slug: str

    @classmethod
    def parse(cls, text: str) -> PhaseId | None:
        """Return the phase that a directory name spells, or None."""
        found = PHASE_DIRECTORY.fullmatch(text)
        return cls(found["number"], found["slug"]) if found else None

    def __str__(self) -> str:
        return f"{self.number}-{self.slug}"


class PlanId(NamedTuple):
    """A plan `NN-MM`: phase number, then plan number."""

    phase: str
    number: str

    @classmethod
    def parse(cls, text: str) -> PlanId | None:
        """Return the plan that `NN-MM` names, or None."""
        found = PLAN.fullmatch(text)
        return cls(found["phase"], found["number"]) if found else None

    def __str__(self) -> str:
        return f"{self.phase}-{self.number}"


class TaskRef(NamedTuple):
    """A task `NN-MM/Tk`."""

    plan: PlanId
    number: int

    @classmethod
    def parse(cls, text: str) -> TaskRef | None:
        """Return the task that `NN-MM/Tk` names, or None."""
        found = TASK.fullmatch(text)
        plan = PlanId.parse(found["plan"]) if found else None
        return cls(plan, int(found["number"])) if found and plan else None

    def __str__(self) -> str:
        return f"{self.plan}/T{self.number}"


class EscalationId(NamedTuple):
    """An escalation `ESC-NN-MM-Tk`, named after the task that is blocked."""

    task: TaskRef

    @classmethod
    def parse(cls, text: str) -> EscalationId | None:
        """Return the escalation that `ESC-NN-MM-Tk` names, or None."""
        found = ESCALATION.fullmatch(text)
        task = TaskRef.parse(f"{found['plan']}/T{found['number']}") if found else None
        return cls(task) if task else None

    def __str__(self) -> str:
        return f"ESC-{self.task.plan}-T{self.task.number}"
