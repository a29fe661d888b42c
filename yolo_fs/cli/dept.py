"""`yolo-fs dept`: department status under its lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from yolo_fs.agents.access import Access
from yolo_fs.authority.actors import find_department
from yolo_fs.cli.reply import PHASE, Invocation, Reply, as_agent, verb
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Exit, Finding, Reason, safe
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.departments import (
    REASONS,
    Cleaned,
    Declaration,
    clean,
    declare,
    is_unique_in,
    shown,
)
from yolo_fs.progress.workflow import spelled_or_at_work
from yolo_fs.system.store import ListedFolder
from yolo_fs.workspace.planning_tree import own_phase_folder, phase_folder
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("dept")
def dept() -> None:
    """Declare or show the status of a department, and clean up once a phase is over.

    The declaration of a Lead is kept beside the evidence; `status` shows where the two differ.
    """


@verb(
    "update",
    example="yolo-fs dept update frontend --phase 1 --status running --step planning",
    parent=dept,
)
@click.argument("department")
@PHASE
@as_agent("Agent that declares it, such as fe-lead: for its own department alone.")
@click.option("--status", help="pending, running, complete or failed.")
@click.option("--step", help="Step of the workflow, such as implementation.")
@click.option("--plans-complete", type=click.IntRange(min=0), help="Plans that are done.")
@click.option("--plans-total", type=click.IntRange(min=0), help="Total number of plans.")
@click.option("--error", help="Error message; an empty text clears it.")
@click.option("--eta", help="When it should be done, in free words.")
@click.option("--blocker", "blockers", multiple=True, help="What blocks it; may be repeated.")
@click.option(
    "--expect-seq",
    type=click.IntRange(min=0),
    help="Write only if the status still has this number.",
)
def update(
    invocation: Invocation,
    *,
    department: str,
    phase: str,
    agent: str,
    blockers: tuple[str, ...],
    expect_seq: int | None,
    **values: Any,
) -> Reply:
    """Declare the status of a department. Nothing is lost when several write at once."""
    with Repository(invocation.start) as repository:
        access = Access(repository)
        if agent:
            access.actor(agent)  # a role that is not there is told first, as by every verb
        named = find_department(department)
        access.check_verb("dept update", agent, named.value)
    root, chosen = _chosen(invocation, phase)
    given = {key: value for key, value in values.items() if value is not None}
    declaration = Declaration(given, blockers or None, expect_seq)
    written = declare(root, named, chosen, declaration)
    return Reply(written, show=lambda console: _show(console, {department: written}))


@verb("show", example="yolo-fs dept show --phase 1", parent=dept)
@PHASE
def show(invocation: Invocation, *, phase: str) -> Reply:
    """Show the status files of a phase."""
    root, chosen = _chosen(invocation, phase)
    statuses = shown(ListedFolder.at(phase_folder(root, chosen)))
    return Reply(statuses, show=lambda console: _show(console, statuses))


@verb("cleanup", example="yolo-fs dept cleanup --phase 1 --reason complete", parent=dept)
@PHASE
@click.option(
    "--reason",
    required=True,
    type=click.Choice(REASONS),
    help="Why the files are no longer needed.",
)
def cleanup(invocation: Invocation, *, phase: str, reason: str) -> Reply:
    """Remove the files that departments coordinate by; never an artifact that no commit has.

    Exit 1, and remove nothing, when the reason is `complete` and the phase is not.
    """
    with Repository(invocation.start) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        chosen = spelled_or_at_work(facts_reader, phase)
        tip = repository.head().tip
        if reason == "complete" and (at := _open_step(facts_reader, tip, chosen)):
            message = f"phase {chosen} is not complete: it is at step {at}"
            finding = Finding(
                Reason.STATE_CONFLICT,
                message=message,
                hint="'yolo-fs status' shows what is missing.",
            )
            return Reply(_as_json(Cleaned((), ())), (finding,), Exit.FINDINGS)
        cleaned = clean(
            own_phase_folder(repository.root, chosen),
            reason,
            is_unique_in(repository),
            root=repository.root,
        )
    return Reply(_as_json(cleaned), show=lambda console: _show_cleaned(console, cleaned))


def _chosen(invocation: Invocation, spelled: str) -> tuple[str, PhaseId]:
    """Return the root of the work tree, and the selected phase."""
    with Repository(invocation.start) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        return repository.root, spelled_or_at_work(facts_reader, spelled)


def _open_step(facts_reader: FactsReader, tip: str | None, phase: PhaseId) -> str:
    """Return the current step of a phase by its commits; empty if the phase is complete."""
    known = next((each for each in facts_reader.phases(tip) if each.id == phase), None)
    if known is None:
        return "critique"
    return "" if known.is_complete else known.progress.step


def _as_json(cleaned: Cleaned) -> dict[str, Any]:
    return {
        "removed": cleaned.removed,
        "left": [{"file": name, "why": why} for name, why in cleaned.left],
    }


def _show_cleaned(console: Console, cleaned: Cleaned) -> None:
    for name in cleaned.removed:
        console.print(f"removed {safe(name)}")
    for name, why in cleaned.left:
        console.print(f"left    {safe(name)}: {safe(why)}")
    if not (cleaned.removed or cleaned.left):
        console.print("there is nothing to remove")


def _show(console: Console, statuses: dict[str, dict[str, Any]]) -> None:
    if not statuses:
        console.print("no department has declared a status")
    for name, value in statuses.items():
        plans = f"{value.get('plans_complete')}/{value.get('plans_total')} plans"
        console.print(
            safe(
                f"{name:10} {value.get('status')}, step {value.get('step')}, {plans}, "
                f"write {value.get('seq')}"
            )
        )
