"""Reads and extends the escalation log of a phase as it is in the work tree, committed or not.

See docs/faults.md#f19, #f47 and #f53.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from yolo_fs.edges.append import Appending
from yolo_fs.edges.files import Content, names_in, read, stamp_of
from yolo_fs.edges.lines import Limits, Reading, read_lines, read_object
from yolo_fs.ids import PhaseId
from yolo_fs.protocol.names import Dept
from yolo_fs.reasons import Finding, Reason, errors
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.naming import entries_in
from yolo_fs.rules.escalations.log import ENTRIES, LOG, EscalationLog, mode_of
from yolo_fs.rules.evidence.facts import Switches
from yolo_fs.schemas.base import check
from yolo_fs.schemas.lines.escalation import EscalationLine
from yolo_fs.services.workspace.settings import Settings


@dataclass(frozen=True, slots=True)
class PhaseEscalations:
    """What the work tree says of the escalations of one phase."""

    phase: PhaseId
    stamps: Sequence[object]
    """What differs once a file of it was changed."""
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
        """As they were when the execution state could last be read: a torn one says nothing of
        them.
        """

    @property
    def full_path(self) -> str:
        """Where the log is."""
        return os.path.join(self._root, self.path)

    def stamps(self) -> tuple[object, ...]:
        """Return what differs once a file changed that says anything of escalations."""
        return tuple(stamp_of(self._root, path) for path in (self.path, *self._states()))

    def look(self) -> PhaseEscalations:
        """Read everything anew."""
        stamps = self.stamps()
        content = read(self._root, self.path, self._settings.policy.max_file_bytes)
        if isinstance(content, Content):
            return self.found(
                content.data, datetime.fromtimestamp(content.stamp.mtime_ns / 1e9, UTC), stamps
            )
        wrong = () if content.reason is Reason.FILE_MISSING else (content,)
        return self._found(Reading((), wrong, torn=False), None, stamps)

    def locked(self, log: Appending, now: datetime) -> PhaseEscalations:
        """Read everything anew while nobody else appends."""
        data = log.read(self._settings.policy.max_file_bytes)
        return (
            self.found(data, now, self.stamps())
            if data
            else self._found(Reading((), (), torn=False), None, ())
        )

    def found(
        self, data: bytes, written_at: datetime, stamps: Sequence[object]
    ) -> PhaseEscalations:
        """Return what the log says that holds these bytes."""
        return self._found(read_lines(data, self.path, self._limits), written_at, stamps)

    def _found(
        self, reading: Reading, written_at: datetime | None, stamps: Sequence[object]
    ) -> PhaseEscalations:
        entries, wrong = self._read_entries()
        known = EscalationLog(
            mode=mode_of(several=Switches(self._settings.config).several_departments),
            rules=self._settings.config.escalation,
            lines=tuple(record.value for record in reading.records),
            entries=entries,
            written_at=written_at,
            departments=self._departments(),
            numbers=tuple(record.line for record in reading.records),
        )
        return PhaseEscalations(self.phase, stamps, known, (*errors(reading.findings), *wrong))

    @property
    def _limits(self) -> Limits:
        return self._settings.limits

    # --- what stands beside it ---

    def _states(self) -> tuple[str, str]:
        return f"{self.folder}/{ENTRIES}", f"{PLANNING_ROOT}/{ENTRIES}"

    def _read_entries(self) -> tuple[tuple[Mapping[str, Any], ...], tuple[Finding, ...]]:
        """Return the entries of the phase's execution state; the one in its directory wins
        (docs/sources.md#c12).
        """
        wrong: tuple[Finding, ...] = ()
        for path in self._states():
            content = read(self._root, path, self._settings.policy.max_file_bytes)
            if isinstance(content, Finding):
                wrong += () if content.reason is Reason.FILE_MISSING else (content,)
                continue
            reading = read_object(content.data, path, self._limits)
            wrong += errors(reading.findings)
            if reading.records and reading.records[0].value.get("phase") == int(self.phase.number):
                self._entries = entries_in(reading.records[0].value)
                return self._entries, wrong
        if not wrong:
            self._entries = ()
        return self._entries, wrong

    def _departments(self) -> dict[str, Dept]:
        places = (
            classify(f"{self.folder}/{name}")
            for name in names_in(os.path.join(self._root, self.folder))
        )
        plans = (place for place in places if place and place.artifact.kind == "plan")
        return {str(place.plan): Dept(place.department) for place in plans}


def fails_audit(root: str, folder: str, limits: Limits) -> bool:
    """Return whether a security audit of a phase says FAIL."""
    for name in names_in(os.path.join(root, folder)):
        place = classify(f"{folder}/{name}")
        if place and place.artifact.kind == "security-audit":
            content = read(root, place.path, limits.max_file_bytes)
            records = (
                read_lines(content.data, place.path, limits).records
                if isinstance(content, Content)
                else ()
            )
            if any(record.value.get("r") == "FAIL" for record in records[:1]):
                return True
    return False


def next_dt(lines: Sequence[Mapping[str, Any]], name: str, now: datetime) -> str:
    """Return the moment of a new line: now, yet later than every line of that escalation, also as
    text.

    Moments are compared as text by whoever checks the log, and a clock may have been set back.
    """
    latest = max((str(line.get("dt")) for line in lines if line.get("id") == name), default="")
    for at in (
        now,
        *(_just_after(latest, step) for step in (timedelta(microseconds=1), timedelta(seconds=1))),
    ):
        if at and (written := _iso(at)) > latest:
            return written
    return _iso(now)


def _just_after(latest: str, step: timedelta) -> datetime | None:
    try:
        return datetime.fromisoformat(latest).astimezone(UTC) + step
    except (ValueError, OverflowError):
        return None


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def add_line(
    log: Appending, line: Mapping[str, Any], path: str, settings: Settings
) -> tuple[Finding, ...]:
    """Append a line that passes the schema; else return what is wrong with it, and append
    nothing.
    """
    _, faults = check(EscalationLine, line, settings.mode)
    wrong = tuple(fault.as_finding(path) for fault in faults)
    if not errors(wrong):
        log.add(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode())
    return errors(wrong)
