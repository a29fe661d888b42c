"""The team as of one commit: every phase with its steps, plans, gates and alarms, now or at any
moment of the past.

Nothing here looks at the work tree, a clock or a daemon, so that `status` and `status --at` are the
same code.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from yolo_fs.agents.access import out_of_lane
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Finding
from yolo_fs.escalations.log import as_json
from yolo_fs.evidence.facts import PlanStatus, Switches
from yolo_fs.git.repository import Repository
from yolo_fs.history.team import Team, loops_of
from yolo_fs.loops.facts import LoopProgress
from yolo_fs.phase.acts import act_for
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import DepartmentStatus, Next, StepStatus
from yolo_fs.phase.root_cause import RootCause, root_cause
from yolo_fs.phase.waits import Alarm, Deadlock
from yolo_fs.protocol.departments import Dept
from yolo_fs.schemas.config import Config
from yolo_fs.workspace import Settings


class Pace(NamedTuple):
    """How far a phase is, and how fast it got there."""

    steps_done: int
    """Steps that hold nobody up any more, of all departments and of the phase."""
    steps: int
    began_s: int
    """Moment of its first commit, in seconds since the epoch; 0 for none."""
    last_s: int
    """Moment of its last one."""
    left_s: int
    """What the steps that are left take at the pace of those that are done; 0 where unknown."""


@dataclass(frozen=True)
class PhaseBoard(Phase):
    """A phase with what else a board shows of it."""

    loops: tuple[LoopProgress, ...] = ()
    """Reviews and repairs that somebody has to go on with, as of the commit's own time."""

    @cached_property
    def out_of_lane(self) -> tuple[Finding, ...]:
        """Decisions outside of somebody's authority, and what went a way that it may not go."""
        return out_of_lane(self.facts)

    @cached_property
    def is_finished(self) -> bool:
        """Whether it needs no attention; a sign-off that overrides a department does."""
        progress = self.progress
        return progress.is_complete and all(one.is_complete for one in progress.departments)

    @cached_property
    def said(self) -> str:
        """How far it is, in one line."""
        progress, plans = self.progress, self.progress.plans
        done = f"{sum(plan.is_done for plan in plans)} of {len(plans)} plans complete"
        standing = "complete" if self.is_finished else f"at {progress.step}"
        return f"phase {progress.phase}: {standing} ({done}, {progress.percent} %)"

    @cached_property
    def root_cause(self) -> RootCause | None:
        """What most of it waits for in the end; None while nobody waits for another's work."""
        return root_cause(self)

    @property
    def pace(self) -> Pace:
        """How fast it goes, by its commits alone."""
        filed = [one.at_s for one in self.facts.filed if one.place.phase and one.commit]
        times = (*filed, *(one.at_s for one in self.facts.work))
        began_s, last_s = min(times, default=0), max(times, default=0)
        steps, done = len(self.progress.every_step), self.progress.steps_passed
        left_s = (last_s - began_s) * (steps - done) // done if done else 0
        return Pace(done, steps, began_s, last_s, 0 if self.is_complete else left_s)

    def as_json(self) -> dict[str, Any]:
        """Return the phase as `status --json` shows it."""
        progress = self.progress
        decision, why = self.sign_off
        return {
            "phase": str(progress.phase),
            "complete": progress.is_complete,
            "step": progress.step,
            "percent": progress.percent,
            "pace": to_json(self.pace),
            "root_cause": self.root_cause.as_json() if self.root_cause else None,
            "next": _next(self, progress.next),
            "departments": [_department(self, one) for one in progress.departments],
            "steps": [_step(one) for one in progress.steps],
            "gates": to_json(self.gates),
            "sign_off": {"decision": decision.value, "why": why},
            "waits": [] if progress.is_complete else [asdict(one) for one in self.waits],
            "alarms": [_alarm(one) for one in self.alarms],
            "handoffs": [one.as_json() for one in self.false_claims],
            "escalations": [as_json(one) for one in self.escalations],
            "loops": to_json(self.loops),
            "out_of_lane": [one.as_json() for one in self.out_of_lane],
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
    """The configuration that the commit has; None when it has none that can be read."""
    stands_in: bool
    """The commit has no configuration, and the one in force, which is not the default, was taken
    for it."""
    phases: tuple[PhaseBoard, ...]

    def phase_named(self, name: str) -> str:
        """Return the name, or where no phase has it, that of the first open or else the last."""
        names = [str(one.id) for one in self.phases]
        open_ = [str(one.id) for one in self.phases if not one.progress.is_complete]
        return name if name in names else (open_ or names[-1:] or [""])[0]

    def as_json(self, whole: str | None = None) -> dict[str, Any]:
        """Return the board as `status --json` shows it. `whole`: the phase that is told in full."""
        shown = whole if whole is None else self.phase_named(whole)
        source = "in force" if self.stands_in else "default"
        return {
            "commit": self.commit,
            "config": "committed" if self.config else source,
            "phases": [
                one.as_json() if shown in (None, str(one.id)) else one.headline()
                for one in self.phases
            ],
        }


def board(
    repository: Repository, settings: Settings, commit: str | None, team: Team | None = None
) -> Board:
    """Return where the team stands as of a commit. `team`: remembers what an earlier look has read.

    Raises:
        YoloError: OBJECT_MISSING, GIT_FAILED when the history cannot be read.
    """
    gathered = team or Team(repository, settings)
    config = gathered.config_at(commit)
    switches = Switches(config or settings.config)
    known = gathered.phases(commit, switches)
    at_s = gathered.history_index.at_s(commit) if commit else 0
    stands_in = commit is not None and config is None and settings.config != Config()

    def drawn() -> tuple[PhaseBoard, ...]:
        made = partial(_phase, gathered, at_s)
        return tuple(gathered.derive(one, "board", partial(made, one)) for one in known)

    return Board(commit, config, stands_in, gathered.derive_from((commit, known), "board", drawn))


def phases_now(
    repository: Repository, settings: Settings, commit: str | None, team: Team
) -> tuple[Phase, ...]:
    """Return the phases of a commit as a board of it shows them, by the configuration that the
    commit has.

    Raises:
        YoloError: OBJECT_MISSING, GIT_FAILED when the history cannot be read.
    """
    config = team.config_at(commit)
    switches = None if config in (None, settings.config) else Switches(config or settings.config)
    return team.phases(commit, switches)


def _phase(team: Team, at_s: int, phase: Phase) -> PhaseBoard:
    going_on: tuple[LoopProgress, ...] = ()
    if not phase.is_complete:
        found = loops_of(team, phase.facts, at_s)
        going_on = tuple(loop for loop in found if not loop.is_over)
    shown = PhaseBoard(phase.facts, going_on)
    vars(shown).update(vars(phase))  # what was folded already
    return shown


def _department(phase: Phase, one: DepartmentStatus) -> dict[str, Any]:
    return {
        "department": one.department.value,
        "complete": one.is_complete,
        "step": one.current.step.key if one.current else None,
        "percent": one.percent,
        "stage_gate": one.stage.value,
        "next": _next(phase, one.next, one.department),
        "blockers": list(one.blockers),
        "steps": [_step(step) for step in one.steps],
        "plans": [_plan(plan) for plan in one.plans],
    }


def _step(one: StepStatus) -> dict[str, Any]:
    return {
        "number": one.step.number,
        "step": one.step.key,
        "standing": one.standing.value,
        "by": one.by,
        "missing": list(one.missing),
    }


def _plan(one: PlanStatus) -> dict[str, Any]:
    return {
        "plan": str(one.id),
        "title": one.title,
        "wave": one.wave,
        "standing": one.standing.value,
        "commit": one.commit,
        "tasks_done": tasks_done(one),
        "tasks_total": len(one.tasks),
        "tasks": [
            {"task": str(task.ref), "action": task.action, "commit": task.commit}
            for task in one.tasks
        ],
        "missing": list(one.missing),
        "blocked_by": list(one.blocked_by),
    }


def tasks_done(plan: PlanStatus) -> int:
    """Return how many tasks of a plan a commit names."""
    return sum(bool(task.commit) for task in plan.tasks)


def _next(phase: Phase, turn: Next | None, department: Dept | None = None) -> Any:
    return act_for(phase, turn, department).as_json() if turn else None


def _alarm(one: Alarm) -> dict[str, Any]:
    kind, waits = ("deadlock", one.waits) if isinstance(one, Deadlock) else ("orphan", (one.wait,))
    return {"kind": kind, "text": str(one), "waits": [asdict(wait) for wait in waits]}
