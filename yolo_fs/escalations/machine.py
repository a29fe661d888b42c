"""What each line of the log does to an escalation: how it opens, moves up and down, and is
resolved. Pure.

A line that breaks a rule leaves the escalation where it was, and is a finding that names the rule
and whom to ask. Whatever is wrong with a first line, it opens the escalation: none is ever lost.
See docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from yolo_fs.core.reasons import Finding, Level, Reason
from yolo_fs.escalations.log import (
    LOG,
    OVER,
    EscalationLog,
    EscalationProgress,
    EscalationStage,
    LogEntry,
)
from yolo_fs.protocol.departments import Dept, Mode, Role, name_in
from yolo_fs.protocol.departments import department as department_row
from yolo_fs.protocol.escalation import CHAINS, ESCALATES_BY_ROLE, RULES, Rule
from yolo_fs.protocol.roster import department_said

_RULE = {row.rule: row for row in RULES}


def rule_broken(role: Role | None, to: Role) -> Rule:
    """Return the rule that a role breaks by turning to another that is not its direct report-to."""
    if role is Role.DEV:
        return Rule.DEV_TO_SENIOR_ONLY
    if to is Role.USER:
        return Rule.OWNER_TO_USER_ONLY
    is_quality = role in (Role.QA, Role.QA_CODE, Role.TESTER)
    return Rule.QA_NOT_TO_ARCHITECT if is_quality and to is Role.ARCHITECT else Rule.DIRECT_REPORT


def whom_to_ask(one: EscalationProgress) -> str:
    """Return who holds the escalation and what is owed; nothing once it is over."""
    return f"{one.agent} holds it: {one.owed}." if one.owed else ""


def not_holder(one: EscalationProgress, line: LogEntry, verb: str) -> Finding:
    """Say that it is another's turn, or another attempt's."""
    is_late = line.role is one.holder
    message = f"{line.agent} may not {verb} {one.id}: {one.agent} holds it, attempt {one.attempt}"
    hint = whom_to_ask(one) if not is_late else f"This line speaks of attempt {line.attempt}."
    return finding(Reason.WRONG_LEVEL, line, "/agent", message, one.agent, hint)


def unknown(line: LogEntry, name: str, key: str) -> Finding:
    """Say that nobody has the name that stands under a key."""
    hint = "Name a role of the roster, such as dev, fe-senior or lead."
    return finding(Reason.UNKNOWN_NAME, line, f"/{key}", f"unknown agent {name!r}", "a role", hint)


def refused(line: LogEntry, rule: Rule, at: str, message: str, hint: str) -> Finding:
    """Say which of the rules a line breaks."""
    row = _RULE[rule]
    reason = Reason.MISSING_KEY if rule is Rule.EVIDENCE else Reason.WRONG_LEVEL
    return finding(
        reason, line, at, message, f"rule {row.number}: {row.head} {row.text}".rstrip("."), hint
    )


def finding(
    reason: Reason, line: LogEntry, at: str, message: str, expected: str, hint: str
) -> Finding:
    """Say what is wrong with a line of the log. `at`: JSON pointer of the key."""
    return Finding(reason, LOG, line.number, at, message, expected, hint)


Step = tuple[EscalationProgress, tuple[Finding, ...]]
"""What became of it, the same value where the line was refused; and what is wrong with the line."""

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


def begin(first: LogEntry, known: EscalationLog, department: Dept, *, is_known: bool) -> Step:
    """Return the escalation that a first line opens.

    Whatever is wrong with it, it opens: none is ever lost.

    `is_known`: the execution state has an entry of it, which stands in for the report that the log
    lacks.
    """
    path = path_of(first.role, known.mode) if first.state == "open" else ()
    findings = tuple(_wrong_beginning(first, path, is_known=is_known))
    path = path or _CHAIN[known.mode].roles
    one = EscalationProgress(
        id=first.id,
        department=department_said(first.agent) or department,
        severity=first.severity,
        standing=EscalationStage.RISING,
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
        return one._replace(holder=holder or one.holder), findings
    return one._replace(
        holder=Role.USER
    ) if first.move == "fail" and first.to is Role.USER else one, findings


def _as_entry(one: EscalationProgress, entry: LogEntry) -> EscalationProgress:
    holder = entry.to if entry.to in one.path[1:] else one.holder
    standing = EscalationStage.RESOLVED if entry.state == "resolved" else EscalationStage.RISING
    return one._replace(holder=holder or one.holder, standing=standing, decision=entry.decision)


def _wrong_beginning(
    first: LogEntry, path: tuple[Role, ...], *, is_known: bool
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


def wrong_target(first: LogEntry, path: tuple[Role, ...]) -> Iterator[Finding]:
    """Yield what is wrong with whom a report turns to: only a security FAIL goes further up."""
    may_bypass = first.role is Role.SECURITY and first.move == "fail" and first.to is Role.USER
    if first.to is None:
        yield unknown(first, first.target, "tgt")
    elif first.to is not path[1] and not may_bypass:
        rule = rule_broken(first.role, first.to)
        message = f"{path[0].label} does not turn to {first.to.label}"
        yield refused(first, rule, "/tgt", message, f"Ask {path[1].label}.")


def advance(one: EscalationProgress, line: LogEntry, known: EscalationLog) -> Step:
    """Return the escalation after one more line, or the same with why the line does not count."""
    if line.role is None:
        return one, (unknown(line, line.agent, "agent"),)
    if _is_foreign(one, line):
        message = f"{line.agent} is not in {one.department}, which owns this escalation"
        hint = f"{one.agent} holds it. Departments speak through their Leads."
        return one, (finding(Reason.WRONG_LEVEL, line, "/agent", message, one.agent, hint),)
    if line.state == "open":
        return _report(one, line, known)
    return _down(one, line) if line.goes_down else _up(one, line)


def _is_foreign(one: EscalationProgress, line: LogEntry) -> bool:
    said, row = department_said(line.agent), department_row(one.department)
    return said is not None and said is not one.department and row is not None


def _report(one: EscalationProgress, line: LogEntry, known: EscalationLog) -> Step:
    if one.is_open and not one.is_told:
        message = f"{one.id} is open already"
        hint = f"{one.agent} holds it: give it what is new."
        return one, (
            finding(Reason.DUPLICATE_ID, line, "/id", message, "one escalation for one task", hint),
        )
    path = path_of(line.role, known.mode)
    if not path:
        return one, (
            refused(
                line,
                Rule.DIRECT_REPORT,
                "/agent",
                f"{line.agent} reports to nobody",
                whom_to_ask(one),
            ),
        )
    again = one._replace(
        standing=EscalationStage.RISING,
        path=path,
        holder=path[1],
        attempt=one.attempt + 1,
        reminded=False,
        decision="",
        instructions=(),
        claimed=False,
    )
    if one.round_trips >= known.rules.max_round_trips:
        return again._replace(standing=EscalationStage.STOPPED, holder=Role.USER), ()
    return again, tuple(wrong_target(line, path))


def _up(one: EscalationProgress, line: LogEntry) -> Step:
    if line.move == "remind":
        return _reminder(one, line)
    if one.standing is EscalationStage.STOPPED:
        message = f"{one.id} went up and came back {one.round_trips} times"
        return one, (
            finding(Reason.STATE_CONFLICT, line, "/st", message, "a decision of the user", ""),
        )
    if one.standing is not EscalationStage.RISING:
        message = f"{one.id} is {one.standing}: there is nothing to raise"
        return one, (
            finding(Reason.STATE_CONFLICT, line, "/st", message, one.owed, whom_to_ask(one)),
        )
    if line.role is not one.holder or (line.attempt or one.attempt) != one.attempt:
        return one, (not_holder(one, line, "raise"),)
    above = one.above(one.holder)
    if line.to is None or line.to is not above:
        return one, (_skips(one, line, above),)
    return one._replace(holder=line.to, reminded=False), ()


def _reminder(one: EscalationProgress, line: LogEntry) -> Step:
    is_due = (
        one.standing in (EscalationStage.RISING, EscalationStage.DESCENDING) and not one.reminded
    )
    if is_due and line.to is one.holder and line.attempt in (None, one.attempt):
        return one._replace(reminded=True), ()
    message = f"nobody is to be reminded of {one.id} by this line"
    return one, (finding(Reason.WRONG_LEVEL, line, "/tgt", message, one.agent, whom_to_ask(one)),)


def _skips(one: EscalationProgress, line: LogEntry, above: Role | None) -> Finding:
    if line.to is None:
        return unknown(line, line.target, "tgt")
    if above is None:
        message = f"nobody stands above {one.holder.label}"
        return finding(Reason.WRONG_LEVEL, line, "/tgt", message, "a decision", whom_to_ask(one))
    message = f"{one.holder.label} does not turn to {line.to.label}"
    return refused(
        line,
        rule_broken(one.holder, line.to),
        "/tgt",
        message,
        f"Ask {name_in(above, one.department)}.",
    )


def _down(one: EscalationProgress, line: LogEntry) -> Step:
    if one.standing is EscalationStage.RESOLVED:
        message = f"{one.id} is resolved already"
        hint = "If the task is blocked again, open it again."
        return one, (
            finding(
                Reason.STATE_CONFLICT, line, "/st", message, f"its decision: {one.decision}", hint
            ),
        )
    if line.shown_by:
        return _resume(one, line)
    if line.role is not one.holder:
        return one, (
            _second_decision(one, line)
            if _was_asked(one, line)
            else not_holder(one, line, "resolve"),
        )
    if one.holder is one.origin:
        return _claim(one, line)
    if line.to in one.path and one.path.index(line.to) >= one.path.index(one.holder):
        return one, (_upward(one, line),)
    return _handed_down(one, line)


def _claim(one: EscalationProgress, line: LogEntry) -> Step:
    if line.state == "resolved":
        return one._replace(claimed=True), ()
    message = f"nothing shows that {one.id.task} goes on"
    hint = "Commit, and name the commit; or report your progress."
    return one, (
        finding(
            Reason.MISSING_KEY, line, "/ref", message, "the commit that carries the task on", hint
        ),
    )


def _handed_down(one: EscalationProgress, line: LogEntry) -> Step:
    below = one.below(one.holder)
    was_decided = one.standing is EscalationStage.DESCENDING
    moved = one._replace(
        standing=EscalationStage.DESCENDING,
        holder=below,
        reminded=False,
        decision=one.decision if was_decided else line.decision,
        instructions=line.instructions or one.instructions,
        round_trips=one.round_trips + (below is one.origin),
        claimed=one.claimed or line.state == "resolved",
    )
    if line.to is below:
        return moved, ()
    message = f"a resolution goes down level by level, {one.holder.label} to {below.label}"
    hint = f"{name_in(below, one.department)} has it now."
    warning = finding(
        Reason.WRONG_LEVEL, line, "/tgt", message, name_in(below, one.department), hint
    )
    return moved, (replace(warning, level=Level.WARNING),)


def _resume(one: EscalationProgress, line: LogEntry) -> Step:
    is_over = line.move == OVER and one.origin is not Role.DEV
    if is_over or one.is_told or (one.claimed and one.standing is EscalationStage.DESCENDING):
        return one._replace(standing=EscalationStage.RESOLVED, reminded=False, claimed=False), ()
    message = (
        f"{one.id} is {one.standing}, held by {one.agent}: nobody has told "
        f"{one.origin.label} yet how to go on"
    )
    return one, (finding(Reason.STATE_CONFLICT, line, "/ref", message, one.owed, whom_to_ask(one)),)


def _was_asked(one: EscalationProgress, line: LogEntry) -> bool:
    """Return whether the level had its say: what was decided is decided once."""
    above = one.path[one.path.index(one.holder) :]
    return one.standing is EscalationStage.DESCENDING and line.role in above


def _second_decision(one: EscalationProgress, line: LogEntry) -> Finding:
    message = f"{one.id} is decided already: {one.decision}"
    hint = f"{whom_to_ask(one)} If the decision does not work, {one.origin.label} opens it again."
    return finding(Reason.STATE_CONFLICT, line, "/res", message, "one decision", hint)


def _upward(one: EscalationProgress, line: LogEntry) -> Finding:
    message = f"a resolution goes downward only, not from {line.agent} to {line.target}"
    expected = name_in(one.below(one.holder), one.department)
    return finding(
        Reason.WRONG_LEVEL, line, "/tgt", message, expected, "To ask those above, raise it."
    )


def wanting(one: EscalationProgress, line: LogEntry) -> Iterator[Finding]:
    """Yield what a level owes and does not say: evidence, a recommendation, later options."""
    if line.goes_down or line.move:
        return
    if not line.evidence:
        yield refused(
            line, Rule.EVIDENCE, "/ev", "there is no evidence", "Say what was seen or tried."
        )
    if not line.recommendation:
        yield refused(
            line, Rule.EVIDENCE, "/rec", "there is no recommendation", "Say what you would do."
        )
    if (
        line.role is Role.ARCHITECT
        and line.role is not one.origin
        and not 2 <= len(line.options) <= 3
    ):
        message = f"{len(line.options)} options"
        hint = "The Architect constructs 2 to 3 concrete options."
        yield finding(Reason.MISSING_KEY, line, "/opts", message, "2 or 3 options", hint)
