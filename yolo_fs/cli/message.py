"""`yolo-fs message`: what a message says, and who may send what to whom."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from yolo_fs.agents.access import Access
from yolo_fs.authority.actors import find_department, meant_by
from yolo_fs.checking.envelopes import ParsedMessage, parse_message
from yolo_fs.cli.may import answered, repository_of
from yolo_fs.cli.reply import STDIN, Invocation, Reply, from_stdin, verb
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, errors, hint_for_unknown, safe
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.schemas.messages.catalogue import MESSAGES
from yolo_fs.system.files import read
from yolo_fs.workspace.settings import Settings, load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("message")
def message() -> None:
    """Check messages between agents, and their routes."""


@verb("check", example="yolo-fs message check - < reply.json", parent=message)
@click.argument("file")
def check(invocation: Invocation, *, file: str) -> Reply:
    """Check a message. A text that is no message of the protocol counts as plain text, with the
    reason.

    Exit 1 when it is plain text, breaks a rule, or was sent along a forbidden route.
    """
    with repository_of(invocation.start) as repository:
        settings = load(repository.root) if repository else Settings(Config(), Policy())
    heard = hear_message(invocation.start, file, settings)
    code = Exit.FINDINGS if heard.reasons or errors(heard.findings) else Exit.DONE
    summary = {
        "read_as": "message" if heard.type else "text",
        "type": heard.type or None,
        "reasons": [reason.value for reason in heard.reasons],
        "text": heard.text or None,
    }
    return Reply(summary, heard.findings, code, lambda console: _show(console, heard))


@verb(
    "route",
    example="yolo-fs message route --from dev --to lead --type dev_progress",
    parent=message,
)
@click.option("--as", "--from", "sender", required=True, help="Role or agent that sends.")
@click.option("--to", "receiver", required=True, help="Role or agent that receives it.")
@click.option("--type", "kind", required=True, help="Type of the message.")
@click.option("--dept", help="Department of the sender.")
@click.option("--to-dept", help="Department of the receiver.")
def route(
    invocation: Invocation, *, sender: str, receiver: str, kind: str, dept: str, to_dept: str
) -> Reply:
    """Return whether a message may go there; 1 with the right route when it may not."""
    if kind not in MESSAGES:
        hint = hint_for_unknown(kind, MESSAGES)
        raise YoloError(Reason.UNKNOWN_TYPE, f"no message has the type {safe(kind)!r}", hint=hint)
    with repository_of(invocation.start) as repository:
        access = Access(repository)
    low = access.actor(sender, find_department(dept) if dept else None)
    high = access.actor(receiver, find_department(to_dept)) if to_dept else meant_by(low, receiver)
    answer = access.send(low, high, kind)
    return answered(f"{low.name} sends {kind} to {high.name}", answer)


def hear_message(start: str, file: str, settings: Settings) -> ParsedMessage:
    """Return the content of a file, or of stdin for `-`: a message, or plain text.

    Raises:
        YoloError: why the file cannot be read.
    """
    data = _bytes(start, file, settings.policy.max_file_bytes)
    return parse_message(
        data, file, settings.limits, settings.mode, WorkflowOptions(settings.config)
    )


def _bytes(start: str, file: str, limit_bytes: int) -> bytes:
    if file == STDIN:
        return from_stdin(limit_bytes)
    folder, name = os.path.split(os.path.abspath(os.path.join(start, file)))
    content = read(folder, name, limit_bytes)
    if isinstance(content, Finding):
        raise YoloError(
            content.reason,
            f"{safe(file)}: {content.message}",
            hint="Name a file with one message, or - for stdin: 'yolo-fs schema list' shows the "
            "types, and 'yolo-fs schema example message/TYPE' prints one.",
            exit_code=Exit.UNREADABLE,
        )
    return content.data


def _show(console: Console, heard: ParsedMessage) -> None:
    if heard.type:
        console.print(f"message {heard.type}")
    else:
        console.print(f"plain text: {', '.join(reason.value for reason in heard.reasons)}")
