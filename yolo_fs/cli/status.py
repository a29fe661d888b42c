"""`yolo-fs status`: the team on one screen."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from yolo_fs.cli.reply import Asked, Reply, console_for, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import safe
from yolo_fs.rules.decide import describe
from yolo_fs.services.settings import load
from yolo_fs.services.status import Candidate, Report, Standing, report

if TYPE_CHECKING:
    from rich.console import Console

_COLOUR = {Standing.COMMITTED: "green", Standing.PENDING: "cyan", Standing.HELD: "yellow", Standing.REJECTED: "red"}
WATCH_EVERY_S = 1.0


@verb("status", example="yolo-fs status --json")
@click.option("--watch", is_flag=True, help="Show it again each second, until interrupted.")
def status(asked: Asked, *, watch: bool) -> Reply:
    """Show every artifact's standing, and why what is held or rejected is so.

    Committed: the branch has it. Pending: looked at again by itself in a moment. Held: valid, but git or the
    configuration stands in the way. Rejected: invalid, with each fault and its place.
    """
    with Repository(asked.start) as repository:
        if watch and not asked.as_json:
            _watch(repository, asked)
        found = report(repository, load(repository.root))
    return Reply(found.as_json(), show=lambda console: show(console, found))


def _watch(repository: Repository, asked: Asked) -> None:
    while not asked.quiet:
        found = report(repository, load(repository.root))
        click.clear()
        show(console_for(sys.stdout), found)
        time.sleep(WATCH_EVERY_S)


def show(console: Console, found: Report) -> None:
    """Print a report for people."""
    _show_head(console, found)
    _show_phases(console, found)
    for standing in (Standing.REJECTED, Standing.HELD, Standing.PENDING):
        _show_candidates(console, standing, found.with_standing(standing))
    if found.last:
        console.print("\nLast commits", style="bold")
        for commit in found.last:
            console.print(f"  {commit.oid[:7]}  {safe(commit.subject)}")


def _show_head(console: Console, found: Report) -> None:
    branch = found.head.branch or "detached HEAD"
    console.print(f"{safe(found.root)} on {safe(branch)}", style="bold")
    console.print(f"daemon: {_health(found)}")
    if found.obstacle:
        console.print(f"held up: {found.obstacle.value}: {found.obstacle.sentence}", style="yellow")


def _health(found: Report) -> str:
    health = found.health
    if health.pid is None:
        return "not running (start it with 'yolo-fs start')"
    scanned = f", last scan {health.scanned_s_ago:.0f} s ago" if health.scanned_s_ago is not None else ""
    degraded = f", degraded: {health.degraded['reason']} {health.degraded['hint']}" if health.degraded else ""
    return f"process {health.pid}{scanned}{safe(degraded, 400)}"


def _show_phases(console: Console, found: Report) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("phase")
    for standing in Standing:
        table.add_column(standing.value, justify="right")
    for phase in sorted({candidate.phase for candidate in found.candidates}):
        counts = found.counts(candidate for candidate in found.candidates if candidate.phase == phase)
        cells = [Text(str(counts[standing] or "-"), style=_COLOUR[standing]) for standing in Standing]
        table.add_row(phase or "(planning root)", *cells)
    console.print()
    if table.row_count:
        console.print(table)
    else:
        console.print("no artifacts yet")


def _show_candidates(console: Console, standing: Standing, candidates: tuple[Candidate, ...]) -> None:
    if not candidates:
        return
    console.print(f"\n{standing.value.capitalize()}", style=f"bold {_COLOUR[standing]}")
    for candidate in candidates:
        facts = describe(candidate.verdict)
        console.print(f"  {safe(candidate.path)}: {facts['reason']}")
        for finding in facts["findings"][:10]:
            place = f"line {finding['line']} {finding['at']}".rstrip() if finding["line"] else "file"
            expected = f"; expected {safe(finding['expected'])}" if finding["expected"] else ""
            console.print(f"    {safe(place)}: {finding['reason']}: {safe(finding['message'])}{expected}")
