"""How far the plans of a phase are: whether what their summaries claim is true. Pure.

A summary counts only when its commits exist, touch the plan, and its tests agree.
See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from yolo_fs.artifacts.naming import purpose_of
from yolo_fs.core.ids import SHORT, PlanId, TaskRef
from yolo_fs.evidence.facts import (
    NOWHERE,
    CommittedArtifact,
    PhaseFacts,
    Plan,
    paths_in,
    plans_of,
    texts,
    touches,
)
from yolo_fs.protocol.departments import Dept


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
    return (*here, *awaited_elsewhere(facts, plan))


def awaited_elsewhere(facts: PhaseFacts, plan: Plan) -> Iterator[str]:
    """Yield the plans of `xd` that are not complete; where departments share a number, its own
    department's counts, else each.
    """
    for name in plan.elsewhere:
        named = {
            department: is_done
            for (department, number), is_done in facts.plans_of_all.items()
            if number == name
        }
        if not named.get(plan.department, bool(named) and all(named.values())):
            yield name


def _standing(facts: PhaseFacts, plan: Plan) -> tuple[PlanStanding, tuple[str, ...]]:
    summaries = facts.of_kind("summary", plan.department)
    committed = next((s for s in summaries if s.place.plan == plan.id and s.lines), None)
    if committed is None:
        started = any(commit_of_task(facts, plan, task) for task in plan.tasks)
        return (PlanStanding.RUNNING if started else PlanStanding.PENDING), ()
    summary = committed.lines[0]
    if summary.get("s") != "complete":
        return (PlanStanding.FAILED if summary.get("s") == "failed" else PlanStanding.PARTIAL), ()
    missing = (
        *_find_tasks_left_out(facts, plan, committed),
        *_find_empty_commits(facts, committed),
        *_lacking(facts, plan, summary),
    )
    return (PlanStanding.CLAIMED if missing else PlanStanding.COMPLETE), missing


def _find_tasks_left_out(
    facts: PhaseFacts, plan: Plan, summary: CommittedArtifact
) -> Iterator[str]:
    """Yield the tasks that a summary leaves out: it counts fewer than the plan has, unless that is
    signed, or the plan has others since, in the place of those that the summary's commits name.
    """
    is_changed = summary.position != NOWHERE and facts.is_later(plan.position, summary.position)
    total = summary.lines[0].get("tt")
    is_counted = is_changed or not facts.is_signed(summary.position)
    if is_counted and isinstance(total, int) and len(plan.tasks) > total:
        since = f" since {plan.commit[:SHORT]}" if is_changed else ""
        yield f"plan {plan.id} has {len(plan.tasks)} tasks{since}, the summary counts {total}"
        return
    if not is_changed:
        return
    ids = {f"{plan.id}/{task.get('id')}" for task in plan.tasks}
    commits = (facts.commits.get(name) for name in texts(summary.lines[0].get("ch")))
    purposes = (purpose_of(commit.subject) for commit in commits if commit)
    named = {str(each.task) for each in purposes if each and each.task and each.plan == plan.id}
    for task in plan.tasks if named - ids else ():
        if not commit_of_task(facts, plan, task):
            yield f"task {plan.id}/{task.get('id')} has no commit since {plan.commit[:SHORT]}"


def _find_empty_commits(facts: PhaseFacts, summary: CommittedArtifact) -> Iterator[str]:
    """Yield the commits of a summary that changed nothing, unless it is signed."""
    for name in () if facts.is_signed(summary.position) else texts(summary.lines[0].get("ch")):
        if (commit := facts.commits.get(name)) and commit.is_empty:
            yield f"commit {name} has changed nothing"


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
    named = (facts.commits.get(name) for name in texts(summary.get("ch")))
    commits = [commit for commit in named if commit]
    touched = {path for commit in commits for path in commit.files}
    is_known = bool(touched) or (bool(commits) and all(commit.is_empty for commit in commits))
    return bool(plan.files) and is_known and not touches(plan.files, touched)


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
