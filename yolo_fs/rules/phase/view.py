"""A phase as one department sees it: its own artifacts, and those that all departments share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT
from yolo_fs.protocol.names import Dept
from yolo_fs.protocol.workflow import Step
from yolo_fs.rules.evidence.facts import Filed, PhaseFacts, Plan, plans_of
from yolo_fs.rules.evidence.plans import PlanStatus, plan_progress
from yolo_fs.schemas.config import Config

SHARED_KINDS = frozenset({"critique", "research"})
"""Kinds of which the unprefixed file serves every department that has none of its own: Critic and
Scout are shared agents."""

PHASE_STEPS = frozenset({"po", "signoff", "integration_gate", "delivery"})
"""Steps that a phase has once, however many departments work on it."""


@dataclass(frozen=True)
class View:
    """What the rules of a step look at."""

    facts: PhaseFacts
    department: Dept | None
    """None: the phase as a whole."""

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self.facts.switches.config

    @cached_property
    def plan_files(self) -> tuple[Plan, ...]:
        """The plans, as their files say."""
        return plans_of(self.facts, self.department)

    @cached_property
    def plans(self) -> tuple[PlanStatus, ...]:
        """The plans, as the evidence says."""
        return plan_progress(self.facts, self.department)

    def of(self, kind: str) -> tuple[Filed, ...]:
        """Return the valid artifacts of a kind that count for this view."""
        own = self.facts.of_kind(kind, self.department)
        if not own and kind in SHARED_KINDS:
            return self.facts.of_kind(kind, DEFAULT_DEPARTMENT)
        return own

    def lines(self, kind: str) -> tuple[Mapping[str, Any], ...]:
        """Return the records of a kind."""
        return tuple(line for filed in self.of(kind) for line in filed.lines)

    def of_step(self, step: Step) -> tuple[Filed, ...]:
        """Return the artifacts that a step produces."""
        kinds = {
            filed.place.artifact.kind
            for filed in self.facts.filed
            if filed.place.artifact.step == step.key
        }
        return tuple(filed for kind in sorted(kinds) for filed in self.of(kind))
