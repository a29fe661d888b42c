"""`yolo-fs setup`: lets the host of an agent ask us, beside whatever else it asks, and takes that back."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.protocol.hosts import HOST_BY_NAME, Host
from yolo_fs.reasons import Exit, Finding, Level, Reason
from yolo_fs.services.hooks.hostsettings import PROGRAM, HostSettings

if TYPE_CHECKING:
    from rich.console import Console


@verb("setup", example="yolo-fs setup claude")
@click.argument("host", type=click.Choice(list(HOST_BY_NAME)))
@click.option(
    "--check", is_flag=True, help="HookFileChange nothing; exit 1 when hooks are missing."
)
@click.option("--remove", is_flag=True, help="Take our hooks out again, and nothing else.")
def setup(asked: Invocation, *, host: str, check: bool, remove: bool) -> Reply:
    """Install our hooks in an agent HOST: they are written into its settings in this repository.

    The output names what you still have to approve. For git's hooks see 'yolo-fs hooks'.

    Hooks of others stay as they are. Removing restores the file to the byte unless it was changed in between.
    """
    if check and remove:
        raise click.UsageError("--check and --remove exclude each other")
    row = HOST_BY_NAME[host]
    with Repository(asked.start) as repository:
        settings = HostSettings(repository, row)
        if check:
            return _checked(row, settings)
        if remove:
            return _reply(row, "removed" if settings.remove() else "not installed")
        state = "in place already" if settings.install().is_complete else "installed"
    return _reply(row, state, approve=row.approve, findings=_program())


def _checked(row: Host, settings: HostSettings) -> Reply:
    found = settings.look()
    lacking = f"no hook of ours for {', '.join(found.missing)}"
    hint = f"run 'yolo-fs setup {row.name}'"
    missing = (
        Finding(
            Reason.FILE_MISSING, row.settings, message=lacking, expected="all of them", hint=hint
        ),
    )
    findings = (*(() if found.is_complete else missing), *_program())
    code = Exit.DONE if found.is_complete else Exit.FINDINGS
    state = "in place" if found.is_complete else "incomplete"
    return _reply(row, state, approve=row.approve, findings=findings, code=code)


def _program() -> tuple[Finding, ...]:
    """Warn where the host could not find us: hooks name the program alone, since the file is shared."""
    if shutil.which(PROGRAM):
        return ()
    message = f"{PROGRAM} is not on the PATH, so the host cannot run it"
    hint = "install it with pipx or uv, or add its folder to the PATH"
    return (Finding(Reason.FILE_MISSING, message=message, hint=hint, level=Level.WARNING),)


def _reply(
    row: Host,
    state: str,
    *,
    approve: tuple[str, ...] = (),
    findings: tuple[Finding, ...] = (),
    code: Exit = Exit.DONE,
) -> Reply:
    data = {"host": row.name, "settings": row.settings, "state": state, "approve": list(approve)}

    def show(console: Console) -> None:
        console.print(f"{row.settings}: {state}")
        if approve:
            console.print("You must still:")
        for one in approve:
            console.print(f"- {one}")

    return Reply(data, findings, code, show)
