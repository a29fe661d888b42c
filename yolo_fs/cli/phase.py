"""`yolo-fs phase`: create a phase, list the phases, sign one off."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.agents.access import Access
from yolo_fs.authority.actors import department_at_work
from yolo_fs.cli.reply import Invocation, Reply, as_agent, verb
from yolo_fs.core.ids import PHASE_DIRECTORY, SHORT
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError, safe
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.progress import PhaseStatus
from yolo_fs.progress.board import phases_now
from yolo_fs.progress.phases import Made, PhaseDirectory, begin_fix, make_phase, misnamed, phases
from yolo_fs.progress.signoff import PhaseSignOff, SignedOff
from yolo_fs.progress.workflow import phase_named
from yolo_fs.reports.status import verdicts_not_committed
from yolo_fs.workspace.planning_tree import seen_from
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
            f"'{safe(text)}' is not a slug: lower-case letters, digits and single hyphens, at most "
            f"{_LONGEST} of them, such as 'login-page'"
        )
    return text


_LONGEST = 64


@verb("new", example="yolo-fs phase new login-page", parent=phase)
@click.argument("slug", callback=_slug)
@click.option(
    "--fix", "is_fix", is_flag=True, help="Make it a fix, with the steps of `--team solo`."
)
@click.option("--dept", default="", help="Department of the fix; default: the first at work.")
def new(invocation: Invocation, *, slug: str, is_fix: bool, dept: str) -> Reply:
    """Make the directory of the next phase and print its path.

    If a phase has this slug already, its path is printed, and nothing is made. With --fix, its
    analysis.json says that the work is trivial: only the Lead, the Senior and a Dev have a turn,
    unless the plan touches more files than complexity_routing.max_trivial_files.
    """
    if dept and not is_fix:
        raise click.UsageError("--dept belongs to --fix: any other phase is every department's.")
    with Repository(invocation.start) as repository:
        options = WorkflowOptions(load(repository.root).config)
        department = department_at_work(dept, options) if is_fix else None
        made = make_phase(repository, slug)
        if department and made.is_new:
            begin_fix(repository.root, made.path, department)
    state = "created" if made.is_new else "already_there"
    data = {"state": state, "path": made.path}
    seen = seen_from(invocation.start, repository.root, made.path)
    kept = () if made.is_new or not is_fix else (_finding_on_kept_phase(made),)
    return Reply(data, (*_taken(made), *kept), show=lambda _: print(seen))


def _finding_on_kept_phase(made: Made) -> Finding:
    """Warn that a phase which is there stays what it is: a fix of another department, or none."""
    message = "the phase is there already: --fix and --dept change nothing in it"
    hint = "Give the fix a slug of its own: 'yolo-fs phase new SLUG --fix'."
    return Finding(Reason.DUPLICATE_ID, made.path, message=message, hint=hint, level=Level.WARNING)


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
    """List the phases with their plans and summaries, and the step that each is at.

    Complete means the same as in `status`: shown by what is committed.
    """
    with Repository(invocation.start) as repository:
        directories = phases(repository.root)
        known = dict[str, PhaseStatus]()
        with suppress(YoloError):  # a branch that cannot be read hides no folder
            facts_reader = FactsReader(repository, load(repository.root))
            now = phases_now(facts_reader, repository.head().tip)
            known = {str(each.id): each.progress for each in now}
    rows = [_row(each, known.get(each.name)) for each in directories]
    return Reply(rows, misnamed(repository.root), show=lambda console: _show(console, rows))


def _row(directory: PhaseDirectory, progress: PhaseStatus | None) -> dict[str, Any]:
    is_finished = progress is not None and progress.is_finished
    return {
        "phase": directory.name,
        "path": directory.path,
        "plans": directory.plans,
        "summaries": directory.summaries,
        "status": "complete" if is_finished else directory.status,
        "step": progress.step if progress else "",
    }


@verb("sign-off", example="yolo-fs phase sign-off 1 --as lead", parent=phase)
@click.argument("number", required=False, default="")
@as_agent("Agent that signs off, such as lead; default: YOLO_FS_AGENT, then YOLO_FS_ROLE.")
@click.option("--dry-run", is_flag=True, help="Change nothing; print what would be committed.")
def sign_off(invocation: Invocation, *, number: str, agent: str, dry_run: bool) -> Reply:
    """Sign a phase off: commit state.json and ROADMAP.md together, if the evidence allows it.

    Without NUMBER, the phase that is worked on. A verdict that was written and is not on the
    branch, since it is rejected or held, is evidence of nothing and holds the sign-off. Exit 0 when
    it is signed off, now or before; 1 with each piece that is missing.
    """
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        facts_reader = FactsReader(repository, settings)
        chosen = phase_named(facts_reader, number)
        by = Access(repository, settings, facts_reader).actor(agent) if agent else None
        unheard = verdicts_not_committed(repository, settings, chosen.facts)
        signing = PhaseSignOff(facts_reader)
        done = signing.sign(chosen, by, unheard=unheard, dry_run=dry_run)
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


def _show(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        console.print("There are no phases yet. Make one with 'yolo-fs phase new SLUG'.")
    width = max((len(row["phase"]) for row in rows), default=0)
    for row in rows:
        done = f"{row['phase']:{width}}  {row['summaries']}/{row['plans']} plans"
        is_open = row["step"] and row["status"] != "complete"
        step = f", at {row['step']}" if is_open else ""
        console.print(f"{done}  {row['status']}{step}")
