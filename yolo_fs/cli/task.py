"""`yolo-fs task`: who works on which task, who has which files, and whose turn comes next."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import Asked, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.ids import TaskRef
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.rules.claims import Standing
from yolo_fs.rules.phase.facts import PhaseFacts
from yolo_fs.services.claims import Claims, files_of
from yolo_fs.services.settings import load
from yolo_fs.services.team import Team

if TYPE_CHECKING:
    from rich.console import Console


@click.group("task", short_help="claims of tasks: who has which files, and whose turn comes next")
def task() -> None:
    """Claim tasks, so that no two Devs change the same file at once."""


@verb("claim", example="yolo-fs task claim 01-02/T3 --as dev-1", parent=task)
@click.argument("wanted", metavar="TASK")
@click.option("--as", "agent", required=True, help="Agent instance, such as dev-1.")
@click.option("--file", "files", multiple=True, help="File that the task changes; default: those of its plan.")
def claim(asked: Asked, *, wanted: str, agent: str, files: tuple[str, ...]) -> Reply:
    """Claim a task and its files. Exit 1 with the holder and the file while somebody else has one of them.

    Ask again to learn that the turn has come: claims are met in the order in which they were made.
    """
    ref = _task(wanted)
    with _claims(asked) as (claims, facts):
        found = claims.claim(agent, ref, files or files_of(facts, ref), time.time())
    code = Exit.DONE if found.is_granted else Exit.FINDINGS
    return Reply(_claim_as_json(found), (), code, lambda console: console.print(safe(str(found), 500)))


@verb("claims", example="yolo-fs task claims", parent=task)
def claims_(asked: Asked) -> Reply:
    """List the open claims in the order in which they were made."""
    with _claims(asked) as (claims, _):
        found = claims.standings()
    return Reply([_claim_as_json(one) for one in found], show=lambda console: _show_lines(console, found))


@verb("release", example="yolo-fs task release --as dev-1", parent=task)
@click.argument("wanted", metavar="[TASK]", required=False)
@click.option("--as", "agent", required=True, help="Agent instance whose claim it is.")
def release(asked: Asked, *, wanted: str | None, agent: str) -> Reply:
    """Give a task back, or without TASK all that an agent has claimed. A committed task is released by itself."""
    with _claims(asked) as (claims, _):
        found = claims.release(agent, _task(wanted) if wanted else None)
    return Reply([_claim_as_json(one) for one in found], show=lambda console: _show_lines(console, found))


@contextmanager
def _claims(asked: Asked) -> Iterator[tuple[Claims, tuple[PhaseFacts, ...]]]:
    with Repository(asked.start) as repository:
        team = Team(repository, load(repository.root))
        facts = team.facts(repository.head().tip)
        yield Claims(repository, team.chronicle.by_task), facts


def _task(spelled: str) -> TaskRef:
    found = TaskRef.parse(spelled)
    if found is None:
        message = f"{safe(spelled)!r} is no task"
        raise YoloError(Reason.BAD_NAME, message, hint="Spell it NN-MM/Tk, such as 01-02/T3.", exit_code=Exit.USAGE)
    return found


def _claim_as_json(found: Standing) -> dict[str, Any]:
    return {
        "agent": found.claim.agent,
        "task": str(found.claim.task),
        "files": list(found.claim.files),
        "claimed_at": found.claim.claimed_at,
        "granted": found.is_granted,
        "holder": found.behind.agent if found.behind else None,
        "file": found.file or None,
    }


def _show_lines(console: Console, found: Iterable[object]) -> None:
    for one in found:
        console.print(safe(str(one), 500))
