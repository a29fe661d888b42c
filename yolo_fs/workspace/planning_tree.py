"""Where the phases and the state of a planning tree lie, and which phase somebody means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from yolo_fs.artifacts.classify import PLANNING_ROOT, milestone_named
from yolo_fs.core.ids import PhaseId, spelled_below, twice_numbered
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, hint_for_unknown, safe
from yolo_fs.system.files import Content, names_in, read

ACTIVE = f"{PLANNING_ROOT}/ACTIVE"
"""Holds the slug of the team's current milestone, where there are milestones."""

RUNNING = f"{PLANNING_ROOT}/.execution-state.json"
"""Mirrors the execution state of the running phase, where it exists (docs/dev/sources.md#c12)."""


def planning_home(root: str) -> str:
    """Return the folder of the phases in force, relative to the repository.

    It is the planning tree, or the milestone that its file `ACTIVE` names. A milestone that does
    not exist falls back to the tree.
    """
    active = read(root, ACTIVE, 4096)
    named = milestone_named(active.data) if isinstance(active, Content) else ""
    return named if named and os.path.isdir(os.path.join(root, named)) else PLANNING_ROOT


def found_from(start: str, root: str, path: str) -> str:
    """Return the absolute path of a file that somebody named.

    It is read from where the command starts; if nothing is there, from the root of the repository,
    as our answers spell it.
    """
    full = os.path.normpath(os.path.join(os.path.abspath(start), path))
    at_root = os.path.normpath(os.path.join(root, path)) if root else full
    is_at_root = not os.path.lexists(full) and os.path.lexists(at_root)
    return at_root if is_at_root else full


def seen_from(start: str, root: str, path: str) -> str:
    """Return a path of the repository as somebody spells it who stands in `start`."""
    return spelled_below(folder_of(start, root), path)


def folder_of(start: str, root: str) -> str:
    """Return the folder of the repository that `start` is, relative to the root; empty for that."""
    below = os.path.relpath(os.path.realpath(start), os.path.realpath(root)).replace(os.sep, "/")
    return "" if below == "." or below.startswith("..") else below


def trees_above(start: str, root: str) -> Iterator[str]:
    """Yield the planning trees between a folder and the root, which nobody watches.

    They are relative to the root; one beside a repository of its own belongs to that.
    """
    top, folder = os.path.realpath(root), os.path.realpath(start)
    while folder.startswith(f"{top}/"):
        tree = os.path.join(folder, PLANNING_ROOT)
        if os.path.isdir(tree) and not os.path.lexists(os.path.join(folder, ".git")):
            yield os.path.relpath(tree, top).replace(os.sep, "/")
        folder = os.path.dirname(folder)


def phases_in(root: str) -> list[PhaseId]:
    """Return the phases of the planning tree, in order."""
    names = names_in(os.path.join(root, PLANNING_ROOT, "phases"))
    return sorted(phase for name in names if (phase := PhaseId.parse(name)))


def doubled_phases(root: str) -> Iterator[Finding]:
    """Yield a finding for each phase that repeats the number of an earlier one."""
    for number, (first, *others) in twice_numbered(phases_in(root)).items():
        for phase in others:
            path = f"{PLANNING_ROOT}/phases/{phase}"
            yield Finding(
                Reason.DUPLICATE_ID,
                path,
                message=f"{first} has number {number} as well: a commit that names a plan or a "
                "task of it counts where it changes that plan's files, and a sign-off for neither",
                expected="a number that no other phase has",
                hint=f"Give it another: 'git mv {path} {PLANNING_ROOT}/phases/NN-{phase.slug}', "
                "then the new number in its plans and their names.",
            )


def phase_folder(root: str, phase: PhaseId) -> str:
    """Return the directory of a phase."""
    return f"{root}/{PLANNING_ROOT}/phases/{phase}"


def folders_written_to(root: str) -> list[str]:
    """Return the folders of the work tree that state files are written in."""
    phases = (phase_folder(root, phase) for phase in phases_in(root))
    return [os.path.join(root, PLANNING_ROOT), *phases]


def own_phase_folder(root: str, phase: PhaseId) -> str:
    """Return the directory of a phase that is to be written to.

    Raises:
        YoloError: NOT_REGULAR, when only a link leads to it: what is written there would lie
            elsewhere.
            See docs/dev/faults.md#f50 and #f51.
    """
    folder = phase_folder(root, phase)
    if os.path.realpath(folder) != os.path.join(
        os.path.realpath(root), PLANNING_ROOT, "phases", str(phase)
    ):
        message = f"{safe(os.path.relpath(folder, root))}: a link is on the way to it"
        raise YoloError(Reason.NOT_REGULAR, message, hint="Put a real folder there.")
    return folder


def find_phase(root: str, spelled: str) -> PhaseId:
    """Return the phase that a number (`1`, `01`), a slug or a directory name spells.

    Raises:
        YoloError: as `phase_spelled`; UNKNOWN_NAME when there is no such phase, NOT_INITIALISED
            without a planning tree.
    """
    present = phases_in(root)
    if phase := phase_spelled(present, spelled):
        return phase
    from yolo_fs.workspace.settings import no_phase  # only an error needs it

    hint = hint_for_unknown(spelled, map(str, present))
    unknown = YoloError(Reason.UNKNOWN_NAME, f"no phase {safe(spelled)!r}", hint=hint)
    raise no_phase(root, unknown)


def phase_spelled(phases: Iterable[PhaseId], spelled: str) -> PhaseId | None:
    """Return which of some phases a number (`1`, `01`), a slug or a directory name spells.

    Raises:
        YoloError: BAD_NAME; DUPLICATE_ID for a number or a slug that two phases have.
    """
    wanted = spelled.zfill(2) if spelled.isdecimal() else spelled
    if not wanted.replace("-", "").isalnum():
        raise YoloError(Reason.BAD_NAME, f"{safe(spelled)!r} is not a phase")
    known = tuple(phases)
    matches = [phase for phase in known if wanted in (phase.number, str(phase))]
    matches = matches or [phase for phase in known if wanted == phase.slug]
    if len(matches) > 1:
        raise YoloError(
            Reason.DUPLICATE_ID,
            f"{' and '.join(map(str, matches))} are both called {wanted}",
            hint="Name the directory; 'yolo-fs validate' shows how to renumber one of them.",
            exit_code=Exit.USAGE,
        )
    return matches[0] if matches else None
