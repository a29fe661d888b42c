"""Who may write to whom, whatever the message, and who escalates to whom. Pure.

Only neighbours in the chain speak with each other, Leads across departments, and the Owner's proxy
with the user. See docs/sources.md#document-002.
"""

from __future__ import annotations

from yolo_fs.protocol.departments import WORKING_NAMES, barrier_between
from yolo_fs.protocol.escalation import ESCALATES_BY_ROLE, RULES, Rule
from yolo_fs.protocol.names import Mode, Role
from yolo_fs.protocol.routes import ROUTES, ROUTING_RULES
from yolo_fs.rules.authz.actors import (
    AccessDecision,
    Actor,
    refusal,
    reports_to,
    rule_of,
    superiors,
)

LEADS_ONLY = (
    "Cross-department communication goes through department Leads only. Individual agents "
    "NEVER message across "
    "department boundaries. Rule: Department Escalation."
)
NO_UX_TO_BACKEND = (
    "Backend and UI/UX never write to each other directly: Frontend relays relevant information. "
    "Rule: Cross-Department Context Isolation."
)
OWNER_AND_LEADS = "The Owner speaks with department Leads (owner_review, owner_signoff)."
_CHAIN = "Rule: Escalation Chain."
_FAIL = "fail"
_PROXIES = (Role.OWNER, Role.GO)


def _rule(which: Rule) -> str:
    row = next(row for row in RULES if row.rule is which)
    return f"{row.head} {row.text} {rule_of(row.source)}"


# --- freely ---------------------------------------------------------------------------------------


def may_contact(sender: Actor, receiver: Actor) -> AccessDecision:
    """Return whether somebody may write to somebody else at all, whatever the message."""
    if sender == receiver:
        return AccessDecision(True, "Nobody needs leave to note something down.")
    for forbidden in (_user_is_reached_by_proxy, _departments_are_apart):
        if answer := forbidden(sender, receiver):
            return answer
    if rule := _why_linked(sender, receiver) or _why_linked(receiver, sender):
        return AccessDecision(True, rule)
    rule = _why_not(sender.role, receiver.role)
    between = _between(sender, receiver)
    return (
        AccessDecision(False, rule, (receiver.peer(between).name,))
        if between
        else refusal(sender, rule)
    )


def _between(sender: Actor, receiver: Actor) -> Role | None:
    """Return through whom somebody speaks with those below; None when the receiver is not below."""
    above = [one.role for one in superiors(receiver)]
    if sender.role in _PROXIES and Role.LEAD in above:
        return Role.LEAD
    place = above.index(sender.role) if sender.role in above else 0
    return above[place - 1] if place else None


def _user_is_reached_by_proxy(sender: Actor, receiver: Actor) -> AccessDecision | None:
    if Role.USER not in (sender.role, receiver.role):
        return None
    other = receiver if sender.role is Role.USER else sender
    rule = _rule(Rule.OWNER_TO_USER_ONLY)
    if other.role in _PROXIES:
        return AccessDecision(True, rule)
    is_last = other.role is Role.ARCHITECT and other.mode is Mode.SINGLE
    return refusal(sender, rule, *((Role.GO,) if is_last or sender.role is Role.USER else ()))


def _departments_are_apart(sender: Actor, receiver: Actor) -> AccessDecision | None:
    if not is_across(sender, receiver):
        return None
    if {sender.role, receiver.role} != {Role.LEAD}:
        ask = reports_to(sender) if sender.role is not Role.LEAD else Role.LEAD
        return _towards(sender, receiver, LEADS_ONLY, ask)
    if barrier := barrier_between(sender.department, receiver.department):
        return AccessDecision(False, NO_UX_TO_BACKEND, (Actor(Role.LEAD, barrier.relay).name,), ())
    return AccessDecision(True, LEADS_ONLY)


def _towards(sender: Actor, receiver: Actor, rule: str, ask: Role | None) -> AccessDecision:
    """Return a no with the way that is open: a Lead asks the other Lead, anybody else goes up to
    his own.
    """
    if ask is None or sender.role is not Role.LEAD:
        return refusal(sender, rule)
    return AccessDecision(False, rule, (receiver.peer(Role.LEAD).name,), ())


def is_across(one: Actor, other: Actor) -> bool:
    both = (one.department in WORKING_NAMES, other.department in WORKING_NAMES)
    return all(both) and one.department is not other.department


def _why_linked(low: Actor, high: Actor) -> str:
    """Return the rule by which two speak with each other, seen from the lower one; nothing when
    none lets them.
    """
    if reports_to(low) is high.role:
        return f"{low.role.label} reports to {high.role.label}. {_CHAIN}"
    if low.role is Role.LEAD and high.role is Role.OWNER:
        return OWNER_AND_LEADS
    if high.role is Role.GO and low.role is Role.OWNER:
        return _rule(Rule.OWNER_TO_USER_ONLY)
    if high.role is Role.GO and low.role is Role.ARCHITECT and low.mode is Mode.SINGLE:
        return _rule(Rule.OWNER_TO_USER_ONLY)
    route = next((row for row in ROUTES if row.entry is high.role and low.role in row.spawns), None)
    return (
        f"{route.entry.label} spawns {low.role.label} for {route.command}. {rule_of(route.source)}"
        if route
        else ""
    )


def _why_not(sender: Role, receiver: Role) -> str:
    if sender is Role.GO:
        return (
            " ".join(row.text for row in ROUTING_RULES[1:3])
            + f" {rule_of(ROUTING_RULES[2].source)}"
        )
    if sender is Role.DEV:
        return _rule(Rule.DEV_TO_SENIOR_ONLY)
    if receiver is Role.ARCHITECT and sender in (Role.QA, Role.QA_CODE, Role.TESTER):
        return _rule(Rule.QA_NOT_TO_ARCHITECT)
    if receiver is Role.USER:
        return _rule(Rule.OWNER_TO_USER_ONLY)
    row = ESCALATES_BY_ROLE.get(sender)
    note = f" {row.role.label}: {row.notes}." if row and "NEVER" in row.notes else ""
    return f"{_rule(Rule.DIRECT_REPORT)}{note}"


# --- to escalate ----------------------------------------------------------------------------------


def may_escalate(sender: Actor, receiver: Actor, *, is_fail: bool = False) -> AccessDecision:
    """Return whether an issue may go from one to the other; `is_fail`: it is the FAIL of a security
    audit.
    """
    row = ESCALATES_BY_ROLE.get(sender.role)
    if row and row.on_fail:
        if is_fail:
            return _bypass(sender, receiver, row.on_fail)
        if receiver.role is row.on_fail:
            return refusal(
                sender,
                f"{_rule(Rule.SECURITY_FAIL_BYPASSES)} `may security escalate FAIL` asks for that.",
            )
    above = reports_to(sender)
    if above is None:
        return AccessDecision(False, f"Nobody stands above the user. {_CHAIN}")
    by_proxy = receiver.role is Role.GO and above is Role.USER and sender.role is not Role.GO
    if receiver.role is not above and not by_proxy:
        return refusal(sender, _why_not(sender.role, receiver.role))
    if is_across(sender, receiver):
        return refusal(sender, LEADS_ONLY)
    way = (
        " through go.md, the Owner's proxy"
        if above is Role.USER and sender.role is not Role.GO
        else ""
    )
    return AccessDecision(True, f"{sender.role.label} escalates to {above.label}{way}. {_CHAIN}")


def escalation_of(sender: Actor, occasion: str) -> AccessDecision:
    """Tell to whom an occasion goes, such as `2 task failures`, and what is brought along."""
    row = ESCALATES_BY_ROLE.get(sender.role)
    is_fail = _FAIL in occasion.lower().split() and row is not None and row.on_fail is not None
    above = row.on_fail if is_fail and row else reports_to(sender)
    if above is None:
        return AccessDecision(False, f"Nobody stands above the user. {_CHAIN}")
    if is_fail:
        rule = _rule(Rule.SECURITY_FAIL_BYPASSES)
    elif row and occasion.lower() in (trigger.lower() for trigger in row.triggers):
        rule = (
            f"{row.role.label} escalates to {above.label}: {', '.join(row.triggers)}. "
            f"{rule_of(row.source)}"
        )
    else:
        rule = _rule(Rule.LANE)
    return AccessDecision(
        True, rule, (sender.peer(above).name,), ("issue", "evidence", "recommendation")
    )


def _bypass(sender: Actor, receiver: Actor, to: Role) -> AccessDecision:
    rule = _rule(Rule.SECURITY_FAIL_BYPASSES)
    return (
        AccessDecision(True, rule)
        if receiver.role in (to, *_PROXIES)
        else refusal(sender, rule, to)
    )
