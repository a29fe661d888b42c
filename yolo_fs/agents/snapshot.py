"""Takes snapshots of the agents: who is present, whose circuit is open, who was asked to stop, what
stalls, and why.

The sources are the agent journal, the branch and the verdicts on the work tree; durations use the
monotonic clock (`core/timestamps`). The daemon, the board and the commands share this code. See
docs/dev/faults.md#f19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from yolo_fs.agents.circuit import (
    Breaker,
    BreakerPolicy,
    OutcomeEvent,
    as_of,
    breakers_after,
    disappearances,
    outcomes_on_branch,
    outcomes_reported,
)
from yolo_fs.agents.health import AT_WORK, AgentHealth, Shutdown, agents_in, judged, shutdowns
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
from yolo_fs.evidence.facts import PhaseFacts, SourceCommit, WorkflowOptions
from yolo_fs.evidence.plan_status import plan_progress
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader, loop_facts
from yolo_fs.history.index import HistoryIndex
from yolo_fs.phase.phase import Phase
from yolo_fs.protocol.roster import Circuit
from yolo_fs.schemas.config import Policy
from yolo_fs.workspace.own_files import CREW_CLOCK
from yolo_fs.workspace.settings import Settings


class AgentsSnapshot(NamedTuple):
    """The agents at one moment."""

    agents: tuple[AgentHealth, ...]
    breakers: tuple[Breaker, ...]
    """One for each active department."""
    shutdowns: tuple[Shutdown, ...]
    late: tuple[Shutdown, ...]
    """Requests past their deadline to which an agent still owes an answer or work."""
    stalls: tuple[Stall, ...]
    findings: tuple[Finding, ...]

    @property
    def open_circuits(self) -> tuple[Breaker, ...]:
        """Breakers that are not closed."""
        return tuple(breaker for breaker in self.breakers if breaker.state is not Circuit.CLOSED)

    def as_json(self) -> dict[str, Any]:
        """Return the snapshot as `status --json` shows it."""
        return {
            "agents": to_json(self.agents),
            "circuits": [circuit_as_json(breaker) for breaker in self.breakers],
            "shutdowns": [
                shutdown_as_json(shutdown, is_late=shutdown in self.late)
                for shutdown in self.shutdowns
            ],
            "stalls": to_json(self.stalls),
        }


class _OpenPhase(NamedTuple):
    """What the branch says of an incomplete phase."""

    phase: Phase
    outcomes: tuple[OutcomeEvent, ...]
    turns: tuple[StepTurn, ...]


class AgentsObserver:
    """Takes snapshots repeatedly, and reads only what has changed."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        facts_reader: FactsReader | None = None,
        *,
        clock: Callable[[], Instant] = read_clock,
    ) -> None:
        """`facts_reader`: caches what an earlier snapshot has read."""
        self._repository = repository
        self._settings = settings
        self._facts_reader = facts_reader or FactsReader(repository, settings)
        self._clock = clock
        self._timers = recall(repository, CREW_CLOCK)
        self._recorded = Recorded()
        self._agents: tuple[AgentHealth, ...] = ()
        self._departments = WorkflowOptions(settings.config).departments
        self._shutdowns: tuple[tuple[Shutdown, ...], tuple[Finding, ...]] = ((), ())
        self.record = AgentJournal(repository.own_dir, settings.limits)

    def look(
        self, verdicts: Mapping[str, Verdict], tip: str | None = "", *, keep: bool = False
    ) -> AgentsSnapshot:
        """Return a snapshot of the agents.

        `tip`: the commit to judge by; empty for the current tip of the branch. `keep`: store the
        start of each timed state for later runs of the program.

        Raises:
            YoloError: OBJECT_MISSING, GIT_FAILED when the history cannot be read.
        """
        now = self._clock()
        recorded = self.record.read(now.wall)
        phases = self.read_phases(self._repository.head().tip if tip == "" else tip)
        if recorded is not self._recorded:
            self._recorded, self._agents, self._shutdowns = (
                recorded,
                agents_in(recorded.seen),
                shutdowns(recorded.seen),
            )
        agents, (requests, unasked) = self._agents, self._shutdowns
        began = self._time(phases, agents, requests, recorded, now, keep=keep)
        there = judged(agents, now.wall, self._policy.agent_silent_s, began)
        circuits = as_of(now.wall, self._breakers(phases, there, recorded), self._patience, began)
        refused = {
            path: verdict
            for path, verdict in verdicts.items()
            if isinstance(verdict, Rejected | Held)
        }
        scenes = (
            _build_stall_input(open_phase, there, circuits, refused, now.wall)
            for open_phase in phases
        )
        return AgentsSnapshot(
            agents=there,
            breakers=circuits,
            shutdowns=requests,
            late=tuple(
                request
                for request in requests
                if not request.is_over and request.is_late(now.wall, began)
            ),
            stalls=tuple(
                each
                for scene in scenes
                for each in stalls(scene, now.wall, self._policy.stall_s, began)
            ),
            findings=(*recorded.findings, *unasked),
        )

    @property
    def _policy(self) -> Policy:
        return self._settings.policy

    def read_phases(self, tip: str | None) -> tuple[_OpenPhase, ...]:
        """Return what a commit says of each open phase."""
        derive, make = self._facts_reader.derive, self._open_phase
        phases = self._facts_reader.phases(tip)
        open_ = (phase for phase in phases if not phase.is_complete)
        return tuple(derive(phase, "agents", partial(make, phase)) for phase in open_)

    def _open_phase(self, phase: Phase) -> _OpenPhase:
        known = loop_facts(self._facts_reader, phase.facts, 0)
        done = task_commits(phase.facts, self._facts_reader.history_index)
        return _OpenPhase(phase, tuple(outcomes_on_branch(known, done)), turns_of(phase, done))

    def _breakers(
        self, phases: Iterable[_OpenPhase], agents: Iterable[AgentHealth], recorded: Recorded
    ) -> tuple[Breaker, ...]:
        """Return the breakers after the last outcome."""
        outcomes = list(disappearances(agents))
        for open_phase in phases:
            outcomes += open_phase.outcomes
            if recorded.seen:
                outcomes += outcomes_reported(open_phase.phase.facts, recorded.seen)
        return breakers_after(outcomes, self._departments, self._patience)

    @property
    def _patience(self) -> BreakerPolicy:
        return BreakerPolicy(self._policy.circuit_failures, self._policy.circuit_open_s)

    def _time(
        self,
        phases: tuple[_OpenPhase, ...],
        agents: tuple[AgentHealth, ...],
        requests: Iterable[Shutdown],
        recorded: Recorded,
        now: Instant,
        *,
        keep: bool,
    ) -> dict[str, datetime]:
        """Return when each timed state began, by the monotonic clock."""
        before = self._timers
        known = (
            {key: before.began(key, now) for key in before.since_s}
            if before.boot == now.boot
            else {}
        )
        there = judged(agents, now.wall, self._policy.agent_silent_s, known)
        open_ = as_of(now.wall, self._breakers(phases, there, recorded), self._patience, {})
        turns = {
            **{agent.key: agent.seen for agent in agents if agent.health in AT_WORK},
            **{
                breaker.key: breaker.opened_at
                for breaker in open_
                if breaker.opened_at and breaker.state is not Circuit.CLOSED
            },
            **{request.key: request.asked_at for request in requests if not request.is_over},
            **{
                turn.key: turn.moved_at
                for open_phase in phases
                for turn in awaited(open_phase.turns, agents)
            },
        }
        self._timers = before.look(turns, now)
        if keep and (before.boot, before.since_s) != (self._timers.boot, self._timers.since_s):
            note(self._repository, CREW_CLOCK, self._timers)
        return {key: self._timers.began(key, now) for key in turns}


def task_commits(facts: PhaseFacts, history_index: HistoryIndex) -> dict[str, SourceCommit]:
    """Return the commits of a phase's tasks under their full names."""
    named = {task.commit for plan in plan_progress(facts) for task in plan.tasks}
    return {oid: commit for oid in named if oid and (commit := history_index.commit(oid))}


def _build_stall_input(
    open_phase: _OpenPhase,
    agents: tuple[AgentHealth, ...],
    circuits: tuple[Breaker, ...],
    verdicts: Mapping[str, Verdict],
    now: datetime,
) -> StallInput:
    known_escalations = escalations(open_phase.phase.facts.ask(logged), now)
    return StallInput(
        open_phase.phase, open_phase.turns, agents, circuits, known_escalations, verdicts
    )


def circuit_as_json(breaker: Breaker) -> dict[str, Any]:
    """Return a breaker as JSON: the message of document 000, and the reason."""
    return {**breaker.as_message(), "why": breaker.why}


def shutdown_as_json(shutdown: Shutdown, *, is_late: bool) -> dict[str, Any]:
    """Return a request to stop as JSON."""
    return {
        "id": shutdown.id,
        "by": shutdown.by,
        "department": to_json(shutdown.department),
        "reason": shutdown.reason,
        "asked_at": to_json(shutdown.asked_at),
        "deadline_seconds": shutdown.deadline_s,
        "deadline_passed": is_late,
        "asked": to_json(shutdown.asked),
    }


def tally_of(facts_reader: FactsReader, facts: PhaseFacts) -> tuple[DepartmentTotals, ...]:
    """Return the totals of each department of a phase, with what its Devs reported."""
    journal = AgentJournal(facts_reader.repository.own_dir, facts_reader.settings.limits)
    done = task_commits(facts, facts_reader.history_index)
    return tally(Phase(facts), done, journal.read(datetime.now(UTC)).seen)
