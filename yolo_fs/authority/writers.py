"""Who writes which artifact: its producer by the roster and the steps, or the report-to of a
producer that has no tool for it. Pure.

No agent approves its own work: a judgement is written by the role that the tables assign it to. See
docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    """Return the roles that produce an artifact; empty if the tables allow everyone."""
    artifact = by_kind(kind)
    if artifact is None or artifact.append_only or artifact.is_shared:
        return frozenset()
    named = frozenset(artifact.sent_by) or frozenset(_roles_in_tables(artifact))
    by_step = STEP_BY_KEY[artifact.step].agents if artifact.step and not named else ()
    roles = named | frozenset(by_step)
    return roles | frozenset(artifact.updated_by) if roles else roles


def _roles_in_tables(artifact: Artifact) -> Iterator[Role]:
    """Yield the roles whose row of the roster, or whose own step, names the artifact."""
    name = _GAP.sub("", artifact.file).lstrip(".-")
    by_kind = f"{artifact.kind.replace('-', '_')} JSON"
    yield from (row.role for row in AGENTS if {name, by_kind} & {*row.produces})
    for step in STEPS:
        is_made = name in step.outputs or not {*step.commits}.isdisjoint(artifact.subjects)
        if is_made and len(step.agents) == 1:
            yield from step.agents


def can_write(actor: Actor, name: str) -> bool:
    """Return whether an actor has a tool to write a file; Bash counts for its own work."""
    agent = actor.agent
    if agent is None or not agent.tools:
        return True
    own = any(name.endswith(product) for product in agent.produces)
    return any(has_tool(actor, tool) for tool in ("Write", "Edit")) or (
        own and has_tool(actor, "Bash")
    )


def writer_for(actor: Actor, names: Sequence[str]) -> Actor | None:
    """Return who writes files for an actor whom the roster gives no tool to; None for itself, and
    where nobody above has one.

    `names`: of the files.
    """
    if all(can_write(actor, name) for name in names):
        return None
    above = superiors(actor)
    return next((able for able in above if all(can_write(able, name) for name in names)), None)


@cache
def writers_of(
    kind: str, name: str, department: Dept | None, mode: Mode
) -> tuple[frozenset[Role], frozenset[Role]]:
    """Return the producers of an artifact that have a tool, and those who write for the others.

    `name`: of the file; `department`: whose it is, None if several share it.
    """
    own, for_others = set(), set()
    for role in producers_of(kind):
        producer = Actor(role, department, mode)
        if can_write(producer, name):
            own.add(role)
        elif writer := writer_for(producer, [name]):
            for_others.add(writer.role)
    return frozenset(own), frozenset(for_others)


@cache
def everybody(mode: Mode) -> tuple[Actor, ...]:
    """Return the agents of the active departments, then the Owner's proxy and the user."""
    actors = (find_actor(name, None, mode) for name in (*AGENT_BY_NAME, Role.GO, Role.USER))
    return tuple(actor for actor in actors if actor.mode is mode)


@cache
def _contacts_of(actor: Actor) -> tuple[Actor, ...]:
    """Return whom an actor may write to: those of the chain first, and in each group those of a
    department before the others.
    """
    contacts = [contact for contact in everybody(actor.mode) if may_contact(actor, contact).allowed]
    return tuple(
        sorted(
            contacts, key=lambda contact: (contact.role not in LEVELS, contact.department is None)
        )
    )


def next_towards(actor: Actor, goals: frozenset[Actor], mode: Mode) -> Actor | None:
    """Return the first contact on the shortest way to one of several goals; None without a way."""
    start = actor._replace(mode=mode)
    first_by_seen: dict[Actor, Actor] = {start: start}
    reached = [start]
    while reached:
        beyond: list[Actor] = []
        for current in reached:
            for other in _contacts_of(current):
                if other in first_by_seen:
                    continue
                first_by_seen[other] = other if current is start else first_by_seen[current]
                if other in goals:
                    return first_by_seen[other]
                beyond.append(other)
        reached = beyond
    return None
