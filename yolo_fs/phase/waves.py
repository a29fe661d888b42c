"""Which departments work, in which waves and behind which gates, by the configuration. Pure.

The configuration is read as leniently as the reference scripts read it: only these keys count,
whatever else is wrong. The backend always works, even where the configuration says false: a test of
the reference pins that.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

from yolo_fs.evidence.facts import WorkflowOptions, section
from yolo_fs.protocol.departments import (
    BACKEND_ONLY,
    PARALLEL,
    SPAWN_ORDERS,
    WORKFLOWS,
    WORKING,
    Department,
    Dept,
    waves_of,
)
from yolo_fs.protocol.gates import WAVE_GATES


class Routing(NamedTuple):
    """How the departments of a phase are dispatched."""

    workflow: str
    """The workflow in force; `backend_only` when no other department works."""
    active: frozenset[Dept]
    """The configured departments, whether or not the workflow lets them work; without the default
    department."""
    warning: str = ""
    """Why the workflow in force is not the configured one."""
    needed: frozenset[Dept] = frozenset()
    """The departments that the Owner of the phase needs; empty for all."""
    first: tuple[Dept, ...] = ()
    """The order in which the Owner of the phase dispatches them; empty for that of the tables."""

    @property
    def groups(self) -> tuple[tuple[Department, ...], ...]:
        """The departments that work, wave by wave.

        Departments that the Owner dispatches one after another stay in one wave where the workflow
        lets them work in parallel.
        """
        all_waves = waves_of(self.workflow, self.active)
        wave_of = {row.name: number for number, group in enumerate(all_waves) for row in group}
        rows = [row for group in all_waves for row in group if row.name in (self.needed or wave_of)]
        order = {name: at for at, name in enumerate(self.first)}
        rows.sort(key=lambda row: order.get(row.name, len(order)))
        waves = [tuple(group) for _, group in groupby(rows, key=lambda row: wave_of[row.name])]
        return tuple(waves) or all_waves

    @property
    def order(self) -> str:
        """How the Leads are spawned: `single`, `wave` or `sequential`."""
        return SPAWN_ORDERS[self.workflow]

    @property
    def departments(self) -> tuple[Dept, ...]:
        """The departments that work, the default one first."""
        working = [row for group in self.groups for row in group]
        return tuple(row.name for row in WORKING if row in working)

    @property
    def has_several(self) -> bool:
        """Whether more than the default department works."""
        return len(self.departments) > 1


class Wave(NamedTuple):
    """Departments that work in parallel, and the gate that ends their wave."""

    departments: tuple[Dept, ...]
    gate: str
    """Name of a row of `WAVE_GATES`."""


def routing(config: Mapping[str, Any]) -> Routing:
    """Return how the configured departments are dispatched."""
    flags = section(config, "departments")
    active = frozenset(
        row.name for row in WORKING if not row.is_default and _is_on(flags.get(row.name))
    )
    wanted = config.get("department_workflow", BACKEND_ONLY)
    if wanted not in WORKFLOWS:
        warning = (
            f"department_workflow={wanted} is not {', '.join(WORKFLOWS)}; behaving as backend_only"
        )
        return Routing(BACKEND_ONLY, active, warning)
    if wanted != BACKEND_ONLY and not active:
        warning = (
            f"department_workflow={wanted} but no non-backend departments enabled; "
            "behaving as backend_only"
        )
        return Routing(BACKEND_ONLY, active, warning)
    return Routing(wanted, active)


def dispatch(config: Mapping[str, Any]) -> Routing:
    """Return how the departments are dispatched by our own rule.

    Their flags decide who works, and the workflow decides the order. In the reference scripts
    `backend_only` overrides the flags, so that a department would never be looked at.
    """
    route = routing(config)
    is_ordered = route.workflow != BACKEND_ONLY or not route.active
    return route if is_ordered else Routing(PARALLEL, route.active, route.warning)


def dispatched(options: WorkflowOptions) -> Routing:
    """Return how a phase's departments are dispatched: as its Owner says, or as configured."""
    route = dispatch(options.config._asdict())
    return route._replace(needed=frozenset(options.departments), first=options.order)


def waves(route: Routing) -> tuple[Wave, ...]:
    """Return the waves of departments with the gate behind each."""
    *groups, last = (tuple(row.name for row in group) for group in route.groups)
    return (*(Wave(group, _gate(group[0])) for group in groups), Wave(last, _gate(None)))


def _is_on(value: object) -> bool:
    return value is True or value == "true"


def _gate(department: Dept | None) -> str:
    return next(row.name for row in WAVE_GATES if row.department == department)
