"""The scripts about departments: resolve-departments and dept-orchestrate."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.folder import read_object
from yolo_fs.compat.output import print_json
from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.gates import GATE_TIMEOUT_MINUTES
from yolo_fs.protocol.names import Dept
from yolo_fs.reasons import YoloError, safe
from yolo_fs.rules.phase.waves import Routing, routing, waves

CONFIG = ".yolo-planning/config.json"
_OTHERS = tuple(row for row in WORKING if not row.is_default)
KEYS = (
    "multi_dept",
    "workflow",
    "active_depts",
    "leads_to_spawn",
    "spawn_order",
    "owner_active",
    *(f"{row.prefix.rstrip('-')}_active" for row in _OTHERS),
)


def resolve_departments(arguments: Sequence[str]) -> int:
    """`resolve-departments`: active departments and the Leads to spawn, as `key=value` lines."""
    given = parse(arguments, most=1)
    try:
        route = routing(read_object(given.rest[0] if given.rest else CONFIG) or {})
    except YoloError as error:
        _warn(error.message)
        values: Sequence[str] = [""] * len(KEYS)
    else:
        _warn(route.warning)
        values = _values(route)
    for key, value in zip(KEYS, values, strict=True):
        print(f"{key}={value}")
    return 0


def _warn(text: str) -> None:
    if text:
        print(f"[warn] {safe(text, 500)}", file=sys.stderr)


def _values(route: Routing) -> Sequence[str]:
    several = _word(is_on=route.has_several)
    return (
        several,
        route.workflow,
        ",".join(route.departments),
        "|".join(",".join(row.lead for row in group) for group in route.groups),
        route.order,
        several,
        *(_word(is_on=row.name in route.active) for row in _OTHERS),
    )


def _word(*, is_on: bool) -> str:
    return "true" if is_on else "false"


def dept_orchestrate(arguments: Sequence[str]) -> int:
    """`dept-orchestrate CONFIG PHASE_DIR`: the waves of departments and the gates between them."""
    given = parse(arguments, most=2)
    if len(given.rest) < 2:
        raise UsageError(
            "it takes the configuration and the phase directory: dept-orchestrate CONFIG PHASE_DIR"
        )
    config = read_object(given.rest[0]) or {}
    # `auto` leaves the choice to the host; a task can be spawned everywhere.
    team_mode = "teammate" if config.get("team_mode") == "teammate" else "task"
    print_json(
        {
            "team_mode": team_mode,
            "waves": [
                {
                    "id": number,
                    "depts": [_spawned(dept, team_mode) for dept in wave.departments],
                    "gate": wave.gate,
                }
                for number, wave in enumerate(waves(routing(config)), 1)
            ],
            "timeout_minutes": GATE_TIMEOUT_MINUTES,
        }
    )
    return 0


def _spawned(dept: Dept, team_mode: str) -> Mapping[str, Any]:
    if team_mode == "teammate":
        return {"dept": dept, "spawn_strategy": "spawnTeam", "team_name": f"yolo-{dept}"}
    return {"dept": dept, "spawn_strategy": "task"}
