"""The runner: starts an agent for each act that the branch waits for, and trusts only the branch.

It makes no decisions: `phase.acts` names the acts, the tables define who reports to whom, and an
act is done when the branch no longer waits for it. The state of a killed runner is in `state.db`
and in git; the next one continues from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from yolo_fs.artifacts.classify import classify
from yolo_fs.company import agents
from yolo_fs.company.attempts import Attempts
from yolo_fs.company.branch import PATIENCE_S, PENDING_S, Branch
from yolo_fs.company.brief import brief_of, variables_of
from yolo_fs.company.budget import Budget
from yolo_fs.company.dev_trees import DevTrees
from yolo_fs.company.hosts import HOST_BY_NAME, Hosts
from yolo_fs.company.judge import LEFT, SETTLE_S, Judge, describe_lacks
from yolo_fs.company.obstacles import ObstacleWatch
from yolo_fs.company.on_behalf import commit_source, put_answer, spoken_of
from yolo_fs.company.one_runner import alone
from yolo_fs.company.questions import GIVEN_UP, HOST, OWN_QUESTIONS, Questions
from yolo_fs.company.roles import chosen_model, gaps_of, make_plugin, path_with_us
from yolo_fs.company.runs import Listener, Run, RunAct, RunOptions, intent_of, new_run, runs, save
from yolo_fs.company.schedule import Schedule, name_of_approval
from yolo_fs.company.workers import Worker, Workers
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.git.work_trees import refuse_old_git
from yolo_fs.phase.acts import Act
from yolo_fs.phase.progress import Next
from yolo_fs.progress.signoff import PhaseSignOff
from yolo_fs.protocol.chains import GOES_ON
from yolo_fs.protocol.departments import Dept
from yolo_fs.reports.status import verdicts_not_committed
from yolo_fs.snapshots.inbox import InboxItem
from yolo_fs.workspace.settings import Settings

_WATCHED_S = 1.0
"""Seconds between two checks that a daemon watches: without one nothing reaches the branch."""
TICK_S = 0.03
"""Seconds between two checks of the processes and the branch."""
_SOON_S = 0.01
"""The same while an agent has just ended: the next one waits for the branch."""
_NOTHING_OPEN = "the phase is not complete, but no step is open: see 'yolo-fs workflow next'"


class RunOutcome(StrEnum):
    """How a run ended."""

    SHIPPED = "shipped"
    DONE = "done"
    """A chain that ships nothing is complete."""
    WAITS = "waits for a person"
    GIVEN_UP = "given up"
    BUDGET = "budget used up"
    INTERRUPTED = "interrupted"


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
        self._branch = Branch(
            repository, settings, phase, options.team, each_plan=options.worktrees
        )
        self._trees = DevTrees(self._branch, emit)
        self._workers = Workers(self._branch, emit)
        self._clock = self._workers.clock
        self._attempts = Attempts(self._branch, emit)
        self._budget = Budget(options.budget_usd, options.max_tokens)
        self._obstacle = ObstacleWatch(self._branch, self._clock)
        run = new_run(str(phase), "", hosts.everybody.name, options.chain)
        self._schedule = Schedule(self._branch, self._workers, self._attempts, options, run)
        self._questions = Questions(
            repository, phase, self._schedule, self._attempts, options, self._budget
        )
        self._judge = Judge(
            self._branch, self._schedule, self._attempts, self._obstacle, self._clock, self._close
        )
        self._goal = ""
        """What the phase is about, where its runs say it."""
        self._done: list[dict[str, object]] = []
        """The acts that are done and not saved; the start of the next one saves them as well."""
        self._interrupts = 0
        self._is_alone: Callable[[], bool] = lambda: True
        self._quiet_from: float | None = None
        self._quiet_tip: str | None = None
        """The tip of the branch since nothing could be started."""

    @property
    def _run(self) -> Run:
        return self._schedule.run

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
            self._schedule.is_analysis_wanted = analyze and not self._schedule.is_begun
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
            given_up = tuple(map(self._attempts.why_given_up, self._schedule.given_up))
            if outcome is RunOutcome.GIVEN_UP and not given_up:
                given_up = tuple(map(_describe_unfinished, self._schedule.acts)) or (_NOTHING_OPEN,)
            not_let_in = [item.question for item in waiting if item.id == HOST]
            is_over = outcome in (RunOutcome.SHIPPED, RunOutcome.DONE)
            self._run.again = "" if is_over else self._questions.command_to_go_on
            own = (item for item in waiting if item.kind in OWN_QUESTIONS)
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
        self._run.begins = self._options.begins or not self._schedule.is_begun
        self._goal = self._run.intent = intent_of(known, self._branch.id)
        for run in known:
            if run.ended is not None:
                continue
            if run.phase == str(self._branch.id) and run.chain == self._options.chain:
                self._schedule.run = run
            self._adopt(run)
            if run is not self._run:
                run.ended, run.outcome = time.time(), "the runner ended"
                save(self._repository, run)
        self._run.intent = intent or self._run.intent
        self._run.host = self._hosts.everybody.name
        save(self._repository, self._run)

    def _adopt(self, run: Run) -> None:
        for record in run.acts:
            if record.ended is not None:
                continue
            folder = run.folder(self._repository, record)
            process = agents.found_in(folder)
            turn = Next(record.step, record.agent, (), record.task)
            department = Dept(record.department) if record.department else None
            act = self._schedule.find_same(record.key) or Act(turn, department)
            is_past = process is None or not process.is_alive
            is_readable = record.host in HOST_BY_NAME
            if process is None or not is_readable or run is not self._run:
                if process is not None:
                    agents.end_group(process)
                    if is_readable:
                        self._workers.bill(Worker(act, record, folder, process, None, is_past=True))
                record.ended, record.outcome = time.time(), LEFT
                continue
            record.tokens, record.cost_usd = 0, 0.0  # its stream is read anew from its beginning
            tree = self._trees.find(record.tree) if record.tree else None
            self._workers.add(
                Worker(act, record, folder, process, None, is_past=is_past, tree=tree)
            )
            if not is_past:
                self._emit("agent.found", record.named | {"pid": process.pid})

    def _loop(self) -> tuple[RunOutcome, tuple[InboxItem, ...]]:
        while True:
            self._watch()
            self._schedule.look()
            if not self._workers and (ended := self._find_end()):
                self._save()
                return ended, ()
            may_start = not (self._interrupts or self._budget.is_used_up(self._run))
            started = self._start_some() if may_start else False
            if self._done:
                self._save()
            if self._interrupts > 1:
                self._workers.end_all("interrupted")
            is_stopped = not started and all(worker.hold for worker in self._workers)
            if is_stopped and (ending := self._find_ending()):
                return ending
            is_soon = self._workers.has_any_just_ended(SETTLE_S)
            self._workers.wait(_SOON_S if is_soon else TICK_S)

    def _find_ending(self) -> tuple[RunOutcome, tuple[InboxItem, ...]] | None:
        """Return how the run ends, now that nobody is at work and nothing could be started; None
        where it goes on, also because a person settles what it waits for.
        """
        if self._interrupts:
            return RunOutcome.INTERRUPTED, ()
        if refusing := self._find_refusing_hosts():
            refusals = [(host, self._workers.refusals[host]) for host in refusing]
            item = self._questions.ask_for_login(refusals)
            if self._is_settled((item,)):
                self._workers.refusals.clear()
            elif not self._interrupts:
                return RunOutcome.WAITS, (item,)
        elif self._budget.is_used_up(self._run):
            item = self._questions.ask_for_budget()
            if self._is_settled((item,)):
                self._budget.extend(self._run)
            elif not self._interrupts:
                return RunOutcome.BUDGET, (item,)
        elif hold := self._find_hold():
            return self._find_ending_of_hold(hold)
        elif not any(self._schedule.find_startable()) and self._is_quiet():
            waiting = tuple(self._questions.find_waiting())
            if not (self._is_settled(waiting) or self._interrupts):
                waits = any(item.kind != GIVEN_UP for item in waiting)
                return (RunOutcome.WAITS if waits else RunOutcome.GIVEN_UP), waiting
        return None

    def _find_ending_of_hold(self, hold: Reason) -> tuple[RunOutcome, tuple[InboxItem, ...]] | None:
        """Return how the run ends if nothing can be committed; None where that may pass by itself,
        or where a person ends it.
        """
        if not self._workers and self._obstacle.is_young:
            return None
        item = self._questions.ask_to_end(hold)
        if self._is_settled((item,)):
            self._wait_again()
            return None
        if self._interrupts:
            return None
        for worker in self._workers:
            self._close(worker, f"held: {hold.sentence}")
        return RunOutcome.WAITS, (item,)

    def _save(self) -> None:
        """Save the run, then tell which acts are done."""
        save(self._repository, self._run)
        for details in self._done:
            self._emit("agent.done", details)
        self._done.clear()

    def _find_end(self) -> RunOutcome | None:
        """Return the outcome of a run that has nothing left to do; None while it has."""
        if self._schedule.find_stage() is not None:
            return None
        if self._schedule.ends_with_its_chain:
            return RunOutcome.DONE
        return RunOutcome.SHIPPED if self._branch.phase.is_complete else None

    def _is_quiet(self) -> bool:
        """Return whether the branch has everything that was written, such as a person's answer.

        Also true once there was enough time for it: a held file waits for another git process,
        mostly one of our own daemon.
        """
        patience_s = max(
            (PATIENCE_S[candidate.standing] for candidate in self._branch.unsettled()), default=0
        )
        if self._attempts.is_any_escalated:
            patience_s = PENDING_S
        now = self._clock.now()
        if self._quiet_from is None or self._quiet_tip != self._branch.tip:
            self._quiet_from, self._quiet_tip = now, self._branch.tip
        is_over = now - self._quiet_from >= patience_s
        return is_over and self._repository.head().tip == self._branch.tip

    # --- a person ---------------------------------------------------------------------------------

    def _is_settled(self, items: Sequence[InboxItem]) -> bool:
        """Ask a person, and return whether any item was settled, so that the run continues."""
        if not items or self._interrupts:
            return False
        settled = {name for name in self._ask(items) if not self._interrupts}
        self._schedule.approved |= settled
        for act in self._schedule.given_up:
            if name_of_approval(act) in settled:
                self._attempts.retry(act)
        self._quiet_from = None
        return bool(settled)

    def _find_refusing_hosts(self) -> Sequence[str]:
        """Return the hosts that let nobody in, once every act that may be started needs them."""
        needed = {self._hosts.of(act.agent).name for act in self._schedule.find_startable()}
        is_stuck = needed <= self._workers.refusals.keys()
        return sorted(needed) if is_stuck else ()

    def _find_hold(self) -> Reason | None:
        """Return what the run waits for that only a person ends."""
        held = next((worker.hold for worker in self._workers), None)
        return held or (self._branch.find_obstacle() if self._obstacle.found else None)

    def _wait_again(self) -> None:
        """Give the daemon the time to commit what was held."""
        self._obstacle.forget()
        for worker in self._workers:
            worker.hold, worker.ended_at = None, self._clock.now()

    # --- starting ---------------------------------------------------------------------------------

    def _start_some(self) -> bool:
        """Start one act that is ready, or do one that needs no agent; return whether there was
        one.
        """
        for act in self._schedule.find_startable():
            if not self._workers.may_start_in(self._hosts.of(act.agent)):
                continue
            if sum(not worker.hold for worker in self._workers) >= self._options.max_agents:
                return False
            if self._obstacle.look() or self._schedule.is_left_to_commit(act):
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
            unheard = verdicts_not_committed(self._repository, branch.settings, branch.phase.facts)
            done = PhaseSignOff(branch.team).sign(branch.phase, by, unheard=unheard)
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
        tree = self._trees.open(act) if self._schedule.works_apart(act) else None
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
        is_of_phase = self._options.chain in GOES_ON and self._schedule.find_stage() is None
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
        """Yield each act that would be started now, its command line and its brief; a person's
        has neither.
        """
        self._run.intent = intent
        self._schedule.is_analysis_wanted = analyze and not self._schedule.is_begun
        self._schedule.look()
        for act in self._schedule.acts:
            if act.is_of_person:
                yield act, [], ""
            else:
                yield act, self._words_of(act), self._brief_of(act)

    # --- at work ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        if (now := self._clock.now()) - self._watched_at >= _WATCHED_S:
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
            elif self._judge.is_judged(worker):
                self._workers.remove(worker)

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


def _describe_unfinished(act: Act) -> str:
    return safe(f"{act.turn.sentence}: {describe_lacks(act) or 'it is not on the branch'}", 1000)
