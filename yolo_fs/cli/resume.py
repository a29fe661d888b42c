"""`yolo-fs resume`: the exact state of the team, for a session that starts.

It never fails a session: after any error, it prints an answer and exits with 0, because agents'
hosts take 2 for "block".
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import click

from yolo_fs.authority.actors import check_agent, department_of
from yolo_fs.cli.reply import PHASE, Invocation, Reply, system_error_of, verb
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.json_form import envelope
from yolo_fs.core.reasons import Finding, Level, Reason, YoloError, safe
from yolo_fs.core.tool_calls import agent_in
from yolo_fs.git.repository import Repository
from yolo_fs.phase.report import BUDGET, Audience, Brief, as_data, as_text, cut
from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.roster import bare_name, department_said
from yolo_fs.reports.resume import resume as resume_from
from yolo_fs.workspace.settings import not_initialised

_HOOK_TOKENS = 2400
"""Hosts move text beyond 10,000 characters out of the context."""
_INPUT_BYTES = 1 << 20
_INPUT_WAIT_S = 1.0
"""A host that sends nothing must not block its own session."""


def _as_json(brief: Brief) -> str:
    return envelope("resume", as_data(brief), (), ok=True) + "\n"


def _as_toon(brief: Brief) -> str:
    from yolo_fs.system.toon import write_toon

    return write_toon(_shown(as_data(brief))) if brief else ""


def _shown(value: Any) -> Any:
    """Return a value with terminal-safe texts: TOON leaves most control characters as they are."""
    if isinstance(value, dict):
        return {key: _shown(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shown(each) for each in value]
    return safe(value, 500) if isinstance(value, str) else value


def _format_as_hook(wrap: Callable[[str], Any]) -> Callable[[Brief], str]:
    return lambda brief: json.dumps(wrap(as_text(brief)) if brief else {}) + "\n"


def _wrap_for_claude(text: str) -> dict[str, Any]:
    """Return the answer for Claude; Codex's closed schema accepts exactly this as well."""
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}


_HOOKS: Mapping[str, Callable[[Brief], str]] = {
    "claude-hook": _format_as_hook(_wrap_for_claude),
    "codex-hook": _format_as_hook(_wrap_for_claude),
    "cursor-hook": _format_as_hook(lambda text: {"additional_context": text}),
}
_FORMS: Mapping[str, Callable[[Brief], str]] = {
    "text": as_text,
    "json": _as_json,
    "toon": _as_toon,
    **_HOOKS,
}


@verb("resume", example="yolo-fs resume --as dev --dept backend")
@click.option(
    "--format", "form", type=click.Choice(list(_FORMS)), default="text", help="Output format."
)
@click.option(
    "--as",
    "--role",
    "role",
    default="",
    metavar="ROLE",
    help="Role that asks, such as dev or fe-dev; its next task comes first.",
)
@click.option(
    "--dept",
    type=click.Choice([row.name.value for row in WORKING]),
    help="Show this department only.",
)
@PHASE
@click.option(
    "--budget", type=click.IntRange(1), default=BUDGET, metavar="TOKENS", help=f"Default: {BUDGET}."
)
@click.option(
    "--no-write",
    is_flag=True,
    help="Write nothing: compile no context, store no cache.",
)
def resume(
    invocation: Invocation,
    *,
    form: str,
    role: str,
    dept: str | None,
    phase: str,
    budget: int,
    no_write: bool,
) -> Reply:
    """Show a new session where the team stands and who does what next.

    From files and git alone, with or without a daemon. If the text does not fit the budget, whole
    sections are left out, the least important first. The same state gives the same bytes. Always
    exits 0. Without a planning tree, the answer is empty and a warning says why, which no hook's
    form has; if HEAD has a tree that was in use here and is gone, the answer says so.
    """
    payload = _said_by_host() if form in _HOOKS else {}
    start = (
        str(payload.get("cwd") or invocation.start) if invocation.start == "." else invocation.start
    )
    agent = role or bare_name(agent_in(payload))
    asker = Audience(agent, department_of(dept) if dept else department_said(agent))
    brief, findings = _brief(start, asker, phase, keep=not no_write)
    if not brief and not findings and form not in _HOOKS:
        findings = (_why_empty(start),)
    findings = (*findings, *_unknown(role))
    form = "json" if invocation.as_json else form
    budget = min(budget, _HOOK_TOKENS) if form in _HOOKS else budget
    brief = cut(brief, budget, as_text if form in _HOOKS else _FORMS[form])
    text = _FORMS[form](brief)  # what agents have written is already escaped in it
    return Reply(
        as_data(brief), findings, show=lambda console: print(text, end="", file=console.file)
    )


def _unknown(role: str) -> Iterator[Finding]:
    """Yield a warning of a role that nobody has: a session begins all the same."""
    try:
        check_agent(role)
    except YoloError as error:
        yield replace(error.as_finding(), level=Level.WARNING)


def _why_empty(start: str) -> Finding:
    """Return a warning of what makes the answer empty: whoever typed the command wonders."""
    try:
        with Repository(start) as repository:
            error = not_initialised(repository.root)
    except YoloError as unusable:
        error = unusable
    return replace(error.as_finding(), level=Level.WARNING)


def _brief(
    start: str, asker: Audience, phase: str, *, keep: bool
) -> tuple[Brief, tuple[Finding, ...]]:
    try:
        return resume_from(start, asker, phase, keep=keep), ()
    except YoloError as error:
        return (), (error.as_finding(),)
    except Exception as defect:  # a defect of ours is ours: the session begins all the same
        if system_error := system_error_of(defect):
            return (), (system_error.as_finding(),)
        message = f"{type(defect).__name__}: {defect}"
        hint = "This is a defect of yolo-fs; 'yolo-fs status -v' may show more."
        return (), (
            Finding(Reason.INTERNAL_ERROR, message=message, hint=hint, level=Level.WARNING),
        )


def _said_by_host() -> Mapping[str, Any]:
    """Return the object that the host writes to stdin; empty without one, or if it is late."""
    try:
        payload = parse(_read_stdin(), _INPUT_BYTES + (1 << 16))
    except (ValueError, OSError):
        return {}
    return payload if isinstance(payload, dict) else {}


def _read_stdin() -> bytes:
    """Return the content of stdin up to its end, or until it has been silent for too long."""
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    source, data, ends_at = sys.stdin.fileno(), b"", time.monotonic() + _INPUT_WAIT_S
    while len(data) < _INPUT_BYTES and (left := ends_at - time.monotonic()) > 0:
        if not select.select([source], [], [], left)[0]:
            break
        piece = os.read(source, 1 << 16)
        if not piece:
            break
        data += piece
    return data
