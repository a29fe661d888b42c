"""`yolo-fs inbox`: what waits for a person."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.core.reasons import Exit, safe
from yolo_fs.git.repository import Repository
from yolo_fs.moments.inbox import InboxItem
from yolo_fs.moments.moment import StatusObserver

if TYPE_CHECKING:
    from rich.console import Console


@verb("inbox", example="yolo-fs inbox --json")
def inbox(asked: Invocation) -> Reply:
    """List everything that waits for a person, the most urgent first, with the command for each.

    Credentials in artifacts, a daemon that does not run, conflicts between clones, escalations that
    the user holds, decisions that only the user may take, deadlocks, and files that are held until
    somebody acts. Exit 0 when nothing waits, 1 otherwise.
    """
    items = items_of(asked)
    code = Exit.FINDINGS if items else Exit.DONE
    return Reply([one.as_json() for one in items], (), code, lambda console: _show(console, items))


def items_of(asked: Invocation) -> tuple[InboxItem, ...]:
    """Return everything that waits for a person, the most urgent first."""
    with (
        Repository(asked.start) as repository,
        contextlib.closing(StatusObserver(repository)) as observer,
    ):
        return observer.look().inbox


def lines_of(items: Sequence[InboxItem]) -> Iterator[tuple[str, str]]:
    """Yield each item for people: its question with the options, then its command."""
    for one in items:
        since = f", since {one.since}" if one.since else ""
        options = "".join(f" [{at} {each}]" for at, each in enumerate(one.options, 1))
        yield safe(f"{one.kind}{since}: {one.question}{options}", 500), safe(one.command, 300)


def _show(console: Console, items: Sequence[InboxItem]) -> None:
    for question, command in lines_of(items):
        console.print(question, style="yellow")
        console.print(f"  {command}")
    if not items:
        console.print("nothing waits for a person")
