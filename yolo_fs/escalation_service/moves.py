"""Escalations of a work tree: open, raise, resolve, list, and hand up once after silence.

The log in the work tree, committed or not, is the only memory. It is read again under its lock
before a line is added, so that however many processes tick at once, each level of each attempt is
handed up by one line. See docs/dev/faults.md#f19, #f47 and #f53.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify, place_of_name
from yolo_fs.artifacts.naming import entries_in, purpose_of, undone_by
from yolo_fs.authority.actors import mode_of
from yolo_fs.checking.snapshots import WorkTree
from yolo_fs.core.ids import SHORT, EscalationId, PhaseId, TaskRef
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError, errors, shortened
from yolo_fs.core.timestamps import AHEAD
from yolo_fs.escalation_service.clock import read_clock
from yolo_fs.escalations.fold import escalations
from yolo_fs.escalations.lines import (
    EscalationRequest,
    called,
    message_of,
    opened,
    raised,
    resolved,
    resumes,
)
from yolo_fs.escalations.log import (
    ENTRIES,
    LOG,
    EscalationLog,
    EscalationProgress,
    EscalationStage,
    LogEntry,
    act_of,
    departments_among,
    station,
)
from yolo_fs.escalations.machine import advance, begin, wanting
from yolo_fs.evidence.facts import Plan, Work, WorkflowOptions, is_work_of, touches
from yolo_fs.git.history import read_commit
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept
from yolo_fs.protocol.roster import department_said
from yolo_fs.system.files import Content, names_in, read, stamp_at
from yolo_fs.system.in_place import Appending, UnwrittenLog, appending
from yolo_fs.system.readers import read_lines, read_object
from yolo_fs.system.text_checks import Limits, Reading
from yolo_fs.workspace.planning_tree import find_phase
from yolo_fs.workspace.settings import Settings


class PhaseEscalations(NamedTuple):
    """The escalations of one phase in the work tree."""

    phase: PhaseId
    stamps: Sequence[object]
    """Differs once one of its files has changed."""
    known: EscalationLog
    findings: tuple[Finding, ...]
    """What could not be read."""


class PhaseLog:
    """The log of one phase, and the entries beside it."""

    def __init__(self, root: str, phase: PhaseId, settings: Settings):
        self._root = root
        self._settings = settings
        self.phase = phase
        self.folder = f"{PLANNING_ROOT}/phases/{phase}"
        self.path = f"{self.folder}/{LOG}"
        """Relative to the work tree."""
        self._entries: tuple[Mapping[str, Any], ...] = ()
        """The entries when the execution state could last be read; a torn file changes nothing."""

    @property
    def full_path(self) -> str:
        """Absolute path of the log."""
        return os.path.join(self._root, self.path)

    def appending(self) -> AbstractContextManager[Appending]:
        """Hold the log as `in_place.appending` does."""
        return appending(self.full_path, root=self._root)

    def stamps(self) -> tuple[object, ...]:
        """Return stamps that differ once a file with data about escalations has changed."""
        paths = (f"{self._root}/{path}" for path in (self.path, *self._states()))
        return tuple(stamp_at(path, by_link=False) for path in paths)

    def look(self) -> PhaseEscalations:
        """Read everything again."""
        stamps = self.stamps()
        content = read(self._root, self.path, self._settings.policy.max_file_bytes)
        if isinstance(content, Content):
            return self.read(
                content.data, datetime.fromtimestamp(content.stamp.mtime_ns / 1e9, UTC), stamps
            )
        wrong = () if content.reason is Reason.FILE_MISSING else (content,)
        return self._read(Reading((), wrong, torn=False), None, stamps)

    def locked(self, log: Appending, now: datetime) -> PhaseEscalations:
        """Read everything again while the log is locked for appending."""
        data = log.read(self._settings.policy.max_file_bytes)
        return (
            self.read(data, now, self.stamps())
            if data
            else self._read(Reading((), (), torn=False), None, ())
        )

    def read(self, data: bytes, written_at: datetime, stamps: Sequence[object]) -> PhaseEscalations:
        """Return the escalations of a log with this content."""
        return self._read(read_lines(data, self.path, self._settings.limits), written_at, stamps)

    def _read(
        self, reading: Reading, written_at: datetime | None, stamps: Sequence[object]
    ) -> PhaseEscalations:
        entries, wrong = self._read_entries()
        known = EscalationLog(
            mode=mode_of(WorkflowOptions(self._settings.config)),
            rules=self._settings.config.escalation,
            lines=tuple(record.value for record in reading.records),
            entries=entries,
            written_at=written_at,
            departments=self._departments(),
            numbers=tuple(record.line for record in reading.records),
        )
        return PhaseEscalations(self.phase, stamps, known, (*errors(reading.findings), *wrong))

    def _states(self) -> tuple[str, str]:
        return f"{self.folder}/{ENTRIES}", f"{PLANNING_ROOT}/{ENTRIES}"

    def _read_entries(self) -> tuple[tuple[Mapping[str, Any], ...], tuple[Finding, ...]]:
        """Return the execution state's entries; the phase's own file wins.

        See docs/dev/sources.md#c12.
        """
        wrong: tuple[Finding, ...] = ()
        for path in self._states():
            content = read(self._root, path, self._settings.policy.max_file_bytes)
            if isinstance(content, Finding):
                wrong += () if content.reason is Reason.FILE_MISSING else (content,)
                continue
            reading = read_object(content.data, path, self._settings.limits)
            wrong += errors(reading.findings)
            if reading.records and reading.records[0].value.get("phase") == int(self.phase.number):
                self._entries = entries_in(reading.records[0].value)
                return self._entries, wrong
        if not wrong:
            self._entries = ()
        return self._entries, wrong

    def _departments(self) -> dict[str, tuple[Dept, ...]]:
        places = (
            classify(f"{self.folder}/{name}")
            for name in names_in(os.path.join(self._root, self.folder))
        )
        plans = (place for place in places if place and place.artifact.kind == "plan")
        return departments_among(plans)


def fails_audit(root: str, folder: str, department: Dept, limits: Limits) -> bool:
    """Return whether a department's security audit of a phase says FAIL."""
    for name in names_in(os.path.join(root, folder)):
        place = classify(f"{folder}/{name}")
        if place is None or place.artifact.kind != "security-audit":
            continue
        if place.department != department:
            continue
        content = read(root, place.path, limits.max_file_bytes)
        if not isinstance(content, Content):
            continue
        records = read_lines(content.data, place.path, limits).records
        if records and records[0].value.get("r") == "FAIL":
            return True
    return False


def next_dt(lines: Sequence[Mapping[str, Any]], name: str, now: datetime) -> str:
    """Return the time for a new line: now, but later than every line of that escalation.

    It is later as text, too: those who check the log compare text, and a clock may have been set
    back.
    """
    latest = max((str(line.get("dt")) for line in lines if line.get("id") == name), default="")
    for at in (
        now,
        *(_time_after(latest, step) for step in (timedelta(microseconds=1), timedelta(seconds=1))),
    ):
        if at and (written := _iso(at)) > latest:
            return written
    return _iso(now)


def _time_after(latest: str, step: timedelta) -> datetime | None:
    try:
        return datetime.fromisoformat(latest).astimezone(UTC) + step
    except (ValueError, OverflowError):
        return None


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def add_line(
    log: Appending, line: Mapping[str, Any], path: str, settings: Settings
) -> tuple[Finding, ...]:
    """Append a line if it passes the schema; otherwise return the findings and append nothing."""
    from yolo_fs.schemas.check import check
    from yolo_fs.schemas.lines.escalation import EscalationLine

    _, faults = check(EscalationLine, line, settings.mode)
    wrong = tuple(fault.as_finding(path) for fault in faults)
    if not errors(wrong):
        log.add_record(line)
    return errors(wrong)


@dataclass(frozen=True, slots=True)
class MoveResult:
    """Result of a move."""

    progress: EscalationProgress | None = None
    line: Mapping[str, Any] = field(default_factory=dict)
    """The line of the log; empty when it was refused."""
    message: Mapping[str, Any] | None = None
    """Message to send to the next level, if the document defines one."""
    findings: tuple[Finding, ...] = ()
    already: bool = False
    """Whether the log already said so."""
    path: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether nothing was logged."""
        return bool(errors(self.findings))


_Draft = Callable[[EscalationId, EscalationProgress | None, EscalationLog], dict[str, Any]]
"""Builds the line of a move, without id and time, from the state of the escalation."""
_Naming = Callable[[EscalationLog], EscalationId]
"""Names the escalation by what the log says while it is locked."""


class Escalations:
    """The escalations of one work tree, for commands."""

    def __init__(
        self, repository: Repository, settings: Settings, clock: Callable[[], Any] = read_clock
    ):
        self._repository = repository
        self._settings = settings
        self._clock = clock

    def phase_log(self, phase: PhaseId) -> PhaseLog:
        """Return the log of a phase."""
        return PhaseLog(self._repository.root, phase, self._settings)

    def list(self, phase: PhaseId) -> tuple[tuple[EscalationProgress, ...], tuple[Finding, ...]]:
        """Return the state of each escalation of a phase, and the findings about them."""
        log = self.phase_log(phase)
        reading = log.look()
        now = self._clock().wall
        progress = escalations(reading.known, now)
        return progress, _locate_findings(
            (*reading.findings, *(finding for each in progress for finding in each.findings)), log
        )

    def open(self, request: EscalationRequest, to: str = "") -> MoveResult:
        """Report that a task is blocked, or blocked again because the decision did not help.

        Raises:
            YoloError: BAD_NAME, UNKNOWN_NAME for a task or its phase; LOCK_TIMEOUT; UNTERMINATED.
        """
        task = TaskRef.named(request.task)
        self._require_task(task)
        return self._move(
            task,
            lambda known: known.name_for(task, request.agent),
            lambda name, escalation, known: opened(request, to, name, escalation, known),
            request,
        )

    def raise_(self, name: EscalationId, request: EscalationRequest, to: str = "") -> MoveResult:
        """Hand an escalation to the next level up.

        Raises:
            YoloError: UNKNOWN_NAME for its phase; LOCK_TIMEOUT; UNTERMINATED.
        """
        return self._move(
            name.task,
            lambda _: name,
            lambda _, escalation, known: raised(request, to, escalation),
            request,
        )

    def resolve(self, name: EscalationId, request: EscalationRequest, to: str = "") -> MoveResult:
        """Decide, pass a decision on, or report that the task goes on, depending on the speaker.

        Raises:
            YoloError: UNKNOWN_NAME for its phase; BAD_USAGE without a decision where there is none
                yet; LOCK_TIMEOUT; UNTERMINATED.
        """
        named = request.shown_by
        if not (named or request.decision) and (asked := self._undecided(name)):
            raise YoloError(
                Reason.BAD_USAGE,
                f"{name} is not decided yet, and no decision is given",
                hint=f"It is with {asked.agent}, who {act_of(asked)[0]} ('{act_of(asked)[1]}').",
                exit_code=Exit.USAGE,
            )
        if _names_commit(named) and not _is_hash(named) and (oid := self._repository.tip(named)):
            request = request._replace(shown_by=oid[:SHORT])
        return self._move(
            name.task,
            lambda _: name,
            lambda _, escalation, known: resolved(request, to, escalation),
            request,
        )

    def decision_going_down(self, name: EscalationId) -> str:
        """Return the decision that an escalation goes down with; empty while it has none.

        Raises:
            YoloError: UNKNOWN_NAME for its phase.
        """
        known, _ = self.list(find_phase(self._repository.root, name.task.plan.phase))
        going = (each for each in known if each.standing is EscalationStage.DESCENDING)
        return next((each.decision for each in going if each.id == name), "")

    def _undecided(self, name: EscalationId) -> EscalationProgress | None:
        known, _ = self.list(find_phase(self._repository.root, name.task.plan.phase))
        asking = (EscalationStage.RISING, EscalationStage.STOPPED)
        return next((each for each in known if each.id == name and each.standing in asking), None)

    def _require_task(self, task: TaskRef) -> None:
        """Reject a task that no plan of its phase has, once there is a plan."""
        phase = find_phase(self._repository.root, task.plan.phase)
        folder = f"{PLANNING_ROOT}/phases/{phase}"
        tree = WorkTree(self._repository.root, self._settings.policy.max_file_bytes)
        known: set[str] = set()
        for name in tree.names(folder):
            place, data = place_of_name(name), tree.content(f"{folder}/{name}")
            if place and place.plan and isinstance(data, bytes):
                tasks = read_lines(data, name, self._settings.limits).records[1:]
                known |= {f"{place.plan}/{line.value.get('id')}" for line in tasks}
        if known and str(task) not in known:
            hint = f"the phase has {shortened(sorted(known), 8, shown_by=f'{folder}/*.plan.jsonl')}"
            message = f"no plan of the phase has task {task}"
            raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint)

    def _move(
        self, task: TaskRef, naming: _Naming, draft: _Draft, request: EscalationRequest
    ) -> MoveResult:
        log = self.phase_log(find_phase(self._repository.root, task.plan.phase))
        if not os.path.lexists(log.full_path):  # opening it would make it, for a refused move too
            empty = UnwrittenLog()
            reading = log.locked(empty, self._clock().wall)
            tried = self._logged(empty, log, reading, naming, draft, request)
            if tried.is_refused:
                return tried
        with log.appending() as file:
            reading = log.locked(file, self._clock().wall)
            return self._logged(file, log, reading, naming, draft, request)

    def _logged(
        self,
        file: Appending,
        log: PhaseLog,
        reading: PhaseEscalations,
        naming: _Naming,
        draft: _Draft,
        request: EscalationRequest,
    ) -> MoveResult:
        now, name = self._clock().wall, naming(reading.known)
        escalation = _named(escalations(reading.known, now), name)
        last = escalation.history[-1] if escalation else None
        dt = next_dt(reading.known.lines, str(name), now)
        line = {"id": str(name), "dt": dt, **draft(name, escalation, reading.known)}
        line["sev"] = request.severity or (escalation.severity if escalation else "blocking")
        speaker = request.agent or (escalation.agent if escalation else "")
        line["agent"] = called(speaker, escalation, name, reading.known)
        new = station(len(reading.known.lines) + 1, name, line)
        if last is not None and escalation is not None and _says_the_same(last, new):
            return MoveResult(
                escalation, line, message_of(escalation, last), already=True, path=log.path
            )
        wrong = errors(
            [
                *self._refusals(escalation, new, reading, log),
                *self._find_unproved_claims(new, request, log, escalation),
            ]
        )
        wrong = _locate_findings(wrong, log) or add_line(file, line, log.path, self._settings)
        if wrong:
            return MoveResult(escalation, findings=wrong, path=log.path)
        after = _named(
            escalations(log.locked(file, self._clock().wall).known, self._clock().wall), name
        )
        assert after is not None
        return MoveResult(
            after,
            line,
            message_of(after, new) or request.original,
            _report_stopped(after, log),
            path=log.path,
        )

    def _refusals(
        self,
        escalation: EscalationProgress | None,
        new: LogEntry,
        reading: PhaseEscalations,
        log: PhaseLog,
    ) -> tuple[Finding, ...]:
        if escalation is None:
            if new.state != "open":
                hint = (
                    "'yolo-fs escalate list' shows those there are; 'yolo-fs escalate "
                    "open' opens one."
                )
                return (
                    Finding(
                        Reason.UNKNOWN_REFERENCE, LOG, message=f"there is no {new.id}", hint=hint
                    ),
                )
            department = reading.known.department_of(new.id, new.agent)
            opened, wrong = begin(new, reading.known, department, is_known=False)
            return (*wrong, *wanting(opened, new))
        moved, wrong = advance(escalation, new, reading.known)
        return wrong if moved is escalation else (*wrong, *wanting(escalation, new))

    def _find_unproved_claims(
        self,
        new: LogEntry,
        request: EscalationRequest,
        log: PhaseLog,
        escalation: EscalationProgress | None,
    ) -> tuple[Finding, ...]:
        """Return claims without evidence: a commit made since, a failed audit."""
        is_claimed = _names_commit(new.shown_by) and not request.is_over
        message = self._is_no_progress(new.shown_by, escalation) if is_claimed else ""
        if message:
            expected = "the commit that carries the task on"
            return (Finding(Reason.UNKNOWN_COMMIT, LOG, 0, "/ref", message, expected),)
        department = department_said(request.agent) or DEFAULT_DEPARTMENT
        if request.fails and not fails_audit(
            self._repository.root, log.folder, department, self._settings.limits
        ):
            message = (
                f"only a security FAIL skips the chain, and no security audit of {department}"
                " in the phase says FAIL"
            )
            hint = "Write the audit with r FAIL first; or ask the Lead."
            return (
                Finding(Reason.WRONG_LEVEL, LOG, 0, "/tgt", message, "an audit that fails", hint),
            )
        return ()

    def _is_no_progress(self, name: str, escalation: EscalationProgress | None) -> str:
        """Return why a commit is no evidence that the task goes on; empty if it is.

        It is on this branch, and names the task or its plan, or changes a file of the plan.
        """
        made = read_commit(self._repository, f"{name}^{{commit}}")
        if made is None:
            return f"{name} is not a commit of this repository"
        if escalation is None:
            return ""
        task = escalation.id.task
        of = purpose_of(undone_by(made.subject)[0])
        if of and of.plan not in (None, task.plan):
            return f"{name} is work on {of.plan}"
        if made.at_s < int(escalation.opened_at.timestamp()) - int(AHEAD.total_seconds()):
            return f"{name} is older than the escalation"
        facts_reader = FactsReader(self._repository, self._settings)
        phases = facts_reader.phases(self._repository.head().tip)
        commit = facts_reader.history_index.commit(name)
        if commit is None:
            return f"{name} is not on this branch"
        every_plan = [plan for phase in phases for plan in phase.facts.plans]
        if is_work_of_another(commit.files, escalation, every_plan):
            return f"{name} is work of another department on its {task.plan}"
        if resumes(escalation.id, made.subject, is_only=False, is_of_plan=True):
            return ""
        plans = (plan for plan in every_plan if plan.id == task.plan)
        files = frozenset(file for plan in plans for file in plan.files)
        changed = commit.files  # unknown, and so empty, in a clone without trees
        work = {path for path in changed if not path.startswith(f"{PLANNING_ROOT}/")}
        if changed and not (touches(files, changed) if files else work):
            return f"{name} neither names {task} nor changes a file of its plan"
        return ""


def is_work_of_another(
    files: frozenset[str], escalation: EscalationProgress, plans: Iterable[Plan]
) -> bool:
    """Return whether a commit with these files is work of another department alone, which has a
    plan of the same number.
    """
    named = [plan for plan in plans if plan.id == escalation.id.task.plan]
    work = Work(str(escalation.id.task.plan), 0, files=files)
    owners = {plan.department for plan in named if is_work_of(work, plan.department, named)}
    is_shared = len({plan.department for plan in named}) > 1
    return is_shared and bool(owners) and escalation.department not in owners


def _says_the_same(last: LogEntry, new: LogEntry) -> bool:
    """Return whether a line repeats the last one: its caller may not know that it was logged."""
    shown = [
        (entry.agent, entry.state, entry.reason, entry.decision, entry.shown_by)
        for entry in (last, new)
    ]
    return shown[0] == shown[1]


def _named(
    progress: tuple[EscalationProgress, ...], name: EscalationId
) -> EscalationProgress | None:
    return next((escalation for escalation in progress if escalation.id == name), None)


def _locate_findings(findings: tuple[Finding, ...], log: PhaseLog) -> tuple[Finding, ...]:
    """Return findings of the rules, with the path of the log in this work tree."""
    return tuple(
        finding
        if finding.path.startswith(log.folder)
        else replace(finding, path=f"{log.folder}/{finding.path}")
        for finding in findings
    )


def _report_stopped(escalation: EscalationProgress, log: PhaseLog) -> tuple[Finding, ...]:
    if escalation.standing is not EscalationStage.STOPPED:
        return ()
    message = (
        f"{escalation.id} went up and came back {escalation.round_trips} times: "
        "the work on it stops"
    )
    hint = (
        f"Only the user's decision ends it: yolo-fs escalate resolve {escalation.id} --by user "
        "--decision …"
    )
    return (
        Finding(Reason.STATE_CONFLICT, log.path, 0, "", message, "a decision", hint, Level.WARNING),
    )


def _is_hash(text: str) -> bool:
    return 7 <= len(text) <= 64 and all(char in "0123456789abcdef" for char in text)


def _names_commit(text: str) -> bool:
    """Return whether a reference is meant as a commit, and not as a message of the Dev."""
    return bool(text) and " " not in text
