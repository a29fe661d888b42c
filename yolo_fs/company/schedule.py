"""Which acts of a run are open, and which of them may start now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yolo_fs.company.attempts import Attempts
from yolo_fs.company.branch import PENDING_S, Branch
from yolo_fs.company.runs import Run, RunOptions
from yolo_fs.company.workers import Workers
from yolo_fs.core.reasons import safe
from yolo_fs.phase.acts import Act, act_of_stage
from yolo_fs.phase.progress import Next
from yolo_fs.protocol.chains import CHAINS, GOES_ON
from yolo_fs.protocol.departments import Role
from yolo_fs.tasks.claims import overlap

CHECKPOINT_OF_STEP = {"design_review": "plan", "signoff": "ship"}
"""Step before which a person may want to be asked → its name on the command line."""


def name_of_approval(act: Act) -> str:
    """Return the id of the question whether an act may begin, or begin again."""
    return f"{act.turn.step}:{act.agent}"


class Schedule:
    """The acts of one run, as the branch, its agents and its person leave them."""

    def __init__(
        self, branch: Branch, workers: Workers, attempts: Attempts, options: RunOptions, run: Run
    ):
        self._branch, self._workers, self._attempts = branch, workers, attempts
        self._options = options
        self.run = run
        """Of an unfinished run that is taken over, that one."""
        self.is_analysis_wanted = False
        """Whether the intent is classified first."""
        self.approved: set[str] = set()
        """The acts that a person has approved, by `name_of_approval`."""
        self._began = workers.clock.now()

    def look(self) -> None:
        """Take what has come to the branch."""
        if self._branch.look():
            self._attempts.follow()

    # --- open -------------------------------------------------------------------------------------

    @property
    def acts(self) -> tuple[Act, ...]:
        """The acts that the run waits for now."""
        first = self.find_stage() or self._find_analysis()
        if first is None and self.ends_with_its_chain:
            return ()  # its last agent may still be about to end
        return tuple(
            map(self._attempts.replace_by_advice, (first,) if first else self._branch.acts)
        )

    def find(self, act: Act) -> Act | None:
        """Return an act as it is open now; None once it is not."""
        return next((open_act for open_act in self.acts if open_act.key == act.key), None)

    def find_same(self, key: Sequence[str]) -> Act | None:
        """Return the act of that key, of those that are open or that the branch waits for."""
        self.look()
        acts = (*self.acts, *self._branch.acts)
        return next((act for act in acts if list(act.key) == list(key)), None)

    @property
    def given_up(self) -> Sequence[Act]:
        """The open acts that were given up."""
        return [act for act in self.acts if self._attempts.why_given_up(act)]

    @property
    def ends_with_its_chain(self) -> bool:
        """Whether nothing follows the acts of the command that the run carries out."""
        return bool(self._options.chain) and self._options.chain not in GOES_ON

    @property
    def is_begun(self) -> bool:
        """Whether the branch has an artifact of the phase."""
        facts = self._branch.phase.facts
        return any(
            artifact.place.path.startswith(f"{facts.folder}/") for artifact in facts.committed
        )

    def find_stage(self) -> Act | None:
        """Return the first act of the run's chain that is not done; None if all are."""
        for stage in CHAINS.get(self._options.chain, ()):
            does = f"{stage.does}: {safe(self.run.intent, 300)}"
            department = self._options.department
            act = act_of_stage(self._branch.phase, stage, does, department)
            now = self._branch.blobs(act)
            begun = [run_act for run_act in self.run.acts if run_act.key == list(act.key)]
            if not any(run_act.before != now or run_act.outcome == "done" for run_act in begun):
                lack = f"{act.writes[0]} does not exist"
                if now != "-":
                    lack = f"{act.writes[0]} is unchanged ({now[:12]}): add to it"
                return act._replace(lacks=(lack,))
        return None

    def _find_analysis(self) -> Act | None:
        """Return the first act for an intent: what it is, and how much of the company it needs."""
        facts = self._branch.phase.facts
        if not (self.is_analysis_wanted and self.run.intent) or facts.of_kind("analysis"):
            return None
        turn = Next("po", Role.ANALYZE.value, ("the intent", "codebase"), act="classifies the work")
        act = Act(turn, None, writes=(f"{facts.folder}/analysis.json",))
        return None if self._attempts.is_hopeless(act) else act

    # --- startable --------------------------------------------------------------------------------

    def find_startable(self) -> Iterator[Act]:
        """Yield the acts that nothing of the run itself keeps from starting."""
        busy = {worker.act.key for worker in self._workers}
        for act in self.acts:
            is_free = act.key not in busy and not self._is_occupied(act)
            is_free = is_free and not self._is_another_tried(act)
            is_free = is_free and not self._attempts.is_hopeless(act) and not self._is_made_for(act)
            if is_free and not act.is_of_person and not self.checkpoint_before(act):
                yield act

    def checkpoint_before(self, act: Act) -> str:
        """Return what a person has to approve before an act; empty if nothing."""
        step = act.turn.step
        is_asked = CHECKPOINT_OF_STEP.get(step) in self._options.approve
        if not is_asked or name_of_approval(act) in self.approved:
            return ""
        if step == "design_review":
            return "approve the plan"
        if act.turn.command:
            return "approve the sign-off"
        return ""

    def works_apart(self, act: Act) -> bool:
        """Return whether an act is done in a work tree of its own, as it writes a task's files."""
        is_of_task = bool(act.task and act.writes) and act.role == Role.DEV
        return self._options.worktrees and is_of_task and act.turn.step == "implementation"

    def is_left_to_commit(self, act: Act) -> bool:
        """Return whether the daemon is about to commit what was there of an act before the run."""
        ran_s = self._workers.clock.now() - self._began
        return ran_s < PENDING_S and self._branch.is_written_again(act)

    def _is_occupied(self, act: Act) -> bool:
        """Return whether who does an act is at work, or the files of the act are taken."""
        if not self.works_apart(act):
            return any(
                act.agent == worker.record.agent for worker in self._workers if not worker.tree
            )
        return any(
            (worker.tree and (act.department, act.plan) == (worker.act.department, worker.act.plan))
            or overlap(act.writes, worker.act.writes)
            for worker in self._workers
        )

    def _is_another_tried(self, act: Act) -> bool:
        """Return whether the circuit of a department is open, and somebody of it at work: whether
        that succeeds is known before the next one is paid for.
        """
        is_failing = self._attempts.is_failing(act.department)
        return is_failing and any(
            act.department == worker.act.department for worker in self._workers
        )

    def _is_made_for(self, act: Act) -> bool:
        """Return whether an agent still works on the input of an act.

        It may still change files that the branch already has.
        """
        open_ = {open_act.key for open_act in self.acts}
        made = [worker.act.department for worker in self._workers if worker.act.key not in open_]
        return any(
            act.department == department or None in (act.department, department)
            for department in made
        )
