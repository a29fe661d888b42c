"""A phase as those who wait see it: what is not done, which gates are closed, who has not begun. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from yolo_fs.ids import PlanId
from yolo_fs.protocol.gates import WAVE_GATES, WaveGate
from yolo_fs.protocol.names import Dept
from yolo_fs.rules.evidence.facts import PhaseFacts, Plan, plans_of
from yolo_fs.rules.evidence.plans import PlanStanding, PlanStatus
from yolo_fs.rules.phase.gates import gates_of
from yolo_fs.rules.phase.gateview import MissingEvidence
from yolo_fs.rules.phase.progress import DepartmentStatus, PhaseStatus
from yolo_fs.rules.phase.waves import routing, waves

CONFIG = "config.json"
"""Where the waves stand."""


@dataclass(frozen=True)
class Scene:
    """A phase, and what several kinds of waits ask of it."""

    facts: PhaseFacts
    progress: PhaseStatus

    @cached_property
    def behind(self) -> tuple[DepartmentStatus, ...]:
        """Departments whose part is not done."""
        return tuple(one for one in self.progress.departments if not one.is_complete)

    @cached_property
    def unfinished(self) -> tuple[tuple[PlanStatus, Plan, str], ...]:
        """Plans of active departments that are not complete: how far, what they say, in which file."""
        files = {filed.place.plan: filed.place.name for filed in self.facts.of_kind("plan")}
        written = {plan.id: plan for plan in plans_of(self.facts)}
        plans = (
            plan for one in self.progress.departments for plan in one.plans if not plan.is_done
        )
        return tuple((plan, written[plan.id], files[plan.id]) for plan in plans)

    @cached_property
    def department_of(self) -> Mapping[PlanId, Dept]:
        """Plan → its department."""
        return {plan.id: plan.department for plan in plans_of(self.facts)}

    @cached_property
    def closed(self) -> Mapping[str, tuple[MissingEvidence, ...]]:
        """Gates of the phase that are closed → what they lack."""
        return {
            gate.name: gate.missing
            for gate in gates_of(self.facts, self.progress)
            if not gate.is_open
        }

    @cached_property
    def entrances(self) -> Mapping[Dept, WaveGate]:
        """Departments that have not begun to implement → the closed gate in front of their wave."""
        begun = {one.department for one in self.progress.departments if _has_begun(one)}
        return {
            dept: gate
            for dept, gate in _wave_gates(self.facts)
            if dept not in begun and self._is_closed(gate)
        }

    def _is_closed(self, gate: WaveGate) -> bool:
        return (
            gate.gate in self.closed
            if gate.gate
            else any(one.department is gate.department for one in self.behind)
        )


def _has_begun(one: DepartmentStatus) -> bool:
    return any(plan.standing is not PlanStanding.PENDING for plan in one.plans)


def _wave_gates(facts: PhaseFacts) -> Iterator[tuple[Dept, WaveGate]]:
    """Yield each department of a later wave with the gate behind the wave before."""
    config = facts.switches.config
    route = routing(config.model_dump(mode="json", include={"departments", "department_workflow"}))
    for before, after in pairwise(waves(route)):
        gate = next(row for row in WAVE_GATES if row.name == before.gate)
        yield from (
            (dept, gate) for dept in after.departments if dept in facts.switches.departments
        )


def gate_name(row: WaveGate) -> str:
    return f"gate:{row.gate or row.name}"
