"""The actor of a permission check, whom it reports to, and whom it may write to at all; and the
form of the decision. Pure.

Only neighbours in the chain communicate, Leads across departments, and the Owner's proxy with the
user. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.protocol.authority import ROUTES, ROUTING_RULES
from yolo_fs.protocol.departments import (
    DEFAULT_DEPARTMENT,
    WORKING_NAMES,
    Dept,
    Mode,
    Role,
    barrier_between,
    name_in,
)
from yolo_fs.protocol.escalation import CHAINS, ESCALATES_BY_ROLE, RULES, Rule
from yolo_fs.protocol.handoffs import DirectiveRole
from yolo_fs.protocol.roster import AGENT_BY_NAME, Agent, bare_name, hint_for_agent

BRING = ("the question or blocker", "the relevant context of your work", "your recommendation")


class AccessDecision(NamedTuple):
    """Whether something is allowed, and why."""

    allowed: bool
    rule: str
    """The deciding rule, with its name."""
    ask: tuple[str, ...] = ()
    """Whom to ask instead, nearest first."""
    bring: tuple[str, ...] = ()
    """What to bring along."""


class Actor(NamedTuple):
    """A role, in a department."""

    role: Role
    department: Dept | None = None
    """Backend, frontend or uiux; None for a role that belongs to no single one of them."""
    mode: Mode = Mode.SINGLE

    @property
    def name(self) -> str:
        """Name of the agent, such as `fe-lead`; the role where there is no agent."""
        return name_in(self.role, self.department)

    @property
    def agent(self) -> Agent | None:
        """The agent's row of the roster; None for the user and their proxy."""
        return AGENT_BY_NAME.get(self.name)

    def answers_for(self, place: ArtifactPath) -> bool:
        """Return whether an artifact is what this agent produces, in its own department."""
        produced = self.agent.produces if self.agent else ()
        return self.department in (None, place.department) and any(
            place.name.endswith(ending) for ending in produced
        )

    def peer(self, role: Role) -> Actor:
        """Return the actor of another role in the same department."""
        return self._replace(role=role)


_OUTSIDE_CHAIN: Mapping[Role, Role] = {
    Role.ANALYZE: Role.GO,  # "Ambiguous intent → go.md prompts user"
    Role.PO: Role.GO,  # `po_qa_verdict` (PO -> Orchestrator)
    Role.QUESTIONARY: Role.PO,  # "PO → Questionary → PO"
    Role.ROADMAP: Role.PO,  # "→ Roadmap (roadmap_plan) → PO"
    Role.INTEGRATION_GATE: Role.LEAD,  # "integration-gate-result.jsonl → Lead/Owner"
    Role.OWNER: Role.USER,
    Role.GO: Role.USER,
}
"""Report-tos of the roles that the escalation table omits."""

_OTHER_NAMES = {
    "go": Role.GO,
    "orchestrator": Role.GO,
    **{role.label.lower().replace(" ", "-"): role for role in Role},
}
_INSTANCE = re.compile(r"-[0-9]+")


def mode_of(options: WorkflowOptions) -> Mode:
    """Return the mode: one active department or several."""
    return Mode.MULTI if options.several_departments else Mode.SINGLE


def reports_to(actor: Actor) -> Role | None:
    """Return the role that a role directly reports to; None for the user."""
    chain = next(row for row in CHAINS if row.mode is actor.mode)
    if above := chain.above(actor.role):
        return above
    row = ESCALATES_BY_ROLE.get(actor.role)
    if row is not None:
        return row.to
    if actor.role is Role.INTEGRATION_GATE and actor.mode is Mode.MULTI:
        return Role.OWNER
    return _OUTSIDE_CHAIN.get(actor.role)


def superiors(actor: Actor) -> Iterator[Actor]:
    """Yield the report-to of an actor, and so on up to the user."""
    above = reports_to(actor)
    while above is not None:
        actor = actor.peer(above)
        yield actor
        above = reports_to(actor)


def rule_of(source: str) -> str:
    """Return the sentence with which a message cites the rule behind a row."""
    return f"Rule: {section_of(source)}."


def section_of(source: str) -> str:
    """Return the section of the document behind a row, or the whole source."""
    section = re.search(r'"([^"]+)"', source)
    return section[1] if section else source


def refusal(actor: Actor, rule: str, *ask: Role) -> AccessDecision:
    """Return a refusal that names whom to ask: the direct report-to, or the roles in `ask`.

    A role that the actor may not contact is preceded by the next one on the way there.
    """
    above = reports_to(actor)
    roles = ask or ((above,) if above else ())
    way = (contact.name for role in roles for contact in _next_contact_to(actor, actor.peer(role)))
    return AccessDecision(False, rule, tuple(dict.fromkeys(way)), BRING)


def among_those_at_work(
    answer: AccessDecision, actor: Actor | None, options: WorkflowOptions
) -> AccessDecision:
    """Return a refusal that sends to nobody who is not there: an agent of a department that is off,
    or the Owner of one department alone. Without them, the report-to is asked.

    Whoever serves all departments is sent to the one at work where the default one is off.

    `actor`: None for a caller that has not identified itself.
    """
    if answer.allowed:
        return answer
    own = actor.department if actor else None
    off = {department for department in map(_second_of, answer.ask) if department} - {
        own,
        *options.departments,
    }
    is_gone = not options.several_departments and not is_second(own)
    ask = tuple(
        name
        for name in answer.ask
        if _second_of(name) not in off and not (is_gone and name == Role.OWNER)
    )
    rule = answer.rule + "".join(f" {name} is off in config.json." for name in sorted(off))
    if ask or not answer.ask:
        sent = answer._replace(rule=rule, ask=ask)
    else:
        sent = refusal(actor, rule) if actor else AccessDecision(False, rule, (Role.USER,))
    if own is DEFAULT_DEPARTMENT:
        return sent
    ask = tuple(dict.fromkeys(name_at_work(name, options) for name in sent.ask))
    rule = _RECEIVER.sub(lambda name: name_at_work(name[0], options), sent.rule)
    return sent._replace(rule=rule, ask=ask)


_RECEIVER = re.compile(r"(?<= its findings to )[\w.-]+")


def name_at_work(name: str, options: WorkflowOptions) -> str:
    """Return the name of an agent; where the default department is off, that of its counterpart in
    the first department at work.
    """
    row, departments = AGENT_BY_NAME.get(name), options.departments
    if row is None or row.department is not DEFAULT_DEPARTMENT or row.department in departments:
        return name
    return name_in(row.role, departments[0])


def _second_of(name: str) -> Dept | None:
    """Return the department of an agent that may be off while the backend works."""
    row = AGENT_BY_NAME.get(name)
    return row.department if row and is_second(row.department) else None


def _next_contact_to(actor: Actor, goal: Actor) -> Iterator[Actor]:
    """Yield the actor to write to on the way to a goal, then the goal."""
    above, row = reports_to(actor), ESCALATES_BY_ROLE.get(actor.role)
    if row and row.on_fail is goal.role:  # a FAIL goes there at once
        yield goal
        return
    steps = (goal, *((actor.peer(above),) if above else ()), actor.peer(Role.GO))
    yield next((contact for contact in steps if _open_way(actor, contact)), goal)
    yield goal


def department_of(name: str) -> Dept | None:
    """Return the working department of a name, or None."""
    return next((dept for dept in WORKING_NAMES if dept == name), None)


def find_department(name: str) -> Dept:
    """Return the department of a name.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    department = department_of(name)
    if department is None:
        hint = f"The departments are {', '.join(WORKING_NAMES)}."
        raise YoloError(Reason.UNKNOWN_NAME, f"no department {safe(name)!r}", hint=hint)
    return department


def department_at_work(name: str, options: WorkflowOptions) -> Dept:
    """Return the department of a name; the first one at work where the name is empty.

    Raises:
        YoloError: UNKNOWN_NAME, also for one that is off.
    """
    department = find_department(name) if name else options.departments[0]
    if department not in options.departments:
        hint = f"At work are {', '.join(options.departments)}."
        message = f"{department} is off in config.json"
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint)
    return department


def find_actor(name: str, department: Dept | None = None, mode: Mode = Mode.SINGLE) -> Actor:
    """Return the actor of a name: a role, its label, an agent, or an instance such as `dev-1`.

    An agent's name may lack `yolo-`.

    Raises:
        YoloError: UNKNOWN_NAME when there is nobody of that name in that department.
    """
    spelled = (
        _INSTANCE.sub("", name.strip().lower())
        .removeprefix("yolo-")
        .replace(" ", "-")
        .replace("_", "-")
    )
    agent = AGENT_BY_NAME.get(spelled)
    role = agent.role if agent else _OTHER_NAMES.get(spelled)
    if role is None:
        raise _error_for_unknown_agent(name)
    own = agent.department if agent and agent.department in WORKING_NAMES else None
    if own is DEFAULT_DEPARTMENT and department is not None:
        own = department  # a bare role name means the one of the department that is asked about
    if own is not None and department not in (None, own):
        raise _error_for_unknown_agent(name, f" in {department}")
    return Actor(role, own or department, _mode(role, own or department, mode))


def meant_by(actor: Actor, name: str) -> Actor:
    """Return the actor that a name means for another: `senior` is the one of its own department.

    `yolo-senior` is the backend's. For a Lead, `lead` does not mean itself.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    meant = find_actor(name, None, actor.mode)
    if (
        actor.department is None
        or meant.department not in (None, DEFAULT_DEPARTMENT)
        or name.startswith("yolo-")
    ):
        return meant
    own = meant._replace(department=actor.department, mode=actor.mode)
    return meant if own == actor else own


def _mode(role: Role, department: Dept | None, otherwise: Mode) -> Mode:
    """Return the mode: a second department or an Owner exists only if several are active."""
    return Mode.MULTI if role is Role.OWNER or is_second(department) else otherwise


def is_second(department: Dept | None) -> bool:
    """Return whether a department is active only if several are."""
    return department in WORKING_NAMES and department is not DEFAULT_DEPARTMENT


def _error_for_unknown_agent(name: str, where: str = "") -> YoloError:
    hint = hint_for_agent(name, (Role.GO, Role.USER))
    return YoloError(Reason.UNKNOWN_NAME, f"unknown agent {safe(name)!r}{where}", hint=hint)


LEADS_ONLY = (
    "Cross-department communication goes through department Leads only. Individual agents "
    "NEVER message across department boundaries. Rule: Department Escalation."
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


def may_contact(sender: Actor, receiver: Actor) -> AccessDecision:
    """Return whether an actor may write to another at all, whatever the message."""
    if rule := _open_way(sender, receiver):
        return AccessDecision(True, rule)
    for forbidden in (_refuse_user_contact, _refuse_across_departments):
        if answer := forbidden(sender, receiver):
            return answer
    rule = _explain_refusal(sender.role, receiver.role)
    between = _role_between(sender, receiver)
    if between is None:
        return refusal(sender, rule)
    beside = receiver if receiver.department else sender
    return AccessDecision(False, rule, (beside.peer(between).name,))


def _open_way(sender: Actor, receiver: Actor) -> str:
    """Return the rule by which two may write to each other; empty if there is none."""
    if sender == receiver:
        return "Anybody may record that."
    if Role.USER in (sender.role, receiver.role):
        other = receiver if sender.role is Role.USER else sender
        return _rule(Rule.OWNER_TO_USER_ONLY) if other.role in _PROXIES else ""
    if is_across(sender, receiver):
        are_leads = {sender.role, receiver.role} == {Role.LEAD}
        barrier = barrier_between(sender.department, receiver.department)
        return LEADS_ONLY if are_leads and not barrier else ""
    return _explain_link(sender, receiver) or _explain_link(receiver, sender)


def _role_between(sender: Actor, receiver: Actor) -> Role | None:
    """Return the role through which an actor reaches a receiver below; None if it is not below."""
    above = [superior.role for superior in superiors(receiver)]
    if sender.role in _PROXIES and Role.LEAD in above:
        return Role.LEAD
    levels = (Role.GO, Role.USER) if sender.role is Role.GO else (sender.role,)
    place = next((place for place, role in enumerate(above) if role in levels), 0)
    return above[place - 1] if place else None


def _refuse_user_contact(sender: Actor, receiver: Actor) -> AccessDecision | None:
    if Role.USER not in (sender.role, receiver.role):
        return None
    other = receiver if sender.role is Role.USER else sender
    rule = _rule(Rule.OWNER_TO_USER_ONLY)
    is_last = other.role is Role.ARCHITECT and other.mode is Mode.SINGLE
    return refusal(sender, rule, *((Role.GO,) if is_last or sender.role is Role.USER else ()))


def _refuse_across_departments(sender: Actor, receiver: Actor) -> AccessDecision | None:
    """Return the refusal between departments, or None.

    A Lead asks the other Lead or the role that relays; others go to their own Lead.
    """
    if not is_across(sender, receiver):
        return None
    barrier = barrier_between(sender.department, receiver.department)
    rule = NO_UX_TO_BACKEND if barrier and receiver.role is Role.LEAD else LEADS_ONLY
    if sender.role is not Role.LEAD:
        return refusal(sender, LEADS_ONLY)
    department = barrier.relay if barrier else receiver.department
    return AccessDecision(False, rule, (Actor(Role.LEAD, department).name,), ())


def is_across(actor: Actor, other: Actor) -> bool:
    both = (actor.department in WORKING_NAMES, other.department in WORKING_NAMES)
    return all(both) and actor.department is not other.department


def _explain_link(low: Actor, high: Actor) -> str:
    """Return the rule by which two may communicate, seen from the lower one; empty if none."""
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


def _explain_refusal(sender: Role, receiver: Role) -> str:
    if sender is Role.GO:
        return (
            " ".join(row.text for row in ROUTING_RULES[1:3])
            + f" {rule_of(ROUTING_RULES[2].source)}"
        )
    rule, row = rule_broken(sender, receiver), ESCALATES_BY_ROLE.get(sender)
    has_note = rule is Rule.DIRECT_REPORT and row is not None and "NEVER" in row.notes
    note = f" {row.role.label}: {row.notes}." if row and has_note else ""
    return f"{_rule(rule)}{note}"


def rule_broken(role: Role | None, to: Role) -> Rule:
    """Return the rule that a role breaks by turning to another that is not its direct report-to."""
    if role is Role.DEV:
        return Rule.DEV_TO_SENIOR_ONLY
    if to is Role.USER:
        return Rule.OWNER_TO_USER_ONLY
    is_quality = role in (Role.QA, Role.QA_CODE, Role.TESTER)
    return Rule.QA_NOT_TO_ARCHITECT if is_quality and to is Role.ARCHITECT else Rule.DIRECT_REPORT


def may_escalate(sender: Actor, receiver: Actor, *, is_fail: bool = False) -> AccessDecision:
    """Return whether an issue may be escalated from one to the other.

    `is_fail`: it is a FAIL of security.
    """
    row = ESCALATES_BY_ROLE.get(sender.role)
    if row and row.on_fail:
        if is_fail:
            return _decide_bypass(sender, receiver, row.on_fail)
        if receiver.role is row.on_fail:
            return refusal(
                sender,
                f"{_rule(Rule.SECURITY_FAIL_BYPASSES)} `may security escalate FAIL` checks that.",
            )
    above = reports_to(sender)
    if above is None:
        return AccessDecision(False, f"The user is the last level. {_CHAIN}")
    by_proxy = receiver.role is Role.GO and above is Role.USER and sender.role is not Role.GO
    if receiver.role is not above and not by_proxy:
        return refusal(sender, _explain_refusal(sender.role, receiver.role))
    if is_across(sender, receiver):
        return refusal(sender, LEADS_ONLY)
    way = (
        " through go.md, the Owner's proxy"
        if above is Role.USER and sender.role is not Role.GO
        else ""
    )
    return AccessDecision(True, f"{sender.role.label} escalates to {above.label}{way}. {_CHAIN}")


def escalation_of(sender: Actor, occasion: str) -> AccessDecision:
    """Return to whom an occasion is escalated, such as `2 task failures`, and what to bring."""
    row = ESCALATES_BY_ROLE.get(sender.role)
    is_fail = _FAIL in occasion.lower().split() and row is not None and row.on_fail is not None
    above = row.on_fail if is_fail and row else reports_to(sender)
    if above is None:
        return AccessDecision(False, f"The user is the last level. {_CHAIN}")
    if is_fail:
        rule = _rule(Rule.SECURITY_FAIL_BYPASSES)
    elif row and occasion.lower() in (trigger.lower() for trigger in row.triggers):
        rule = (
            f"{row.role.label} escalates to {above.label}: {', '.join(row.triggers)}. "
            f"{rule_of(row.source)}"
        )
    else:
        rule = f"{sender.role.label} escalates to {above.label}. {_CHAIN}"
    return AccessDecision(
        True, rule, (sender.peer(above).name,), ("issue", "evidence", "recommendation")
    )


def _decide_bypass(sender: Actor, receiver: Actor, to: Role) -> AccessDecision:
    rule = _rule(Rule.SECURITY_FAIL_BYPASSES)
    return (
        AccessDecision(True, rule)
        if receiver.role in (to, *_PROXIES)
        else refusal(sender, rule, to)
    )


def check_agent(name: str) -> None:
    """Check that a name, unless it is empty, is that of an actor with rights.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    bare = bare_name(name)
    if bare and bare not in set(DirectiveRole):
        find_actor(bare)


def is_same_agent(own: str, name: str, *, is_role: bool) -> bool:
    """Return whether an agent is meant by a name; so is anybody by what is no agent's name.

    `is_role`: `own` is a role, in whichever department.
    """
    try:
        session, named = find_actor(own), find_actor(name)
    except YoloError:
        return True
    return session.role is named.role if is_role and own in set(Role) else session == named
