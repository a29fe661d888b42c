"""`yolo-fs envelope`: handoffs between the agents of the product workflow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from yolo_fs.artifacts.classify import classify
from yolo_fs.checking.envelopes import ProductHandoffs, StoredSession
from yolo_fs.checking.lost_records import lost_from
from yolo_fs.checking.snapshots import WorkTree
from yolo_fs.cli.reply import STDIN, Invocation, Reply, from_stdin, verb
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, errors, safe
from yolo_fs.git.repository import Repository
from yolo_fs.handoff_service.write import WrittenEnvelope, choose, send
from yolo_fs.handoffs.envelopes import Sent
from yolo_fs.handoffs.session_progress import (
    choice_after,
    open_error,
    progress_line,
    standing,
    ways_after,
)
from yolo_fs.schemas.envelope.envelope import NextState
from yolo_fs.system.files import read
from yolo_fs.system.readers import read_object
from yolo_fs.workspace.planning_tree import found_from
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("envelope")
def envelope() -> None:
    """Write, check and follow the handoffs in documents/handoffs/.

    The name of each has its session, its route and its time. After an error, the orchestrator
    chooses what happens.
    """


@verb("new", example="yolo-fs envelope new draft.json", parent=envelope)
@click.argument("draft")
@click.option(
    "--again",
    is_flag=True,
    help="Write it as a new attempt, even if nothing has changed.",
)
def new(invocation: Invocation, *, draft: str, again: bool) -> Reply:
    """Check a handoff and write it under the correct name, complete or not at all; print the path.

    DRAFT is a file with the envelope, or - for stdin. It may leave out handoff_version, timestamp,
    product_name_slug, progress_percentage, and the session_id of a first handoff. The same handoff
    again writes nothing. Exit 1 when it breaks a rule.
    """
    with _open_project(invocation) as project:
        file = _file(invocation, project, draft)
        reading = read_object(file.data, file.path, project.handoffs.settings.limits)
        if not reading.records:
            return Reply(None, reading.findings, Exit.FINDINGS)
        written = send(project.handoffs, reading.records[0].value, project.repository, again=again)
    state = "refused"
    if written.is_new:
        state = "created"
    elif written.attempt:
        state = "already_there"
    data = {"state": state, "path": written.path, "attempt": written.attempt}
    return Reply(
        data,
        written.findings,
        _code(written.findings),
        lambda console: _show_written(console, written),
    )


@verb("check", example="yolo-fs envelope check draft.json", parent=envelope)
@click.argument("file")
def check(invocation: Invocation, *, file: str) -> Reply:
    """Check a handoff: its shape, its name, the files it mentions, and the earlier handoffs of its
    session.

    FILE may be - for stdin, or a draft anywhere. Exit 1 when it breaks a rule; warnings alone do
    not count.
    """
    with _open_project(invocation) as project:
        given = _file(invocation, project, file)
        findings = project.handoffs.examine(given.path, given.data)
        if not errors(findings):
            findings += _sent_otherwise(project.repository, given)
    wrong = len(errors(findings))
    data = {"path": given.path, "errors": wrong, "warnings": len(findings) - wrong}
    return Reply(data, findings, _code(findings))


@verb("show", example="yolo-fs envelope show", parent=envelope)
@click.argument("session", default="")
def show(invocation: Invocation, *, session: str) -> Reply:
    """Show the progress of a session, handoff by handoff; after an error, the four choices and the
    result of each.

    SESSION is an id or its beginning; without it, the session that was written to last.
    """
    with _open_project(invocation) as project:
        stored = project.handoffs.session(_session(project.handoffs, session))
    return Reply(
        _as_json(stored),
        stored.findings,
        _code(stored.findings),
        lambda console: _show(console, stored),
    )


@verb("choose", example="yolo-fs envelope choose 7c0a4d52 retry", parent=envelope)
@click.argument("session")
@click.argument("way")
def choose_(invocation: Invocation, *, session: str, way: str) -> Reply:
    """Record what the orchestrator does after an error: retry, ask, skip or abort.

    The same choice again changes nothing. A different one replaces it until it has been acted upon.
    """
    with _open_project(invocation) as project:
        chosen = choose(
            project.handoffs, _session(project.handoffs, session), way, project.repository
        )
    then = chosen.leads_to
    return Reply(
        chosen.model_dump(),
        show=lambda _: print(f"{chosen.way}: {then.status}{_describe_next_step(then)}"),
    )


class _Project(NamedTuple):
    repository: Repository
    handoffs: ProductHandoffs


def _sent_otherwise(repository: Repository, given: _File) -> tuple[Finding, ...]:
    place, tip = classify(given.path), repository.head().tip
    if place is None:
        return ()
    return lost_from(repository, place, given.data, repository.blob_at(tip, place.path), tip)


class _File(NamedTuple):
    path: str
    """Relative to the project, if it lies in it."""
    data: bytes


@contextmanager
def _open_project(invocation: Invocation) -> Iterator[_Project]:
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        work_tree = WorkTree(repository.root, settings.policy.max_file_bytes)
        yield _Project(repository, ProductHandoffs(work_tree, settings))


def _file(invocation: Invocation, project: _Project, name: str) -> _File:
    limit_bytes = project.handoffs.settings.policy.max_file_bytes
    if name == STDIN:
        return _File(STDIN, from_stdin(limit_bytes))
    root = project.repository.root
    folder, base = os.path.split(found_from(invocation.start, root, name))
    full = os.path.join(os.path.realpath(folder), base)
    is_inside = full.startswith(f"{root}/")
    path = os.path.relpath(full, root) if is_inside else full
    # Below the project's root, links are refused; a file outside may be named through links.
    content = (
        read(root, path, limit_bytes)
        if is_inside
        else read(os.path.dirname(full), base, limit_bytes)
    )
    if isinstance(content, Finding):
        raise content.as_error(name, Exit.FINDINGS)
    return _File(path, content.data)


def _session(handoffs: ProductHandoffs, wanted: str) -> str:
    known = handoffs.sessions()
    sessions = [session for session in known if session.startswith(wanted.lower())]
    if (wanted and len(sessions) == 1) or (not wanted and sessions):
        return sessions[-1]
    if not known:
        hint = "'yolo-fs envelope new DRAFT' checks a handoff and writes it to documents/handoffs/."
        message = "no session of the product workflow has begun here"
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint)
    message = (
        f"{len(sessions)} sessions begin with {safe(wanted)!r}"
        if sessions
        else f"no session {safe(wanted)!r}"
    )
    hint = f"Known sessions: {', '.join(known[-10:])}."
    raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint)


def _code(findings: tuple[Finding, ...]) -> Exit:
    return Exit.FINDINGS if errors(findings) else Exit.DONE


def _as_json(stored: StoredSession) -> dict[str, Any]:
    now = standing(stored.session)
    error = open_error(stored.session)
    choice = choice_after(error, stored.session) if error else None
    ways = ways_after(error, stored.session) if error else ()
    return {
        "session": stored.session_id,
        "line": progress_line(now),
        "status": now.status,
        "progress_percentage": now.percentage,
        "handoffs": [_handoff_as_json(handoff, stored) for handoff in stored.session.sent],
        "error": error.path if error else None,
        "ways": [
            {"way": way.name, "text": way.text, "leads_to": way.leads_to.model_dump()}
            for way in ways
        ],
        "choice": choice.model_dump() if choice else None,
    }


def _handoff_as_json(handoff: Sent, stored: StoredSession) -> dict[str, Any]:
    attempt = stored.attempts[handoff.path]
    return {
        "path": handoff.path,
        "timestamp": handoff.envelope.timestamp,
        "from": handoff.source,
        "to": handoff.target,
        "attempt": attempt.number,
        "repeats": attempt.repeats or None,
        "is_error": handoff.is_error,
    }


def _show_written(console: Console, written: WrittenEnvelope) -> None:
    if written.attempt:
        console.print(safe(written.path, 4096), soft_wrap=True)


def _show(console: Console, stored: StoredSession) -> None:
    console.print(safe(progress_line(standing(stored.session)), 500), soft_wrap=True)
    for handoff in stored.session.sent:
        attempt = stored.attempts[handoff.path]
        marks = [f"attempt {attempt.number}"] if attempt.number > 1 else []
        marks += ["failed"] if handoff.is_error else []
        marks += ["again"] if attempt.repeats else []
        route = f"{handoff.source} → {handoff.target}"
        line = (
            f"  {handoff.envelope.timestamp}  {route:34} "
            f"{handoff.envelope.target_agent.phase_to_execute}"
        )
        console.print(safe(f"{line}  {', '.join(marks)}".rstrip(), 500), soft_wrap=True)
    if error := open_error(stored.session):
        _show_ways(console, error, stored)


def _show_ways(console: Console, error: Sent, stored: StoredSession) -> None:
    choice = choice_after(error, stored.session)
    line = (
        f"chosen: {choice.way}"
        if choice
        else f"choose with 'yolo-fs envelope choose {stored.session_id} WAY'"
    )
    console.print(line, style="green" if choice else "yellow", soft_wrap=True)
    for way in ways_after(error, stored.session):
        then = f"{way.leads_to.status}{_describe_next_step(way.leads_to)}"
        console.print(safe(f"  {way.name:6} {way.text} → {then}", 500), soft_wrap=True)


def _describe_next_step(then: NextState) -> str:
    if then.status == "waiting":
        return f" for the {then.agent_type}"
    again = f", attempt {then.attempt}" if then.attempt > 1 else ""
    who = f": {then.agent_type} does {then.phase_to_execute}{again}" if then.agent_type else ""
    without = f", without {', '.join(then.degraded)}" if then.degraded else ""
    return safe(f"{who}{without}", 500)
