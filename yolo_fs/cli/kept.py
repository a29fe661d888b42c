"""`yolo-fs kept`: contents that the branch does not have, stored in a private ref."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import Invocation, Reply, print_text, verb
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, counted, safe
from yolo_fs.core.timestamps import local
from yolo_fs.git.repository import Repository
from yolo_fs.kept.selection import KeptEntry
from yolo_fs.kept.service import KeptStore, Restored, restore
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


class _ListedByDefault(click.Group):
    """Treats `kept` alone, or with options only, as `kept list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group("kept", cls=_ListedByDefault)
def kept() -> None:
    """List and restore files that were refused, or that a command was about to destroy.

    They are stored in a private ref of the repository, never on a branch, and yolo-fs never pushes
    them. The newest 20 versions of a path stay, 64 MiB in all. Of a file that looks like a
    credential, only the name is stored. Without a subcommand: list.
    """


@verb("list", example="yolo-fs kept list", parent=kept)
def list_(invocation: Invocation) -> Reply:
    """List what is kept, newest last: number, moment, paths and why."""
    with Repository(invocation.start) as repository:
        entries = _kept_store(repository).entries()
    data = {
        "entries": [_as_json(entry) for entry in entries],
        "bytes": sum(entry.size_bytes for entry in entries),
        "dropped": entries[-1].dropped if entries else 0,
    }
    return Reply(data, show=lambda console: _show(console, entries))


@verb("show", example="yolo-fs kept show 3", parent=kept)
@click.argument("number", type=int, metavar="N")
def show(invocation: Invocation, *, number: int) -> Reply:
    """Print the contents of an entry; invisible characters are escaped, except with --json."""
    with Repository(invocation.start) as repository:
        kept_store = _kept_store(repository)
        entry = kept_store.entry(number)
        contents = {
            path: leaf.data.decode("utf-8", "replace") for path, leaf in kept_store.contents(entry)
        }
    return Reply(
        _as_json(entry) | {"contents": contents},
        show=lambda console: _show_contents(console, contents),
    )


@verb("restore", example="yolo-fs kept restore 3 --to /tmp/plan.jsonl", parent=kept)
@click.argument("number", type=int, metavar="N")
@click.option("--to", "target", metavar="PATH", help="Write it there instead of where it was.")
def restore_(invocation: Invocation, *, number: int, target: str | None) -> Reply:
    """Write an entry back to where it was. An uncommitted file at that place is kept first.

    Nothing is written into a git directory, through a link, or where git would run it as a hook.
    """
    with Repository(invocation.start) as repository:
        kept_store = _kept_store(repository)
        done = restore(repository, kept_store, kept_store.entry(number), target, invocation.start)
    code = Exit.FINDINGS if done.findings else Exit.DONE
    data = {"restored": done.written, "kept_first": done.kept_first}
    return Reply(data, done.findings, code, lambda console: _show_restored(console, done))


@verb("prune", example="yolo-fs kept prune --older 30d", parent=kept)
@click.option(
    "--older", default="30d", metavar="AGE", help="Age such as 12h, 30d or 8w (default: 30d)."
)
def prune(invocation: Invocation, *, older: str) -> Reply:
    """Delete older entries. Git frees the space at its next garbage collection."""
    with Repository(invocation.start) as repository:
        gone = _kept_store(repository).prune(_parse_age(older))
    text = f"{counted(gone, 'kept file')} dropped"
    return Reply({"pruned": gone}, show=lambda console: console.print(text))


def _kept_store(repository: Repository) -> KeptStore:
    return KeptStore(repository, secrets_allowed=load(repository.root).policy.secrets_allowed)


_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def _parse_age(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,5})([hdw])", text)
    if not match:
        raise click.UsageError(
            f"{safe(text)!r} is not an age: a number and h, d or w, such as 30d."
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _as_json(entry: KeptEntry) -> dict[str, Any]:
    facts: dict[str, Any] = to_json(entry)
    return facts | {"is_named_only": entry.files == 0}


def _show(console: Console, entries: Sequence[KeptEntry]) -> None:
    if not entries:
        console.print("nothing is kept")
    for entry in entries:
        more = f" and {len(entry.paths) - 1} more" if len(entry.paths) > 1 else ""
        why = ", ".join(entry.cause.reasons)
        by = " ".join(part for part in (entry.cause.agent, entry.cause.command) if part)
        named = "named only" if entry.files == 0 else f"{entry.size_bytes} bytes"
        line = f"{safe(entry.paths[0])}{more}  {safe(why)}  {named}  {safe(by)}".rstrip()
        console.print(f"{entry.number:>5}  {local(entry.at)}  {line}")


def _show_contents(console: Console, contents: dict[str, str]) -> None:
    for path, text in contents.items():
        if len(contents) > 1:
            console.print(f"==> {safe(path, 4096)}")
        print_text(console, text, "'kept restore' brings them back as they were")


def _show_restored(console: Console, done: Restored) -> None:
    for path in done.written:
        console.print(f"restored {safe(path)}")
    if done.kept_first:
        console.print(f"the file that was there before is kept under number {done.kept_first}")
