"""`yolo-fs verify`: check committed history against the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from yolo_fs.checking.lost_records import dropped_by_merges
from yolo_fs.checking.verify import HEAD, CommitFault, Verifier, past_hooks
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.cli.validate import watched
from yolo_fs.core.reasons import FETCH_LACKING, Exit, counted
from yolo_fs.git.repository import Repository
from yolo_fs.workspace.settings import Settings, load

if TYPE_CHECKING:
    from rich.console import Console


@verb("verify", example="yolo-fs verify main..feature/login")
@click.argument("revisions", nargs=-1, metavar="[REV-RANGE]")
def verify(invocation: Invocation, *, revisions: Sequence[str]) -> Reply:
    """Check every commit that a coordinator made: one artifact each, its content, its references,
    subject, trailers.

    Needs no daemon and no network. Without REV-RANGE: everything that HEAD contains, commits of
    people that bypassed the installed git hooks, and, whoever made them, merges that dropped
    records and artifacts that block a step because they cannot be read.
    """
    faults: list[CommitFault] = []
    count = unknown = 0
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        verifier = Verifier(repository, settings)
        commits = verifier.verify(*(revisions or (HEAD,)))
        for commit in watched(commits, "commits", lambda each: each.of, quiet=invocation.quiet):
            count = commit.number
            faults += commit.faults
            unknown += not commit.is_whole
        wrong = len({fault.commit for fault in faults})
        past = [] if revisions else list(past_hooks(repository, settings))
        faults += past
        known = {(fault.commit, fault.finding.path) for fault in faults}
        dropped = [] if revisions else list(_find_dropped(repository))
        faults += dropped
        holding = [] if revisions else list(_find_holding(repository, settings, verifier))
        faults += (each for each in holding if (each.commit, each.finding.path) not in known)
    data = {
        "verified": count,
        **({"not_whole": unknown} if unknown else {}),
        "faults": [{"commit": fault.commit, **fault.finding.as_json()} for fault in faults],
    }
    findings = [fault.finding_with_commit for fault in faults]
    exit_code = Exit.FINDINGS if faults else Exit.DONE
    return Reply(
        data,
        findings,
        exit_code,
        lambda console: _show(console, count, wrong, unknown, past, dropped, holding),
    )


def _find_dropped(repository: Repository) -> Iterator[CommitFault]:
    """Yield the merges that dropped records which HEAD still lacks."""
    if tip := repository.head().tip:
        for merge, finding in dropped_by_merges(repository, tip):
            yield CommitFault(merge, finding)


def _find_holding(
    repository: Repository, settings: Settings, verifier: Verifier
) -> Iterator[CommitFault]:
    """Yield what is wrong with the artifacts that hold a step, as HEAD has them."""
    from yolo_fs.evidence.failures import find_holding
    from yolo_fs.history.facts_reader import FactsReader

    if (tip := repository.head().tip) is None:
        return
    for facts in FactsReader(repository, settings).facts(tip):
        held = ((artifact.place, artifact.commit) for artifact in find_holding(facts))
        yield from verifier.standing(tip, held)


def _show(
    console: Console,
    count: int,
    wrong: int,
    unknown: int,
    past: Sequence[CommitFault],
    dropped: Sequence[CommitFault],
    holding: Sequence[CommitFault],
) -> None:
    verdict = f"{wrong} with faults" if wrong else "no faults"
    console.print(f"{counted(count, 'commit')} verified: {verdict}")
    if unknown:
        console.print(
            f"{unknown} of them are not whole in this clone, and nothing is said of the rest of it;"
            f" 'git fetch --unshallow' or '{FETCH_LACKING}' brings it"
        )
    if past:
        console.print(
            f"{len({fault.commit for fault in past})} of people's commits bypassed the git hooks"
        )
    if dropped:
        merges = counted(len({fault.commit for fault in dropped}), "merge")
        console.print(f"{merges} dropped records that the branch still lacks")
    if held := {fault.finding.path for fault in holding}:
        console.print(
            f"{counted(len(held), 'artifact')} of the branch cannot be read or trusted, "
            + ("and holds its step" if len(held) == 1 else "and hold their steps")
        )
