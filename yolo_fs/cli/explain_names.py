"""What a phase, a plan, a task or an escalation of this repository is, and how it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from yolo_fs.core.ids import EscalationId, PlanId, TaskRef
from yolo_fs.core.reasons import counted, safe
from yolo_fs.escalations.log import act_of
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.root_cause import root_cause
from yolo_fs.protocol.workflow import TURN_COMMAND
from yolo_fs.workspace.planning_tree import phase_spelled
from yolo_fs.workspace.settings import Settings

_MOST_LACKS = 5


class Explanation(NamedTuple):
    """How one thing of the branch stands."""

    name: str
    what: str
    """Such as `escalation`."""
    says: tuple[str, ...]
    """Sentences, the most telling first."""
    command: str
    """Command that helps or shows more."""


def explanation_of(repository: Repository, settings: Settings, name: str) -> Explanation | None:
    """Return what the branch has of an id; None where it has nothing of that name.

    Raises:
        YoloError: OBJECT_MISSING, GIT_FAILED; DUPLICATE_ID for a number that two phases have.
    """
    phases = FactsReader(repository, settings).phases(repository.head().tip)
    if escalation := EscalationId.parse(name):
        return next(_escalations(phases, escalation), None)
    task = TaskRef.parse(name)
    if plan := (task.plan if task else PlanId.parse(name)):
        return next(_plans(phases, plan, name if task else ""), None)
    if not name.replace("-", "").isalnum():
        return None
    chosen = phase_spelled([phase.id for phase in phases], name)
    return next((_phase(phase) for phase in phases if phase.id == chosen), None)


def _escalations(phases: tuple[Phase, ...], wanted: EscalationId) -> Iterator[Explanation]:
    for phase in phases:
        for escalation in phase.escalations:
            if escalation.id != wanted:
                continue
            does, command = act_of(escalation)
            options = " or ".join(safe(each, 80) for each in escalation.options)
            says = [
                f"{safe(escalation.question, 300)} (blocks {escalation.id.task})",
                f"{escalation.agent} {does}" if escalation.is_open else "It is over.",
            ]
            if options and escalation.is_open:
                says.append(f"options: {options}; recommended: {safe(escalation.recommendation)}")
            more = f"yolo-fs escalate list --phase {phase.facts.spelled}"
            settles = command if escalation.is_open else ""
            yield Explanation(str(wanted), "escalation", tuple(says), settles or more)


def _plans(phases: tuple[Phase, ...], wanted: PlanId, task: str) -> Iterator[Explanation]:
    for phase in phases:
        for plan in phase.progress.plans:
            if plan.id != wanted:
                continue
            named = [planned for planned in plan.tasks if not task or str(planned.ref) == task]
            done = [planned for planned in named if planned.commit]
            says = [f"{safe(plan.title)}: {plan.standing}, {len(done)} of "
                    f"{counted(len(named), 'task')} committed"]  # fmt: skip
            says += [f"waits for {', '.join(plan.blocked_by)}"] if plan.blocked_by else []
            says += plan.missing[:_MOST_LACKS]
            if named:
                what = "task" if task else "plan"
                command = TURN_COMMAND.format(phase=phase.facts.spelled)
                yield Explanation(task or str(wanted), what, tuple(says), command)


def _phase(phase: Phase) -> Explanation:
    cause = root_cause(phase)
    says = [phase.progress.headline]
    if phase.progress.next:
        says.insert(0, phase.progress.next.sentence)
    if cause:
        says.insert(0, cause.sentence)
    own = TURN_COMMAND.format(phase=phase.facts.spelled)
    command = cause.command if cause else own
    return Explanation(str(phase.id), "phase", tuple(dict.fromkeys(says)), command)
