"""`yolo-fs may`: whether a role may read, write, decide, use, contact or escalate something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from yolo_fs.agents.access import Access
from yolo_fs.authority.actors import AccessDecision, Actor, escalation_of, find_department, meant_by
from yolo_fs.cli.reply import Invocation, Reply, as_agent, verb
from yolo_fs.core.reasons import Exit, Reason, YoloError, hint_for_unknown, safe
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import ANY_OF_WORKING
from yolo_fs.protocol.isolation import SCOPES

if TYPE_CHECKING:
    from rich.console import Console

_ACTIONS = ("read", "write", "decide", "use", "contact", "escalate")
_WORK = tuple(row.mode for row in SCOPES if row.mode)


@verb("may", example="yolo-fs may dev read .yolo-planning/ROADMAP.md")
@click.argument(
    "words", nargs=-1, required=True, metavar=f"[ROLE] {{{'|'.join(_ACTIONS)}}} SUBJECT..."
)
@as_agent("Role, if it is not the first word.")
@click.option("--dept", help=f"Department that the role works in: {ANY_OF_WORKING}.")
@click.option(
    "--plan",
    default="",
    metavar="NN-MM",
    help="Plan that is worked on, for write; default: the active one.",
)
@click.option(
    "--mode",
    "work",
    type=click.Choice(_WORK),
    help="Review in which a Senior reads; default: either.",
)
def may(
    invocation: Invocation,
    *,
    words: tuple[str, ...],
    agent: str,
    dept: str,
    plan: str,
    work: str | None,
) -> Reply:
    """Return whether a ROLE may do something, by which rule, and whom to ask instead.

    SUBJECT is a path, a topic, a tool, a role to contact, or what to escalate: an occasion, or the
    role to escalate to. Exit 0 for yes, 1 for no.
    """
    role, action, what = _read_question(words, agent)
    with repository_of(invocation.start) as repository:
        access = Access(repository, start=invocation.start)
        actor = access.actor(role, find_department(dept) if dept else None)
        answer = (
            _ANSWERS[action](access, actor, what)
            if action in _ANSWERS
            else _decide_on_path(access, actor, action, what, plan, work or "")
        )
    return answered(f"{actor.name} {action} {what}", answer)


def _read_question(words: tuple[str, ...], agent: str) -> tuple[str, str, str]:
    """Return role, action and subject. `agent`: of `--as`, for words that begin with the action."""
    role, *rest = (agent, *words) if words[0] in _ACTIONS else words
    action, subject = rest[0] if rest else "", " ".join(rest[1:])
    if not role:
        raise click.UsageError(f"Missing role: 'yolo-fs may ROLE {action} …', or --as ROLE.")
    if action not in _ACTIONS:
        raise click.UsageError(
            f"{safe(action)!r} is not an action. {hint_for_unknown(action, _ACTIONS)}"
        )
    if not subject:
        raise click.UsageError(f"Missing subject: what may {safe(role)} {action}?")
    return role, action, subject


def _decide_on_path(
    access: Access, actor: Actor, action: str, path: str, plan: str, work: str
) -> AccessDecision:
    return access.write(actor, path, plan) if action == "write" else access.read(actor, path, work)


def _escalate(access: Access, actor: Actor, what: str) -> AccessDecision:
    try:
        other = meant_by(actor, what)
    except YoloError:
        return escalation_of(actor, what)
    return access.escalate(actor, other)


_ANSWERS: Mapping[str, Callable[[Access, Actor, str], AccessDecision]] = {
    "decide": Access.decide,
    "use": Access.use,
    "contact": Access.contact,
    "escalate": _escalate,
}


@contextmanager
def repository_of(start: str) -> Iterator[Repository | None]:
    """Yield the repository of the start directory, or None: most rules need no repository."""
    try:
        repository = Repository(start)
    except YoloError as error:
        if error.reason not in (Reason.NOT_A_REPOSITORY, Reason.BARE_REPOSITORY):
            raise
        yield None
        return
    with repository:
        yield repository


def answered(question: str, answer: AccessDecision) -> Reply:
    """Return a decision as a reply, with exit code 0 for yes and 1 for no."""
    data = {
        "question": question,
        "allowed": answer.allowed,
        "rule": answer.rule,
        "ask": list(answer.ask),
        "bring": list(answer.bring),
    }
    code = Exit.DONE if answer.allowed else Exit.FINDINGS
    return Reply(data, (), code, lambda console: _show(console, answer))


def _show(console: Console, answer: AccessDecision) -> None:
    console.print(f"{'yes' if answer.allowed else 'no'}: {safe(answer.rule, 600)}")
    if answer.ask:
        console.print(
            f"{'goes to' if answer.allowed else 'ask'}: {safe(', then '.join(answer.ask))}"
        )
    if answer.bring:
        console.print(f"bring: {', '.join(answer.bring)}")
