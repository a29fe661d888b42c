"""The agents at work: what they print, how long they may be silent, and how they end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from yolo_fs.company import agents
from yolo_fs.company.awake import AwakeClock
from yolo_fs.company.branch import Branch
from yolo_fs.company.dev_trees import DevTree
from yolo_fs.company.hosts import HOST_BY_NAME, HostProgram, notes_in
from yolo_fs.company.runs import Listener, RunAct
from yolo_fs.core.reasons import Reason, safe
from yolo_fs.phase.acts import Act
from yolo_fs.system.files import stamp_at
from yolo_fs.system.system import wait_for_end

_LIMIT_WAITS_S = (30.0, 60.0, 120.0, 300.0)
"""Seconds without new starts after a host's rate limit: the first time, the second in a row …"""
_MOST_PRINTED_BYTES = 64 * 1024 * 1024
"""Maximum size of what an agent prints, errors included; one that prints more is ended."""
_SURE_REFUSALS = 2
"""Refusals in a row after which its host has no hope: of one, a host renews its key."""
_READ_BYTES = 1 << 20
_TAIL_BYTES = 4096


@dataclass
class Worker:
    """An agent at work."""

    act: Act
    record: RunAct
    folder: str
    process: agents.Process
    child: subprocess.Popen[bytes] | None
    """None if an earlier runner started it."""
    stamps: tuple[object, ...] = ()
    """Times and sizes of its files at its last heartbeat."""
    read: int = 0
    """Bytes of its stream that are already parsed."""
    sign_at: float = 0.0
    """Time of its last heartbeat, by the clock of `Workers`, like the other times."""
    asked_at: float | None = None
    """When it was asked to stop."""
    ended_at: float | None = None
    is_past: bool = False
    """It ended while no runner watched: what it left counts, but it was no try, and what it says of
    a limit of its host is past.
    """
    is_limited: bool = False
    refusals: int = 0
    """Times in a row that its host's service has let it in no more."""
    refusal: str = ""
    """What its host said of the last of them."""
    answer: str = ""
    """Its last message, if its host reports it."""
    why: str = ""
    """Why we asked it to stop or ended it, or why its answer or its source could not be taken;
    empty otherwise.
    """
    hold: Reason | None = None
    """What keeps what it made from being committed, that only a person ends."""
    tree: DevTree | None = None
    """The work tree of its own; None for that of the run."""
    is_merged: bool = False
    """Whether the branch of the run has what was made there."""

    @property
    def host(self) -> HostProgram:
        """The host that started it, whichever the run has for its role now."""
        return HOST_BY_NAME[self.record.host]

    @property
    def root(self) -> str:
        """Root of the work tree of its own; empty for that of the run."""
        return self.tree.root if self.tree else ""

    @property
    def exit_code(self) -> int | None:
        return self.child.returncode if self.child else None

    @property
    def printed_bytes(self) -> int:
        """Size of what it has printed."""
        paths = (os.path.join(self.folder, name) for name in (agents.STREAM, agents.ERRORS))
        stamps = (stamp_at(path, by_link=False) for path in paths)
        return sum(stamp.size for stamp in stamps if stamp)

    @property
    def last_error(self) -> str:
        """The last line that it printed on its standard error."""
        with suppress(OSError), agents.printed(self.folder, agents.ERRORS) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
            return safe(lines[-1], 300) if lines else ""
        return ""

    def explain_end(self) -> Iterator[str]:
        """Yield what was wrong with how it ended."""
        if self.why:
            yield self.why
        if self.exit_code:
            how = (
                f"signal {-self.exit_code}" if self.exit_code < 0 else f"exit code {self.exit_code}"
            )
            answer = (
                f", with the output: {safe(self.answer.strip(), 300)}"
                if self.answer.strip()
                else ""
            )
            yield f"its process ended with {how}{answer}"


class Workers:
    """The agents of one run that are at work, or have just ended."""

    def __init__(self, branch: Branch, emit: Listener):
        self._branch, self._emit = branch, emit
        self.clock = AwakeClock()
        self.refusals: dict[str, str] = {}
        """Host that lets nobody in → what it says."""
        self._all: list[Worker] = []
        self._limits: dict[str, int] = {}
        """Host → its rate limits in a row."""
        self._wait_until: dict[str, float] = {}

    def __iter__(self) -> Iterator[Worker]:
        return iter(list(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def may_start_in(self, host: HostProgram) -> bool:
        """Return whether a host lets us start somebody now."""
        is_limited = self.clock.now() < self._wait_until.get(host.name, 0.0)
        return not is_limited and host.name not in self.refusals

    def has_any_just_ended(self, within_s: float) -> bool:
        """Return whether the result of an agent that ended a moment ago is not known."""
        ends = [worker.ended_at for worker in self._all if worker.ended_at is not None]
        return bool(ends) and self.clock.now() - max(ends) < within_s

    def add(self, worker: Worker) -> None:
        """Watch a worker from now on."""
        worker.sign_at = self.clock.now()
        self._all.append(worker)

    def wait(self, seconds: float) -> None:
        """Wait so long, or until an agent ends."""
        ends = [worker.process.pid for worker in self._all if worker.ended_at is None]
        wait_for_end(ends, seconds)

    def remove(self, worker: Worker) -> None:
        """Watch a worker no longer: it has ended, and its result is known."""
        self._all.remove(worker)

    def has_just_ended(self, worker: Worker) -> bool:
        """Read what a worker has printed, and return whether it has ended since the last call.

        Nothing of its process group runs then any more.
        """
        self._read(worker)
        if worker.ended_at is None and worker.printed_bytes > _MOST_PRINTED_BYTES:
            worker.why = worker.why or "it printed too much"
            agents.end_group(worker.process)
        if worker.ended_at is not None or _is_alive(worker):
            return False
        worker.ended_at = self.clock.now()
        agents.end_group(worker.process)
        self._read_to_end(worker)
        if worker.refusals and not worker.is_past:
            self.refusals[worker.host.name] = worker.refusal
        if not worker.is_limited and worker.record.tokens:  # the host serves again
            self._limits.pop(worker.host.name, None)
        return True

    def bill(self, left: Worker) -> None:
        """Add the usage of an agent of a phase that is not run any more."""
        left.record.tokens, left.record.cost_usd = 0, 0.0
        left.ended_at = self.clock.now()
        self._read_to_end(left)

    def _read(self, worker: Worker) -> None:
        """Parse the new part of an agent's stream; one that its agent has removed has none."""
        data = b""
        with suppress(OSError), agents.printed(worker.folder, agents.STREAM) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= worker.read:
                return
            file.seek(worker.read)
            data = file.read(_READ_BYTES)
        end = data.rfind(b"\n") + 1
        if not data:
            return
        if not end and len(data) < _READ_BYTES and worker.ended_at is None:
            return
        worker.read += end or len(data)
        worker.sign_at = self.clock.now()
        for note in notes_in(worker.host, data[: end or len(data)]):
            worker.record.tokens += note.tokens
            worker.record.cost_usd += note.cost_usd
            worker.record.tool = note.tool or worker.record.tool
            worker.answer = note.answer or worker.answer
            if note.is_limited and not worker.is_limited and not worker.is_past:
                worker.is_limited = True
                self._wait_for_host(worker)
            if note.refusal:
                worker.refusals, worker.refusal = worker.refusals + 1, note.refusal
            elif note.tool or note.tokens:
                worker.refusals = 0

    def _read_to_end(self, worker: Worker) -> None:
        before = -1
        while worker.read != before:
            before = worker.read
            self._read(worker)

    def _wait_for_host(self, worker: Worker) -> None:
        host, before = worker.host.name, self._limits.get(worker.host.name, 0)
        wait_s = _LIMIT_WAITS_S[min(before, len(_LIMIT_WAITS_S) - 1)]
        self._limits[host] = before + 1
        self._wait_until[host] = self.clock.now() + wait_s
        self._emit("host.limited", worker.record.named | {"wait_s": wait_s})

    def hold_to_time(self, worker: Worker) -> None:
        """Ask an agent to stop after too long a silence, or once its host has no hope; end it after
        the deadline.
        """
        now, rules = self.clock.now(), self._branch.settings.config.company
        if worker.asked_at is not None:
            if now - worker.asked_at > rules.deadline_s:
                self._emit("agent.ended", worker.record.named | {"why": "ignored the deadline"})
                agents.end_group(worker.process)
            return
        if worker.refusals >= _SURE_REFUSALS:
            why, reason = "its host refuses the login", "error"
        elif now - worker.sign_at <= rules.silent_s:
            return
        elif (stamps := self._branch.stamps(worker.act, worker.root)) != worker.stamps:
            worker.stamps, worker.sign_at = stamps, now
            return
        else:
            why, reason = f"it was silent for {rules.silent_s} s", "timeout"
        worker.asked_at, worker.why = now, why
        agents.ask_to_stop(worker.process, worker.folder, rules.deadline_s, reason)
        self._emit("agent.asked_to_stop", worker.record.named | {"why": worker.why})

    def end_all(self, why: str) -> None:
        """End every agent at once."""
        for worker in self._all:
            worker.why = worker.why or why
            agents.end_group(worker.process)

    @property
    def records(self) -> Sequence[RunAct]:
        """What the run notes of each."""
        return [worker.record for worker in self._all]


def _is_alive(worker: Worker) -> bool:
    if worker.child is not None:
        return worker.child.poll() is None
    return worker.process.is_alive
