"""The team as of one commit: every phase with its steps, plans, gates and alarms.

The commit may be the present one or any past one. Nothing here reads the work tree, a clock or a
daemon, so that `status` and `status --at` share the code.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from yolo_fs.agents.access import out_of_lane
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Finding
from yolo_fs.core.timestamps import span
from yolo_fs.escalations.log import as_json
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.evidence.plan_status import PlanStatus
from yolo_fs.history.facts_reader import FactsReader, loops_of
from yolo_fs.loops.facts import LoopProgress
from yolo_fs.phase.acts import Act, act_for, acts_of
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import DepartmentStatus, Next, StepStatus, count_steps
from yolo_fs.phase.root_cause import RootCause, root_cause
from yolo_fs.phase.waits import Alarm, Deadlock
from yolo_fs.protocol.departments import Dept
from yolo_fs.schemas.config import Config

_LEAST_STEPS = 2
"""Steps that were worked on before their pace says anything."""
_LEAST_S = 60


class Pace(NamedTuple):
    """How far a phase is, and how fast it got there."""

    steps_done: int
    """Steps that are complete, of all departments and of the phase."""
    steps: int
    """Steps to complete, as `count_steps` has them."""
    began_s: int
    """Moment of its first commit, in seconds since the epoch; 0 for none."""
    last_s: int
    """Time of its last commit, in seconds since the epoch."""
    left_s: int
    """Estimated seconds for the remaining steps, at the pace so far; 0 where unknown."""

    @property
    def sentence(self) -> str:
        """How long it may still take; empty where that is unknown or no longer matters."""
        return f"about {span(self.left_s)} left at this pace" if self.left_s >= _LEAST_S else ""


@dataclass(frozen=True)
class PhaseBoard(Phase):
    """A phase with what else a board shows of it."""

    loops: tuple[LoopProgress, ...] = ()
    """Reviews and repairs that somebody has to go on with, as of the commit's own time."""

    @cached_property
    def out_of_lane(self) -> tuple[Finding, ...]:
        """Decisions outside of somebody's authority, and messages along forbidden routes."""
        return out_of_lane(self.facts)

    @cached_property
    def root_cause(self) -> RootCause | None:
        """The root cause of most of its waits; None while nobody waits for another's work."""
        return root_cause(self)

    @property
    def pace(self) -> Pace:
        """Its pace, computed from its commits alone."""
        committed = [
            artifact.at_s
            for artifact in self.facts.committed
            if artifact.place.phase and artifact.commit
        ]
        times = (*committed, *(work.at_s for work in self.facts.work))
        began_s, last_s = min(times, default=0), max(times, default=0)
        done, steps = count_steps(self.progress.every_step)
        is_known = done >= _LEAST_STEPS and not self.is_complete
        # the time before the first commit is not known
        left_s = (last_s - began_s) * (steps - done) // (done - 1) if is_known else 0
        return Pace(done, steps, began_s, last_s, left_s)

    @cached_property
    def acts(self) -> tuple[Act, ...]:
        """What is to be done in it next."""
        return acts_of(self)

    def as_json(self) -> dict[str, Any]:
        """Return the phase as `status --json` shows it; the same object each time."""
        return self._shown

    @cached_property
    def _shown(self) -> dict[str, Any]:
        progress = self.progress.as_shown()
        return {
            "phase": str(progress.phase),
            "complete": progress.is_complete,
            "step": progress.step,
            "percent": progress.percent,
            "pace": to_json(self.pace),
            "root_cause": to_json(self.root_cause),
            "next": _next(self, progress.next),
            "departments": [_department(self, status) for status in progress.departments],
            "steps": [_step(step) for step in progress.steps],
            "gates": to_json(self.gates),
            "sign_off": to_json(self.sign_off),
            "waits": [] if progress.is_complete else [asdict(wait) for wait in self.waits],
            "alarms": [_alarm_as_json(alarm) for alarm in self.alarms],
            "handoffs": [finding.as_json() for finding in self.false_claims],
            "escalations": [as_json(escalation) for escalation in self.escalations],
            "loops": to_json(self.loops),
            "out_of_lane": [finding.as_json() for finding in self.out_of_lane],
            "changed_after_sign_off": list(map(str, self.changed_after_sign_off)),
            "came_together": list(self.came_together),
        }

    def headline(self) -> dict[str, Any]:
        """Return what a list of phases shows of it."""
        progress = self.progress
        return {
            "phase": str(progress.phase),
            "complete": progress.is_complete,
            "percent": progress.percent,
            "pace": to_json(self.pace),
        }


class Board(NamedTuple):
    """Where the team stands as of one commit."""

    commit: str | None
    """None on a branch without commits."""
    config: Config | None
    """The configuration of the commit; None when it has no readable one."""
    stands_in: bool
    """Whether the commit has no configuration and the one in force, which is not the default,
    stands in for it."""
    phases: tuple[PhaseBoard, ...]

    def only(self, phase: PhaseId) -> Board:
        """Return the board of one phase, which may have no artifact there."""
        return self._replace(phases=tuple(each for each in self.phases if each.id == phase))

    def phase_named(self, name: str) -> str:
        """Return the name.

        Where no phase has it, return the first open phase's, or else the last one's.
        """
        names = [str(phase.id) for phase in self.phases]
        open_ = [str(phase.id) for phase in self.phases if not phase.progress.is_complete]
        return name if name in names else (open_ or names[-1:] or [""])[0]

    def as_json(self, whole: str | None = None) -> dict[str, Any]:
        """Return the board as `status --json` shows it.

        `whole`: the phase that is shown in full.
        """
        shown = whole if whole is None else self.phase_named(whole)
        source = "in force" if self.stands_in else "default"
        return {
            "commit": self.commit,
            "config": "committed" if self.config else source,
            "phases": [
                phase.as_json() if shown in (None, str(phase.id)) else phase.headline()
                for phase in self.phases
            ],
        }


def board(facts_reader: FactsReader, commit: str | None) -> Board:
    """Return where the team stands as of a commit.

    Raises:
        YoloError: OBJECT_MISSING, GIT_FAILED when the history cannot be read.
    """
    config = facts_reader.config_at(commit)
    in_force = facts_reader.settings.config
    known = facts_reader.phases(commit, WorkflowOptions(config or in_force))
    at_s = facts_reader.history_index.at_s(commit) if commit else 0
    stands_in = commit is not None and config is None and in_force != Config()

    def drawn() -> tuple[PhaseBoard, ...]:
        made = partial(_phase, facts_reader, at_s)
        return tuple(facts_reader.derive(phase, "board", partial(made, phase)) for phase in known)

    shown = facts_reader.derive_from((commit, known), "board", drawn)
    return Board(commit, config, stands_in, shown)


def phases_now(facts_reader: FactsReader, commit: str | None) -> tuple[Phase, ...]:
    """Return the phases of a commit as its board shows them, by the commit's own configuration.

    Raises:
        YoloError: OBJECT_MISSING, GIT_FAILED when the history cannot be read.
    """
    config = facts_reader.config_at(commit)
    return facts_reader.phases(commit, WorkflowOptions(config) if config else None)


def _phase(facts_reader: FactsReader, at_s: int, phase: Phase) -> PhaseBoard:
    going_on: tuple[LoopProgress, ...] = ()
    if not phase.is_complete:
        loops = loops_of(facts_reader, phase, at_s)
        going_on = tuple(loop for loop in loops if not loop.is_over)
    shown = PhaseBoard(phase.facts, going_on)
    vars(shown).update(vars(phase))  # what was folded already
    return shown


def _department(phase: Phase, status: DepartmentStatus) -> dict[str, Any]:
    return {
        "department": status.department.value,
        "complete": status.is_complete,
        "step": status.current.step.key if status.current else None,
        "percent": status.percent,
        "stage_gate": status.stage.value,
        "next": _next(phase, status.next, status.department),
        "blockers": list(status.blockers),
        "steps": [_step(step) for step in status.steps],
        "plans": [_plan(plan) for plan in status.plans],
    }


def _step(step: StepStatus) -> dict[str, Any]:
    return {
        "number": step.step.number,
        "step": step.step.key,
        "standing": step.standing.value,
        "by": step.by,
        "missing": list(step.missing),
    }


def _plan(plan: PlanStatus) -> dict[str, Any]:
    return {
        "plan": str(plan.id),
        "title": plan.title,
        "wave": plan.wave,
        "standing": plan.standing.value,
        "commit": plan.commit,
        "tasks_done": tasks_done(plan),
        "tasks_total": len(plan.tasks),
        "tasks": [
            {"task": str(task.ref), "action": task.action, "commit": task.commit}
            for task in plan.tasks
        ],
        "missing": list(plan.missing),
        "blocked_by": list(plan.blocked_by),
    }


def tasks_done(plan: PlanStatus) -> int:
    """Return how many tasks of a plan are done: all of one that is complete, by whatever commits,
    else those that a commit names.
    """
    return sum(plan.is_done or bool(task.commit) for task in plan.tasks)


def _next(phase: Phase, turn: Next | None, department: Dept | None = None) -> Any:
    return act_for(phase, turn, department).as_json() if turn else None


def _alarm_as_json(alarm: Alarm) -> dict[str, Any]:
    kind, waits = (
        ("deadlock", alarm.waits) if isinstance(alarm, Deadlock) else ("orphan", (alarm.wait,))
    )
    return {"kind": kind, "text": str(alarm), "waits": [asdict(wait) for wait in waits]}
