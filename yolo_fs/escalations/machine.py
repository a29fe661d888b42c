"""State machine of an escalation: how each line of the log opens, moves or resolves it. Pure.

A line that breaks a rule leaves the escalation unchanged, and is a finding that names the rule and
whom to ask. Even a faulty first line opens the escalation: none ever gets lost. See
docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from yolo_fs.authority.actors import rule_broken
from yolo_fs.core.reasons import Finding, Level, Reason
from yolo_fs.escalations.log import (
    EARLIEST,
    LOG,
    OVER,
    EscalationLog,
    EscalationProgress,
    EscalationStage,
    LogEntry,
    act_of,
)
from yolo_fs.protocol.departments import Dept, Mode, Role, name_in
from yolo_fs.protocol.departments import department as department_row
from yolo_fs.protocol.escalation import CHAINS, ESCALATES_BY_ROLE, RULES, Rule
from yolo_fs.protocol.roster import department_said, meant_agent

_RULE = {row.rule: row for row in RULES}


def whom_to_ask(escalation: EscalationProgress) -> str:
    """Return who holds the escalation, what they do and how; empty once it is over."""
    if not escalation.is_open:
        return ""
    does, command = act_of(escalation)
    how = f" ('{command}')" if command else ""
    return f"It is with {escalation.agent}, who {does}{how}."


def not_holder(escalation: EscalationProgress, line: LogEntry, verb: str) -> Finding:
    """Return the finding that it is another role's turn, or another attempt's."""
    is_late = line.role is escalation.holder
    message = (
        f"{line.agent} may not {verb} {escalation.id}: {escalation.agent} holds "
        f"it, attempt {escalation.attempt}"
    )
    hint = whom_to_ask(escalation) if not is_late else f"This line is about attempt {line.attempt}."
    return finding(Reason.WRONG_LEVEL, line, "/agent", message, escalation.agent, hint)


def unknown(line: LogEntry, name: str, key: str) -> Finding:
    """Return the finding that the name under a key is unknown."""
    near = meant_agent(name)
    meant = f"Did you mean {near}? " if near else ""
    hint = f"{meant}Name a role of the roster, such as dev, fe-senior or lead."
    return finding(Reason.UNKNOWN_NAME, line, f"/{key}", f"unknown agent {name!r}", "a role", hint)


def refused(line: LogEntry, rule: Rule, at: str, message: str, hint: str) -> Finding:
    """Return the finding that a line breaks a rule."""
    row = _RULE[rule]
    reason = Reason.MISSING_KEY if rule is Rule.EVIDENCE else Reason.WRONG_LEVEL
    return finding(reason, line, at, message, f"rule {row.number}: {row.head}".rstrip("."), hint)


def finding(
    reason: Reason, line: LogEntry, at: str, message: str, expected: str, hint: str
) -> Finding:
    """Return a finding about a line of the log. `at`: JSON pointer of the key."""
    return Finding(reason, LOG, line.number, at, message, expected, hint)


Step = tuple[EscalationProgress, tuple[Finding, ...]]
"""The escalation (the same value if the line was refused), and the findings about the line."""

_CHAIN = {chain.mode: chain for chain in CHAINS}


def path_of(role: Role | None, mode: Mode) -> tuple[Role, ...]:
    """Return the levels from a role up to the user; empty for a role that reports to nobody."""
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

    A faulty line opens it, too: no escalation ever gets lost.

    `is_known`: the execution state has an entry for it, which replaces the report missing in the
    log.
    """
    path = path_of(first.role, known.mode) if first.state == "open" else ()
    department = department_said(first.agent) or department
    findings = tuple(_check_first_line(first, path, department, is_known=is_known))
    path = path or _CHAIN[known.mode].roles
    escalation = EscalationProgress(
        id=first.id,
        department=department,
        severity=first.severity,
        standing=EscalationStage.RISING,
        path=path,
        holder=path[1],
        attempt=1,
        round_trips=0,
        opened_at=EARLIEST,
        since=EARLIEST,
        deadline=None,
        reminded=False,
        decision="",
        instructions=(),
        history=(first,) if first.state == "open" else (),
        asks_owner=known.rules.auto_owner_on_timeout,
    )
    if first.number == 0:
        return _adopt_entry(escalation, first), findings
    if first.state != "open":
        holder = first.role if first.role in path[1:] else escalation.holder
        return escalation._replace(holder=holder or escalation.holder), findings
    return escalation._replace(
        holder=Role.USER
    ) if first.move == "fail" and first.to is Role.USER else escalation, findings


def _adopt_entry(escalation: EscalationProgress, entry: LogEntry) -> EscalationProgress:
    holder = entry.to if entry.to in escalation.path[1:] else escalation.holder
    standing = EscalationStage.RESOLVED if entry.state == "resolved" else EscalationStage.RISING
    return escalation._replace(
        holder=holder or escalation.holder, standing=standing, decision=entry.decision
    )


def _check_first_line(
    first: LogEntry, path: tuple[Role, ...], department: Dept, *, is_known: bool
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
        yield from wrong_target(first, path, department)


def wrong_target(first: LogEntry, path: tuple[Role, ...], department: Dept) -> Iterator[Finding]:
    """Yield what is wrong with the addressee of a report: only a security FAIL goes further up."""
    may_bypass = first.role is Role.SECURITY and first.move == "fail" and first.to is Role.USER
    if first.to is None:
        yield unknown(first, first.target, "tgt")
    elif first.to is not path[1] and not may_bypass:
        rule = rule_broken(first.role, first.to)
        message = f"{path[0].label} does not escalate to {first.to.label}"
        yield refused(first, rule, "/tgt", message, f"Ask {path[1].label}.")
    elif _is_said_of_another(first.target, department):
        yield _foreign_target(first, department, path[1])


def _is_said_of_another(name: str, department: Dept) -> bool:
    """Return whether a name says that its agent is of another department."""
    return department_said(name) not in (None, department)


def _foreign_target(line: LogEntry, department: Dept, to: Role) -> Finding:
    """Return the finding that a line is addressed to the role of another department."""
    message = f"{line.target} is not in {department}, which owns this escalation"
    hint = f"It belongs to {name_in(to, department)}."
    return refused(line, Rule.DIRECT_REPORT, "/tgt", message, hint)


def advance(escalation: EscalationProgress, line: LogEntry, known: EscalationLog) -> Step:
    """Return the escalation after one more line, or unchanged with why the line does not count."""
    if line.role is None:
        return escalation, (unknown(line, line.agent, "agent"),)
    if _is_foreign(escalation, line):
        message = f"{line.agent} is not in {escalation.department}, which owns this escalation"
        hint = _hint_for_own(line, known) or "Departments speak through their Leads."
        hint = f"It is with {escalation.agent}. {hint}"
        return escalation, (
            finding(Reason.WRONG_LEVEL, line, "/agent", message, escalation.agent, hint),
        )
    if line.state == "open":
        return _report(escalation, line, known)
    return _move_down(escalation, line) if line.goes_down else _move_up(escalation, line)


def _is_foreign(escalation: EscalationProgress, line: LogEntry) -> bool:
    is_known = department_row(escalation.department) is not None
    return is_known and _is_said_of_another(line.agent, escalation.department)


def _hint_for_own(line: LogEntry, known: EscalationLog) -> str:
    """Return where a line belongs that is about another department's task of that number; empty if
    it belongs here.
    """
    own = known.name_for(line.id.task, line.agent)
    return "" if own == line.id else f"Report your own task of that number as {own}."


def _report(escalation: EscalationProgress, line: LogEntry, known: EscalationLog) -> Step:
    if escalation.is_open and not escalation.is_told:
        message = f"{escalation.id} is open already"
        hint = f"It is with {escalation.agent}: add what is new there."
        if own := _hint_for_own(line, known):
            hint = f"It is with {escalation.agent}. {own}"
        return escalation, (
            finding(Reason.DUPLICATE_ID, line, "/id", message, "one escalation for one task", hint),
        )
    path = path_of(line.role, known.mode)
    if not path:
        return escalation, (
            refused(
                line,
                Rule.DIRECT_REPORT,
                "/agent",
                f"{line.agent} reports to nobody",
                whom_to_ask(escalation),
            ),
        )
    again = escalation._replace(
        standing=EscalationStage.RISING,
        path=path,
        holder=path[1],
        attempt=escalation.attempt + 1,
        reminded=False,
        decision="",
        instructions=(),
        claimed=False,
    )
    if escalation.round_trips >= known.rules.max_round_trips:
        return again._replace(standing=EscalationStage.STOPPED, holder=Role.USER), ()
    return again, tuple(wrong_target(line, path, escalation.department))


def _move_up(escalation: EscalationProgress, line: LogEntry) -> Step:
    if line.move == "remind":
        return _apply_reminder(escalation, line)
    if escalation.standing is EscalationStage.STOPPED:
        message = f"{escalation.id} went up and came back {escalation.round_trips} times"
        return escalation, (
            finding(Reason.STATE_CONFLICT, line, "/st", message, "a decision of the user", ""),
        )
    if escalation.standing is not EscalationStage.RISING:
        message = f"{escalation.id} is {escalation.standing}: there is nothing to raise"
        return escalation, (
            finding(
                Reason.STATE_CONFLICT,
                line,
                "/st",
                message,
                escalation.owed,
                whom_to_ask(escalation),
            ),
        )
    if (
        line.role is not escalation.holder
        or (line.attempt or escalation.attempt) != escalation.attempt
    ):
        return escalation, (not_holder(escalation, line, "raise"),)
    above = escalation.above(escalation.holder)
    if line.to is None or line.to is not above:
        return escalation, (_report_skip(escalation, line, above),)
    if _is_said_of_another(line.target, escalation.department):
        return escalation, (_foreign_target(line, escalation.department, above),)
    return escalation._replace(holder=line.to, reminded=False), ()


def _apply_reminder(escalation: EscalationProgress, line: LogEntry) -> Step:
    is_due = (
        escalation.standing in (EscalationStage.RISING, EscalationStage.DESCENDING)
        and not escalation.reminded
    )
    if is_due and line.to is escalation.holder and line.attempt in (None, escalation.attempt):
        return escalation._replace(reminded=True), ()
    message = f"no reminder of {escalation.id} is due from this line"
    return escalation, (
        finding(
            Reason.WRONG_LEVEL, line, "/tgt", message, escalation.agent, whom_to_ask(escalation)
        ),
    )


def _report_skip(escalation: EscalationProgress, line: LogEntry, above: Role | None) -> Finding:
    if line.to is None:
        return unknown(line, line.target, "tgt")
    if above is None:
        message = f"{escalation.holder.label} is the last level"
        return finding(
            Reason.WRONG_LEVEL, line, "/tgt", message, "a decision", whom_to_ask(escalation)
        )
    message = f"{escalation.holder.label} does not escalate to {line.to.label}"
    return refused(
        line,
        rule_broken(escalation.holder, line.to),
        "/tgt",
        message,
        f"Ask {name_in(above, escalation.department)}.",
    )


def _move_down(escalation: EscalationProgress, line: LogEntry) -> Step:
    if escalation.standing is EscalationStage.RESOLVED:
        message = f"{escalation.id} is resolved already"
        hint = "If the task is blocked again, open it again."
        return escalation, (
            finding(
                Reason.STATE_CONFLICT,
                line,
                "/st",
                message,
                f"its decision: {escalation.decision}",
                hint,
            ),
        )
    if line.shown_by:
        return _resume(escalation, line)
    if line.role is not escalation.holder:
        return escalation, (
            _report_second_decision(escalation, line)
            if _was_asked(escalation, line)
            else not_holder(escalation, line, "resolve"),
        )
    if escalation.holder is escalation.origin:
        return _claim(escalation, line)
    if line.to in escalation.path and escalation.path.index(line.to) >= escalation.path.index(
        escalation.holder
    ):
        return escalation, (_upward(escalation, line),)
    return _hand_down(escalation, line)


def _claim(escalation: EscalationProgress, line: LogEntry) -> Step:
    if line.state == "resolved":
        return escalation._replace(claimed=True), ()
    message = f"nothing shows that {escalation.id.task} continues"
    hint = "Commit, and name the commit; or report your progress."
    return escalation, (
        finding(
            Reason.MISSING_KEY, line, "/ref", message, "the commit that carries the task on", hint
        ),
    )


def _hand_down(escalation: EscalationProgress, line: LogEntry) -> Step:
    below = escalation.below(escalation.holder)
    was_decided = escalation.standing is EscalationStage.DESCENDING
    moved = escalation._replace(
        standing=EscalationStage.DESCENDING,
        holder=below,
        reminded=False,
        decision=escalation.decision if was_decided else line.decision,
        instructions=line.instructions or escalation.instructions,
        round_trips=escalation.round_trips + (below is escalation.origin),
        claimed=escalation.claimed or line.state == "resolved",
    )
    if line.to is below:
        is_foreign = _is_said_of_another(line.target, escalation.department)
        other = _foreign_target(line, escalation.department, below)
        return moved, (replace(other, level=Level.WARNING),) if is_foreign else ()
    message = f"a resolution goes down level by level, {escalation.holder.label} to {below.label}"
    hint = f"{name_in(below, escalation.department)} has it now."
    warning = finding(
        Reason.WRONG_LEVEL, line, "/tgt", message, name_in(below, escalation.department), hint
    )
    return moved, (replace(warning, level=Level.WARNING),)


def _resume(escalation: EscalationProgress, line: LogEntry) -> Step:
    is_over = line.move == OVER and escalation.origin is not Role.DEV
    if (
        is_over
        or escalation.is_told
        or (escalation.claimed and escalation.standing is EscalationStage.DESCENDING)
    ):
        return escalation._replace(
            standing=EscalationStage.RESOLVED, reminded=False, claimed=False
        ), ()
    message = (
        f"{escalation.id} is {escalation.standing}, with {escalation.agent}: "
        f"{escalation.origin.label} does not have a decision yet"
    )
    return escalation, (
        finding(
            Reason.STATE_CONFLICT, line, "/ref", message, escalation.owed, whom_to_ask(escalation)
        ),
    )


def _was_asked(escalation: EscalationProgress, line: LogEntry) -> bool:
    """Return whether the line's level has already had its turn: a decision is made only once."""
    above = escalation.path[escalation.path.index(escalation.holder) :]
    return escalation.standing is EscalationStage.DESCENDING and line.role in above


def _decides_otherwise(escalation: EscalationProgress, line: LogEntry) -> bool:
    """Return whether a line that passes a decision on says another one. The fold keeps the first;
    those who read the log would see both.
    """
    is_passed_on = line.goes_down and not line.shown_by and bool(escalation.decision)
    return is_passed_on and line.decision.split() != escalation.decision.split()


def _report_second_decision(escalation: EscalationProgress, line: LogEntry) -> Finding:
    message = f"{escalation.id} is decided already: {escalation.decision}"
    hint = (
        f"{whom_to_ask(escalation)} If the decision does not work, "
        f"{escalation.origin.label} opens it again."
    )
    return finding(Reason.STATE_CONFLICT, line, "/res", message, "one decision", hint)


def _upward(escalation: EscalationProgress, line: LogEntry) -> Finding:
    message = f"a resolution goes downward only, not from {line.agent} to {line.target}"
    expected = name_in(escalation.below(escalation.holder), escalation.department)
    return finding(
        Reason.WRONG_LEVEL, line, "/tgt", message, expected, "To ask the next level up, raise it."
    )


def wanting(escalation: EscalationProgress, line: LogEntry) -> Iterator[Finding]:
    """Yield what a level owes and does not say: evidence, a recommendation, later options; further
    down, the decision as it was taken.
    """
    if _decides_otherwise(escalation, line):
        yield _report_second_decision(escalation, line)
    if line.goes_down or line.move:
        return
    if not line.evidence:
        yield refused(
            line,
            Rule.EVIDENCE,
            "/ev",
            "there is no evidence",
            "Add what was seen or tried (--evidence).",
        )
    if not line.recommendation:
        yield refused(
            line,
            Rule.EVIDENCE,
            "/rec",
            "there is no recommendation",
            "Add what you would do (--recommendation).",
        )
    if (
        line.role is Role.ARCHITECT
        and line.role is not escalation.origin
        and not 2 <= len(line.options) <= 3
    ):
        message = f"{len(line.options)} options"
        hint = "The Architect constructs 2 to 3 concrete options."
        yield finding(Reason.MISSING_KEY, line, "/opts", message, "2 or 3 options", hint)
