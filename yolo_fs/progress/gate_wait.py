"""`gate wait`: looks at gates, and again whenever the branch has moved, until they are open.

An observer looks for all who wait beside it. Without one, a waiter depends on no other process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

from yolo_fs.core.ids import PhaseId
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Finding, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.progress import DepartmentStatus
from yolo_fs.progress.gates import gates_at
from yolo_fs.progress.workflow import spelled_or_at_work
from yolo_fs.protocol.gates import GATE_TIMEOUT_MINUTES, INTEGRATION
from yolo_fs.system import ask
from yolo_fs.system.files import Stamp, stamp_at
from yolo_fs.system.pausing import Pause, is_outdated, pause_here, resumed_state
from yolo_fs.system.store import read_json
from yolo_fs.workspace.planning_tree import phase_folder
from yolo_fs.workspace.settings import CONFIG, Settings, load, user_config_path

RETRY_S = 0.5
"""Pause after a look that failed, such as at a configuration that is half written."""


class GateLook(NamedTuple):
    """Result of one look at the branch, and the files that change before another look can
    differ.
    """

    phase: str
    gates: Sequence[Mapping[str, Any]]
    """Those that are waited for: `gate`, `open`, `missing`."""
    departments: Sequence[Mapping[str, Any]]
    """How far each department is and what it lacks."""
    commit: str
    stamps: Mapping[str, Stamp | None]
    """Files that the answer depends on → their stamps before the look."""
    timeout_s: float
    """Default timeout, where the command line has none."""
    unproved: tuple[Finding, ...] = ()
    """What this clone cannot prove, as warnings."""

    @property
    def is_open(self) -> bool:
        """Whether all of the gates are open."""
        return all(gate["open"] for gate in self.gates)

    def is_outdated(self) -> bool:
        """Return whether another look may have another result."""
        return is_outdated(self.stamps)


class GateWaitResult(NamedTuple):
    """Result of waiting."""

    look: GateLook
    """The last look."""
    woke_at_s: float
    """When the waiter learned the result, in seconds since 1970."""
    waited_s: float


class _Course(NamedTuple):
    """What a waiter knows of its waiting, from one look to the next."""

    began_s: float
    """On the monotonic clock, as all times here."""
    phase: str
    """As on the command line; after the first look, its id."""
    deadline_s: float | None = None
    """None before the first look, which finds the configured timeout."""

    @property
    def is_over(self) -> bool:
        return self.deadline_s is not None and time.monotonic() >= self.deadline_s

    def pause(self, stamps: Mapping[str, Stamp | None], ends_s: float) -> None:
        pause_here(Pause(list(self), stamps, ends_s))


def wait(
    start: str, phase: str, names: Sequence[str], timeout_s: float | None = None
) -> GateWaitResult:
    """Wait until all the gates are open, or until the timeout.

    Raises:
        YoloError: what the first look raises, or the last.
        PausedError: an observer runs the command, and its client has to wait.
    """
    state = resumed_state()
    course = _Course(*state) if state else _Course(ask.asked_at_s or time.monotonic(), phase)
    with GateReader(start, names) as reader:
        while True:
            is_first, is_last = course.deadline_s is None, course.is_over
            try:
                seen = reader.look(course.phase) if is_first else reader.look_again(course.phase)
            except YoloError:
                if is_first or is_last:
                    raise
                course.pause({}, time.monotonic() + RETRY_S)
                continue
            if is_first:
                limit_s = seen.timeout_s if timeout_s is None else timeout_s
                course = course._replace(phase=seen.phase, deadline_s=course.began_s + limit_s)
            if seen.is_open or is_last or (course.is_over and not seen.is_outdated()):
                return GateWaitResult(seen, time.time(), time.monotonic() - course.began_s)
            reader.rest()
            course.pause(seen.stamps, course.deadline_s or 0.0)


_LAST: dict[tuple[str, ...], GateLook] = {}
"""Folder, configuration, phase and gates → last look. In an observer, many wait for the same."""
_MOST_KEPT = 100


class GateReader:
    """Looks at gates of a repository; each look reads only what is new since the last."""

    def __init__(self, start: str, names: Sequence[str]) -> None:
        self._start = start
        self._names = names
        self._opened = ExitStack()
        self._basis: Mapping[str, Stamp | None] | None = None
        """Stamps of the configuration that was loaded."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def look_again(self, phase: str) -> GateLook:
        """Return the last look at these gates in this process, or look where that is outdated.

        Raises:
            YoloError: as `look`.
        """
        asked = (os.path.abspath(self._start), user_config_path(), phase, *self._names)
        seen = _LAST.get(asked)
        if seen is None or seen.is_outdated():
            if len(_LAST) >= _MOST_KEPT:
                _LAST.clear()
            seen = _LAST[asked] = self.look(phase)
        return seen

    def look(self, spelled: str) -> GateLook:
        """Look at the gates of a phase, spelled as on the command line; empty for the one at work.

        Raises:
            YoloError: UNKNOWN_NAME, and what reading the repository and its configuration raises.
        """
        if self._basis is None or is_outdated(self._basis):
            self._open()
        repository, facts_reader = self._repository, self._facts_reader
        stamps = {path: stamp_at(path) for path in _branch_files(repository)}
        commit = repository.head().tip
        phase = spelled_or_at_work(facts_reader, spelled)
        gates = gates_at(facts_reader, phase, commit)
        return GateLook(
            phase=str(phase),
            gates=[to_json(gates.named(name)) for name in self._names],
            departments=[_department(status) for status in gates.phase.progress.departments],
            commit=commit or "",
            stamps={**(self._basis or {}), **stamps},
            timeout_s=_choose_timeout_s(repository.root, self._settings, phase, self._names),
            unproved=gates.unproved,
        )

    def rest(self) -> None:
        """Keep nobody from the index, and no git running, while this process sleeps."""
        if self._basis is None:
            return
        self._facts_reader.history_index.keep()
        self._repository.objects.close()

    def _open(self) -> None:
        self._opened.close()
        self._basis = None
        repository = self._opened.enter_context(Repository(self._start))
        config = (os.path.join(repository.root, CONFIG), user_config_path())
        basis = {path: stamp_at(path) for path in config}
        self._repository = repository
        self._settings = load(repository.root)
        self._facts_reader = FactsReader(repository, self._settings)
        self._basis = basis


def _branch_files(repository: Repository) -> Iterator[str]:
    """Yield the files of which one changes whenever the branch does."""
    yield f"{repository.git_dir}/HEAD"
    if ref := repository.head().ref:
        yield f"{repository.common_dir}/{ref}"
    yield f"{repository.common_dir}/packed-refs"
    yield f"{repository.common_dir}/reftable/tables.list"


def _department(progress: DepartmentStatus) -> dict[str, Any]:
    current = progress.current
    return {
        "department": progress.department.value,
        "complete": progress.is_complete,
        "step": current.step.key if current else "",
        "missing": list(current.missing) if current else [],
        "blockers": list(progress.blockers),
    }


def _choose_timeout_s(root: str, settings: Settings, phase: PhaseId, names: Sequence[str]) -> float:
    """Return the default timeout of these gates in seconds: the longest one counts."""
    orchestration = read_json(os.path.join(phase_folder(root, phase), ".phase-orchestration.json"))
    minutes = orchestration.get("timeout_minutes") if isinstance(orchestration, dict) else None
    others_s = 60.0 * (minutes if type(minutes) is int and minutes > 0 else GATE_TIMEOUT_MINUTES)
    integration_s = float(settings.config.integration_gate.timeout_seconds)
    return max(integration_s if name == INTEGRATION else others_s for name in names)
