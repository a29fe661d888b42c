"""`yolo-fs verify`: check committed history against the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from yolo_fs.checking.verify import HEAD, CommitFault, Verifier, past_hooks
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.cli.validate import watched
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import Exit, counted
from yolo_fs.git.repository import Repository
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@verb("verify", example="yolo-fs verify main..feature/login")
@click.argument("revisions", nargs=-1, metavar="[REV-RANGE]")
def verify(invocation: Invocation, *, revisions: Sequence[str]) -> Reply:
    """Check every commit that a coordinator made: one artifact each, its content, its references,
    subject, trailers.

    Needs no daemon and no network. Without REV-RANGE: everything that HEAD contains, and what
    people committed past the git hooks since those are installed.
    """
    repository = Repository(invocation.start)
    settings = load(repository.root)
    verifier = Verifier(repository, settings)
    faults: list[CommitFault] = []
    count = unknown = 0
    try:
        commits = verifier.verify(*(revisions or (HEAD,)))
        for commit in watched(commits, "commits", lambda each: each.of, quiet=invocation.quiet):
            count = commit.number
            faults += commit.faults
            unknown += not commit.is_whole
        past = [] if revisions else list(past_hooks(repository, settings))
    finally:
        repository.close()
    wrong = len({fault.commit for fault in faults})
    faults += past
    data = {
        "verified": count,
        **({"not_whole": unknown} if unknown else {}),
        "faults": [{"commit": fault.commit, **fault.finding.as_json()} for fault in faults],
    }
    findings = [
        replace(fault.finding, path=f"{fault.commit[:SHORT]}:{fault.finding.path}".rstrip(":"))
        for fault in faults
    ]
    exit_code = Exit.FINDINGS if faults else Exit.DONE
    return Reply(
        data, findings, exit_code, lambda console: _show(console, count, wrong, unknown, past)
    )


def _show(
    console: Console, count: int, wrong: int, unknown: int, past: Sequence[CommitFault]
) -> None:
    verdict = f"{wrong} with faults" if wrong else "no faults"
    console.print(f"{counted(count, 'commit')} verified: {verdict}")
    if unknown:
        console.print(
            f"{unknown} of them are not whole in this clone, and nothing is said of the rest of it;"
            " 'git fetch --unshallow' or 'git fetch --refetch --no-filter' brings it"
        )
    if past:
        console.print(
            f"{len({fault.commit for fault in past})} of people's commits bypassed the git hooks"
        )
