"""Files that only a command may write, for any actor: each group with what to do instead. Pure.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify


class Guarded(NamedTuple):
    """One group of files that only a command may write."""

    what: str
    names: tuple[str, ...]
    """Patterns of file names."""
    instead: str
    """What to do instead."""
    is_state: bool = False
    """Derived from committed history; teams without our state files write it themselves."""


GUARDED = (
    Guarded(
        "the status of a department, which is written under its lock alone",
        (".dept-status-*", ".dept-lock-*"),
        "declare it with 'yolo-fs dept update DEPARTMENT --phase N --status … --step …'",
    ),
    Guarded(
        "a sentinel, which follows from committed evidence and opens nothing when it is "
        "made by hand",
        (".handoff-*",),
        "write the artifacts that the gate asks for; 'yolo-fs gate why NAME --phase N' "
        "names each that is missing",
    ),
    Guarded(
        "the state of the project, which follows from committed artifacts",
        ("state.json",),
        "let the Lead sign the phase off with 'yolo-fs phase sign-off N'; any other step moves it "
        "by its own artifact, and 'yolo-fs workflow next --phase N' names that",
        is_state=True,
    ),
    Guarded(
        "a state file, which follows from committed artifacts",
        (".execution-state.json", ".phase-orchestration.json"),
        "write the artifact of the step, and the state follows; "
        "'yolo-fs workflow check STEP --phase N' names each piece that is missing",
        is_state=True,
    ),
    Guarded(
        "the state of an escalation, which its log decides",
        (".escalation-state.json", ".escalation-resolution-*"),
        "use 'yolo-fs escalate open', 'raise' or 'resolve'",
    ),
)


def guarded(path: str) -> Guarded | None:
    """Return the row of a path relative to the repository; None if any actor may write it."""
    if not path.startswith(f"{PLANNING_ROOT}/"):
        return None
    name = path.rpartition("/")[2]
    return next(
        (row for row in GUARDED if any(fnmatchcase(name, pattern) for pattern in row.names)), None
    )


def holds_guarded(folder: str) -> bool:
    """Return whether a folder can hold such files: the planning tree, its `phases/`, a phase."""
    parts = folder.rstrip("/*").split("/")
    return parts[0] == PLANNING_ROOT and len(parts) <= 3 and classify(folder) is None
