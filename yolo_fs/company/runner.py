"""The runner: starts an agent for each act that the branch waits for, watches it, and trusts only
the branch.

It makes no decisions: `phase.acts` names the acts, the tables define who reports to whom, and an
act is done when the branch no longer waits for it. The state of a killed runner is in `state.db`
and in git; the next one continues from there.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from yolo_fs.agents.access import Access
from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.verdicts import Held, Rejected
from yolo_fs.authority.actors import superiors
from yolo_fs.company import agents
from yolo_fs.company.advice import Advice, act_of_advice, decision_of
from yolo_fs.company.answers import (
    NOTHING_SPOKEN,
    OPTION,
    Spoken,
    contents_in,
    decision_in,
    put,
    spoken_by,
)
from yolo_fs.company.brief import brief_of, variables_of
from yolo_fs.company.hosts import HostProgram, notes_in
from yolo_fs.company.roles import gaps_of, make_plugin, path_with_us
from yolo_fs.company.runs import FOLDER, Run, RunAct, new_run, runs, save
from yolo_fs.company.source import source_of
from yolo_fs.company.team_size import with_team
from yolo_fs.core.ids import EscalationId, PhaseId, TaskRef
from yolo_fs.core.reasons import Reason, YoloError, safe, shortened
from yolo_fs.escalation_service.moves import Escalations
from yolo_fs.escalations.lines import EscalationRequest, resumes
from yolo_fs.evidence.facts import plans_of
from yolo_fs.git.history import log
from yolo_fs.git.repository import Repository
from yolo_fs.history.team import Team
from yolo_fs.moments.inbox import InboxItem
from yolo_fs.moments.moment import StatusObserver
from yolo_fs.phase.acts import Act, act_of_stage, acts_of
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import Next
from yolo_fs.progress.signoff import PhaseSignOff
from yolo_fs.progress.workflow import facts_of
from yolo_fs.protocol.chains import CHAINS, GOES_ON
from yolo_fs.protocol.departments import Dept, Role
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.reports.status import Candidate, CandidateState, report
from yolo_fs.system.lock import hold, holder
from yolo_fs.system.store import private_directory
from yolo_fs.tasks.service import commit_task
from yolo_fs.workspace import Settings, company_lock_path, load

TICK_S = 0.03
"""Seconds between two checks of the processes and the branch."""
_SETTLE_S = 1.0
"""Seconds, beyond the daemon's quiet time, until the branch must have an agent's files."""
_FOLLOWS_S = 15.0
"""Seconds until the escalation log must show that a task continues, once a commit shows it."""
_PENDING_S = 40.0
"""Seconds that a file may be pending: longer than the daemon waits for the end of a last line."""
_PATIENCE_S = {
    CandidateState.COMMITTED: 0.0,
    CandidateState.PENDING: _PENDING_S,
    CandidateState.HELD: 15.0,
    CandidateState.REJECTED: 0.0,
}
"""Seconds that an agent's file may stay in a state: most held files wait for another git process.
"""
_GIVEN_UP = "agent"
"""Kind of the inbox for an act that was given up."""
_ASKED = frozenset({"escalation", "decision", "deadlock"})
"""Kinds of the inbox that block a run whose act is a person's."""
_TRIES = 2
"""Times that an act is tried before the next level is asked, and again once that has decided."""
_SHOWN = 5
"""Findings of one file that are passed to the next try."""
_MOST_STARTS = 8
"""Starts of an act in one run, whatever its effect; more would be a loop."""
_LIMIT_WAITS_S = (30.0, 60.0, 120.0, 300.0)
"""Seconds without new starts after a host's rate limit: the first time, the second …"""
_STREAM_BYTES = 64 * 1024 * 1024
"""Maximum size of an act's stream; an agent that prints more is ended."""
_LONGEST_TEXT = 60
_DONE = "as specified"
"""What the subject of a commit says, where its agent says nothing that fits."""
_READ_BYTES = 1 << 20
_TAIL_BYTES = 4096
_COMMITS_LOOKED_AT = 50


class RunOutcome(StrEnum):
    """How a run ended."""

    SHIPPED = "shipped"
    DONE = "done"
    """A chain that ships nothing is complete."""
    WAITS = "waits for a person"
    GIVEN_UP = "given up"
    BUDGET = "budget used up"
    INTERRUPTED = "interrupted"


class RunOptions(NamedTuple):
    """Options of a run."""

    max_agents: int = 3
    budget_usd: float | None = None
    max_tokens: int | None = None
    approve: frozenset[str] = frozenset()
    """`plan` and `ship`: points where a person is asked although no decision is required."""
    chain: str = ""
    """The command of the routing table, if it is not go."""
    team: str = ""
    """The size of the team; empty for the configured one."""


class RunResult(NamedTuple):
    """The result of a run."""

    outcome: RunOutcome
    run: Run
    waiting: tuple[InboxItem, ...] = ()
    given_up: tuple[str, ...] = ()
    """Why acts were given up, with what their agents left."""


Listener = Callable[[str, Mapping[str, Any]], None]
"""Receives each event: its name and its data."""
Ask = Callable[[Sequence[InboxItem]], Collection[str]]
"""Asks a person, and returns the ids of the settled items."""


@dataclass
class _Working:
    """An agent at work."""

    act: Act
    record: RunAct
    folder: str
    process: agents.Process
    child: subprocess.Popen[bytes] | None
    """None if an earlier runner started it."""
    read: int = 0
    """Bytes of its stream that are already parsed."""
    sign_at: float = field(default_factory=time.monotonic)
    stamps: tuple[object, ...] = ()
    asked_at: float | None = None
    """When it was asked to stop."""
    ended_at: float | None = None
    is_limited: bool = False
    answer: str = ""
    """Its last message, if its host reports it."""
    why: str = ""
    """Why we asked it to stop or ended it, or why its answer or its source could not be taken;
    empty otherwise.
    """

    @property
    def exit_code(self) -> int | None:
        return self.child.returncode if self.child else None


class Runner:
    """Runs one phase."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        phase: PhaseId,
        host: HostProgram,
        options: RunOptions,
        tell: Listener,
        ask: Ask = lambda _: (),
    ):
        """`tell`: receives every event.

        `ask`: called when the run needs a person; by default nobody answers.
        """
        self._repository, self._settings, self._id = repository, settings, phase
        self._host, self._options, self._tell, self._ask = host, options, tell, ask
        self._budget = options.budget_usd, options.max_tokens
        self._team = Team(repository, settings)
        self._working: list[_Working] = []
        self._failures: dict[tuple[str, ...], tuple[tuple[object, ...], list[str]]] = {}
        """Act → what it lacked when it was tried, and why each try failed."""
        self._starts: dict[tuple[str, ...], int] = {}
        self._given_up: dict[tuple[str, ...], tuple[tuple[object, ...], str]] = {}
        """Act → what it lacked when it was given up, and why."""
        self._asked: dict[tuple[str, ...], tuple[object, ...]] = {}
        """Escalated act → what it lacked, until the branch has the escalation."""
        self._advice: dict[tuple[str, ...], Advice] = {}
        """Act → the decision that its agent's report-to is asked for, until the branch has it."""
        self._advised: dict[tuple[str, ...], tuple[object, ...]] = {}
        """Act → what it lacked when its agent's report-to was asked."""
        self._approved: set[str] = set()
        """What a person has approved before an act."""
        self._limits = 0
        self._wait_until = 0.0
        self._interrupts = 0
        self._run = new_run(str(phase), "", host.name)
        self._tip: str | None = ""
        self._acts: tuple[Act, ...] = ()
        self._phase: Phase | None = None
        self._analysis_wanted = False
        self._quiet_from: float | None = None
        self._quiet_tip: str | None = None
        """The tip of the branch since nothing could be started."""

    # --- the run ----------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Start no more agents; when called again, end those at work."""
        self._interrupts += 1

    @property
    def working(self) -> Sequence[RunAct]:
        """The acts at work."""
        return [worker.record for worker in self._working]

    def run(self, intent: str, *, analyze: bool) -> RunResult:
        """Run until the phase is shipped or the run is blocked.

        `analyze`: classify the intent first.
        """
        with self._alone():
            self._take_over(intent)
            self._tell("run.started", {"run": self._run.id, "phase": str(self._id)})
            self._analysis_wanted = analyze
            try:
                outcome, waiting = self._loop()
            except BaseException:
                self._end_all("the runner failed")
                self._end_run("failed")
                raise
            given_up = tuple(self._given_up[act.key][1] for act in self._hopeless_acts)
            if outcome is RunOutcome.GIVEN_UP and not given_up:
                given_up = tuple(map(_describe_unfinished, self._open_acts)) or (_NOTHING_OPEN,)
            self._end_run(outcome.value, given_up)
            return RunResult(outcome, self._run, waiting, given_up)

    def _end_run(self, outcome: str, given_up: Sequence[str] = ()) -> None:
        now, self._run.given_up = time.time(), list(given_up)
        for act in self._run.acts:
            if act.ended is None:
                act.ended, act.outcome = now, "ended with its run"
        self._run.ended, self._run.outcome = now, outcome
        save(self._repository, self._run)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._repository.make_own_dir()
        lock = company_lock_path(self._repository)
        held = hold(lock)
        if held is None:
            other = holder(lock)
            who = f"process {other.pid}" if other and other.pid else "another process"
            raise YoloError(
                Reason.LOCK_TIMEOUT,
                f"{who} runs the company here already",
                hint="'yolo-fs company runs' shows what it does; end it with Ctrl-C where it runs.",
            )
        with held:
            private_directory(os.path.join(self._repository.own_dir, FOLDER))
            yield

    def _take_over(self, intent: str) -> None:
        """Continue an unfinished run, with the agents that it left."""
        left = [old_run for old_run in runs(self._repository) if old_run.ended is None]
        for run in left:
            if run.phase == str(self._id):
                self._run = run
            self._adopt(run)
            if run is not self._run:
                run.ended, run.outcome = time.time(), "the runner ended"
                save(self._repository, run)
        self._run.intent = intent or self._run.intent
        save(self._repository, self._run)

    def _adopt(self, run: Run) -> None:
        for record in run.acts:
            if record.ended is not None:
                continue
            folder = run.folder(self._repository, record)
            process = agents.found_in(folder)
            turn = Next(record.step, record.agent, (), record.task)
            department = Dept(record.department) if record.department else None
            act = self._find_same_act(record.key) or Act(turn, department)
            if process is None or not process.is_alive or run.phase != str(self._id):
                if process is not None:
                    agents.end_group(process)
                    if run.host == self._host.name:
                        self._bill(_Working(act, record, folder, process, None))
                record.ended, record.outcome = time.time(), "left by a runner that ended"
                continue
            record.tokens, record.cost_usd = 0, 0.0  # its stream is read anew from its beginning
            self._working.append(_Working(act, record, folder, process, None))
            self._tell("agent.found", self._about(record) | {"pid": process.pid})

    def _bill(self, left: _Working) -> None:
        """Add the usage of an agent that ended while no runner was watching."""
        left.record.tokens, left.record.cost_usd = 0, 0.0
        left.ended_at, left.is_limited = (
            time.monotonic(),
            True,
        )  # its host may be asked again by now
        self._read_to_end(left)

    def _find_same_act(self, key: Sequence[str]) -> Act | None:
        self._look()
        return next((act for act in self._acts if list(act.key) == list(key)), None)

    def _loop(self) -> tuple[RunOutcome, tuple[InboxItem, ...]]:
        while True:
            self._watch()
            self._look()
            phase = self._phase
            if not self._working and (ended := self._ended(phase)):
                return ended, ()
            may_start = not self._interrupts and not self._is_over_budget
            started = self._start_some() if may_start else False
            if self._interrupts > 1:
                self._end_all("interrupted")
            if not self._working and not started:
                if self._interrupts:
                    return RunOutcome.INTERRUPTED, ()
                if self._is_over_budget:
                    item = self._build_budget_item()
                    if self._is_settled((item,)):
                        self._raise_budget()
                    elif not self._interrupts:
                        return RunOutcome.BUDGET, (item,)
                elif not self._may_start_later() and self._is_quiet():
                    waiting = tuple(self._waiting())
                    if self._is_settled(waiting) or self._interrupts:
                        continue
                    waits = any(one.kind != _GIVEN_UP for one in waiting)
                    return (RunOutcome.WAITS if waits else RunOutcome.GIVEN_UP), waiting
            time.sleep(TICK_S)

    def _is_settled(self, items: Sequence[InboxItem]) -> bool:
        """Ask a person, and return whether any item was settled, so that the run continues."""
        if not items or self._interrupts:
            return False
        settled = {name for name in self._ask(items) if not self._interrupts}
        self._approved |= settled
        for act in self._hopeless_acts:
            if _name_of_approval(act) in settled:
                self._given_up.pop(act.key)
                self._advised.pop(act.key, None)
        self._quiet_from = None
        return bool(settled)

    def _raise_budget(self) -> None:
        """Raise the budget by its original amount."""
        money, tokens = self._budget
        if money is not None:
            money += self._run.cost_usd
        if tokens is not None:
            tokens += self._run.tokens
        self._options = self._options._replace(budget_usd=money, max_tokens=tokens)

    def _ended(self, phase: Phase | None) -> RunOutcome | None:
        """Return the outcome of a run that has nothing left to do; None while it has."""
        if phase is None or self._stage() is not None:
            return None
        if self._ends_with_its_chain:
            return RunOutcome.DONE
        return RunOutcome.SHIPPED if phase.is_complete else None

    # --- what the branch waits for ----------------------------------------------------------------

    def _look(self) -> None:
        tip = self._repository.head().tip
        if tip == self._tip:
            return
        self._tip = tip
        self._settings = with_team(load(self._repository.root), self._options.team)
        facts = facts_of(self._repository, self._settings, self._team, self._id)
        self._phase = Phase(facts)
        self._acts = acts_of(self._phase)
        open_ = {act.key: act.basis for act in self._acts}
        self._asked = {key: basis for key, basis in self._asked.items() if open_.get(key) == basis}
        for key, advice in [*self._advice.items()]:
            if self._blobs(advice.own) != advice.before:
                del self._advice[key]
                said = f"{advice.own.agent} decided: {decision_of(self._phase)}"
                self._failures[key] = advice.about.basis, [*advice.tried, said]

    def _is_quiet(self) -> bool:
        """Return whether the branch has everything that was written, such as a person's answer.

        Also true once there was enough time for it: a held file waits for another git process,
        mostly one of our own daemon.
        """
        status_report = report(self._repository, self._settings)
        patience_s = max(
            (_PATIENCE_S[candidate.standing] for candidate in status_report.listing.unsettled),
            default=0,
        )
        if self._asked:  # the branch is about to have what was handed up
            patience_s = _PENDING_S
        now = time.monotonic()
        if self._quiet_from is None or self._quiet_tip != self._tip:
            self._quiet_from, self._quiet_tip = now, self._tip
        is_over = now - self._quiet_from >= patience_s
        return is_over and self._repository.head().tip == self._tip

    @property
    def _open_acts(self) -> tuple[Act, ...]:
        first = self._stage() or self._analysis()
        if first is None and self._ends_with_its_chain:
            return ()  # its last agent may still be about to end
        return tuple(map(self._replace_by_advice, (first,) if first else self._acts))

    def _replace_by_advice(self, act: Act) -> Act:
        """Return the act of whoever is asked how to go on with an act; else the act itself."""
        advice = self._advice.get(act.key)
        return advice.own if advice and advice.about.basis == act.basis else act

    @property
    def _ends_with_its_chain(self) -> bool:
        return bool(self._options.chain) and self._options.chain not in GOES_ON

    def _stage(self) -> Act | None:
        """Return the first act of the run's chain that is not done; None if all are."""
        if self._phase is None:
            return None
        for stage in CHAINS.get(self._options.chain, ()):
            does = f"{stage.does}: {safe(self._run.intent, 300)}"
            act = act_of_stage(self._phase, stage.role, stage.kind, stage.step, does)
            now = self._blobs(act)
            begun = [run_act for run_act in self._run.acts if run_act.key == list(act.key)]
            if not any(run_act.before != now or run_act.outcome == "done" for run_act in begun):
                lack = f"{act.writes[0]} is not there"
                if now != "-":
                    lack = f"{act.writes[0]} is what it was before ({now[:12]}): add to it"
                return act._replace(lacks=(lack,))
        return None

    def _blobs(self, act: Act) -> str:
        tip = self._repository.head().tip
        return ",".join(self._repository.blob_at(tip, path) or "-" for path in act.writes)

    def _analysis(self) -> Act | None:
        """Return the first act for an intent: what it is, and how much of the company it needs."""
        phase = self._phase
        if not self._analysis_wanted or phase is None or phase.facts.of_kind("analysis"):
            return None
        turn = Next("po", Role.ANALYZE.value, ("the intent", "codebase"), act="classifies the work")
        act = Act(turn, None, writes=(f"{phase.facts.folder}/analysis.json",))
        return None if self._is_hopeless(act) else act

    def _is_hopeless(self, act: Act) -> bool:
        """Return whether an act was given up and nothing it depends on has changed since."""
        given_up, _ = self._given_up.get(act.key, (None, ""))
        return act.basis in (given_up, self._asked.get(act.key))

    @property
    def _hopeless_acts(self) -> Sequence[Act]:
        """The open acts that were given up."""
        acts = [act for act in self._open_acts if act.key in self._given_up]
        return [act for act in acts if self._is_hopeless(act)]

    def _waiting(self) -> Iterator[InboxItem]:
        """Yield what a person has to do before the run can continue.

        That is in the inbox, or the run itself asks: for approval at a checkpoint from its options,
        or whether to retry an act that was given up.
        """
        acts = self._open_acts
        for act in acts:
            if question := self._checkpoint_before(act):
                name = _name_of_approval(act)
                sentence = f"{question}: {act.turn.sentence}"
                yield InboxItem(name, "approval", "", sentence, (), self._go_on)
        for act in self._hopeless_acts:
            sentence = f"{self._given_up[act.key][1]}: try it again?"
            yield InboxItem(_name_of_approval(act), _GIVEN_UP, "", sentence, (), self._go_on)
        asks = any(act.is_of_person for act in acts)
        written = {path for act in acts for path in act.writes}
        with closing(StatusObserver(self._repository)) as observer:
            items = observer.look().inbox
        yield from (
            inbox_item
            for inbox_item in items
            if inbox_item.id in written or (asks and inbox_item.kind in _ASKED)
        )

    @property
    def _go_on(self) -> str:
        return f"yolo-fs go --phase {int(self._id.number)}"

    def _checkpoint_before(self, act: Act) -> str:
        """Return what a person has to approve before an act; empty if nothing."""
        step = act.turn.step
        if _name_of_approval(act) in self._approved:
            return ""
        if step == "design_review" and "plan" in self._options.approve:
            return "approve the plan"
        if step == "signoff" and act.turn.command and "ship" in self._options.approve:
            return "approve the sign-off"
        return ""

    def _build_budget_item(self) -> InboxItem:
        spent = f"{self._run.cost_usd:.2f} USD, {self._run.tokens} tokens"
        return InboxItem("budget", "budget", "", f"{spent} are used up: go on?", (), self._go_on)

    @property
    def _is_over_budget(self) -> bool:
        money, tokens = self._options.budget_usd, self._options.max_tokens
        return (money is not None and self._run.cost_usd >= money) or (
            tokens is not None and self._run.tokens >= tokens
        )

    # --- starting ---------------------------------------------------------------------------------

    def _may_start_later(self) -> bool:
        return time.monotonic() < self._wait_until and bool(list(self._find_startable_acts()))

    def _find_startable_acts(self) -> Iterator[Act]:
        busy = {worker.act.key for worker in self._working}
        occupied = {worker.record.agent for worker in self._working}
        for act in self._open_acts:
            is_free = act.key not in busy and act.agent not in occupied
            is_free = is_free and not self._is_hopeless(act) and not self._is_made_for(act)
            if is_free and not act.is_of_person and not self._checkpoint_before(act):
                yield act

    def _is_made_for(self, act: Act) -> bool:
        """Return whether an agent still works on the input of an act.

        It may still change files that the branch already has.
        """
        open_ = {open_act.key for open_act in self._open_acts}
        made = [worker.act.department for worker in self._working if worker.act.key not in open_]
        return any(
            act.department == department or None in (act.department, department)
            for department in made
        )

    def _start_some(self) -> bool:
        """Start one act that is ready, or do one that needs no agent; return whether there was
        one.
        """
        if time.monotonic() < self._wait_until:
            return False
        for act in self._find_startable_acts():
            if len(self._working) >= self._options.max_agents:
                return False
            if act.turn.step == "signoff" and act.turn.command:
                if not self._working:
                    self._sign_off(act)
                    return True
                continue
            self._start(act)
            return True
        return False

    def _sign_off(self, act: Act) -> None:
        """Run the command of step 11 in the Lead's name: the step writes no file by hand."""
        assert self._phase is not None
        by = Access(self._repository, self._settings, self._team).actor(act.agent)
        try:
            done = PhaseSignOff(self._repository, self._settings, self._team).sign(self._phase, by)
            state, lacking = done.state, "; ".join(map(str, done.findings)) if done.missing else ""
        except YoloError as error:
            state, lacking = "refused", f"{error.reason.value}: {error.message}"
        if lacking:
            self._given_up[act.key] = act.basis, safe(f"{act.turn.sentence}: {lacking}", 1000)
        self._tell("signoff", {"phase": str(self._id), "state": state})
        self._tip = ""

    def _start(self, act: Act) -> None:
        assert self._phase is not None
        self._quiet_from = None
        key, reasons = act.key, self._reasons_of(act)
        attempt = len(reasons) + 1 - (self._advised.get(key) == act.basis)
        self._starts[key] = self._starts.get(key, 0) + 1
        record = RunAct(
            len(self._run.acts) + 1, act.agent, act.department or "", act.turn.step,
            act.turn.task, attempt, time.time(), key=list(key), before=self._blobs(act),
        )  # fmt: skip
        self._run.acts.append(record)
        save(self._repository, self._run)
        folder = self._run.folder(self._repository, record)
        make_plugin(self._repository, self._host.command)
        words = self.words_of(act)
        brief = brief_of(
            self._phase,
            act,
            self._run.intent,
            reasons,
            self._spoken_of(act),
            can_commit=self._host.can_commit,
        )
        path = os.path.join(folder, agents.BRIEF)
        more = {**variables_of(self._phase, act, self._run.id, path, attempt), **path_with_us()}
        try:
            child, process = agents.start(words, self._repository.root, folder, brief, more)
        except YoloError:
            record.ended, record.outcome = time.time(), "could not be started"
            save(self._repository, self._run)
            raise
        working = _Working(act, record, folder, process, child)
        working.stamps = self._stamps(act)
        self._working.append(working)
        self._tell("agent.started", self._about(record) | {"does": act.turn.sentence})

    def words_of(self, act: Act) -> list[str]:
        """Return the command line of an act."""
        return self._host.words(gaps_of(self._repository, act, self._host.command))

    def preview(self, intent: str, *, analyze: bool) -> Iterator[tuple[Act, list[str], str]]:
        """Yield each act that would be started now, its command line and its brief."""
        self._run.intent, self._analysis_wanted = intent, analyze
        self._look()
        assert self._phase is not None
        for act in self._open_acts:
            brief = brief_of(
                self._phase, act, intent, (), self._spoken_of(act), can_commit=self._host.can_commit
            )
            yield act, self.words_of(act), brief

    def _reasons_of(self, act: Act) -> list[str]:
        basis, reasons = self._failures.get(act.key, (act.basis, []))
        return reasons if basis == act.basis else []

    # --- watching ---------------------------------------------------------------------------------

    def _watch(self) -> None:
        for worker in list(self._working):
            self._read(worker)
            if worker.ended_at is None and self._has_ended(worker):
                worker.ended_at = time.monotonic()
                agents.end_group(worker.process)
                self._read_to_end(worker)
                self._put_answer(worker)
                if not self._host.can_commit and not worker.exit_code and not worker.why:
                    self._commit_source(worker)
            if worker.ended_at is None:
                self._hold_to_time(worker)
            elif self._is_judged(worker):
                self._working.remove(worker)

    def _has_ended(self, worker: _Working) -> bool:
        if worker.child is not None:
            return worker.child.poll() is not None
        return not worker.process.is_alive

    def _read(self, worker: _Working) -> None:
        """Parse the new part of an agent's stream."""
        with suppress(OSError), agents.printed(worker.folder, agents.STREAM) as file:
            size = os.fstat(file.fileno()).st_size
            if size > _STREAM_BYTES and worker.ended_at is None:
                worker.why = worker.why or "it printed too much"
                agents.end_group(worker.process)
                return
            if size <= worker.read:
                return
            file.seek(worker.read)
            data = file.read(_READ_BYTES)
        end = data.rfind(b"\n") + 1
        if not end and len(data) < _READ_BYTES and worker.ended_at is None:
            return
        worker.read += end or len(data)
        worker.sign_at = time.monotonic()
        for note in notes_in(self._host, data[: end or len(data)]):
            worker.record.tokens += note.tokens
            worker.record.cost_usd += note.cost_usd
            worker.record.tool = note.tool or worker.record.tool
            worker.answer = note.answer or worker.answer
            if note.is_limited and not worker.is_limited:
                worker.is_limited = True
                self._limit(worker)

    def _read_to_end(self, worker: _Working) -> None:
        before = -1
        while worker.read != before:
            before = worker.read
            self._read(worker)

    def _spoken_of(self, act: Act) -> Spoken:
        if not self._host.keeps_to_roster:
            return NOTHING_SPOKEN
        access = Access(self._repository, self._settings, self._team)
        return spoken_by(access.actor(act.agent), act.writes, act.turn.command)

    def _put_answer(self, worker: _Working) -> None:
        """Carry out what an agent's answer contains for lack of a tool.

        Files that the agent has changed itself stay.
        """
        spoken = self._spoken_of(worker.act)
        if worker.why or not worker.answer or self._stamps(worker.act) != worker.stamps:
            return
        try:
            if contents := contents_in(worker.answer, spoken.files):
                put(self._repository.root, contents)
            if spoken.decides and (escalation := _escalation_of(worker.act)):
                self._record(escalation, worker.act.agent, *decision_in(worker.answer))
        except YoloError as error:
            worker.why = error.message

    def _commit_source(self, one: _Working) -> None:
        """Commit what an agent has made whose host lets it commit nothing, in its name."""
        assert self._phase is not None
        for task, type_, paths in source_of(self._phase, one.act):
            try:
                words = one.answer.strip().partition("\n")[0]
                text = words if safe(words) == words and 0 < len(words) < _LONGEST_TEXT else _DONE
                agent = one.act.agent
                commit_task(self._repository, self._team, task, type_, text, paths, agent)
            except YoloError as error:
                if error.reason is not Reason.UNCHANGED:
                    one.why = error.message

    def _record(self, name: EscalationId, agent: str, move: str, text: str) -> None:
        """Record a decision or an escalation to the next level in an agent's name."""
        service = Escalations(self._repository, self._settings)
        why, *options = (safe(part.strip(), 1000) for part in text.split(OPTION))
        request = EscalationRequest(agent=agent, reason=why)
        if move == "Decision":
            service.resolve(name, request._replace(decision=safe(text, 1000)))
        elif move:
            best = options[0] if options else why
            full_request = request._replace(
                evidence=(why,), options=tuple(options), recommendation=best
            )
            service.raise_(name, full_request)

    def _limit(self, worker: _Working) -> None:
        wait_s = _LIMIT_WAITS_S[min(self._limits, len(_LIMIT_WAITS_S) - 1)]
        self._limits += 1
        self._wait_until = time.monotonic() + wait_s
        self._tell("host.limited", self._about(worker.record) | {"wait_s": wait_s})

    def _stamps(self, act: Act) -> tuple[object, ...]:
        stamps = []
        for path in act.writes:
            with suppress(OSError):
                status = os.stat(os.path.join(self._repository.root, path))
                stamps.append((path, status.st_mtime_ns, status.st_size))
        return tuple(stamps)

    def _hold_to_time(self, worker: _Working) -> None:
        """Ask an agent to stop after too long a silence; end it after the deadline."""
        now, rules = time.monotonic(), self._settings.config.company
        if worker.asked_at is not None:
            if now - worker.asked_at > rules.deadline_s:
                self._tell(
                    "agent.ended", self._about(worker.record) | {"why": "ignored the deadline"}
                )
                agents.end_group(worker.process)
            return
        if now - worker.sign_at <= rules.silent_s:
            return
        stamps = self._stamps(worker.act)
        if stamps != worker.stamps:
            worker.stamps, worker.sign_at = stamps, now
            return
        self._ask_to_stop(worker, f"it was silent for {rules.silent_s} s")

    def _ask_to_stop(self, worker: _Working, why: str) -> None:
        worker.asked_at, worker.why = time.monotonic(), why
        deadline_s = self._settings.config.company.deadline_s
        agents.ask_to_stop(worker.process, worker.folder, deadline_s, "timeout")
        self._tell("agent.asked_to_stop", self._about(worker.record) | {"why": why})

    def _end_all(self, why: str) -> None:
        for worker in self._working:
            worker.why = worker.why or why
            agents.end_group(worker.process)

    # --- judging ----------------------------------------------------------------------------------

    def _is_judged(self, worker: _Working) -> bool:
        """Return whether the result of an ended agent is known."""
        assert worker.ended_at is not None
        self._look()
        waited_s = time.monotonic() - worker.ended_at
        settle_s = _FOLLOWS_S if self._is_carried_on(worker) else _SETTLE_S
        settle_s += self._settings.policy.settle_ms / 1000
        same = next((act for act in self._open_acts if act.key == worker.act.key), None)
        if same is None or same.basis != worker.act.basis:
            if waited_s < settle_s and self._has_written_again(worker.act):
                return False
            if not self._host.can_commit and worker.act.role == Role.TESTER:
                self._commit_source(worker)  # the branch has the plan of the tests now
            self._close(worker, "done")
            self._failures.pop(worker.act.key, None)
            if same is not None and self._starts.get(worker.act.key, 0) >= _MOST_STARTS:
                self._escalate(same, [f"it was started {_MOST_STARTS} times, and is not over"])
            return True
        if waited_s < settle_s and self._is_unseen(worker.act):
            return False
        mine = self._unsettled_of(worker.act)
        patience_s = max((_PATIENCE_S[each.standing] for each in mine), default=0.0)
        if waited_s < patience_s:
            return False
        self._fail(
            worker, same, [reason for each in mine for reason in _refusals(each.path, each.verdict)]
        )
        return True

    def _unsettled_of(self, act: Act) -> Sequence[Candidate]:
        """Return the files of an act that differ from the branch."""
        status_report = report(self._repository, self._settings)
        return [each for each in status_report.listing.unsettled if each.path in act.writes]

    def _has_written_again(self, act: Act) -> bool:
        """Return whether another version of an act's files is about to be committed."""
        pending = CandidateState.PENDING
        return any(each.standing is pending for each in self._unsettled_of(act))

    def _is_carried_on(self, worker: _Working) -> bool:
        """Return whether a commit since its start continues a task whose escalation is open."""
        escalation, tip = _escalation_of(worker.act), self._repository.head().tip
        if escalation is None or tip is None:
            return False
        return any(
            commit.at_s >= int(worker.record.started)
            and resumes(escalation, commit.subject, is_only=True)
            for commit in log(self._repository, tip, limit=_COMMITS_LOOKED_AT)
        )

    def _is_unseen(self, act: Act) -> bool:
        """Return whether something of an act may still arrive on the branch."""
        for path in act.writes:
            full = os.path.join(self._repository.root, path)
            if os.path.lexists(full) and self._stamps(act):
                return True
        return bool(act.turn.command)

    def _fail(self, worker: _Working, act: Act, refused: Sequence[str]) -> None:
        reasons = list(refused)
        if worker.why:
            reasons.append(worker.why)
        if worker.exit_code:
            said = f", saying: {safe(worker.answer.strip(), 300)}" if worker.answer.strip() else ""
            reasons.append(f"its process ended with {_ending(worker.exit_code)}{said}")
        missing = [path for path in act.writes if not self._is_there(path)]
        if missing:
            reasons.append(f"not written: {', '.join(missing)}")
        reasons += self._explain_refused_source(act)
        lacks = shortened(act.lacks, 3, shown_by="'yolo-fs workflow next'", between="; ")
        reasons += [lacks or act.turn.why] if lacks or act.turn.why else []
        if act.writes and not refused and not missing:
            had = worker.record.before
            is_same = "-" not in had and self._blobs(act) == had
            if is_same or self._stamps(act) == worker.stamps:
                reasons.append("its files have nothing new")
        if last := _read_last_error(worker.folder):
            reasons.append(f"it said: {last}")
        reasons = reasons or ["nothing of it is on the branch"]
        if worker.is_limited:  # the host was refused, not the agent
            self._close(worker, "limited by its host")
            return
        self._close(worker, f"not enough: {reasons[0]}")
        basis, before = self._failures.get(act.key, (act.basis, []))
        tried = [*(before if basis == act.basis else []), "; ".join(reasons)]
        self._failures[act.key] = (act.basis, tried)
        most = 2 * _TRIES + 1 if self._advised.get(act.key) == act.basis else _TRIES
        if len(tried) >= most or self._starts.get(act.key, 0) >= _MOST_STARTS:
            self._escalate(act, tried)

    def _explain_refused_source(self, act: Act) -> list[str]:
        """Return what prevents the source of a task from being committed."""
        sources = [path for path in act.writes if not path.startswith(f"{PLANNING_ROOT}/")]
        if not act.task or not sources:
            return []
        access = Access(self._repository, self._settings, self._team)
        with suppress(YoloError):
            actor = access.actor(act.agent)
            refused = [access.write(actor, f"{self._repository.root}/{path}") for path in sources]
            reasons = [
                f"{path} is not {act.agent}'s: {decision.rule}"
                for path, decision in zip(sources, refused, strict=True)
                if not decision.allowed
            ]
            return reasons or [f"no commit of {act.task} is on the branch"]
        return []

    def _is_there(self, path: str) -> bool:
        return os.path.lexists(os.path.join(self._repository.root, path))

    def _close(self, worker: _Working, outcome: str) -> None:
        worker.record.ended, worker.record.outcome = time.time(), outcome
        save(self._repository, self._run)
        spent = {"tokens": worker.record.tokens, "cost_usd": worker.record.cost_usd}
        details = self._about(worker.record) | {"outcome": outcome} | spent
        self._tell("agent.done" if outcome == "done" else "agent.failed", details)

    # --- up the chain -----------------------------------------------------------------------------

    def _escalate(self, act: Act, tried: Sequence[str]) -> None:
        """Hand an act that its agent does not get done to the next level: by the log of
        escalations; what is about no task, by a decision of its report-to; then it is given up,
        and says so.
        """
        self._failures.pop(act.key, None)
        self._starts.pop(act.key, None)
        try:
            moved = self._move_up(act, tried)
        except YoloError as error:
            moved = ""
            tried = [*tried, error.message]
        if moved:  # the branch has it in a moment
            self._asked[act.key] = act.basis
            self._tell("act.escalated", {"agent": act.agent, "to": moved, "why": tried[-1]})
            return
        above = self._report_to(act.agent)
        if above in AGENT_BY_NAME and self._is_advised(act, above, tried):
            return
        if asked := next((one for one in self._advice.values() if one.own.key == act.key), None):
            tried = [*asked.tried, f"{act.agent} decided nothing: {tried[-1]}"]
            act, above = asked.about, act.agent
            del self._advice[act.key]
        why = f"{act.turn.sentence}: {'; '.join(dict.fromkeys(tried))} (reports to {above})"
        self._given_up[act.key] = act.basis, safe(why, 1000)
        self._tell("act.given_up", {"agent": act.agent, "why": why})

    def _is_advised(self, act: Act, above: str, tried: Sequence[str]) -> bool:
        """Ask the report-to for a decision; return whether that is what the act waits for now."""
        is_own = any(one.own.key == act.key for one in self._advice.values())
        if is_own or self._phase is None or self._advised.get(act.key) == act.basis:
            return False
        own = act_of_advice(self._phase, act, above, tried)
        self._advised[act.key] = act.basis
        self._advice[act.key] = Advice(act, own, tuple(tried), self._blobs(own))
        self._tell("act.escalated", {"agent": act.agent, "to": above, "why": tried[-1]})
        return True

    def _move_up(self, act: Act, tried: Sequence[str]) -> str:
        """Return who holds it now; empty if the escalation log cannot hold it."""
        service = Escalations(self._repository, self._settings)
        request = EscalationRequest(
            agent=act.agent,
            reason=f"{act.turn.sentence}: not done after {len(tried)} tries",
            boundary="The runner starts an agent twice, then the next level decides",
            evidence=tuple(safe(attempt, 500) for attempt in tried),
            recommendation="Say what is to be done otherwise, or do without it",
            options=("try again", "do without it"),
            severity="blocking",
        )
        escalation = _escalation_of(act)
        if act.turn.command and escalation:
            done = service.raise_(escalation, request)
        elif task := self._task_of(act):
            done = service.open(request._replace(task=task))
        else:
            return ""
        if done.is_refused or done.progress is None:
            return ""
        return done.progress.agent

    def _task_of(self, act: Act) -> str:
        """Return the task of an act; for the summary of a plan, the plan's last task."""
        if act.task:
            return act.task
        is_summary = act.turn.step == "implementation" and act.turn.task
        if not is_summary or self._phase is None:
            return ""
        plans = plans_of(self._phase.facts, act.department)
        tasks = [f"{plan.id}/{line.get('id')}" for plan in plans for line in plan.tasks
                 if str(plan.id) == act.plan]  # fmt: skip
        return tasks[-1] if tasks and TaskRef.parse(tasks[-1]) else ""

    def _report_to(self, agent: str) -> str:
        assert self._phase is not None
        with suppress(YoloError):
            access = Access(self._repository, self._settings, self._team)
            return next(
                (superior.name for superior in superiors(access.actor(agent))), Role.USER.value
            )
        return Role.USER.value

    def _about(self, record: RunAct) -> dict[str, Any]:
        return {
            "agent": record.agent, "department": record.department, "step": record.step,
            "task": record.task, "attempt": record.attempt,
        }  # fmt: skip


_NOTHING_OPEN = "the phase is not complete, and no act of it is open: see 'yolo-fs workflow next'"


def _describe_unfinished(act: Act) -> str:
    lacks = shortened(act.lacks, 3, shown_by="'yolo-fs workflow next'", between="; ")
    return safe(f"{act.turn.sentence}: {lacks or 'it is not on the branch'}", 1000)


def _name_of_approval(act: Act) -> str:
    return f"{act.turn.step}:{act.agent}"


def _escalation_of(act: Act) -> EscalationId | None:
    return next(filter(None, map(EscalationId.parse, act.turn.why.split())), None)


def _refusals(path: str, verdict: object) -> Iterator[str]:
    name = path.rpartition("/")[2]
    if isinstance(verdict, Rejected):
        yield from (f"{name} was refused: {finding}" for finding in verdict.findings[:_SHOWN])
        if (more := len(verdict.findings) - _SHOWN) > 0:
            yield f"{more} more of {name}: see 'yolo-fs validate {shlex.quote(path)}'"
    elif isinstance(verdict, Held):
        yield f"{name} is held: {verdict.reason.value}: {verdict.reason.sentence}"


def _read_last_error(folder: str) -> str:
    """Return the last line that an agent printed on its standard error."""
    with suppress(OSError), agents.printed(folder, agents.ERRORS) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
        return safe(lines[-1], 300) if lines else ""
    return ""


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
