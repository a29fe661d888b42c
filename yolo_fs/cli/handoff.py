"""`yolo-fs handoff`: packets between roles, read, checked and written; and the packets that agents
left for the orchestrator, with their results.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import STDIN, Invocation, Reply, bytes_given, draw_columns, from_stdin, verb
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError, errors, safe
from yolo_fs.git.repository import Repository
from yolo_fs.handoff_service.accept import DirectiveHandoffs, ReceivedHandoff, written_in
from yolo_fs.handoff_service.reading import LOG, HandoffAnswer, Reader, ReadRequest
from yolo_fs.handoff_service.sessions import PacketSource
from yolo_fs.handoff_service.write import EmittedHandoff, emit
from yolo_fs.handoffs.lifecycle import HANDOFF
from yolo_fs.handoffs.packets import packet_of, texts_of
from yolo_fs.handoffs.reading import Compliance, ComplianceReport, Log, compliance
from yolo_fs.protocol.handoffs import TRIGGERS, DirectiveRole
from yolo_fs.system.files import read as read_file
from yolo_fs.system.journal import Journal
from yolo_fs.system.text_checks import Limits
from yolo_fs.workspace.planning_tree import found_from
from yolo_fs.workspace.settings import Settings, load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("handoff")
def handoff() -> None:
    """Hand work over to another role, and accept it.

    A packet is accepted whole or not at all: the receiver of a rejected packet edits nothing.
    """


@verb("check", example="yolo-fs handoff check --as executor", parent=handoff)
@click.argument("path", required=False)
@click.option(
    "--as",
    "receiver",
    type=click.Choice([role.value for role in DirectiveRole]),
    help="Receiving role (default: the packet's `to_role`).",
)
@click.option(
    "--override",
    "because",
    metavar="WHY",
    help="Operator: accept it in spite of its faults, and record why.",
)
def check(
    invocation: Invocation, *, path: str | None, receiver: str | None, because: str | None
) -> Reply:
    """Accept a handoff, or print each reason why its receiver must stop.

    Without PATH: the HANDOFF.md that was written last, in the planning tree or a directive session.
    A PATH is a HANDOFF.md or a text with a chat packet; - reads the text from stdin.
    """
    with Repository(invocation.start) as repository:
        handoffs = DirectiveHandoffs(repository, load(repository.root))
        now = datetime.now(UTC)
        handed = handoffs.check(
            _source(invocation, handoffs, repository.root, path), now, receiver or ""
        )
        if because is not None:
            handed = handoffs.override(handed, because, now)
        findings = (*handed.findings, *handoffs.later_work(handed))
    code = Exit.DONE if handed.is_accepted or handed.over else Exit.FINDINGS
    return Reply(_as_json(handed), findings, code, lambda console: _show(console, handed))


@verb(
    "emit",
    example="yolo-fs handoff emit --from pair --to architect --trigger pair_out_of_scope …",
    parent=handoff,
)
@click.option(
    "--as",
    "--from",
    "from_role",
    required=True,
    metavar="ROLE",
    help="Role that hands over and stops.",
)
@click.option("--to", "to_role", required=True, metavar="ROLE", help="Role that continues.")
@click.option(
    "--trigger",
    required=True,
    metavar="ID",
    help=f"One of {', '.join(row.id for row in TRIGGERS)}.",
)
@click.option(
    "--objective", required=True, metavar="LINE", help="What the receiver is to reach, in one line."
)
@click.option(
    "--blocking-rule",
    required=True,
    metavar="LINE",
    help="Rule that keeps the sender from going on.",
)
@click.option("--session", "session_id", metavar="GUID", help="Directive session (default: none).")
@click.option("--task", "task_file", metavar="PATH", help="Task file (default: none).")
@click.option(
    "--branch",
    "directive_branch",
    metavar="NAME",
    help="Default: the session's branch, else the current one.",
)
@click.option(
    "--reading",
    "required_reading",
    metavar="PATH",
    help="What the receiver reads first (default: yolo_fs.required_reading, or n/a).",
)
def emit_(invocation: Invocation, **fields: str | None) -> Reply:
    """Write a whole packet or nothing: HANDOFF.md of the session; text for the chat on stdout."""
    given = {name: text for name, text in fields.items() if text is not None}
    with Repository(invocation.start) as repository:
        emitted = emit(repository, load(repository.root), given)
    code = Exit.DONE if emitted.packet else Exit.FINDINGS
    return Reply(
        _emitted_as_json(emitted),
        emitted.findings,
        code,
        lambda console: _show_emitted(console, emitted),
    )


@verb("parse", example="yolo-fs handoff parse chat.txt", parent=handoff)
@click.argument("path", metavar="FILE|-")
def parse(invocation: Invocation, *, path: str) -> Reply:
    """Read a packet from a chat text or a HANDOFF.md and show its fields, and nothing else."""
    source = _text() if path == STDIN else _file(os.path.join(invocation.start, path), path)
    if isinstance(source, Finding):
        return Reply(None, (source,), Exit.FINDINGS)
    packet, findings = packet_of(written_in(source, Limits()))
    code = Exit.FINDINGS if errors(findings) else Exit.DONE
    fields = texts_of(packet) if packet else None
    return Reply(fields, findings, code, lambda console: _show_fields(console, fields or {}))


def _source(
    invocation: Invocation, handoffs: DirectiveHandoffs, root: str, path: str | None
) -> PacketSource | Finding:
    if path == STDIN:
        return _text()
    if path is None:
        latest = handoffs.latest()
        return handoffs.sessions.open(latest) if latest else _finding_for_no_handoff()
    named = found_from(invocation.start, root, path)
    full = os.path.join(os.path.realpath(os.path.dirname(named)), os.path.basename(named))
    within = os.path.relpath(full, root)
    return _file(full, path) if f"{within}/".startswith("../") else handoffs.sessions.open(within)


def _file(full: str, shown: str) -> PacketSource | Finding:
    """Read a text that is not a file of the repository."""
    folder, name = os.path.split(os.path.abspath(full))
    content = read_file(folder, name, Limits().max_file_bytes)
    return content if isinstance(content, Finding) else PacketSource(shown, content.data)


def _text() -> PacketSource:
    return PacketSource(STDIN, from_stdin(Limits().max_file_bytes))


def _finding_for_no_handoff() -> Finding:
    expected = f"a {HANDOFF} in the planning tree or a directive session"
    return Finding(
        Reason.FILE_MISSING,
        HANDOFF,
        expected=expected,
        hint="ask the sender; 'yolo-fs handoff emit --help' shows how to write one",
    )


def _as_json(handed: ReceivedHandoff) -> dict[str, Any]:
    return {
        "accepted": handed.is_accepted,
        "over": handed.over,
        "path": handed.source.path,
        "role": handed.role,
        "required_reading": handed.packet.required_reading if handed.packet else "",
        "session_file": handed.session_file,
        "task_file": handed.task_file,
        "packet": texts_of(handed.packet) if handed.packet else None,
        "override": handed.override,
    }


def _emitted_as_json(emitted: EmittedHandoff) -> dict[str, Any]:
    packet = texts_of(emitted.packet) if emitted.packet else None
    return {"packet": packet, "path": emitted.path, "text": emitted.text, "new": emitted.is_new}


def _show(console: Console, handed: ReceivedHandoff) -> None:
    packet = handed.packet
    if handed.over:
        console.print(safe(f"closed: {handed.over}; there is nothing to do", 500))
        return
    if packet is None or not handed.is_accepted:
        console.print(
            "stop: the handoff is not accepted; make no edit until it is corrected", style="red"
        )
        return
    console.print(f"accepted: you are {handed.role} now; no confirmation is needed", style="green")
    if handed.override:
        console.print(
            safe(f"overridden by {handed.override.by}: {handed.override.because}", 500),
            style="yellow",
        )
    for name, text in (
        ("read first", packet.required_reading),
        ("session", handed.session_file),
        ("task", handed.task_file),
        ("branch", packet.directive_branch),
        ("objective", packet.objective),
    ):
        if text:
            console.print(f"{name + ':':11} {safe(text, 500)}")


def _show_emitted(console: Console, emitted: EmittedHandoff) -> None:
    # The packet is meant to be pasted or piped; the reader has refused every control character.
    console.file.write(emitted.text)
    if emitted.path:
        state = "written" if emitted.is_new else "already written"
        print(
            f"{safe(emitted.path)}: {state}; {emitted.packet and emitted.packet.from_role} "
            "stops now",
            file=sys.stderr,
        )


def _show_fields(console: Console, fields: dict[str, str]) -> None:
    for name, text in fields.items():
        console.print(f"{name}: {safe(text, 500)}")


@verb(
    "read",
    example="yolo-fs handoff read .quest/a/plan/handoff.json --agent planner --phase plan",
    parent=handoff,
)
@click.argument("path")
@click.option(
    "--as", "--agent", "agent", required=True, metavar="A", help="The agent whose handoff it is."
)
@click.option("--phase", required=True, metavar="P", help="The phase that it ended.")
@click.option(
    "--text",
    "text_path",
    metavar="FILE",
    help="The agent's reply, to fall back to; '-' reads stdin.",
)
def read(
    invocation: Invocation, *, path: str, agent: str, phase: str, text_path: str | None
) -> Reply:
    """Read the handoff.json of an agent, else the ---HANDOFF--- block of its reply, and log the
    result.

    Exit 0 when there is a usable handoff. Each read logs its result in context_health.log of the
    planning tree: handoff_json, file_missing, json_parse_error or schema_invalid; after a fallback
    also text_fallback_ok or text_fallback_fail. With `strict_handoffs` in the configuration, only
    the file counts.
    """
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        text = (
            _read_file_text(invocation.start, text_path, settings.limits.max_file_bytes)
            if text_path is not None
            else None
        )
        journal = Journal(repository.own_dir, source=repository.root)
        reader = Reader(repository.root, invocation.start, settings.limits, journal.append)
        answer = reader.read(ReadRequest(path, agent, phase, text), datetime.now(UTC))
        journal.close()
    return _reply(answer, settings)


@verb("report", example="yolo-fs handoff report --json", parent=handoff)
def report(invocation: Invocation) -> Reply:
    """Show how often agents left a usable handoff.json, and why not, by agent and by phase."""
    with Repository(invocation.start) as repository:
        limits = load(repository.root).limits
        log = Reader(repository.root, invocation.start, limits, lambda *_: None).log()
    compliance_report = compliance(log.reads)
    return Reply(
        _report_as_json(compliance_report, log),
        show=lambda console: _show_report(console, compliance_report, log),
    )


def _read_file_text(start: str, path: str, limit_bytes: int) -> bytes:
    data = bytes_given(start, path, limit_bytes)
    if len(data) > limit_bytes:
        raise YoloError(
            Reason.FILE_TOO_LARGE,
            f"{safe(path)} is larger than {limit_bytes} bytes",
            exit_code=Exit.USAGE,
        )
    return data


def _reply(answer: HandoffAnswer, settings: Settings) -> Reply:
    fails = answer.read.diagnosis.fails(strict=settings.policy.strict_handoffs)
    # Faults that a fallback resolved and the policy permits are warnings and block nothing.
    findings = (
        answer.findings
        if fails
        else [replace(finding, level=Level.WARNING) for finding in answer.findings]
    )
    code = Exit.FINDINGS if fails else Exit.DONE
    return Reply(
        _answer_as_json(answer, fails=fails),
        findings,
        code,
        lambda console: _show_answer(console, answer, fails=fails),
    )


def _answer_as_json(answer: HandoffAnswer, *, fails: bool) -> dict[str, Any]:
    handoff_read = answer.read
    return {
        "agent": handoff_read.agent,
        "phase": handoff_read.phase,
        "source": handoff_read.diagnosis.source,
        "reason": handoff_read.diagnosis.reasons[0],
        "outcome": handoff_read.diagnosis.outcome.value if handoff_read.diagnosis.outcome else "",
        "fails": fails,
        "handoff": answer.handoff.model_dump() if answer.handoff else None,
        "elsewhere": answer.elsewhere,
        "log": LOG,
        "lines": handoff_read.lines().splitlines(),
    }


def _show_answer(console: Console, answer: HandoffAnswer, *, fails: bool) -> None:
    diagnosis = answer.read.diagnosis
    verdict = "the phase stops" if fails else "go on"
    console.print(f"{diagnosis.source.value}: {', '.join(diagnosis.reasons)}: {verdict}")
    if answer.handoff is not None:
        console.print(
            f"status: {safe(answer.handoff.status)}  next: {safe(str(answer.handoff.next))}"
        )
        console.print(f"summary: {safe(answer.handoff.summary)}")


def _report_as_json(compliance_report: ComplianceReport, log: Log) -> dict[str, Any]:
    return {
        "total": _row(compliance_report.total),
        "by_agent": [_row(group) for group in compliance_report.by_agent],
        "by_phase": [_row(group) for group in compliance_report.by_phase],
        "by_agent_and_phase": [_row(group) for group in compliance_report.by_both],
        "unreadable_lines": log.unreadable,
    }


def _row(group: Compliance) -> dict[str, Any]:
    return {
        "agent": group.agent,
        "phase": group.phase,
        "reads": group.reads,
        "compliant": group.compliant,
        "percent": group.percent,
        "reasons": dict(group.reasons),
    }


def _show_report(console: Console, compliance_report: ComplianceReport, log: Log) -> None:
    if compliance_report.total.reads == 0:
        console.print(f"no handoff was read yet ({LOG})")
    else:
        head = ("agent", "phase", "reads", "handoff.json", "reasons")
        rows = [[(name, "bold") for name in head]]
        for group in (
            *compliance_report.by_both,
            *compliance_report.by_agent,
            *compliance_report.by_phase,
            compliance_report.total,
        ):
            reasons = ", ".join(f"{count} {reason}" for reason, count in group.reasons)
            named = group.agent or "(all)", group.phase or "(all)", str(group.reads)
            rows.append([(text, "") for text in (*named, f"{group.percent} %", reasons)])
        draw_columns(console, rows, "<>><")
    if log.unreadable:
        console.print(f"{log.unreadable} lines of the log are in another form", style="yellow")
