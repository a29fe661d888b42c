"""`yolo-fs setup`: lets the host of an agent ask us, beside whatever else it asks, and takes that
back.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.protocol.hooks import HOST_BY_NAME, Host
from yolo_fs.reasons import Exit, Finding, Level, Reason
from yolo_fs.services.hooks.hostsettings import PROGRAM, HostSettings
from yolo_fs.services.hooks.registration import (
    ServerEntry,
    TomlSection,
    is_plugin_complete,
    role_tables,
    server_table,
    write_plugin,
)

if TYPE_CHECKING:
    from rich.console import Console

APPROVE_SERVER = ("Allow the server 'yolo-fs' when the host asks: it starts none that is new.",)


@verb("setup", example="yolo-fs setup claude")
@click.argument("host", type=click.Choice(list(HOST_BY_NAME)))
@click.option("--local", is_flag=True, help="claude: hooks in .claude/settings.local.json instead.")
@click.option("--mcp", is_flag=True, help="Register our MCP server instead of the hooks.")
@click.option("--roles", is_flag=True, help="codex: name the company's agents instead.")
@click.option("--plugin", metavar="DIR", help="claude: make a plugin with all of it there instead.")
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when something is missing.")
@click.option("--remove", is_flag=True, help="Take all that is ours out again, and nothing else.")
def setup(
    asked: Invocation,
    *,
    host: str,
    local: bool,
    mcp: bool,
    roles: bool,
    plugin: str | None,
    check: bool,
    remove: bool,
) -> Reply:
    """Install our hooks in an agent HOST: they are written into its settings in this repository.

    The output names what you still have to approve. For git's hooks see 'yolo-fs hooks'.

    Hooks of others stay as they are. Removing restores each file to the byte unless it was changed
    in between.
    """
    row = HOST_BY_NAME[host]
    given = (("local", local), ("mcp", mcp), ("roles", roles), ("plugin", plugin is not None))
    wanted = [name for name, is_set in given if is_set]
    if (check and remove) or len(wanted) > 1 or (remove and wanted):
        raise click.UsageError(
            "--check, --remove, --local, --mcp, --roles and --plugin exclude each other"
        )
    if (local and not row.local_settings) or (
        (roles and host != "codex") or (plugin is not None and host != "claude")
    ):
        raise click.UsageError(f"{host} knows no --{wanted[0]}")
    if plugin is not None:
        return _plugin(row, os.path.abspath(os.path.join(asked.start, plugin)), check=check)
    with Repository(asked.start) as repository:
        if remove:
            gone = [part.file.name for part in _parts(repository, row) if part.remove()]
            return _reply(
                row, gone[0] if gone else row.settings, "removed" if gone else "not installed"
            )
        if mcp or roles:
            return _register(row, _registration(repository, row, roles=roles), check=check)
        settings = HostSettings(repository, row, is_local=local)
        if check:
            return _checked(repository, row, settings)
        state = "in place already" if settings.install().is_complete else "installed"
    return _reply(row, settings.file.name, state, approve=row.approve, findings=_program())


def _plugin(row: Host, folder: str, *, check: bool) -> Reply:
    approve = (
        f"Load it with 'claude --plugin-dir {shlex.quote(folder)}', or by a marketplace of yours.",
        "Add the status line to your own settings: its README says how, since no plugin may.",
    )
    if check:
        is_there = is_plugin_complete(folder)
        code = Exit.DONE if is_there else Exit.FINDINGS
        state = "in place" if is_there else "incomplete"
        return _reply(row, folder, state, approve=approve, findings=_program(), code=code)
    state = "in place already" if write_plugin(folder) else "written"
    return _reply(row, folder, state, approve=approve, findings=_program())


def _parts(repository: Repository, row: Host) -> Iterator[HostSettings | ServerEntry | TomlSection]:
    """Yield everything that we may have written for a host, the latest first."""
    if row.name == "codex":
        yield _registration(repository, row, roles=True)
    yield _registration(repository, row, roles=False)
    if row.local_settings:
        yield HostSettings(repository, row, is_local=True)
    yield HostSettings(repository, row)


def _registration(repository: Repository, row: Host, *, roles: bool) -> ServerEntry | TomlSection:
    if roles:
        return TomlSection(repository, row, "roles", role_tables)
    if row.name == "codex":
        return TomlSection(repository, row, "mcp", server_table)
    return ServerEntry(repository, row)


def _register(row: Host, part: ServerEntry | TomlSection, *, check: bool) -> Reply:
    approve = APPROVE_SERVER
    if check:
        is_there = part.is_complete()
        code = Exit.DONE if is_there else Exit.FINDINGS
        state = "in place" if is_there else "incomplete"
        return _reply(row, part.file.name, state, approve=approve, findings=_program(), code=code)
    state = "in place already" if part.install() else "installed"
    return _reply(row, part.file.name, state, approve=approve, findings=_program())


def _checked(repository: Repository, row: Host, settings: HostSettings) -> Reply:
    found = settings.look()
    if not found.is_complete and row.local_settings:
        local = HostSettings(repository, row, is_local=True)
        settings, found = (local, local.look()) if local.look().is_complete else (settings, found)
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
    return _reply(row, settings.file.name, state, approve=row.approve, findings=findings, code=code)


def _program() -> tuple[Finding, ...]:
    """Warn where the host could not find us: hooks name the program alone, since the file is
    shared.
    """
    if shutil.which(PROGRAM):
        return ()
    message = f"{PROGRAM} is not on the PATH, so the host cannot run it"
    hint = "install it with pipx or uv, or add its folder to the PATH"
    return (Finding(Reason.FILE_MISSING, message=message, hint=hint, level=Level.WARNING),)


def _reply(
    row: Host,
    file: str,
    state: str,
    *,
    approve: tuple[str, ...] = (),
    findings: tuple[Finding, ...] = (),
    code: Exit = Exit.DONE,
) -> Reply:
    data = {"host": row.name, "settings": file, "state": state, "approve": list(approve)}

    def show(console: Console) -> None:
        console.print(f"{file}: {state}")
        if approve:
            console.print("You must still:")
        for one in approve:
            console.print(f"- {one}")

    return Reply(data, findings, code, show)
