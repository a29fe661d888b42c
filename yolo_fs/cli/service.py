"""`yolo-fs service`: the daemon as a service of the user's session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from yolo_fs.cli.background import closed_repository
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import private_directory
from yolo_fs.json_form import to_json
from yolo_fs.services.install.units import System, Unit, unit_for
from yolo_fs.services.install.units import install as write
from yolo_fs.services.install.units import uninstall as remove
from yolo_fs.services.workspace.places import log_path


@click.group("service")
def service() -> None:
    """Let systemd or launchd run the daemon of this repository at each login.

    Nothing is ever enabled for you: the command that does is printed.
    """


def _system_options(function: Callable[..., Any]) -> Callable[..., Any]:
    launchd = click.option(
        "--launchd", "system", flag_value=System.LAUNCHD.value, help="A launchd job (macOS)."
    )
    systemd = click.option(
        "--systemd", "system", flag_value=System.SYSTEMD.value, help="A systemd user unit (Linux)."
    )
    return systemd(launchd(function))


@verb("print", example="yolo-fs service print --systemd > yolo-fs.service", parent=service)
@_system_options
def print_(asked: Invocation, *, system: str | None) -> Reply:
    """Print the service file."""
    unit = _unit(closed_repository(asked), system)
    return Reply({**to_json(unit), "text": unit.text}, show=lambda _: print(unit.text, end=""))


@verb("install", example="yolo-fs service install", parent=service)
@_system_options
def install(asked: Invocation, *, system: str | None) -> Reply:
    """Write the service file, and say how to enable it."""
    repository = closed_repository(asked)
    unit = _unit(repository, system)
    private_directory(repository.own_dir)  # launchd opens the log in it before we run
    state = write(unit)
    return _reply(unit, state, f"Enable it with:  {unit.enable}")


@verb("uninstall", example="yolo-fs service uninstall", parent=service)
@_system_options
def uninstall(asked: Invocation, *, system: str | None) -> Reply:
    """Remove the service file, once it is no longer enabled."""
    unit = _unit(closed_repository(asked), system)
    state = remove(unit)
    return _reply(
        unit, state, f"If it still runs:  {unit.disable}" if state == "uninstalled" else ""
    )


def _unit(repository: Repository, system: str | None) -> Unit:
    chosen = System(system) if system else System.of_this_machine()
    return unit_for(repository.root, log_path(repository), chosen)


def _reply(unit: Unit, state: str, advice: str) -> Reply:
    said = "\n".join(filter(None, (f"{state.replace('_', ' ')}: {unit.path}", advice)))
    return Reply({"state": state, **to_json(unit)}, show=lambda _: print(said))
