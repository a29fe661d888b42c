"""`yolo-fs handoff read` and `yolo-fs handoff report`: what agents left for the orchestrator, and
how well they did.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.given import bytes_given
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.journal import Journal
from yolo_fs.reasons import Exit, Level, Reason, YoloError, safe
from yolo_fs.rules.handoffs.reading import Compliance, ComplianceReport, Log, compliance
from yolo_fs.services.handoffs.reading import LOG, HandoffAnswer, Reader, ReadRequest
from yolo_fs.services.workspace.settings import Settings, load

if TYPE_CHECKING:
    from rich.console import Console


@verb(
    "read",
    example="yolo-fs handoff read .quest/a/plan/handoff.json --agent planner --phase plan",
    group="handoff",
)
@click.argument("path")
@click.option("--agent", required=True, metavar="A", help="The agent whose handoff it is.")
@click.option("--phase", required=True, metavar="P", help="The phase that it ended.")
@click.option(
    "--text",
    "text_path",
    metavar="FILE",
    help="The agent's reply, to fall back to; '-' reads stdin.",
)
def read(asked: Invocation, *, path: str, agent: str, phase: str, text_path: str | None) -> Reply:
    """Read the handoff.json that an agent left, else the ---HANDOFF--- block of its reply, and log
    why.

    Exit 0 when there is a handoff to route by. Each read leaves its reason in context_health.log of
    the planning tree: handoff_json, file_missing, json_parse_error or schema_invalid; after a
    fallback text_fallback_ok or text_fallback_fail as well. With `strict_handoffs` in the
    configuration only the file itself will do.
    """
    with Repository(asked.start) as repository:
        settings = load(repository.root)
        text = _text(text_path, settings.limits.max_file_bytes) if text_path is not None else None
        journal = Journal(repository.own_dir, source=repository.root, now=_now)
        reader = Reader(repository.root, asked.start, settings.limits, journal.append)
        answer = reader.read(ReadRequest(path, agent, phase, text), _now())
        journal.close()
    return _reply(answer, settings)


@verb("report", example="yolo-fs handoff report --json", group="handoff")
def report(asked: Invocation) -> Reply:
    """Show how often agents left a usable handoff.json, and why not, by agent and by phase."""
    with Repository(asked.start) as repository:
        log = Reader(
            repository.root, asked.start, load(repository.root).limits, _ignore_event
        ).log()
    found = compliance(log.reads)
    return Reply(
        _report_as_json(found, log), show=lambda console: _show_report(console, found, log)
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _ignore_event(_event: str, _path: str, _data: object) -> None:
    pass


def _text(path: str, limit_bytes: int) -> bytes:
    data = bytes_given(path, limit_bytes)
    if len(data) > limit_bytes:
        raise YoloError(
            Reason.FILE_TOO_LARGE,
            f"{safe(path)} is larger than {limit_bytes} bytes",
            exit_code=Exit.USAGE,
        )
    return data


# --- one read ---


def _reply(answer: HandoffAnswer, settings: Settings) -> Reply:
    fails = answer.read.diagnosis.fails(strict=settings.policy.strict_handoffs)
    # What a fallback made good, and the policy lets pass, is a warning and blocks nothing.
    findings = (
        answer.findings if fails else [replace(one, level=Level.WARNING) for one in answer.findings]
    )
    code = Exit.FINDINGS if fails else Exit.DONE
    return Reply(
        _as_json(answer, fails=fails),
        findings,
        code,
        lambda console: _show(console, answer, fails=fails),
    )


def _as_json(answer: HandoffAnswer, *, fails: bool) -> dict[str, Any]:
    one = answer.read
    return {
        "agent": one.agent,
        "phase": one.phase,
        "source": one.diagnosis.source,
        "reason": one.diagnosis.reasons[0],
        "outcome": one.diagnosis.outcome.value if one.diagnosis.outcome else "",
        "fails": fails,
        "handoff": answer.handoff.model_dump() if answer.handoff else None,
        "elsewhere": answer.elsewhere,
        "log": LOG,
        "lines": one.lines().splitlines(),
    }


def _show(console: Console, answer: HandoffAnswer, *, fails: bool) -> None:
    diagnosis = answer.read.diagnosis
    verdict = "the phase stops" if fails else "go on"
    console.print(f"{diagnosis.source.value}: {', '.join(diagnosis.reasons)}: {verdict}")
    if answer.handoff is not None:
        console.print(
            f"status: {safe(answer.handoff.status)}  next: {safe(str(answer.handoff.next))}"
        )
        console.print(f"summary: {safe(answer.handoff.summary)}")


# --- the report ---


def _report_as_json(found: ComplianceReport, log: Log) -> dict[str, Any]:
    return {
        "total": _row(found.total),
        "by_agent": [_row(one) for one in found.by_agent],
        "by_phase": [_row(one) for one in found.by_phase],
        "by_agent_and_phase": [_row(one) for one in found.by_both],
        "unreadable_lines": log.unreadable,
    }


def _row(one: Compliance) -> dict[str, Any]:
    return {
        "agent": one.agent,
        "phase": one.phase,
        "reads": one.reads,
        "compliant": one.compliant,
        "percent": one.percent,
        "reasons": dict(one.reasons),
    }


def _show_report(console: Console, found: ComplianceReport, log: Log) -> None:
    if found.total.reads == 0:
        console.print(f"no handoff was read yet ({LOG})")
    else:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("agent", "phase", "reads", "handoff.json", "reasons"):
            table.add_column(name, justify="right" if name in ("reads", "handoff.json") else "left")
        for one in _rows(found):
            reasons = ", ".join(f"{count} {reason}" for reason, count in one.reasons)
            table.add_row(
                one.agent or "(all)",
                one.phase or "(all)",
                str(one.reads),
                f"{one.percent} %",
                reasons,
            )
        console.print(table)
    if log.unreadable:
        console.print(f"{log.unreadable} lines of the log are in another form", style="yellow")


def _rows(found: ComplianceReport) -> Iterable[Compliance]:
    return (*found.by_both, *found.by_agent, *found.by_phase, found.total)
