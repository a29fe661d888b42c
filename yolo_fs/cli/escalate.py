"""`yolo-fs escalate`: up the chain one level at a time, and the decision down again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.authority.actors import check_agent
from yolo_fs.cli.reply import Invocation, Reply, as_agent, bytes_given, phase_option, verb
from yolo_fs.core.ids import EscalationId, PhaseId
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, errors, safe
from yolo_fs.core.timestamps import local
from yolo_fs.escalation_service.answering import hand_up
from yolo_fs.escalation_service.command_hook import CommandHook, load_command
from yolo_fs.escalation_service.moves import Escalations, MoveResult
from yolo_fs.escalation_service.ticking import AddedLine, Ticker
from yolo_fs.escalations.lines import EscalationRequest, request_of
from yolo_fs.escalations.log import EscalationProgress, EscalationStage, act_of, as_json
from yolo_fs.git.repository import Repository
from yolo_fs.system.journal import Journal
from yolo_fs.system.readers import read_object
from yolo_fs.system.text_checks import Limits
from yolo_fs.workspace.planning_tree import find_phase, phases_in
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("escalate")
def escalate() -> None:
    """Report what blocks a task, raise it level by level, and bring the decision down again.

    Each level speaks only to the one above and the one below. A question moves up when its level
    does not answer in time; silence never decides. An escalation is resolved once the task
    continues.
    """


_MESSAGE = click.option(
    "--message", "message_path", metavar="FILE", help="File with the message; '-' reads stdin."
)
_TO = click.option("--to", default="", help="Receiver; the next level by default.")
_ACTING = as_agent("Acting agent; default: that of the session, else the current holder.", "--by")
_REASON = click.option(
    "--reason", default="", help="What blocks the work, or the reason for the decision."
)
_EVIDENCE = click.option(
    "--evidence", multiple=True, help="What was seen or tried; may be repeated."
)
_RECOMMENDATION = click.option(
    "--recommendation", default="", help="What you would do, or what would help."
)
_BOUNDARY = click.option("--boundary", default="", help="Why it is outside your authority.")


@verb("open", example="yolo-fs escalate open --message blocker.json", parent=escalate)
@click.option("--task", default="", help="The blocked task, NN-MM/Tk.")
@as_agent("Agent that is blocked (default: dev).", "--from")
@_REASON
@_EVIDENCE
@_RECOMMENDATION
@_BOUNDARY
@click.option(
    "--severity",
    type=click.Choice(["blocking", "major", "minor"]),
    help="Severity (default: blocking).",
)
@click.option(
    "--fail",
    "fails",
    is_flag=True,
    help="A security FAIL, which skips the chain and goes to the user.",
)
@_TO
@_MESSAGE
def open_(invocation: Invocation, *, message_path: str | None, to: str, **given: Any) -> Reply:
    """Report that a task is blocked: by a `dev_blocker`, by an `escalation`, or in words.

    Its id is ESC-NN-MM-Tk. If two departments have a plan of that number, the frontend's id is
    ESC-fe-NN-MM-Tk and the UI/UX department's ESC-ux-NN-MM-Tk; the backend's is ESC-be-NN-MM-Tk
    if another department has reported its own without a marker before.
    """
    request = _read_request(invocation.start, message_path, ("dev_blocker", "escalation"), given)
    if not request.task:
        raise click.UsageError("Missing option '--task', or a --message that names the task.")
    request = request._replace(agent=request.agent or "dev")
    return _act(invocation, lambda service: service.open(request, to))


@verb(
    "raise",
    example="yolo-fs escalate raise ESC-01-02-T3 --message escalation.json",
    parent=escalate,
)
@click.argument("name", metavar="ESC-NN-MM-Tk")
@_ACTING
@_REASON
@_EVIDENCE
@_RECOMMENDATION
@click.option(
    "--option",
    "options",
    multiple=True,
    help="An option to choose from; the Architect gives 2 or 3.",
)
@_BOUNDARY
@_TO
@_MESSAGE
def raise_(
    invocation: Invocation, *, name: str, message_path: str | None, to: str, **given: Any
) -> Reply:
    """Hand an escalation to the next level up, with evidence and a recommendation.

    A session without a name plays every level: with --to user it hands the question up level by
    level, with a line of the log for each.
    """
    request = _read_request(invocation.start, message_path, ("escalation",), given)
    wanted = _named(name)
    if request.agent:
        return _act(invocation, lambda service: service.raise_(wanted, request, to))
    with (
        Repository(invocation.start) as repository,
        closing(Journal(repository.own_dir, source=repository.root)) as journal,
    ):
        service = Escalations(repository, load(repository.root))
        for done in hand_up(service, repository.root, wanted, request, to):
            note_move(journal, done)
    return _reply(done)


@verb(
    "resolve",
    example="yolo-fs escalate resolve ESC-01-02-T3 --by user --decision 'Path /'",
    parent=escalate,
)
@click.argument("name", metavar="ESC-NN-MM-Tk")
@_ACTING
@click.option(
    "--decision", default="", help="The decision; on the way down, the same one is passed on."
)
@_REASON
@click.option("--item", "instructions", multiple=True, help="An instruction; may be repeated.")
@click.option(
    "--commit",
    "shown_by",
    default="",
    help="Commit that continues the task; ends the escalation.",
)
@_TO
@_MESSAGE
def resolve(
    invocation: Invocation, *, name: str, message_path: str | None, to: str, **given: Any
) -> Reply:
    """Decide, pass the decision down, or report that the task continues, depending on your level.

    --message takes an `escalation_resolution`, the Senior's `code_review_changes` or the Dev's
    `dev_progress`.
    """
    request = _read_request(
        invocation.start,
        message_path,
        ("escalation_resolution", "code_review_changes", "dev_progress"),
        given,
    )
    wanted = _named(name)
    other = request.id or request.task
    if other not in ("", str(wanted), str(wanted.task)):
        raise _error_for_usage(
            Reason.NAME_MISMATCH, f"the message is about {safe(other)}, not about {wanted}"
        )
    return _act(invocation, lambda service: service.resolve(wanted, request, to))


@verb("list", example="yolo-fs escalate list --phase 1", parent=escalate)
@phase_option("all")
def list_(invocation: Invocation, *, phase: str) -> Reply:
    """Show each escalation: its holder, since when, the next step, and its history."""
    with Repository(invocation.start) as repository:
        service = Escalations(repository, load(repository.root))
        phases = [find_phase(repository.root, phase)] if phase else phases_in(repository.root)
        listings = {phase_id: service.list(phase_id) for phase_id in phases}
    findings = [finding for _, wrong in listings.values() for finding in wrong]
    data = {
        str(phase_id): [as_json(each) for each in progress]
        for phase_id, (progress, _) in listings.items()
        if progress
    }
    code = Exit.FINDINGS if errors(findings) else Exit.DONE
    return Reply(data, findings, code, lambda console: show_all(console, listings))


@verb("tick", example="yolo-fs escalate tick", parent=escalate)
def tick(invocation: Invocation) -> Reply:
    """Escalate levels that timed out, and close escalations whose task has resumed. The daemon does
    the same every few seconds.

    Safe to run several times at once: each level of each attempt moves up once.
    """
    with (
        Repository(invocation.start) as repository,
        closing(Journal(repository.own_dir, source=repository.root)) as journal,
        closing(CommandHook(load_command(), journal.append)) as hook,
    ):
        fired = Ticker(repository, load(repository.root), journal.append, notify=hook.notify).tick()
    return Reply(
        [_added_line_as_json(added_line) for added_line in fired],
        show=lambda console: show_fired(console, fired),
    )


def _act(invocation: Invocation, act: Callable[[Escalations], MoveResult]) -> Reply:
    with Repository(invocation.start) as repository:
        done = act(Escalations(repository, load(repository.root)))
        with closing(Journal(repository.own_dir, source=repository.root)) as journal:
            note_move(journal, done)
    return _reply(done)


def note_move(journal: Journal, done: MoveResult) -> None:
    """Write a move into the journal that has changed the log."""
    if done.is_refused or done.already or done.progress is None:
        return
    about = {"id": str(done.progress.id), "holder": done.progress.agent, "line": dict(done.line)}
    journal.append(f"escalation.{done.line['st']}", done.path, about)


def _reply(done: MoveResult) -> Reply:
    data = {
        "escalation": as_json(done.progress) if done.progress else None,
        "line": dict(done.line),
        "message": done.message,
        "already": done.already,
        "log": done.path,
    }
    code = Exit.FINDINGS if done.is_refused else Exit.DONE
    return Reply(data, done.findings, code, lambda console: show_done(console, done))


def _named(spelled: str) -> EscalationId:
    escalation_id = EscalationId.parse(spelled)
    if escalation_id is None:
        hint = "Spell it ESC-NN-MM-Tk, such as ESC-01-02-T3: 'yolo-fs escalate list' names each."
        raise YoloError(Reason.BAD_NAME, f"{safe(spelled)!r} is not an escalation id", hint=hint)
    return escalation_id


def _read_request(
    start: str, path: str | None, types: Sequence[str], given: Mapping[str, Any]
) -> EscalationRequest:
    """Return the content of the message, and the options if they say anything."""
    check_agent(given["agent"])
    request = _request_from_message(start, path, types) if path else EscalationRequest()
    return request._replace(**{key: value for key, value in given.items() if value})


def _request_from_message(start: str, path: str, types: Sequence[str]) -> EscalationRequest:
    from yolo_fs.schemas.messages.catalogue import read_message

    limits = Limits()
    reading = read_object(bytes_given(start, path, limits.max_file_bytes), path, limits)
    if wrong := errors(reading.findings):
        raise _unreadable(wrong[0])
    value = reading.records[0].value
    message, faults = read_message(value)
    if message is None:
        raise _unreadable(faults[0].as_finding(path, 1))
    if value["type"] not in types:
        raise _error_for_usage(
            Reason.UNKNOWN_TYPE, f"{value['type']} does not do that; {' or '.join(types)} does"
        )
    return request_of(value)


def _unreadable(finding: Finding) -> YoloError:
    return YoloError(finding.reason, str(finding), hint=finding.hint, exit_code=Exit.UNREADABLE)


def _error_for_usage(reason: Reason, message: str) -> YoloError:
    return YoloError(
        reason, message, hint="'yolo-fs escalate --help' shows how.", exit_code=Exit.USAGE
    )


def _added_line_as_json(added_line: AddedLine) -> dict[str, Any]:
    return {
        "log": added_line.path,
        "id": str(added_line.id),
        "line": dict(added_line.line),
        "warning": added_line.warning,
    }


def show_done(console: Console, done: MoveResult) -> None:
    """Print the result of a move."""
    if done.progress is None:
        return
    if done.is_refused:
        if done.progress.is_open:
            held = f"nothing changed: {done.progress.agent} still holds {done.progress.id}"
            console.print(safe(held))
        return
    for line in (*_lines(done.progress), *(("already logged",) if done.already else ())):
        console.print(line)
    if done.message:
        console.print(f"message to send: {json.dumps(done.message, ensure_ascii=True)}")


def show_all(
    console: Console, listings: Mapping[PhaseId, tuple[tuple[EscalationProgress, ...], Any]]
) -> None:
    """Print each escalation of each phase with its history."""
    shown = [
        (phase, escalation) for phase, (progress, _) in listings.items() for escalation in progress
    ]
    for phase, escalation in shown:
        head, *rest = _lines(escalation)
        console.print(f"{phase} {head}", style="green" if not escalation.is_open else "yellow")
        for line in (*rest, *_history(escalation)):
            console.print(f"  {line}")
    if not shown:
        console.print("no escalation")


def _lines(escalation: EscalationProgress) -> Iterator[str]:
    if escalation.standing is EscalationStage.RESOLVED:
        yield safe(f"{escalation.id} resolved: {escalation.decision}")
        return
    since = f"since {local(escalation.since)}"
    yield safe(
        f"{escalation.id} {escalation.severity}, {escalation.standing}: "
        f"with {escalation.agent} {since}, attempt {escalation.attempt}"
    )
    does, command = act_of(escalation)
    yield safe(f"next: {escalation.agent} {does}", 500)
    if escalation.deadline:
        rises = escalation.silent_to is not escalation.holder
        then = "it moves up" if rises else "a reminder is sent"
        yield f"due by {local(escalation.deadline)}, then {then}"
    if command:
        yield f"run: {command}"
    if escalation.decision:
        yield safe(f"decision: {escalation.decision}")


def _history(escalation: EscalationProgress) -> Iterator[str]:
    is_decided = False
    for each in escalation.history:
        if each.move:
            move = each.move
        elif not each.goes_down:
            move = "opens" if each.state == "open" else "raises"
        elif each.shown_by:
            move = "goes on"
        else:
            move = "passes on" if is_decided else "decides"
        is_decided = each.goes_down
        words = each.decision or each.reason
        yield safe(f"{local(each.dt)} {each.agent} -> {each.target} ({move}): {words}")


def show_fired(console: Console, fired: Sequence[AddedLine]) -> None:
    """Print what timeouts and commits have moved."""
    for added_line in fired:
        console.print(
            safe(f"{added_line.id}: {added_line.line['reason']}, now with {added_line.line['tgt']}")
        )
    if not fired:
        console.print("nothing is due")
