"""What is known of one phase: committed artifacts, commits, settings. The fold reads nothing else.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from yolo_fs.ids import PhaseId, PlanId
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, WORKING
from yolo_fs.protocol.names import Dept
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT
from yolo_fs.rules.artifacts.verdicts import Place

if TYPE_CHECKING:
    from yolo_fs.schemas.config import Config

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Filed:
    """One artifact as the branch has it."""

    place: Place
    lines: tuple[Mapping[str, Any], ...]
    """Its records; one for a document."""
    valid: bool
    """Whether it passes the protocol. The daemon commits nothing else, people may."""
    commit: str = ""
    """The commit that gave it this content; empty when unknown."""
    at_s: int = 0
    """When that commit was made, seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class SourceCommit:
    """A commit of the branch, as evidence for a plan."""

    oid: str
    subject: str
    files: frozenset[str]
    """Paths that it changed."""
    at_s: int
    """Committer time, seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Version:
    """One content that a commit gave a file."""

    lines: tuple[Mapping[str, Any], ...]
    at_s: int
    """When, seconds since the epoch."""
    order: int
    """Position of the commit in the branch's history, which clocks do not tell."""


@dataclass(frozen=True, slots=True)
class Work:
    """A source commit that names a plan."""

    plan: str
    at_s: int
    order: int


@dataclass(frozen=True, slots=True)
class Switches:
    """What the configuration and the command line turn off."""

    config: Config
    skip_qa: bool = False
    skip_security: bool = False
    complexity: str = ""
    """`trivial`, `medium` or `high` where complexity routing is enabled; empty for all steps."""

    @property
    def departments(self) -> tuple[Dept, ...]:
        """The active departments, backend first, by their flags; the workflow only orders them."""
        wanted = self.config.departments
        active = tuple(row.name for row in WORKING if wanted.get(row.name, row.is_default))
        return active or (DEFAULT_DEPARTMENT,)

    @property
    def several_departments(self) -> bool:
        """Whether the company has more than the backend."""
        return any(dept is not DEFAULT_DEPARTMENT for dept in self.departments)


@dataclass(frozen=True)
class PhaseFacts:
    """Everything that a rule may know of a phase; never changed once it is made."""

    phase: PhaseId
    filed: tuple[Filed, ...]
    """Artifacts of the phase, and those of the planning root that concern it."""
    switches: Switches
    commits: Mapping[str, SourceCommit] = field(default_factory=dict)
    """Hash as a summary spells it → the commit, where the branch contains it."""
    task_commits: Mapping[str, str] = field(default_factory=dict)
    """`NN-MM/Tk` → the commit whose subject names that task."""
    handed_over: str = ""
    """The handoff of the phase before, an input of Critic and Architect; empty when there is
    none."""
    earlier_plans: Mapping[str, bool] = field(default_factory=dict)
    """Plan id of another phase → whether its summary says complete, for `xd`."""
    signed_off: str = ""
    """The commit that recorded the sign-off of this phase; empty while there is none."""
    versions: Mapping[str, tuple[Version, ...]] = field(default_factory=dict)
    """Path of an artifact of a loop that goes on → its versions, oldest first."""
    work: tuple[Work, ...] = ()
    """The source commits of the plans while a loop goes on, oldest first."""
    at_s: int = 0
    """When the commit was made that the facts are of, seconds since the epoch."""
    home: str = PLANNING_ROOT
    """Where the phases in force live: the planning tree, or its active milestone."""

    @property
    def folder(self) -> str:
        """The directory of the phase, relative to the repository."""
        return f"{self.home}/phases/{self.phase}"

    def of_kind(self, kind: str, department: Dept | None = None) -> tuple[Filed, ...]:
        """Return the valid artifacts of a kind, of one department or of all, in the order of their
        paths.
        """
        found = self._valid_by_kind.get(kind, ())
        if department is None:
            return tuple(found)
        return tuple(filed for filed in found if filed.place.department == department)

    @cached_property
    def _valid_by_kind(self) -> dict[str, list[Filed]]:
        found: dict[str, list[Filed]] = {}
        for filed in sorted(self.filed, key=lambda filed: filed.place.path):
            if filed.valid:
                found.setdefault(filed.place.artifact.kind, []).append(filed)
        return found

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """The phase's plans in the order of their ids."""
        filed = (one for one in self.of_kind("plan") if one.lines and one.place.plan)
        return tuple(sorted(map(_plan, filed), key=lambda plan: plan.id))

    def lines_of(self, kind: str, department: Dept | None = None) -> tuple[Mapping[str, Any], ...]:
        """Return all records of a kind."""
        return tuple(line for filed in self.of_kind(kind, department) for line in filed.lines)

    @cached_property
    def _answers(self) -> dict[Callable[[PhaseFacts], Any], Any]:
        return {}

    def ask(self, rule: Callable[[PhaseFacts], _Answer]) -> _Answer:
        """Return what a rule says of these facts; it is asked once, since they never change."""
        if rule not in self._answers:
            self._answers[rule] = rule(self)
        answer: _Answer = self._answers[rule]
        return answer

    @cached_property
    def asks_time(self) -> bool:
        """Whether anything that follows depends on when the commit of the facts was made: an agent
        waits for an answer, or nothing of the phase has a time of its own.
        """
        waits = any(map(is_blocking, self.lines_of("research")))
        return waits or not any(one.at_s for one in self.filed if one.commit and one.place.phase)

    def execution_state(self) -> Mapping[str, Any]:
        """Return the committed execution state of this phase; empty when there is none."""
        filed = sorted(self.of_kind("execution-state"), key=lambda one: one.place.phase is None)
        number = int(self.phase.number)
        lines = (line for one in filed for line in one.lines)
        return next((line for line in lines if line.get("phase") == number), {})


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan with its tasks, as its file says."""

    id: PlanId
    department: Dept
    title: str
    wave: float
    needs: tuple[str, ...]
    """Plans of this phase that must be complete first."""
    foreign: tuple[Mapping[str, Any], ...]
    """`xd`: dependencies on other phases."""
    files: frozenset[str]
    """Files that the plan may touch: its `fm`, and the `f` of its tasks."""
    tasks: tuple[Mapping[str, Any], ...]
    commit: str


def is_blocking(request: Mapping[str, Any]) -> bool:
    """Return whether the agent that asks for research waits for the answer, for some time."""
    return request.get("rt") == "blocking"


def plans_of(facts: PhaseFacts, department: Dept | None = None) -> tuple[Plan, ...]:
    """Return the phase's plans in the order of their ids."""
    if department is None:
        return facts.plans
    return tuple(plan for plan in facts.plans if plan.department == department)


def _plan(filed: Filed) -> Plan:
    header, *tasks = filed.lines
    assert filed.place.plan is not None
    phase = filed.place.plan.phase
    needs = tuple(f"{phase}-{name}" if len(name) == 2 else name for name in texts(header.get("d")))
    files = frozenset(
        [*texts(header.get("fm")), *(path for task in tasks for path in texts(task.get("f")))]
    )
    wave = header.get("w")
    return Plan(
        id=filed.place.plan,
        department=Dept(filed.place.department),
        title=str(header.get("t", "")),
        wave=wave if isinstance(wave, int | float) else 1,
        needs=needs,
        foreign=tuple(item for item in header.get("xd") or () if isinstance(item, dict)),
        files=files,
        tasks=tuple(tasks),
        commit=filed.commit,
    )


def texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list, leaving out what is none."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def all_present(lines: Iterable[Mapping[str, Any]], key: str) -> bool:
    """Return whether there are lines and each says something under `key`."""
    listed = list(lines)
    return bool(listed) and all(line.get(key) for line in listed)
