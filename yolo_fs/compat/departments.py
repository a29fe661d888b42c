"""The scripts about departments: resolve-departments and dept-orchestrate."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from yolo_fs.compat.arguments import UsageError
from yolo_fs.compat.folder import read_object
from yolo_fs.compat.output import print_json, warn
from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.gates import GATE_TIMEOUT_MINUTES
from yolo_fs.protocol.names import Dept
from yolo_fs.reasons import YoloError
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
    """`resolve-departments [CONFIG]`: active departments and the Leads to spawn, as `key=value`
    lines.

    A configuration that cannot be read gives the backend alone, with neither workflow nor flags.
    """
    try:
        route = routing(read_object(arguments[0] if arguments else CONFIG) or {})
        warn(route.warning)
        values = _values(route)
    except YoloError as error:
        warn(error.message)
        unknown = dict.fromkeys(("workflow", *KEYS[-len(_OTHERS) :]), "")
        values = [
            unknown.get(key, value) for key, value in zip(KEYS, _values(routing({})), strict=True)
        ]
    for key, value in zip(KEYS, values, strict=True):
        print(f"{key}={value}")
    return 0


def active_departments(route: Routing) -> tuple[Dept, ...]:
    """Return the default department and those whose flags are on, whatever the workflow says."""
    return tuple(row.name for row in WORKING if row.is_default or row.name in route.active)


def _values(route: Routing) -> Sequence[str]:
    several = _word(is_on=route.has_several)
    return (
        several,
        route.workflow,
        ",".join(active_departments(route)),
        "|".join(",".join(row.lead for row in group) for group in route.groups),
        route.order,
        several,
        *(_word(is_on=row.name in route.active) for row in _OTHERS),
    )


def _word(*, is_on: bool) -> str:
    return "true" if is_on else "false"


def dept_orchestrate(arguments: Sequence[str]) -> int:
    """`dept-orchestrate CONFIG PHASE_DIR`: the waves of departments and the gates between them."""
    if len(arguments) < 2:
        raise UsageError("Usage: dept-orchestrate.sh CONFIG_PATH PHASE_DIR")
    config = read_object(arguments[0])
    team_mode = _team_mode(config)
    route = routing(config or {})
    warn(route.warning)
    print_json(
        {
            "team_mode": team_mode,
            "waves": [
                {
                    "id": number,
                    "depts": [_spawned(dept, team_mode) for dept in wave.departments],
                    "gate": wave.gate,
                }
                for number, wave in enumerate(waves(route), 1)
            ],
            "timeout_minutes": GATE_TIMEOUT_MINUTES,
        }
    )
    return 0


def _team_mode(config: Mapping[str, Any] | None) -> str:
    """Return how agents are started: as teammates only where the host can, and nobody forbids
    it.
    """
    if config is None or config.get("team_mode", "auto") not in ("auto", "teammate"):
        return "task"
    is_able = os.environ.get("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "") != ""
    return "teammate" if is_able and config.get("agent_teams") is not False else "task"


def _spawned(dept: Dept, team_mode: str) -> Mapping[str, Any]:
    if team_mode == "teammate":
        return {"dept": dept, "spawn_strategy": "spawnTeam", "team_name": f"yolo-{dept}"}
    return {"dept": dept, "spawn_strategy": "task"}
