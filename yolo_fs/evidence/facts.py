"""Facts of one phase: committed artifacts, commits, settings. Pure.

The fold reads nothing else. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.naming import drop_reverted
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.ids import PhaseId, PlanId
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, DEPARTMENT_BY_NAME, WORKING, Dept
from yolo_fs.schemas.config import Config

_Answer = TypeVar("_Answer")


NOWHERE = -1
"""Position of what the branch does not have.
All others count from 0 on: each commit comes after its ancestors, and what a merge brings right
before the merge.
"""


class CommittedArtifact(NamedTuple):
    """One artifact as committed on the branch."""

    place: ArtifactPath
    lines: tuple[Mapping[str, Any], ...]
    """Its records; one for a document."""
    valid: bool
    """Whether it passes the protocol. The daemon commits only valid ones; people may commit any."""
    commit: str = ""
    """The commit that gave it this content; empty when unknown."""
    at_s: int = 0
    """Time of that commit, seconds since the epoch."""
    position: int = NOWHERE
    """Place of that commit in the order of the branch."""


class SourceCommit(NamedTuple):
    """A commit of the branch, as evidence for a plan."""

    oid: str
    subject: str
    files: frozenset[str]
    """Paths that it changed."""
    at_s: int
    """Committer time, seconds since the epoch."""
    is_empty: bool = False
    """Whether it changed nothing; not, where a clone without trees cannot tell."""


class Version(NamedTuple):
    """One content of a file, as given by a commit."""

    lines: tuple[Mapping[str, Any], ...]
    at_s: int
    """When, seconds since the epoch."""
    order: int
    """What loops compare, with the position of work: its own position, or one beyond that of the
    version before where a revert or a merge brought the content back.
    """
    position: int = NOWHERE
    """Place of the commit in the order of the branch."""
    content: str = ""
    """Id of its content; empty where nobody compares it."""
    is_restored: bool = False
    """Whether git made the commit, to take another back or to do it again."""


def drop_restored(versions: Sequence[Version]) -> Sequence[Version]:
    """Return the versions but for those that a revert took back, and those that it made: by one
    nobody says again what was said before.
    """
    if not any(version.is_restored for version in versions):
        return versions
    left: list[tuple[Version, ...]] = [()]
    """What is left as of each version, and before the first."""
    for at, version in enumerate(versions):
        same = (
            before + 1
            for before in reversed(range(at))
            if version.is_restored and versions[before].content == version.content
        )
        left.append(left[found] if (found := next(same, 0)) else (*left[at], version))
    return left[-1]


class Withdrawn(NamedTuple):
    """An artifact that spoke against its phase last, and of which the branch has no file."""

    step: str
    """Key of the step that it held; empty for a log that no step writes."""
    department: Dept
    path: str
    said: str

    @property
    def name(self) -> str:
        """Its file name."""
        return self.path.rpartition("/")[2]


class Work(NamedTuple):
    """A source commit that names a plan."""

    plan: str
    at_s: int
    position: int = NOWHERE
    """Place of the commit in the order of the branch."""
    files: frozenset[str] = frozenset()
    """Paths that it changed; if unknown, it counts as touching whatever the plan names."""
    commit: str = ""
    subject: str = ""
    """As which it counts: a revert of a merge is one of each commit that the merge brought."""


def left_by_reverts(works: Iterable[Work]) -> list[Work]:
    """Return the work of which no revert took anything back. A revert of what was there before is
    work itself: it may be the repair.
    """
    return [work for work, *_ in drop_reverted(works, lambda work: work.subject)]


_REVIEW, _ANALYSIS = "owner-review", "analysis"


STEP_OF_VERDICT: Mapping[str, str] = {
    "verification": "qa",
    "qa-code": "qa",
    "security-audit": "security",
}
"""Kind of a verdict that may be FAIL → key of its step."""


class WorkflowOptions(NamedTuple):
    """What the configuration and the command line turn off."""

    config: Config
    skip_qa: bool = False
    skip_security: bool = False
    complexity: str = ""
    """`trivial`, `medium` or `high` where complexity routing is enabled; empty for all steps."""
    needed: frozenset[Dept] = frozenset()
    """The departments that the Owner of the phase needs, or its analysis for trivial work; empty
    for all that are configured.
    """
    order: tuple[Dept, ...] = ()
    """The order in which the Owner of the phase dispatches them; empty for that of the tables."""
    begun: frozenset[Dept] = frozenset()
    """The departments that nobody can drop: a verdict on them says FAIL, or a task of theirs is on
    the branch. Dropping one would ship its source unverified; a revert of the source drops it.
    """

    @property
    def departments(self) -> tuple[Dept, ...]:
        """The active departments, backend first.

        These are the departments whose flags are on, limited to those that the Owner needs, and
        those that nobody can drop any more. The workflow only orders them.
        """
        wanted = self.config.departments
        flagged = {row.name for row in WORKING if wanted.get(row.name, row.is_default)}
        active = (flagged & self.needed or flagged or {DEFAULT_DEPARTMENT}) | self.begun
        return tuple(row.name for row in WORKING if row.name in active)

    def of_phase(self, committed: Iterable[CommittedArtifact]) -> WorkflowOptions:
        """Return the options of a phase with these artifacts, after its Owner's last review."""
        valid = [artifact for artifact in committed if artifact.valid]
        reviews = (each for each in valid if each.place.artifact.kind == _REVIEW)
        lines = [line for review in reviews for line in review.lines]
        begun = frozenset(_find_failed(valid))
        if not lines:
            analyses = (each for each in valid if each.place.artifact.kind == _ANALYSIS)
            said = [line for analysis in analyses for line in analysis.lines]
            return self._replace(needed=self._needed_by(said), order=(), begun=begun)
        order, needed = (
            tuple(Dept(name) for name in texts(lines[-1].get(key)) if name in DEPARTMENT_BY_NAME)
            for key in ("dispatch_order", "departments_needed")
        )
        return self._replace(needed=frozenset(needed), order=order, begun=begun)

    def _needed_by(self, analyses: Sequence[Mapping[str, Any]]) -> frozenset[Dept]:
        """Return the departments that an analysis names for trivial work, which has no Owner who
        would choose them; empty for any other work.
        """
        if not self.is_trivial(analyses):
            return frozenset()
        names = texts(analyses[-1].get("departments"))
        return frozenset(Dept(name) for name in names if name in DEPARTMENT_BY_NAME)

    def is_trivial(self, analyses: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether the last analysis of a phase says with enough confidence that its work is
        trivial.
        """
        rules = self.config.complexity_routing
        if not rules.enabled or not analyses or analyses[-1].get("complexity") != "trivial":
            return False
        sureness = analyses[-1].get("confidence")
        if not isinstance(sureness, int | float):
            return False
        return sureness >= rules.trivial_confidence_threshold

    @property
    def several_departments(self) -> bool:
        """Whether the company has more than the backend."""
        return any(dept is not DEFAULT_DEPARTMENT for dept in self.departments)


def _find_failed(artifacts: Iterable[CommittedArtifact]) -> Iterator[Dept]:
    for each in artifacts:
        is_verdict = each.place.artifact.kind in STEP_OF_VERDICT
        if is_verdict and any(line.get("r") == "FAIL" for line in each.lines):
            yield Dept(each.place.department)


@dataclass(frozen=True)
class PhaseFacts:
    """Immutable facts of a phase: all that a rule may read."""

    phase: PhaseId
    committed: tuple[CommittedArtifact, ...]
    """Artifacts of the phase, and those of the planning root that concern it."""
    options: WorkflowOptions
    commits: Mapping[str, SourceCommit] = field(default_factory=dict)
    """Hash as a summary spells it → the commit, where the branch contains it."""
    task_commits: Mapping[str, str] = field(default_factory=dict)
    """`NN-MM/Tk` → the commit whose subject names that task.
    The department is put in front (`frontend 01-01/T1`) where two have a plan of that number.
    """
    undone: Mapping[str, str] = field(default_factory=dict)
    """The same names → the commit that reverted what did the task."""
    handed_over: str = ""
    """The handoff of the phase before, an input of Critic and Architect; empty without one."""
    plans_of_all: Mapping[tuple[Dept, str], bool] = field(default_factory=dict)
    """(department, plan id) of every phase → whether its summary says complete, for `xd`."""
    needs_of_all: Mapping[tuple[Dept, str], tuple[str, ...]] = field(default_factory=dict)
    """The same keys → the plans that it names in `d` and `xd`, where it names any."""
    signed_off: str = ""
    """The commit that recorded the sign-off of this phase; empty while there is none."""
    signed_off_at: int = NOWHERE
    """Place of that commit in the order of the branch."""
    versions: Mapping[str, Sequence[Version]] = field(default_factory=dict)
    """Path of an artifact of a running loop → its versions, oldest first."""
    unread: Mapping[str, Sequence[Version]] = field(default_factory=dict)
    """Path → those of its versions whose contents this clone does not have, without a line."""
    withdrawn: tuple[Withdrawn, ...] = ()
    """What was said against the phase and was taken off the branch: it was said all the same."""
    work: tuple[Work, ...] = ()
    """The source commits of the plans, oldest first; of a phase that is signed off and asks for
    nothing, those after its sign-off."""
    changes: tuple[Work, ...] = ()
    """Commits that changed what was judged of a plan, and are something else by their subject: they
    reopen a step, and repair nothing."""
    unseen: Mapping[int, Set[int]] = field(default_factory=dict)
    """Position of what a merge brought → the positions before it of what its branch did not have.
    """
    is_doubled: bool = False
    """Whether another phase has its number."""
    at_s: int = 0
    """Time of the commit that the facts describe, seconds since the epoch."""
    home: str = PLANNING_ROOT
    """Where the phases in force live: the planning tree, or its active milestone."""

    @property
    def folder(self) -> str:
        """The directory of the phase, relative to the repository."""
        return f"{self.home}/phases/{self.phase}"

    @property
    def spelled(self) -> str:
        """What commands call the phase: its number, or its directory if another has that number."""
        return str(self.phase) if self.is_doubled else str(int(self.phase.number))

    def with_committed(self, *fresh: CommittedArtifact) -> PhaseFacts:
        """Return the facts with these artifacts added."""
        paths = {artifact.place.path for artifact in fresh}
        before = (artifact for artifact in self.committed if artifact.place.path not in paths)
        return replace(self, committed=(*before, *fresh))

    def of_kind(self, kind: str, department: Dept | None = None) -> tuple[CommittedArtifact, ...]:
        """Return the valid artifacts of a kind, of one department or of all, ordered by path."""
        artifacts = self._valid_by_kind.get(kind, ())
        if department is None:
            return tuple(artifacts)
        return tuple(artifact for artifact in artifacts if artifact.place.department == department)

    def has_any(self, kinds: Set[str]) -> bool:
        """Return whether there is a valid artifact of any of the kinds."""
        return not kinds.isdisjoint(self._valid_by_kind)

    @cached_property
    def _valid_by_kind(self) -> dict[str, list[CommittedArtifact]]:
        by_kind: dict[str, list[CommittedArtifact]] = {}
        for artifact in sorted(self.committed, key=lambda artifact: artifact.place.path):
            if artifact.valid:
                by_kind.setdefault(artifact.place.artifact.kind, []).append(artifact)
        return by_kind

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """The phase's plans in the order of their ids."""
        return plans_in(self.of_kind("plan"))

    def lines_of(self, kind: str, department: Dept | None = None) -> tuple[Mapping[str, Any], ...]:
        """Return all records of a kind."""
        return tuple(line for artifact in self.of_kind(kind, department) for line in artifact.lines)

    @cached_property
    def _answers(self) -> dict[Callable[[PhaseFacts], Any], Any]:
        return {}

    def ask(self, rule: Callable[[PhaseFacts], _Answer]) -> _Answer:
        """Return a rule's result for these facts. It is cached, since they never change."""
        if rule not in self._answers:
            self._answers[rule] = rule(self)
        answer: _Answer = self._answers[rule]
        return answer

    @cached_property
    def asks_time(self) -> bool:
        """Whether derived data depends on the time of the facts' commit.

        It does when an agent waits for an answer, or when nothing in the phase has a time of its
        own.
        """
        waits = any(map(is_blocking, self.lines_of("research")))
        return waits or not any(
            artifact.at_s for artifact in self.committed if artifact.commit and artifact.place.phase
        )

    def is_signed(self, position: int) -> bool:
        """Return whether the phase was signed off after a position on the branch."""
        is_known = bool(self.signed_off) and position != NOWHERE
        return is_known and not self.is_later(position, self.signed_off_at)

    def is_later(self, position: int, than: int) -> bool:
        """Return whether what has a position came after what has another, or on another branch:
        the other can have neither judged nor signed it.
        """
        return position > than or position in self.unseen.get(than, ())

    def execution_state(self) -> Mapping[str, Any]:
        """Return the committed execution state of this phase; empty when there is none."""
        committed = sorted(
            self.of_kind("execution-state"), key=lambda artifact: artifact.place.phase is None
        )
        number = int(self.phase.number)
        lines = (line for artifact in committed for line in artifact.lines)
        return next((line for line in lines if line.get("phase") == number), {})


class Plan(NamedTuple):
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
    position: int = NOWHERE
    """Place of that commit in the order of the branch."""

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The plans that `xd` names, `NN-MM`."""
        return tuple(f"{item.get('p')}-{item.get('n')}" for item in self.foreign)

    @property
    def names(self) -> tuple[str, ...]:
        """The plans that `d` and `xd` name."""
        return (*self.needs, *self.elsewhere)


def is_blocking(request: Mapping[str, Any]) -> bool:
    """Return whether the agent that asks for research waits for the answer, for some time."""
    return request.get("rt") == "blocking"


def plans_in(committed: Iterable[CommittedArtifact]) -> tuple[Plan, ...]:
    """Return the plans among artifacts, in the order of their ids."""
    plans = (
        _plan(artifact)
        for artifact in committed
        if artifact.valid
        and artifact.place.artifact.kind == "plan"
        and artifact.lines
        and artifact.place.plan
    )
    return tuple(sorted(plans, key=lambda plan: plan.id))


def plans_of(facts: PhaseFacts, department: Dept | None = None) -> tuple[Plan, ...]:
    """Return the phase's plans in the order of their ids."""
    if department is None:
        return facts.plans
    return tuple(plan for plan in facts.plans if plan.department == department)


def is_work_of(work: Work, department: Dept, plans: Iterable[Plan]) -> bool:
    """Return whether a source commit belongs to a department.

    Two departments may have plans of one number; then the changed files decide.
    """
    named = [plan for plan in plans if str(plan.id) == work.plan]
    if len({plan.department for plan in named}) > 1 and work.files:
        named = [plan for plan in named if touches(plan.files, work.files)]
    return any(plan.department == department for plan in named)


def _plan(artifact: CommittedArtifact) -> Plan:
    header, *tasks = artifact.lines
    assert artifact.place.plan is not None
    phase = artifact.place.plan.phase
    needs = tuple(f"{phase}-{name}" if len(name) == 2 else name for name in texts(header.get("d")))
    files = frozenset(
        [*paths_in(header.get("fm")), *(path for task in tasks for path in paths_in(task.get("f")))]
    )
    wave = header.get("w")
    return Plan(
        id=artifact.place.plan,
        department=Dept(artifact.place.department),
        title=str(header.get("t", "")),
        wave=wave if isinstance(wave, int | float) else 1,
        needs=needs,
        foreign=tuple(item for item in header.get("xd") or () if isinstance(item, dict)),
        files=files,
        tasks=tuple(tasks),
        commit=artifact.commit,
        position=artifact.position,
    )


def section(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a section of a configuration or state; empty when it is absent or no object."""
    part = content.get(key)
    return part if isinstance(part, dict) else {}


def texts(value: object) -> tuple[str, ...]:
    """Return the strings in a list; other items are ignored."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def paths_in(value: object) -> tuple[str, ...]:
    """Return the paths in a list as git spells them: `./src//a.ts` is `src/a.ts`. A pattern such as
    `src/*.ts` stands for the folder that it begins in.
    """
    return tuple(_spell(path) for path in texts(value) if path.strip())


def _spell(path: str) -> str:
    plain = posixpath.normpath(path.strip())
    begin, star, _ = plain.partition("*")
    return begin.rpartition("/")[0] or plain if star else plain


def all_present(lines: Iterable[Mapping[str, Any]], key: str) -> bool:
    """Return whether there are lines and each has a value under `key`."""
    listed = list(lines)
    return bool(listed) and all(line.get(key) for line in listed)


def touches(wanted: Set[str], touched: Set[str]) -> bool:
    """Return whether a changed path is one of the wanted files or lies below a wanted directory."""
    return any(
        path == file or path.startswith(file.rstrip("/") + "/")
        for file in wanted
        for path in touched
    )
