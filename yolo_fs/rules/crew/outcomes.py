"""What went well and what failed in each department, from everything that says so. Pure.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from yolo_fs.ids import TaskRef
from yolo_fs.protocol.crew import MEASURES, MESSAGE_MEASURES, Health, Measure
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.rules.crew.circuit import Told
from yolo_fs.rules.crew.health import AgentHealth
from yolo_fs.rules.crew.record import Seen
from yolo_fs.rules.escalations.log import departments_of, logged, stations
from yolo_fs.rules.evidence.facts import PhaseFacts, SourceCommit
from yolo_fs.rules.evidence.plans import plan_progress
from yolo_fs.rules.loops.facts import LoopFacts
from yolo_fs.rules.timestamps import moment

BLOCKER = "dev_blocker"


def outcomes(
    facts: LoopFacts,
    done: Mapping[str, SourceCommit],
    seen: Iterable[Seen] = (),
    agents: Iterable[AgentHealth] = (),
) -> Iterator[Told]:
    """Yield every outcome of a phase, in no order.

    `done`: the commits of its tasks. `seen`: the record of the crew. `agents`: how they are by now.
    """
    yield from _of_artifacts(facts)
    yield from _of_tasks(facts.phase, done)
    yield from _of_blockers(facts.phase)
    yield from _of_messages(facts.phase, seen)
    yield from _of_agents(agents)


def _of_artifacts(facts: LoopFacts) -> Iterator[Told]:
    for row in MEASURES:
        for filed in facts.phase.of_kind(row.of):
            for version in facts.history(filed):
                lines = [line for line in version.lines if row.key in line]
                for line in lines if row.each else lines[:1]:
                    at = (row.each and moment(line.get("dt"))) or datetime.fromtimestamp(
                        version.at_s, UTC
                    )
                    yield from _measured(
                        row, line, at, Dept(filed.place.department), filed.place.name
                    )


def _measured(
    row: Measure, line: Mapping[str, Any], at: datetime, department: Dept, of: str
) -> Iterator[Told]:
    value = line.get(row.key)
    if value in (*row.failing, *row.passing):
        yield Told(at, department, value in row.failing, f"{of} says {value}")


def _of_tasks(facts: PhaseFacts, done: Mapping[str, SourceCommit]) -> Iterator[Told]:
    for plan in plan_progress(facts):
        for task in plan.tasks:
            if commit := done.get(task.commit):
                at = datetime.fromtimestamp(commit.at_s, UTC)
                yield Told(at, plan.department, failed=False, what=f"task {task.ref} is committed")


def _of_blockers(facts: PhaseFacts) -> Iterator[Told]:
    known = logged(facts)
    for one in stations(known):
        if one.state == "open" and one.role is Role.DEV and one.at:
            department = known.departments.get(str(one.id.task.plan), DEFAULT_DEPARTMENT)
            yield Told(
                one.at,
                department,
                failed=True,
                what=f"task {one.id.task} is blocked",
                once=str(one.id.task),
            )


def _of_messages(facts: PhaseFacts, seen: Iterable[Seen]) -> Iterator[Told]:
    departments = departments_of(facts)
    rows = {row.of: row for row in MESSAGE_MEASURES}
    for one in seen:
        task = _task_said(one.said) if one.said else None
        department = departments.get(str(task.plan)) if task else None
        if department is None:
            continue
        if one.event == BLOCKER:
            yield Told(
                one.at, department, failed=True, what=f"task {task} is blocked", once=str(task)
            )
        elif row := rows.get(one.event):
            yield from _measured(row, one.said, one.at, department, f"{one.event} of task {task}")


def _task_said(said: Mapping[str, Any]) -> TaskRef | None:
    """Return the task of a message: `task` names it, or `plan_id` and `task_id` do."""
    return TaskRef.parse(str(said.get("task") or f"{said.get('plan_id')}/{said.get('task_id')}"))


def _of_agents(agents: Iterable[AgentHealth]) -> Iterator[Told]:
    for one in agents:
        if one.health is Health.DISAPPEARED and one.department:
            yield Told(
                one.seen,
                one.department,
                failed=True,
                what=f"{one.name} ({one.id}) disappeared",
                once=one.key,
            )
