"""Waits as a graph: every circle is a deadlock, every wait for something that nobody supplies is an
orphan.

Pure graph work, linear but for one sort, without recursion; where the waits come from is told in
`rules.phase.waits`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from yolo_fs.ids import PlanId
from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.names import Role
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.reasons import safe

_SHOWN_NAME = 80
"""Characters of a name that an alarm shows; agents choose some of them."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One edge: somebody or something cannot go on before something else is there."""

    waiter: str
    """Name of what waits."""
    on: str
    """Name of what it waits for."""
    why: str
    """What it needs from there."""
    where: str
    """File of the phase that says so, with the line where one line does: `name:line`."""
    remedy: str = ""
    """What a person may do to end it; empty where only what it waits for can."""

    def __str__(self) -> str:
        return f"{shown(self.waiter)} waits for {self.need}"

    @property
    def need(self) -> str:
        """What it waits for, why, and where that stands."""
        return f"{shown(self.on)} ({self.why}, {self.where})"


BY_NAME = attrgetter("waiter", "on", "why", "where", "remedy")
"""The one order of waits, so that no other makes a difference."""


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Waits that run in a circle, from the smallest name on."""

    waits: tuple[Wait, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Who is in it, each waiting for the next, the last for the first."""
        return tuple(wait.waiter for wait in self.waits)

    def __str__(self) -> str:
        ways = tuple(dict.fromkeys(wait.remedy for wait in self.waits if wait.remedy))
        circle = ", that for ".join(wait.need for wait in self.waits)
        return f"deadlock: {shown(self.names[0])} waits for {circle}{_advice(ways)}"


@dataclass(frozen=True, slots=True)
class Orphan:
    """A wait for something that nobody will ever supply."""

    wait: Wait

    @property
    def names(self) -> tuple[str, ...]:
        """Who waits."""
        return (self.wait.waiter,)

    def __str__(self) -> str:
        ways = (self.wait.remedy,) if self.wait.remedy else ()
        return f"orphan wait: {self.wait}, but {_absence(self.wait.on)}{_advice(ways)}"


Alarm = Deadlock | Orphan


def shown(name: str) -> str:
    """Return a name as an alarm shows it: escaped and cut."""
    return safe(name, _SHOWN_NAME)


def _advice(ways: tuple[str, ...]) -> str:
    if not ways:
        return ""
    return f". To break it, {'do one of these: ' if len(ways) > 1 else ''}{'; or '.join(ways)}"


def _absence(name: str) -> str:
    """Return why nobody supplies what is named so."""
    if name == Role.SCOUT:
        return "research on demand is turned off in config.json"
    if PlanId.parse(name):
        return "no active department has a valid plan of that number committed"
    if name in {row.name.value for row in WORKING}:
        return "that department is not active"
    if name in AGENT_BY_NAME:
        return "no such agent works on this phase"
    return "there is nobody and nothing of that name"


# --- the graph ---


def cycles(waits: Iterable[Wait]) -> tuple[Deadlock, ...]:
    """Return a shortest circle through the smallest name of each knot (of waits that all lead back
    to each other).

    Linear in the waits after sorting. Where circles share a knot, the next is named when the first
    is broken.
    """
    edges: dict[tuple[str, str], Wait] = {}
    for wait in sorted(waits, key=BY_NAME):
        edges.setdefault((wait.waiter, wait.on), wait)
    graph: dict[str, list[str]] = {name: [] for pair in edges for name in pair}
    for waiter, on in edges:
        graph[waiter].append(on)
    found = sorted(_circle(graph, knot) for knot in _knots(graph) if _is_tied(graph, knot))
    return tuple(Deadlock(tuple(edges[pair] for pair in _pairs(names))) for names in found)


def orphans(waits: Iterable[Wait], known: Collection[str]) -> tuple[Orphan, ...]:
    """Return the waits for a name that is not known and does not wait itself: a name that waits
    says what it lacks.
    """
    listed = sorted(set(waits), key=BY_NAME)
    there = {*known, *(wait.waiter for wait in listed)}
    return tuple(Orphan(wait) for wait in listed if wait.on not in there)


def _knots(graph: Mapping[str, list[str]]) -> Iterator[frozenset[str]]:
    """Yield the strongly connected components, by Kosaraju's two walks, none of them recursive."""
    back: dict[str, list[str]] = {name: [] for name in graph}
    for waiter, following in graph.items():
        for on in following:
            back[on].append(waiter)
    seen: set[str] = set()
    finished = [name for root in graph for name in _walk(graph, root, seen)]
    seen = set()
    for root in reversed(finished):
        if knot := frozenset(_walk(back, root, seen)):
            yield knot


def _walk(graph: Mapping[str, list[str]], root: str, seen: set[str]) -> Iterator[str]:
    """Yield what is reached from `root` and was not seen, each name after all that it leads to."""
    if root in seen:
        return
    seen.add(root)
    path = [(root, iter(graph[root]))]
    while path:
        name, following = path[-1]
        step = next((other for other in following if other not in seen), None)
        if step is None:
            path.pop()
            yield name
        else:
            seen.add(step)
            path.append((step, iter(graph[step])))


def _is_tied(graph: Mapping[str, list[str]], knot: frozenset[str]) -> bool:
    return len(knot) > 1 or any(name in graph[name] for name in knot)


def _circle(graph: Mapping[str, list[str]], knot: frozenset[str]) -> tuple[str, ...]:
    """Return a shortest way from the smallest name of a knot back to it."""
    start = min(knot)
    came_from: dict[str, str] = {}
    ahead = deque([start])
    while start not in came_from:
        name = ahead.popleft()
        for on in graph[name]:
            if on in knot and on not in came_from:
                came_from[on] = name
                ahead.append(on)
    names = [came_from[start]]
    while names[-1] != start:
        names.append(came_from[names[-1]])
    return tuple(reversed(names))


def _pairs(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return zip(names, (*names[1:], names[0]), strict=True)
