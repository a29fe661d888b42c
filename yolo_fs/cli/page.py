"""Pages for a browser: `yolo-fs board`, the team, live; `yolo-fs report`, a phase as one file."""

from __future__ import annotations

from contextlib import nullcontext

import click

from yolo_fs.checking.verify_command import verification_of
from yolo_fs.cli.reply import Invocation, Reply, phase_option, require_libraries, verb
from yolo_fs.company.overview import lines_of_costs, overview
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import safe
from yolo_fs.git.repository import Repository
from yolo_fs.snapshots.record import record_phase
from yolo_fs.snapshots.review import review_of
from yolo_fs.snapshots.snapshot import find_commit
from yolo_fs.system.journal import Journal
from yolo_fs.system.store import SHARED, write_atomic
from yolo_fs.web.report import write_markdown, write_report
from yolo_fs.workspace.output_places import output_place
from yolo_fs.workspace.settings import load


@verb("board", example="yolo-fs board --port 8700 --no-open")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65_535), help="Port; any free one by default."
)
@click.option("--no-open", is_flag=True, help="Only print the address.")
@click.option(
    "--repo",
    "folders",
    multiple=True,
    metavar="DIR",
    help="Show this repository; may be repeated. Default: this one.",
)
def board(invocation: Invocation, *, port: int, no_open: bool, folders: tuple[str, ...]) -> Reply:
    """Show the team in the browser, live or at any past commit, until interrupted. Changes nothing.

    The first line is the address. Only this user on this machine can open it: the address holds a
    token that is new each time. Works with and without a running daemon. Needs the libraries of the
    extra 'web'.
    """
    require_libraries("starlette", "uvicorn")
    from yolo_fs.web.opening import told_to_end
    from yolo_fs.web.server import BoardServer

    server = BoardServer(folders or (invocation.start,), port)
    with told_to_end():
        print(server.url, flush=True)
        with nullcontext() if no_open else server.opened():
            server.serve()
    return Reply()


@verb("report", example="yolo-fs report --phase 1 -o phase-01.html")
@phase_option("the open one, else the last")
@click.option(
    "--at", "revision", default="HEAD", metavar="REV", help="As of a commit; default: now."
)
@click.option(
    "-o",
    "--output",
    default="",
    metavar="FILE",
    help="File to write. Inside the work tree its name ends in .html, or in .report.md for "
    "Markdown. Without it, Markdown is printed.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "markdown"]),
    default="html",
    show_default=True,
    help="markdown: the text of a pull request, without the process.",
)
def report(invocation: Invocation, *, phase: str, revision: str, output: str, form: str) -> Reply:
    """Write one file about a whole phase, for its reviewer.

    It begins with the goal, each source commit with its size, decisions, deviations, tests,
    security, the sign-off and the cost. HTML adds timeline, plots, artifacts with versions and
    verdicts, gates and commits.

    The file opens without a network and holds no script and no credential. The same history,
    journal and time zone give the same bytes.
    """
    if not output and form == "html":
        raise click.UsageError("Missing option '-o': an HTML report is a file.")
    with Repository(invocation.start) as repository:
        commit = find_commit(repository, revision)
        journal = Journal(repository.own_dir, source=repository.root)
        settings = load(repository.root)
        record = record_phase(repository, settings, commit, phase, journal.read())
        runs = overview(repository, str(record.phase.id))
        verification = verification_of(repository, settings, commit)
        review = review_of(repository, record, lines_of_costs(runs), verification)
    body = write_markdown(review) if form == "markdown" else write_report(record, review)
    if not output:
        text = body.decode()
        printed = {"phase": str(record.phase.id), "commit": commit, "text": text}
        return Reply(
            printed, show=lambda console: console.print(text, markup=False, soft_wrap=True)
        )
    suffix = ".report.md" if form == "markdown" else ".html"
    top, path = output_place(output, invocation.start, suffix)
    write_atomic(path, body, root=top, mode=SHARED)
    data = {"phase": str(record.phase.id), "commit": commit, "file": path, "bytes": len(body)}
    summary = (
        f"{safe(path, 500)}: {record.phase.id} as of {commit[:SHORT]}, {len(body) / 1_000:.0f} kB"
    )
    return Reply(data, show=lambda console: console.print(summary, soft_wrap=True))
