"""Who may send which message to whom, and messages in files that took a forbidden route. Pure.

A message takes the route that document 000 gives its type: within a department, except between
Leads. See docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from yolo_fs.authority.actors import (
    LEADS_ONLY,
    NO_UX_TO_BACKEND,
    AccessDecision,
    Actor,
    among_those_at_work,
    find_actor,
    is_across,
    may_escalate,
    meant_by,
    mode_of,
    refusal,
    reports_to,
)
from yolo_fs.core.reasons import Finding, Reason, YoloError, safe
from yolo_fs.evidence.facts import PhaseFacts, WorkflowOptions
from yolo_fs.protocol.departments import WORKING_NAMES, Dept, Mode, Role, barrier_between
from yolo_fs.schemas.messages.catalogue import MESSAGES, Direction, Message


def may_send(
    sender: Actor, receiver: Actor, kind: str, options: WorkflowOptions | None = None
) -> AccessDecision:
    """Return whether a message of a known type may go from one to the other.

    `options`: None where no configuration is known.
    """
    shape = MESSAGES[kind]
    if shape.direction is Direction.INTERNAL:
        return AccessDecision(False, f"{kind} is the Lead's own record and never sent.")
    if options and (refused := refuse_unused(kind, options)):
        return refused
    if not _is_leg(shape, sender.role, receiver.role):
        return _refuse_wrong_route(shape, kind, sender, receiver)
    if kind == "escalation":
        return may_escalate(sender, receiver)
    if kind == "escalation_resolution":
        return _decide_resolution(sender, receiver)
    return _refuse_wrong_direction(shape, kind, sender, receiver) or AccessDecision(
        True, route_of(kind)
    )


def refuse_unused(kind: str, options: WorkflowOptions) -> AccessDecision | None:
    """Return the refusal of a message of a known type that a configuration has no use for."""
    shape = MESSAGES[kind]
    if shape.team_mode and options.config.team_mode not in ("auto", shape.team_mode):
        return AccessDecision(False, f"{kind} occurs in team_mode={shape.team_mode} only.")
    if shape.replaced_by and options.several_departments:
        rule = (
            f"{kind} is not sent where several departments work: {shape.replaced_by} replaces it."
        )
        return AccessDecision(False, rule, ("yolo-fs dept update",))
    return None


def route_of(kind: str) -> str:
    """Return the route of a message type in words."""
    shape = MESSAGES[kind]
    departments = "" if shape.direction is not Direction.ACROSS else " of another department"
    stations = [" or ".join(names) for names in _stations_of(shape)]
    givers = () if {*WORKING_NAMES} == {*shape.sender_departments} else shape.sender_departments
    of = f" of {' or '.join(givers)}" if departments and givers else ""
    return f"{kind} goes {f'{of} → '.join(stations)}{departments}."


def _stations_of(shape: type[Message]) -> list[tuple[str, ...]]:
    return [shape.sender, *((name,) for name in shape.via), shape.receiver]


def _is_leg(shape: type[Message], sender: Role, receiver: Role) -> bool:
    return any(
        _is_one_of(sender, low) and _is_one_of(receiver, high)
        for low, high in pairwise(_stations_of(shape))
    )


_NOT_TEAMMATES = (Role.LEAD, Role.OWNER, Role.GO, Role.USER)


def _is_one_of(role: Role, names: tuple[str, ...]) -> bool:
    if names == ("any",):
        return role not in (Role.GO, Role.USER)
    if names == ("teammate",):
        return role not in _NOT_TEAMMATES
    speaks_for = ("orchestrator", "user") if role is Role.GO else ()
    return role.value in names or any(name in names for name in speaks_for)


def _refuse_wrong_route(
    shape: type[Message], kind: str, sender: Actor, receiver: Actor
) -> AccessDecision:
    onward = next(
        (high for low, high in pairwise(_stations_of(shape)) if _is_one_of(sender.role, low)), ()
    )
    near = sender._replace(department=sender.department or receiver.department)
    ask = tuple(_named(near, name) for name in onward)
    return AccessDecision(False, route_of(kind), ask) if ask else refusal(sender, route_of(kind))


def _named(sender: Actor, name: str) -> str:
    role = (
        Role.GO
        if name == "orchestrator"
        else next((role for role in Role if role.value == name), None)
    )
    return sender.peer(role).name if role else name


def _decide_resolution(sender: Actor, receiver: Actor) -> AccessDecision:
    """Decide on a resolution: it goes down the way that the issue came up, level by level."""
    above = reports_to(receiver)
    is_level = above is sender.role or (above is Role.USER and sender.role is Role.GO)
    if is_level and not is_across(sender, receiver):
        return AccessDecision(True, route_of("escalation_resolution"))
    rule = "A resolution goes down one level at a time, never up."
    below = {
        Role.USER: Role.GO,
        Role.GO: Role.ARCHITECT,
        Role.OWNER: Role.ARCHITECT,
        Role.ARCHITECT: Role.LEAD,
    }
    if sender.role is Role.GO and sender.mode is Mode.MULTI:
        return AccessDecision(False, rule, (Role.OWNER.value,), ())
    return AccessDecision(
        False, rule, (receiver.peer(below.get(sender.role, Role.SENIOR)).name,), ()
    )


def _refuse_wrong_direction(
    shape: type[Message], kind: str, sender: Actor, receiver: Actor
) -> AccessDecision | None:
    """Return the refusal of a message that leaves, or stays in, its department against its type."""
    leaves = is_across(sender, receiver)
    if shape.direction is not Direction.ACROSS:
        return (
            AccessDecision(False, LEADS_ONLY, (sender.peer(receiver.role).name,))
            if leaves
            else None
        )
    if leaves and _are_its_departments(shape, kind, sender, receiver):
        return None
    barrier = barrier_between(sender.department, receiver.department)
    rule = NO_UX_TO_BACKEND if barrier else route_of(kind)
    if sender.department not in (*shape.sender_departments, None) and not barrier:
        return AccessDecision(False, rule, tuple(dict.fromkeys(_givers(shape, sender))))
    allowed = (barrier.relay,) if barrier else WORKING_NAMES
    return AccessDecision(False, rule, tuple(_leads(shape, sender, allowed)))


def _givers(shape: type[Message], sender: Actor) -> Iterator[str]:
    """Yield the Leads whose message it is, or who stands between."""
    for name in shape.sender_departments:
        between = barrier_between(sender.department, Dept(name))
        yield Actor(Role.LEAD, between.relay if between else Dept(name)).name


def _are_its_departments(shape: type[Message], kind: str, sender: Actor, receiver: Actor) -> bool:
    """Document 000 hands designs from UI/UX to Backend as well; nothing goes the other way."""
    barrier = barrier_between(sender.department, receiver.department)
    if kind == "dept_handoff" and barrier and receiver.department is barrier.hidden:
        return False
    return (
        sender.department in shape.sender_departments
        and receiver.department in shape.receiver_departments
    )


def _leads(shape: type[Message], sender: Actor, departments: Sequence[Dept]) -> Iterator[str]:
    others = (dept for dept in departments if dept in shape.receiver_departments)
    return (
        Actor(Role.LEAD, dept).name
        for dept in others
        if dept is not sender.department and barrier_between(dept, sender.department) is None
    )


def message_findings(
    value: Mapping[str, Any], path: str, options: WorkflowOptions, line: int = 1
) -> Iterator[Finding]:
    """Yield why a message is not sent at all, or not from its sender to its receiver."""
    kind = str(value.get("type"))
    if kind in MESSAGES and (unused := refuse_unused(kind, options)):
        hint = "Leave it out; config.json says how the team works."
        yield Finding(Reason.OUT_OF_LANE, path, line, "/type", unused.rule, hint=hint)
    elif kind == "dept_handoff":
        ends = (str(value.get("from_dept")), str(value.get("to_dept")))
        actors = [
            Actor(Role.LEAD, Dept(name), Mode.MULTI) for name in ends if name in WORKING_NAMES
        ]
        if len(actors) == 2:
            answer = among_those_at_work(may_send(actors[0], actors[1], kind), actors[0], options)
            yield from _report_refusal(answer, path, line, "/to_dept", ends)
    elif kind == "escalation":
        yield from _check_escalation(
            str(value.get("from")), str(value.get("to")), path, line, options
        )


def routes_broken(facts: PhaseFacts) -> Iterator[Finding]:
    """Yield handoffs of a phase to a department that their sender may not contact."""
    for artifact in facts.of_kind("dept-handoff"):
        for number, line in enumerate(artifact.lines, 1):
            yield from message_findings(line, artifact.place.path, facts.options, number)


def _check_escalation(
    sender: str, receiver: str, path: str, line: int, options: WorkflowOptions
) -> Iterator[Finding]:
    try:
        low = find_actor(sender, None, mode_of(options))
        high = meant_by(low, receiver)
    except YoloError:
        return
    answer = among_those_at_work(may_escalate(low, high), low, options)
    if not answer.allowed and low.role is Role.SECURITY and high.role is Role.USER:
        return  # a FAIL, which the message does not spell, goes there
    yield from _report_refusal(answer, path, line, "/to", (sender, receiver))


def _report_refusal(
    answer: AccessDecision, path: str, line: int, at: str, ends: tuple[str, str]
) -> Iterator[Finding]:
    if not answer.allowed:
        to = ", ".join(answer.ask)
        message = f"from {safe(ends[0], 80)} to {safe(ends[1], 80)}: {answer.rule}"
        yield Finding(
            Reason.OUT_OF_LANE,
            path,
            line,
            at,
            message,
            to and f"to {to}",
            to and f"send it to {to}",
        )
