"""Which paths a role may read and write: context isolation, a department's own area, the files of
the active plan.

Paths are given resolved and relative to the repository, so that no link and no `..` leads around a
rule. What the tables never let a role receive is refused, and so is writing it; what they do not
mention is nobody's secret. See docs/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from yolo_fs.ids import PlanId
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME, barrier_between
from yolo_fs.protocol.isolation import BORDERS, SCOPES, Border, Item, Scope
from yolo_fs.protocol.names import Dept, Mode, Role
from yolo_fs.rules.authz.actors import BRING, AccessDecision, Actor, refusal, rule_of
from yolo_fs.rules.authz.authority import has_tool, may_use
from yolo_fs.rules.authz.messaging import may_contact
from yolo_fs.rules.authz.targets import Target, means, sealed

NO_UX_FOR_BACKEND = (
    "Backend agents NEVER read UI/UX artifacts directly. Frontend relays relevant "
    "information via handoff artifacts "
    "only. Rule: Cross-Department Context Isolation."
)
_COMPILED = re.compile(r"\.ctx-(?P<agent>[a-z-]+)\.toon")
_ISOLATION = "Rule: Context Isolation."
_AREA = "Rule: department-guard."
_PLAN = "Rule: file-guard."


# --- reading ---


def may_read(actor: Actor, target: Target, work: str = "") -> AccessDecision:
    """Return whether somebody may read a path.

    `work`: what he does, such as `Code Review`; empty for any of it.
    """
    if rule := _never(actor, target, work):
        return refusal(actor, rule)
    for item, source in _received(actor, work):
        if means(item, target, actor):
            only = f", of its lines {', '.join(item.fields)} alone" if item.fields else ""
            return AccessDecision(
                True, f"{actor.name} receives {item.text}{only}. {rule_of(source)}"
            )
    return AccessDecision(True, f"Nothing keeps {actor.name} from it. {_ISOLATION}")


def _never(actor: Actor, target: Target, work: str) -> str:
    """Return the rule that keeps a path from somebody; nothing when none does."""
    if row := sealed(target):
        return (
            f"{target.name} is {row.what}, and no agent's to read or to write. "
            f"{rule_of(row.source)}"
        )
    for item, source in _denied(actor, work):
        if means(item, target, actor):
            return f"{actor.name} never receives {item.text}. {rule_of(source)}"
    barrier = barrier_between(actor.department, target.department)
    if barrier and target.department is barrier.hidden:
        return NO_UX_FOR_BACKEND
    compiled = _COMPILED.fullmatch(target.name)
    if compiled and actor.agent and compiled["agent"] not in (actor.role, actor.name):
        return f"{target.name} is compiled for {compiled['agent']} alone. {_ISOLATION}"
    return ""


def _denied(actor: Actor, work: str) -> Iterator[tuple[Item, str]]:
    for row in _rows(actor, work):
        yield from ((item, row.source) for item in row.never)


def _received(actor: Actor, work: str) -> Iterator[tuple[Item, str]]:
    for row in _rows(actor, work):
        yield from ((item, row.source) for item in row.receives)


def _rows(actor: Actor, work: str) -> Iterator[Scope | Border]:
    """Yield the rows of a role: the one of what he does, else all of them, of which each may
    refuse; then borders.
    """
    own = [row for row in SCOPES if row.role is actor.role]
    yield from [row for row in own if row.mode == work] or own
    yield from (row for row in BORDERS if row.department is actor.department)


# --- writing ---


@dataclass(frozen=True, slots=True)
class ActivePlan:
    """The plan that is being worked on."""

    id: PlanId
    files: frozenset[str]
    """Files, and directories, that it may touch; empty when it says nothing."""


def may_write(actor: Actor, target: Target, plan: ActivePlan | None = None) -> AccessDecision:
    """Return whether somebody may write a path.

    `plan`: the active one; None when nothing is being implemented.
    """
    for refuse in (_repository, _tool, _hidden, _status_file, _department_area):
        if answer := refuse(actor, target):
            return answer
    if target.is_planning:
        return AccessDecision(
            True, f"It lies in the planning tree, in no other department's part. {_AREA}"
        )
    return _plan_files(actor, target, plan)


def outside(actor: Actor, shown: str) -> AccessDecision:
    """Return the no to a path that leads out of the repository."""
    return refusal(actor, f"{shown} lies outside of the repository. {_PLAN}")


def _repository(actor: Actor, target: Target) -> AccessDecision | None:
    if target.path.split("/")[0] == ".git" or target.path in ("", "."):
        return refusal(actor, f"{target.path or '.'} is git's own. Rule: security-filter.")
    return None


def _tool(actor: Actor, target: Target) -> AccessDecision | None:
    """A role without Write or Edit writes nothing but what it produces, and that through Bash if at
    all.
    """
    if (
        actor.agent is None
        or not actor.agent.tools
        or any(has_tool(actor, tool) for tool in ("Write", "Edit"))
    ):
        return None
    own = any(target.name.endswith(product) for product in actor.agent.produces)
    return None if own and has_tool(actor, "Bash") else may_use(actor, "Write")


def _hidden(actor: Actor, target: Target) -> AccessDecision | None:
    rule = _never(actor, target, "")
    return refusal(actor, rule) if rule else None


def _status_file(actor: Actor, target: Target) -> AccessDecision | None:
    if not (target.is_planning and target.name.startswith(".dept-status-")):
        return None
    rule = "A department's status is written under its lock alone."
    return AccessDecision(False, rule, ("yolo-fs dept update",), ())


def _department_area(actor: Actor, target: Target) -> AccessDecision | None:
    own = actor.department
    if own is None:
        return None
    owner = target.department
    if owner and owner is not own:
        rule = (
            f"{target.name} is an artifact of {owner}; {actor.name} writes those of {own}. {_AREA}"
        )
        return _lead_of(actor, owner, rule)
    area = next(
        (area for area in DEPARTMENT_BY_NAME[own].off_limits if f"{target.path}/".startswith(area)),
        "",
    )
    if area and not target.is_planning:
        return refusal(actor, f"{area} is no area of {own}. {_AREA}")
    return None


def _lead_of(actor: Actor, owner: Dept, rule: str) -> AccessDecision:
    """Return a no that a Lead takes to the other Lead, where he may, and anybody else to his
    report-to.
    """
    other = Actor(Role.LEAD, owner, Mode.MULTI)
    is_open = (
        actor.role is Role.LEAD and may_contact(replace(actor, mode=Mode.MULTI), other).allowed
    )
    return AccessDecision(False, rule, (other.name,), BRING) if is_open else refusal(actor, rule)


def _plan_files(actor: Actor, target: Target, plan: ActivePlan | None) -> AccessDecision:
    if plan is None or not plan.files:
        return AccessDecision(True, f"No active plan limits the files. {_PLAN}")
    if actor.role is Role.TESTER and target.is_test:
        return AccessDecision(True, "The Tester writes test files. Rule: 11-Step Workflow, step 6.")
    if any(
        target.path == file or target.path.startswith(f"{file.rstrip('/')}/") for file in plan.files
    ):
        return AccessDecision(True, f"{target.path} is among the files of plan {plan.id}. {_PLAN}")
    listed = ", ".join(sorted(plan.files)[:10])
    return refusal(
        actor, f"{target.path} is none of the files of plan {plan.id} ({listed}). {_PLAN}"
    )
