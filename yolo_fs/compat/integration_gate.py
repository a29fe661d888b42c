"""`integration-gate`: one look at whether the departments' work fits together; `timeout` only means "not all complete".

A failed check gives 0, as the reference's tests pin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from yolo_fs.compat.arguments import Given, UsageError, parse
from yolo_fs.compat.folder import Folder, read_object
from yolo_fs.compat.output import print_json
from yolo_fs.protocol.gates import INTEGRATION_CHECKS
from yolo_fs.protocol.names import Dept
from yolo_fs.rules.phase.gate_needs import integration_checks
from yolo_fs.rules.phase.gate_sources import STATUS, FolderEvidence
from yolo_fs.rules.phase.waves import routing, section

TIMEOUT_S = 300


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, valued=("--phase-dir", "--config", "--timeout"))
    folder = Folder(given.need_folder("--phase-dir"))
    path = given.need("--config")
    config = read_object(path)
    if config is None:
        raise UsageError(f"--config: file not found: {path}")
    timeout_s = _timeout(given, section(config, "integration_gate"))
    departments = routing(config).departments
    said = _statuses(folder, departments)
    is_complete = all(status == "complete" for status in said.values())
    checks = _checks(folder, departments, config) if is_complete else None
    gate = "timeout" if checks is None else "fail" if "fail" in checks.values() else "pass"
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    print_json(
        {
            "gate": gate,
            "departments": said,
            "cross_checks": checks,
            "timeout_remaining": timeout_s,
            "dt": today,
        }
    )
    return 1 if checks is None else 0


def _statuses(folder: Folder, departments: Sequence[Dept]) -> dict[str, str]:
    """Return the status that each department gives itself; `pending` when it gives none."""
    said = {dept.value: folder.object(f"{STATUS}{dept}.json").get("status") for dept in departments}
    return {name: status if isinstance(status, str) else "pending" for name, status in said.items()}


def _checks(
    folder: Folder, departments: Sequence[Dept], config: Mapping[str, Any]
) -> dict[str, str]:
    checks = integration_checks(FolderEvidence(folder, departments), _off(config))
    return {key: result for key, (result, _) in checks.items()}


def _timeout(given: Given, settings: Mapping[str, Any]) -> int:
    configured = settings.get("timeout_seconds")
    text = given.values.get(
        "--timeout", str(configured) if isinstance(configured, int) else str(TIMEOUT_S)
    )
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise UsageError(f"--timeout: not a whole number of seconds: {text}")


def _off(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the checks that the configuration turns off."""
    wanted = section(section(config, "integration_gate"), "checks")
    return frozenset(row.key for row in INTEGRATION_CHECKS if wanted.get(row.config) is False)
