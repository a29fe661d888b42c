"""One phase of the branch: what history proves of it, and everything that follows from that. Pure.

Whoever shows or decides where the team is asks a `Phase`. Each answer is computed when it is first
asked for, and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from yolo_fs.ids import PhaseId
from yolo_fs.protocol.gates import Decision
from yolo_fs.protocol.names import Dept
from yolo_fs.reasons import Finding
from yolo_fs.rules.escalations.entries import as_committed
from yolo_fs.rules.escalations.state import EscalationProgress
from yolo_fs.rules.evidence.facts import PhaseFacts
from yolo_fs.rules.handoffs.contents import faults_of_handoffs
from yolo_fs.rules.phase.failures import failures_of
from yolo_fs.rules.phase.gate_needs import CheckResult
from yolo_fs.rules.phase.gates import (
    GateStatus,
    gates_of,
    integration_checks_of,
    sentinels_of,
    sign_off,
)
from yolo_fs.rules.phase.progress import DepartmentStatus, PhaseStatus, fold
from yolo_fs.rules.phase.turns import asked_by_gate, with_turns
from yolo_fs.rules.phase.wait_graph import Alarm, Wait, cycles, orphans
from yolo_fs.rules.phase.waits import suppliers, waits_of


@dataclass(frozen=True)
class Phase:
    """One phase as of one commit."""

    facts: PhaseFacts

    @property
    def id(self) -> PhaseId:
        return self.facts.phase

    @cached_property
    def folded(self) -> PhaseStatus:
        """How far its steps are, each by its own evidence: what the gates ask."""
        return fold(self.facts)

    @cached_property
    def progress(self) -> PhaseStatus:
        """How far its steps, departments and plans are; never complete behind a closed gate."""
        status = self.folded
        closed = [gate for gate in self.gates if gate.blocking and not gate.is_open]
        if closed and (status.is_complete or self._is_past_departments):
            missing = [f"gate {gate.name} is closed: {gate.missing[0]}" for gate in closed]
            status = status.behind_gates(missing, asked_by_gate(closed[0]))
        if status.is_complete:  # what nobody waits for, such as documentation, is asked of nobody
            idle = tuple(replace(one, next=None) for one in status.departments)
            return replace(status, departments=idle, next=None)
        return with_turns(self.facts, status, self._behind_gates, self.alarms)

    @property
    def _is_past_departments(self) -> bool:
        """Whether only the steps of the whole phase are left, and closed gates or a FAIL keep them
        from their end.
        """
        step = self.folded.next.step if self.folded.next else ""
        return step == "integration_gate" or (step == "signoff" and any(failures_of(self.facts)))

    @property
    def _behind_gates(self) -> dict[Dept, GateStatus | None]:
        """The departments that wait at a gate; None for the gate where it is the end of another
        department.
        """
        gates = {f"gate:{gate.name}": gate for gate in self.gates}
        active = set(self.facts.switches.departments)
        found = [one for one in self.waits if one.waiter in active and one.on.startswith("gate:")]
        return {Dept(one.waiter): gates.get(one.on) for one in found}

    @property
    def is_complete(self) -> bool:
        """Whether the phase is signed off, and delivered where that is asked for."""
        return self.progress.is_complete

    @cached_property
    def behind(self) -> tuple[DepartmentStatus, ...]:
        """Departments whose part is not done."""
        return tuple(one for one in self.folded.departments if not one.is_complete)

    @cached_property
    def gates(self) -> tuple[GateStatus, ...]:
        """The gates of its departments, and the integration gate."""
        return gates_of(self)

    @cached_property
    def integration_checks(self) -> dict[str, CheckResult]:
        """Each check across departments: pass, fail or skip, with what fails it."""
        return integration_checks_of(self)

    @cached_property
    def sign_off(self) -> tuple[Decision, str]:
        """What the Owner is to decide by the matrix, and why."""
        return sign_off(self)

    @cached_property
    def sentinels(self) -> dict[str, str]:
        """The sentinel files that the evidence proves: file name → exact content."""
        return sentinels_of(self)

    @cached_property
    def waits(self) -> tuple[Wait, ...]:
        """Who waits for what, sorted."""
        return waits_of(self)

    @cached_property
    def alarms(self) -> tuple[Alarm, ...]:
        """Every deadlock, and every wait for something that nobody supplies."""
        return (*cycles(self.waits), *orphans(self.waits, suppliers(self)))

    @property
    def escalations(self) -> tuple[EscalationProgress, ...]:
        """Who holds which escalation, as of the commit's own time."""
        return as_committed(self.facts)

    @property
    def false_claims(self) -> tuple[Finding, ...]:
        """What handoffs claim and the branch does not have."""
        return faults_of_handoffs(self.facts)


Phases = Sequence[Phase]
"""Phases in the order of their numbers."""
