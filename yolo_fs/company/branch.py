"""What the branch waits for in one phase, and what it and the work tree have of each act."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing, suppress

from yolo_fs.agents.access import Access
from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.uncommitted import HELD_FOR_A_PERSON
from yolo_fs.artifacts.verdicts import CandidateState, Held
from yolo_fs.authority.actors import superiors
from yolo_fs.checking.validate import Validator
from yolo_fs.company.team_size import with_team
from yolo_fs.core.ids import EscalationId, PhaseId, TaskRef
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.escalations.lines import resumes
from yolo_fs.escalations.log import LOG
from yolo_fs.evidence.facts import plans_of
from yolo_fs.git.history import log
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.acts import Act, acts_of
from yolo_fs.phase.phase import Phase
from yolo_fs.progress.workflow import facts_at
from yolo_fs.protocol.departments import Role
from yolo_fs.reports.status import Candidate, report, unsettled_among
from yolo_fs.scanning.pipeline import obstacles_of
from yolo_fs.workspace.settings import Settings, load, stamps_of

_COMMITS_LOOKED_AT = 50


PENDING_S = 40.0
"""Seconds that a file may be pending: longer than the daemon waits for the end of a last line."""
PATIENCE_S = {
    CandidateState.COMMITTED: 0.0,
    CandidateState.PENDING: PENDING_S,
    CandidateState.HELD: 15.0,
    CandidateState.REJECTED: 0.0,
}
"""Seconds that an agent's file may stay in a state: most held files wait for another git process.
"""


class Branch:
    """One phase as the branch has it, read again whenever the branch has moved."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        phase: PhaseId,
        team: str = "",
        *,
        each_plan: bool = False,
    ):
        """`team`: the size of the team; empty for the configured one. `each_plan`: as `acts_of`."""
        self.repository, self.settings, self.id = repository, settings, phase
        self.team = FactsReader(repository, settings)
        self.tip: str | None = ""
        """The commit that was read last; empty when it is to be read again in any case."""
        self.acts: tuple[Act, ...] = ()
        """What the branch waits for."""
        self._team_size, self._each_plan = team, each_plan
        self._stamps: tuple[object, ...] = ()
        """Of the configuration, when it was read."""
        self._phase: Phase | None = None
        self._obstacles = obstacles_of(repository, settings)

    @property
    def phase(self) -> Phase:
        """The phase as of the last look."""
        if self._phase is None:
            self.look()
        assert self._phase is not None
        return self._phase

    def look(self) -> bool:
        """Read the branch if it has moved, and return whether it has."""
        tip = self.repository.head().tip
        if tip == self.tip:
            return False
        self.tip = tip
        if (stamps := stamps_of(self.repository.root)) != self._stamps:
            self._stamps = stamps
            settings = with_team(load(self.repository.root), self._team_size)
            if settings != self.settings:
                self.settings, self.team = settings, FactsReader(self.repository, settings)
        self._phase = Phase(facts_at(self.team, self.id, tip))
        self.acts = acts_of(self._phase, each_plan=self._each_plan)
        return True

    def is_moved_by(self, act: Act, commit: str) -> bool:
        """Return whether an open act would be done or be another one if the branch had a commit."""
        facts = facts_at(self.team, self.id, commit)
        after = acts_of(Phase(facts), each_plan=self._each_plan)
        now, then = (
            next((known.basis for known in acts if known.key == act.key), None)
            for acts in (self.acts, after)
        )
        return now != then

    @property
    def access(self) -> Access:
        """What each agent may do."""
        return Access(self.repository, self.settings, self.team)

    def report_to(self, agent: str) -> str:
        """Return whom an agent reports to; the user where nobody is above it."""
        with suppress(YoloError):
            above = superiors(self.access.actor(agent))
            return next((superior.name for superior in above), Role.USER.value)
        return Role.USER.value

    def task_of(self, act: Act) -> str:
        """Return the task of an act; for the summary of a plan, the plan's last task."""
        if act.task:
            return act.task
        if act.turn.step != "implementation" or not act.turn.task:
            return ""
        plans = [
            plan for plan in plans_of(self.phase.facts, act.department) if str(plan.id) == act.plan
        ]
        tasks = [f"{plan.id}/{line.get('id')}" for plan in plans for line in plan.tasks]
        return tasks[-1] if tasks and TaskRef.parse(tasks[-1]) else ""

    # --- the files of an act ----------------------------------------------------------------------

    def blobs(self, act: Act) -> str:
        """Return what the branch has of an act's files."""
        tip = self.repository.head().tip
        return ",".join(self.repository.blob_at(tip, path) or "-" for path in act.writes)

    def stamps(self, act: Act, root: str = "") -> tuple[object, ...]:
        """Return time and size of an act's files in a work tree; by default in that of the run."""
        stamps = []
        for path in act.writes:
            with suppress(OSError):
                status = os.stat(os.path.join(root or self.repository.root, path))
                stamps.append((path, status.st_mtime_ns, status.st_size))
        return tuple(stamps)

    def find_missing(self, act: Act, root: str = "") -> list[str]:
        """Return the files of an act that a work tree lacks; by default that of the run."""
        root = root or self.repository.root
        return [path for path in act.writes if not os.path.lexists(os.path.join(root, path))]

    def warnings_of(self, act: Act, root: str = "") -> list[str]:
        """Return what `validate` warns of in an act's artifacts: it may be why a file that was
        accepted does not count, such as a review of a plan that is not there.

        `root`: of the work tree; by default that of the run.
        """
        artifacts = [path for path in act.writes if path.startswith(f"{PLANNING_ROOT}/")]
        with closing(Validator(root or self.repository.root)) as validator:
            checked = tuple(validator.paths(artifacts))
        return [
            f"{file.path.rpartition('/')[2]}: {finding.fault}"
            for file in checked
            for finding in file.findings
            if finding.reason is Reason.UNKNOWN_REFERENCE
        ]

    def unsettled(self) -> Sequence[Candidate]:
        """Return the artifacts that differ from the branch."""
        return report(self.repository, self.settings).listing.unsettled

    def unsettled_of(self, act: Act) -> Sequence[Candidate]:
        """Return the files of an act that differ from the branch."""
        return unsettled_among(self.repository, self.settings, act.writes)

    def find_obstacle(self) -> Reason | None:
        """Return why nothing may be committed now, such as a merge that is not finished."""
        return self._obstacles.find(self.repository.head())

    def find_hold(self, candidates: Sequence[Candidate]) -> Reason | None:
        """Return what keeps files from being committed that their agent cannot mend."""
        verdicts = [each.verdict for each in candidates]
        reasons = [verdict.reason for verdict in verdicts if isinstance(verdict, Held)]
        return next((reason for reason in reasons if reason in HELD_FOR_A_PERSON), None)

    def is_written_again(self, act: Act) -> bool:
        """Return whether another version of an act's files is about to be committed."""
        return any(map(_is_about_to_be_committed, self.unsettled_of(act)))

    def is_question_coming(self) -> bool:
        """Return whether the log of escalations is about to be committed: it may say that whoever
        has just ended asks, and did not fail.
        """
        log_of_phase = f"{self.phase.facts.folder}/{LOG}"
        written = unsettled_among(self.repository, self.settings, (log_of_phase,))
        return any(map(_is_about_to_be_committed, written))

    def may_still_get(self, act: Act) -> bool:
        """Return whether something of an act may still arrive."""
        return bool(act.turn.command or self.stamps(act))

    def is_carried_on(self, act: Act, since: float) -> bool:
        """Return whether a commit continues a task whose escalation is open.

        `since`: seconds since the epoch; earlier commits do not count.
        """
        escalation, tip = escalation_of(act), self.repository.head().tip
        if escalation is None or tip is None:
            return False
        return any(
            commit.at_s >= int(since) and resumes(escalation, commit.subject, is_only=True)
            for commit in log(self.repository, tip, limit=_COMMITS_LOOKED_AT)
        )


def _is_about_to_be_committed(candidate: Candidate) -> bool:
    """Return whether nothing but a git command of this moment keeps a file from the branch."""
    verdict = candidate.verdict
    is_locked = isinstance(verdict, Held) and verdict.reason is Reason.INDEX_LOCKED
    return is_locked or candidate.standing is CandidateState.PENDING


def escalation_of(act: Act) -> EscalationId | None:
    """Return the escalation that an act is about; None for any other."""
    return next(filter(None, map(EscalationId.parse, act.turn.why.split())), None)
