"""From the configuration to the Leads: which departments work, in which waves, behind which gates. Pure.

The configuration is read as leniently as the reference scripts read it: only these keys count,
whatever else is wrong. The backend always works, even where the configuration says false: a test of
the reference pins that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.protocol.departments import SPAWNS, WORKING, Spawn
from yolo_fs.protocol.gates import WAVE_GATES
from yolo_fs.protocol.names import Dept

BACKEND_ONLY = "backend_only"
WORKFLOWS = tuple(dict.fromkeys(row.workflow for row in SPAWNS))

_DEPARTMENT_OF_LEAD = {f"{row.prefix}lead": row.name for row in WORKING}


@dataclass(frozen=True, slots=True)
class Routing:
    """How the departments of a phase are dispatched."""

    workflow: str
    """In force: `backend_only` when no other department works."""
    frontend: bool
    """As configured, whether or not the workflow lets it work."""
    uiux: bool
    """As configured, whether or not the workflow lets it work."""
    spawn: Spawn
    """The row that decides."""
    warning: str = ""
    """Why the workflow in force is not the configured one."""

    @property
    def departments(self) -> tuple[Dept, ...]:
        """The departments that work, backend first."""
        working = {_DEPARTMENT_OF_LEAD[lead] for wave in self.spawn.waves for lead in wave}
        return tuple(row.name for row in WORKING if row.name in working)

    @property
    def has_several(self) -> bool:
        """Whether more than the backend works."""
        return len(self.departments) > 1


@dataclass(frozen=True, slots=True)
class Wave:
    """Departments that work at once, and the gate that ends their wave."""

    departments: tuple[Dept, ...]
    gate: str
    """Name of a row of `WAVE_GATES`."""


def routing(config: Mapping[str, Any]) -> Routing:
    """Return how the configured departments are dispatched."""
    frontend, uiux = (
        _is_on(section(config, "departments").get(name)) for name in (Dept.FRONTEND, Dept.UIUX)
    )
    wanted = config.get("department_workflow", BACKEND_ONLY)
    workflow, warning = BACKEND_ONLY, ""
    if wanted not in WORKFLOWS:
        warning = f"department_workflow {wanted!r} is none of {', '.join(WORKFLOWS)}: falling back to backend_only"
    elif wanted != BACKEND_ONLY and not (frontend or uiux):
        warning = f"department_workflow is {wanted}, but no other department is on: falling back to backend_only"
    else:
        workflow = wanted
    return Routing(
        workflow, frontend, uiux, _spawn(workflow, frontend=frontend, uiux=uiux), warning
    )


def waves(route: Routing) -> tuple[Wave, ...]:
    """Return the waves of departments with the gate behind each."""
    *groups, last = (
        tuple(_DEPARTMENT_OF_LEAD[lead] for lead in wave) for wave in route.spawn.waves
    )
    return (*(Wave(group, _gate(group[0])) for group in groups), Wave(last, _gate(None)))


def section(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a section of the configuration; empty when it is absent or no object."""
    found = config.get(key)
    return found if isinstance(found, dict) else {}


def _is_on(value: object) -> bool:
    return value is True or value == "true"


def _spawn(workflow: str, *, frontend: bool, uiux: bool) -> Spawn:
    return next(
        row
        for row in SPAWNS
        if row.workflow == workflow
        and row.frontend in (None, frontend)
        and row.uiux in (None, uiux)
    )


def _gate(department: Dept | None) -> str:
    return next(row.name for row in WAVE_GATES if row.department == department)
