"""The result of an agent that has ended: its act is done when the branch no longer waits for it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.verdicts import CandidateState, Held, Rejected
from yolo_fs.company.attempts import Attempts
from yolo_fs.company.awake import AwakeClock
from yolo_fs.company.branch import PATIENCE_S, PENDING_S, Branch
from yolo_fs.company.dev_trees import DevTree, Landing
from yolo_fs.company.obstacles import ObstacleWatch
from yolo_fs.company.on_behalf import commit_source
from yolo_fs.company.schedule import Schedule
from yolo_fs.company.workers import Worker
from yolo_fs.core.reasons import YoloError, shortened
from yolo_fs.phase.acts import Act
from yolo_fs.protocol.departments import Role

LEFT = "left by a runner that ended"
SETTLE_S = 1.0
"""Seconds, beyond the daemon's quiet time, until the branch must have an agent's files."""
_FOLLOWS_S = 15.0
"""Seconds until the escalation log must show that a task continues, once a commit shows it."""
_SHOWN = 5
"""Findings of one file that are passed to the next try."""


class Judge:
    """Judges the agents of one run."""

    def __init__(
        self,
        branch: Branch,
        schedule: Schedule,
        attempts: Attempts,
        obstacle: ObstacleWatch,
        clock: AwakeClock,
        close: Callable[[Worker, str], None],
    ):
        """`close`: receives each agent whose result is known, with its outcome."""
        self._branch, self._schedule, self._attempts = branch, schedule, attempts
        self._obstacle, self._clock, self._close = obstacle, clock, close

    def is_judged(self, worker: Worker) -> bool:
        """Return whether the result of an agent that has ended is known, and close it then."""
        assert worker.ended_at is not None
        waited_s = self._clock.now() - worker.ended_at
        self._schedule.look()
        if worker.tree and not worker.is_merged:
            return self._land_or_fail(worker, worker.tree, waited_s)
        branch, act = self._branch, worker.act
        is_carried_on = branch.is_carried_on(act, worker.record.started)
        settle_s = _FOLLOWS_S if is_carried_on else SETTLE_S
        settle_s += branch.settings.policy.settle_ms / 1000
        same = self._schedule.find(act)
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
        if waited_s < PENDING_S and branch.is_question_coming():
            return False
        mine = branch.unsettled_of(act)
        is_obstructed = self._obstacle.look()
        if waited_s < max((PATIENCE_S[each.standing] for each in mine), default=0.0):
            return False
        if (mine or is_obstructed) and self._obstacle.is_passing and waited_s < PENDING_S:
            return False
        hold = self._obstacle.found if is_obstructed else branch.find_hold(mine)
        worker.hold, held_before = hold, worker.hold
        if worker.hold:
            return False
        if held_before:  # the daemon commits it now
            worker.ended_at = self._clock.now()
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
        is_passing = self._obstacle.look() and self._obstacle.is_passing
        if landing.obstacle and waited_s >= PATIENCE_S[CandidateState.HELD] and not is_passing:
            worker.hold = landing.obstacle
        if not landing.is_settled:
            return False
        worker.hold = None
        if landing.is_merged:  # it is judged by the branch now
            worker.is_merged, worker.ended_at = True, self._clock.now()
            return False
        refused = [landing.refused] if landing.refused else []
        self._fail(worker, self._schedule.find(act) or act, refused)
        return True

    def _fail(self, worker: Worker, act: Act, refused: Sequence[str]) -> None:
        if worker.is_past or worker.is_limited or worker.refusals:  # that was no try of the agent
            not_let_in = f"{'refused' if worker.refusals else 'limited'} by its host"
            self._close(worker, LEFT if worker.is_past else not_let_in)
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
        if lacks := describe_lacks(act) or act.turn.why:
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
        access, root = self._branch.access, self._branch.repository.root
        with suppress(YoloError):
            actor = access.actor(act.agent)
            refused = [access.write(actor, f"{root}/{path}") for path in sources]
            reasons = [
                f"{act.agent} may not write {path}: {decision.rule}"
                for path, decision in zip(sources, refused, strict=True)
                if not decision.allowed
            ]
            return reasons or [f"no commit of {act.task} is on the branch"]
        return []


def describe_lacks(act: Act) -> str:
    """Return what an act lacks, in one line; empty for nothing."""
    return shortened(act.lacks, 3, shown_by="'yolo-fs workflow next'", between="; ")


def _refusals(path: str, verdict: object) -> Iterator[str]:
    name = path.rpartition("/")[2]
    if isinstance(verdict, Rejected):
        yield from (f"{name} was refused: {finding}" for finding in verdict.findings[:_SHOWN])
        if (more := len(verdict.findings) - _SHOWN) > 0:
            yield f"{more} more of {name}: see 'yolo-fs validate {shlex.quote(path)}'"
    elif isinstance(verdict, Held):
        yield f"{name} is held: {verdict.reason.with_sentence}"
