"""Whether "complete" is true: a summary counts only when its commits exist, touch the plan, and its
tests agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any

from yolo_fs.ids import PlanId, TaskRef
from yolo_fs.protocol.names import Dept
from yolo_fs.rules.evidence.facts import PhaseFacts, Plan, plans_of, texts


class PlanStanding(StrEnum):
    """How far a plan is."""

    PENDING = "pending"
    """No summary yet, no task committed."""
    RUNNING = "running"
    """Some task is committed."""
    CLAIMED = "claimed"
    """The summary says complete, the evidence does not."""
    COMPLETE = "complete"
    PARTIAL = "partial"
    """The summary says partial."""
    FAILED = "failed"
    """The summary says failed."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """One task of a plan."""

    ref: TaskRef
    action: str
    commit: str
    """The commit whose subject names it; empty while there is none."""
    layer: int
    """Tasks of one layer may be done at once; layer 1 needs nothing. 0 when the tasks run in a
    circle.
    """


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """One plan and what proves it."""

    id: PlanId
    department: Dept
    title: str
    wave: float
    standing: PlanStanding
    tasks: tuple[TaskProgress, ...]
    missing: tuple[str, ...]
    """What a claim lacks, sentence by sentence."""
    blocked_by: tuple[str, ...]
    """Plans that must be complete first and are not."""
    commit: str
    """The commit of the plan file."""

    @property
    def is_done(self) -> bool:
        """Whether nobody has to work on it any more."""
        return self.standing is PlanStanding.COMPLETE


def plan_progress(facts: PhaseFacts, department: Dept | None = None) -> tuple[PlanStatus, ...]:
    """Return how far each plan of the phase is, in the order of their ids."""
    every = facts.ask(_every_plan)
    if department is None:
        return every
    return tuple(one for one in every if one.department == department)


def _every_plan(facts: PhaseFacts) -> tuple[PlanStatus, ...]:
    standing = {str(plan.id): _standing(facts, plan) for plan in plans_of(facts)}
    return tuple(
        PlanStatus(
            id=plan.id,
            department=plan.department,
            title=plan.title,
            wave=plan.wave,
            standing=standing[str(plan.id)][0],
            tasks=_tasks(facts, plan),
            missing=standing[str(plan.id)][1],
            blocked_by=_blockers(facts, plan, standing),
            commit=plan.commit,
        )
        for plan in plans_of(facts)
    )


def layers(tasks: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return task ids in layers that can be done at once, in file order; empty when they run in a
    circle.

    Unknown dependencies are left out.
    """
    order = {name: position for position, name in enumerate(tasks)}
    graph = TopologicalSorter(
        {name: [need for need in needs if need in tasks] for name, needs in tasks.items()}
    )
    found = []
    try:
        graph.prepare()
    except CycleError:
        return ()
    while graph.is_active():
        ready = sorted(graph.get_ready(), key=order.__getitem__)
        found.append(tuple(ready))
        graph.done(*ready)
    return tuple(found)


def _tasks(facts: PhaseFacts, plan: Plan) -> tuple[TaskProgress, ...]:
    named = {str(task.get("id")): texts(task.get("td")) for task in plan.tasks}
    layer_of = {name: number for number, layer in enumerate(layers(named), 1) for name in layer}
    found = []
    for task in plan.tasks:
        ref = TaskRef.parse(f"{plan.id}/{task.get('id')}")
        if ref:
            layer = layer_of.get(str(task.get("id")), 0)
            found.append(
                TaskProgress(
                    ref, str(task.get("a", "")), facts.task_commits.get(str(ref), ""), layer
                )
            )
    return tuple(found)


def _blockers(
    facts: PhaseFacts, plan: Plan, standing: Mapping[str, tuple[PlanStanding, tuple[str, ...]]]
) -> tuple[str, ...]:
    here = [
        name for name in plan.needs if standing.get(name, (None,))[0] is not PlanStanding.COMPLETE
    ]
    elsewhere = [
        name
        for item in plan.foreign
        if not facts.earlier_plans.get(name := f"{item.get('p')}-{item.get('n')}", False)
    ]
    return (*here, *elsewhere)


def _standing(facts: PhaseFacts, plan: Plan) -> tuple[PlanStanding, tuple[str, ...]]:
    summary = next(
        (s.lines[0] for s in facts.of_kind("summary") if s.place.plan == plan.id and s.lines), None
    )
    if summary is None:
        started = any(facts.task_commits.get(f"{plan.id}/{task.get('id')}") for task in plan.tasks)
        return (PlanStanding.RUNNING if started else PlanStanding.PENDING), ()
    if summary.get("s") != "complete":
        return (PlanStanding.FAILED if summary.get("s") == "failed" else PlanStanding.PARTIAL), ()
    missing = tuple(_lacking(facts, plan, summary))
    return (PlanStanding.CLAIMED if missing else PlanStanding.COMPLETE), missing


def _lacking(facts: PhaseFacts, plan: Plan, summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a summary that says complete does not prove."""
    done, total = summary.get("tc"), summary.get("tt")
    if done != total:
        yield f"the summary counts {done} of {total} tasks"
    hashes = texts(summary.get("ch"))
    if not hashes:
        yield "the summary names no commit"
    touched: set[str] = set()
    for name in hashes:
        commit = facts.commits.get(name)
        if commit is None:
            yield f"commit {name} is not on this branch"
        else:
            touched |= commit.files
    if plan.files and touched and not _touches(plan.files, touched):
        yield f"none of its commits touches a file of plan {plan.id}"
    yield from _test_doubts(facts, plan, summary)


def _touches(wanted: frozenset[str], touched: set[str]) -> bool:
    """Return whether a changed path is one of the wanted files or lies below a wanted directory."""
    return any(
        path == file or path.startswith(file.rstrip("/") + "/")
        for file in wanted
        for path in touched
    )


def _test_doubts(facts: PhaseFacts, plan: Plan, summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the summary's word on its tests and the recorded results part."""
    results = [line for line in facts.lines_of("test-results") if line.get("plan") == str(plan.id)]
    green = [line for line in results if line.get("phase") == "green"]
    if any(line.get("fl") for line in green[-1:]):
        yield f"test-results of plan {plan.id} end with {green[-1]['fl']} failing"
    if summary.get("tst") == "red_green" and results and not green:
        yield "the summary says red_green, test-results have no green run"
