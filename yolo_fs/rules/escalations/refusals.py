"""What is said of a line that an escalation does not take: the rule that it breaks, and whom to ask instead. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from yolo_fs.protocol.escalation import RULES, Rule
from yolo_fs.protocol.names import Role
from yolo_fs.reasons import Finding, Reason
from yolo_fs.rules.escalations.log import LOG, Station
from yolo_fs.rules.escalations.progress import EscalationProgress

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


def not_holder(one: EscalationProgress, line: Station, verb: str) -> Finding:
    """Say that it is another's turn, or another attempt's."""
    is_late = line.role is one.holder
    message = f"{line.agent} may not {verb} {one.id}: {one.agent} holds it, attempt {one.attempt}"
    hint = whom_to_ask(one) if not is_late else f"This line speaks of attempt {line.attempt}."
    return finding(Reason.WRONG_LEVEL, line, "/agent", message, one.agent, hint)


def unknown(line: Station, name: str, key: str) -> Finding:
    """Say that nobody has the name that stands under a key."""
    hint = "Name a role of the roster, such as dev, fe-senior or lead."
    return finding(
        Reason.UNKNOWN_NAME, line, f"/{key}", f"nobody is called {name!r}", "a role", hint
    )


def refused(line: Station, rule: Rule, at: str, message: str, hint: str) -> Finding:
    """Say which of the rules a line breaks."""
    row = _RULE[rule]
    reason = Reason.MISSING_KEY if rule is Rule.EVIDENCE else Reason.WRONG_LEVEL
    return finding(
        reason, line, at, message, f"rule {row.number}: {row.head} {row.text}".rstrip("."), hint
    )


def finding(
    reason: Reason, line: Station, at: str, message: str, expected: str, hint: str
) -> Finding:
    """Say what is wrong with a line of the log. `at`: JSON pointer of the key."""
    return Finding(reason, LOG, line.number, at, message, expected, hint)
