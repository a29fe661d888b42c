"""Escalates exhausted loops, hands up after silence, and closes what goes on again.

It ticks once a second and costs next to nothing when idle. See docs/dev/faults.md#f19 and
docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.core.ids import SHORT, EscalationId, PhaseId
from yolo_fs.core.reasons import Finding, YoloError
from yolo_fs.core.timestamps import Instant
from yolo_fs.escalation_service.clock import note, read_clock, recall
from yolo_fs.escalation_service.moves import (
    Escalations,
    MoveResult,
    PhaseEscalations,
    PhaseLog,
    add_line,
    is_work_of_another,
    next_dt,
)
from yolo_fs.escalations.fold import Timeout, due, escalations
from yolo_fs.escalations.lines import EscalationRequest, resumed, resumes, timed_out, warning_of
from yolo_fs.escalations.log import EscalationProgress, EscalationStage
from yolo_fs.git.history import log as history
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader, loop_facts
from yolo_fs.loops.rounds import exhausted, settled
from yolo_fs.protocol.departments import Role, name_in
from yolo_fs.system.in_place import Appending
from yolo_fs.system.readers import read_lines
from yolo_fs.system.text_checks import Limits
from yolo_fs.workspace.own_files import ESCALATION_CLOCK
from yolo_fs.workspace.planning_tree import phases_in
from yolo_fs.workspace.settings import Settings

_COMMITS_LOOKED_AT = 500


class AddedLine(NamedTuple):
    """A line that the coordinator added on its own initiative."""

    path: str
    """Log that it was added to, relative to the work tree."""
    id: EscalationId
    line: Mapping[str, Any]
    warning: Mapping[str, Any] | None = None
    """The `escalation_timeout_warning`, if that message type knows the silent level."""


class Ticker:
    """Tracks the deadlines of the escalations of one work tree."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        emit: EventSink,
        *,
        clock: Callable[[], Instant] = read_clock,
        notify: Callable[[EscalationProgress, PhaseId], object] = lambda escalation, phase: None,
    ):
        """`notify`: called for each escalation that concerns a person."""
        self._repository = repository
        self._settings = settings
        self._emit = emit
        self._clock = clock
        self._notify = notify
        self._logs: dict[PhaseId, PhaseLog] = {}
        self._found: dict[PhaseId, PhaseEscalations] = {}
        self._timers = recall(repository, ESCALATION_CLOCK)
        self._told: set[Finding] = set()
        self._looked_for: tuple[str | None, tuple[str, ...]] = (None, ())
        """Tip and turns at the last search for commits that continue a task."""

    @property
    def is_pressing(self) -> bool:
        """Whether the branch has moved since the last search while a Dev is expected to go on."""
        tip, turns = self._looked_for
        return bool(turns) and self._repository.head().tip != tip

    def tick(self) -> tuple[AddedLine, ...]:
        """Hand up what is due and close what goes on again; return the added lines."""
        open_ = self._open()
        fired = self._close()  # first: whoever went on need not be reminded
        now = self._clock()
        for phase in open_:
            if self._due(phase, now):
                fired += self._fire_due_timers(phase)
        self._keep_time(self._clock())
        return tuple(fired)

    def _open(self) -> list[PhaseId]:
        """Return the phases with an open escalation; a phase is read again after a file changed."""
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
            phase
            for phase in present
            if any(escalation.is_open for escalation in self._progress_of(phase, now))
        ]

    def _progress_of(self, phase: PhaseId, now: Instant) -> tuple[EscalationProgress, ...]:
        return escalations(self._found[phase].known, now.wall)

    def _escalations_at(self, now: Instant) -> Iterator[tuple[PhaseId, EscalationProgress]]:
        for phase in self._found:
            for escalation in self._progress_of(phase, now):
                yield phase, escalation

    def _due(self, phase: PhaseId, now: Instant) -> tuple[Timeout, ...]:
        """Return the silent levels of a phase; durations use a clock that cannot be set."""
        progress = self._progress_of(phase, now)
        keys = {
            escalation.key: _key(phase, escalation)
            for escalation in progress
            if _key(phase, escalation) in self._timers.since_s
        }
        return due(
            progress, now.wall, {key: self._timers.began(kept, now) for key, kept in keys.items()}
        )

    def _keep_time(self, now: Instant) -> None:
        """Start timing the new turns, and notify people of those that concern them."""
        turns = {
            _key(phase, escalation): (phase, escalation)
            for phase, escalation in self._escalations_at(now)
            if escalation.is_open
        }
        before, known = self._timers, self._timers.since_s.keys()
        self._timers = before.look(
            {key: escalation.since for key, (_, escalation) in turns.items()}, now
        )
        for key in turns.keys() - known:
            if _concerns_people(turns[key][1]):
                self._notify(turns[key][1], turns[key][0])
        if (before.boot, before.since_s) != (self._timers.boot, self._timers.since_s):
            note(self._repository, ESCALATION_CLOCK, self._timers)

    def _tell_of(self, reading: PhaseEscalations) -> None:
        now = self._clock()
        for finding in (
            *reading.findings,
            *(f for each in escalations(reading.known, now.wall) for f in each.findings),
        ):
            if finding not in self._told:
                self._told.add(finding)
                self._emit(
                    "escalation.finding",
                    f"{PLANNING_ROOT}/phases/{reading.phase}",
                    finding.as_json(),
                )

    def _fire_due_timers(self, phase: PhaseId) -> list[AddedLine]:
        log = self._logs[phase]
        try:
            with log.appending() as file:
                return list(self._append_due_lines(log, file))
        except YoloError as error:
            self._trouble(log, error)
            return []

    def _append_due_lines(self, log: PhaseLog, file: Appending) -> Iterator[AddedLine]:
        self._found[log.phase] = log.locked(file, self._clock().wall)
        now = self._clock()
        self._keep_time(now)
        known = self._found[log.phase].known
        progress = self._progress_of(log.phase, now)
        for late in self._due(log.phase, now):
            escalation = next(each for each in progress if each.id == late.id)
            line = timed_out(escalation, late, next_dt(known.lines, str(escalation.id), now.wall))
            warning = warning_of(escalation, late)
            if wrong := add_line(file, line, log.path, self._settings):
                self._emit("escalation.finding", log.path, wrong[0].as_json())
                continue
            data = {
                "id": str(escalation.id),
                "level": late.level.value,
                "to": late.to.value,
                "attempt": late.attempt,
            }
            self._emit(
                "escalation.timeout",
                log.path,
                data | {"warning": warning, "elapsed_s": late.elapsed_s},
            )
            yield AddedLine(log.path, escalation.id, line, warning)
        self._found[log.phase] = log.locked(file, self._clock().wall)

    def _trouble(self, log: PhaseLog, error: YoloError) -> None:
        finding = error.as_finding()
        if finding not in self._told:
            self._told.add(finding)
            self._emit("escalation.trouble", log.path, finding.as_json())

    def _close(self) -> list[AddedLine]:
        """Resolve escalations that wait for their Dev, once a commit continues the task."""
        now = self._clock()
        waiting = [
            (phase, escalation)
            for phase, escalation in self._escalations_at(now)
            if escalation.is_told
            or (escalation.claimed and escalation.standing is EscalationStage.DESCENDING)
        ]
        tip = self._repository.head().tip if waiting else None
        looked_for = (tip, tuple(_key(phase, escalation) for phase, escalation in waiting))
        if tip is None or looked_for == self._looked_for:
            return []
        closed = [
            fired
            for phase, escalation in waiting
            for fired in self._resolve_if_resumed(phase, escalation, waiting, tip)
        ]
        self._looked_for = looked_for
        return closed

    def _resolve_if_resumed(
        self,
        phase: PhaseId,
        escalation: EscalationProgress,
        waiting: list[tuple[PhaseId, EscalationProgress]],
        tip: str,
    ) -> list[AddedLine]:
        of = (escalation.id.task.plan, escalation.department)
        is_only = [(other.id.task.plan, other.department) for _, other in waiting].count(of) == 1
        told_s = int(_find_time_told(escalation).timestamp())
        for commit in history(self._repository, tip, limit=_COMMITS_LOOKED_AT):
            is_of_plan = escalation.origin is not Role.DEV
            is_said = not commit.is_ours and resumes(
                escalation.id, commit.subject, is_only=is_only, is_of_plan=is_of_plan
            )
            if (
                is_said
                and (commit.at_s >= told_s or self._was_told_at(commit.oid, phase, escalation))
                and self._is_work_on(escalation, commit.oid, tip)
            ):
                return self._resolve_by_commit(phase, escalation, commit.oid[:SHORT])
        return []

    def _was_told_at(self, commit: str, phase: PhaseId, escalation: EscalationProgress) -> bool:
        """Return whether a commit has the line that told the decision: it was made after it, by
        whatever clock.
        """
        path, (*_, told) = self._logs[phase].path, escalation.history
        blob = None
        with suppress(YoloError):  # a clone without trees cannot tell
            blob = self._repository.blob_at(commit, path)
        log = self._repository.objects.read(blob) if blob else None
        records = read_lines(log.body, path, Limits()).records if log else ()
        return any(
            (str(told.id), told.dt) == (each.value.get("id"), each.value.get("dt"))
            for each in records
        )

    def _is_work_on(self, escalation: EscalationProgress, commit: str, tip: str) -> bool:
        """Return whether a commit that says so is not another department's work of that number."""
        facts_reader = FactsReader(self._repository, self._settings)
        plans = [plan for facts in facts_reader.facts(tip) for plan in facts.plans]
        made = facts_reader.history_index.commit(commit)
        return made is None or not is_work_of_another(made.files, escalation, plans)

    def _resolve_by_commit(
        self, phase: PhaseId, escalation: EscalationProgress, commit: str
    ) -> list[AddedLine]:
        log = self._logs[phase]
        try:
            with log.appending() as file:
                reading = log.locked(file, self._clock().wall)
                still = [
                    each
                    for each in escalations(reading.known, self._clock().wall)
                    if each.id == escalation.id
                ]
                if not still or still[0].standing is not EscalationStage.DESCENDING:
                    return []
                line = resumed(
                    escalation,
                    commit,
                    next_dt(reading.known.lines, str(escalation.id), self._clock().wall),
                )
                if add_line(file, line, log.path, self._settings):
                    return []
                self._found[phase] = log.locked(file, self._clock().wall)
        except YoloError as error:
            self._trouble(log, error)
            return []
        self._emit(
            "escalation.resolved",
            log.path,
            {"id": str(escalation.id), "commit": commit, "decision": escalation.decision},
        )
        return [AddedLine(log.path, escalation.id, line)]


def _key(phase: PhaseId, escalation: EscalationProgress) -> str:
    return f"{phase.number}/{escalation.key}"


def _concerns_people(escalation: EscalationProgress) -> bool:
    """Return whether it is the user's turn, or a level was silent."""
    is_asked = escalation.holder is Role.USER and escalation.standing in (
        EscalationStage.RISING,
        EscalationStage.STOPPED,
    )
    return is_asked or bool(
        escalation.history and escalation.history[-1].move in ("timeout", "remind")
    )


def _find_time_told(escalation: EscalationProgress) -> datetime:
    """Return the time from which a commit counts: the Dev was told, or, if only claimed, asked."""
    if not escalation.claimed:
        return escalation.since
    rising = [each.at for each in escalation.history if each.at and not each.goes_down]
    return rising[-1] if rising else escalation.opened_at


class LoopEscalator:
    """Checks the loops of one work tree whenever its branch has moved."""

    def __init__(
        self, repository: Repository, settings: Settings, facts_reader: FactsReader, emit: EventSink
    ):
        self._escalations = Escalations(repository, settings)
        self._facts_reader = facts_reader
        self._emit = emit
        self._seen: str | None = None

    def open_due(self, tip: str | None) -> Iterator[str]:
        """Open what is due as of a commit, end what is over, and yield the logs that changed."""
        if tip is None or tip == self._seen:
            return
        for phase in self._facts_reader.phases(tip):
            facts = loop_facts(self._facts_reader, phase.facts, 0)
            for escalation, about, end in settled(facts):
                request = _end_of(escalation, about, end, tip)
                yield from self._log(
                    "resolved", request, partial(self._escalations.resolve, escalation.id)
                )
            for request in () if phase.is_complete else exhausted(facts):
                yield from self._log("opened", request, self._escalations.open)
        self._seen = tip

    def _log(
        self, what: str, request: EscalationRequest, move: Callable[[EscalationRequest], MoveResult]
    ) -> Iterator[str]:
        try:
            made = move(request)
        except YoloError as error:
            self._emit("escalation.trouble", request.task, error.as_finding().as_json())
            return
        if not made.is_refused and not made.already:
            self._emit(
                f"escalation.{what}", made.path, {"task": request.task, "agent": request.agent}
            )
            yield made.path


def _end_of(escalation: EscalationProgress, about: str, end: str, tip: str) -> EscalationRequest:
    return EscalationRequest(
        agent=name_in(escalation.origin, escalation.department),
        reason=f"{about} is over: {end}",
        boundary="seen in a commit",
        severity=escalation.severity,
        decision=escalation.decision or end,
        shown_by=tip[:SHORT],
        is_over=True,
        task=str(escalation.id.task),
    )
