"""`pre-integration-check`: what each department still owes before the integration gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yolo_fs.compat.arguments import parse
from yolo_fs.compat.folder import Folder, read_object
from yolo_fs.compat.output import print_json
from yolo_fs.compat.resolve_departments import CONFIG
from yolo_fs.protocol.names import Dept
from yolo_fs.rules.phase.gate_sources import has_handed_over, says
from yolo_fs.rules.phase.waves import routing


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, valued=("--phase-dir", "--config"))
    folder = Folder(given.need_folder("--phase-dir"))
    departments = routing(read_object(given.values.get("--config", CONFIG)) or {}).departments
    found = {dept: list(_issues(folder, dept, departments)) for dept in departments}
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


def _issues(folder: Folder, department: Dept, departments: Sequence[Dept]) -> Iterator[str]:
    """Yield what keeps a department from the integration gate."""
    if not has_handed_over(folder, department):
        yield f"handoff sentinel missing: .handoff-{department}-complete"
    results = folder.rows("test-results.jsonl")
    if len(departments) > 1 and not any(says(row, "dept", department.value) for row in results):
        yield "no test results in test-results.jsonl"
    latest = {str(row.get("id")): row for row in folder.rows("escalation.jsonl") if row is not None}
    for name, row in latest.items():
        # The reference looks for severity `critical`, which no escalation can have.
        blocks = says(row, "sev", "blocking", "critical") and says(row, "st", "open", "escalated")
        if blocks and row.get("dept") in (None, "", department.value):
            yield f"blocking escalation is not resolved: {name}"
