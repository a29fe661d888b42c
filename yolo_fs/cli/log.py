"""`yolo-fs log`: the commits of the branch, without the team's or only the team's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import safe
from yolo_fs.core.timestamps import iso, local
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.history.index import IndexedCommit
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@verb("log", example="yolo-fs log --source -n 20")
@click.option("--source", "kind", flag_value="source", help="Only commits that no daemon made.")
@click.option("--team", "kind", flag_value="team", help="Only the commits of yolo-fs.")
@click.option(
    "-n", "count", type=click.IntRange(1, 100_000), default=30, show_default=True,
    help="Maximum number of commits.",
)  # fmt: skip
def log(invocation: Invocation, *, kind: str | None, count: int) -> Reply:
    """List the commits of the branch, newest first: all, only the source, or only the team's.

    The trailers of a commit show whose it is, not its subject.
    """
    with Repository(invocation.start) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        index = facts_reader.history_index
        if tip := repository.head().tip:
            index.read_up_to(tip)
        looks = {"source": index.last_of_source, "team": index.last_of_ours, None: index.last}
        commits = looks[kind](count + 1)
        facts_reader.keep()
    data = [
        {
            "commit": commit.oid,
            "at": iso(commit.at_s),
            "by": "team" if commit.is_ours else "source",
            "subject": commit.subject,
        }
        for commit in commits[:count]
    ]
    return Reply(data, show=lambda console: _show(console, commits, count))


def _show(console: Console, commits: tuple[IndexedCommit, ...], count: int) -> None:
    for commit in commits[:count]:
        sign = "·" if commit.is_ours else "*"
        line = f"{sign} {commit.oid[:SHORT]}  {local(commit.at_s)}  {commit.subject}"
        console.print(safe(line, 300))
    if commits[count:]:
        console.print(f"… older ones are not shown: -n {2 * count} shows more", style="dim")
    if not commits:
        console.print("no such commit on this branch")
