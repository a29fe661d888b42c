"""`yolo-fs hooks`: our sections in git's hooks, put in, taken out, and proved to run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Exit, safe
from yolo_fs.services.hooks.doctor import examine
from yolo_fs.services.hooks.githooks import (
    NAMES,
    Deed,
    HookFileChange,
    Refuse,
    advice,
    carry_out,
    plan_install,
    plan_uninstall,
    work_trees,
)
from yolo_fs.services.hooks.subjects import past_hooks
from yolo_fs.services.workspace import load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("hooks", short_help="git hooks: install, uninstall, doctor")
def hooks() -> None:
    """Install, remove or check our hooks in git: staged files, commit subjects, pushes.

    For the hooks of agent hosts see 'yolo-fs setup'.
    """


@verb("install", example="yolo-fs hooks install --dry-run", parent=hooks)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def install(asked: Invocation, *, dry_run: bool) -> Reply:
    """Put a marked section into each hook, beside whatever is there, wherever git looks for hooks
    in any work tree.

    A second time it does nothing. Exit 1 when a foreign hook must not be touched; the others are
    installed.
    """
    with Repository(asked.start) as repository:
        deeds = plan_install(repository)
        if not dry_run:
            carry_out(repository, deeds)
        return _reply(repository, deeds, dry_run=dry_run)


@verb("uninstall", example="yolo-fs hooks uninstall", parent=hooks)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def uninstall(asked: Invocation, *, dry_run: bool) -> Reply:
    """Take our sections out again: every file is then, byte for byte, what it was without them."""
    with Repository(asked.start) as repository:
        deeds = plan_uninstall(repository)
        if not dry_run and deeds:
            carry_out(repository, deeds)
    return _answered(deeds, [], dry_run=dry_run)


@verb("doctor", example="yolo-fs hooks doctor", parent=hooks)
def doctor(asked: Invocation) -> Reply:
    """Prove that each hook really runs in every work tree, and name the commits that went past
    them.

    Each is asked through git itself; your own part of a hook does not run.
    """
    with Repository(asked.start) as repository:
        broken = list(examine(repository))
        past = list(past_hooks(repository, load(repository.root)))
        roots = work_trees(repository)
    data = {
        "work_trees": list(roots),
        "hooks": list(NAMES),
        "past_hooks": [{"commit": fault.commit, **fault.finding.as_json()} for fault in past],
    }

    def show(console: Console) -> None:
        if not broken:
            console.print(
                f"{len(NAMES)} hooks run in {len(roots)} work tree{'' if len(roots) == 1 else 's'}"
            )
        for fault in past:
            console.print(
                f"went past the hooks: {fault.commit[:12]} {fault.finding}", soft_wrap=True
            )

    return Reply(data, broken, Exit.FINDINGS if broken or past else Exit.DONE, show)


def _reply(repository: Repository, deeds: Sequence[Deed], *, dry_run: bool) -> Reply:
    refused = [deed.finding for deed in deeds if isinstance(deed, Refuse)]
    return _answered(deeds, [*refused, *advice(repository)], dry_run=dry_run)


def _answered(deeds: Sequence[Deed], findings: Sequence[Any], *, dry_run: bool) -> Reply:
    is_refused = any(isinstance(deed, Refuse) for deed in deeds)
    data = {"deeds": [{"path": deed.path, "did": deed.did} for deed in deeds], "dry_run": dry_run}
    code = Exit.FINDINGS if is_refused else Exit.DONE
    return Reply(data, findings, code, lambda console: _show(console, deeds, dry_run=dry_run))


def _show(console: Console, deeds: Sequence[Deed], *, dry_run: bool) -> None:
    if dry_run:
        console.print("Nothing is changed. This would be done:")
    for deed in deeds:
        console.print(f"{deed.did:9} {safe(os.path.relpath(deed.path), 500)}", soft_wrap=True)
    if not any(isinstance(deed, HookFileChange) for deed in deeds):
        console.print("nothing to do")
