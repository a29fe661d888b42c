"""`yolo-fs squash`: a phase as one commit on a new branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import counted, safe, shortened
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.history.squash import Squash, make_squash, plan_squash
from yolo_fs.progress.workflow import spelled_or_at_work
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@verb("squash", example="yolo-fs squash login --write")
@click.argument("phase", required=False, default="")
@click.option("--branch", default="", help="Name of the new branch; default: squashed/NN-slug.")
@click.option("-m", "--subject", default="", help="Subject of the commit.")
@click.option("--write", is_flag=True, help="Make the branch; without --write, change nothing.")
@click.option("--dry-run", is_flag=True, help="Change nothing, which is the default.")
def squash(
    invocation: Invocation, *, phase: str, branch: str, subject: str, write: bool, dry_run: bool
) -> Reply:
    """Make one commit of a phase, on a new branch, from what the branch has now.

    The current branch stays as it is, and nothing is pushed. The commit has the tree of HEAD; its
    parent is the last commit before the phase. 'yolo-fs verify' accepts it, and the evidence of the
    phase counts on it. Merge it instead of the many commits.

    Only a person may use --write: branches belong to the user.
    """
    with Repository(invocation.start) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        chosen = spelled_or_at_work(facts_reader, phase)
        folder = f"{PLANNING_ROOT}/phases/{chosen}"
        name = branch or f"squashed/{chosen}"
        planned = plan_squash(facts_reader, chosen, folder, name, subject)
        commit = make_squash(repository, planned) if write and not dry_run else ""
        facts_reader.keep()
    data = {
        "phase": str(chosen),
        "branch": planned.branch,
        "base": planned.base,
        "tip": planned.tip,
        "commit": commit,
        "message": planned.message,
        "squashed": {
            "team": planned.ours,
            "source": [squashed_commit.oid for squashed_commit in planned.source],
            "others": [squashed_commit.oid for squashed_commit in planned.others],
        },
    }
    return Reply(data, show=lambda console: _show(console, planned, commit))


def _show(console: Console, planned: Squash, commit: str) -> None:
    count = planned.ours + len(planned.source) + len(planned.others)
    made = f"made {commit[:SHORT]}" if commit else "would make one commit"
    what = f"{counted(count, 'commit')}, {planned.ours} of them by yolo-fs"
    console.print(f"{made} on {safe(planned.branch)} of {what}", soft_wrap=True)
    console.print(safe(planned.message.partition("\n")[0]), soft_wrap=True)
    if planned.others:
        named = shortened(
            (squashed_commit.subject for squashed_commit in planned.others),
            5,
            shown_by="'yolo-fs log'",
        )
        console.print(f"not of the phase, and in it as well: {safe(named, 500)}", soft_wrap=True)
    branch = safe(planned.branch)
    console.print(f"Next: git diff HEAD {branch}" if commit else "To make it: add --write")
