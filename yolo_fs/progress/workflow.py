"""Answers queries about the workflow, and declares skips.

It tells who is next, what each gate of a step lacks, and whether a step is done. Nothing here calls
a step complete: only evidence does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from yolo_fs.core.foreign_json import parse
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Exit, Reason, YoloError, hint_for_unknown, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.evidence.facts import PhaseFacts, WorkflowOptions
from yolo_fs.evidence.failures import failures_of, withdrawn_from
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.phase import Phase, not_begun
from yolo_fs.phase.progress import StepStatus, passed_steps
from yolo_fs.phase.stepgates import entry_lacks, exit_lacks
from yolo_fs.phase.view import BY_RULE, PHASE_STEPS, View
from yolo_fs.progress.board import phases_now
from yolo_fs.progress.placing import FileCommitter, tried
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.workflow import STEP_BY_KEY, STEPS, Step
from yolo_fs.states.execution import next_execution_state
from yolo_fs.states.project import current
from yolo_fs.system.file_locks import update
from yolo_fs.system.store import SHARED, Damaged, json_text
from yolo_fs.workspace.planning_tree import find_phase, own_phase_folder, phases_in
from yolo_fs.workspace.settings import Settings, no_committed_phase, no_phase

_FILE = ".execution-state.json"
_LOCK = "execution-state.lock"


@dataclass(frozen=True, slots=True)
class StepGate:
    """One entry or exit gate of a step."""

    gate: str
    """As the protocol prints it."""
    missing: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    JSON_KEYS: ClassVar = {"gate": "gate", "open": "is_open", "missing": "missing"}


@dataclass(frozen=True, slots=True)
class StepLook:
    """One step of one department, or of the phase, with each of its gates."""

    progress: StepStatus
    department: Dept | None
    """None for a step that the phase has once."""
    entry: tuple[StepGate, ...]
    exit: tuple[StepGate, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """What keeps it from being complete; empty if it is complete or skipped."""
        if self.progress.is_passed:
            return ()
        return tuple(
            dict.fromkeys(lack for gate in (*self.entry, *self.exit) for lack in gate.missing)
        )

    JSON_KEYS: ClassVar = {
        "number": "progress.step.number",
        "step": "progress.step.key",
        "department": "department",
        "standing": "progress.standing",
        "by": "progress.by",
        "entry": "entry",
        "exit": "exit",
        "missing": "missing",
    }


def facts_of(facts_reader: FactsReader, phase: PhaseId) -> PhaseFacts:
    """Return the facts of a phase as the branch has them; empty while nothing is committed."""
    return facts_at(facts_reader, phase, facts_reader.repository.head().tip)


def facts_at(facts_reader: FactsReader, phase: PhaseId, tip: str | None) -> PhaseFacts:
    """Return the facts of a phase as a commit has them; empty where it has nothing of it."""
    present = phases_now(facts_reader, tip)
    empty = not_begun(phase, present, WorkflowOptions(facts_reader.settings.config))
    return next((candidate for candidate in present if candidate.id == phase), empty).facts


def phase_named(facts_reader: FactsReader, spelled: str) -> Phase:
    """Return the phase with a number or directory name; without any, the one that is worked on.

    Raises:
        YoloError: BAD_NAME, or UNKNOWN_NAME when there is none, NOT_INITIALISED without a tree.
    """
    repository = facts_reader.repository
    if spelled:
        return Phase(facts_of(facts_reader, find_phase(repository.root, spelled)))
    phases = phases_now(facts_reader, repository.head().tip)
    if not phases:
        hint = "A phase begins with its first committed artifact."
        raise no_committed_phase(repository.root, hint)
    return current(phases)


def phase_at_work(facts_reader: FactsReader) -> Phase | None:
    """Return the phase of the work tree that is worked on, committed or not; None without any."""
    phases = tuple(
        Phase(facts_of(facts_reader, phase)) for phase in phases_in(facts_reader.repository.root)
    )
    return current(phases) if phases else None


def spelled_or_at_work(facts_reader: FactsReader, spelled: str) -> PhaseId:
    """Return the phase with a number, slug or directory name; without any, the one at work.

    Raises:
        YoloError: as `find_phase`; UNKNOWN_NAME when there is no phase at all.
    """
    root = facts_reader.repository.root
    if spelled:
        return find_phase(root, spelled)
    if phase := phase_at_work(facts_reader):
        return phase.id
    raise no_phase(root)


def find_step(key: str) -> Step:
    """Return the step of a key or a number.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    known_step = STEP_BY_KEY.get(key) or next((step for step in STEPS if step.number == key), None)
    if known_step is None:
        hint = hint_for_unknown(key, STEP_BY_KEY)
        raise YoloError(Reason.UNKNOWN_NAME, f"no step {safe(key)!r}", hint=hint)
    return known_step


def looks(phase: Phase) -> Iterator[StepLook]:
    """Yield every step with its gates, in the order of the workflow; departments side by side."""
    facts, progress = phase.facts, phase.progress.as_shown()
    whole = {status.step.key: status for status in progress.steps}
    passed = frozenset(key for key, status in whole.items() if status.is_passed)
    everywhere = frozenset.intersection(
        *(passed_steps(status.steps) for status in progress.departments)
    )
    for step in STEPS:
        if step.key in PHASE_STEPS:
            yield _look(View(facts, None), whole[step.key], passed | everywhere)
            continue
        for department in progress.departments:
            own = next(status for status in department.steps if status.step == step)
            view = View(facts, department.department)
            yield _look(view, own, passed | passed_steps(department.steps))


def _look(view: View, progress: StepStatus, passed: frozenset[str]) -> StepLook:
    step = progress.step
    entry = tuple(StepGate(gate.value, entry_lacks(view, gate, passed)) for gate in step.entry)
    after = tuple(StepGate(gate.value, exit_lacks(view, gate)) for gate in step.exit)
    return StepLook(progress, view.department, entry, after)


def skip(
    repository: Repository, settings: Settings, phase: Phase, step: Step, because: str, now_s: float
) -> bool:
    """Declare in the phase's execution state that a step is skipped.

    It counts once that file is committed. No artifact proves it, so a file that is kept beside the
    branch is committed here, and from then on like any other on the branch. Return False when the
    file says so already.

    Raises:
        YoloError: STATE_CONFLICT for a mandatory step or one that is complete, EMPTY_VALUE,
            BAD_FORMAT; UNREADABLE when the file holds anything but a valid state; LOCK_TIMEOUT.
    """
    _refuse(phase, step, because)
    file = f"{phase.facts.folder}/{_FILE}"
    is_known = repository.blob_at(repository.head().tip, file) is not None
    if settings.policy.state_files == "kept" and not is_known:
        return tried(lambda: _commit_skip(repository, settings, phase, step, because, now_s))
    folder = own_phase_folder(repository.root, phase.id)
    repository.make_own_dir()
    path, lock = os.path.join(folder, _FILE), os.path.join(repository.own_dir, _LOCK)

    def skipped(before: dict[str, Any] | Damaged | None) -> dict[str, Any] | None:
        if isinstance(before, Damaged):
            raise _unreadable(path, before.detail)
        state = before or next_execution_state(phase, None) or {}
        return _add_skip(path, state, step, because, iso(now_s))

    return update(path, lock, skipped, root=repository.root, mode=SHARED) is not None


def _commit_skip(
    repository: Repository, settings: Settings, phase: Phase, step: Step, because: str, now_s: float
) -> bool:
    own_phase_folder(repository.root, phase.id)
    path, files = f"{phase.facts.folder}/{_FILE}", FileCommitter(repository, settings)
    head, before = repository.head(), files.content(path)
    state = parse(before, len(before)) if before else None
    if not isinstance(state, dict):
        state = next_execution_state(phase, None) or {}
    fresh = _add_skip(path, state, step, because, iso(now_s)) or state
    for request in files.requests({path: json_text(fresh)}, head):
        files.commit(request, head, {path: before})
        return True
    return False


def _refuse(phase: Phase, step: Step, because: str) -> None:
    if step.mandatory:
        message = f"step {step.key} is mandatory: nobody may skip it"
        raise YoloError(
            Reason.STATE_CONFLICT, message, hint="Do it; 'yolo-fs workflow next' shows who is next."
        )
    if not because.strip():
        raise YoloError(
            Reason.EMPTY_VALUE, "a skip needs its reason", hint="Say why.", exit_code=Exit.USAGE
        )
    if because.startswith(BY_RULE):
        message = f"reasons that begin with {BY_RULE!r} are reserved"
        raise YoloError(Reason.BAD_FORMAT, message, hint="Say why in other words.")
    if failure := next(failures_of(phase.facts, step.key), None):
        message = f"{failure.what} ({failure.file}:{failure.line}): a failed step is not skipped"
        hint = f"Fix what fails and have step {step.key} done again."
        raise YoloError(Reason.STATE_CONFLICT, message, hint=hint)
    if sentence := next(withdrawn_from(phase.facts, step.key), ""):
        hint = f"Have step {step.key} done again."
        raise YoloError(Reason.STATE_CONFLICT, f"{sentence}; it is not skipped", hint=hint)
    own = [look.progress for look in looks(phase) if look.progress.step == step]
    if all(status.is_passed and status.standing.value == "complete" for status in own):
        raise YoloError(
            Reason.STATE_CONFLICT, f"step {step.key} is complete", hint="There is nothing to skip."
        )


def _add_skip(
    path: str, state: Mapping[str, Any], step: Step, because: str, at: str
) -> dict[str, Any] | None:
    steps = state.get("steps")
    known = dict(steps) if isinstance(steps, dict) else {}
    before = known.get(step.key)
    if isinstance(before, dict) and (before.get("status"), before.get("reason")) == (
        "skipped",
        because,
    ):
        return None
    known[step.key] = {"status": "skipped", "reason": because, "skipped_at": at}
    fresh = {
        **state,
        "step": step.key,
        "steps": known,
    }  # the commit is called after the step that is named here
    from yolo_fs.schemas.check import check
    from yolo_fs.schemas.state import ExecutionState

    faults = check(ExecutionState, fresh)[1]
    wrong = next((fault for fault in faults if fault.level.value == "error"), None)
    if wrong:
        raise _unreadable(path, f"{wrong.at}: {wrong.message}")
    return fresh


def _unreadable(path: str, detail: str) -> YoloError:
    hint = "'yolo-fs validate' shows all its faults."
    return YoloError(
        Reason.SCHEMA_INVALID, f"{safe(path)}: {safe(detail)}", hint=hint, exit_code=Exit.UNREADABLE
    )
