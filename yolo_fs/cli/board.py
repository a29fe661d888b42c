"""Draws the team on the terminal: signs that need no colour, one line for what is finished, and why
not.

What is drawn of history holds no age and no clock: the same commit gives the same bytes, today and
in a year.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from yolo_fs.agents.health import AT_WORK
from yolo_fs.agents.snapshot import AgentsSnapshot
from yolo_fs.cli.reply import Cell, draw_columns
from yolo_fs.core.reasons import safe
from yolo_fs.core.timestamps import iso
from yolo_fs.escalations.log import EscalationProgress
from yolo_fs.evidence.facts import PlanStanding, PlanStatus
from yolo_fs.phase.gate_status import GateStatus, MissingEvidence
from yolo_fs.phase.progress import (
    DepartmentStatus,
    Next,
    PhaseStatus,
    StepStanding,
    StepStatus,
)
from yolo_fs.progress.board import Board, PhaseBoard, tasks_done
from yolo_fs.progress.drift import Aside
from yolo_fs.protocol.roster import Health
from yolo_fs.protocol.workflow import STEPS
from yolo_fs.team.reconcile import TeamOverview, headline, holdings, obstructions, others

if TYPE_CHECKING:
    from rich.console import Console

SIGNS = {
    StepStanding.COMPLETE: ("#", "green"),
    StepStanding.RUNNING: ("~", "cyan"),
    StepStanding.READY: ("o", "bold"),
    StepStanding.WAITING: ("w", "yellow"),
    StepStanding.PENDING: (".", "dim"),
    StepStanding.SKIPPED: ("-", "dim"),
}
_COLOUR = {
    PlanStanding.COMPLETE: "green",
    PlanStanding.RUNNING: "cyan",
    PlanStanding.CLAIMED: "yellow",
    PlanStanding.PARTIAL: "yellow",
    PlanStanding.FAILED: "red",
}
_HALF = len(STEPS) // 2
LARGE = 5
"""Open phases that are drawn large, the first ones, unless everything is asked for."""
FEW = 5
"""Pieces of evidence shown of each list, unless everything is asked for."""
MANY = 20
"""Lines of one sort that are shown of the whole work tree, unless everything is asked for."""


NO_PHASE = "no phase has a committed artifact yet; 'yolo-fs phase new SLUG' makes one"


def draw_board(console: Console, found: Board, *, verbose: bool = False) -> None:
    """Draw the team as of a commit. `verbose`: all phases large, and what proves each step."""
    if not found.phases:
        console.print(NO_PHASE)
        return
    open_ = [one.id for one in found.phases if not one.is_finished]
    large = {one.id for one in found.phases} if verbose else set(open_[:LARGE])
    for is_large, some in groupby(found.phases, lambda one: one.id in large):
        if is_large:
            for one in some:
                _draw_headlines(console, [one])
                _draw_phase(console, one, verbose=verbose)
        else:
            for _, alike in groupby(some, lambda one: one.is_finished):
                _draw_headlines(console, list(alike))
    if large:
        _draw_legend(console)
    if left := len(set(open_) - large):
        console.print(f"{left} more phases are open: -v shows all of each", style="dim")
    if found.stands_in:
        said = "config.json is not in this commit: using the current configuration instead"
        console.print(said, style="dim")


def draw_asides(console: Console, asides: Iterable[Aside], *, verbose: bool = False) -> None:
    """Show where the work tree differs from history. `verbose`: all of it, however much."""
    drifts, others = list[tuple[str, object]](), []
    for aside in asides:
        place = f"{aside.phase}: " if aside.phase else ""
        drifts += [(place, one) for one in aside.drifts]
        others += [
            (f"forged: {place}{name} was made by hand and opens nothing", "red")
            for name in aside.forged
        ]
        others += [(f"overdue: {place}{said}", "yellow") for said in aside.handoffs]
        others += [
            (f"blocker: {place}{department} says {blocker}", "yellow")
            for department, blocker in aside.blockers
        ]
    for said, style in others:
        console.print(safe(said), style=style)
    _draw_listed(console, drifts, "yellow", verbose=verbose, as_line="drift: {0[0]}{0[1]}".format)


def _draw_listed(
    console: Console,
    found: Sequence[object],
    style: str,
    *,
    verbose: bool,
    longest: int = 200,
    as_line: Callable[[object], str] = str,
) -> None:
    """Draw lines of one sort, no more than a screen holds unless everything is asked for."""
    for one in found if verbose else found[:MANY]:
        console.print(safe(as_line(one), longest), style=style)
    if not verbose and len(found) > MANY:
        console.print(f"{len(found) - MANY} more like these: -v shows them", style="dim")


def draw_machines(console: Console, seen: TeamOverview) -> None:
    """Draw the other work trees and clones: what waits and why, who holds what, how they stand."""
    console.print(safe(headline(seen)), style="bold")
    for said in obstructions(seen):
        console.print(f"  ! {safe(said, 400)}", style="yellow")
    for said in (*holdings(seen), *others(seen)):
        console.print(f"  {safe(said, 400)}")


def draw_crew(console: Console, found: AgentsSnapshot, *, verbose: bool = False) -> None:
    """Draw who is at work or has disappeared, what is open, late or stands still; nothing where all
    is well. `verbose`: all of it, however much.
    """
    for agent in found.agents:
        if agent.health in (*AT_WORK, Health.DISAPPEARED):
            style = "red" if agent.health is Health.DISAPPEARED else "dim"
            named = f"{agent.name} {agent.id}" if agent.name not in ("", agent.id) else agent.id
            said = f"agent {named}: {agent.health} since {iso(agent.since.timestamp())}"
            console.print(safe(said), style=style)
    for one in found.open_circuits:
        said = f"circuit of the {one.department}: {one.state}; {one.why}"
        console.print(safe(said, 500), style="red")
    for request in found.shutdowns:
        if not request.is_over:
            owing = ", ".join(
                each.agent.name or each.agent.id for each in (*request.silent, *request.unclean)
            )
            passed = "has passed" if request in found.late else "has not passed"
            said = f"shutdown by {request.by}: the deadline {passed}, {owing} still owe"
            console.print(safe(said, 500), style="yellow")
    _draw_listed(
        console, found.stalls, "red", verbose=verbose, longest=800, as_line="stalled: {}".format
    )


def _draw_headlines(console: Console, phases: Sequence[PhaseBoard]) -> None:
    """Draw one line for each of some phases, all of them finished or none."""
    style = "green" if phases[0].is_finished else "bold"
    console.print("\n".join(one.said for one in phases), style=style)


def _draw_phase(console: Console, one: PhaseBoard, *, verbose: bool) -> None:
    draw_steps(console, one.progress)
    for department in one.progress.departments:
        _draw_department(console, department, verbose=verbose)
    _draw_whole(console, one.progress, verbose=verbose)
    _draw_plans(console, one.progress, verbose=verbose)
    _draw_gates(console, one, verbose=verbose)
    if cause := one.root_cause:
        run = f"; run: {cause.command}" if cause.command else ""
        console.print(f"  root cause: {safe(cause.sentence + run, 800)}", style="bold yellow")
    for alarm in one.alarms:
        console.print(f"  alarm: {safe(str(alarm), 2_000)}", style="red")
    for escalation in one.escalations:
        _draw_escalation(console, escalation)
    for loop in one.loops:
        console.print(safe(f"  loop: {loop}", 500), style="yellow")
    for finding in one.false_claims:
        console.print(f"  handoff: {safe(str(finding), 500)}", style="yellow")
    for finding in one.out_of_lane:
        console.print(f"  out of lane: {safe(str(finding), 500)}", style="yellow")


def _draw_escalation(console: Console, one: EscalationProgress) -> None:
    held = f"{one.agent} holds it since {iso(one.since.timestamp())}"
    standing = held if one.is_open else "resolved"
    said = f"  escalation {one.id}: {standing}; {one.owed or one.decision}"
    console.print(safe(said, 500), style="yellow")


def draw_steps(console: Console, progress: PhaseStatus) -> None:
    """Draw which step of which department stands how."""
    head = [("  department", "dim"), *((step.number, "dim") for step in STEPS)]
    rows = [(f"  {one.department}", one.steps) for one in progress.departments]
    rows.append(("  (phase)", progress.steps))
    draw_columns(console, [head, *([(name, ""), *_signs(steps)] for name, steps in rows)], "^")


def _signs(steps: Sequence[StepStatus]) -> list[Cell]:
    by_key = {one.step.key: SIGNS[one.standing] for one in steps}
    return [by_key.get(step.key, ("", "")) for step in STEPS]


def _draw_legend(console: Console) -> None:
    console.print(
        "  ".join(f"{sign} {standing}" for standing, (sign, _) in SIGNS.items()), style="dim"
    )
    for some in (STEPS[:_HALF], STEPS[_HALF:]):
        console.print("  ".join(f"{step.number} {step.key}" for step in some), style="dim")


def _draw_department(console: Console, one: DepartmentStatus, *, verbose: bool) -> None:
    console.print(
        f"  {one.department}: {_steps_of(one)}, stage gate {one.stage}, "
        f"{_next(one.next, done=one.is_complete)}"
    )
    _draw_lacks(console, one.steps, one.current, verbose=verbose)
    for blocker in one.blockers:
        console.print(f"    blocked: {safe(blocker)}", style="yellow")


def _draw_whole(console: Console, progress: PhaseStatus, *, verbose: bool) -> None:
    """Draw the steps that a phase has once, when it is their turn."""
    current = next(
        (one for one in progress.steps if one.step.key == progress.step and not one.is_passed), None
    )
    if current or verbose:
        is_asked = current and progress.next and progress.next.step == current.step.key
        asked = progress.next if is_asked else None
        console.print(f"  phase: {_next(asked, done=progress.is_complete)}")
        _draw_lacks(console, progress.steps, current, verbose=verbose)


def _steps_of(one: DepartmentStatus) -> str:
    return f"{sum(step.is_passed for step in one.steps)} of {len(one.steps)} steps"


def _draw_lacks(
    console: Console, steps: Sequence[StepStatus], current: StepStatus | None, *, verbose: bool
) -> None:
    if verbose:
        for one in steps:
            console.print(f"    {one.step.number} {one.step.key}: {_proof(one)}")
            _draw_few(console, "      lacks: ", one.missing, verbose=True)
    elif current:
        _draw_few(console, f"    {current.step.key} lacks: ", current.missing, verbose=False)


def _proof(one: StepStatus) -> str:
    if one.standing is StepStanding.COMPLETE:
        return f"complete by {one.by[:7]}" if one.by else "complete"
    if one.standing is StepStanding.SKIPPED:
        return f"skipped by rule: {safe(one.by)}"
    return one.standing.value


def _next(one: Next | None, *, done: bool) -> str:
    if one is None:
        return "done" if done else "waits"
    why = f": {safe(one.why, 300)}" if one.why else ""
    run = f"; run: {one.command}" if one.command else ""
    return f"next: {one.sentence} from {', '.join(one.inputs)}{why}{run}"


def _draw_plans(console: Console, progress: PhaseStatus, *, verbose: bool) -> None:
    for department in progress.departments:
        for plan in department.plans:
            if verbose or not plan.is_done:
                _draw_plan(console, plan)


def _draw_plan(console: Console, plan: PlanStatus) -> None:
    tasks = f"{tasks_done(plan)} of {len(plan.tasks)} tasks"
    head = f"  plan {plan.id} {plan.department} {plan.standing}, {tasks}: {safe(plan.title, 60)}"
    console.print(head, style=_COLOUR.get(plan.standing))
    _draw_few(console, "    lacks: ", plan.missing, verbose=True)
    if plan.blocked_by:
        console.print(f"    waits for {safe(', '.join(plan.blocked_by))}")


def _draw_gates(console: Console, one: PhaseBoard, *, verbose: bool) -> None:
    for gate in one.gates:
        console.print(
            f"  gate {gate.name}: {_standing(gate)}", style="green" if gate.is_open else "yellow"
        )
        _draw_few(console, "    lacks: ", [_lack(lack) for lack in gate.missing], verbose=verbose)
    decision, why = one.sign_off
    console.print(f"  sign-off: {decision} ({safe(why)})")


def _lack(lack: MissingEvidence) -> str:
    return f"{lack}  → {lack.command}" if lack.command not in ("", "yolo-fs status") else str(lack)


def _standing(gate: GateStatus) -> str:
    if gate.is_open:
        return "open"
    return "closed" if gate.blocking else "closed, not blocking"


def _draw_few(console: Console, mark: str, lines: Sequence[str], *, verbose: bool) -> None:
    shown = lines if verbose else lines[:FEW]
    for line in shown:
        console.print(f"{mark}{safe(line)}")
    if len(shown) < len(lines):
        console.print(f"{mark}{len(lines) - len(shown)} more (-v shows them)")
