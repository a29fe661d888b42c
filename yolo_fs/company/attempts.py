"""What was tried for the acts of a run, and who is asked once that was not enough.

An act is tried twice, then the next level has it: by the log of escalations; what is about no task,
by a decision of its agent's report-to. Then it is given up, until what it depends on has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from yolo_fs.company.advice import Advice, act_of_advice, decision_of
from yolo_fs.company.branch import Branch, escalation_of
from yolo_fs.company.runs import Listener
from yolo_fs.core.reasons import YoloError, safe
from yolo_fs.escalation_service.moves import Escalations
from yolo_fs.escalations.lines import EscalationRequest
from yolo_fs.phase.acts import Act
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.roster import AGENT_BY_NAME

_TRIES = 2
"""Times that an act is tried before the next level is asked, and again once that has decided."""
_MOST_STARTS = 8
"""Starts of an act in one run, whatever its effect; more would be a loop."""

_Key: TypeAlias = tuple[str, ...]
_Basis: TypeAlias = tuple[object, ...]


class Attempts:
    """The attempts at each act, as far as they are still about what the branch waits for."""

    def __init__(self, branch: Branch, emit: Listener):
        """`emit`: receives each act that is handed up or given up."""
        self._branch, self._emit = branch, emit
        self._failures: dict[_Key, tuple[_Basis, list[str]]] = {}
        """Act → what it lacked when it was tried, and why each try failed."""
        self._starts: dict[_Key, int] = {}
        self._given_up: dict[_Key, tuple[_Basis, str]] = {}
        """Act → what it lacked when it was given up, and why."""
        self._escalated: dict[_Key, _Basis] = {}
        """Act → what it lacked, until the branch has its escalation."""
        self._advice: dict[_Key, Advice] = {}
        """Act → the decision that its agent's report-to is asked for, until the branch has it."""
        self._advised: dict[_Key, _Basis] = {}
        """Act → what it lacked when its agent's report-to was asked."""
        self._failed_in_a_row: Counter[Dept | None] = Counter()
        """Department → failed tries since its last act that was done."""

    def follow(self) -> None:
        """Forget the escalations and take the decisions that have come to the branch."""
        open_ = {act.key: act.basis for act in self._branch.acts}
        self._escalated = {
            key: basis for key, basis in self._escalated.items() if open_.get(key) == basis
        }
        for key, advice in [*self._advice.items()]:
            if self._branch.blobs(advice.own) != advice.before:
                del self._advice[key]
                decision = f"{advice.own.agent} decided: {decision_of(self._branch.phase)}"
                self._failures[key] = advice.about.basis, [*advice.tried, decision]

    @property
    def is_any_escalated(self) -> bool:
        """Whether the branch is about to have an escalation."""
        return bool(self._escalated)

    def replace_by_advice(self, act: Act) -> Act:
        """Return the act of whoever is asked how to go on with an act; else the act itself."""
        advice = self._advice.get(act.key)
        return advice.own if advice and advice.about.basis == act.basis else act

    def reasons_of(self, act: Act) -> list[str]:
        """Return why each try of an act was not enough."""
        basis, reasons = self._failures.get(act.key, (act.basis, []))
        return reasons if basis == act.basis else []

    def start(self, act: Act) -> int:
        """Note that an act is started, and return the number of the attempt."""
        self._starts[act.key] = self._starts.get(act.key, 0) + 1
        is_advised = self._advised.get(act.key) == act.basis
        return len(self.reasons_of(act)) + 1 - is_advised

    def succeed(self, act: Act, again: Act | None) -> None:
        """Note that an act is done.

        `again`: the same act, where the branch waits for more of it.
        """
        self._failures.pop(act.key, None)
        self._failed_in_a_row[act.department] = 0
        if again is not None and self._is_started_too_often(act):
            self._escalate(again, [f"it was started {_MOST_STARTS} times and is not finished"])

    def fail(self, act: Act, why: str) -> None:
        """Note that a try of an act was not enough, and hand it to the next level if it was the
        last one.
        """
        tried = [*self.reasons_of(act), why]
        self._failed_in_a_row[act.department] += 1
        self._failures[act.key] = (act.basis, tried)
        most = 2 * _TRIES + 1 if self._advised.get(act.key) == act.basis else _TRIES
        if len(tried) >= most or self._is_started_too_often(act):
            self._escalate(act, tried)

    def is_failing(self, department: Dept | None) -> bool:
        """Return whether so much failed in a row in a department that its circuit is open."""
        most = self._branch.settings.policy.circuit_failures
        return self._failed_in_a_row[department] >= most

    def _is_started_too_often(self, act: Act) -> bool:
        return self._starts.get(act.key, 0) >= _MOST_STARTS

    # --- given up ---------------------------------------------------------------------------------

    def give_up(self, act: Act, why: str) -> None:
        """Note that an act waits for a person."""
        self._given_up[act.key] = act.basis, safe(why, 1000)

    def is_hopeless(self, act: Act) -> bool:
        """Return whether an act was handed up or given up, and nothing it depends on has changed
        since.
        """
        given_up, _ = self._given_up.get(act.key, (None, ""))
        return act.basis in (given_up, self._escalated.get(act.key))

    def why_given_up(self, act: Act) -> str:
        """Return why an act was given up; empty for one that was not, or may be tried again."""
        _, why = self._given_up.get(act.key, (None, ""))
        return why if self.is_hopeless(act) else ""

    def retry(self, act: Act) -> None:
        """Try an act again that was given up: a person wants it."""
        self._given_up.pop(act.key)
        self._advised.pop(act.key, None)

    # --- up the chain -----------------------------------------------------------------------------

    def _escalate(self, act: Act, tried: Sequence[str]) -> None:
        self._failures.pop(act.key, None)
        self._starts.pop(act.key, None)
        try:
            moved = self._move_up(act, tried)
        except YoloError as error:
            moved = ""
            tried = [*tried, error.message]
        if moved:  # the branch has it in a moment
            self._escalated[act.key] = act.basis
            self._emit("act.escalated", {"agent": act.agent, "to": moved, "why": tried[-1]})
            return
        above = self._branch.report_to(act.agent)
        if above in AGENT_BY_NAME and self._is_advised(act, above, tried):
            return
        if advice := next(
            (advice for advice in self._advice.values() if advice.own.key == act.key), None
        ):
            tried = [*advice.tried, f"{act.agent} decided nothing: {tried[-1]}"]
            act, above = advice.about, act.agent
            del self._advice[act.key]
        why = f"{act.turn.sentence}: {'; '.join(dict.fromkeys(tried))} (reports to {above})"
        self.give_up(act, why)
        of_act = {"agent": act.agent, "step": act.turn.step, "task": act.turn.task}
        self._emit("act.given_up", {**of_act, "why": why})

    def _is_advised(self, act: Act, above: str, tried: Sequence[str]) -> bool:
        """Ask the report-to for a decision; return whether that is what the act waits for now."""
        is_own = any(advice.own.key == act.key for advice in self._advice.values())
        if is_own or self._advised.get(act.key) == act.basis:
            return False
        own = act_of_advice(self._branch.phase, act, above, tried)
        self._advised[act.key] = act.basis
        self._advice[act.key] = Advice(act, own, tuple(tried), self._branch.blobs(own))
        self._emit("act.escalated", {"agent": act.agent, "to": above, "why": tried[-1]})
        return True

    def _move_up(self, act: Act, tried: Sequence[str]) -> str:
        """Return who holds it now; empty if the escalation log cannot hold it."""
        service = Escalations(self._branch.repository, self._branch.settings)
        request = EscalationRequest(
            agent=act.agent,
            reason=safe(
                f"{act.turn.sentence}: not done after {len(tried)} tries: {tried[-1]}", 500
            ),
            boundary="The runner starts an agent twice, then the next level decides",
            evidence=tuple(safe(attempt, 500) for attempt in tried),
            recommendation="Decide what to do differently, or do without it",
            options=("try again", "do without it"),
            severity="blocking",
        )
        escalation = escalation_of(act)
        if act.turn.command and escalation:
            done = service.raise_(escalation, request)
        elif task := self._branch.task_of(act):
            done = service.open(request._replace(task=task))
        else:
            return ""
        if done.is_refused or done.progress is None:
            return ""
        return done.progress.agent
