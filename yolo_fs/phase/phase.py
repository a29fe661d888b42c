"""One phase of the branch: what history proves of it, and all that follows from that. Pure.

All code that shows or decides where the team is uses a `Phase`. Each answer is computed on first
use and cached. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Finding, shortened
from yolo_fs.escalations.fold import as_committed, open_of
from yolo_fs.escalations.log import EscalationProgress
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts, WorkflowOptions
from yolo_fs.evidence.failures import failures_of
from yolo_fs.evidence.judged import LateChange, came_together, changed_after_sign_off
from yolo_fs.handoffs.contents import faults_of_handoffs, handoff_into
from yolo_fs.phase.gate_status import CheckResult, GateStatus
from yolo_fs.phase.gates import DueDecision, gates_of, integration_checks_of, sentinels_of, sign_off
from yolo_fs.phase.progress import DepartmentStatus, PhaseStatus, fold
from yolo_fs.phase.turns import asked_by_gate, with_turns
from yolo_fs.phase.waits import Alarm, Wait, alarms_of, waits_of
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.gates import INTEGRATION


@dataclass(frozen=True)
class Phase:
    """One phase as of one commit."""

    facts: PhaseFacts

    @property
    def id(self) -> PhaseId:
        return self.facts.phase

    @cached_property
    def folded(self) -> PhaseStatus:
        """How far its steps are, each by its own evidence. Gates use this."""
        return fold(self.facts)

    @cached_property
    def progress(self) -> PhaseStatus:
        """How far its steps, departments and plans are; never complete behind a closed gate."""
        status = self.folded
        closed = [gate for gate in self.gates if gate.blocking and not gate.is_open]
        if not status.is_complete and not self._is_past_departments:
            closed = list(self.closed_before_sign_off) if self._is_at_sign_off else []
        if closed:
            missing = [gate.why_closed for gate in closed]
            turn = asked_by_gate(closed[0], self.facts.options)
            status = status.behind_gates(missing, turn)
        elif self._is_at_sign_off and (owed := self.owed_before_sign_off):
            gate, at = owed
            turn = asked_by_gate(gate, self.facts.options, at)
            status = status.behind_gates([turn.why], turn)
        if status.is_complete:  # what nobody waits for, such as documentation, is asked of nobody
            idle = tuple(department._replace(next=None) for department in status.departments)
            return status._replace(departments=idle, next=None)
        waiting = {
            Dept(wait.waiter): f"waits for {wait.need}"
            for wait in reversed(self.waits)
            if wait.waiter in self._gate_by_department
        }
        turned = with_turns(self.facts, status, self._gate_by_department, self.alarms)
        return turned.with_waiting(waiting)

    @property
    def closed_before_sign_off(self) -> tuple[GateStatus, ...]:
        """The closed gates that a sign-off needs; integration may come after it."""
        return tuple(gate for gate in self.gates if gate.holds_sign_off)

    @property
    def owed_before_sign_off(self) -> tuple[GateStatus, int] | None:
        """The integration gate, and which of its missing pieces nobody may sign off with: any but
        its own record, which may come after the sign-off.
        """
        failing = {lack for _, lacks in self.integration_checks.values() for lack in lacks}
        gates = (gate for gate in self.gates if gate.name == INTEGRATION and gate.blocking)
        owed = (
            (gate, at) for gate in gates for at, lack in enumerate(gate.missing) if lack in failing
        )
        return next(owed, None)

    @property
    def _is_at_sign_off(self) -> bool:
        return self.folded.next is not None and self.folded.next.step == "signoff"

    @property
    def _is_past_departments(self) -> bool:
        """Whether only steps of the whole phase are left, blocked by closed gates or a FAIL."""
        step = self.folded.next.step if self.folded.next else ""
        return step == "integration_gate" or (self._is_at_sign_off and any(failures_of(self.facts)))

    @property
    def _gate_by_department(self) -> dict[Dept, GateStatus | None]:
        """Departments that wait at a gate → the gate.

        The value is None where they wait for another department's completion.
        """
        gates = {f"gate:{gate.name}": gate for gate in self.gates}
        active = set(self.facts.options.departments)
        waits = [wait for wait in self.waits if wait.waiter in active and wait.is_at_gate]
        return {Dept(wait.waiter): gates.get(wait.on) for wait in waits}

    @property
    def free_departments(self) -> frozenset[Dept]:
        """The departments that no closed gate holds up."""
        return frozenset(self.facts.options.departments) - self._gate_by_department.keys()

    @property
    def is_complete(self) -> bool:
        """Whether the phase is signed off, and delivered where that is asked for."""
        return self.progress.is_complete

    @cached_property
    def behind(self) -> tuple[DepartmentStatus, ...]:
        """Departments whose part is not done."""
        return tuple(status for status in self.folded.departments if not status.is_complete)

    def held_up(self, department: Dept) -> tuple[str, ...]:
        """Return what blocks a department and only others can resolve.

        These are verdicts, escalations, and the gate that its wave waits for.
        """
        status = next(
            candidate
            for candidate in self.progress.departments
            if candidate.department is department
        )
        escalations = (
            f"{each.id} is {each.standing}: {each.agent} has to act"
            for each in open_of(self.facts, department)
            if not each.is_told
        )
        gates = (
            f"waits for {wait.on}: {wait.why}"
            for wait in self.waits
            if wait.waiter == department and wait.is_at_gate
        )
        return tuple(dict.fromkeys((*status.blockers, *escalations, *gates)))

    @cached_property
    def gates(self) -> tuple[GateStatus, ...]:
        """The gates of its departments, and the integration gate."""
        return gates_of(self)

    @cached_property
    def integration_checks(self) -> dict[str, CheckResult]:
        """Each check across departments: pass, fail or skip, with what fails it."""
        return integration_checks_of(self)

    @cached_property
    def sign_off(self) -> DueDecision:
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
        return alarms_of(self, self.waits)

    @cached_property
    def escalations(self) -> tuple[EscalationProgress, ...]:
        """Who holds which escalation, as of the commit's own time."""
        return as_committed(self.facts)

    @cached_property
    def changed_after_sign_off(self) -> tuple[LateChange, ...]:
        """What came after the sign-off, and nobody has judged."""
        return tuple(changed_after_sign_off(self.facts)) if self.is_complete else ()

    @cached_property
    def came_together(self) -> tuple[str, ...]:
        """The commits that brought verdicts in one with what they judge."""
        return came_together(self.facts)

    @property
    def unknown_order(self) -> str:
        """What nobody can tell where commits became one, as a sentence; empty if all is known."""
        if not self.came_together:
            return ""
        commits = shortened(self.came_together, 3, shown_by="'yolo-fs status --json'")
        return f"verdicts in one commit with what they judge, in an unknown order: {commits}"

    @cached_property
    def false_claims(self) -> tuple[Finding, ...]:
        """What handoffs claim and the branch does not have."""
        return faults_of_handoffs(self.facts)

    def work_out(self) -> None:
        """Compute every cached answer, for processes that are forked from here."""
        for part in type(self).__mro__:
            for name, member in vars(part).items():
                if isinstance(member, cached_property):
                    getattr(self, name)


Phases = Sequence[Phase]
"""Phases in the order of their numbers."""


def not_begun(phase: PhaseId, others: Phases, options: WorkflowOptions) -> Phase:
    """Return a phase of which the branch has nothing yet. `others`: the phases that it has."""
    options = options.of_phase(())
    if not others:
        return Phase(PhaseFacts(phase, (), options))
    committed = [artifact for other in others for artifact in other.facts.committed]
    before = others[-1].facts
    return Phase(
        PhaseFacts(
            phase,
            tuple(artifact for artifact in before.committed if artifact.place.phase is None),
            options,
            handed_over=handoff_into(phase, committed),
            plans_of_all=before.plans_of_all,
            needs_of_all=before.needs_of_all,
            at_s=before.at_s,
            home=before.home,
        )
    )


def with_committed(phases: Phases, committed: Iterable[CommittedArtifact]) -> Phases:
    """Return the phases as they are once the branch also has these artifacts.

    Only the known commits are used: a summary may name one that has not been looked up.
    """
    phase_by_id = {phase.id: phase for phase in phases}
    for artifact in committed:
        if artifact.place.phase is None:
            phase_by_id = {key: _with(phase, artifact) for key, phase in phase_by_id.items()}
        elif artifact.place.phase in phase_by_id:
            phase_by_id[artifact.place.phase] = _with(phase_by_id[artifact.place.phase], artifact)
        elif phases:
            begun = not_begun(artifact.place.phase, phases, phases[-1].facts.options)
            phase_by_id[artifact.place.phase] = Phase(
                replace(begun.facts.with_committed(artifact), at_s=artifact.at_s)
            )
    return tuple(phase_by_id[key] for key in sorted(phase_by_id))


def _with(phase: Phase, artifact: CommittedArtifact) -> Phase:
    return Phase(phase.facts.with_committed(artifact))
