"""Runs the daemon's recurring duties, each when it is due and independently of the others.

A failing duty is reported, retried after growing pauses, and blocks no other.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from yolo_fs.artifacts.decide import EventSink
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Reason, YoloError

FIRST_PAUSE_S = 0.5
"""Pause before a failed duty is retried; doubled with each further failure."""
LONGEST_PAUSE_S = 30.0
LONGEST_REST_S = 30.0
"""Maximum pause after a long-running duty: what it reports lasts minutes."""
LONGEST_SLEEP_S = 1.0
"""Interval of polling what no clock tells, such as a branch moved by another process."""
DEFECTS_KEPT = 100
"""Number of distinct defects that are remembered as reported."""

_Owner = TypeVar("_Owner")


@dataclass(frozen=True, slots=True)
class Duty(Generic[_Owner]):
    """One recurring task."""

    name: str
    run: Callable[[_Owner], float | None]
    """Does it once; returns the seconds until it is due again (None: only on request)."""
    is_wanted: Callable[[_Owner], bool] = lambda _owner: False
    """Whether it is due now, whatever the clock; checked at every turn."""
    rest: float = 0.0
    """It pauses at least this multiple of its duration: commits must not wait for a check of a long
    history."""


class Trouble(NamedTuple):
    """Why a duty failed at its last run."""

    duty: str
    reason: Reason
    what: str

    @property
    def event(self) -> str:
        """Type of the event that reports it; a fault of the environment is not a defect of ours."""
        is_defect = self.reason is Reason.INTERNAL_ERROR
        return "daemon.defect" if is_defect else "daemon.trouble"


@dataclass(slots=True)
class _Plan:
    due_at: float = 0.0
    """On the monotonic clock; infinite if only a request makes it due."""
    rests_until: float = 0.0
    """On the monotonic clock."""
    is_hastened: bool = False
    """Whether it was hastened since its last start."""
    failures: int = 0
    """Consecutive failures, including the last."""
    trouble: Trouble | None = None


class Schedule(Generic[_Owner]):
    """Tracks when each duty is due, and which ones fail. At first all of them are due."""

    def __init__(self, duties: Sequence[Duty[_Owner]], owner: _Owner, emit: EventSink):
        self._duties = duties
        self._owner = owner
        self._emit = emit
        self._plans = {duty.name: _Plan() for duty in duties}
        self._reported: dict[Trouble, None] = {}

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """The failures at the moment."""
        return tuple(plan.trouble for plan in self._plans.values() if plan.trouble)

    def ask(self, *names: str, in_s: float = 0.0) -> None:
        """Make duties due that run only on request; others keep their schedule."""
        for name in names:
            plan = self._plans[name]
            if plan.due_at == math.inf:
                plan.due_at = time.monotonic() + in_s

    def hasten(self, *names: str) -> None:
        """Make duties due now, even if they pause or run; a failing one keeps its pause."""
        for name in names:
            plan = self._plans[name]
            if not plan.failures:
                plan.due_at, plan.rests_until, plan.is_hastened = 0.0, 0.0, True

    def run_due(self, may_go_on: Callable[[], bool]) -> None:
        """Run the duties that are due, in the order of their table, while `may_go_on` allows it."""
        for duty in self._duties:
            if not may_go_on():
                return
            self._run_if_due(duty, self._plans[duty.name])

    def sleep_s(self) -> float:
        """Return the seconds until the next duty is due, at most `LONGEST_SLEEP_S`; an event may
        end the sleep earlier.
        """
        next_at = min(max(plan.due_at, plan.rests_until) for plan in self._plans.values())
        return min(LONGEST_SLEEP_S, max(0.0, next_at - time.monotonic()))

    def _run_if_due(self, duty: Duty[_Owner], plan: _Plan) -> None:
        began = time.monotonic()
        is_due = began >= plan.due_at
        if began < plan.rests_until or (plan.failures and not is_due):
            return
        try:
            if not is_due and not duty.is_wanted(self._owner):
                return
            plan.is_hastened = False
            pause_s = duty.run(self._owner)
        except Exception as error:
            self._fail(duty, plan, error)
        else:
            plan.failures, plan.trouble = 0, None
            now = time.monotonic()
            plan.rests_until = now + min(LONGEST_REST_S, duty.rest * (now - began))
            plan.due_at = math.inf if pause_s is None else now + pause_s
            if plan.is_hastened:
                plan.due_at, plan.rests_until = 0.0, 0.0

    def _fail(self, duty: Duty[_Owner], plan: _Plan, error: Exception) -> None:
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(plan.failures, 10))
        plan.due_at = time.monotonic() + pause_s
        plan.failures += 1
        before, plan.trouble = plan.trouble, _trouble_of(duty.name, error)
        trouble = plan.trouble
        data = to_json(trouble)
        if trouble.event == "daemon.trouble":
            if trouble != before:  # a disk may be full today and again tomorrow
                self._emit(trouble.event, "", data)
        elif trouble not in self._reported and len(self._reported) < DEFECTS_KEPT:
            self._reported[trouble] = None
            trace = "".join(traceback.format_exception(error))
            self._emit(trouble.event, "", data | {"trace": trace})


def _trouble_of(duty: str, error: Exception) -> Trouble:
    match error:
        case YoloError():
            return Trouble(duty, error.reason, str(error))
        case OSError():
            return Trouble(duty, Reason.STORAGE_FAILED, str(error))
        case _:
            return Trouble(duty, Reason.INTERNAL_ERROR, repr(error))
