"""`dept-orchestrate CONFIG PHASE_DIR`: the waves of departments, how each Lead is spawned, and the
gates between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.folder import read_object
from yolo_fs.compat.output import print_json
from yolo_fs.protocol.gates import GATE_TIMEOUT_MINUTES
from yolo_fs.protocol.names import Dept
from yolo_fs.rules.phase.waves import routing, waves


def run(arguments: Sequence[str]) -> int:
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
