"""The phase of a run: the open one, or a new one named after an intent."""

from __future__ import annotations

import re
from typing import NamedTuple

from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.phase import Phase
from yolo_fs.progress.phases import begin_fix, make_phase, planning_root
from yolo_fs.progress.workflow import facts_of, phase_at_work
from yolo_fs.protocol.departments import Dept
from yolo_fs.workspace.planning_tree import find_phase, phases_in
from yolo_fs.workspace.settings import Settings

_LONGEST_SLUG = 40


class ChosenPhase(NamedTuple):
    """The phase of a run."""

    phase: PhaseId
    is_new: bool
    is_complete: bool = False
    is_begun: bool = False
    """Whether the branch has an artifact of it."""


def chosen_phase(
    repository: Repository,
    settings: Settings,
    intent: str,
    spelled: str,
    *,
    make: bool,
    fix: Dept | None = None,
) -> ChosenPhase:
    """Return the given phase, else the first open one, else a new one for an intent.

    `make`: create the folder of a new phase. `fix`: the new phase is a fix of this department.

    Raises:
        YoloError: NOT_INITIALISED; UNKNOWN_NAME for a phase that is not there; EMPTY_VALUE where
            nothing is open and nobody says what is wanted.
    """
    planning_root(repository.root)
    facts_reader = FactsReader(repository, settings)
    if spelled:
        phase = find_phase(repository.root, spelled)
        is_complete = Phase(facts_of(facts_reader, phase)).is_complete
        return ChosenPhase(phase, is_new=False, is_complete=is_complete)
    at_work = phase_at_work(facts_reader)
    if at_work and not (at_work.is_complete and intent):
        folder = f"{at_work.facts.folder}/"
        is_begun = any(
            artifact.place.path.startswith(folder) for artifact in at_work.facts.committed
        )
        return ChosenPhase(at_work.id, False, at_work.is_complete, is_begun)
    if not intent:
        raise YoloError(
            Reason.EMPTY_VALUE,
            "there is no phase, and no intent for a new one",
            hint="Say what is wanted: yolo-fs go 'add login with sessions'.",
            exit_code=Exit.USAGE,
        )
    slug = slug_of(intent)
    if make:
        made = make_phase(repository, slug)
        name = made.path.rpartition("/")[2]
        if fix and made.is_new:
            begin_fix(repository.root, made.path, fix)
    else:
        numbers = (int(phase.number) for phase in phases_in(repository.root))
        name = f"{max(numbers, default=0) + 1:02}-{slug}"
    phase_id = PhaseId.parse(name)
    if phase_id is None:
        raise YoloError(Reason.BAD_NAME, f"{safe(name)} is not a phase")
    return ChosenPhase(phase_id, is_new=True)


def find_other_goal(chosen: ChosenPhase, intent: str, known: str) -> str | None:
    """Return what the chosen phase is about where that is not the intent; None where it is.

    `known`: the intent of its runs; empty where another clone, or a person, has begun it.
    """
    if not intent or chosen.is_new or chosen.is_complete:
        return None
    if known:
        return None if intent.split() == known.split() else known
    slug = chosen.phase.slug
    is_named = {*slug.split("-")} <= {*_words(intent)}
    return None if is_named or not chosen.is_begun else slug


def slug_of(intent: str) -> str:
    """Return the phase name for an intent: its first words."""
    slug = ""
    for word in _words(intent):
        longer = f"{slug}-{word}" if slug else word
        if len(longer) > _LONGEST_SLUG:
            break
        slug = longer
    return slug or "work"


def _words(intent: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", intent.lower())
