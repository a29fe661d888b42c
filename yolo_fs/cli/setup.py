"""`yolo-fs setup` adds our hooks to the settings of an agent's host, beside its other hooks, or
removes them; `yolo-fs hooks` adds our sections to git's hooks, removes them, and proves that they
run.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.authority.actors import check_agent
from yolo_fs.checking.verify import past_hooks
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import Exit, Finding, Reason, safe
from yolo_fs.definitions.role_files import ROLE_FILES, RoleFiles
from yolo_fs.git.repository import Repository
from yolo_fs.hooks.doctor import examine, not_on_path, switched_off
from yolo_fs.hooks.githooks import (
    NAMES,
    Deed,
    HookFileChange,
    Refuse,
    advice,
    carry_out,
    plan_install,
    plan_uninstall,
    were_installed,
)
from yolo_fs.hooks.hostsettings import HostSettings
from yolo_fs.hooks.registration import ServerEntry, TomlSection, role_tables, server_table
from yolo_fs.protocol.hooks import HOST_BY_NAME, Host
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console

APPROVE_SERVER = (
    "Allow the server 'yolo-fs' when the host asks: a new server does not start before that."
)
UNNAMED_SERVER = (
    "The server cannot know which agent calls it. An agent without a name may touch only what "
    "every agent may; a given name is believed, unless the hooks are installed, which know the "
    "agent: 'yolo-fs setup {host}'. If only one agent works here, register it with --as AGENT."
)


@verb("setup", example="yolo-fs setup claude")
@click.argument("host", type=click.Choice(list(HOST_BY_NAME)))
@click.option("--local", is_flag=True, help="claude: hooks in .claude/settings.local.json instead.")
@click.option("--mcp", is_flag=True, help="Register our MCP server instead of the hooks.")
@click.option(
    "--as",
    "agent",
    default="",
    metavar="AGENT",
    help="--mcp: agent whose permissions apply to every call.",
)
@click.option(
    "--roles",
    is_flag=True,
    help="codex, cursor: the company's agents and commands, as files of this project, instead.",
)
@click.option("--plugin", metavar="DIR", help="claude: write a plugin to DIR instead.")
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when something is missing.")
@click.option("--remove", is_flag=True, help="Remove everything of ours, and nothing else.")
def setup(
    invocation: Invocation,
    *,
    host: str,
    local: bool,
    mcp: bool,
    agent: str,
    roles: bool,
    plugin: str | None,
    check: bool,
    remove: bool,
) -> Reply:
    """Install our hooks in an agent HOST, in the settings of the host in this repository.

    The output lists what you still have to approve. For git's hooks see 'yolo-fs hooks'.

    Links are not followed. Other hooks stay as they are. --remove restores each file byte for
    byte, unless it was changed in between.
    """
    row = HOST_BY_NAME[host]
    given = (("local", local), ("mcp", mcp), ("roles", roles), ("plugin", plugin is not None))
    wanted = [name for name, is_set in given if is_set]
    if (check and remove) or len(wanted) > 1 or (remove and wanted):
        raise click.UsageError(
            "--check, --remove, --local, --mcp, --roles and --plugin exclude each other"
        )
    if (local and not row.local_settings) or (
        (roles and host not in ROLE_FILES) or (plugin is not None and host != "claude")
    ):
        raise click.UsageError(f"{host} has no --{wanted[0]}")
    if agent and not mcp:
        raise click.UsageError("--as needs --mcp")
    check_agent(agent)
    if plugin is not None:
        return _set_up_plugin(row, plugin, invocation.start, check=check)
    with Repository(invocation.start) as repository:
        if remove:
            gone = [part.file.name for part in parts_of(repository, row) if part.remove()]
            gone += [files.name for files in _role_files_of(repository, row) if files.remove()]
            return _reply(
                row, gone[0] if gone else row.settings, "removed" if gone else "not installed"
            )
        if roles:
            return _roles(repository, row, check=check)
        if mcp:
            part = _server_part(repository, row, agent)
            more = () if agent else (UNNAMED_SERVER.format(host=row.name),)
            approve = (APPROVE_SERVER, *more)
            return _register(row, part.file.name, (part,), approve, check=check)
        settings = HostSettings(repository, row, is_local=local)
        if check:
            return _checked(repository, row, settings)
        state = "in place already" if settings.install().is_complete else "installed"
        findings = (*switched_off(repository, row), *not_on_path())
    return _reply(row, settings.file.name, state, approve=row.approve, findings=findings)


def _set_up_plugin(row: Host, typed: str, start: str, *, check: bool) -> Reply:
    from yolo_fs.definitions.plugin import is_plugin_complete, write_plugin

    folder = os.path.abspath(os.path.join(start, typed))
    approve = (
        f"Load it with 'claude --plugin-dir {shlex.quote(folder)}', or by a marketplace of yours.",
        "Add the status line to your own settings: its README shows how, since a plugin cannot.",
    )
    if check:
        return _reply_to_check(row, folder, is_plugin_complete(folder), approve=approve)
    state = "in place already" if write_plugin(folder, start) else "written"
    return _reply(row, folder, state, approve=approve, findings=not_on_path())


def _role_files_of(repository: Repository, row: Host) -> list[RoleFiles]:
    return [RoleFiles(repository, row)] if row.name in ROLE_FILES else []


def _roles(repository: Repository, row: Host, *, check: bool) -> Reply:
    """Install the agents of the company in a host; one host also needs each named in its
    settings.
    """
    files = RoleFiles(repository, row)
    if row.name != "codex":
        return _register(row, files.name, (files,), check=check)
    section = TomlSection(repository, row, "roles", role_tables)
    # Whatever is wrong with the settings is found before any file is written.
    return _register(row, section.file.name, (section, files), check=check)


def parts_of(
    repository: Repository, row: Host
) -> Iterator[HostSettings | ServerEntry | TomlSection]:
    """Yield every part that may be installed in a host, the latest first."""
    if row.name == "codex":
        yield TomlSection(repository, row, "roles", role_tables)
    yield _server_part(repository, row)
    if row.local_settings:
        yield HostSettings(repository, row, is_local=True)
    yield HostSettings(repository, row)


def _server_part(repository: Repository, row: Host, agent: str = "") -> ServerEntry | TomlSection:
    if row.name == "codex":
        return TomlSection(repository, row, "mcp", partial(server_table, agent=agent))
    return ServerEntry(repository, row, agent)


def _register(
    row: Host,
    name: str,
    parts: Sequence[RoleFiles | ServerEntry | TomlSection],
    approve: tuple[str, ...] = (),
    *,
    check: bool,
) -> Reply:
    """Install parts of ours, or say whether all of them are there. `name`: the file to show."""
    if check:
        is_there = all(part.is_complete() for part in parts)
        return _reply_to_check(row, name, is_there, approve=approve)
    were_there = [part.install() for part in parts]
    state = "in place already" if all(were_there) else "installed"
    return _reply(row, name, state, approve=approve, findings=not_on_path())


def _checked(repository: Repository, row: Host, settings: HostSettings) -> Reply:
    installation = settings.look()
    if not installation.is_complete and row.local_settings:
        local = HostSettings(repository, row, is_local=True)
        settings, installation = (
            (local, local.look()) if local.look().is_complete else (settings, installation)
        )
    lacking = f"no hook of ours for {', '.join(installation.missing)}"
    hint = f"run 'yolo-fs setup {row.name}'"
    missing = (
        Finding(
            Reason.FILE_MISSING, row.settings, message=lacking, expected="all of them", hint=hint
        ),
    )
    off = tuple(switched_off(repository, row))
    findings = (*(() if installation.is_complete else missing), *off)
    return _reply_to_check(
        row, settings.file.name, installation.is_complete, approve=row.approve, findings=findings
    )


def _reply_to_check(
    row: Host,
    file: str,
    is_there: bool,
    *,
    approve: tuple[str, ...] = (),
    findings: tuple[Finding, ...] = (),
) -> Reply:
    """Return what --check says: all is well only where nothing is found, our program included."""
    all_findings = (*findings, *not_on_path())
    code = Exit.DONE if is_there and not all_findings else Exit.FINDINGS
    state = "in place" if is_there else "incomplete"
    return _reply(row, file, state, approve=approve, findings=all_findings, code=code)


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
        for approval in approve:
            console.print(f"- {approval}")

    return Reply(data, findings, code, show)


@click.group("hooks")
def hooks() -> None:
    """Install, remove or check our hooks in git: staged files, commit subjects, pushes.

    For the hooks of agent hosts see 'yolo-fs setup'.
    """


@verb("install", example="yolo-fs hooks install --dry-run", parent=hooks)
@click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")
def install(invocation: Invocation, *, dry_run: bool) -> Reply:
    """Add a marked section to each hook, beside its own content, wherever git looks for hooks in
    any work tree.

    A second run does nothing. Exit 1 when a hook of others must not be changed; the rest are
    installed.
    """
    with Repository(invocation.start) as repository:
        deeds = plan_install(repository)
        if not dry_run:
            carry_out(repository, deeds)
        refused = [deed.finding for deed in deeds if isinstance(deed, Refuse)]
        return _answered(deeds, [*refused, *advice(repository)], dry_run=dry_run)


@verb("uninstall", example="yolo-fs hooks uninstall", parent=hooks)
@click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")
def uninstall(invocation: Invocation, *, dry_run: bool) -> Reply:
    """Remove our sections: every file is then, byte for byte, what it was without them."""
    with Repository(invocation.start) as repository:
        deeds = plan_uninstall(repository)
        if not dry_run and deeds:
            carry_out(repository, deeds)
    return _answered(deeds, [], dry_run=dry_run)


@verb("doctor", example="yolo-fs hooks doctor", parent=hooks)
def doctor(invocation: Invocation) -> Reply:
    """Run each hook in every work tree, and list the commits that bypassed the hooks.

    Git runs each hook, without your own part of it. Hooks that were never installed are not
    reported.
    """
    with Repository(invocation.start) as repository:
        is_there = were_installed(repository)
        broken = list(examine(repository)) if is_there else []
        past = list(past_hooks(repository, load(repository.root)))
        roots = repository.work_trees()
    data = {
        "work_trees": list(roots),
        "hooks": list(NAMES) if is_there else [],
        "past_hooks": [{"commit": fault.commit, **fault.finding.as_json()} for fault in past],
    }

    def show(console: Console) -> None:
        if not is_there:
            console.print("no hook of ours is installed; 'yolo-fs hooks install' installs them")
        elif not broken:
            console.print(
                f"{len(NAMES)} hooks run in {len(roots)} work tree{'' if len(roots) == 1 else 's'}"
            )
        for fault in past:
            console.print(
                f"bypassed the hooks: {fault.commit[:SHORT]} {fault.finding}", soft_wrap=True
            )

    return Reply(data, broken, Exit.FINDINGS if broken or past else Exit.DONE, show)


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
