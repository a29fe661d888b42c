"""Opens the escalation of a loop that is used up, hands up what a level is silent about, and closes
what goes on again: one look a second, next to nothing when idle.

See docs/dev/faults.md#f19 and docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.core.ids import EscalationId, PhaseId
from yolo_fs.core.reasons import Finding, YoloError
from yolo_fs.core.timestamps import Instant
from yolo_fs.escalation_service.clock import note, read_clock, recall
from yolo_fs.escalation_service.moves import (
    Escalations,
    MoveResult,
    PhaseEscalations,
    PhaseLog,
    add_line,
    next_dt,
)
from yolo_fs.escalations.fold import Timeout, due, escalations
from yolo_fs.escalations.lines import (
    EscalationRequest,
    resumed,
    resumes,
    timed_out,
    warning_of,
)
from yolo_fs.escalations.log import EscalationProgress, EscalationStage
from yolo_fs.git.history import log as history
from yolo_fs.git.repository import Repository
from yolo_fs.history.team import Team, loop_facts
from yolo_fs.loops.facts import LoopProgress
from yolo_fs.loops.rounds import exhausted, settled
from yolo_fs.protocol.departments import Role, name_in
from yolo_fs.system.in_place import Appending
from yolo_fs.workspace import ESCALATION_CLOCK, Settings, phases_in

_COMMITS_LOOKED_AT = 500


class AddedLine(NamedTuple):
    """A line that the coordinator added of itself."""

    path: str
    """Log that it was added to, relative to the work tree."""
    id: EscalationId
    line: Mapping[str, Any]
    warning: Mapping[str, Any] | None = None
    """The `escalation_timeout_warning`, where a level was silent that the message knows."""


class Ticker:
    """Watches the clock for the escalations of one work tree."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        tell: EventSink,
        *,
        clock: Callable[[], Instant] = read_clock,
        notify: Callable[[EscalationProgress, PhaseId], object] = lambda one, phase: None,
    ):
        """`notify`: hears of what concerns people."""
        self._repository = repository
        self._settings = settings
        self._tell = tell
        self._clock = clock
        self._notify = notify
        self._logs: dict[PhaseId, PhaseLog] = {}
        self._found: dict[PhaseId, PhaseEscalations] = {}
        self._timers = recall(repository, ESCALATION_CLOCK)
        self._told: set[Finding] = set()
        self._looked_for: tuple[str | None, tuple[str, ...]] = (None, ())
        """Tip and turns at the last look for commits that carry a task on."""

    @property
    def is_pressing(self) -> bool:
        """Whether the branch has moved since the last look while somebody was told how to go on."""
        tip, turns = self._looked_for
        return bool(turns) and self._repository.head().tip != tip

    def tick(self) -> tuple[AddedLine, ...]:
        """Hand up whatever is due and close what goes on; return the lines that were added."""
        open_ = self._open()
        fired = self._close()  # first: whoever went on need not be reminded
        now = self._clock()
        for phase in open_:
            if self._due(phase, now):
                fired += self._fire(phase)
        self._keep_time(self._clock())
        return tuple(fired)

    def _open(self) -> list[PhaseId]:
        """Return the phases with an open escalation; each is read again when a file changed."""
        present = phases_in(self._repository.root)
        for gone in self._logs.keys() - set(present):
            del self._logs[gone]
            self._found.pop(gone, None)
        for phase in present:
            log = self._logs.setdefault(
                phase, PhaseLog(self._repository.root, phase, self._settings)
            )
            before = self._found.get(phase)
            if before is None or list(before.stamps) != list(log.stamps()):
                self._found[phase] = log.look()
                self._tell_of(self._found[phase])
        now = self._clock()
        self._keep_time(now)
        return [
            phase for phase in present if any(one.is_open for one in self._progress(phase, now))
        ]

    def _progress(self, phase: PhaseId, now: Instant) -> tuple[EscalationProgress, ...]:
        return escalations(self._found[phase].known, now.wall)

    def _each(self, now: Instant) -> Iterator[tuple[PhaseId, EscalationProgress]]:
        for phase in self._found:
            for one in self._progress(phase, now):
                yield phase, one

    def _due(self, phase: PhaseId, now: Instant) -> tuple[Timeout, ...]:
        """Return the silent levels of a phase, timed by the clock that nobody sets."""
        progress = self._progress(phase, now)
        keys = {
            one.key: _key(phase, one)
            for one in progress
            if _key(phase, one) in self._timers.since_s
        }
        return due(
            progress, now.wall, {key: self._timers.began(kept, now) for key, kept in keys.items()}
        )

    def _keep_time(self, now: Instant) -> None:
        """Begin to time the turns that are new, and let people know of those that concern them."""
        turns = {_key(phase, one): (phase, one) for phase, one in self._each(now) if one.is_open}
        before, known = self._timers, self._timers.since_s.keys()
        self._timers = before.look({key: one.since for key, (_, one) in turns.items()}, now)
        for key in turns.keys() - known:
            if _concerns_people(turns[key][1]):
                self._notify(turns[key][1], turns[key][0])
        if (before.boot, before.since_s) != (self._timers.boot, self._timers.since_s):
            note(self._repository, ESCALATION_CLOCK, self._timers)

    def _tell_of(self, found: PhaseEscalations) -> None:
        now = self._clock()
        for one in (
            *found.findings,
            *(f for each in escalations(found.known, now.wall) for f in each.findings),
        ):
            if one not in self._told:
                self._told.add(one)
                self._tell(
                    "escalation.finding", f"{PLANNING_ROOT}/phases/{found.phase}", one.as_json()
                )

    def _fire(self, phase: PhaseId) -> list[AddedLine]:
        log = self._logs[phase]
        try:
            with log.appending() as file:
                return list(self._raised(log, file))
        except YoloError as error:
            self._trouble(log, error)
            return []

    def _raised(self, log: PhaseLog, file: Appending) -> Iterator[AddedLine]:
        self._found[log.phase] = log.locked(file, self._clock().wall)
        now = self._clock()
        self._keep_time(now)
        known = self._found[log.phase].known
        progress = self._progress(log.phase, now)
        for late in self._due(log.phase, now):
            one = next(each for each in progress if each.id == late.id)
            line = timed_out(one, late, next_dt(known.lines, str(one.id), now.wall))
            warning = warning_of(one, late)
            if wrong := add_line(file, line, log.path, self._settings):
                self._tell("escalation.finding", log.path, wrong[0].as_json())
                continue
            data = {
                "id": str(one.id),
                "level": late.level.value,
                "to": late.to.value,
                "attempt": late.attempt,
            }
            self._tell(
                "escalation.timeout",
                log.path,
                data | {"warning": warning, "elapsed_s": late.elapsed_s},
            )
            yield AddedLine(log.path, one.id, line, warning)
        self._found[log.phase] = log.locked(file, self._clock().wall)

    def _trouble(self, log: PhaseLog, error: YoloError) -> None:
        found = error.as_finding()
        if found not in self._told:
            self._told.add(found)
            self._tell("escalation.trouble", log.path, found.as_json())

    def _close(self) -> list[AddedLine]:
        """Resolve what waited for its Dev, once a commit carries the task on."""
        now = self._clock()
        waiting = [
            (phase, one)
            for phase, one in self._each(now)
            if one.is_told or (one.claimed and one.standing is EscalationStage.DESCENDING)
        ]
        tip = self._repository.head().tip if waiting else None
        looked_for = (tip, tuple(_key(phase, one) for phase, one in waiting))
        if tip is None or looked_for == self._looked_for:
            return []
        closed = [
            fired for phase, one in waiting for fired in self._carried_on(phase, one, waiting, tip)
        ]
        self._looked_for = looked_for
        return closed

    def _carried_on(
        self,
        phase: PhaseId,
        one: EscalationProgress,
        waiting: list[tuple[PhaseId, EscalationProgress]],
        tip: str,
    ) -> list[AddedLine]:
        is_only = sum(other.id.task.plan == one.id.task.plan for _, other in waiting) == 1
        told_s = int(_told_at(one).timestamp())
        for commit in history(self._repository, tip, limit=_COMMITS_LOOKED_AT):
            if commit.at_s < told_s:
                return []
            is_of_plan = one.origin is not Role.DEV
            if not commit.is_ours and resumes(
                one.id, commit.subject, is_only=is_only, is_of_plan=is_of_plan
            ):
                return self._resolved(phase, one, commit.oid[:12])
        return []

    def _resolved(self, phase: PhaseId, one: EscalationProgress, commit: str) -> list[AddedLine]:
        log = self._logs[phase]
        try:
            with log.appending() as file:
                found = log.locked(file, self._clock().wall)
                still = [
                    each
                    for each in escalations(found.known, self._clock().wall)
                    if each.id == one.id
                ]
                if not still or still[0].standing is not EscalationStage.DESCENDING:
                    return []
                line = resumed(
                    one, commit, next_dt(found.known.lines, str(one.id), self._clock().wall)
                )
                if add_line(file, line, log.path, self._settings):
                    return []
                self._found[phase] = log.locked(file, self._clock().wall)
        except YoloError as error:
            self._trouble(log, error)
            return []
        self._tell(
            "escalation.resolved",
            log.path,
            {"id": str(one.id), "commit": commit, "decision": one.decision},
        )
        return [AddedLine(log.path, one.id, line)]


def _key(phase: PhaseId, one: EscalationProgress) -> str:
    return f"{phase.number}/{one.key}"


def _concerns_people(one: EscalationProgress) -> bool:
    """Return whether a turn is the user's, or somebody was silent."""
    asked = one.holder is Role.USER and one.standing in (
        EscalationStage.RISING,
        EscalationStage.STOPPED,
    )
    return asked or bool(one.history and one.history[-1].move in ("timeout", "remind"))


def _told_at(one: EscalationProgress) -> datetime:
    """Return since when a commit counts: the Dev was told, or, if only claimed, asked."""
    if not one.claimed:
        return one.since
    rising = [each.at for each in one.history if each.at and not each.goes_down]
    return rising[-1] if rising else one.opened_at


class LoopEscalator:
    """Looks at the loops of one work tree whenever its branch has moved."""

    def __init__(self, repository: Repository, settings: Settings, team: Team, tell: EventSink):
        self._repository = repository
        self._escalations = Escalations(repository, settings)
        self._team = team
        self._tell = tell
        self._seen: str | None = None

    def open_due(self, tip: str | None) -> Iterator[str]:
        """Open what is due as of a commit, end what is over, and yield the logs that have grown."""
        if tip is None or tip == self._seen:
            return
        for phase in self._team.phases(tip):
            facts = loop_facts(self._team, phase.facts, 0)
            for one, loop in settled(facts):
                said = _end_of(one, loop, tip)
                yield from self._log("resolved", said, partial(self._escalations.resolve, one.id))
            for said in () if phase.is_complete else exhausted(facts):
                yield from self._log("opened", said, self._escalations.open)
        self._seen = tip

    def _log(
        self, what: str, said: EscalationRequest, move: Callable[[EscalationRequest], MoveResult]
    ) -> Iterator[str]:
        try:
            made = move(said)
        except YoloError as error:
            self._tell("escalation.trouble", said.task, error.as_finding().as_json())
            return
        if not made.is_refused and not made.already:
            self._tell(f"escalation.{what}", made.path, {"task": said.task, "agent": said.agent})
            yield made.path


def _end_of(one: EscalationProgress, loop: LoopProgress, tip: str) -> EscalationRequest:
    return EscalationRequest(
        agent=name_in(one.origin, one.department),
        reason=f"{loop.kind.value} {loop.of} is over: {loop.state}",
        boundary="seen in a commit",
        severity=one.severity,
        decision=one.decision or loop.state,
        shown_by=tip[:12],
        is_over=True,
        task=str(one.id.task),
    )
