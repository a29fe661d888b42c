"""`validate --type deps --roadmap-json F`: whether the phases of a roadmap can be done in some
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.folder import read_object
from yolo_fs.compat.output import print_json
from yolo_fs.compat.shapes import in_words
from yolo_fs.reasons import Level, YoloError, safe
from yolo_fs.schemas.base import check
from yolo_fs.schemas.lines.product import RoadmapPhase, RoadmapPlan


def run(arguments: Sequence[str]) -> int:
    errors, warnings = _judge(parse(arguments, valued=("--roadmap-json",)).need("--roadmap-json"))
    print_json({"valid": not errors, "errors": errors, "warnings": warnings})
    return 1 if errors else 0


def _judge(path: str) -> tuple[list[str], list[str]]:
    try:
        value = read_object(path)
        if value is None:
            raise UsageError(f"File not found: {path}")
    except YoloError as error:
        return [safe(error.message, 500)], []
    roadmap, faults = check(RoadmapPlan, value)
    errors = [
        f"{safe(fault.at)}: {in_words(fault)}" for fault in faults if fault.level is Level.ERROR
    ]
    if not isinstance(roadmap, RoadmapPlan):
        return errors, []
    return errors, [safe(text) for text in _oddities(roadmap.phases)]


def _oddities(phases: Sequence[RoadmapPhase]) -> Iterator[str]:
    """Yield phases without any dependency, and critical phases without a dependency on a critical one."""
    links = {(phase.id, needed) for phase in phases for needed in phase.depends_on}
    joined = {name for link in links for name in link}
    critical = {phase.id for phase in phases if phase.critical}
    on_path = {name for link in links if critical.issuperset(link) for name in link}
    for phase in phases:
        if len(phases) > 1 and phase.id not in joined:
            yield f"Orphan phase: {phase.id} depends on no phase and no phase depends on it"
        elif len(critical) > 1 and phase.id in critical - on_path:
            yield f"Critical phase is not connected to another critical phase: {phase.id}"
