"""`yolo-fs forecast`: what will conflict at integration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Exit, safe
from yolo_fs.services.team.overview import ExpectedConflict, lines_of
from yolo_fs.services.team.overview import forecast as conflicts_of

if TYPE_CHECKING:
    from rich.console import Console


@verb("forecast", example="yolo-fs forecast --json")
def forecast(asked: Invocation) -> Reply:
    """Name the files in which the branches of this repository's work trees will conflict.

    Each pair of branches is merged in git's object store alone; no branch and no file changes. Exit
    1 when there is a conflict.
    """
    with Repository(asked.start) as repository:
        lines = lines_of(repository)
        found = tuple(conflicts_of(repository, lines))
    code = Exit.FINDINGS if found else Exit.DONE
    data = {"branches": lines, "conflicts": found}
    return Reply(data, exit_code=code, show=lambda console: _show(console, lines, found))


def _show(console: Console, lines: tuple[str, ...], found: tuple[ExpectedConflict, ...]) -> None:
    if not found:
        console.print(f"{len(lines)} branches: each merges with each without a conflict")
    for each in found:
        names = ", ".join(safe(path) for path in each.paths)
        console.print(f"{safe(each.one)} and {safe(each.other)}: {names}")
