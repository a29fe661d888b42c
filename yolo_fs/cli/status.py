"""`yolo-fs status`: the team on one screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from yolo_fs.cli.board import draw_asides, draw_board, draw_crew
from yolo_fs.cli.reply import Invocation, Reply, envelope, verb
from yolo_fs.cli.watch import drawn, follow
from yolo_fs.edges.git.history import LoggedCommit
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Exit, Finding, Level, Reason, YoloError, safe
from yolo_fs.rules.decide import describe
from yolo_fs.rules.kept import KeptEntry
from yolo_fs.services.agents.snapshot import AgentsObserver, AgentsSnapshot
from yolo_fs.services.history.team import Team
from yolo_fs.services.hooks.bypassed import past_hooks
from yolo_fs.services.progress.board import Board, board
from yolo_fs.services.progress.drift import Aside, as_json, asides
from yolo_fs.services.reports.status import (
    Candidate,
    CandidateState,
    Report,
    last_commits,
    listed,
    report,
)
from yolo_fs.services.workspace.settings import Settings, load

if TYPE_CHECKING:
    from rich.console import Console

_COLOUR = {
    CandidateState.COMMITTED: "green",
    CandidateState.PENDING: "cyan",
    CandidateState.HELD: "yellow",
    CandidateState.REJECTED: "red",
}


@verb("status", example="yolo-fs status --at HEAD~20")
@click.option(
    "--watch", is_flag=True, help="Show it again whenever something changes, until interrupted."
)
@click.option(
    "--at", "revision", metavar="REV", help="Show the team as of a commit, from history alone."
)
def status(asked: Invocation, *, watch: bool, revision: str | None) -> Reply:
    """Show where the team stands, then every artifact's standing, and why what is held or rejected is so.

    The team: phases with departments and steps, plans, gates and what they lack, blockers, waits that nothing ends,
    and what the work tree declares otherwise. A finished phase is one line; -v shows all of it.

    Committed: the branch has it. Pending: looked at again by itself in a moment. Held: valid, but git or the
    configuration stands in the way. Rejected: invalid, with each fault and its place.
    """
    if watch and revision is not None:
        raise click.UsageError("--at never changes, so there is nothing to watch.")
    with Repository(asked.start) as repository:
        if revision is not None:
            return _as_of(repository, revision, asked)
        if watch and not asked.quiet:
            _watch(repository, asked)
        return _Observer(repository).look().reply(asked)


# --- at any moment of the past ---


def _as_of(repository: Repository, revision: str, asked: Invocation) -> Reply:
    commit = repository.tip(f"{revision}^{{commit}}")
    if commit is None or not commit.isalnum():  # git says yes to a range, too
        hint = "Give a commit, a branch, a tag, or a time such as 'main@{2 days ago}'."
        raise YoloError(Reason.UNKNOWN_COMMIT, f"no commit is called {safe(revision)!r}", hint=hint)
    found = board(repository, load(repository.root), commit)
    last = last_commits(repository, commit)

    def show(console: Console) -> None:
        draw_board(console, found, verbose=asked.verbose)
        _show_last(console, last)

    return Reply({"team": found.as_json(), "last_commits": listed(last)}, show=show)


# --- now ---


@dataclass(frozen=True, slots=True)
class _Look:
    """Everything that `status` says of one moment."""

    found: Report
    team: Board | None
    """None when the history cannot be read."""
    beside: tuple[Aside, ...] = ()
    crew: AgentsSnapshot | None = None
    """None when the history cannot be read."""
    findings: tuple[Finding, ...] = ()

    def reply(self, asked: Invocation) -> Reply:
        """Return what the command answers."""
        team = {"team": self.team.as_json() if self.team else None}
        crew = {"crew": self.crew.as_json() if self.crew else None}
        data = team | as_json(self.beside) | crew | self.found.as_json()
        return Reply(data, self.findings, show=lambda console: self._draw(console, asked))

    def _draw(self, console: Console, asked: Invocation) -> None:
        if self.team:
            draw_board(console, self.team, verbose=asked.verbose)
        draw_asides(console, self.beside)
        console.print()
        if self.crew:
            draw_crew(console, self.crew)
        show(console, self.found)


class _Observer:
    """Looks again and again, and remembers what never changes."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._settings: Settings | None = None
        self._team: Team | None = None

    def look(self) -> _Look:
        settings = load(self._repository.root)
        if self._team is None or settings != self._settings:
            self._settings, self._team = settings, Team(self._repository, settings)
        found = report(self._repository, settings)
        try:
            team = board(self._repository, settings, found.head.tip, self._team)
        except YoloError as error:  # a clone without its trees has artifacts on disk all the same
            return _Look(found, None, findings=(replace(error.as_finding(), level=Level.WARNING),))
        verdicts = {one.path: one.verdict for one in found.candidates}
        crew = AgentsObserver(self._repository, settings, self._team).look(verdicts)
        beside = asides(self._repository.root, settings, team, self._team)
        wrong = (replace(one, level=Level.WARNING) for one in crew.findings)
        return _Look(found, team, beside, crew, (*_past_hooks(self._repository, settings), *wrong))


def _past_hooks(repository: Repository, settings: Settings) -> Iterator[Finding]:
    """Yield one warning for each commit that went past the git hooks."""
    first = {
        fault.commit: fault.finding for fault in reversed(list(past_hooks(repository, settings)))
    }
    for commit, finding in first.items():
        path = f"{commit[:12]}:{finding.path}".rstrip(":")
        yield replace(finding, path=path, level=Level.WARNING)


def _watch(repository: Repository, asked: Invocation) -> None:
    observer = _Observer(repository)

    def look() -> tuple[str, bool]:
        try:
            seen = observer.look()
        except YoloError as error:  # a configuration being edited must not end the watch
            return _text(Reply(None, [error.as_finding()], Exit.FINDINGS), asked), True
        timeless = replace(
            seen, found=replace(seen.found, health=replace(seen.found.health, scanned_s_ago=None))
        )
        return _text(timeless.reply(asked), asked), bool(
            seen.found.with_standing(CandidateState.PENDING)
        )

    follow(repository, look)


def _text(reply: Reply, asked: Invocation) -> str:
    if asked.as_json:
        return envelope("status", reply.data, reply.findings, ok=reply.exit_code is Exit.DONE)
    return drawn(reply)


# --- the artifacts ---


def show(console: Console, found: Report) -> None:
    """Print a report for people."""
    _show_head(console, found)
    _show_phases(console, found)
    for standing in (CandidateState.REJECTED, CandidateState.HELD, CandidateState.PENDING):
        _show_candidates(console, standing, found.with_standing(standing))
    _show_kept(console, found.kept)
    _show_last(console, found.last)


def _show_kept(console: Console, kept: Sequence[KeptEntry]) -> None:
    if not kept:
        return
    size_kib = sum(entry.size_bytes for entry in kept) / 1024
    gone = f"; {kept[-1].dropped} older ones are gone" if kept[-1].dropped else ""
    told = f"\n{len(kept)} kept aside, {size_kib:.1f} KiB{gone}: 'yolo-fs kept' lists them"
    console.print(told, style="yellow")


def _show_last(console: Console, last: Sequence[LoggedCommit]) -> None:
    if last:
        console.print("\nLast commits", style="bold")
    for commit in last:
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
    scanned = (
        f", last scan {health.scanned_s_ago:.0f} s ago" if health.scanned_s_ago is not None else ""
    )
    degraded = ""
    if health.degraded:
        degraded = f", degraded: {health.degraded.reason.value} {health.degraded.hint}"
    troubles = "".join(f", {each.duty} fails: {each.what}" for each in health.troubles)
    return f"process {health.pid}{scanned}{safe(degraded + troubles, 400)}"


def _show_phases(console: Console, found: Report) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("phase")
    for standing in CandidateState:
        table.add_column(standing.value, justify="right")
    for phase in sorted({candidate.phase for candidate in found.candidates}):
        counts = found.counts(
            candidate for candidate in found.candidates if candidate.phase == phase
        )
        cells = [
            Text(str(counts[standing] or "-"), style=_COLOUR[standing])
            for standing in CandidateState
        ]
        table.add_row(phase or "(planning root)", *cells)
    console.print()
    if table.row_count:
        console.print(table)
    else:
        console.print("no artifacts yet")


def _show_candidates(
    console: Console, standing: CandidateState, candidates: tuple[Candidate, ...]
) -> None:
    if not candidates:
        return
    console.print(f"\n{standing.value.capitalize()}", style=f"bold {_COLOUR[standing]}")
    for candidate in candidates:
        facts = describe(candidate.verdict)
        console.print(f"  {safe(candidate.path)}: {facts['reason']}")
        for finding in facts["findings"][:10]:
            place = (
                f"line {finding['line']} {finding['at']}".rstrip() if finding["line"] else "file"
            )
            expected = f"; expected {safe(finding['expected'])}" if finding["expected"] else ""
            console.print(
                f"    {safe(place)}: {finding['reason']}: {safe(finding['message'])}{expected}"
            )
