"""`yolo-fs status`: the team on one screen; and `yolo-fs statusline`: on one line for the host of
an agent, which `__main__` answers before anything else is imported.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from yolo_fs.artifacts.classify import phase_folder_of
from yolo_fs.artifacts.decide import reason_and_findings
from yolo_fs.artifacts.verdicts import CandidateState
from yolo_fs.cli.board import (
    LARGE,
    MANY,
    beginning,
    draw_agents,
    draw_board,
    draw_machines,
    lines_of_runs,
    not_begun,
)
from yolo_fs.cli.reply import Invocation, Reply, draw_columns, verb
from yolo_fs.cli.screen import draw_screen, draw_wanted, drawn, follow
from yolo_fs.company.overview import CompanyNow, now_of, overview
from yolo_fs.core.ids import SHORT, PhaseId
from yolo_fs.core.json_form import envelope
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError, counted, safe
from yolo_fs.core.timestamps import local
from yolo_fs.git.repository import Repository
from yolo_fs.handoffs.reading import Compliance
from yolo_fs.history.index import IndexedCommit
from yolo_fs.kept.selection import KeptEntry
from yolo_fs.reports.resume_report import PARTIAL, SHALLOW
from yolo_fs.reports.status import Candidate, Report
from yolo_fs.snapshots.snapshot import PresentSnapshot, StatusObserver, find_commit, snapshot_at
from yolo_fs.workspace.planning_tree import find_phase

if TYPE_CHECKING:
    from rich.console import Console

_DONE = CandidateState.COMMITTED
_UNSETTLED = CandidateState.REJECTED, CandidateState.HELD, CandidateState.PENDING
_COLOUR = {
    CandidateState.COMMITTED: "green",
    CandidateState.PENDING: "cyan",
    CandidateState.HELD: "yellow",
    CandidateState.REJECTED: "red",
}


@verb("status", example="yolo-fs status --at HEAD~20")
@click.option("--watch", is_flag=True, help="Show it again at each change, until interrupted.")
@click.option(
    "--at", "revision", metavar="REV", help="Show the team as of a commit, from history alone."
)
@click.option(
    "--phase",
    default="",
    metavar="PHASE",
    help="Show this phase only, in full: number, slug or directory name.",
)
def status(invocation: Invocation, *, watch: bool, revision: str | None, phase: str = "") -> Reply:
    """Show where the team stands, then the state of every artifact, with the reason of each that is
    held or rejected.

    The team: phases with departments and steps, plans, gates and what they lack, blockers,
    deadlocks, and declarations of the work tree that contradict the evidence. Above it, each
    running 'yolo-fs go' with its cost so far and the agents at work. A finished phase is one line,
    as is an open one after the first five; -v shows all of each. A terminal shows one screen,
    which begins with what needs a person and what an agent has to fix; q ends --watch.

    An artifact is committed, pending, held or rejected; 'yolo-fs explain held' says what that is.
    """
    if watch and revision is not None:
        raise click.UsageError("--at never changes, so there is nothing to watch.")
    with Repository(invocation.start) as repository:
        chosen = find_phase(repository.root, phase) if phase else None
        if revision is not None:
            return _report_past_state(repository, revision, chosen, invocation)
        with contextlib.closing(StatusObserver(repository)) as observer:
            if watch and not invocation.quiet:
                _watch(repository, observer, chosen, invocation)
                return Reply()
            now, wrong = _company_of(repository, chosen)
            return _reply(observer.look(), chosen, invocation, now, wrong)


def _report_past_state(
    repository: Repository, revision: str, chosen: PhaseId | None, invocation: Invocation
) -> Reply:
    seen = snapshot_at(repository, find_commit(repository, revision))
    if chosen:
        seen = replace(seen, team=seen.team.only(chosen))

    def show(console: Console) -> None:
        if _is_short(console, invocation):
            draw_screen(console, seen, console.height)
            return
        draw_board(console, seen.team, verbose=invocation.verbose or chosen is not None)
        _show_last(console, seen.last)

    return Reply(seen.as_json, show=show)


def _is_short(console: Console, invocation: Invocation) -> bool:
    """Return whether to show one screen only; `-v` and the reader of a pipe get everything."""
    return console.is_terminal and not invocation.verbose


def _company_of(
    repository: Repository, chosen: PhaseId | None
) -> tuple[CompanyNow, tuple[Finding, ...]]:
    """Return which agents the company has at work; what cannot be read hides only this part."""
    try:
        return now_of(overview(repository, str(chosen or ""))), ()
    except YoloError as error:
        return now_of(()), (replace(error.as_finding(), level=Level.WARNING),)


def _reply(
    seen: PresentSnapshot,
    chosen: PhaseId | None,
    invocation: Invocation,
    now: CompanyNow,
    wrong: Sequence[Finding] = (),
) -> Reply:
    if chosen:
        beside = tuple(notes for notes in seen.beside if notes.phase in ("", str(chosen)))
        seen = replace(
            seen,
            report=seen.report.only(str(chosen)),
            team=seen.team and seen.team.only(chosen),
            beside=beside,
            findings=tuple(
                each for each in seen.findings if phase_folder_of(each.path) in ("", str(chosen))
            ),
        )

    def draw(console: Console) -> None:
        if _is_short(console, invocation):
            draw_screen(console, seen, console.height, tuple(lines_of_runs(now)))
            return
        draw_wanted(console, seen, verbose=invocation.verbose)
        for line in lines_of_runs(now):
            console.print(safe(line, 300), soft_wrap=True)
        if seen.team:
            empty = beginning(seen.report.root, str(chosen or ""))
            is_full = invocation.verbose or chosen is not None
            draw_board(console, seen.team, empty=empty, verbose=is_full)
        if not chosen and (waits := not_begun(seen.report.root, seen.team)):
            console.print(waits)
        if seen.compliance:
            _show_compliance(console, seen.compliance)
        console.print()
        if seen.crew:
            draw_agents(console, seen.crew)
        if seen.machines:
            draw_machines(console, seen.machines)
        show(console, seen.report, verbose=invocation.verbose)

    refused = seen.report.with_standing(CandidateState.REJECTED)
    shown = set() if invocation.as_json else {each.path for each in refused}
    findings = [
        each
        for each in seen.findings
        if each.reason is not Reason.UNKNOWN_NAME or each.path not in shown
    ]
    data = {"company": now}
    findings += [each for each in wrong if each not in findings]
    return Reply(lambda: data | seen.as_json(), findings, show=draw)


def _watch(
    repository: Repository, observer: StatusObserver, chosen: PhaseId | None, invocation: Invocation
) -> None:
    def look() -> tuple[str, bool]:
        try:
            seen = observer.look()
            now, wrong = _company_of(repository, chosen)
        except YoloError as error:  # a configuration being edited must not end the watch
            return _text(Reply(None, [error.as_finding()], Exit.FINDINGS), invocation), True
        timeless = replace(
            seen,
            report=replace(seen.report, health=replace(seen.report.health, scanned_s_ago=None)),
        )
        reply = _reply(timeless, chosen, invocation, now, wrong)
        pending = seen.report.with_standing(CandidateState.PENDING)
        return _text(reply, invocation), bool(pending or now["at_work"])

    follow(repository, look)


def _text(reply: Reply, invocation: Invocation) -> str:
    if invocation.as_json:
        return envelope("status", reply.data, reply.findings, ok=reply.exit_code is Exit.DONE)
    return drawn(reply)


def show(console: Console, report: Report, *, verbose: bool) -> None:
    """Print a report as text. `verbose`: every phase, even if all of it is committed."""
    _show_head(console, report)
    _show_phases(console, report, verbose=verbose)
    for standing in _UNSETTLED:
        candidates = report.with_standing(standing)
        _show_candidates(console, report.root, standing, candidates, verbose=verbose)
    _show_deleted(console, report.deleted)
    _show_autofixed(console, report)
    _show_kept(console, report.kept)
    _show_warnings(console, report.warnings)
    _show_last(console, report.last)


def _show_deleted(console: Console, paths: Sequence[str]) -> None:
    if paths:
        console.print("\nDeleted from the work tree; the branch has them still", style="bold")
    for path in paths:
        console.print(f"  {safe(path)}", soft_wrap=True)


def _show_autofixed(console: Console, report: Report) -> None:
    if report.autofixed:
        console.print("\nRepaired by autofix (the original: 'yolo-fs kept')", style="bold")
    for file in report.autofixed:
        mended = f"{counted(file.mended, 'error')} mended, {local(file.at)}"
        console.print(f"  {safe(file.path)}: {mended}")


def _show_kept(console: Console, kept: Sequence[KeptEntry]) -> None:
    if not kept:
        return
    size_kib = sum(entry.size_bytes for entry in kept) / 1024
    gone = f"; {kept[-1].dropped} older ones are gone" if kept[-1].dropped else ""
    summary = f"\n{len(kept)} kept aside, {size_kib:.1f} KiB{gone}: 'yolo-fs kept' lists them"
    console.print(summary, style="yellow")


def _show_compliance(console: Console, read: Compliance) -> None:
    reasons = ", ".join(f"{count} {reason}" for reason, count in read.reasons)
    summary = f"handoffs: {read.percent} % of {read.reads} came as handoff.json"
    console.print(
        f"{summary}{f'; {reasons}' if reasons else ''}: 'yolo-fs handoff report' has each"
    )


def _show_warnings(console: Console, warnings: Mapping[str, int]) -> None:
    if warnings:
        summary = f"{sum(warnings.values())} in {len(warnings)} committed artifacts"
        console.print(f"\nwarnings: {summary}: 'yolo-fs validate' lists them", style="yellow")


def _show_last(console: Console, last: Sequence[IndexedCommit]) -> None:
    if last:
        console.print("\nLast commits", style="bold")
    for commit in last:
        console.print(f"  {commit.oid[:SHORT]}  {safe(commit.subject)}")


def _show_head(console: Console, report: Report) -> None:
    branch = report.head.branch or "detached HEAD"
    console.print(f"{safe(report.root)} on {safe(branch)}", style="bold")
    console.print(f"daemon: {_health(report)}")
    if report.verification:
        style = "" if report.verification.passed else "red"
        console.print(safe(report.verification.sentence), style=style)
    if report.is_cut_off:
        console.print(SHALLOW, style="yellow")
    if report.is_partial:
        console.print(PARTIAL, style="yellow")
    if report.obstacle:
        console.print(f"no commits: {report.obstacle.with_sentence}", style="yellow")


def _health(report: Report) -> str:
    health = report.health
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


def _show_phases(console: Console, report: Report, *, verbose: bool) -> None:
    rows = [[("phase", "bold"), *((standing.value, "bold") for standing in CandidateState)]]
    counted = dict(sorted(report.listing.by_phase.items()))
    done = [phase for phase, counts in counted.items() if counts.keys() == {_DONE}]
    if not verbose and len(done) > LARGE:
        folded = Counter({_DONE: sum(counted.pop(phase)[_DONE] for phase in done)})
        counted[f"{len(done)} phases (-v shows each)"] = folded
    for phase, counts in counted.items():
        cells = ((str(counts[each] or "-"), _COLOUR[each]) for each in CandidateState)
        rows.append([(phase or "(no phase)", ""), *cells])
    console.print()
    if counted:
        draw_columns(console, rows, ">")
    else:
        console.print("no artifacts yet")


def _show_candidates(
    console: Console,
    root: str,
    standing: CandidateState,
    candidates: Sequence[Candidate],
    *,
    verbose: bool,
) -> None:
    if not candidates:
        return
    console.print(f"\n{standing.value.capitalize()}", style=f"bold {_COLOUR[standing]}")
    shown = len(candidates) if verbose else MANY
    for candidate in candidates[:shown]:
        reason, findings = reason_and_findings(candidate.verdict)
        console.print(f"  {safe(candidate.path)}: {reason.value}", soft_wrap=True)
        for finding in findings:
            place = finding.place_in_file or "file"
            sentence = f"    {place}: {finding.reason.value}: {finding.why}"
            console.print(sentence, soft_wrap=True)
    if others := candidates[shown:]:
        reasons = Counter(reason_and_findings(each.verdict)[0].value for each in others)
        counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        console.print(f"  … {len(others)} more (-v shows each): {counts}", style="dim")
    if standing is CandidateState.REJECTED:
        from yolo_fs.checking.fix import fixable_in  # checks anew what is shown as refused

        mends = fixable_in(root, [candidate.path for candidate in candidates[:shown]])
        if mends.fixable:
            of_these = f"of the first {shown} files, " if others else ""
            console.print(f"  {of_these}{mends.sentence}", soft_wrap=True)


@verb("statusline", example="yolo-fs statusline -C ~/shop")
def statusline(invocation: Invocation) -> Reply:
    """Show the state of the team in one line: what waits for a person, agents at work, phase, steps
    done, the next step, what is held or rejected.

    Reads one file that the daemon keeps up to date: cheap to call often. Always exits 0. In Claude
    Code's settings: "statusLine": {"type": "command", "command": "yolo-fs statusline",
    "refreshInterval": 5}.
    """
    from yolo_fs.cli.statusline_fast import line  # `status` can do without it

    status_line = line(invocation.start)
    return Reply(
        {"line": status_line}, show=lambda console: console.print(status_line, markup=False)
    )
