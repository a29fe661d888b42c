"""`yolo-fs phase`: create a phase, list the phases, sign one off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yolo_fs.agents.access import Access
from yolo_fs.cli.reply import AS_ENV, Invocation, Reply, verb
from yolo_fs.core.ids import PHASE_DIRECTORY, SHORT
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, safe
from yolo_fs.git.repository import Repository
from yolo_fs.history.team import Team
from yolo_fs.progress.phases import Made, PhaseDirectory, make_phase, misnamed, phases
from yolo_fs.progress.signoff import PhaseSignOff, SignedOff
from yolo_fs.progress.workflow import phase_named
from yolo_fs.workspace.planning_tree import seen_from
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


@click.group("phase")
def phase() -> None:
    """Phases are directories `phases/NN-slug/` of the planning tree, or of its active milestone."""


def _slug(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    if PHASE_DIRECTORY.fullmatch(text):
        raise click.BadParameter(
            f"{text!r} holds a number already; give the slug alone, such as {text[3:]!r}"
        )
    if not PHASE_DIRECTORY.fullmatch(f"01-{text}") or len(text) > _LONGEST:
        raise click.BadParameter(
            f"'{safe(text)}' is not a slug: lower-case letters, digits and single hyphens, "
            "such as 'login-page'"
        )
    return text


_LONGEST = 64


@verb("new", example="yolo-fs phase new login-page", parent=phase)
@click.argument("slug", callback=_slug)
def new(invocation: Invocation, *, slug: str) -> Reply:
    """Make the directory of the next phase and print its path.

    A phase that has this slug already is printed instead, and nothing is made.
    """
    repository = Repository(invocation.start)
    try:
        made = make_phase(repository, slug)
    finally:
        repository.close()
    state = "created" if made.is_new else "already_there"
    data = {"state": state, "path": made.path}
    seen = seen_from(invocation.start, repository.root, made.path)
    return Reply(data, _taken(made), show=lambda _: print(seen))


def _taken(made: Made) -> tuple[Finding, ...]:
    """Warn of a number that another work tree or branch already uses, before anything is merged."""
    if not made.taken_by:
        return ()
    folder, _, name = made.path.rpartition("/")
    others = ", ".join(map(safe, made.taken_by))
    return (
        Finding(
            Reason.DUPLICATE_ID,
            made.path,
            message=f"another work tree or branch has {others}: once merged, both have this number",
            expected="a number that no other phase has",
            hint=f"Give it another while it is empty: mv {made.path} {folder}/NN-{name[3:]}",
            level=Level.WARNING,
        ),
    )


@verb("list", example="yolo-fs phase list --json", parent=phase)
def list_(invocation: Invocation) -> Reply:
    """List the phases with their plans and summaries."""
    repository = Repository(invocation.start)
    repository.close()
    directories = phases(repository.root)
    return Reply(
        [
            {
                "phase": each.name,
                "path": each.path,
                "plans": each.plans,
                "summaries": each.summaries,
                "status": each.status,
            }
            for each in directories
        ],
        misnamed(repository.root),
        show=lambda console: _show(console, directories),
    )


@verb("sign-off", example="yolo-fs phase sign-off 1 --as lead", parent=phase)
@click.argument("number", required=False, default="")
@click.option(
    "--as",
    "agent",
    default="",
    envvar=AS_ENV,
    help="Agent that signs off, such as lead; default: YOLO_FS_AGENT, then YOLO_FS_ROLE.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would be committed.")
def sign_off(invocation: Invocation, *, number: str, agent: str, dry_run: bool) -> Reply:
    """Sign a phase off: commit state.json and ROADMAP.md together, if the evidence allows it.

    Without NUMBER, the phase that is worked on. Exit 0 when it is signed off, now or before; 1 with
    each piece that is missing.
    """
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        team = Team(repository, settings)
        chosen = phase_named(repository, settings, team, number)
        by = Access(repository, settings, team).actor(agent) if agent else None
        done = PhaseSignOff(repository, settings, team).sign(chosen, by, dry_run=dry_run)
    code = Exit.FINDINGS if done.missing else Exit.DONE
    return Reply(done, done.findings, code, lambda console: _show_sign_off(console, done))


def _show_sign_off(console: Console, done: SignedOff) -> None:
    match done.state:
        case "already":
            console.print(f"phase {done.phase} is signed off already, by {done.commit[:SHORT]}")
        case "lacking":
            console.print(f"phase {done.phase} cannot be signed off yet")
        case "signed_off":
            console.print(f"{done.commit[:SHORT]} {safe(done.subject)}")
            console.print(f"  {', '.join(map(safe, done.paths))}")
        case _:
            console.print(f"would commit {', '.join(map(safe, done.paths))}")
            console.print(f"  as {safe(done.subject)}")


def _show(console: Console, directories: Sequence[PhaseDirectory]) -> None:
    if not directories:
        console.print("There are no phases yet. Make one with 'yolo-fs phase new SLUG'.")
    width = max((len(each.name) for each in directories), default=0)
    for each in directories:
        console.print(f"{each.name:{width}}  {each.summaries}/{each.plans} plans  {each.status}")
