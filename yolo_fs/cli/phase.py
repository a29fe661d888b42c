"""`yolo-fs phase`: make a new phase, or list those there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.ids import PHASE_DIRECTORY
from yolo_fs.reasons import safe
from yolo_fs.services.progress.phases import PhaseDirectory, make_phase, misnamed, phases

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
def new(asked: Invocation, *, slug: str) -> Reply:
    """Make the directory of the next phase and print its path.

    A phase that has this slug already is printed instead, and nothing is made.
    """
    repository = Repository(asked.start)
    try:
        made = make_phase(repository, slug)
    finally:
        repository.close()
    state = "created" if made.is_new else "already_there"
    return Reply({"state": state, "path": made.path}, show=lambda _: print(made.path))


@verb("list", example="yolo-fs phase list --json", parent=phase)
def list_(asked: Invocation) -> Reply:
    """List the phases with their plans and summaries."""
    repository = Repository(asked.start)
    repository.close()
    found = phases(repository.root)
    return Reply(
        [
            {
                "phase": each.name,
                "path": each.path,
                "plans": each.plans,
                "summaries": each.summaries,
                "status": each.status,
            }
            for each in found
        ],
        misnamed(repository.root),
        show=lambda console: _show(console, found),
    )


def _show(console: Console, found: Sequence[PhaseDirectory]) -> None:
    if not found:
        console.print("There are no phases yet. Make one with 'yolo-fs phase new SLUG'.")
    width = max((len(each.name) for each in found), default=0)
    for each in found:
        console.print(f"{each.name:{width}}  {each.summaries}/{each.plans} plans  {each.status}")
