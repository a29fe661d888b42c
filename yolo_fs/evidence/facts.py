"""Facts of one phase: committed artifacts, commits, settings; whether "complete" is true. Pure.

The fold reads nothing else. A summary counts only when its commits exist, touch the plan, and its
tests agree. A FAIL outweighs every claim that a step or a phase is done: no skip and no sign-off
overrides it. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, TypeVar

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.naming import purpose_of
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.ids import SHORT, PhaseId, PlanId, TaskRef
from yolo_fs.core.reasons import safe
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, DEPARTMENT_BY_NAME, WORKING, Dept
from yolo_fs.protocol.gates import Decision
from yolo_fs.schemas.config import Config
from yolo_fs.schemas.contradictions import Contradicted, contradicted

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


FETCH_LACKING = "git fetch --refetch --no-filter"
"""Brings what a partial clone lacks."""


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


_REVIEW, _ANALYSIS = "owner-review", "analysis"


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
        """Return the switches of a phase with these artifacts, after its Owner's last review."""
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
    earlier_plans: Mapping[str, bool] = field(default_factory=dict)
    """Plan id of another phase → whether its summary says complete, for `xd`."""
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


class PlanStanding(StrEnum):
    """Progress of a plan."""

    PENDING = "pending"
    """No summary yet, no task committed."""
    RUNNING = "running"
    """At least one task is committed."""
    CLAIMED = "claimed"
    """The summary says complete, the evidence does not."""
    COMPLETE = "complete"
    PARTIAL = "partial"
    """The summary says partial."""
    FAILED = "failed"
    """The summary says failed."""


class TaskProgress(NamedTuple):
    """One task of a plan."""

    ref: TaskRef
    action: str
    commit: str
    """The commit whose subject names it; empty while there is none."""
    layer: int
    """Tasks of one layer can be done in parallel; layer 1 depends on nothing. 0: a cycle."""


class PlanStatus(NamedTuple):
    """One plan and its evidence."""

    id: PlanId
    department: Dept
    title: str
    wave: float
    standing: PlanStanding
    tasks: tuple[TaskProgress, ...]
    missing: tuple[str, ...]
    """What a claim lacks, one sentence each."""
    blocked_by: tuple[str, ...]
    """Plans that must be complete first and are not."""
    commit: str
    """The commit of the plan file."""

    @property
    def is_done(self) -> bool:
        """Whether no more work on it is needed."""
        return self.standing is PlanStanding.COMPLETE


def plan_progress(facts: PhaseFacts, department: Dept | None = None) -> tuple[PlanStatus, ...]:
    """Return the progress of each plan of the phase, ordered by id."""
    every = facts.ask(_list_plan_statuses)
    if department is None:
        return every
    return tuple(status for status in every if status.department == department)


def _list_plan_statuses(facts: PhaseFacts) -> tuple[PlanStatus, ...]:
    standing = {(plan.department, str(plan.id)): _standing(facts, plan) for plan in facts.plans}
    return tuple(
        PlanStatus(
            id=plan.id,
            department=plan.department,
            title=plan.title,
            wave=plan.wave,
            standing=standing[plan.department, str(plan.id)][0],
            tasks=_tasks(facts, plan),
            missing=standing[plan.department, str(plan.id)][1],
            blocked_by=_blockers(facts, plan, standing),
            commit=plan.commit,
        )
        for plan in plans_of(facts)
    )


def layers(tasks: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return task ids in layers that can be done in parallel, in file order; empty for a cycle.

    Unknown dependencies are ignored.
    """
    order = {name: position for position, name in enumerate(tasks)}
    graph = TopologicalSorter(
        {name: [need for need in needs if need in tasks] for name, needs in tasks.items()}
    )
    ready_layers = []
    try:
        graph.prepare()
    except CycleError:
        return ()
    while graph.is_active():
        ready = sorted(graph.get_ready(), key=order.__getitem__)
        ready_layers.append(tuple(ready))
        graph.done(*ready)
    return tuple(ready_layers)


def _tasks(facts: PhaseFacts, plan: Plan) -> tuple[TaskProgress, ...]:
    named = {str(task.get("id")): texts(task.get("td")) for task in plan.tasks}
    layer_of = {name: number for number, layer in enumerate(layers(named), 1) for name in layer}
    tasks = []
    for task in plan.tasks:
        ref = TaskRef.parse(f"{plan.id}/{task.get('id')}")
        if ref:
            layer = layer_of.get(str(task.get("id")), 0)
            commit = commit_of_task(facts, plan, task)
            tasks.append(TaskProgress(ref, str(task.get("a", "")), commit, layer))
    return tuple(tasks)


def commit_of_task(facts: PhaseFacts, plan: Plan, task: Mapping[str, Any]) -> str:
    """Return the commit that completed a task; empty while there is none.

    A task whose files are artifacts, as in UI/UX, is completed by the commits of these.
    """
    named = facts.task_commits.get(key_of_task(facts.plans, plan, str(task.get("id"))), "")
    files = paths_in(task.get("f"))
    if named or not files:
        return named
    committed = facts.ask(_map_valid_by_path)
    made = [committed.get(path) for path in files]
    return made[-1].commit if all(made) and made[-1] else ""


def key_of_task(plans: Iterable[Plan], plan: Plan, task: str) -> str:
    """Return the key of a task in `PhaseFacts.task_commits`."""
    return f"{plan.department} " * shares_number(plans, plan) + f"{plan.id}/{task}"


def shares_number(plans: Iterable[Plan], plan: Plan | PlanStatus) -> bool:
    """Return whether another department has a plan of the same number."""
    return any(each.id == plan.id and each.department != plan.department for each in plans)


def _map_valid_by_path(facts: PhaseFacts) -> Mapping[str, CommittedArtifact]:
    return {artifact.place.path: artifact for artifact in facts.committed if artifact.valid}


def _blockers(
    facts: PhaseFacts,
    plan: Plan,
    standing: Mapping[tuple[Dept, str], tuple[PlanStanding, tuple[str, ...]]],
) -> tuple[str, ...]:
    """Return the plans that a plan waits for; where two share a number, its own department's."""
    by_name: dict[str, list[PlanStanding]] = {}
    for (department, name), (how_far, _) in standing.items():
        if department == plan.department or (plan.department, name) not in standing:
            by_name.setdefault(name, []).append(how_far)
    here = [
        name
        for name in plan.needs
        if not by_name.get(name) or set(by_name[name]) != {PlanStanding.COMPLETE}
    ]
    elsewhere = [
        name
        for item in plan.foreign
        if not facts.earlier_plans.get(name := f"{item.get('p')}-{item.get('n')}", False)
    ]
    return (*here, *elsewhere)


def _standing(facts: PhaseFacts, plan: Plan) -> tuple[PlanStanding, tuple[str, ...]]:
    summaries = facts.of_kind("summary", plan.department)
    committed = next((s for s in summaries if s.place.plan == plan.id and s.lines), None)
    if committed is None:
        started = any(commit_of_task(facts, plan, task) for task in plan.tasks)
        return (PlanStanding.RUNNING if started else PlanStanding.PENDING), ()
    summary = committed.lines[0]
    if summary.get("s") != "complete":
        return (PlanStanding.FAILED if summary.get("s") == "failed" else PlanStanding.PARTIAL), ()
    missing = (*_find_later_tasks(facts, plan, committed), *_lacking(facts, plan, summary))
    return (PlanStanding.CLAIMED if missing else PlanStanding.COMPLETE), missing


def _find_later_tasks(facts: PhaseFacts, plan: Plan, summary: CommittedArtifact) -> Iterator[str]:
    """Yield the tasks that the plan has only since after its summary: more of them, or others in
    the place of those that the summary's commits name.
    """
    if summary.position == NOWHERE or not facts.is_later(plan.position, summary.position):
        return
    total = summary.lines[0].get("tt")
    if isinstance(total, int) and len(plan.tasks) > total:
        yield (
            f"plan {plan.id} has {len(plan.tasks)} tasks since {plan.commit[:SHORT]}, "
            f"the summary counts {total}"
        )
        return
    ids = {f"{plan.id}/{task.get('id')}" for task in plan.tasks}
    commits = (facts.commits.get(name) for name in texts(summary.lines[0].get("ch")))
    purposes = (purpose_of(commit.subject) for commit in commits if commit)
    named = {str(each.task) for each in purposes if each and each.task and each.plan == plan.id}
    for task in plan.tasks if named - ids else ():
        if not commit_of_task(facts, plan, task):
            yield f"task {plan.id}/{task.get('id')} has no commit since {plan.commit[:SHORT]}"


def _lacking(facts: PhaseFacts, plan: Plan, summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the evidence that a summary which says complete lacks."""
    done, total = summary.get("tc"), summary.get("tt")
    if done != total:
        yield f"the summary counts {done} of {total} tasks"
    hashes = texts(summary.get("ch"))
    if not hashes:
        yield "the summary names no commit"
    yield from (
        f"commit {name} is not on this branch" for name in hashes if name not in facts.commits
    )
    if touches_nothing(facts, plan, summary):
        yield f"none of its commits touches a file of plan {plan.id}"
    for task in plan.tasks:
        name = str(task.get("id"))
        if by := facts.undone.get(key_of_task(facts.plans, plan, name)):
            yield f"task {plan.id}/{name} was reverted by {by[:SHORT]}"
    yield from _test_doubts(facts, plan, summary)


def touches_nothing(facts: PhaseFacts, plan: Plan, summary: Mapping[str, Any]) -> bool:
    """Return whether the commits named by a summary exist but none touches its plan."""
    commits = (facts.commits.get(name) for name in texts(summary.get("ch")))
    touched = {path for commit in commits if commit for path in commit.files}
    return bool(plan.files and touched) and not touches(plan.files, touched)


def touches(wanted: Set[str], touched: Set[str]) -> bool:
    """Return whether a changed path is one of the wanted files or lies below a wanted directory."""
    return any(
        path == file or path.startswith(file.rstrip("/") + "/")
        for file in wanted
        for path in touched
    )


def _test_doubts(facts: PhaseFacts, plan: Plan, summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the summary's claims about tests contradict the recorded results."""
    results = [
        line
        for line in facts.lines_of("test-results", plan.department)
        if line.get("plan") == str(plan.id)
    ]
    green = [line for line in results if line.get("phase") == "green"]
    if any(line.get("fl") for line in green[-1:]):
        yield f"test-results of plan {plan.id} end with {green[-1]['fl']} failing"
    if summary.get("tst") == "red_green" and results and not green:
        yield "the summary says red_green, test-results have no green run"


@dataclass(frozen=True, slots=True)
class Failure:
    """One line of the evidence that says FAIL."""

    step: str
    """Key of the step that it is evidence of."""
    what: str
    file: str
    line: int
    is_contradiction: bool = False
    """It says something else, which the evidence in the same file contradicts."""

    def __str__(self) -> str:
        return self.what


OWNERS_DECISION = "owner"
"""Pseudo-step for the Owner's decision on the phase as a whole."""
POST_PHASE = "post-phase"
"""Pseudo-step for the QA gate after the phase's plans."""

_VERDICTS = (
    ("qa", "verification", "verification says FAIL"),
    ("qa", "qa-code", "qa-code says FAIL"),
    ("security", "security-audit", "security says FAIL: the user decides"),
)
"""Key of the step, kind of its verdict, and the text that reports its failure."""
STEP_OF_VERDICT: Mapping[str, str] = {kind: step for step, kind, _ in _VERDICTS}


def withdrawn_from(facts: PhaseFacts, step: str, department: Dept | None = None) -> Iterator[str]:
    """Yield what spoke against a step and was taken off the branch, with nothing in its place."""
    for artifact in facts.withdrawn:
        if artifact.step == step and department in (None, artifact.department):
            again = "judged" if step in STEP_OF_VERDICT.values() else "written"
            yield f"{artifact.name} said {artifact.said} and was withdrawn: it is {again} again"


def failures_of(
    facts: PhaseFacts, step: str = "", department: Dept | None = None
) -> Iterator[Failure]:
    """Yield the failures of one step or of the whole phase, of one department or of all."""
    for key, kind, what in _VERDICTS:
        for artifact in facts.of_kind(kind, department) if step in ("", key) else ():
            for number, line in enumerate(artifact.lines, 1):
                if line.get("r") == "FAIL":
                    yield Failure(key, what, artifact.place.name, number)
            for contradiction in contradictions_in(facts, artifact):
                sentence, at = f"{kind}: {contradiction.what}", contradiction.position + 1
                yield Failure(key, sentence, artifact.place.name, at, is_contradiction=True)
    if step in ("", "integration_gate"):
        yield from _integration(facts)
    if not step:
        yield from failing_tests(facts)
        yield from _find_owner_hold(facts)


def contradictions_in(facts: PhaseFacts, artifact: CommittedArtifact) -> Iterator[Contradicted]:
    """Yield what a verdict says against itself, unless it was signed off."""
    if not facts.is_signed(artifact.position):
        yield from contradicted(artifact.place.artifact.kind, artifact.lines)


_RESTED_ON = frozenset({
    "critique", "research", "plan", "test-plan", "summary", "test-results", "code-review",
    "verification", "qa-code", "qa-gate-results", "security-audit", "integration-gate-result",
    "po-qa-verdict", "owner-signoff", "dept-handoff", "decisions", "escalation",
})  # fmt: skip
"""Kinds that may say what holds a phase: one that cannot be read may say so as well."""


def find_unreadable(
    facts: PhaseFacts, step: str | None = None, department: Dept | None = None
) -> Iterator[ArtifactPath]:
    """Yield what the branch has and nobody can read, of one step (empty: of none) or of all.

    `department`: whose; None for all. What such a file says is not known, so it holds what rests
    on it, as a file that is not there does not. What was there at the sign-off is signed.
    """
    for artifact in sorted(facts.ask(_find_invalid), key=lambda each: each.place.path):
        place = artifact.place
        if place.phase is None or place.artifact.kind not in _RESTED_ON:
            continue
        if facts.is_signed(artifact.position):
            continue
        if step in (None, place.artifact.step) and department in (None, place.department):
            yield place


def _find_invalid(facts: PhaseFacts) -> tuple[CommittedArtifact, ...]:
    return tuple(artifact for artifact in facts.committed if not artifact.valid)


def find_holding(facts: PhaseFacts) -> Iterator[CommittedArtifact]:
    """Yield the artifacts that hold what rests on them, as they cannot be read or contradict
    themselves.
    """
    paths = {place.path for place in find_unreadable(facts)}
    for artifact in facts.committed:
        if artifact.place.path in paths or (
            artifact.valid and any(contradictions_in(facts, artifact))
        ):
            yield artifact


def unreadable(
    facts: PhaseFacts, step: str | None = None, department: Dept | None = None
) -> Iterator[str]:
    """Yield the same in words."""
    for place in find_unreadable(facts, step, department):
        yield (
            f"{place.name} is on the branch and cannot be read: 'yolo-fs validate {place.path}' "
            "says why"
        )


def _integration(facts: PhaseFacts) -> Iterator[Failure]:
    """Yield the failure of the last result, which replaces the earlier ones."""
    for artifact in facts.of_kind("integration-gate-result"):
        last = artifact._replace(lines=artifact.lines[-1:])
        says = [f": {contradiction.what}" for contradiction in contradictions_in(facts, last)]
        if any(line.get("r") == "FAIL" for line in last.lines):
            says.append(" says FAIL")
        for sentence in says:
            what = f"the integration gate{sentence}"
            yield Failure("integration_gate", what, artifact.place.name, len(artifact.lines))


def _find_owner_hold(facts: PhaseFacts) -> Iterator[Failure]:
    """The Owner's last word holds the phase, and a SHIP those departments that it leaves out; it
    opens nothing that the evidence closes. Where a Product Owner is asked, the delivery tells of
    whom it leaves out.
    """
    for artifact in facts.of_kind("owner-signoff"):
        last = artifact.lines[-1] if artifact.lines else {}
        if last.get("decision") == Decision.HOLD:
            notes = safe(str(last.get("notes") or "without a reason"))
            what = f"the Owner says HOLD: {notes}"
            yield Failure(OWNERS_DECISION, what, artifact.place.name, len(artifact.lines))
        elif last and not facts.options.config.po.enabled and (what := _leaves_out(facts, last)):
            yield Failure(OWNERS_DECISION, what, artifact.place.name, len(artifact.lines))
    for sentence in withdrawn_from(facts, OWNERS_DECISION):
        yield Failure(OWNERS_DECISION, sentence, SIGN_OFF, 0)


def _leaves_out(facts: PhaseFacts, signoff: Mapping[str, Any]) -> str:
    """Return whom the Owner does not approve, in words; empty where nobody is left out."""
    if not facts.options.several_departments:
        return ""
    approved = texts(signoff.get("departments_approved"))
    missing = [
        department.value for department in facts.options.departments if department not in approved
    ]
    return f"{SIGN_OFF} does not approve {', '.join(missing)}" if missing else ""


SIGN_OFF = "owner-signoff.jsonl"


def owner_lacks(facts: PhaseFacts) -> str:
    """Return what the Owner's delivery lacks after the Product Owner's approval; empty if nothing.

    Only a phase of several departments needs it: with one department, the Owner is go.md.
    """
    if not facts.options.several_departments:
        return ""
    signed = next(reversed(facts.of_kind("owner-signoff")), None)
    if signed is None or not signed.lines:
        return f"no {SIGN_OFF}"
    last = signed.lines[-1]
    if last.get("decision") != Decision.SHIP:
        return f"the Owner says {last.get('decision')}"
    if left_out := _leaves_out(facts, last):
        return left_out
    if signed.position != NOWHERE and any(
        facts.is_later(verdict.position, signed.position)
        for verdict in facts.of_kind("po-qa-verdict")
    ):
        return f"{SIGN_OFF} is older than po-qa-verdict.jsonl"
    return ""


def failing_tests(facts: PhaseFacts) -> Iterator[Failure]:
    """Yield each plan whose last run of tests failed."""
    last_run = {
        (artifact.place.department, line.get("plan")): (artifact.place.name, number, line)
        for artifact in facts.of_kind("test-results")
        for number, line in enumerate(artifact.lines, 1)
    }
    for (_, plan), (name, number, line) in last_run.items():
        if line.get("fl"):
            what = f"{line['fl']} tests of plan {plan} fail"
            yield Failure("implementation", what, name, number)
