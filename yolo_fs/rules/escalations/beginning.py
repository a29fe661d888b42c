"""How an escalation begins: its path up to the user, and what is wrong with how it was reported. Pure.

Whatever is wrong, it begins: none is ever lost. See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from yolo_fs.protocol.escalation import CHAINS, ESCALATES_BY_ROLE, Rule
from yolo_fs.protocol.names import Dept, Mode, Role
from yolo_fs.protocol.roster import department_said
from yolo_fs.reasons import Finding, Reason
from yolo_fs.rules.escalations.log import Logged, Station
from yolo_fs.rules.escalations.progress import EscalationProgress, Standing
from yolo_fs.rules.escalations.refusals import finding, refused, rule_broken, unknown

Step = tuple[EscalationProgress, tuple[Finding, ...]]
"""What became of the escalation, the same value where the line was refused; and what is wrong with the line."""

_CHAIN = {chain.mode: chain for chain in CHAINS}
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def path_of(role: Role | None, mode: Mode) -> tuple[Role, ...]:
    """Return the levels from a role up to the user; nothing for a role that reports to nobody."""
    chain = _CHAIN[mode]
    if role in chain.roles and role is not Role.USER:
        return chain.roles[chain.roles.index(role) :]
    row = ESCALATES_BY_ROLE.get(role) if role else None
    return (
        (row.role, *chain.roles[chain.roles.index(row.to) :])
        if row and row.to in chain.roles
        else ()
    )


def begin(first: Station, known: Logged, department: Dept, *, is_known: bool) -> Step:
    """Return the escalation that a first line opens. Whatever is wrong with it, it opens: none is ever lost.

    `is_known`: the execution state has an entry of it, which stands in for the report that the log lacks.
    """
    path = path_of(first.role, known.mode) if first.state == "open" else ()
    findings = tuple(_wrong_beginning(first, path, is_known=is_known))
    path = path or _CHAIN[known.mode].roles
    one = EscalationProgress(
        id=first.id,
        department=department_said(first.agent) or department,
        severity=first.severity,
        standing=Standing.RISING,
        path=path,
        holder=path[1],
        attempt=1,
        round_trips=0,
        opened_at=_NEVER,
        since=_NEVER,
        deadline=None,
        reminded=False,
        decision="",
        instructions=(),
        history=(first,) if first.state == "open" else (),
        asks_owner=known.rules.auto_owner_on_timeout,
    )
    if first.number == 0:
        return _as_entry(one, first), findings
    if first.state != "open":
        holder = first.role if first.role in path[1:] else one.holder
        return replace(one, holder=holder or one.holder), findings
    return replace(
        one, holder=Role.USER
    ) if first.move == "fail" and first.to is Role.USER else one, findings


def _as_entry(one: EscalationProgress, entry: Station) -> EscalationProgress:
    holder = entry.to if entry.to in one.path[1:] else one.holder
    standing = Standing.RESOLVED if entry.state == "resolved" else Standing.RISING
    return replace(one, holder=holder or one.holder, standing=standing, decision=entry.decision)


def _wrong_beginning(
    first: Station, path: tuple[Role, ...], *, is_known: bool
) -> Iterator[Finding]:
    if first.role is None:
        yield unknown(first, first.agent, "agent")
    if first.state != "open":
        if not is_known and first.number:
            message = f"{first.id} was never opened"
            yield finding(
                Reason.UNKNOWN_REFERENCE, first, "/st", message, "a line with st open before it", ""
            )
    elif first.role is not None and not path:
        message = f"{first.role.label} reports to nobody, so it escalates to nobody"
        yield refused(
            first, Rule.DIRECT_REPORT, "/agent", message, "The Lead decides on its findings."
        )
    elif path and first.number:
        yield from wrong_target(first, path)


def wrong_target(first: Station, path: tuple[Role, ...]) -> Iterator[Finding]:
    """Yield what is wrong with whom a report turns to: only a security FAIL goes past the direct report-to."""
    may_bypass = first.role is Role.SECURITY and first.move == "fail" and first.to is Role.USER
    if first.to is None:
        yield unknown(first, first.target, "tgt")
    elif first.to is not path[1] and not may_bypass:
        rule = rule_broken(first.role, first.to)
        message = f"{path[0].label} does not turn to {first.to.label}"
        yield refused(first, rule, "/tgt", message, f"Ask {path[1].label}.")
