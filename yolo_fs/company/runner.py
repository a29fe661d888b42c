"""The runner: starts an agent for each act that the branch waits for, and trusts only the branch.

It makes no decisions: `phase.acts` names the acts, the tables define who reports to whom, and an
act is done when the branch no longer waits for it. The state of a killed runner is in `state.db`
and in git; the next one continues from there.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from enum import StrEnum
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.verdicts import Held, Rejected
from yolo_fs.company import agents
from yolo_fs.company.attempts import Attempts
from yolo_fs.company.branch import Branch
from yolo_fs.company.brief import brief_of, variables_of
from yolo_fs.company.dev_trees import DevTree, DevTrees, Landing
from yolo_fs.company.hosts import HOST_BY_NAME, Hosts
from yolo_fs.company.on_behalf import commit_source, put_answer, spoken_of
from yolo_fs.company.one_runner import alone
from yolo_fs.company.roles import chosen_model, gaps_of, make_plugin, path_with_us
from yolo_fs.company.runs import Listener, Run, RunAct, intent_of, new_run, runs, save
from yolo_fs.company.workers import Worker, Workers
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Reason, YoloError, safe, shortened
from yolo_fs.git.repository import Repository
from yolo_fs.git.work_trees import refuse_old_git
from yolo_fs.moments.inbox import InboxItem
from yolo_fs.moments.moment import StatusObserver
from yolo_fs.phase.acts import Act, act_of_stage
from yolo_fs.phase.progress import Next
from yolo_fs.progress.signoff import PhaseSignOff
from yolo_fs.protocol.chains import CHAINS, GOES_ON
from yolo_fs.protocol.departments import Dept, Role
from yolo_fs.reports.status import CandidateState
from yolo_fs.tasks.claims import overlap
from yolo_fs.workspace.settings import Settings

_WATCHED_S = 1.0
"""Seconds between two checks that a daemon watches: without one nothing reaches the branch."""
TICK_S = 0.03
"""Seconds between two checks of the processes and the branch."""
_SOON_S = 0.01
"""The same while an agent has just ended: the next one waits for the branch."""
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
_LEFT = "left by a runner that ended"
_GIVEN_UP = "agent"
"""Kind of the inbox for an act that was given up."""
_APPROVAL, _BUDGET = "approval", "budget"
_OWN_QUESTIONS = (_APPROVAL, _BUDGET)
"""Kinds of what a run itself asks, beside what it has given up."""
_HOST = "host"
"""Id in the inbox of a host that lets nobody in."""
_HOLD = "hold"
"""Id in the inbox of what keeps everything from being committed."""
_ASKED = frozenset({"escalation", "decision", "deadlock"})
"""Kinds of the inbox that block a run whose act is a person's."""
_CHECKPOINT_OF_STEP = {"design_review": "plan", "signoff": "ship"}
"""Step before which a person may want to be asked → its name on the command line."""
_SHOWN = 5
"""Findings of one file that are passed to the next try."""


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
    department: Dept | None = None
    """Whose Lead takes on a chain; None for the first department at work."""
    begins: bool = False
    """Whether the phase was made for this run."""
    worktrees: bool = False
    """Whether each plan has a Dev, in a work tree of its own."""
    host_words: tuple[str, ...] = ()
    """How the command line named the hosts: whatever goes on with the run names them again."""


class RunResult(NamedTuple):
    """The result of a run."""

    outcome: RunOutcome
    run: Run
    waiting: tuple[InboxItem, ...] = ()
    given_up: tuple[str, ...] = ()
    """Why acts were given up, with what their agents left."""


Ask = Callable[[Sequence[InboxItem]], Collection[str]]
"""Asks a person, and returns the ids of the settled items."""


class Runner:
    """Runs one phase."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        phase: PhaseId,
        hosts: Hosts,
        options: RunOptions,
        emit: Listener,
        ask: Ask = lambda _: (),
        keep_watched: Callable[[], None] = lambda: None,
    ):
        """`emit`: receives every event.

        `ask`: called when the run needs a person; by default nobody answers. `keep_watched`: called
        while agents work; starts a daemon where none watches any more.
        """
        self._repository = repository
        self._hosts, self._options, self._emit, self._ask = hosts, options, emit, ask
        self._keep_watched, self._watched_at = keep_watched, 0.0
        self._budget = options.budget_usd, options.max_tokens
        self._branch = Branch(
            repository, settings, phase, options.team, each_plan=options.worktrees
        )
        self._trees = DevTrees(self._branch, emit)
        self._workers = Workers(self._branch, emit)
        self._attempts = Attempts(self._branch, emit)
        self._run = new_run(str(phase), "", hosts.everybody.name, options.chain)
        self._goal = ""
        """What the phase is about, where its runs say it."""
        self._approved: set[str] = set()
        """What a person has approved before an act."""
        self._done: list[dict[str, object]] = []
        """The acts that are done and not saved; the start of the next one saves them as well."""
        self._interrupts = 0
        self._is_alone: Callable[[], bool] = lambda: True
        self._analysis_wanted = False
        self._quiet_from: float | None = None
        self._quiet_tip: str | None = None
        """The tip of the branch since nothing could be started."""
        self._obstacle: Reason | None = None
        """Why nobody may commit now: what an agent made meanwhile would be held."""
        self._obstacle_from = float("-inf")
        """Since when that is so, or since when it is no more."""
        self._began = self._workers.clock.now()

    # --- the run ----------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Start no more agents; when called again, end those at work."""
        self._interrupts += 1

    def interrupt_once(self) -> None:
        """Start no more agents; end nobody."""
        self._interrupts = max(self._interrupts, 1)

    @property
    def working(self) -> Sequence[RunAct]:
        """The acts at work."""
        return self._workers.records

    def run(self, intent: str, *, analyze: bool) -> RunResult:
        """Run until the phase is shipped or the run is blocked.

        `analyze`: classify the intent first, where the branch has nothing of the phase.
        """
        with alone(self._repository, self._branch.settings, self._emit) as self._is_alone:
            if self._options.worktrees:
                refuse_old_git(self._repository)
            self._analysis_wanted = analyze and not self._is_begun
            self._take_over(intent)
            self._emit("run.started", {"run": self._run.id, "phase": str(self._branch.id)})
            try:
                outcome, waiting = self._loop()
            except BaseException:
                self._workers.end_all("the runner failed")
                self._trees.end_checks()
                self._end_run("failed")
                raise
            self._trees.close()
            given_up = tuple(map(self._attempts.why_given_up, self._given_up_acts))
            if outcome is RunOutcome.GIVEN_UP and not given_up:
                given_up = tuple(map(_describe_unfinished, self._open_acts)) or (_NOTHING_OPEN,)
            not_let_in = [item.question for item in waiting if item.id == _HOST]
            is_over = outcome in (RunOutcome.SHIPPED, RunOutcome.DONE)
            self._run.again = "" if is_over else self._go_on
            own = (item for item in waiting if item.kind in _OWN_QUESTIONS)
            self._run.asks = [[item.question, item.command] for item in own]
            self._end_run(outcome.value, [*given_up, *not_let_in])
            return RunResult(outcome, self._run, waiting, given_up)

    def _end_run(self, outcome: str, given_up: Sequence[str] = ()) -> None:
        now, self._run.given_up = time.time(), list(given_up)
        for act in self._run.acts:
            if act.ended is None:
                act.ended, act.outcome = now, "ended with its run"
        self._run.ended, self._run.outcome = now, outcome
        save(self._repository, self._run)

    def _take_over(self, intent: str) -> None:
        """Continue an unfinished run, with the agents that it left.

        A new run of a phase is about the intent of the last one, unless another is given.
        """
        known = runs(self._repository)
        self._run.begins = self._options.begins or not self._is_begun
        self._goal = self._run.intent = intent_of(known, self._branch.id)
        for run in known:
            if run.ended is not None:
                continue
            if run.phase == str(self._branch.id) and run.chain == self._options.chain:
                self._run = run
            self._adopt(run)
            if run is not self._run:
                run.ended, run.outcome = time.time(), "the runner ended"
                save(self._repository, run)
        self._run.intent = intent or self._run.intent
        self._run.host = self._hosts.everybody.name
        save(self._repository, self._run)

    @property
    def _is_begun(self) -> bool:
        """Whether the branch has an artifact of the phase."""
        facts = self._branch.phase.facts
        return any(
            artifact.place.path.startswith(f"{facts.folder}/") for artifact in facts.committed
        )

    def _adopt(self, run: Run) -> None:
        for record in run.acts:
            if record.ended is not None:
                continue
            folder = run.folder(self._repository, record)
            process = agents.found_in(folder)
            turn = Next(record.step, record.agent, (), record.task)
            department = Dept(record.department) if record.department else None
            act = self._find_same_act(record.key) or Act(turn, department)
            is_past = process is None or not process.is_alive
            is_readable = record.host in HOST_BY_NAME
            if process is None or not is_readable or run is not self._run:
                if process is not None:
                    agents.end_group(process)
                    if is_readable:
                        self._workers.bill(Worker(act, record, folder, process, None, is_past=True))
                record.ended, record.outcome = time.time(), _LEFT
                continue
            record.tokens, record.cost_usd = 0, 0.0  # its stream is read anew from its beginning
            tree = self._trees.find(record.tree) if record.tree else None
            self._workers.add(
                Worker(act, record, folder, process, None, is_past=is_past, tree=tree)
            )
            if not is_past:
                self._emit("agent.found", record.named | {"pid": process.pid})

    def _find_same_act(self, key: Sequence[str]) -> Act | None:
        self._look()
        acts = (*self._open_acts, *self._branch.acts)
        return next((act for act in acts if list(act.key) == list(key)), None)

    def _loop(self) -> tuple[RunOutcome, tuple[InboxItem, ...]]:
        while True:
            self._watch()
            self._look()
            if not self._workers and (ended := self._find_end()):
                self._save()
                return ended, ()
            may_start = not (self._interrupts or self._is_over_budget)
            started = self._start_some() if may_start else False
            if self._done:
                self._save()
            if self._interrupts > 1:
                self._workers.end_all("interrupted")
            if not started and all(worker.hold for worker in self._workers):
                if self._interrupts:
                    return RunOutcome.INTERRUPTED, ()
                if refusing := self._find_refusing_hosts():
                    item = self._build_refusal_item(refusing)
                    if self._is_settled((item,)):
                        self._workers.refusals.clear()
                    elif not self._interrupts:
                        return RunOutcome.WAITS, (item,)
                elif self._is_over_budget:
                    item = self._build_budget_item()
                    if self._is_settled((item,)):
                        self._raise_budget()
                    elif not self._interrupts:
                        return RunOutcome.BUDGET, (item,)
                elif hold := self._find_hold():
                    item = self._build_hold_item(hold)
                    if not self._may_pass() and self._is_settled((item,)):
                        self._wait_again()
                    elif not (self._may_pass() or self._interrupts):
                        for worker in self._workers:
                            self._close(worker, f"held: {hold.sentence}")
                        return RunOutcome.WAITS, (item,)
                elif not self._may_start_later() and self._is_quiet():
                    waiting = tuple(self._waiting())
                    if self._is_settled(waiting) or self._interrupts:
                        continue
                    waits = any(item.kind != _GIVEN_UP for item in waiting)
                    return (RunOutcome.WAITS if waits else RunOutcome.GIVEN_UP), waiting
            is_soon = self._workers.has_any_just_ended(_SETTLE_S)
            self._workers.wait(_SOON_S if is_soon else TICK_S)

    def _save(self) -> None:
        """Save the run, then tell which acts are done."""
        save(self._repository, self._run)
        for details in self._done:
            self._emit("agent.done", details)
        self._done.clear()

    def _look(self) -> None:
        if self._branch.look():
            self._attempts.follow()

    def _find_end(self) -> RunOutcome | None:
        """Return the outcome of a run that has nothing left to do; None while it has."""
        if self._find_stage() is not None:
            return None
        if self._ends_with_its_chain:
            return RunOutcome.DONE
        return RunOutcome.SHIPPED if self._branch.phase.is_complete else None

    def _is_quiet(self) -> bool:
        """Return whether the branch has everything that was written, such as a person's answer.

        Also true once there was enough time for it: a held file waits for another git process,
        mostly one of our own daemon.
        """
        patience_s = max(
            (_PATIENCE_S[candidate.standing] for candidate in self._branch.unsettled()), default=0
        )
        if self._attempts.is_any_escalated:
            patience_s = _PENDING_S
        now = self._workers.clock.now()
        if self._quiet_from is None or self._quiet_tip != self._branch.tip:
            self._quiet_from, self._quiet_tip = now, self._branch.tip
        is_over = now - self._quiet_from >= patience_s
        return is_over and self._repository.head().tip == self._branch.tip

    # --- its acts ---------------------------------------------------------------------------------

    @property
    def _open_acts(self) -> tuple[Act, ...]:
        first = self._find_stage() or self._find_analysis()
        if first is None and self._ends_with_its_chain:
            return ()  # its last agent may still be about to end
        return tuple(
            map(self._attempts.replace_by_advice, (first,) if first else self._branch.acts)
        )

    @property
    def _ends_with_its_chain(self) -> bool:
        return bool(self._options.chain) and self._options.chain not in GOES_ON

    def _find_stage(self) -> Act | None:
        """Return the first act of the run's chain that is not done; None if all are."""
        for stage in CHAINS.get(self._options.chain, ()):
            does = f"{stage.does}: {safe(self._run.intent, 300)}"
            department = self._options.department
            act = act_of_stage(self._branch.phase, stage, does, department)
            now = self._branch.blobs(act)
            begun = [run_act for run_act in self._run.acts if run_act.key == list(act.key)]
            if not any(run_act.before != now or run_act.outcome == "done" for run_act in begun):
                lack = f"{act.writes[0]} does not exist"
                if now != "-":
                    lack = f"{act.writes[0]} is unchanged ({now[:12]}): add to it"
                return act._replace(lacks=(lack,))
        return None

    def _find_analysis(self) -> Act | None:
        """Return the first act for an intent: what it is, and how much of the company it needs."""
        facts = self._branch.phase.facts
        if not (self._analysis_wanted and self._run.intent) or facts.of_kind("analysis"):
            return None
        turn = Next("po", Role.ANALYZE.value, ("the intent", "codebase"), act="classifies the work")
        act = Act(turn, None, writes=(f"{facts.folder}/analysis.json",))
        return None if self._attempts.is_hopeless(act) else act

    @property
    def _given_up_acts(self) -> Sequence[Act]:
        """The open acts that were given up."""
        return [act for act in self._open_acts if self._attempts.why_given_up(act)]

    # --- a person ---------------------------------------------------------------------------------

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
                approves = self._build_command_to_go_on(_CHECKPOINT_OF_STEP[act.turn.step])
                yield InboxItem(name, _APPROVAL, "", sentence, (), approves)
        for act in self._given_up_acts:
            sentence = f"{self._attempts.why_given_up(act)}: try it again?"
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

    def _is_settled(self, items: Sequence[InboxItem]) -> bool:
        """Ask a person, and return whether any item was settled, so that the run continues."""
        if not items or self._interrupts:
            return False
        settled = {name for name in self._ask(items) if not self._interrupts}
        self._approved |= settled
        for act in self._given_up_acts:
            if _name_of_approval(act) in settled:
                self._attempts.retry(act)
        self._quiet_from = None
        return bool(settled)

    @property
    def _go_on(self) -> str:
        return self._build_command_to_go_on()

    def _build_command_to_go_on(self, approved: str = "") -> str:
        """Return the command that goes on with the run, with what limits it.

        `approved`: the checkpoint that whoever types it approves.
        """
        options, (money, tokens) = self._options, self._budget
        chain = options.chain if self._find_stage() else ""  # a second fix would be planned
        most = options.max_agents if options.max_agents != RunOptions().max_agents else None
        limits = {
            "--max-agents": most,
            "--budget": money,
            "--max-tokens": tokens,
            "--approve": ",".join(sorted(options.approve - {approved})) or None,
        }
        words = ["yolo-fs", chain or "go", "--phase", str(int(self._branch.id.number))]
        words += options.host_words
        words += ["--dept", options.department] if chain and options.department else []
        words += ["--worktrees"] if options.worktrees else []
        for name, value in limits.items():
            words += [] if value is None else [name, str(value)]
        words += ["--", self._run.intent] if chain else []
        return shlex.join(words)

    def _checkpoint_before(self, act: Act) -> str:
        """Return what a person has to approve before an act; empty if nothing."""
        step = act.turn.step
        is_asked = _CHECKPOINT_OF_STEP.get(step) in self._options.approve
        if not is_asked or _name_of_approval(act) in self._approved:
            return ""
        if step == "design_review":
            return "approve the plan"
        if act.turn.command:
            return "approve the sign-off"
        return ""

    def _find_refusing_hosts(self) -> Sequence[str]:
        """Return the hosts that let nobody in, once every act that may be started needs them."""
        needed = {self._hosts.of(act.agent).name for act in self._find_startable_acts()}
        is_stuck = needed <= self._workers.refusals.keys()
        return sorted(needed) if is_stuck else ()

    def _build_refusal_item(self, hosts: Sequence[str]) -> InboxItem:
        refusals_by_host = ((host, safe(self._workers.refusals[host], 300)) for host in hosts)
        refusals = "; ".join(
            f"{host} refuses the login: {words}" for host, words in refusals_by_host
        )
        question = f"{refusals}. Fix the login, then continue"
        return InboxItem(_HOST, _GIVEN_UP, "", question, (), self._go_on)

    def _find_hold(self) -> Reason | None:
        """Return what the run waits for that only a person ends."""
        held = next((worker.hold for worker in self._workers), None)
        return held or (self._branch.find_obstacle() if self._obstacle else None)

    @property
    def _is_obstacle_young(self) -> bool:
        """Whether an obstacle came or went just now, as the lock of another git command does."""
        stood_s = self._workers.clock.now() - self._obstacle_from
        return stood_s < _PATIENCE_S[CandidateState.HELD]

    @property
    def _is_passing(self) -> bool:
        """Whether other git commands come and go: the daemon commits between two of them."""
        return self._obstacle in (None, Reason.INDEX_LOCKED) and self._is_obstacle_young

    def _may_pass(self) -> bool:
        """Return whether what holds everything is so young that it may pass by itself."""
        return not self._workers and self._is_obstacle_young

    def _build_hold_item(self, hold: Reason) -> InboxItem:
        question = f"nothing is committed ({hold.sentence}): end that, then continue"
        return InboxItem(_HOLD, _GIVEN_UP, "", question, (), self._go_on)

    def _wait_again(self) -> None:
        """Give the daemon the time to commit what was held."""
        self._obstacle = None
        for worker in self._workers:
            worker.hold, worker.ended_at = None, self._workers.clock.now()

    # --- the budget -------------------------------------------------------------------------------

    @property
    def _is_over_budget(self) -> bool:
        money, tokens = self._options.budget_usd, self._options.max_tokens
        return (money is not None and self._run.cost_usd >= money) or (
            tokens is not None and self._run.tokens >= tokens
        )

    def _build_budget_item(self) -> InboxItem:
        spent = f"{self._run.cost_usd:.2f} USD, {self._run.tokens} tokens"
        return InboxItem(_BUDGET, _BUDGET, "", f"{spent} are used up: continue?", (), self._go_on)

    def _raise_budget(self) -> None:
        """Raise the budget by its original amount."""
        money, tokens = self._budget
        if money is not None:
            money += self._run.cost_usd
        if tokens is not None:
            tokens += self._run.tokens
        self._options = self._options._replace(budget_usd=money, max_tokens=tokens)

    # --- starting ---------------------------------------------------------------------------------

    def _may_start_later(self) -> bool:
        """Return whether an act is left out for now only: its host has a limit, or something was in
        the way a moment ago, such as the lock of a commit of our own daemon.
        """
        return any(self._find_startable_acts())

    def _find_startable_acts(self) -> Iterator[Act]:
        busy = {worker.act.key for worker in self._workers}
        for act in self._open_acts:
            is_free = act.key not in busy and not self._is_occupied(act)
            is_free = is_free and not self._is_another_tried(act)
            is_free = is_free and not self._attempts.is_hopeless(act) and not self._is_made_for(act)
            if is_free and not act.is_of_person and not self._checkpoint_before(act):
                yield act

    def _is_occupied(self, act: Act) -> bool:
        """Return whether who does an act is at work, or the files of the act are taken."""
        if not self._works_apart(act):
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

    def _works_apart(self, act: Act) -> bool:
        """Return whether an act is done in a work tree of its own, as it writes a task's files."""
        is_of_task = bool(act.task and act.writes) and act.role == Role.DEV
        return self._options.worktrees and is_of_task and act.turn.step == "implementation"

    def _is_made_for(self, act: Act) -> bool:
        """Return whether an agent still works on the input of an act.

        It may still change files that the branch already has.
        """
        open_ = {open_act.key for open_act in self._open_acts}
        made = [worker.act.department for worker in self._workers if worker.act.key not in open_]
        return any(
            act.department == department or None in (act.department, department)
            for department in made
        )

    def _is_obstructed(self) -> bool:
        """Return whether nothing may be committed now: whoever was started would be paid for
        nothing.
        """
        obstacle = self._branch.find_obstacle()
        if obstacle is not self._obstacle:
            self._obstacle, self._obstacle_from = obstacle, self._workers.clock.now()
        return obstacle is not None

    def _is_left_to_commit(self, act: Act) -> bool:
        """Return whether the daemon is about to commit what was there of an act before the run."""
        ran_s = self._workers.clock.now() - self._began
        return ran_s < _PENDING_S and self._branch.is_written_again(act)

    def _start_some(self) -> bool:
        """Start one act that is ready, or do one that needs no agent; return whether there was
        one.
        """
        for act in self._find_startable_acts():
            if not self._workers.may_start_in(self._hosts.of(act.agent)):
                continue
            if sum(not worker.hold for worker in self._workers) >= self._options.max_agents:
                return False
            if self._is_obstructed() or self._is_left_to_commit(act):
                return False
            if act.turn.step == "signoff" and act.turn.command:
                if not self._workers:
                    self._sign_off(act)
                    return True
                continue
            self._start(act)
            return True
        return False

    def _sign_off(self, act: Act) -> None:
        """Run the command of step 11 in the Lead's name: the step writes no file by hand."""
        self._save()
        branch = self._branch
        by = branch.access.actor(act.agent)
        try:
            done = PhaseSignOff(branch.team).sign(branch.phase, by)
            state, lacking = done.state, "; ".join(map(str, done.findings)) if done.missing else ""
        except YoloError as error:
            state, lacking = "refused", f"{error.reason.value}: {error.message}"
        if lacking:
            self._attempts.give_up(act, f"{act.turn.sentence}: {lacking}")
        self._emit("signoff", {"phase": str(branch.id), "state": state})
        branch.tip = ""

    def _start(self, act: Act) -> None:
        self._quiet_from = None
        host = self._hosts.of(act.agent)
        tree = self._trees.open(act) if self._works_apart(act) else None
        reasons, attempt = self._attempts.reasons_of(act), self._attempts.start(act)
        record = RunAct(
            len(self._run.acts) + 1, act.agent, act.department or "", act.turn.step,
            act.turn.task, attempt, time.time(), key=list(act.key),
            before=self._branch.blobs(act), tree=tree.root if tree else "", host=host.name,
        )  # fmt: skip
        self._run.acts.append(record)
        self._save()
        folder = self._run.folder(self._repository, record)
        make_plugin(self._repository, host.command)
        words, brief = self._words_of(act), self._brief_of(act, reasons)
        path = os.path.join(folder, agents.BRIEF)
        variables = variables_of(self._branch.phase, act, self._run.id, path, attempt)
        more = {**variables, **path_with_us()}
        try:
            root = tree.root if tree else self._repository.root
            child, process = agents.start(words, root, folder, brief, more)
        except YoloError:
            record.ended, record.outcome = time.time(), "could not be started"
            save(self._repository, self._run)
            raise
        worker = Worker(act, record, folder, process, child, tree=tree)
        worker.stamps = self._branch.stamps(act, worker.root)
        self._workers.add(worker)
        self._emit("agent.started", record.named | {"does": act.turn.sentence})
        for place in filter(None, map(classify, act.writes)):
            place.artifact.load()  # while its agent is at work, it keeps nobody waiting

    def _words_of(self, act: Act) -> list[str]:
        host, config = self._hosts.of(act.agent), self._branch.settings.config
        gaps = gaps_of(self._repository, act, host.command, config)
        return host.words(gaps, chosen_model(config, act.agent))

    @property
    def _intent(self) -> str:
        """What the acts that are open now are about: a fix only until it is planned, unless it has
        begun the phase.
        """
        is_of_phase = self._options.chain in GOES_ON and self._find_stage() is None
        return self._goal if is_of_phase and not self._run.begins else self._run.intent

    def _brief_of(self, act: Act, reasons: Sequence[str] = ()) -> str:
        host = self._hosts.of(act.agent)
        return brief_of(
            self._branch.phase,
            act,
            self._intent,
            reasons,
            spoken_of(self._branch, host, act),
            can_commit=host.can_commit,
        )

    def preview(self, intent: str, *, analyze: bool) -> Iterator[tuple[Act, list[str], str]]:
        """Yield each act that would be started now, its command line and its brief."""
        self._run.intent, self._analysis_wanted = intent, analyze and not self._is_begun
        self._look()
        for act in self._open_acts:
            yield act, self._words_of(act), self._brief_of(act)

    # --- judging ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        if (now := self._workers.clock.now()) - self._watched_at >= _WATCHED_S:
            self._keep_watched()
            self._watched_at = now
            if not self._interrupts and not self._is_alone():
                self._emit("run.overtaken", {"run": self._run.id})
                self.interrupt_once()
        for worker in self._workers:
            if self._workers.has_just_ended(worker):
                put_answer(self._branch, worker)
                if not worker.host.can_commit and not worker.exit_code and not worker.why:
                    commit_source(self._branch, worker)
            if worker.ended_at is None:
                self._workers.hold_to_time(worker)
            elif self._is_judged(worker, self._workers.clock.now() - worker.ended_at):
                self._workers.remove(worker)

    def _is_judged(self, worker: Worker, waited_s: float) -> bool:
        """Return whether the result of an agent is known. `waited_s`: since it has ended."""
        self._look()
        if worker.tree and not worker.is_merged:
            return self._land_or_fail(worker, worker.tree, waited_s)
        branch, act = self._branch, worker.act
        is_carried_on = branch.is_carried_on(act, worker.record.started)
        settle_s = _FOLLOWS_S if is_carried_on else _SETTLE_S
        settle_s += branch.settings.policy.settle_ms / 1000
        same = next((open_act for open_act in self._open_acts if open_act.key == act.key), None)
        if same is None or same.basis != act.basis:
            follows = same is not None and is_carried_on  # in a moment its escalation is over
            if waited_s < settle_s and (follows or branch.is_written_again(act)):
                return False
            if not worker.host.can_commit and act.role == Role.TESTER:
                commit_source(branch, worker)  # the branch has the plan of the tests now
            self._close(worker, "done")
            self._attempts.succeed(act, same)
            return True
        if waited_s < settle_s and branch.may_still_get(act):
            return False
        if waited_s < _PENDING_S and branch.is_question_coming():
            return False
        mine = branch.unsettled_of(act)
        is_obstructed = self._is_obstructed()
        if waited_s < max((_PATIENCE_S[each.standing] for each in mine), default=0.0):
            return False
        if (mine or is_obstructed) and self._is_passing and waited_s < _PENDING_S:
            return False
        hold = self._obstacle if is_obstructed else branch.find_hold(mine)
        worker.hold, held_before = hold, worker.hold
        if worker.hold:
            return False
        if held_before:  # the daemon commits it now
            worker.ended_at = self._workers.clock.now()
            return False
        refused = [reason for each in mine for reason in _refusals(each.path, each.verdict)]
        self._fail(worker, same, refused)
        return True

    def _land_or_fail(self, worker: Worker, tree: DevTree, waited_s: float) -> bool:
        """Merge the work of a Dev apart, or fail its try; return whether it was failed."""
        act = worker.act
        try:
            landing = tree.land(act, self._branch.settings)
        except YoloError as error:
            landing = Landing(is_settled=True, refused=f"it cannot be merged: {error.message}")
        is_passing = self._is_obstructed() and self._is_passing
        if landing.obstacle and waited_s >= _PATIENCE_S[CandidateState.HELD] and not is_passing:
            worker.hold = landing.obstacle
        if not landing.is_settled:
            return False
        worker.hold = None
        if landing.is_merged:  # it is judged by the branch now
            worker.is_merged, worker.ended_at = True, self._workers.clock.now()
            return False
        same = next((open_act for open_act in self._open_acts if open_act.key == act.key), act)
        self._fail(worker, same, [landing.refused] if landing.refused else [])
        return True

    def _fail(self, worker: Worker, act: Act, refused: Sequence[str]) -> None:
        if worker.is_past or worker.is_limited or worker.refusals:  # that was no try of the agent
            not_let_in = f"{'refused' if worker.refusals else 'limited'} by its host"
            self._close(worker, _LEFT if worker.is_past else not_let_in)
            return
        reasons = [*refused, *self._find_lacks(worker, act, is_refused=bool(refused))]
        reasons = reasons or ["none of its work is on the branch"]
        self._close(worker, f"not enough: {reasons[0]}")
        self._attempts.fail(act, "; ".join(reasons))

    def _find_lacks(self, worker: Worker, act: Act, *, is_refused: bool) -> Iterator[str]:
        """Yield why an act is not done although its agent has ended."""
        yield from worker.explain_end()
        missing = self._branch.find_missing(act, worker.root)
        if missing:
            yield f"not written: {', '.join(missing)}"
        yield from self._explain_refused_source(act)
        if lacks := _describe_lacks(act) or act.turn.why:
            yield lacks
        if not is_refused and not missing:
            yield from self._branch.warnings_of(act, worker.root)[:_SHOWN]
        if act.writes and not is_refused and not missing:
            had = worker.record.before
            is_same = "-" not in had and self._branch.blobs(act) == had
            if is_same or self._branch.stamps(act, worker.root) == worker.stamps:
                yield "its files are unchanged"
        if last := worker.last_error:
            yield f"its last error: {last}"

    def _explain_refused_source(self, act: Act) -> list[str]:
        """Return what prevents the source of a task from being committed."""
        sources = [path for path in act.writes if not path.startswith(f"{PLANNING_ROOT}/")]
        if not act.task or not sources:
            return []
        access = self._branch.access
        with suppress(YoloError):
            actor = access.actor(act.agent)
            refused = [access.write(actor, f"{self._repository.root}/{path}") for path in sources]
            reasons = [
                f"{act.agent} may not write {path}: {decision.rule}"
                for path, decision in zip(sources, refused, strict=True)
                if not decision.allowed
            ]
            return reasons or [f"no commit of {act.task} is on the branch"]
        return []

    def _close(self, worker: Worker, outcome: str) -> None:
        record = worker.record
        record.ended, record.outcome = time.time(), outcome
        spent = {"tokens": record.tokens, "cost_usd": record.cost_usd}
        details = record.named | {"outcome": outcome} | spent
        if outcome == "done":
            self._done.append(details)
        else:
            self._save()
            self._emit("agent.failed", details)


_NOTHING_OPEN = "the phase is not complete, but no step is open: see 'yolo-fs workflow next'"


def _describe_lacks(act: Act) -> str:
    return shortened(act.lacks, 3, shown_by="'yolo-fs workflow next'", between="; ")


def _describe_unfinished(act: Act) -> str:
    return safe(f"{act.turn.sentence}: {_describe_lacks(act) or 'it is not on the branch'}", 1000)


def _name_of_approval(act: Act) -> str:
    return f"{act.turn.step}:{act.agent}"


def _refusals(path: str, verdict: object) -> Iterator[str]:
    name = path.rpartition("/")[2]
    if isinstance(verdict, Rejected):
        yield from (f"{name} was refused: {finding}" for finding in verdict.findings[:_SHOWN])
        if (more := len(verdict.findings) - _SHOWN) > 0:
            yield f"{more} more of {name}: see 'yolo-fs validate {shlex.quote(path)}'"
    elif isinstance(verdict, Held):
        yield f"{name} is held: {verdict.reason.with_sentence}"
