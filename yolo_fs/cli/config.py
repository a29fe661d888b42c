"""`yolo-fs config`: the settings in force, and the source of each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.company.hosts import settings_of_hosts
from yolo_fs.core.reasons import safe
from yolo_fs.git.repository import Repository
from yolo_fs.workspace.settings import ConfiguredKey, configured

if TYPE_CHECKING:
    from rich.console import Console


@click.group("config")
def config() -> None:
    """Show the configuration."""


@verb("show", example="yolo-fs config show --origin", parent=config)
@click.option("--origin", is_flag=True, help="Add the file that each value comes from.")
@click.option("--changed", is_flag=True, help="Only keys that differ from their default.")
def show(invocation: Invocation, *, origin: bool, changed: bool) -> Reply:
    """List each key with its value and its default: those in force here, and what else your own
    file or git's yolo-fs.host.* sets.

    The repository's `.yolo-planning/config.json` may only tighten `yolo_fs`; a looser value there
    is shown as ignored. The user's own configuration, in ~/.config/yolo-fs/config.json, may also
    loosen.
    """
    with Repository(invocation.start) as repository:
        keys = [*configured(repository.root), *settings_of_hosts(repository)]
    if changed:
        keys = [each for each in keys if each.value != each.default or each.refused is not None]
    data = [each._asdict() for each in keys]
    return Reply(data, show=lambda console: _show(console, keys, with_origin=origin))


def _show(console: Console, keys: list[ConfiguredKey], *, with_origin: bool) -> None:
    if not keys:
        console.print("every key has its default")
    for each in keys:
        line = f"{each.key} = {_written(each.value)}"
        if each.value != each.default and each.default is not None:
            line += f"  (default: {_written(each.default)})"
        if with_origin:
            line += f"  [{each.origin}]"
        if each.refused is not None:
            line += f"  (ignored: {_written(each.refused)}, which only the user may set)"
        console.print(safe(line, 1_000), soft_wrap=True)


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
