"""The departments: their agents, prefixes and files, and which Leads are spawned in which waves.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from dataclasses import dataclass

from yolo_fs.protocol.names import Dept, Role


@dataclass(frozen=True, slots=True)
class Department:
    """A department, or the group of agents that all departments share."""

    name: Dept
    """Name in paths, status files and the configuration."""
    label: str
    """How document 002 prints it."""
    prefix: str
    """Prefix of artifact file names, and of agent names after `yolo-`."""
    roles: tuple[Role, ...]
    """Its agents, without prefix, in the order of the document."""
    protocol_file: str
    """File that describes its protocol."""
    context_file: str
    """The only context file that its agents receive, with the gap `{phase}`; empty for shared agents."""
    source: str = 'document 002 ("Multi-Department Structure")'
    """Section that the row restates."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of its agents, such as `fe-lead`."""
        return tuple(self.prefix + role for role in self.roles)


_NINE = (
    Role.ARCHITECT,
    Role.LEAD,
    Role.SENIOR,
    Role.DEV,
    Role.TESTER,
    Role.QA,
    Role.QA_CODE,
    Role.SECURITY,
    Role.DOCUMENTER,
)

DEPARTMENTS = (
    Department(
        name=Dept.BACKEND,
        label="Backend",
        prefix="",
        roles=_NINE,
        protocol_file="references/departments/backend.toon",
        context_file="{phase}-CONTEXT-backend.md",
    ),
    Department(
        name=Dept.FRONTEND,
        label="Frontend",
        prefix="fe-",
        roles=_NINE,
        protocol_file="references/departments/frontend.toon",
        context_file="{phase}-CONTEXT-frontend.md",
    ),
    Department(
        name=Dept.UIUX,
        label="UI/UX",
        prefix="ux-",
        roles=_NINE,
        protocol_file="references/departments/uiux.toon",
        context_file="{phase}-CONTEXT-uiux.md",
    ),
    Department(
        name=Dept.SHARED,
        label="Shared",
        prefix="",
        roles=(Role.OWNER, Role.CRITIC, Role.SCOUT, Role.DEBUGGER, Role.INTEGRATION_GATE),
        protocol_file="references/departments/shared.toon",
        context_file="",
    ),
)
"""The three departments, then the shared group."""

WORKING = DEPARTMENTS[:3]
"""The departments that run the workflow, in the order backend, frontend, uiux."""


def department(name: str) -> Department | None:
    """Return the department of that name, or None."""
    return next((row for row in DEPARTMENTS if row.name == name), None)


def name_in(role: str, name: str | None) -> str:
    """Return how a role is called in the department of that name: the Senior of the frontend is `fe-senior`.

    A role that the department does not have keeps its own name.
    """
    row = department(name) if name else None
    return row.prefix + role if row and role in row.roles else str(role)


@dataclass(frozen=True, slots=True)
class Spawn:
    """Which Leads are spawned, in which waves, for one configuration."""

    workflow: str
    """`department_workflow` of the configuration; `single` when only backend is active."""
    frontend: bool | None
    """Whether the frontend is active; None when it does not matter."""
    uiux: bool | None
    """Whether UI/UX is active; None when it does not matter."""
    waves: tuple[tuple[str, ...], ...]
    """Leads wave by wave; the Leads of one wave work in parallel."""
    order: str
    """`single`, `wave` or `sequential`."""
    source: str = "protocol 3.1"
    """Section that the row restates."""


SPAWNS = (
    Spawn("backend_only", None, None, (("lead",),), "single"),
    Spawn("parallel", True, False, (("fe-lead", "lead"),), "wave"),
    Spawn("parallel", False, True, (("ux-lead",), ("lead",)), "wave"),
    Spawn("parallel", True, True, (("ux-lead",), ("fe-lead", "lead")), "wave"),
    Spawn("sequential", True, True, (("ux-lead",), ("fe-lead",), ("lead",)), "sequential"),
    Spawn("sequential", True, False, (("fe-lead",), ("lead",)), "sequential"),
    Spawn("sequential", False, True, (("ux-lead",), ("lead",)), "sequential"),
)
