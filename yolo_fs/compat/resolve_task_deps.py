"""`resolve-task-deps`: the tasks of a plan in groups that may be done at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.folder import Folder
from yolo_fs.compat.output import print_json
from yolo_fs.reasons import Finding, Reason, YoloError

USAGE = "resolve-task-deps.sh --plan PATH [--all-plans DIR]"


def run(arguments: Sequence[str]) -> int:
    # What --all-plans names is not needed: `td` never leaves a plan.
    given = parse(arguments, USAGE, valued=("--plan", "--all-plans"), names_flag=False)
    groups, left = in_groups(_tasks(given.need("--plan")))
    if left:
        listed = ", ".join(left)
        raise YoloError(
            Reason.DEPENDENCY_CYCLE, f"Circular dependency detected among tasks: {listed}"
        )
    print_json([{"group": number, "tasks": group} for number, group in enumerate(groups, 1)])
    return 0


def in_groups(needs: Mapping[str, Sequence[str]]) -> tuple[list[list[str]], list[str]]:
    """Return names in groups whose needs are met by earlier groups, and those that cannot be
    ordered.

    Needs that are not among the names do not count.
    """
    left = dict(needs)
    groups: list[list[str]] = []
    while ready := [name for name, wanted in left.items() if left.keys().isdisjoint(wanted)]:
        groups.append(ready)
        for name in ready:
            del left[name]
    return groups, list(left)


def _tasks(path: str) -> Mapping[str, Sequence[str]]:
    """Return what each task depends on, in the order of the file."""
    folder, name = os.path.split(path)
    files = Folder(folder or ".")
    data = files.content(name)
    if isinstance(data, Finding):
        raise UsageError(f"ERROR: Plan file not found: {path} ({data.reason.sentence})")
    tasks: dict[str, Sequence[str]] = {}
    for number, row in enumerate(files.rows(name), 1):
        if row is None:
            raise YoloError(Reason.JSON_PARSE_ERROR, f"{path}: record {number}: invalid JSON")
        if number == 1:
            continue
        task, needs = row.get("id"), row.get("td")
        if not isinstance(task, str) or not task:
            raise YoloError(Reason.MISSING_KEY, f"{path}: record {number}: a task without id")
        if task in tasks:
            raise YoloError(Reason.DUPLICATE_ID, f"{path}: record {number}: a second task {task}")
        if needs is not None and not isinstance(needs, list):
            raise YoloError(Reason.WRONG_TYPE, f"{path}: task {task}: td must be an array")
        tasks[task] = [str(need) for need in needs or ()]
    return tasks
