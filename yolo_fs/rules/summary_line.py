"""Where the team stands in half a line, for those who have no room for more. Pure."""

from __future__ import annotations

from yolo_fs.rules.phase.progress import Folded
from yolo_fs.rules.states.project import current


def summary_line(folded: Folded) -> str:
    """Return the phase, the step and the percentage, and who is next; nothing where there is no phase."""
    if not folded:
        return ""
    _, progress = current(folded)
    if progress.is_complete:
        return f"{progress.phase} complete"
    turn = f", next {progress.next.agent}" if progress.next else ""
    return f"{progress.phase} {progress.step} {progress.percent}%{turn}"
