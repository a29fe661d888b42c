"""Looks at the crew: who is there, whose circuit is open, who was asked to stop, what stands still,
and why.

What is looked at is the record of the crew, the branch and the verdicts on the work tree; what is
timed is timed by the clock that nobody sets (`core/timestamps`). The same look serves the
daemon, the board and the commands. See docs/dev/faults.md#f19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from yolo_fs.agents.circuit import (
    Breaker,
    BreakerPolicy,
    OutcomeEvent,
    as_of,
    disappearances,
    outcomes,
    outcomes_told,
    turned,
)
from yolo_fs.agents.health import AT_WORK, AgentHealth, Shutdown, crew, judged, shutdowns
from yolo_fs.agents.recording import AgentJournal, Recorded
from yolo_fs.agents.stalls import Stall, StallInput, StepTurn, awaited, stalls, turns_of
from yolo_fs.agents.totals import DepartmentTotals, tally
from yolo_fs.artifacts.verdicts import Held, Rejected, Verdict
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Finding
from yolo_fs.core.timestamps import Instant
from yolo_fs.escalation_service.clock import note, read_clock, recall
from yolo_fs.escalations.fold import escalations
from yolo_fs.escalations.log import logged
from yolo_fs.evidence.facts import PhaseFacts, SourceCommit, Switches, plan_progress
from yolo_fs.git.repository import Repository
from yolo_fs.history.index import HistoryIndex
from yolo_fs.history.team import Team, loop_facts
from yolo_fs.loops.facts import LoopFacts
from yolo_fs.phase.phase import Phase
from yolo_fs.protocol.roster import Circuit, Health
from yolo_fs.schemas.config import Policy
from yolo_fs.workspace import CREW_CLOCK, Settings


class AgentsSnapshot(NamedTuple):
    """The crew at one moment."""

    agents: tuple[AgentHealth, ...]
    breakers: tuple[Breaker, ...]
    """Of each active department."""
    shutdowns: tuple[Shutdown, ...]
    late: tuple[Shutdown, ...]
    """Those whose deadline has passed, and somebody still owes an answer or work."""
    stalls: tuple[Stall, ...]
    findings: tuple[Finding, ...]

    @property
    def open_circuits(self) -> tuple[Breaker, ...]:
        """Breakers that are not closed."""
        return tuple(one for one in self.breakers if one.state is not Circuit.CLOSED)

    def as_json(self) -> dict[str, Any]:
        """Return the crew as `status --json` shows it."""
        return {
            "agents": to_json(self.agents),
            "circuits": [circuit_as_json(one) for one in self.breakers],
            "shutdowns": [
                shutdown_as_json(one, is_late=one in self.late) for one in self.shutdowns
            ],
            "stalls": to_json(self.stalls),
        }


class _OpenPhase(NamedTuple):
    """What the branch says of a phase that is not complete."""

    phase: Phase
    loops: LoopFacts
    told: tuple[OutcomeEvent, ...]
    """What went well or failed, beside the versions of artifacts."""
    turns: tuple[StepTurn, ...]


class AgentsObserver:
    """Looks again and again, and reads only what has changed."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        team: Team | None = None,
        *,
        clock: Callable[[], Instant] = read_clock,
    ) -> None:
        """`team`: remembers what an earlier look has read."""
        self._repository = repository
        self._settings = settings
        self._team = team or Team(repository, settings)
        self._clock = clock
        self._timers = recall(repository, CREW_CLOCK)
        self._tip: str | None = ""
        self._phases: tuple[_OpenPhase, ...] = ()
        self._said = Recorded()
        self._agents: tuple[AgentHealth, ...] = ()
        self._departments = Switches(settings.config).departments
        self._asked: tuple[tuple[Shutdown, ...], tuple[Finding, ...]] = ((), ())
        self.record = AgentJournal(repository.own_dir, settings.limits)

    def look(
        self, verdicts: Mapping[str, Verdict], tip: str | None = "", *, keep: bool = False
    ) -> AgentsSnapshot:
        """Return the crew as it is now.

        `tip`: the commit by which it is judged; empty for where the branch stands now.
        `keep`: let another run of the program know how long everything has lasted.

        Raises:
            YoloError: OBJECT_MISSING, GIT_FAILED when the history cannot be read.
        """
        now = self._clock()
        said = self.record.read(now.wall)
        phases = self.read_phases(self._repository.head().tip if tip == "" else tip)
        if said is not self._said:
            self._said, self._agents, self._asked = said, crew(said.seen), shutdowns(said.seen)
        agents, (asked, unasked) = self._agents, self._asked
        began = self._time(phases, agents, asked, said, now, keep=keep)
        there = judged(agents, now.wall, self._policy.agent_silent_s, began)
        circuits = as_of(now.wall, self._left(phases, there, said), self._patience, began)
        refused = {
            path: verdict
            for path, verdict in verdicts.items()
            if isinstance(verdict, Rejected | Held)
        }
        scenes = (_stall_input(one, there, circuits, refused, now.wall) for one in phases)
        return AgentsSnapshot(
            agents=there,
            breakers=circuits,
            shutdowns=asked,
            late=tuple(one for one in asked if not one.is_over and one.is_late(now.wall, began)),
            stalls=tuple(
                each
                for one in scenes
                for each in stalls(one, now.wall, self._policy.stall_s, began)
            ),
            findings=(*said.findings, *unasked),
        )

    @property
    def _policy(self) -> Policy:
        return self._settings.policy

    def read_phases(self, tip: str | None) -> tuple[_OpenPhase, ...]:
        """Return what a commit says of each open phase, to be kept with its team."""
        team, make = self._team, self._open_phase
        if tip == self._tip:
            return self._phases
        known = team.phases(tip)

        def opened() -> tuple[_OpenPhase, ...]:
            open_ = (one for one in known if not one.is_complete)
            return tuple(team.derive(one, "crew", partial(make, one)) for one in open_)

        self._tip, self._phases = tip, team.derive_from((tip, known), "crew", opened)
        return self._phases

    def _open_phase(self, phase: Phase) -> _OpenPhase:
        known = loop_facts(self._team, phase.facts, 0)
        done = task_commits(phase.facts, self._team.history_index)
        return _OpenPhase(phase, known, tuple(outcomes(known, done)), turns_of(phase, done))

    def _left(
        self, phases: tuple[_OpenPhase, ...], agents: Iterable[AgentHealth], said: Recorded
    ) -> tuple[Breaker, ...]:
        """Return the breakers as the last outcome left them."""
        gone = tuple(one for one in agents if one.health is Health.DISAPPEARED)

        def left() -> tuple[Breaker, ...]:
            told = [disappearances(gone), *(one.told for one in phases)]
            told += (outcomes_told(one.phase.facts, said.seen) for one in phases if said.seen)
            loops = [one.loops for one in phases]
            return turned(self._departments, self._patience, loops, chain.from_iterable(told))

        return self._team.derive_from((phases, said, gone), "breakers", left)

    @property
    def _patience(self) -> BreakerPolicy:
        return BreakerPolicy(self._policy.circuit_failures, self._policy.circuit_open_s)

    def _time(
        self,
        phases: tuple[_OpenPhase, ...],
        agents: tuple[AgentHealth, ...],
        asked: Iterable[Shutdown],
        said: Recorded,
        now: Instant,
        *,
        keep: bool,
    ) -> dict[str, datetime]:
        """Return when each thing that is timed began, by the clock that nobody sets."""
        before = self._timers
        known = (
            {key: before.began(key, now) for key in before.since_s}
            if before.boot == now.boot
            else {}
        )
        there = judged(agents, now.wall, self._policy.agent_silent_s, known)
        open_ = as_of(now.wall, self._left(phases, there, said), self._patience, {})
        turns = {
            **{one.key: one.seen for one in agents if one.health in AT_WORK},
            **{
                one.key: one.opened_at
                for one in open_
                if one.opened_at and one.state is not Circuit.CLOSED
            },
            **{one.key: one.asked_at for one in asked if not one.is_over},
            **{turn.key: turn.moved_at for one in phases for turn in awaited(one.turns, agents)},
        }
        self._timers = before.look(turns, now)
        if keep and (before.boot, before.since_s) != (self._timers.boot, self._timers.since_s):
            note(self._repository, CREW_CLOCK, self._timers)
        return {key: self._timers.began(key, now) for key in turns}


def task_commits(facts: PhaseFacts, history_index: HistoryIndex) -> dict[str, SourceCommit]:
    """Return the commits of a phase's tasks under their full names."""
    named = {task.commit for plan in plan_progress(facts) for task in plan.tasks}
    return {oid: commit for oid in named if oid and (commit := history_index.commit(oid))}


def _stall_input(
    one: _OpenPhase,
    agents: tuple[AgentHealth, ...],
    circuits: tuple[Breaker, ...],
    verdicts: Mapping[str, Verdict],
    now: datetime,
) -> StallInput:
    asked = escalations(one.phase.facts.ask(logged), now)
    return StallInput(one.phase, one.turns, agents, circuits, asked, verdicts)


def circuit_as_json(one: Breaker) -> dict[str, Any]:
    """Return a breaker for machines: the message of document 000, and why."""
    return {**one.as_message(), "why": one.why}


def shutdown_as_json(one: Shutdown, *, is_late: bool) -> dict[str, Any]:
    """Return a request to stop for machines."""
    return {
        "id": one.id,
        "by": one.by,
        "department": to_json(one.department),
        "reason": one.reason,
        "asked_at": to_json(one.asked_at),
        "deadline_seconds": one.deadline_s,
        "deadline_passed": is_late,
        "asked": to_json(one.asked),
    }


def tally_of(
    repository: Repository, settings: Settings, team: Team, facts: PhaseFacts
) -> tuple[DepartmentTotals, ...]:
    """Return the totals of each department of a phase, with what its Devs reported."""
    journal = AgentJournal(repository.own_dir, settings.limits)
    done = task_commits(facts, team.history_index)
    return tally(Phase(facts), done, journal.read(datetime.now(UTC)).seen)
