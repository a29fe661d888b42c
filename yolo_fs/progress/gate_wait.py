"""`gate wait`: looks at gates, and again whenever the branch has moved, until they are open.

A waiter depends on no other process. It looks by itself, as several that ask an observer at one
moment would wait longer for each other than a look takes.
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
from yolo_fs.system.files import Stamp, stamp_at
from yolo_fs.system.store import read_json
from yolo_fs.workspace.planning_tree import phase_folder
from yolo_fs.workspace.settings import CONFIG, Settings, load, user_config_path

POLL_S = 0.02
"""Interval at which a waiter checks whether the branch has moved."""
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
        return _is_outdated(self.stamps)


class GateWaitResult(NamedTuple):
    """Result of waiting."""

    look: GateLook
    """The last look."""
    woke_at_s: float
    """When the waiter learned the result, in seconds since 1970."""
    waited_s: float


def wait(
    start: str, phase: str, names: Sequence[str], timeout_s: float | None = None
) -> GateWaitResult:
    """Wait until all the gates are open, or until the timeout.

    Raises:
        YoloError: what the first look raises, or the last.
    """
    began = time.monotonic()
    with GateReader(start, names) as reader:
        seen = reader.look(phase)
        deadline = began + (seen.timeout_s if timeout_s is None else timeout_s)
        is_over = False
        while not (seen.is_open or is_over):
            while not seen.is_outdated() and (left_s := deadline - time.monotonic()) > 0:
                time.sleep(min(POLL_S, left_s))
            is_over = time.monotonic() >= deadline
            if is_over and not seen.is_outdated():
                break
            try:
                seen = reader.look(seen.phase)
            except YoloError:
                if is_over:
                    raise
                time.sleep(RETRY_S)
    return GateWaitResult(seen, time.time(), time.monotonic() - began)


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

    def look(self, spelled: str) -> GateLook:
        """Look at the gates of a phase, spelled as on the command line; empty for the one at work.

        Raises:
            YoloError: UNKNOWN_NAME, and what reading the repository and its configuration raises.
        """
        if self._basis is None or _is_outdated(self._basis):
            self._open()
        repository, facts_reader = self._repository, self._facts_reader
        stamps = {path: stamp_at(path) for path in _branch_files(repository)}
        commit = repository.head().tip
        phase = spelled_or_at_work(repository, self._settings, facts_reader, spelled)
        gates = gates_at(repository, facts_reader, phase, commit)
        # While this process sleeps, others may write to the index, and no git lives beside it.
        facts_reader.history_index.keep()
        repository.objects.close()
        return GateLook(
            phase=str(phase),
            gates=[to_json(gates.named(name)) for name in self._names],
            departments=[_department(status) for status in gates.phase.progress.departments],
            commit=commit or "",
            stamps={**(self._basis or {}), **stamps},
            timeout_s=_choose_timeout_s(repository.root, self._settings, phase, self._names),
            unproved=gates.unproved,
        )

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


def _is_outdated(stamps: Mapping[str, Stamp | None]) -> bool:
    return any(stamp_at(path) != before for path, before in stamps.items())


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
