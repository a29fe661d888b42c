"""`resolve-task-deps`: the tasks of a plan in groups that may be done at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.folder import Folder
from yolo_fs.compat.output import print_json
from yolo_fs.reasons import Reason, YoloError


def run(arguments: Sequence[str]) -> int:
    from yolo_fs.rules.evidence.plans import layers

    # What --all-plans names is not needed: `td` never leaves a plan.
    given = parse(arguments, valued=("--plan", "--all-plans"))
    tasks = _tasks(given.need("--plan"))
    groups = layers(tasks)
    if tasks and not groups:
        listed = ", ".join(name for name, needs in tasks.items() if needs)
        raise YoloError(
            Reason.DEPENDENCY_CYCLE, f"Circular dependency detected among tasks: {listed}"
        )
    print_json([{"group": number, "tasks": list(group)} for number, group in enumerate(groups, 1)])
    return 0


def _tasks(path: str) -> Mapping[str, tuple[str, ...]]:
    """Return what each task depends on, in the order of the file."""
    folder, name = os.path.split(path)
    files = Folder(folder or ".")
    if not files.has(name):
        raise UsageError(f"plan not found, or empty: {path}")
    tasks: dict[str, tuple[str, ...]] = {}
    for number, row in enumerate(files.rows(name), 1):
        if row is None:
            raise YoloError(Reason.JSON_PARSE_ERROR, f"{path}: record {number}: invalid JSON")
        if number > 1:
            needs = row.get("td")
            tasks[str(row.get("id"))] = tuple(map(str, needs)) if isinstance(needs, list) else ()
    return tasks
