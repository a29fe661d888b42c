"""What somebody on the stage asks: yolo-fs, the branch, or whoever waits at a gate.

A question is asked again until its deadline; nothing sleeps in the hope that something has happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from yolo_fs.demo.outcome import DifferentError, Mark, Outcome
from yolo_fs.demo.stage import Stage
from yolo_fs.demo.story import Agrees, Keeps, Question, Says, Sleeps, Wakes
from yolo_fs.reasons import Reason, safe

AGAIN_S = 0.02
"""Between two questions of what git or yolo-fs says."""


class Questions:
    """Asks on one stage, until a deadline on the monotonic clock."""

    def __init__(self, stage: Stage, until: float):
        self._stage = stage
        self._until = until

    def ask(self, wanted: Question) -> Outcome:
        """Return the answer that is wanted.

        Raises:
            DifferentError: another one came.
        """
        match wanted:
            case Says():
                self._until_so(lambda: self._command(wanted))
                return Outcome(Mark.YES if wanted.is_yes else Mark.NO, wanted.said)
            case Keeps(path, data, said):
                self._until_so(lambda: difference(data, self._stage.committed_object(path)))
                return Outcome(Mark.YES, said)
            case Agrees(answers, said):
                for answer in answers:
                    self.ask(answer)
                return Outcome(Mark.YES, said)
            case Sleeps():
                self._until_so(self._sleeper)
                return Outcome(Mark.WAITING, "asleep until the gate opens")
            case Wakes():
                return self._woken()
            case _ as never:
                assert_never(never)

    def _command(self, wanted: Says) -> str:
        code, data = self._stage.ask(*wanted.command)
        if code != wanted.exit_code:
            return f"yolo-fs {' '.join(wanted.command)} exits with {code}"
        return difference(wanted.data, data)

    def _sleeper(self) -> str:
        waiter = self._stage.waiter
        return "" if waiter and waiter.is_asleep else "nobody sleeps at the gate"

    def _woken(self) -> Outcome:
        waiter = self._stage.waiter
        answer = waiter.answer(self._until - time.monotonic()) if waiter else {}
        if waiter is None or answer.get("open") is not True:
            raise DifferentError(f"expected to be woken; it says {safe(str(answer))}")
        return Outcome(Mark.YES, f"woken: {waiter.gate} is open")

    def _until_so(self, differs: Callable[[], str]) -> None:
        while found := differs():
            if time.monotonic() > self._until:
                raise DifferentError(found, Reason.DEADLINE_PASSED)
            time.sleep(AGAIN_S)


def difference(wanted: Mapping[str, object], data: object) -> str:
    """Return the first place at which data are not as wanted."""
    for pointer, value in wanted.items():
        if (found := _at(data, pointer)) != value:
            return f"expected {pointer} {value!r}, it is {safe(str(found))}"
    return ""


def _at(data: object, pointer: str) -> Any:
    """Return what a JSON pointer names; None when it names nothing, the number of its items for a list."""
    for part in pointer.strip("/").split("/"):
        if isinstance(data, list):
            data = dict(enumerate(data)).get(int(part))
        else:
            data = data.get(part) if isinstance(data, dict) else None
    return len(data) if isinstance(data, list) else data
