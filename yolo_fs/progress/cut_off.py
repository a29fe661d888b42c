"""What a shallow clone cannot prove, since it ends within a phase."""

from __future__ import annotations

from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import Finding, Level, Reason
from yolo_fs.git.repository import Repository
from yolo_fs.phase.phase import Phase


def find_unproved(repository: Repository, phase: Phase) -> tuple[Finding, ...]:
    """Return a warning where the commit at which a shallow clone ends has verdicts of a phase and
    what they judge: the whole past is one commit there, and nobody can tell what came first.
    """
    ends = {commit[:SHORT] for commit in repository.cut_off()}
    within = [commit for commit in phase.came_together if commit in ends] if ends else []
    return tuple(
        Finding(
            Reason.OBJECT_MISSING,
            message=f"this clone ends within phase {phase.id}, at {commit}: whether its verdicts "
            "came after what they judge is not known here",
            hint="'git fetch --unshallow' brings it.",
            level=Level.WARNING,
        )
        for commit in within
    )
