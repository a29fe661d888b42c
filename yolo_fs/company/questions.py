"""What a run asks a person, as items of the inbox: each with the command that goes on with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing

from yolo_fs.company.attempts import Attempts
from yolo_fs.company.budget import Budget
from yolo_fs.company.runs import RunOptions
from yolo_fs.company.schedule import CHECKPOINT_OF_STEP, Schedule, name_of_approval
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Reason, safe
from yolo_fs.git.repository import Repository
from yolo_fs.snapshots.inbox import InboxItem
from yolo_fs.snapshots.snapshot import StatusObserver

GIVEN_UP = "agent"
"""Kind of the inbox for an act that was given up."""
_APPROVAL, _BUDGET = "approval", "budget"
OWN_QUESTIONS = (_APPROVAL, _BUDGET)
"""Kinds of what a run itself asks, beside what it has given up."""
HOST = "host"
"""Id in the inbox of a host that lets nobody in."""
_HOLD = "hold"
"""Id in the inbox of what keeps everything from being committed."""
_ASKED = frozenset({"escalation", "decision", "deadlock"})
"""Kinds of the inbox that block a run whose act is a person's."""


class Questions:
    """The questions of one run."""

    def __init__(
        self,
        repository: Repository,
        phase: PhaseId,
        schedule: Schedule,
        attempts: Attempts,
        options: RunOptions,
        budget: Budget,
    ):
        self._repository, self._phase = repository, phase
        self._schedule, self._attempts = schedule, attempts
        self._options, self._budget = options, budget

    def find_waiting(self) -> Iterator[InboxItem]:
        """Yield what a person has to do before the run can continue.

        That is in the inbox, or the run itself asks: for approval at a checkpoint from its options,
        or whether to retry an act that was given up.
        """
        acts = self._schedule.acts
        for act in acts:
            if question := self._schedule.checkpoint_before(act):
                name = name_of_approval(act)
                sentence = f"{question}: {act.turn.sentence}"
                approves = self._build_command(CHECKPOINT_OF_STEP[act.turn.step])
                yield InboxItem(name, _APPROVAL, "", sentence, (), approves)
        for act in self._schedule.given_up:
            sentence = f"{self._attempts.why_given_up(act)}: try it again?"
            yield self._ask_to_go_on(name_of_approval(act), GIVEN_UP, sentence)
        asks = any(act.is_of_person for act in acts)
        written = {path for act in acts for path in act.writes}
        with closing(StatusObserver(self._repository)) as observer:
            items = observer.look().inbox
        yield from (
            inbox_item
            for inbox_item in items
            if inbox_item.id in written or (asks and inbox_item.kind in _ASKED)
        )

    def ask_for_login(self, refusals: Sequence[tuple[str, str]]) -> InboxItem:
        """Return the question for hosts that let nobody in. `refusals`: host, what it says."""
        said = "; ".join(f"{host} refuses the login: {safe(text, 300)}" for host, text in refusals)
        return self._ask_to_go_on(HOST, GIVEN_UP, f"{said}. Fix the login, then continue")

    def ask_to_end(self, hold: Reason) -> InboxItem:
        """Return the question for what keeps everything from being committed."""
        question = f"nothing is committed ({hold.sentence}): end that, then continue"
        return self._ask_to_go_on(_HOLD, GIVEN_UP, question)

    def ask_for_budget(self) -> InboxItem:
        """Return the question for a budget that is used up."""
        run = self._schedule.run
        question = f"{run.cost_usd:.2f} USD, {run.tokens} tokens are used up: continue?"
        return self._ask_to_go_on(_BUDGET, _BUDGET, question)

    def _ask_to_go_on(self, name: str, kind: str, question: str) -> InboxItem:
        return InboxItem(name, kind, "", question, (), self.command_to_go_on)

    @property
    def command_to_go_on(self) -> str:
        """The command that goes on with the run, with what limits it."""
        return self._build_command()

    def _build_command(self, approved: str = "") -> str:
        """Return the command that goes on with the run.

        `approved`: the checkpoint that whoever types it approves.
        """
        options = self._options
        chain = options.chain if self._schedule.find_stage() else ""  # else a second fix is planned
        most = options.max_agents if options.max_agents != RunOptions().max_agents else None
        limits = {
            "--max-agents": most,
            "--budget": self._budget.usd,
            "--max-tokens": self._budget.tokens,
            "--approve": ",".join(sorted(options.approve - {approved})) or None,
        }
        words = ["yolo-fs", chain or "go", "--phase", str(int(self._phase.number))]
        words += options.host_words
        words += ["--dept", options.department] if chain and options.department else []
        words += ["--worktrees"] if options.worktrees else []
        for name, value in limits.items():
            words += [] if value is None else [name, str(value)]
        words += ["--", self._schedule.run.intent] if chain else []
        return shlex.join(words)
