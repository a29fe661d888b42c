"""`yolo-fs company`: the prompts of agents, current and past runs, their cost and output."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.board import line_of_act
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.company.agents import ERRORS, STREAM, printed
from yolo_fs.company.overview import lines_of_bill, overview
from yolo_fs.company.runs import runs
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.core.timestamps import local
from yolo_fs.git.repository import Repository
from yolo_fs.install.background import follow
from yolo_fs.phase.report import tokens
from yolo_fs.protocol.hooks import HOST_BY_NAME
from yolo_fs.protocol.roster import agent as agent_named
from yolo_fs.protocol.roster import bare_name, plain_name
from yolo_fs.system.files import MOST_BYTES

if TYPE_CHECKING:
    from rich.console import Console

_LINE_LENGTH = 4000


@click.group("company")
def company() -> None:
    """Show the agents of the company, and the runs of 'yolo-fs go'."""


@verb("show", example="yolo-fs company show fe-dev", parent=company)
@click.argument("role", required=False, default="")
@click.option(
    "--host", type=click.Choice(list(HOST_BY_NAME)), default="claude", show_default=True,
    help="In the form of this host.",
)  # fmt: skip
def show_(invocation: Invocation, *, role: str, host: str) -> Reply:
    """Print the definition of an agent: its permissions, what it reads and writes, with an example
    of each.

    ROLE is an agent, such as critic or yolo-fe-dev. Without ROLE, list all agents, each with its
    budget and the size of its definition in tokens. All of it follows from the protocol's tables.
    """
    from yolo_fs.definitions.definition import Definition, definitions
    from yolo_fs.definitions.host_files import host_file

    if role:
        own = Definition(agent_named(plain_name(role)))
        text = host_file(own, host)
        data = own.as_json() | {"host": host, "tokens": tokens(text), "text": text}
        return Reply(data, show=lambda console: console.print(text, soft_wrap=True))
    rows = [
        definition.as_json() | {"tokens": tokens(host_file(definition, host))}
        for definition in definitions()
    ]
    return Reply(rows, show=lambda console: _show_agents(console, rows))


def _show_agents(console: Console, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        tools = ", ".join(row["tools"]) or "all tools"
        about = (
            f"{row['model'] or '-':7} {row['budget']:5} {row['tokens']:5}  {row['title']}; {tools}"
        )
        console.print(f"{row['agent']:22} {about}")
    console.print(
        "agent, model, tokens of its context at most, tokens of its definition, title, tools"
    )


@verb("runs", example="yolo-fs company runs --json", parent=company)
def runs_(invocation: Invocation) -> Reply:
    """List the runs with every start of an agent: time, tokens, cost and outcome.

    Below each run, its cost by role and by step.
    """
    with Repository(invocation.start) as repository:
        data = overview(repository)
    return Reply(data, show=lambda console: _show(console, data))


@verb("log", example="yolo-fs company log fe-dev -f", parent=company)
@click.argument("agent")
@click.option("-f", "--follow", "is_followed", is_flag=True, help="Follow new output.")
@click.option(
    "-n", "--lines", "count", type=click.IntRange(min=0), default=50, show_default=True,
    help="Last lines.",
)  # fmt: skip
def log(invocation: Invocation, *, agent: str, is_followed: bool, count: int) -> Reply:
    """Show what an agent printed at its last start; control characters are escaped."""
    if is_followed and invocation.as_json:
        raise click.UsageError("--follow never ends, --json prints one object.")
    name = bare_name(agent)
    with Repository(invocation.start) as repository:
        started = [(run, act) for run in runs(repository) for act in run.acts if act.agent == name]
        if not started:
            hint = "'yolo-fs company runs' lists the agents that were started."
            message = f"no agent {safe(agent)!r} was started here"
            raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint)
        folder = started[-1][0].folder(repository, started[-1][1])
    path = os.path.join(folder, STREAM)
    if is_followed:
        for line in follow(path, count):
            print(safe(line, _LINE_LENGTH), flush=True)
    lines = _tail(folder, STREAM, count)
    errors = _tail(folder, ERRORS, count)
    data = {"agent": name, "path": path, "lines": lines, "errors": errors}

    def show(console: Console) -> None:
        for line in (*lines, *errors):
            console.print(line)
        if not (lines or errors):
            console.print(f"{name} printed nothing at its last start")

    return Reply(data, show=show)


def _tail(folder: str, name: str, count: int) -> list[str]:
    data = b""
    with suppress(OSError), printed(folder, name) as file:
        data = file.read(MOST_BYTES)
    lines = data.decode("utf-8", "replace").splitlines()
    return [safe(line, _LINE_LENGTH) for line in lines[-count:]] if count else []


def _show(console: Console, listed_runs: list[dict[str, Any]]) -> None:
    for run in listed_runs:
        bill = f"{run['tokens']} tokens, {run['cost_usd']:.2f} USD"
        outcome = run["outcome"] or "not ended"
        head = f"{run['id']} {run['phase']} {local(run['started'])}: {outcome}, {bill}"
        console.print(safe(head, 300), style="bold")
        for act in run["acts"]:
            console.print(safe(f"  {line_of_act(act)}", 300))
        for line in lines_of_bill(run):
            console.print(safe(f"  {line}", 300))
    if not listed_runs:
        console.print("no agent was started here; 'yolo-fs go' starts them")
