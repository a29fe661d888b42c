"""What is odd in a roadmap without being wrong: phases that stand apart. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yolo_fs.schemas.lines.product import RoadmapPhase


def oddities(phases: Sequence[RoadmapPhase]) -> Iterator[str]:
    """Yield phases that no dependency joins to any other, and critical ones that none joins to another critical one."""
    links = {(phase.id, needed) for phase in phases for needed in phase.depends_on}
    joined = {name for link in links for name in link}
    critical = {phase.id for phase in phases if phase.critical}
    on_path = {name for link in links if critical.issuperset(link) for name in link}
    for phase in phases:
        if len(phases) > 1 and phase.id not in joined:
            yield f"Orphan phase: {phase.id} depends on no phase and no phase depends on it"
        elif len(critical) > 1 and phase.id in critical - on_path:
            yield f"Critical phase is not connected to another critical phase: {phase.id}"
