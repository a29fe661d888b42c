"""`yolo-fs commit`: a Dev's source commit of one task."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from yolo_fs.authority.actors import check_agent
from yolo_fs.cli.reply import Invocation, Reply, as_agent, verb
from yolo_fs.core.ids import SHORT, TYPES, TaskRef
from yolo_fs.core.reasons import safe
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.tasks.service import commit_task
from yolo_fs.workspace.settings import load


@verb("commit", example='yolo-fs commit --task 01-02/T3 --type feat -m "rotate the refresh token"')
@click.option(
    "--task", "wanted", required=True, metavar="NN-MM/Tk", help="Task that the commit does."
)
@click.option(
    "--type", "type_", required=True, type=click.Choice(TYPES), help="What kind of change it is."
)
@click.option("-m", "--message", "text", required=True, help="What was done, in one line.")
@click.option(
    "--paths",
    multiple=True,
    metavar="PATH",
    help="Only these of the task's files; may be given often.",
)
@as_agent("Agent whose commit it is, such as fe-dev.")
def commit(
    invocation: Invocation, *, wanted: str, type_: str, text: str, paths: Sequence[str], agent: str
) -> Reply:
    """Commit only the files of a task, as `{type}({phase}-{plan}): Tk {text}`.

    The task's files are those that its plan names. Other staged files stay staged. The commit has
    your name and your signature and runs your hooks; commits of several Devs wait for each other.
    """
    check_agent(agent)
    task = TaskRef.named(wanted)
    with Repository(invocation.start) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        here = os.path.realpath(invocation.start)
        below = [os.path.relpath(os.path.join(here, path), repository.root) for path in paths]
        made = commit_task(repository, facts_reader, task, type_, text, below, agent)
    data = {
        "task": str(task),
        "commit": made.commit,
        "subject": made.subject,
        "paths": list(made.paths),
    }
    done = (
        f"{made.commit[:SHORT]} {made.subject}"
        if made.paths
        else f"{task} is done already: {made.commit[:SHORT]}"
    )
    return Reply(data, show=lambda console: console.print(safe(done, 500)))
