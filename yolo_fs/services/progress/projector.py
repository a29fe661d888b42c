"""Writes down what the fold says of departments that work side by side: their status, their sentinels, their gates.

A projection is a function of history alone, so a crash between a commit and this heals at the next
look. A project with one department keeps none of these files and gets none; those who wait at its
gates are told all the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from yolo_fs.edges import failpoint
from yolo_fs.edges.files import is_plain_file
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import SHARED, Damaged, read_json, reap_temporaries, update, write_json
from yolo_fs.reasons import Reason, YoloError
from yolo_fs.rules.artifacts.verdicts import Rejected, Verdict
from yolo_fs.rules.decide import EventSink
from yolo_fs.rules.evidence.facts import Switches
from yolo_fs.rules.phase.gates import GateStatus
from yolo_fs.rules.phase.phase import Phase
from yolo_fs.rules.phase.progress import DepartmentStatus
from yolo_fs.rules.states.department import department_status
from yolo_fs.rules.timestamps import iso
from yolo_fs.services.history.team import Team
from yolo_fs.services.progress.gate_wait import NoticeWriter
from yolo_fs.services.workspace.places import (
    notice_path,
    own_phase_folder,
    phase_folder,
    waiters_path,
)
from yolo_fs.services.workspace.settings import Settings


class Projector:
    """Keeps the projections of one work tree true."""

    def __init__(self, repository: Repository, settings: Settings, team: Team, tell: EventSink):
        self._repository = repository
        self._switches = Switches(settings.config)
        self._team = team
        self._tell = tell
        self._notices = NoticeWriter(notice_path(repository), waiters_path(repository))
        self._open: set[tuple[str, str]] = set()
        """(phase, gate) that were open at the last look."""
        self._done: object = None
        """Commit and errors that everything was written for."""
        self._has_failed = False

    def bring_up_to_date(self, commit: str | None, unsettled: Mapping[str, Verdict]) -> None:
        """Write every projection as of a commit; nothing is written that is true already."""
        writes = self._switches.several_departments
        if not (writes or self._notices.are_awaited()):
            return
        errors = _first_errors(unsettled)
        if (commit, errors) == self._done:
            return
        self._has_failed = False
        phases = self._team.phases(commit)
        gates = {str(phase.id): phase.gates for phase in phases}
        self._notices.write(
            _open_gates(gates), commit or ""
        )  # first and synced to no disk: whole teams wait for it
        if writes:
            self._note_gates(gates)
            self._write(phases, errors)
        self._done = None if self._has_failed else (commit, errors)

    def _write(self, phases: Iterable[Phase], errors: Mapping[str, str]) -> None:
        for phase in phases:
            with self._told(phase_folder(self._repository.root, phase.id)):
                self._departments(phase, errors)
                self._sentinels(phase)

    # --- department status ---

    def _departments(self, phase: Phase, errors: Mapping[str, str]) -> None:
        folder = self._folder(phase)
        for department in phase.progress.departments:
            path = os.path.join(folder, f".dept-status-{department.department}.json")
            if _is_over(phase, path):
                continue
            self._status(folder, path, department, errors.get(str(phase.id), ""))

    def _status(self, folder: str, path: str, department: DepartmentStatus, error: str) -> None:
        lock = os.path.join(folder, f".dept-lock-{department.department}")
        with self._told(path):
            reap_temporaries(folder, 0)
            failpoint.reach("projections.begun")
            update(path, lock, _merge(department, error), timeout_s=2.0, mode=SHARED)
            failpoint.reach("projections.written")

    # --- gates ---

    def _note_gates(self, gates: Mapping[str, tuple[GateStatus, ...]]) -> None:
        for phase, of_phase in gates.items():
            for gate in of_phase:
                self._note_gate(phase, gate)

    def _note_gate(self, phase: str, gate: GateStatus) -> None:
        key = (phase, gate.name)
        if gate.is_open and key not in self._open:
            self._open.add(key)
            self._tell(
                "gate.opened",
                phase,
                {"gate": gate.name, "evidence": [list(pair) for pair in gate.evidence]},
            )
        elif not gate.is_open and key in self._open:
            self._open.discard(key)
            self._tell("gate.closed", phase, {"gate": gate.name, "why": str(gate.missing[0])})

    def _sentinels(self, phase: Phase) -> None:
        for name, content in phase.sentinels.items():
            path = os.path.join(self._folder(phase), name)
            if not _is_over(phase, path):
                self._sentinel(path, content)

    def _sentinel(self, path: str, content: str) -> None:
        """Write a sentinel that is missing or stale. A link or a folder in its place is left, and shown as forged."""
        value = json.loads(content)
        if read_json(path) == value or (os.path.lexists(path) and not is_plain_file(path)):
            return
        with self._told(path):
            write_json(path, value, mode=SHARED)
            failpoint.reach("sentinels.written")

    # --- around it ---

    def _folder(self, phase: Phase) -> str:
        return own_phase_folder(self._repository.root, phase.id)

    @contextlib.contextmanager
    def _told(self, path: str) -> Any:
        """Tell of a projection that could not be written, and go on: the next look tries again."""
        try:
            yield
        except (OSError, YoloError) as error:
            reason = error.reason if isinstance(error, YoloError) else Reason.STORAGE_FAILED
            self._tell(
                "projection.failed",
                os.path.relpath(path, self._repository.root),
                {"reason": reason.value},
            )
            self._has_failed = True


def _open_gates(gates: Mapping[str, tuple[GateStatus, ...]]) -> dict[str, list[str]]:
    return {
        phase: [gate.name for gate in of_phase if gate.is_open] for phase, of_phase in gates.items()
    }


def _is_over(phase: Phase, path: str) -> bool:
    """Tell whether a phase is complete and somebody has cleaned this up already."""
    return phase.is_complete and not os.path.lexists(path)


def _merge(department: DepartmentStatus, error: str) -> Callable[[Any], dict[str, Any] | None]:
    def merged(before: dict[str, Any] | Damaged | None) -> dict[str, Any] | None:
        failpoint.reach("projections.locked")
        old = before if isinstance(before, dict) else {}
        fresh = department_status(department, old, iso(time.time()), error)
        return fresh if fresh != before else None

    return merged


def _first_errors(unsettled: Mapping[str, Verdict]) -> dict[str, str]:
    """Return for each phase the first finding of its first rejected artifact."""
    found: dict[str, str] = {}
    rejected = {
        path: verdict for path, verdict in unsettled.items() if isinstance(verdict, Rejected)
    }
    for path in sorted(rejected):
        parts = path.split("/")
        if "phases" in parts:
            found.setdefault(parts[parts.index("phases") + 1], str(rejected[path].findings[0]))
    return found
