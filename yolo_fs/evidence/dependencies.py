"""Which plans wait for which, within a phase and across phases. Pure.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from yolo_fs.evidence.facts import PhaseFacts, plans_of
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME, Dept

PlanKey = tuple[Dept, str]
"""A department's plan, by its number `NN-MM`."""


class Dependency(NamedTuple):
    """One plan that waits for another."""

    waiter: PlanKey
    planner: str
    """The plan of the waiter's department whose file names the other."""
    on: PlanKey

    @property
    def key(self) -> str:
        """The key of the file that names it."""
        return "d" if _phase_of(self.on[1]) == _phase_of(self.planner) else "xd"

    @property
    def file(self) -> str:
        """Name of that file."""
        return f"{DEPARTMENT_BY_NAME[self.waiter[0]].prefix}{self.planner}.plan.jsonl"


def _phase_of(plan: str) -> str:
    return plan.partition("-")[0]


def is_elsewhere(facts: PhaseFacts, plan: str) -> bool:
    """Return whether a plan, by its number, is one of another phase."""
    return _phase_of(plan) != facts.phase.number


def owners_of_plans(facts: PhaseFacts) -> Mapping[str, tuple[Dept, ...]]:
    """Return for each plan of any phase the departments that have one of its number."""
    owners: dict[str, tuple[Dept, ...]] = {}
    here = ((plan.department, str(plan.id)) for plan in plans_of(facts))
    elsewhere = (key for key in sorted(facts.plans_of_all) if is_elsewhere(facts, key[1]))
    for department, plan in (*here, *elsewhere):
        owners[plan] = (*owners.get(plan, ()), department)
    return owners


def find_meant(facts: PhaseFacts, plan: str, department: Dept) -> tuple[Dept, ...]:
    """Return whose plan a department means by a number: its own, else that of each other."""
    owners = facts.ask(owners_of_plans).get(plan, ())
    return (department,) if department in owners else owners


def dependencies_across(facts: PhaseFacts, unfinished: Collection[PlanKey]) -> Iterator[Dependency]:
    """Yield what the plans of a phase wait for in others, and what those wait for in turn.

    `unfinished`: the plans of this phase that are not complete. Planning ends once all that `xd`
    names is complete: until then, each plan of a department waits for what any of them names.
    """
    needs, open_ = facts.ask(_map_needs), {*unfinished, *_find_open(facts)}
    ahead, seen = deque(unfinished), {*unfinished}
    while ahead:
        waiter = department, plan = ahead.popleft()
        of_planning = facts.ask(_map_needs_of_planning).get((department, _phase_of(plan)), {})
        planner_of = {**of_planning, **dict.fromkeys(needs.get(waiter, ()), plan)}
        for need, planner in planner_of.items():
            for on in ((owner, need) for owner in find_meant(facts, need, department)):
                if on in open_ and (is_elsewhere(facts, plan) or is_elsewhere(facts, need)):
                    yield Dependency(waiter, planner, on)
                if on in open_ - seen and is_elsewhere(facts, need):
                    seen.add(on)
                    ahead.append(on)


def _find_open(facts: PhaseFacts) -> Iterator[PlanKey]:
    """Yield the plans of other phases that are not complete."""
    for key, is_done in facts.plans_of_all.items():
        if not is_done and is_elsewhere(facts, key[1]):
            yield key


def _map_needs(facts: PhaseFacts) -> Mapping[PlanKey, tuple[str, ...]]:
    """Return for each plan of any phase the plans that it names."""
    here = {(each.department, str(each.id)): each.names for each in plans_of(facts)}
    return {**facts.needs_of_all, **here}


def _map_needs_of_planning(facts: PhaseFacts) -> Mapping[tuple[Dept, str], Mapping[str, str]]:
    """Return for each department and phase the plans of other phases that its plans name, each with
    the first of those that does.
    """
    named: dict[tuple[Dept, str], dict[str, str]] = {}
    for (department, plan), needs in sorted(facts.ask(_map_needs).items()):
        of_planning = named.setdefault((department, _phase_of(plan)), {})
        for need in needs:
            if _phase_of(need) != _phase_of(plan):
                of_planning.setdefault(need, plan)
    return named
