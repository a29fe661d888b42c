"""Who may raise, decide, pass on and resume an escalation; every refusal names the rule and whom to ask.

A refused line leaves the escalation where it was. See docs/sources.md#document-000 and
#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from yolo_fs.protocol.departments import department as department_row
from yolo_fs.protocol.departments import name_in
from yolo_fs.protocol.escalation import Rule
from yolo_fs.protocol.names import Role
from yolo_fs.protocol.roster import department_said
from yolo_fs.reasons import Finding, Level, Reason
from yolo_fs.rules.escalations.beginning import Step, path_of, wrong_target
from yolo_fs.rules.escalations.log import Logged, Station
from yolo_fs.rules.escalations.progress import EscalationProgress, Standing
from yolo_fs.rules.escalations.refusals import (
    finding,
    not_holder,
    refused,
    rule_broken,
    unknown,
    whom_to_ask,
)

# --- one line further ---


def advance(one: EscalationProgress, line: Station, known: Logged) -> Step:
    """Return the escalation after one more line, or the same with the reason why the line does not count."""
    if line.role is None:
        return one, (unknown(line, line.agent, "agent"),)
    if _is_foreign(one, line):
        message = f"{line.agent} is not of {one.department}, whose escalation it is"
        hint = f"{one.agent} holds it. Departments speak through their Leads."
        return one, (finding(Reason.WRONG_LEVEL, line, "/agent", message, one.agent, hint),)
    if line.state == "open":
        return _report(one, line, known)
    return _down(one, line) if line.goes_down else _up(one, line)


def _is_foreign(one: EscalationProgress, line: Station) -> bool:
    said, row = department_said(line.agent), department_row(one.department)
    return said is not None and said is not one.department and row is not None


def _report(one: EscalationProgress, line: Station, known: Logged) -> Step:
    came_back = one.standing is Standing.DESCENDING and one.holder is one.origin
    if one.is_open and not came_back:
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
    again = replace(
        one,
        standing=Standing.RISING,
        path=path,
        holder=path[1],
        attempt=one.attempt + 1,
        reminded=False,
        decision="",
        instructions=(),
        claimed=False,
    )
    if one.round_trips >= known.rules.max_round_trips:
        return replace(again, standing=Standing.STOPPED, holder=Role.USER), ()
    return again, tuple(wrong_target(line, path))


def _up(one: EscalationProgress, line: Station) -> Step:
    if line.move == "remind":
        return _reminder(one, line)
    if one.standing is Standing.STOPPED:
        message = f"{one.id} went up and came back {one.round_trips} times"
        return one, (
            finding(Reason.STATE_CONFLICT, line, "/st", message, "a decision of the user", ""),
        )
    if one.standing is not Standing.RISING:
        message = f"{one.id} is {one.standing}: there is nothing to raise"
        return one, (
            finding(Reason.STATE_CONFLICT, line, "/st", message, one.owed, whom_to_ask(one)),
        )
    if line.role is not one.holder or (line.attempt or one.attempt) != one.attempt:
        return one, (not_holder(one, line, "raise"),)
    above = one.above(one.holder)
    if line.to is None or line.to is not above:
        return one, (_skips(one, line, above),)
    return replace(one, holder=line.to, reminded=False), ()


def _reminder(one: EscalationProgress, line: Station) -> Step:
    is_due = one.standing in (Standing.RISING, Standing.DESCENDING) and not one.reminded
    if is_due and line.to is one.holder and line.attempt in (None, one.attempt):
        return replace(one, reminded=True), ()
    message = f"nobody is to be reminded of {one.id} by this line"
    return one, (finding(Reason.WRONG_LEVEL, line, "/tgt", message, one.agent, whom_to_ask(one)),)


def _skips(one: EscalationProgress, line: Station, above: Role | None) -> Finding:
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


# --- down again ---


def _down(one: EscalationProgress, line: Station) -> Step:
    if one.standing is Standing.RESOLVED:
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


def _claim(one: EscalationProgress, line: Station) -> Step:
    if line.state == "resolved":
        return replace(one, claimed=True), ()
    message = f"nothing shows that {one.id.task} goes on"
    hint = "Commit, and name the commit; or report your progress."
    return one, (
        finding(
            Reason.MISSING_KEY, line, "/ref", message, "the commit that carries the task on", hint
        ),
    )


def _handed_down(one: EscalationProgress, line: Station) -> Step:
    below = one.below(one.holder)
    was_decided = one.standing is Standing.DESCENDING
    moved = replace(
        one,
        standing=Standing.DESCENDING,
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


def _resume(one: EscalationProgress, line: Station) -> Step:
    if one.standing is Standing.DESCENDING and (one.holder is one.origin or one.claimed):
        return replace(one, standing=Standing.RESOLVED, reminded=False, claimed=False), ()
    message = f"{one.id} is {one.standing}, held by {one.agent}: nobody has told {one.origin.label} yet how to go on"
    return one, (finding(Reason.STATE_CONFLICT, line, "/ref", message, one.owed, whom_to_ask(one)),)


def _was_asked(one: EscalationProgress, line: Station) -> bool:
    """Tell whether the level had its say: what was decided is decided once."""
    above = one.path[one.path.index(one.holder) :]
    return one.standing is Standing.DESCENDING and line.role in above


def _second_decision(one: EscalationProgress, line: Station) -> Finding:
    message = f"{one.id} is decided already: {one.decision}"
    hint = f"{whom_to_ask(one)} If the decision does not work, {one.origin.label} opens it again."
    return finding(Reason.STATE_CONFLICT, line, "/res", message, "one decision", hint)


def _upward(one: EscalationProgress, line: Station) -> Finding:
    message = f"a resolution goes downward only, not from {line.agent} to {line.target}"
    expected = name_in(one.below(one.holder), one.department)
    return finding(
        Reason.WRONG_LEVEL, line, "/tgt", message, expected, "To ask those above, raise it."
    )


def wanting(one: EscalationProgress, line: Station) -> Iterator[Finding]:
    """Yield what a level owes and does not say: evidence, a recommendation, and options from the Architect on."""
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
