"""What of an agent's work is source, which whoever made it commits: by task, type, paths. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.core.ids import TaskRef
from yolo_fs.evidence.facts import paths_in, plans_of
from yolo_fs.phase.acts import Act
from yolo_fs.phase.phase import Phase
from yolo_fs.protocol.departments import Role


class SourceToCommit(NamedTuple):
    """One commit of source, as `yolo-fs commit` takes it."""

    task: TaskRef
    type: str
    paths: tuple[str, ...] = ()
    """Relative to the repository; none for whatever changed of the task's files."""


def source_of(phase: Phase, act: Act) -> Iterator[SourceToCommit]:
    """Yield what an act leaves to be committed: of its task, of each task of a plan that a review
    sends back, or the tests that the test plan of the branch names.
    """
    if own := TaskRef.parse(act.task):
        yield SourceToCommit(own, act.commit_type)
    elif act.role == Role.TESTER:
        for artifact in phase.facts.of_kind("test-plan", act.department):
            for line in artifact.lines:
                task = TaskRef.parse(f"{line.get('plan')}/{line.get('id')}")
                if task and (files := paths_in(line.get("tf"))):
                    yield SourceToCommit(task, "test", files)
    elif act.role == Role.DEV and any(not path.startswith(PLANNING_ROOT) for path in act.writes):
        for plan in plans_of(phase.facts, act.department):
            names = [f"{plan.id}/{line.get('id')}" for line in plan.tasks]
            if act.plan in ("", str(plan.id)):
                yield from (SourceToCommit(t, "fix") for t in map(TaskRef.parse, names) if t)
