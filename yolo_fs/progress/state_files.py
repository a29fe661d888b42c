"""Writes the state files that are derived from committed history.

These are the execution state, the orchestration, the project state, and the status, sentinels and
gates of departments that work in parallel.

A state file that the branch has is committed like any artifact before the next is computed, one
transition at a time. The next look repairs a crash at any point. A state file that the branch does
not have is kept beside it: it follows from artifacts, so each clone makes its own, and history is
complete without it. A file that somebody is writing is left alone until it is committed. A project
with one department has no sentinels and no orchestration. Sentinels made by hand open nothing. See
docs/dev/faults.md#f58.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from yolo_fs.artifacts.classify import PROJECT_STATE, classify
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.artifacts.examine import understand
from yolo_fs.artifacts.table import HIDDEN
from yolo_fs.artifacts.verdicts import Rejected, Verdict
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.core.timestamps import iso
from yolo_fs.evidence.facts import CommittedArtifact, WorkflowOptions
from yolo_fs.git.excluded import hide
from yolo_fs.git.obstacles import PathRules
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.gate_status import GateStatus
from yolo_fs.phase.gates import was_proved
from yolo_fs.phase.phase import Phase, Phases, with_committed
from yolo_fs.phase.progress import DepartmentStatus
from yolo_fs.progress.state_move import FreshArtifact, StateMove, tracked_state
from yolo_fs.schemas.layout import Record
from yolo_fs.states.execution import next_execution_state
from yolo_fs.states.project import (
    current,
    department_status,
    is_ours,
    orchestration,
    project_state,
    says_ours,
)
from yolo_fs.system import failpoint
from yolo_fs.system.file_locks import locked, update
from yolo_fs.system.files import Content, Stamp, is_plain_file, read, stamp_at
from yolo_fs.system.readers import READERS
from yolo_fs.system.store import (
    SHARED,
    Damaged,
    ListedFolder,
    json_text,
    read_json,
    reap_temporaries,
    remove,
    write_json,
)
from yolo_fs.system.text_checks import Limits
from yolo_fs.workspace.own_files import states_lock
from yolo_fs.workspace.planning_tree import RUNNING, own_phase_folder, phase_folder
from yolo_fs.workspace.settings import Settings


def forged_sentinels(
    folder: ListedFolder, phase: Phase, facts_reader: FactsReader
) -> tuple[str, ...]:
    """Return the sentinel files that are links, made by hand, or of another phase (F58).

    Where the evidence opens the gate, a file claims nothing that is not so: after a squash, a
    rebase or a switch of branches it names other commits, until the daemon writes it anew.
    """
    wrong = tuple(
        name
        for name in _find_wrong_sentinels(folder, phase)
        if name not in phase.sentinels or os.path.islink(os.path.join(folder.path, name))
    )
    stale = stale_sentinels(folder, phase, facts_reader) if wrong else ()
    there = ListedFolder.at(folder.path).names if wrong else ()  # the daemon takes the stale away
    return tuple(name for name in wrong if name in there and name not in stale)


def stale_sentinels(
    folder: ListedFolder, phase: Phase, facts_reader: FactsReader
) -> tuple[str, ...]:
    """Return our own sentinel files whose evidence is out of force. The daemon removes them."""

    def changed_by(name: str) -> frozenset[str]:
        commit = facts_reader.history_index.commit(name)
        return commit.files if commit and commit.oid == name else frozenset()

    return tuple(
        name
        for name in _find_wrong_sentinels(folder, phase)
        if is_plain_file(path := os.path.join(folder.path, name))
        and was_proved(name, phase.id, read_json(path), changed_by)
    )


def _find_wrong_sentinels(folder: ListedFolder, phase: Phase) -> Iterator[str]:
    for name in folder.names:
        if not name.startswith(".handoff-"):
            continue
        content = phase.sentinels.get(name)
        is_true = content is not None and folder.read_json(name) == json.loads(content)
        if os.path.islink(os.path.join(folder.path, name)) or not is_true:
            yield name


EXECUTION = ".execution-state.json"
STATE_FILES = ("state.json", EXECUTION, ".phase-orchestration.json")
_ESCALATIONS = "/escalation.jsonl"

_Next = Callable[[Mapping[str, Any] | None], dict[str, Any] | None]


class States:
    """The state files of one work tree."""

    def __init__(self, repository: Repository, settings: Settings, facts_reader: FactsReader):
        self._repository = repository
        self._settings = settings
        self._limit = settings.policy.max_file_bytes
        self._wanted = settings.policy.state_files
        self._always = (
            self._wanted in ("kept", "always")
            or WorkflowOptions(settings.config).several_departments
        )
        self._rules = PathRules(repository, hidden=HIDDEN)
        self._mode = settings.mode
        self._spoilt: set[str] = set()
        """Files with an invalid content of ours, as of the last look."""
        self._read: dict[str, Stamp | None] = {}
        """Path → stamp of the file when it was read; None where there was none."""
        self._facts_reader = facts_reader
        self._true: object = None
        """The commit and the kept files at which everything was up to date."""
        self._seen: tuple[str | None, Phases] = (None, ())
        """The commit that was looked at last, and its phases."""

    def close(self) -> None:
        """End the helper processes."""
        self._rules.close()

    def moved_by(self, tip: str | None, fresh: Sequence[FreshArtifact]) -> StateMove | None:
        """Return what `state.json` says once these artifacts are committed on the tip.

        None where it says so already, where the branch does not have it, or where that has to be
        computed first: then it follows in its own commit.
        """
        blob = tracked_state(self._repository, self._settings, tip)
        if blob is not None and self._seen[0] is None:
            # A team of its own, for nothing may be committed while this one reads.
            self._seen = (tip, FactsReader(self._repository, self._settings).phases(tip))
        seen, phases = self._seen
        if (
            seen != tip
            or blob is None
            or any(artifact.place.path == PROJECT_STATE for artifact in fresh)
        ):
            return None
        content = read(self._repository.root, PROJECT_STATE, self._limit)
        if not isinstance(content, Content) or not says_ours(content.data):
            return None
        if self._repository.object_format.hash_object("blob", content.data).oid != blob:
            return None
        committed = map(self._build_committed, fresh)
        state = project_state(with_committed(phases, committed), parse(content.data, self._limit))
        return StateMove(PROJECT_STATE, content.data, json_text(state)) if state else None

    def _build_committed(self, fresh: FreshArtifact) -> CommittedArtifact:
        place = fresh.place
        limits = Limits(max_file_bytes=self._limit)
        records = READERS[place.artifact.format](fresh.data, place.path, limits).records
        lines = tuple(record.value for record in understand(place, records, self._mode).records)
        return CommittedArtifact(place, lines, valid=True, commit=fresh.blob, at_s=int(time.time()))

    def write_next(self, commit: str | None, known: Iterable[str]) -> str | None:
        """Write the files beside the branch, and the first outdated state file on it.

        Return the path of the latter, or None when all are up to date. `known`: the paths of all
        candidates.
        """
        if (
            commit is None
            or self._wanted == "never"
            or not (self._always or _has_state_files(known))
        ):
            return None
        phases = self._facts_reader.phases(commit)
        self._seen = (commit, phases)
        rows = {
            path: content
            for path, is_over, content in _rows(phases)
            if self._is_ours_to_keep(path, is_over=is_over)
        }
        beside = self._find_kept_beside(commit, rows)
        if (commit, [*rows], self._stamps(beside)) == self._true:
            return None
        self._repository.make_own_dir()
        with locked(states_lock(self._repository), _PATIENCE_S):
            if self._repository.head().tip != commit:  # the files are of a later commit by now
                return None
            return self._write(commit, rows, beside)

    def _write(self, commit: str, rows: Mapping[str, _Next], beside: Sequence[str]) -> str | None:
        self._spoilt, self._read = set(), {}
        late = [path for path in beside if not self._keep(path, rows[path])]
        kept = {path: content for path, content in rows.items() if path not in beside}
        contents = {path: self._committed(commit, path) for path in kept}
        for path, next_content in kept.items():
            if contents[path] is _IN_FLIGHT:
                continue
            fresh = next_content(contents[path])
            if fresh is None and path in self._spoilt:
                fresh = contents[path]
            if fresh is not None:
                if self._is_faulty(path, fresh):  # a defect of ours must not block anybody's work
                    contents[path] = _IN_FLIGHT
                    continue
                failpoint.reach("states.begun")
                try:
                    full = os.path.join(self._repository.root, path)
                    root, check = self._repository.root, partial(self._check, path)
                    write_json(full, fresh, root=root, mode=SHARED, last_check=check)
                except _WrittenMeanwhileError:  # the work of somebody, and seen at the next look
                    contents[path] = _IN_FLIGHT
                    continue
                failpoint.reach("states.written")
                return path
        is_true = not late and _IN_FLIGHT not in contents.values()
        self._true = (commit, [*rows], self._stamps(beside)) if is_true else None
        return None

    def _find_kept_beside(self, commit: str, paths: Iterable[str]) -> tuple[str, ...]:
        """Return which of the files are kept beside the branch: those that it does not have."""
        if self._wanted != "kept":
            return ()
        return tuple(path for path in paths if self._repository.blob_at(commit, path) is None)

    def _stamps(self, paths: Iterable[str]) -> list[Stamp | None]:
        return [stamp_at(f"{self._repository.root}/{path}", by_link=False) for path in paths]

    def _keep(self, path: str, next_content: _Next) -> bool:
        """Update a file beside the branch to what history says; return whether it is up to date."""
        before = self._read_beside(path)
        if before is _IN_FLIGHT:
            return False
        fresh = before
        for _ in range(_MOST_STEPS):
            if (later := next_content(fresh)) is None:
                break
            fresh = later
        if fresh is before or self._is_faulty(path, fresh):
            return True
        root, check = self._repository.root, partial(self._check, path)
        failpoint.reach("states.keeping")
        try:
            full = os.path.join(root, path)
            reap_temporaries(os.path.dirname(full))
            write_json(full, fresh, root=root, mode=SHARED, last_check=check)
        except _WrittenMeanwhileError:
            return False
        failpoint.reach("states.kept")
        return True

    def _read_beside(self, path: str) -> Any:
        """Return what a file beside the branch says; None where there is nothing of ours.

        What others write is theirs until it is committed, unless git ignores it.
        """
        content = read(self._repository.root, path, self._limit)
        self._read[path] = content.stamp if isinstance(content, Content) else None
        if not isinstance(content, Content):
            return None if content.reason is Reason.FILE_MISSING else _IN_FLIGHT
        if content.being_written:
            return _IN_FLIGHT
        try:
            state = parse(content.data, len(content.data))
        except ValueError:
            state = None
        if not isinstance(state, dict):
            return _IN_FLIGHT
        if self._is_faulty(path, state):
            return None if is_ours(state) else _IN_FLIGHT
        is_ignored = self._rules.reason_to_hold(path, in_head=False) is Reason.GITIGNORED
        return state if is_ours(state) or is_ignored else _IN_FLIGHT

    def _check(self, path: str) -> None:
        if stamp_at(os.path.join(self._repository.root, path), by_link=False) != self._read[path]:
            raise _WrittenMeanwhileError

    def _is_ours_to_keep(self, path: str, *, is_over: bool) -> bool:
        full = os.path.join(self._repository.root, path)
        if not os.path.isdir(os.path.dirname(full)):
            return False  # somebody moved the phase away, and has not committed that
        is_asked_for = path != RUNNING and (
            (self._always and not (is_over and self._wanted == "kept"))
            # An escalation is referred to by its entry in the execution state of its phase.
            or (
                path.endswith(EXECUTION)
                and os.path.lexists(f"{os.path.dirname(full)}{_ESCALATIONS}")
            )
        )
        return is_asked_for or os.path.lexists(full)

    def _committed(self, commit: str, path: str) -> Any:
        """Return the committed content of a file; `_IN_FLIGHT` unless the work tree has the
        same.
        """
        blob = self._repository.blob_at(commit, path)
        content = read(self._repository.root, path, self._limit)
        self._read[path] = content.stamp if isinstance(content, Content) else None
        if not isinstance(content, Content):
            return None if content.reason is Reason.FILE_MISSING and blob is None else _IN_FLIGHT
        if content.being_written:
            return _IN_FLIGHT
        is_same = blob == self._repository.object_format.hash_object("blob", content.data).oid
        if not is_same and not self._is_our_fault(path, content.data):
            return _IN_FLIGHT
        if not is_same:
            self._spoilt.add(path)
        lines = self._facts_reader.lines_at(path, blob) if blob else ()
        return lines[0] if lines or is_same else None

    def _is_our_fault(self, path: str, data: bytes) -> bool:
        """Return whether an unchanged content of ours is invalid, and has to be written anew."""
        return says_ours(data) and self._is_faulty(path, parse(data, len(data)))

    def _is_faulty(self, path: str, content: Mapping[str, Any]) -> bool:
        """Return whether a state file of this content would be rejected."""
        place = classify(path)
        assert place is not None
        return not understand(place, [Record(1, dict(content))], self._mode).is_sound


_IN_FLIGHT = object()
_PATIENCE_S = 2.0
_MOST_STEPS = 100
"""Most transitions that one look records; the next look continues."""


class _WrittenMeanwhileError(Exception):
    """Somebody wrote a file after it was read."""


def _rows(phases: Phases) -> Iterator[tuple[str, bool, _Next]]:
    """Yield (state file, whether its phase is over, function that computes its next content).

    Execution states come first: once the project's state moves on to the next phase, only they say
    that a phase is over.
    """
    for phase in phases:
        folder = phase.facts.folder
        is_over = phase.is_complete
        yield f"{folder}/{EXECUTION}", is_over, partial(next_execution_state, phase)
        if phase.facts.options.several_departments:
            yield f"{folder}/.phase-orchestration.json", is_over, partial(orchestration, phase)
    if phases:
        yield RUNNING, False, partial(next_execution_state, current(phases))
        yield PROJECT_STATE, False, partial(project_state, phases)


def _has_state_files(known: Iterable[str]) -> bool:
    return any(path.endswith((*STATE_FILES, _ESCALATIONS)) for path in known)


class Projector:
    """Keeps the projections of one work tree up to date."""

    def __init__(
        self, repository: Repository, settings: Settings, facts_reader: FactsReader, emit: EventSink
    ):
        self._repository = repository
        self._wanted = settings.policy.state_files
        self._options = WorkflowOptions(settings.config)
        self._facts_reader = facts_reader
        self._emit = emit
        self._open: set[tuple[str, str]] = set()
        """(phase, gate) that were open at the last look."""
        self._done: object = None
        """Commit and errors for which everything was written."""
        self._has_failed = False
        self._is_hidden = False
        """Whether git hides all the files that are kept."""

    def bring_up_to_date(self, commit: str | None, unsettled: Mapping[str, Verdict]) -> None:
        """Write every projection that is outdated as of a commit."""
        several = self._options.several_departments
        errors = _find_first_errors(unsettled)
        if (commit, errors) == self._done:
            return
        self._has_failed = False
        phases = self._facts_reader.phases(commit)
        for phase in phases if several else ():
            for gate in phase.gates:
                self._note_gate(str(phase.id), gate)
        if phases and (several or self._wanted != "never"):
            self._hide()
            self._write(phases, errors)
        self._done = None if self._has_failed else (commit, errors)

    def _hide(self) -> None:
        """Hide the files that no commit gets from `git status`, whatever the user's rules say."""
        if self._is_hidden or self._wanted != "kept":
            return
        with self._reporting_failures("info/exclude"):
            hide(self._repository, HIDDEN)
            self._is_hidden = True

    def _write(self, phases: Iterable[Phase], errors: Mapping[str, str]) -> None:
        for phase in phases:
            with self._reporting_failures(phase_folder(self._repository.root, phase.id)):
                self._departments(phase, errors)
                if self._options.several_departments:
                    self._sentinels(phase)

    def _departments(self, phase: Phase, errors: Mapping[str, str]) -> None:
        folder = self._folder(phase)
        for department in phase.progress.departments:
            path = os.path.join(folder, f".dept-status-{department.department}.json")
            if _is_over(phase, path):
                continue
            error = errors.get(str(phase.id), "")
            merge = _merge(department, error, phase.held_up(department.department))
            lock = os.path.join(folder, f".dept-lock-{department.department}")
            with self._reporting_failures(path):
                reap_temporaries(folder)
                failpoint.reach("projections.begun")
                root = self._repository.root
                update(path, lock, merge, timeout_s=2.0, root=root, mode=SHARED)
                failpoint.reach("projections.written")

    def _note_gate(self, phase: str, gate: GateStatus) -> None:
        key = (phase, gate.name)
        if gate.is_open and key not in self._open:
            self._open.add(key)
            evidence = [list(pair) for pair in gate.evidence]
            self._emit("gate.opened", phase, {"gate": gate.name, "evidence": evidence})
        elif not gate.is_open and key in self._open:
            self._open.discard(key)
            self._emit("gate.closed", phase, {"gate": gate.name, "why": str(gate.missing[0])})

    def _sentinels(self, phase: Phase) -> None:
        for name, content in phase.sentinels.items():
            path = os.path.join(self._folder(phase), name)
            if not _is_over(phase, path):
                self._write_sentinel(path, content)
        folder = ListedFolder.at(self._folder(phase))
        for name in stale_sentinels(folder, phase, self._facts_reader):
            with self._reporting_failures(path := os.path.join(folder.path, name)):
                remove(path, root=self._repository.root)

    def _write_sentinel(self, path: str, content: str) -> None:
        """Write a missing or stale sentinel.

        A link or folder in its place is left, and reported.
        """
        value = json.loads(content)
        if read_json(path) == value or (os.path.lexists(path) and not is_plain_file(path)):
            return
        with self._reporting_failures(path):
            write_json(path, value, root=self._repository.root, mode=SHARED)
            failpoint.reach("sentinels.written")

    def _folder(self, phase: Phase) -> str:
        return own_phase_folder(self._repository.root, phase.id)

    @contextlib.contextmanager
    def _reporting_failures(self, path: str) -> Any:
        """Report a projection that could not be written, and go on: the next look retries."""
        try:
            yield
        except (OSError, YoloError) as error:
            reason = error.reason if isinstance(error, YoloError) else Reason.STORAGE_FAILED
            self._emit(
                "projection.failed",
                os.path.relpath(path, self._repository.root),
                {"reason": reason.value},
            )
            self._has_failed = True


def _is_over(phase: Phase, path: str) -> bool:
    """Return whether a phase is complete and this file has been cleaned up already."""
    return phase.is_complete and not os.path.lexists(path)


def _merge(
    department: DepartmentStatus, error: str, held_up: Sequence[str]
) -> Callable[[Any], dict[str, Any] | None]:
    def merged(before: dict[str, Any] | Damaged | None) -> dict[str, Any] | None:
        failpoint.reach("projections.locked")
        old = before if isinstance(before, dict) else {}
        fresh = department_status(department, old, iso(time.time()), error, held_up)
        return fresh if fresh != before else None

    return merged


def _find_first_errors(unsettled: Mapping[str, Verdict]) -> dict[str, str]:
    """Return for each phase the first finding of its first rejected artifact."""
    messages: dict[str, str] = {}
    rejected = {
        path: verdict for path, verdict in unsettled.items() if isinstance(verdict, Rejected)
    }
    for path in sorted(rejected):
        parts = path.split("/")
        if "phases" in parts:
            messages.setdefault(parts[parts.index("phases") + 1], str(rejected[path].findings[0]))
    return messages
