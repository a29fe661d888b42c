"""The sign-off of a phase. Pure.

It tells whether the evidence allows it, what it lacks, and what `state.json` and `ROADMAP.md` say
afterwards. There is no condition beside those of the fold: the phase is evaluated as if both files
were committed. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from yolo_fs.artifacts.classify import PROJECT_STATE, classify
from yolo_fs.authority.actors import Actor
from yolo_fs.evidence.facts import CommittedArtifact
from yolo_fs.phase.phase import Phase, Phases
from yolo_fs.phase.turns import asked_by_gate
from yolo_fs.protocol.departments import Role
from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.states.project import project_state, sealed

SIGN_OFF = "signoff"
ROADMAP = "ROADMAP.md"


def why_not_to_sign(phase: Phase, by: Actor) -> str:
    """Return why an agent does not sign a phase off; empty for its Leads and the user."""
    if by.role is not Role.USER and by.role not in STEP_BY_KEY[SIGN_OFF].agents:
        return f"{by.name} does not sign a phase off: that is the Lead's step"
    if by.department in (None, *phase.facts.options.departments):
        return ""
    return f"{by.name} does not sign the phase off: {by.department} does not work on it"


def is_signed_off(phase: Phase) -> bool:
    """Return whether the phase is signed off, delivered or not."""
    return any(step.is_passed for step in phase.progress.steps if step.step.key == SIGN_OFF)


def lacks_of_sign_off(phase: Phase) -> tuple[str, ...]:
    """Return what keeps the phase from being signed off."""
    return tuple(dict.fromkeys(_lacks(_signed(phase))))


def _lacks(signed: Phase) -> Iterator[str]:
    behind = [status for status in signed.progress.departments if status.current]
    for department in behind:
        if current := department.current:
            name = f"{department.department.value} {current.step.key}"
            yield from (f"{name}: {lack}" for lack in current.missing)
    if behind:
        return
    for step in signed.progress.steps:
        if step.step.key == SIGN_OFF and not step.is_passed:
            yield from step.missing
    closed = [gate.why_closed for gate in signed.closed_before_sign_off]
    if not closed and (owed := signed.owed_before_sign_off):
        gate, at = owed
        closed = [asked_by_gate(gate, signed.facts.options, at).why]
    yield from closed


def _signed(phase: Phase) -> Phase:
    """Return the phase as it is once both files are committed."""
    line = {"ph": int(phase.id.number), "st": "complete"}
    paths = ((PROJECT_STATE, (line,)), (roadmap_of(phase), ()))
    committed = (
        CommittedArtifact(place, lines, valid=True)
        for path, lines in paths
        if (place := classify(path))
    )
    return Phase(phase.facts.with_committed(*committed))


def roadmap_of(phase: Phase) -> str:
    """Return the path of the roadmap in which the phase is marked."""
    return f"{phase.facts.home}/{ROADMAP}"


def signed_state(phases: Phases, phase: Phase, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the content of `state.json` that signs a phase off."""
    after = tuple(
        _signed(any_phase) if any_phase.id == phase.id else any_phase for any_phase in phases
    )
    number, fresh = int(phase.id.number), project_state(after, before) or dict(before or {})
    if (fresh.get("ph"), fresh.get("st")) == (number, "complete"):
        return fresh
    return sealed(fresh | {"ph": number, "st": "complete", "step": SIGN_OFF})


def marked(roadmap: str, phase: Phase, day: str) -> str:
    """Return a roadmap that marks the phase complete, in its list line and its table row.

    A line is added where it has neither.
    """
    number = int(phase.id.number)
    named = rf"(?:phase\s+)?0*{number}\b"
    lines = roadmap.splitlines()
    is_marked = False
    for at, line in enumerate(lines):
        if re.match(rf"\s*[-*] \[[ xX]\]\s+\**{named}", line, re.IGNORECASE):
            lines[at], is_marked = re.sub(r"\[[ xX]\]", "[x]", line, count=1), True
        elif re.match(rf"\s*\|\s*\**{named}", line, re.IGNORECASE):
            lines[at], is_marked = _mark_row(line, lines[:at], phase, day), True
    if not is_marked:
        lines += [f"- [x] Phase {number}: {phase.id.slug}"]
    return "\n".join(lines) + "\n"


def _mark_row(row: str, above: list[str], phase: Phase, day: str) -> str:
    """Return a table row that marks the phase complete, by the columns of the head above it."""
    head = next((line for line in _find_table_head(above)), "")
    plans = phase.progress.plans
    done = f"{sum(plan.is_done for plan in plans)}/{len(plans)}"
    entries = {"plans": done, "status": "complete", "date": day, "done on": day}
    names = [name.strip().lower() for name in head.strip().strip("|").split("|")]
    cells = row.strip().strip("|").split("|")
    if "complete" in (cell.strip().lower() for cell in cells):
        return row
    for at, name in enumerate(names[: len(cells)]):
        wanted = next((value for key, value in entries.items() if name.startswith(key)), None)
        if wanted and at:
            cells[at] = f" {wanted} "
    return f"|{'|'.join(cells)}|"


def _find_table_head(above: list[str]) -> Iterator[str]:
    """Yield the first line of the table that these lines end in."""
    table: list[str] = []
    for line in reversed(above):
        if not line.lstrip().startswith("|"):
            break
        table.append(line)
    yield from table[-1:]
