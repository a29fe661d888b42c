"""`pre-integration-check`: what each department still owes before the integration gate."""

from __future__ import annotations

from collections.abc import Sequence

from yolo_fs.compat.arguments import parse
from yolo_fs.compat.folder import Folder, read_object
from yolo_fs.compat.output import print_json
from yolo_fs.compat.resolve_departments import CONFIG
from yolo_fs.rules.phase.deptgates import issues
from yolo_fs.rules.phase.waves import routing


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, valued=("--phase-dir", "--config"))
    folder = Folder(given.need_folder("--phase-dir"))
    departments = routing(read_object(given.values.get("--config", CONFIG)) or {}).departments
    found = {dept: list(issues(folder, dept, departments)) for dept in departments}
    blocking = [f"{dept}: {issue}" for dept, listed in found.items() for issue in listed]
    print_json(
        {
            "status": _status(blocking),
            "departments": [
                {"department": dept, "status": _status(listed), "issues": listed}
                for dept, listed in found.items()
            ],
            "blocking_issues": blocking,
        }
    )
    return 1 if blocking else 0


def _status(found: Sequence[str]) -> str:
    return "not_ready" if found else "ready"
