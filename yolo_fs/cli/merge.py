"""`yolo-fs merge`: lets the user's git merge artifacts record by record."""

from __future__ import annotations

import os

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import write_atomic
from yolo_fs.team import merge_driver as driver
from yolo_fs.workspace.output_places import output_place
from yolo_fs.workspace.settings import load

_MOST_BYTES = 1 << 30


@click.group("merge")
def merge() -> None:
    """Install, remove or check a merge driver: git then merges planning files record by record.

    Git calls it in merge, rebase, cherry-pick and stash. If two versions of one record differ, git
    reports a conflict as always.
    """


@verb("install", example="yolo-fs merge install", parent=merge)
def install(invocation: Invocation) -> Reply:
    """Write the driver into this repository's configuration, and its files into .gitattributes."""
    with Repository(invocation.start) as repository:
        changed = driver.install(repository)
    return _build_reply(changed, "installed", "it is installed already")


@verb("uninstall", example="yolo-fs merge uninstall", parent=merge)
def uninstall(invocation: Invocation) -> Reply:
    """Remove what `install` wrote, and nothing else."""
    with Repository(invocation.start) as repository:
        changed = driver.uninstall(repository)
    return _build_reply(changed, "removed", "there is nothing to remove")


@verb("doctor", example="yolo-fs merge doctor", parent=merge)
def doctor(invocation: Invocation) -> Reply:
    """Show whether git would call the driver, and why not. Exit 1 when it would not."""
    with Repository(invocation.start) as repository:
        findings = tuple(driver.examine(repository))
    text = (
        "not installed: git merges artifacts line by line here"
        if findings
        else "git merges artifacts record by record"
    )
    code = Exit.FINDINGS if findings else Exit.DONE
    return Reply({"installed": not findings}, findings, code, lambda console: console.print(text))


@verb("merge-driver", example="yolo-fs merge-driver %O %A %B %P")
@click.argument("base", type=click.Path())
@click.argument("ours", type=click.Path())
@click.argument("theirs", type=click.Path())
@click.argument("path")
def merge_driver(invocation: Invocation, *, base: str, ours: str, theirs: str, path: str) -> Reply:
    """Merge two versions of a file into OURS, given their common BASE. Called by git.

    PATH is that of the artifact. Exit 1: a conflict, with git's markers in OURS.
    """
    top, target = output_place(ours, invocation.start)
    with Repository(invocation.start) as repository:
        result = driver.merged(
            load(repository.root), path, _bytes(base), _read_own_file(top, target), _bytes(theirs)
        )
        if result is not None:
            write_atomic(target, result, root=top, durable=False, mode=0o644)
            return Reply()
        conflicts = driver.merge_as_text(repository, base, target, theirs)
    return Reply({"conflicts": conflicts}, exit_code=Exit.FINDINGS if conflicts else Exit.DONE)


def _read_own_file(top: str, path: str) -> bytes:
    """Return the content of the file to be written, which no link of the repository may
    redirect.
    """
    content = read(top, os.path.relpath(path, top), _MOST_BYTES)
    if isinstance(content, Content):
        return content.data
    raise content.as_error(path, Exit.UNREADABLE)


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise YoloError(Reason.UNREADABLE, f"{safe(path)}: {error.strerror}") from None


def _build_reply(changed: tuple[str, ...], done: str, nothing: str) -> Reply:
    text = f"{done}: {', '.join(changed)}" if changed else nothing
    return Reply({"changed": changed}, show=lambda console: console.print(text))
