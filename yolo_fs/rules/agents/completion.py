"""Whether a task that is reported complete is so: its commit is on the branch, names it and changed
what is said. Pure.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from yolo_fs.ids import TaskRef
from yolo_fs.reasons import Finding, Reason, safe
from yolo_fs.rules.evidence.commits import purpose_of
from yolo_fs.rules.evidence.facts import SourceCommit, texts
from yolo_fs.rules.evidence.plans import PlanStatus


def task_of(said: Mapping[str, Any]) -> TaskRef | None:
    """Return the task that a `task_claim` or `task_complete` is about."""
    return TaskRef.parse(f"{said.get('plan_id')}/{said.get('task_id')}")


def completion_faults(
    said: Mapping[str, Any], commit: SourceCommit | None, plans: Iterable[PlanStatus], path: str
) -> Iterator[Finding]:
    """Yield where a valid `task_complete` and the branch part.

    `commit`: what its `commit` names on the branch. `plans`: of every phase. `path`: file that the
    message came from.
    """
    task, name = task_of(said), safe(str(said.get("commit")))
    ours = [one for plan in plans for one in plan.tasks if one.ref == task]
    if not ours:
        yield Finding(
            Reason.UNKNOWN_REFERENCE, path, 1, "/task_id", f"no committed plan has task {task}"
        )
    if commit is None:
        hint = "Commit the task first; 'yolo-fs commit' does it in the prescribed form."
        yield Finding(
            Reason.UNKNOWN_COMMIT,
            path,
            1,
            "/commit",
            f"commit {name} is not on this branch",
            hint=hint,
        )
        return
    purpose = purpose_of(commit.subject)
    if ours and commit.oid != ours[0].commit and (purpose is None or purpose.task != task):
        message = f"commit {name} does not name {task}: {safe(commit.subject, 80)}"
        yield Finding(
            Reason.SUBJECT_MISMATCH,
            path,
            1,
            "/commit",
            message,
            f"feat({task and task.plan}): T… …",
        )
    files = frozenset(texts(said.get("files_modified")))
    for what, odd in (
        ("changed, and not said", commit.files - files),
        ("said, and not changed", files - commit.files),
    ):
        if odd:
            message = f"{what} by commit {name}: {', '.join(safe(one) for one in sorted(odd)[:5])}"
            yield Finding(Reason.TOTALS_DISAGREE, path, 1, "/files_modified", message)
