"""`yolo-fs agent`: health of agents, their messages, and requests to stop."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from yolo_fs.agents.alerts import uncommitted
from yolo_fs.agents.health import REQUEST, AgentHealth, Shutdown, place_of
from yolo_fs.agents.recording import AgentJournal, claim_task, note_message, require_planned
from yolo_fs.agents.snapshot import AgentsObserver, AgentsSnapshot, shutdown_as_json
from yolo_fs.agents.totals import task_of
from yolo_fs.artifacts.verdicts import Verdict
from yolo_fs.authority.actors import check_agent
from yolo_fs.authority.message_routes import refuse_unused
from yolo_fs.cli.reply import Invocation, Reply, as_agent, verb
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, Reason, YoloError, errors, safe
from yolo_fs.core.timestamps import local
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.protocol.roster import meant_agent
from yolo_fs.reports.status import report
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console

_REASONS = ("phase_complete", "timeout", "error")
_HEARD = frozenset({
    "dev_progress", "dev_blocker", "task_claim", "shutdown_response", "agent_health_event",
})  # fmt: skip
"""Messages that report on their sender and are recorded."""


@click.group("agent")
def agent() -> None:
    """Show agent status as reported by host hooks. Never terminates an agent.

    'yolo-fs status' shows open circuits and stalled steps.
    """


class _Scene(NamedTuple):
    """The agents of one work tree at one time."""

    repository: Repository
    verdicts: Mapping[str, Verdict]
    snapshot: AgentsSnapshot


@contextmanager
def _scene(invocation: Invocation) -> Iterator[_Scene]:
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        unsettled = report(repository, settings).listing.unsettled
        verdicts = {candidate.path: candidate.verdict for candidate in unsettled}
        yield _Scene(repository, verdicts, AgentsObserver(repository, settings).look(verdicts))


@verb("list", example="yolo-fs agent list", parent=agent)
def list_(invocation: Invocation) -> Reply:
    """List the agents that sent a heartbeat: started, working, idle, stopped or disappeared, and
    since when.

    Heartbeats come from hooks of the host, which 'yolo-fs setup' installs, and from messages
    recorded with 'agent note'.
    """
    with _scene(invocation) as scene:
        snapshot = scene.snapshot
    data = to_json(snapshot.agents)
    return Reply(
        data, snapshot.findings, show=lambda console: _show_agents(console, snapshot.agents)
    )


@verb("note", example="yolo-fs agent note - --as dev-1 < dev_progress.json", parent=agent)
@click.argument("file")
@as_agent("Agent that sends it, such as fe-dev or dev-1.", required=True)
def note(invocation: Invocation, *, file: str, agent: str) -> Reply:
    """Record a message about an agent: dev_progress, dev_blocker, shutdown_response and the like.

    The message is checked as by 'message check'; an invalid one is not recorded, exit 1. A
    task_claim claims its files as 'task claim' does: exit 1 while another agent has one of them. A
    task of no plan of the phase is refused.
    """
    from yolo_fs.cli.message import hear_message

    check_agent(agent)
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        heard = hear_message(invocation.start, file, settings)
        if heard.reasons or errors(heard.findings):
            return Reply(
                {"noted": False, "type": heard.type or None}, heard.findings, Exit.FINDINGS
            )
        if heard.type not in _HEARD:
            recorded = ", ".join(sorted(_HEARD))
            hint = f"'agent note' records {recorded}; 'task complete' records task_complete."
            message = f"{heard.type} carries no agent status"
            raise YoloError(Reason.UNKNOWN_TYPE, message, hint=hint)
        task = task_of(heard.value)
        if heard.type == "task_claim" and task:
            standing = claim_task(repository, settings, agent, task, heard.value["files"])
            code = Exit.DONE if standing.is_granted else Exit.FINDINGS
            data = {"noted": True, "type": heard.type, "id": agent, "claim": to_json(standing)}
            shown = safe(str(standing), 500)
            return Reply(data, heard.findings, code, lambda console: console.print(shown))
        if task:
            require_planned(FactsReader(repository, settings).facts(repository.head().tip), task)
        instance = note_message(repository, settings, agent, heard.value)
    data = {"noted": True, "type": heard.type, "id": instance}
    return Reply(
        data,
        heard.findings,
        show=lambda console: console.print(safe(f"noted {heard.type} of {instance}")),
    )


@verb(
    "shutdown", example="yolo-fs agent shutdown --reason phase_complete --deadline 30", parent=agent
)
@click.option("--reason", type=click.Choice(_REASONS), required=True, help="Why the team stops.")
@click.option(
    "--deadline",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Seconds to answer.",
)
@click.option(
    "--as",
    "name",
    default="lead",
    show_default=True,
    help="Agent that asks: a Lead asks its department, others ask all.",
)
def shutdown(invocation: Invocation, *, reason: str, deadline: int, name: str) -> Reply:
    """Ask the teammates to stop: record the request, and print the message to send to each of them.

    Each answers by recording a shutdown_response with 'agent note'. 'agent answers' shows who has,
    and what is in no commit; after the deadline the daemon reports once who is late. No process is
    ended. Exit 1 in team_mode=task, where there are no teammates.
    """
    message = {"type": REQUEST, "reason": reason, "deadline_seconds": deadline}
    if place_of(name)[0] is None:
        near = meant_agent(name)
        meant = f"Did you mean {near}? " if near else ""
        hint = f"{meant}A Lead, such as lead or fe-lead; owner or go.md for all agents."
        raise YoloError(Reason.UNKNOWN_NAME, f"unknown agent {safe(name)!r}", hint=hint)
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        if refused := refuse_unused(REQUEST, WorkflowOptions(settings.config)):
            raise YoloError(Reason.OUT_OF_LANE, refused.rule)
        AgentJournal(repository.own_dir, settings.limits).add(
            name, f"SD-{os.urandom(4).hex()}", message
        )
    with _scene(invocation) as scene:
        request = scene.snapshot.shutdowns[-1]
    data = {"message": message, **shutdown_as_json(request, is_late=False)}
    names = (
        ", ".join(_named(asked_agent.agent) for asked_agent in request.asked) or "no agent to ask"
    )
    lines = [f"send to {names}:" if request.asked else names, json.dumps(message)]
    return Reply(data, show=lambda console: _show(console, lines))


@verb("answers", example="yolo-fs agent answers", parent=agent)
def answers(invocation: Invocation) -> Reply:
    """Show who has answered a request to stop, who is late, and the uncommitted work of each.

    Exit 1 while an answer is missing.
    """
    with _scene(invocation) as scene:
        snapshot = scene.snapshot
        left = {
            request.id: uncommitted(scene.repository, request, scene.verdicts)
            for request in snapshot.shutdowns
        }
    data = [
        shutdown_as_json(request, is_late=request in snapshot.late)
        | {"uncommitted": left[request.id]}
        for request in snapshot.shutdowns
    ]
    owes = any(not request.is_over or left[request.id] for request in snapshot.shutdowns)
    lines = [
        line
        for request in snapshot.shutdowns
        for line in _describe_request(request, left[request.id], is_late=request in snapshot.late)
    ]
    return Reply(
        data,
        snapshot.findings,
        Exit.FINDINGS if owes else Exit.DONE,
        lambda console: _show(console, lines, "nobody was asked to stop"),
    )


def _describe_request(
    request: Shutdown, left: Mapping[str, list[str]], *, is_late: bool
) -> Iterator[str]:
    passed = (
        "has passed" if is_late else f"is {request.deadline_s:g} s after {local(request.asked_at)}"
    )
    yield (
        f"{request.by} asked {len(request.asked)} to stop ({request.reason}); the deadline {passed}"
    )
    for each in request.asked:
        answer = each.answer or ("late" if is_late else "no answer yet")
        pending = f", pending: {'; '.join(each.pending)}" if each.pending else ""
        yield f"  {_named(each.agent)}: {answer}{pending}"
        yield from (f"    in no commit: {path}" for path in left.get(each.agent.id, ()))


def _show_agents(console: Console, agents: Collection[AgentHealth]) -> None:
    if not agents:
        console.print("no agent was seen here")
    for agent in agents:
        before = f", before that {agent.previous}" if agent.previous else ""
        where = f" ({agent.department})" if agent.department else ""
        console.print(
            safe(f"{_named(agent)}{where}: {agent.health} since {local(agent.since)}{before}", 500)
        )


def _named(agent: AgentHealth) -> str:
    return f"{agent.name} {agent.id}" if agent.name and agent.name != agent.id else agent.id


def _show(console: Console, lines: Collection[str], otherwise: str = "") -> None:
    if otherwise and not lines:
        console.print(otherwise)
    for line in lines:
        console.print(safe(line, 1_000))
