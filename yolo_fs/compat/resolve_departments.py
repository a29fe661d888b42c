"""`resolve-departments`: which departments work and which Leads are spawned, as `key=value`
lines.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from yolo_fs.compat.arguments import parse
from yolo_fs.compat.folder import read_object
from yolo_fs.protocol.departments import WORKING
from yolo_fs.reasons import YoloError, safe
from yolo_fs.rules.phase.waves import Routing, routing

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


def run(arguments: Sequence[str]) -> int:
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
