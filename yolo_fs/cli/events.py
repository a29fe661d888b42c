"""`yolo-fs events`: the journal."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.core.reasons import Reason, YoloError, hint_for_unknown, safe
from yolo_fs.core.timestamps import local
from yolo_fs.git.repository import Repository
from yolo_fs.system.journal import EVENT_TYPES, PREFIX, Journal

if TYPE_CHECKING:
    from rich.console import Console


@verb("events", example="yolo-fs events --follow --type artifact.rejected")
@click.option("-f", "--follow", is_flag=True, help="Follow new events until interrupted.")
@click.option("--since", default=0, metavar="SEQ", help="Only events numbered above SEQ.")
@click.option(
    "--type", "type_", default=None, metavar="T", help="Only this type, such as artifact.committed."
)
def events(invocation: Invocation, *, follow: bool, since: int, type_: str | None) -> Reply:
    """Show what happened, in order.

    The number of an event only grows: with --since, no event is missed or read twice.
    """
    repository = Repository(invocation.start)
    journal = Journal(repository.own_dir, source=repository.root)
    if type_ is not None:
        _check_type(journal, type_)
    if follow:
        _follow(invocation, journal.follow(threading.Event(), since, type_))
    entries = list(journal.read(since, type_))
    return Reply(entries, show=lambda console: _show(console, entries))


def _check_type(journal: Journal, type_: str) -> None:
    """Refuse a type that this version does not write and the journal does not hold."""
    wanted = type_.removeprefix(PREFIX)
    if wanted in EVENT_TYPES:
        return
    known = {*EVENT_TYPES, *(event["type"].removeprefix(PREFIX) for event in journal.read())}
    if wanted not in known:
        raise YoloError(
            Reason.UNKNOWN_TYPE,
            f"no event has the type {safe(type_)!r}",
            hint=hint_for_unknown(wanted, sorted(known)),
        )


def _follow(invocation: Invocation, stream: Iterator[dict[str, Any]]) -> None:
    for event in stream:
        print(json.dumps(event) if invocation.as_json else _line(event), flush=True)


def _show(console: Console, entries: list[dict[str, Any]]) -> None:
    if not entries:
        console.print("no such event")
    for event in entries:
        console.print(_line(event))


def _line(event: dict[str, Any]) -> str:
    data = event.get("data") or {}
    gist = data.get("subject") or data.get("reason") or data.get("what") or ""
    type_ = safe(event["type"].removeprefix(PREFIX))
    at = safe(local(str(event["time"])))
    return (
        f"{event['seq']:>6}  {at}  {type_:22} {safe(event['subject'])}  {safe(str(gist))}"
    ).rstrip()
