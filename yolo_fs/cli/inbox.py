"""`yolo-fs inbox`: what waits for a person."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.core.reasons import Exit, safe
from yolo_fs.core.timestamps import local
from yolo_fs.git.repository import Repository
from yolo_fs.snapshots.inbox import COMMAND_LENGTH, InboxItem
from yolo_fs.snapshots.snapshot import StatusObserver

if TYPE_CHECKING:
    from rich.console import Console


@verb("inbox", example="yolo-fs inbox --json")
def inbox(invocation: Invocation) -> Reply:
    """List everything that waits for a person, the most urgent first, with the command for each.

    Credentials in artifacts, a daemon that does not run, conflicts between clones, escalations that
    the user holds, decisions that only the user may take, deadlocks, and files that are held until
    somebody acts. Exit 0 when nothing waits, 1 otherwise.
    """
    items = items_of(invocation)
    code = Exit.FINDINGS if items else Exit.DONE
    return Reply(items, (), code, lambda console: show(console, items))


def items_of(invocation: Invocation) -> tuple[InboxItem, ...]:
    """Return all items that wait for a person, the most urgent first."""
    with (
        Repository(invocation.start) as repository,
        contextlib.closing(StatusObserver(repository)) as observer,
    ):
        return observer.look().inbox


def lines_of(items: Sequence[InboxItem]) -> Iterator[tuple[str, str]]:
    """Yield each item as text: its question with the options, then its command."""
    for item in items:
        since = f", since {local(item.since)}" if item.since else ""
        options = "".join(f" [{at} {each}]" for at, each in enumerate(item.options, 1))
        question = safe(f"{item.kind}{since}: {item.question}{options}", 500)
        yield question, safe(item.command, COMMAND_LENGTH)


def show(console: Console, items: Sequence[InboxItem]) -> None:
    """Print the items as text."""
    for question, command in lines_of(items):
        console.print(question, style="yellow")
        console.print(f"  {command}", soft_wrap=True)  # it is copied
    if not items:
        console.print("nothing waits for a person")
