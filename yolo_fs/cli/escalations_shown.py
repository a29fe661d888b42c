"""Escalations as `yolo-fs escalate` prints them for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from yolo_fs.ids import PhaseId
from yolo_fs.reasons import safe
from yolo_fs.rules.escalations.progress import EscalationProgress, Standing
from yolo_fs.rules.timestamps import iso
from yolo_fs.services.escalations.moves import Done
from yolo_fs.services.escalations.ticking import Fired

if TYPE_CHECKING:
    from rich.console import Console


def show_done(console: Console, done: Done) -> None:
    """Print what became of a move."""
    if done.progress is None:
        return
    if done.is_refused:
        console.print(safe(f"not done: {done.progress.id} stays with {done.progress.agent}"))
        return
    for line in (*_lines(done.progress), *(("already logged",) if done.already else ())):
        console.print(line)
    if done.message:
        console.print(f"message to send: {json.dumps(done.message, ensure_ascii=True)}")


def show_all(
    console: Console, found: Mapping[PhaseId, tuple[tuple[EscalationProgress, ...], Any]]
) -> None:
    """Print each escalation of each phase with its history."""
    shown = [(phase, one) for phase, (progress, _) in found.items() for one in progress]
    for phase, one in shown:
        head, *rest = _lines(one)
        console.print(f"{phase} {head}", style="green" if not one.is_open else "yellow")
        for line in (*rest, *_history(one)):
            console.print(f"  {line}")
    if not shown:
        console.print("no escalation")


def _lines(one: EscalationProgress) -> Iterator[str]:
    if one.standing is Standing.RESOLVED:
        yield safe(f"{one.id} resolved: {one.decision}")
        return
    since = f"since {iso(one.since.timestamp())}"
    yield safe(
        f"{one.id} {one.severity}, {one.standing}: {one.agent} holds it {since}, attempt {one.attempt}"
    )
    yield safe(
        f"owed: {one.owed}"
        + (f"; silent from {iso(one.deadline.timestamp())} on" if one.deadline else "")
    )
    if one.decision:
        yield safe(f"decision: {one.decision}")


def _history(one: EscalationProgress) -> Iterator[str]:
    is_decided = False
    for each in one.history:
        down = "goes on" if each.shown_by else "passes on" if is_decided else "decides"
        move = each.move or (
            down if each.goes_down else "opens" if each.state == "open" else "raises"
        )
        is_decided = each.goes_down
        yield safe(
            f"{each.dt} {each.agent} -> {each.target} ({move}): {each.decision or each.reason}"
        )


def show_fired(console: Console, fired: Sequence[Fired]) -> None:
    """Print what silence, and commits, have moved."""
    for one in fired:
        console.print(safe(f"{one.id}: {one.line['reason']}, {one.line['tgt']} has it"))
    if not fired:
        console.print("nothing is due")
