"""Keeps the state files true: execution state, orchestration, project state, each a function of committed history.

One write at a time: it is committed like any artifact before the next is worked out, so each
transition is a commit and a crash at any point heals at the next look. A file that somebody is
writing is left alone until it is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from yolo_fs.edges import failpoint
from yolo_fs.edges.files import Content, Writer, read
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import SHARED, write_json
from yolo_fs.reasons import Reason
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT
from yolo_fs.rules.evidence.facts import Switches
from yolo_fs.rules.phase.phase import Phase, Phases
from yolo_fs.rules.states.execution import next_execution_state
from yolo_fs.rules.states.orchestration import orchestration
from yolo_fs.rules.states.project import current, project_state
from yolo_fs.services.history.team import Team
from yolo_fs.services.workspace.settings import Settings

STATE_FILES = ("state.json", ".execution-state.json", ".phase-orchestration.json")
PROJECT = f"{PLANNING_ROOT}/state.json"
RUNNING = f"{PLANNING_ROOT}/.execution-state.json"
"""Mirrors the execution state of the running phase, where it exists (docs/sources.md#c12)."""

_Next = Callable[[Mapping[str, Any] | None], dict[str, Any] | None]


class States:
    """The state files of one work tree."""

    def __init__(self, repository: Repository, settings: Settings, team: Team):
        self._repository = repository
        self._limit = settings.policy.max_file_bytes
        self._wanted = settings.policy.state_files
        self._always = self._wanted == "always" or Switches(settings.config).several_departments
        self._team = team
        self._true: object = None
        """The commit, and the files that were kept, when all of them were true."""

    def write_next(self, commit: str | None, known: Iterable[str]) -> str | None:
        """Write the first state file that is behind the commit; return its path, or None when all are true.

        `known`: the paths of all candidates.
        """
        if commit is None or self._wanted == "never" or not (self._always or _some_exist(known)):
            return None
        kept = {
            path: content
            for path, content in _rows(self._team.phases(commit))
            if self._is_ours_to_keep(path)
        }
        if (commit, [*kept]) == self._true:
            return None
        said = {path: self._committed(commit, path) for path in kept}
        for path, next_content in kept.items():
            if said[path] is not _IN_FLIGHT and (fresh := next_content(said[path])) is not None:
                failpoint.reach("states.begun")
                write_json(os.path.join(self._repository.root, path), fresh, mode=SHARED)
                failpoint.reach("states.written")
                return path
        self._true = None if _IN_FLIGHT in said.values() else (commit, [*kept])
        return None

    def _is_ours_to_keep(self, path: str) -> bool:
        return (self._always and path != RUNNING) or os.path.lexists(
            os.path.join(self._repository.root, path)
        )

    def _committed(self, commit: str, path: str) -> Any:
        """Return the committed content of a file; `_IN_FLIGHT` unless the work tree has the same, left alone."""
        blob = self._repository.blob_at(commit, path)
        content = read(self._repository.root, path, self._limit)
        if not isinstance(content, Content):
            return None if content.reason is Reason.FILE_MISSING and blob is None else _IN_FLIGHT
        if content.being_written or content.writer is Writer.SOME:
            return _IN_FLIGHT
        if (
            blob is None
            or self._repository.object_format.hash_object("blob", content.data).oid != blob
        ):
            return _IN_FLIGHT
        lines = self._team.lines_at(path, blob)
        return lines[0] if lines else _IN_FLIGHT


_IN_FLIGHT = object()


def _rows(phases: Phases) -> Iterator[tuple[str, _Next]]:
    """Yield each state file with what works out its next content.

    Execution states come first: once the project's state goes on to the next phase, they alone say that one is over.
    """
    for phase in phases:
        folder = f"{PLANNING_ROOT}/phases/{phase.id}"
        yield f"{folder}/.execution-state.json", _execution(phase)
        if phase.facts.switches.several_departments:
            yield f"{folder}/.phase-orchestration.json", _orchestration(phase)
    if phases:
        yield RUNNING, _execution(current(phases))
        yield PROJECT, lambda before: project_state(phases, before)


def _execution(phase: Phase) -> _Next:
    return lambda before: next_execution_state(phase, before)


def _orchestration(phase: Phase) -> _Next:
    return lambda before: orchestration(phase, before)


def _some_exist(known: Iterable[str]) -> bool:
    return any(path.endswith(STATE_FILES) for path in known)
