"""Who writes which artifact: whoever produces it by the roster and the steps, and in place of a
role that has no tool for it, whom that one reports to. Pure.

Nobody approves their own work: what judges it is written by the role that the tables give the
judgement to. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from yolo_fs.artifacts.table import Artifact, by_kind
from yolo_fs.authority.actors import Actor, find_actor, may_contact, superiors
from yolo_fs.authority.authority import has_tool
from yolo_fs.protocol.departments import Dept, Mode, Role
from yolo_fs.protocol.escalation import LEVELS
from yolo_fs.protocol.roster import AGENT_BY_NAME, AGENTS
from yolo_fs.protocol.workflow import STEP_BY_KEY, STEPS

_GAP = re.compile(r"\{[^{}]*\}")


@cache
def producers_of(kind: str) -> frozenset[Role]:
    """Return the roles whose work an artifact is; none where the tables leave it to everybody."""
    artifact = by_kind(kind)
    if artifact is None or artifact.append_only or artifact.is_shared:
        return frozenset()
    named = frozenset(artifact.sent_by) or frozenset(_named_in_tables(artifact))
    by_step = STEP_BY_KEY[artifact.step].agents if artifact.step and not named else ()
    found = named | frozenset(by_step)
    return found | frozenset(artifact.updated_by) if found else found


def _named_in_tables(artifact: Artifact) -> Iterator[Role]:
    """Yield the roles whose row of the roster, or whose step of their own, names it."""
    name = _GAP.sub("", artifact.file).lstrip(".-")
    by_kind = f"{artifact.kind.replace('-', '_')} JSON"
    yield from (row.role for row in AGENTS if {name, by_kind} & {*row.produces})
    for step in STEPS:
        is_made = name in step.outputs or not {*step.commits}.isdisjoint(artifact.subjects)
        if is_made and len(step.agents) == 1:
            yield from step.agents


def can_write(actor: Actor, name: str) -> bool:
    """Return whether somebody has a tool to write a file of that name: Bash is one for own work."""
    agent = actor.agent
    if agent is None or not agent.tools:
        return True
    own = any(name.endswith(product) for product in agent.produces)
    return any(has_tool(actor, tool) for tool in ("Write", "Edit")) or (
        own and has_tool(actor, "Bash")
    )


@cache
def writers_of(
    kind: str, name: str, department: Dept | None, mode: Mode
) -> tuple[frozenset[Role], frozenset[Role]]:
    """Return who writes an artifact: the roles that produce it and have a tool, and those that
    write it for one that has none.

    `name`: of the file; `department`: whose it is, None for what several share.
    """
    own, for_others = set(), set()
    for role in producers_of(kind):
        producer = Actor(role, department, mode)
        if can_write(producer, name):
            own.add(role)
            continue
        able = next((one for one in superiors(producer) if can_write(one, name)), None)
        if able is not None:
            for_others.add(able.role)
    return frozenset(own), frozenset(for_others)


@cache
def everybody(mode: Mode) -> tuple[Actor, ...]:
    """Return the agents of the departments that work, then the Owner's proxy and the user."""
    found = (find_actor(name, None, mode) for name in (*AGENT_BY_NAME, Role.GO, Role.USER))
    return tuple(actor for actor in found if actor.mode is mode)


@cache
def _contacts(actor: Actor) -> tuple[Actor, ...]:
    """Return whom somebody may write to: those of the chain first, of them the departments'."""
    found = [one for one in everybody(actor.mode) if may_contact(actor, one).allowed]
    return tuple(sorted(found, key=lambda one: (one.role not in LEVELS, one.department is None)))


def next_towards(actor: Actor, goals: frozenset[Actor], mode: Mode) -> Actor | None:
    """Return the first on the shortest way from somebody to one of several by whom they may
    contact; None where no way leads there.
    """
    start = actor._replace(mode=mode)
    first_by_seen: dict[Actor, Actor] = {start: start}
    reached = [start]
    while reached:
        beyond: list[Actor] = []
        for one in reached:
            for other in _contacts(one):
                if other in first_by_seen:
                    continue
                first_by_seen[other] = other if one is start else first_by_seen[one]
                if other in goals:
                    return first_by_seen[other]
                beyond.append(other)
        reached = beyond
    return None
