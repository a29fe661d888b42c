"""What the work tree says beyond what history proves: drifted declarations, forged sentinels.

Only the present has a work tree, so `status --at` shows none of this. The disk is judged by the
configuration in force, because the daemon writes by it. See docs/dev/faults.md#f58.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from shlex import quote
from typing import Any

from yolo_fs.artifacts.classify import PROJECT_STATE
from yolo_fs.authority.access import Target, sealed
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.json_form import to_json
from yolo_fs.evidence.facts import PhaseFacts, paths_in
from yolo_fs.handoff_service.lifecycle import lifecycles_of
from yolo_fs.handoff_service.reading import Reader
from yolo_fs.handoffs.contents import PHASE_HANDOFF, handoff_into
from yolo_fs.handoffs.lifecycle import HandoffLifecycle, overdue
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.phase import Phase, Phases
from yolo_fs.progress.board import Board
from yolo_fs.progress.departments import Statuses, shown
from yolo_fs.progress.state_files import forged_sentinels
from yolo_fs.protocol.workflow import RED_TESTS, SIGN_OFF_COMMAND, TURN_COMMAND
from yolo_fs.schemas.config import Config
from yolo_fs.states.project import (
    Drift,
    claims,
    current,
    declared_blockers,
    drift_of_department,
    drift_of_state,
)
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import ListedFolder, read_json
from yolo_fs.workspace.planning_tree import phase_folder, phases_in
from yolo_fs.workspace.settings import CONFIG

FORGED = "was made by hand and is ignored: only committed evidence opens a gate"
"""What is said of a forged sentinel."""


@dataclass(frozen=True, slots=True)
class WorkTreeNotes:
    """What the work tree says of one phase, or of all of them."""

    phase: str
    """Directory name of the phase; empty for what concerns all."""
    drifts: tuple[Drift, ...] = ()
    forged: tuple[str, ...] = ()
    """Sentinel files that the evidence does not support."""
    blockers: tuple[tuple[str, str], ...] = ()
    """(department, blocker that its Lead declares)."""
    handoffs: tuple[str, ...] = ()
    """Overdue and missing handoffs, one sentence each."""

    def __bool__(self) -> bool:
        return bool(self.drifts or self.forged or self.blockers or self.handoffs)


def notes_of_work_tree(
    board: Board,
    facts_reader: FactsReader,
    lives: Sequence[HandoffLifecycle] | None = None,
) -> tuple[WorkTreeNotes, ...]:
    """Return what the work tree adds to a board of the present; empty when all agree.

    `lives`: the life cycles of the handoffs, if they are known already.
    """
    root, in_force = facts_reader.repository.root, facts_reader.settings.config
    of_all = (*_find_config_drift(board.config, in_force), *_of_project(board, facts_reader))
    known = lives_at(board.phases, facts_reader) if lives is None else lives
    late = tuple(str(overdue_handoff) for overdue_handoff in overdue(known, int(time.time())))
    configured = WorkTreeNotes("", of_all, handoffs=late)
    judged = (_under(phase, in_force) for phase in board.phases)
    unhanded = missing_handoffs(board.phases, phases_in(root))
    phases = (
        replace(
            _of_phase(root, phase, facts_reader, board.commit), handoffs=unhanded.get(phase.id, ())
        )
        for phase in judged
    )
    return tuple(notes for notes in (configured, *phases) if notes)


def _under(phase: Phase, config: Config) -> Phase:
    """Return a phase under a configuration; what its own artifacts switch stays."""
    options = phase.facts.options
    if options.config == config:
        return phase
    return Phase(replace(phase.facts, options=options._replace(config=config)))


def missing_handoffs(phases: Phases, there: Iterable[PhaseId]) -> Mapping[PhaseId, tuple[str, ...]]:
    """Return what each complete phase owes the one after it, until that is designed without it.

    `there`: phases of the work tree, which may have no commit yet.
    """
    known = {phase.id: phase for phase in phases}
    committed = [artifact for phase in phases for artifact in phase.facts.committed]
    owed = {}
    for before, after in pairwise(sorted({*known, *there})):
        is_designed = after in known and known[after].facts.of_kind("architecture")
        is_over = before in known and known[before].is_complete
        if is_over and not is_designed and not handoff_into(after, committed):
            owed[before] = (
                f"no {PHASE_HANDOFF}.jsonl hands it over to {after}, whose Critic and Architect "
                f"receive it ('yolo-fs schema example {PHASE_HANDOFF}')",
            )
    return owed


def as_json(all_notes: Iterable[WorkTreeNotes]) -> dict[str, Any]:
    """Return what the work tree says as `status --json` shows it."""
    listed = tuple(all_notes)
    return {
        "drift": [
            {"phase": notes.phase, **to_json(each)} for notes in listed for each in notes.drifts
        ],
        "overdue": [handoff for notes in listed for handoff in notes.handoffs],
        "forged": [
            {"phase": notes.phase, "file": name} for notes in listed for name in notes.forged
        ],
        "declared_blockers": [
            {"phase": notes.phase, "department": department, "blocker": blocker}
            for notes in listed
            for department, blocker in notes.blockers
        ],
    }


def drift_of_phase(folder: ListedFolder, phase: Phase, declared: Statuses) -> Iterator[Drift]:
    """Yield where a status or state file in the folder of a phase disagrees with the evidence.

    `declared`: department → its status file.
    """
    turns = TURN_COMMAND.format(phase=phase.facts.spelled)
    for department in phase.progress.departments if declared else ():
        if status := declared.get(department.department.value):
            yield from drift_of_department(department, status, turns)
    for name in (".execution-state.json", ".phase-orchestration.json"):
        state = folder.read_json(name)
        if isinstance(state, dict):
            yield from drift_of_state(name, state, turns)


def _of_phase(
    root: str, phase: Phase, facts_reader: FactsReader, commit: str | None
) -> WorkTreeNotes:
    folder = ListedFolder.at(phase_folder(root, phase.id))
    declared = shown(folder)
    missing_tests = facts_reader.derive_from(
        (commit, phase),
        f"{phase.id} tests",
        lambda: tuple(_find_missing_tests(phase, commit, facts_reader)),
    )
    return WorkTreeNotes(
        str(phase.id),
        (
            *drift_of_phase(folder, phase, declared),
            *_find_test_drift(root, phase, missing_tests),
        ),
        forged_sentinels(folder, phase, facts_reader),
        tuple(
            (department, str(blocker))
            for department, status in declared.items()
            for blocker in declared_blockers(status)
        ),
    )


_COMMITS_CONFIG = f'git commit -m "chore(config): settings in force" {CONFIG}'


def _find_config_drift(committed: Config | None, in_force: Config) -> Iterator[Drift]:
    """Yield the settings in force that history lacks, so that it cannot tell who worked by them.

    A person who did not want them takes the file back instead of committing it.
    """
    if committed is None or committed == in_force:
        return
    proved = dict(_flatten_settings(to_json(committed)))
    for key, value in _flatten_settings(to_json(in_force)):
        if value != proved.get(key):
            yield Drift(CONFIG, key, value, proved.get(key), _COMMITS_CONFIG)


def _flatten_settings(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting under its whole name, such as `approval_gates.code_review`."""
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flatten_settings(value, f"{above}{key}.")
        else:
            yield above + key, value


def _of_project(board: Board, facts_reader: FactsReader) -> Iterator[Drift]:
    state = read_json(os.path.join(facts_reader.repository.root, PROJECT_STATE))
    declared = claims(board.phases, state) if isinstance(state, dict) and board.phases else {}
    command = _find_way_back(board, facts_reader) if declared else ""
    for key, (value, derived) in declared.items():
        yield Drift(PROJECT_STATE, key, value, derived, command)


def _find_way_back(board: Board, facts_reader: FactsReader) -> str:
    """Return the command that takes a declared project state back: the revert of its commit, where
    that changed nothing else. Otherwise the sign-off, which names what the phase lacks.
    """
    repository = facts_reader.repository
    content = read(repository.root, PROJECT_STATE, facts_reader.settings.policy.max_file_bytes)
    data = content.data if isinstance(content, Content) else b""
    blob = repository.object_format.hash_object("blob", data).oid
    last = ("log", "-1", "--format=%h", "--full-diff", "--name-only", "--", PROJECT_STATE)
    if blob == repository.blob_at(board.commit, PROJECT_STATE):
        commit, *paths = repository.git.run(*last).out.decode("utf-8", "replace").split("\n")
        if [path for path in paths if path] == [PROJECT_STATE]:
            return f"git revert --no-edit {commit}"
    return SIGN_OFF_COMMAND.format(phase=current(board.phases).facts.spelled)


def lives_at(phases: Phases, facts_reader: FactsReader) -> tuple[HandoffLifecycle, ...]:
    """Return the life cycles of the handoffs of some phases, as far as the work tree tells.

    Raises:
        YoloError: the log of reads cannot be read.
    """
    if not phases:
        return ()
    root, settings = facts_reader.repository.root, facts_reader.settings
    reads = Reader(root, root, settings.limits, lambda *_: None).log().reads
    deadline_s = settings.policy.handoff_deadline_s
    return lifecycles_of(root, phases, facts_reader.history_index, reads, deadline_s)


def _find_named_tests(facts: PhaseFacts) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the name of each test plan, and the test files that it names."""
    return tuple(
        (
            artifact.place.name,
            tuple(path for line in artifact.lines for path in paths_in(line.get("tf"))),
        )
        for artifact in facts.of_kind("test-plan")
    )


def _find_missing_tests(
    phase: Phase, commit: str | None, facts_reader: FactsReader
) -> Iterator[tuple[str, str]]:
    """Yield each test file that nobody has committed, after the test plan that names it."""
    for name, paths in phase.facts.ask(_find_named_tests):
        yield from ((name, path) for path in facts_reader.absent_at(commit, paths))


def _find_test_drift(
    root: str, phase: Phase, missing_tests: Sequence[tuple[str, str]]
) -> Iterator[Drift]:
    """Yield the drift of each test file that nobody has committed.

    One command commits all that are written; for the others, it names who writes them. A test plan
    may name anything: what no agent may touch, such as a credential, is no test.
    """
    written = {
        path
        for _, path in missing_tests
        if os.path.isfile(os.path.join(root, path)) and sealed(Target(path)) is None
    }
    named = " ".join(quote(path) for path in sorted(written))
    subject = RED_TESTS.render(phase=phase.id.number)
    commits = f'git add -- {named} && git commit -m "{subject}" -- {named}'
    turns = TURN_COMMAND.format(phase=phase.facts.spelled)
    for plan, path in missing_tests:
        command = commits if path in written else turns
        yield Drift(plan, path, "written", "not committed", command)
