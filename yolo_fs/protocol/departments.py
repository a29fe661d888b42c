"""The closed lists of names that all tables of the protocol share: who, where, in which team; and
the departments: their agents, prefixes and files, and which Leads are spawned in which waves.

A new department is a member of `Dept` and a row here; everything else follows from the row. See
docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from yolo_fs.core.labelled import Labelled


class Role(Labelled):
    """What somebody does, in any department; value as in agent names, `label` as in tables."""

    ANALYZE = "analyze", "Analyze"
    PO = "po", "PO"
    QUESTIONARY = "questionary", "Questionary"
    ROADMAP = "roadmap", "Roadmap"
    CRITIC = "critic", "Critic"
    ARCHITECT = "architect", "Architect"
    LEAD = "lead", "Lead"
    SENIOR = "senior", "Senior"
    TESTER = "tester", "Tester"
    DEV = "dev", "Dev"
    QA = "qa", "QA Lead"
    QA_CODE = "qa-code", "QA Code"
    SECURITY = "security", "Security"
    DOCUMENTER = "documenter", "Documenter"
    SCOUT = "scout", "Scout"
    DEBUGGER = "debugger", "Debugger"
    INTEGRATION_GATE = "integration-gate", "Integration Gate"
    OWNER = "owner", "Owner"
    GO = "go.md", "go.md"
    """The entry point of every command, proxy of the Owner; not an agent."""
    USER = "user", "User"
    """The human; not an agent."""


class Dept(StrEnum):
    """A group of agents that shares a protocol file."""

    BACKEND = "backend"
    FRONTEND = "frontend"
    UIUX = "uiux"
    SHARED = "shared"


class Mode(StrEnum):
    """Whether one department works or several."""

    SINGLE = "single-department"
    MULTI = "multi-department"


class Department(NamedTuple):
    """A department, or the group of agents that all departments share."""

    name: Dept
    """Name in paths, status files and the configuration."""
    label: str
    """Name in texts."""
    prefix: str
    """Prefix of artifact file names, and of agent names after `yolo-`."""
    roles: tuple[Role, ...]
    """Its agents, without prefix."""
    runs_workflow: bool = True
    """It works through the steps of a phase."""
    is_default: bool = False
    """It always works, and is meant where no department is named."""
    wave: int = 2
    """Wave of the parallel workflow in which its Lead is spawned."""
    subject_word: str = ""
    """What subjects that name the department call it; empty for its own name."""
    nicknames: tuple[str, ...] = ()
    """What people write for its prefix by mistake."""
    other_sentinels: tuple[str, ...] = ()
    """Further names of the file that says that it has handed over; the first is preferred."""
    off_limits: tuple[str, ...] = ()
    """Folders outside the planning tree in which its agents may not write."""
    marker: str = ""
    """What its ids of escalations have where another department has reported a task of the same
    number without one; empty for its prefix.
    """
    example_folder: str = "src/"
    """Where the files of its examples lie, and no other's: a change to them reopens no review of
    another department.
    """

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of its agents, such as `fe-lead`."""
        return tuple(self.prefix + role for role in self.roles)

    @property
    def lead(self) -> str:
        """Name of its Lead."""
        return self.prefix + Role.LEAD

    @property
    def in_ids(self) -> str:
        """What tells its escalations from another department's of one task number."""
        return self.marker or self.prefix

    @property
    def in_subjects(self) -> str:
        """How a subject that tells departments apart begins: with nothing for the default one."""
        return "" if self.is_default else f"{self.subject_word or self.name} "

    @property
    def sentinels(self) -> tuple[str, ...]:
        """Empty files that say that it has handed over, the preferred name first."""
        return (*self.other_sentinels, f".handoff-{self.name}-complete")


_NINE = (
    Role.ARCHITECT, Role.LEAD, Role.SENIOR, Role.DEV, Role.TESTER, Role.QA, Role.QA_CODE,
    Role.SECURITY, Role.DOCUMENTER,
)  # fmt: skip
_DESIGN_FOLDERS = ("design/", "wireframes/", "design-tokens/")
_TOOL_FOLDERS = ("scripts/", "agents/", "hooks/", "config/")

DEPARTMENTS = (
    Department(
        name=Dept.BACKEND,
        label="Backend",
        nicknames=("be",),
        prefix="",
        marker="be-",
        roles=_NINE,
        is_default=True,
        off_limits=(
            "frontend/",
            "src/components/",
            "src/pages/",
            "src/hooks/",
            "src/styles/",
            *_DESIGN_FOLDERS,
        ),
    ),
    Department(
        name=Dept.FRONTEND,
        label="Frontend",
        prefix="fe-",
        roles=_NINE,
        off_limits=(*_TOOL_FOLDERS, *_DESIGN_FOLDERS),
        example_folder="src/components/",
    ),
    Department(
        name=Dept.UIUX,
        label="UI/UX",
        nicknames=("ui",),
        prefix="ux-",
        roles=_NINE,
        wave=1,
        subject_word="UX",
        other_sentinels=(".handoff-ux-complete",),
        off_limits=("src/", *_TOOL_FOLDERS),
        example_folder="design/",
    ),
    Department(
        name=Dept.SHARED,
        label="Shared",
        prefix="",
        roles=(Role.OWNER, Role.CRITIC, Role.SCOUT, Role.DEBUGGER, Role.INTEGRATION_GATE),
        runs_workflow=False,
    ),
)
"""In the order in which lists name them; later ones of a wave are spawned before earlier ones."""

DEPARTMENT_BY_NAME = {row.name: row for row in DEPARTMENTS}

WORKING = tuple(row for row in DEPARTMENTS if row.runs_workflow)
"""The departments that run the workflow."""

WORKING_NAMES = tuple(row.name for row in WORKING)
ANY_OF_WORKING = f"{', '.join(WORKING_NAMES[:-1])} or {WORKING_NAMES[-1]}"
"""Their names in a sentence."""
PREFIXES = tuple(row.prefix for row in WORKING)
"""What their artifacts' names begin with; nothing for the default one."""

DEPARTMENT_BY_PREFIX = {row.prefix: row.name for row in WORKING}
DEPARTMENT_BY_MARKER = {row.in_ids: row.name for row in WORKING}

SHARED_NAMES = tuple(row.name for row in DEPARTMENTS if not row.runs_workflow)
"""Groups whose agents serve every department."""

DEFAULT_DEPARTMENT = next(row.name for row in DEPARTMENTS if row.is_default)
"""The department that always works, and is meant where none is named."""


def department(name: str) -> Department | None:
    """Return the department of that name, or None."""
    return next((row for row in DEPARTMENTS if row.name == name), None)


def name_in(role: str, name: str | None) -> str:
    """Return how a role is called in the department of that name: the Senior of the frontend is
    `fe-senior`.

    A role that the department does not have keeps its own name.
    """
    row = department(name) if name else None
    return row.prefix + role if row and role in row.roles else str(role)


class Barrier(NamedTuple):
    """Two departments that never deal with each other directly."""

    departments: frozenset[Dept]
    """Both sides."""
    hidden: Dept
    """The side whose artifacts the other side never reads."""
    relay: Dept
    """The department whose Lead passes on what matters."""


BARRIERS = (Barrier(frozenset({Dept.BACKEND, Dept.UIUX}), Dept.UIUX, Dept.FRONTEND),)


def barrier_between(department: str | None, other: str | None) -> Barrier | None:
    """Return the barrier between two departments, or None where they may speak."""
    return next((row for row in BARRIERS if row.departments == {department, other}), None)


BACKEND_ONLY = "backend_only"
PARALLEL = "parallel"
SEQUENTIAL = "sequential"
WORKFLOWS = (BACKEND_ONLY, PARALLEL, SEQUENTIAL)
"""Values of `department_workflow` in `config.json`."""

SPAWN_ORDERS = {BACKEND_ONLY: "single", PARALLEL: "wave", SEQUENTIAL: "sequential"}
"""How each workflow spawns its Leads."""


def waves_of(workflow: str, active: Collection[str]) -> tuple[tuple[Department, ...], ...]:
    """Return the active departments wave by wave; those of one wave work in parallel."""
    rows = [row for row in reversed(WORKING) if row.is_default or row.name in active]
    if workflow == BACKEND_ONLY:
        return (tuple(row for row in rows if row.is_default),)
    ordered = sorted(rows, key=lambda row: row.wave)
    if workflow == SEQUENTIAL:
        return tuple((row,) for row in ordered)
    numbers = sorted({row.wave for row in rows})
    return tuple(tuple(row for row in ordered if row.wave == number) for number in numbers)
