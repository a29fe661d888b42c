"""`yolo-fs answer`: the decision on an escalation, by the person who holds it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from yolo_fs.agents.access import Access
from yolo_fs.cli.escalate import note_move
from yolo_fs.cli.inbox import items_of, lines_of
from yolo_fs.cli.reply import Invocation, Reply, as_agent, verb
from yolo_fs.core.ids import EscalationId
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.escalation_service.answering import answer as answers
from yolo_fs.escalation_service.moves import Escalations, MoveResult
from yolo_fs.escalations.log import as_json
from yolo_fs.git.repository import Repository
from yolo_fs.snapshots.inbox import InboxItem
from yolo_fs.system.journal import Journal
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@verb("answer", example="yolo-fs answer ESC-01-02-T3 2 --text 'customers know it'")
@click.argument("name", metavar="ID", default="")
@click.argument("choice", default="")
@click.option("--text", default="", help="Reason; or the decision itself, if no option fits.")
@as_agent("Who decides; only the user may.")
def answer(invocation: Invocation, *, name: str, choice: str, text: str, agent: str) -> Reply:
    """Decide what an escalation asks: by an option, by its number, or in words.

    The decision goes down the chain at once, with a line of the log for each level, to the blocked
    agent. The same command again continues where it stopped.
    """
    if not name:
        raise click.UsageError(_list_questions(items_of(invocation)))
    with Repository(invocation.start) as repository:
        Access(repository).check_verb("answer", agent)
        escalation_id = EscalationId.parse(name)
        if escalation_id is None:
            raise _error_for_no_question(name, items_of(invocation))
        return _build_reply(put_answer(repository, escalation_id, choice, text))


def put_answer(
    repository: Repository, name: EscalationId, choice: str, text: str
) -> Sequence[MoveResult]:
    """Log a decision and its way down, and return the result for each line.

    The journal has these results, too.

    Raises:
        YoloError: as `answering.answer`.
    """
    service = Escalations(repository, load(repository.root))
    moves = []
    with contextlib.closing(Journal(repository.own_dir, source=repository.root)) as journal:
        for done in answers(service, repository.root, name, choice, text):
            moves.append(done)
            note_move(journal, done)
    return moves


def _list_questions(items: Sequence[InboxItem]) -> str:
    waiting = [item for item in items if item.kind == "escalation"]
    if not waiting:
        return "Missing argument 'ID', and no question waits for an answer."
    lines = [f"{question}\n  {command}" for question, command in lines_of(waiting)]
    return "\n".join(["Missing argument 'ID'. These questions wait:", *lines])


def _error_for_no_question(name: str, items: Sequence[InboxItem]) -> YoloError:
    """Return why there is nothing to answer, with the command to use instead."""
    item = next((inbox_item for inbox_item in items if inbox_item.id == name), None)
    if item is None:
        message = f"nothing of that name waits for a person: {safe(name)!r}"
        hint = "'yolo-fs inbox' lists what waits."
        return YoloError(Reason.UNKNOWN_NAME, message, hint=hint)
    message = f"an answer does not settle this: {safe(item.question, 300).rstrip('.')}"
    hint = f"Run: {safe(item.command, 300)}"
    return YoloError(Reason.STATE_CONFLICT, message, hint=hint)


def _build_reply(moves: Sequence[MoveResult]) -> Reply:
    last = moves[-1]
    data = {
        "escalation": as_json(last.progress) if last.progress else None,
        "lines": [dict(move.line) for move in moves if move.line and not move.is_refused],
        "message": last.message,
        "already": all(move.already for move in moves),
        "log": last.path,
    }
    code = Exit.FINDINGS if last.is_refused else Exit.DONE
    return Reply(data, last.findings, code, lambda console: show_moves(console, moves))


def show_moves(console: Console, moves: Sequence[MoveResult]) -> None:
    for done in moves:
        if done.line and not done.is_refused:
            to = f"{done.line['agent']} → {done.line['tgt']}"
            console.print(safe(f"{to}: {done.line.get('dec', '')}", 300))
    escalation = moves[-1].progress
    if escalation and not moves[-1].is_refused:
        console.print(
            safe(
                f"{escalation.agent} knows: {escalation.decision}. {escalation.id} "
                "ends with its commit."
            )
        )
