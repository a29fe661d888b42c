"""The root cause of a phase's waits: one thing, who has to do it, and everything behind it. Pure.

See docs/dev/sources.md#document-000.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from yolo_fs.core.ids import EscalationId, TaskRef
from yolo_fs.core.reasons import safe
from yolo_fs.escalations.log import act_of, waiting_for
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import DepartmentStatus
from yolo_fs.phase.waits import Wait, name_plan, name_task, plan_named, shown
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.protocol.workflow import TURN_COMMAND

MOST_NAMES = 3
"""Names of one level that a sentence has room for."""
MOST_WAITERS = 200


class WaitTree(NamedTuple):
    """A node of the wait graph, and what waits for it. Each name occurs once, nearest the root."""

    name: str
    why: str
    """What it needs from its parent; for the root, what has to be done."""
    where: str
    """Location of the evidence, `name:line`."""
    waiters: tuple[WaitTree, ...] = ()


class RootCause(NamedTuple):
    """The one thing that most of a phase waits for."""

    sentence: str
    """Who is to do what, and whom that holds up, level by level."""
    command: str
    """Command that settles it, or shows who writes what is missing."""
    tree: WaitTree


def root_cause(phase: Phase) -> RootCause | None:
    """Return what most of a phase waits for; None while nobody waits for another's work."""
    waits = () if phase.is_complete else phase.waits
    if not any(_holds_up(phase, wait) for wait in waits):
        return None
    behind: dict[str, list[Wait]] = {}
    for wait in waits:
        behind.setdefault(wait.on, []).append(wait)
    waiting = {wait.waiter for wait in waits}
    # A name that waits itself is not a root: an escalation waits for its holder, a gate for whoever
    # owes it evidence. Where all wait in a cycle, any name may be one.
    roots = [name for name in behind if name not in waiting] or sorted(behind)
    levels_of = {name: _group_by_distance(name, behind) for name in roots}
    held = {name: _count_held_up(phase, levels) for name, levels in levels_of.items()}
    root = min(roots, key=lambda name: (-held[name], -sum(map(len, levels_of[name])), name))
    does, settles = _find_act_at(phase, root, behind[root])
    command = settles or TURN_COMMAND.format(phase=phase.facts.spelled)
    levels = ([name for name in each if _is_told(name, behind)] for each in levels_of[root])
    blocked = [_listed(level) for level in levels if level]
    link = " This blocks" if does.endswith(("?", "!", ".")) else "; that blocks"
    tail = f"{link} {' → '.join(blocked)}" if blocked else ""
    return RootCause(f"{does}{tail}", command, _tree(root, does, behind))


def _is_told(name: str, behind: Mapping[str, object]) -> bool:
    """Return whether a sentence names it.

    Omitted are agents, plans beside their tasks, gates that nobody waits at, and escalations, which
    the act names.
    """
    if name.startswith("gate:"):
        return name in behind
    return not (name in AGENT_BY_NAME or EscalationId.parse(name) or plan_named(name))


def _holds_up(phase: Phase, wait: Wait) -> bool:
    departments = {status.department.value for status in phase.behind}
    is_at_gate = wait.waiter in departments and wait.is_at_gate
    is_asked = EscalationId.parse(wait.on) or wait.on.startswith("research:")
    return is_at_gate or bool(is_asked) or (wait.waiter in departments and wait.on in departments)


def _group_by_distance(root: str, behind: Mapping[str, Iterable[Wait]]) -> list[list[str]]:
    """Return the names that wait for a root, grouped by their distance from it."""
    levels, seen, now = [], {root}, [root]
    while now := sorted(
        {wait.waiter for name in now for wait in behind.get(name, ())} - seen, key=shown
    ):
        seen.update(now)
        levels.append(now)
    return levels


def _count_held_up(phase: Phase, levels: Iterable[Iterable[str]]) -> int:
    """Return how many departments stand behind a root."""
    departments = {status.department.value for status in phase.behind}
    return len(departments & {name for level in levels for name in level})


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    words = (shown(name).replace("gate:", "gate ") for name in names[:MOST_NAMES])
    return f"{', '.join(words)}{more}"


def _find_act_at(phase: Phase, root: str, waits: Iterable[Wait]) -> tuple[str, str]:
    """Return who is to do what at a root, and the command for it."""
    names = {wait.waiter for wait in waits}
    for escalation in phase.escalations:
        if escalation.is_open and (str(escalation.id) in names or str(escalation.id) == root):
            does, command = act_of(escalation)
            return waiting_for(escalation.agent, does), command
    for department in phase.progress.departments:
        if department.next and root in _names_of(phase, department):
            turn = department.next
            return waiting_for(turn.agent, turn.deed), turn.command
    gate = next((candidate for candidate in phase.gates if f"gate:{candidate.name}" == root), None)
    if gate and gate.missing:
        return f"{shown(root)} lacks {gate.missing[0].what}", gate.missing[0].command
    wait = next(iter(waits))
    return f"{shown(root)}: {safe(wait.why, 200)}", ""


def _names_of(phase: Phase, status: DepartmentStatus) -> set[str]:
    """Return the graph's names of a department, its plans, its tasks and the agent acting in it."""
    facts, department, turn = phase.facts, status.department, status.next
    plans = {name_plan(facts, plan.id, department) for plan in status.plans}
    refs = [task.ref for plan in status.plans for task in plan.tasks]
    refs += [ref] if turn and (ref := TaskRef.parse(turn.task)) else []
    tasks = {name_task(facts, ref, department) for ref in refs}
    return {department.value} | plans | tasks | ({turn.agent} if turn else set())


def _tree(root: str, does: str, behind: Mapping[str, Iterable[Wait]]) -> WaitTree:
    order, waits_of = [root], {root: Wait("", root, does, "")}
    children: dict[str, list[str]] = {}
    queue = deque(order)
    while queue and len(order) < MOST_WAITERS:
        name = queue.popleft()
        for wait in behind.get(name, ()):
            if wait.waiter not in waits_of:
                waits_of[wait.waiter] = wait
                children.setdefault(name, []).append(wait.waiter)
                order.append(wait.waiter)
                queue.append(wait.waiter)
    built: dict[str, WaitTree] = {}
    for name in reversed(order):
        below = tuple(built[each] for each in children.get(name, ()))
        wait = waits_of[name]
        built[name] = WaitTree(shown(name), wait.why, wait.where, below)
    return built[root]
