"""Draws the state of the team on the terminal: symbols that need no colour, one line for what is
finished, and reasons for what is not.

The part that shows history contains no age and no clock: the same commit always gives the same
bytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from yolo_fs.agents.health import AT_WORK
from yolo_fs.agents.snapshot import AgentsSnapshot
from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.cli.reply import Cell, columns_that_fit, draw_columns
from yolo_fs.company.overview import CompanyNow
from yolo_fs.core.reasons import counted, safe, shortened
from yolo_fs.core.timestamps import local
from yolo_fs.escalations.log import EscalationProgress, act_of, waiting_for
from yolo_fs.evidence.plan_status import PlanStanding, PlanStatus
from yolo_fs.phase.progress import (
    DepartmentStatus,
    Next,
    PhaseStatus,
    StepStanding,
    StepStatus,
    count_steps,
)
from yolo_fs.progress.board import Board, PhaseBoard, tasks_done
from yolo_fs.protocol.gates import Outcome
from yolo_fs.protocol.roster import Health
from yolo_fs.protocol.workflow import STEPS
from yolo_fs.team.reconcile import TeamOverview, headline, holdings, obstructions, others
from yolo_fs.workspace.planning_tree import phases_in
from yolo_fs.workspace.settings import not_initialised

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
LEGEND = "  ".join(f"{sign} {standing}" for standing, (sign, _) in SIGNS.items())
_COLOUR = {
    PlanStanding.COMPLETE: "green",
    PlanStanding.RUNNING: "cyan",
    PlanStanding.CLAIMED: "yellow",
    PlanStanding.PARTIAL: "yellow",
    PlanStanding.FAILED: "red",
}
_HALF = len(STEPS) // 2
LARGE = 5
"""Open phases that are drawn in full, the first ones, without `verbose`."""
FEW = 5
"""Items of evidence that are shown of each list, without `verbose`."""
MANY = 20
"""Lines of one sort that are shown of the whole work tree, without `verbose`."""


def beginning(root: str, phase: str = "") -> str:
    """Return what comes first in a work tree of which no phase has a committed artifact.

    `phase`: the one that is asked about, which has none; else the first.
    """
    if not os.path.isdir(os.path.join(root, PLANNING_ROOT)):
        error = not_initialised(root, "'yolo-fs init' makes the planning tree")
        return f"not set up yet: {error.hint}"
    if phases := phases_in(root):
        option = f" --phase {phase}" if phase else ""
        return (
            f"{phase or phases[0]} waits for its first file: 'yolo-fs workflow next{option}' shows "
            "whose turn it is"
        )
    return "no phase yet: 'yolo-fs phase new SLUG' makes one"


def not_begun(root: str, board: Board | None) -> str:
    """Return what is said of the phases of a work tree that have nothing on a branch with others;
    empty where there is none.
    """
    known = {phase.id for phase in board.phases} if board else set()
    waiting = [str(phase) for phase in phases_in(root) if phase not in known] if known else []
    if not waiting:
        return ""
    more = f" (+{len(waiting) - 1}: yolo-fs phase list)" if waiting[1:] else ""
    return f"{beginning(root, waiting[0])}{more}"


def draw_board(
    console: Console,
    board: Board,
    *,
    empty: str = "no phase has a committed artifact there",
    verbose: bool = False,
) -> None:
    """Draw the state as of a commit. `verbose`: all phases in full, and the evidence of each
    step. `empty`: what is said where there is no phase.
    """
    if not board.phases:
        console.print(empty)
        return
    open_ = [phase.id for phase in board.phases if not phase.progress.is_finished]
    large = {phase.id for phase in board.phases} if verbose else set(open_[:LARGE])
    for is_large, some in groupby(board.phases, lambda phase: phase.id in large):
        if is_large:
            for phase in some:
                _draw_headlines(console, [phase])
                _draw_phase(console, phase, verbose=verbose)
        else:
            for _, alike in groupby(some, lambda phase: phase.progress.is_finished):
                _draw_headlines(console, list(alike))
    for phase in board.phases:  # a phase is handed over once it is complete
        for finding in phase.false_claims:
            console.print(f"  handoff: {safe(str(finding), 500)}", style="yellow")
    if large:
        _draw_legend(console)
    if left := len(set(open_) - large):
        console.print(f"{left} more phases are open: -v shows all of each", style="dim")
    if board.stands_in:
        message = "config.json is not in this commit: using the current configuration instead"
        console.print(message, style="dim")


def draw_machines(console: Console, seen: TeamOverview) -> None:
    """Draw the other work trees and clones: their state, what waits and why, who holds what."""
    console.print(safe(headline(seen)), style="bold")
    for line in obstructions(seen, local):
        console.print(f"  ! {safe(line, 400)}", style="yellow")
    for line in (*holdings(seen, local), *others(seen, local)):
        console.print(f"  {safe(line, 400)}")


def draw_agents(console: Console, snapshot: AgentsSnapshot) -> None:
    """Draw who is at work or has disappeared, and what is open or late; else nothing."""
    for agent in snapshot.agents:
        if agent.health in (*AT_WORK, Health.DISAPPEARED):
            style = "red" if agent.health is Health.DISAPPEARED else "dim"
            named = f"{agent.name} {agent.id}" if agent.name not in ("", agent.id) else agent.id
            line = f"agent {named}: {agent.health} since {local(agent.since)}"
            console.print(safe(line), style=style)
    for breaker in snapshot.open_circuits:
        line = f"circuit of the {breaker.department}: {breaker.state}; {breaker.why}"
        console.print(safe(line, 500), style="red")
    for request in snapshot.shutdowns:
        if not request.is_over:
            owing = ", ".join(
                each.agent.name or each.agent.id for each in (*request.silent, *request.unclean)
            )
            passed = "has passed" if request in snapshot.late else "has not passed"
            line = f"shutdown by {request.by}: the deadline {passed}; waiting for {owing}"
            console.print(safe(line, 500), style="yellow")


def lines_of_runs(now: CompanyNow) -> Iterator[str]:
    """Yield each run that goes on with its bill, and below it who is at work.

    `now`: as `now_of` returns it.
    """
    for run in now["runs"]:
        own = [act for act in now["at_work"] if act["run"] == run["id"]]
        bill = f"{run['tokens']} tokens, {run['cost_usd']:.2f} USD so far"
        yield f"{run['phase']}: {counted(len(own), 'agent')} of {run['id']} at work, {bill}"
        yield from (f"  {line_of_act(act)}" for act in own)


def line_of_act(act: Mapping[str, Any]) -> str:
    """Return one start of an agent as a line."""
    seconds = (act["ended"] or time.time()) - act["started"]
    state = act["outcome"] or (f"runs as process {act['pid']}" if act["pid"] else "left")
    cost = f", {act['cost_usd']:.2f} USD" if act["cost_usd"] else ""
    spent = f", {act['tokens']} tokens{cost}" if act["tokens"] or cost else ""
    tool = f", last tool {act['tool']}" if act["tool"] and not act["ended"] else ""
    what = act["task"] or act["step"]
    return f"{act['agent']:18} {act['host']:7} {what:16} {seconds:5.0f} s{spent}{tool}  {state}"


def _draw_headlines(console: Console, phases: Sequence[PhaseBoard]) -> None:
    """Draw one line for each phase, all of them finished or none."""
    style = "green" if phases[0].progress.is_finished else "bold"
    console.print("\n".join(phase.progress.headline for phase in phases), style=style)
    for phase in phases:
        if late := phase.changed_after_sign_off:
            words = [change.in_words for change in late]
            shown = shortened(words, 3, shown_by="'yolo-fs status --json'")
            line = f"  changed after its sign-off, and not reviewed: {shown}"
            console.print(line, style="yellow")
    if phases[-1].unknown_order:
        console.print(f"  {phases[-1].unknown_order}", style="dim")


def _draw_phase(console: Console, phase: PhaseBoard, *, verbose: bool) -> None:
    progress = phase.progress.as_shown()
    draw_steps(console, progress)
    for department in progress.departments:
        _draw_department(console, department, verbose=verbose)
    _draw_whole(console, progress, verbose=verbose)
    _draw_plans(console, progress, verbose=verbose)
    _draw_gates(console, phase, verbose=verbose)
    if left := phase.pace.sentence:
        console.print(f"  {left}", style="dim")
    if cause := phase.root_cause:
        text = f"{cause.sentence}; run: {cause.command}"
        console.print(f"  root cause: {safe(text, 800)}", style="bold yellow")
    for alarm in phase.alarms:
        console.print(f"  alarm: {safe(str(alarm), 2_000)}", style="red")
    for escalation in phase.escalations:
        _draw_escalation(console, escalation)
    for loop in phase.loops:
        console.print(safe(f"  loop: {loop}", 500), style="yellow")
    for finding in phase.out_of_lane:
        console.print(f"  out of lane: {safe(str(finding), 500)}", style="yellow")


def _draw_escalation(console: Console, escalation: EscalationProgress) -> None:
    line = f"  escalation {escalation.id}: resolved; {escalation.decision}"
    if escalation.is_open:
        wait = waiting_for(escalation.agent, act_of(escalation)[0])
        line = f"  escalation {escalation.id}: since {local(escalation.since)} {wait}"
    console.print(safe(line, 500), style="yellow")


def draw_steps(console: Console, progress: PhaseStatus) -> None:
    """Draw the state of each step of each department."""
    draw_columns(console, _rows_of_steps(progress), "^")


def height_of_steps(progress: PhaseStatus, width: int) -> int:
    """Return how many rows `draw_steps` needs: a narrow terminal has the steps in parts."""
    rows = _rows_of_steps(progress)
    return len(rows) * len(columns_that_fit(rows, width))


def _rows_of_steps(progress: PhaseStatus) -> list[list[Cell]]:
    head: list[Cell] = [("  department", "dim"), *((step.number, "dim") for step in STEPS)]
    rows = [(f"  {status.department}", status.steps) for status in progress.departments]
    rows.append(("  (phase)", progress.steps))
    return [head, *([(name, ""), *_signs(steps)] for name, steps in rows)]


def _signs(steps: Sequence[StepStatus]) -> list[Cell]:
    by_key = {step_status.step.key: SIGNS[step_status.standing] for step_status in steps}
    return [by_key.get(step.key, ("", "")) for step in STEPS]


_STAGES = {
    Outcome.GO: "Go",
    Outcome.RECYCLE: "Recycle: a finding of the critique is open",
    Outcome.KILL: "Kill: the Architect ended the phase",
}


def _draw_legend(console: Console) -> None:
    console.print(LEGEND, style="dim")
    for some in (STEPS[:_HALF], STEPS[_HALF:]):
        console.print("  ".join(f"{step.number} {step.key}" for step in some), style="dim")


def _draw_department(console: Console, status: DepartmentStatus, *, verbose: bool) -> None:
    console.print(
        f"  {status.department}: {_steps_of(status)}, stage gate {_STAGES[status.stage]}, "
        f"{_next(status.next, done=status.is_complete, waits=_is_waiting(status.current))}"
    )
    _draw_lacks(console, status.steps, status.current, verbose=verbose)
    for blocker in status.blockers:
        console.print(f"    blocked: {safe(blocker)}", style="yellow")


def _draw_whole(console: Console, progress: PhaseStatus, *, verbose: bool) -> None:
    """Draw the steps that occur once per phase, when it is their turn."""
    current = next(
        (
            step_status
            for step_status in progress.steps
            if step_status.step.key == progress.step and not step_status.is_passed
        ),
        None,
    )
    if current or verbose:
        is_asked = current and progress.next and progress.next.step == current.step.key
        turn = progress.next if is_asked else None
        console.print(f"  phase: {_next(turn, done=progress.is_complete)}")
        _draw_lacks(console, progress.steps, current, verbose=verbose)


def _steps_of(status: DepartmentStatus) -> str:
    done, steps = count_steps(status.steps)
    return f"{done} of {steps} steps"


def _draw_lacks(
    console: Console, steps: Sequence[StepStatus], current: StepStatus | None, *, verbose: bool
) -> None:
    if verbose:
        for step_status in steps:
            step = step_status.step
            console.print(f"    {step.number} {step.key}: {step_status.sentence}")
            _draw_few(console, "      lacks: ", step_status.missing, verbose=True)
    elif current:
        _draw_few(console, f"    {current.step.key} lacks: ", current.missing, verbose=False)


def _is_waiting(current: StepStatus | None) -> bool:
    return current is not None and current.standing is StepStanding.WAITING


def _next(turn: Next | None, *, done: bool, waits: bool = False) -> str:
    """Return whose turn it is. `waits`: a gate between departments opens before."""
    if turn is None:
        return "done" if done else "waits"
    why = f": {safe(turn.why, 300)}" if turn.why else ""
    run = f"; run: {turn.command}" if turn.command else ""
    when = "waits, then" if waits else "next"
    return f"{when}: {turn.sentence} from {', '.join(turn.inputs)}{why}{run}"


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


def _draw_gates(console: Console, phase: PhaseBoard, *, verbose: bool) -> None:
    for gate in phase.gates:
        console.print(
            f"  gate {gate.name}: {gate.standing}", style="green" if gate.is_open else "yellow"
        )
        lacks = [
            str(lack) if lack.command == "yolo-fs status" else lack.with_command
            for lack in gate.missing
        ]
        _draw_few(console, "    lacks: ", lacks, verbose=verbose)
    console.print(f"  {phase.sign_off.sentence}")


def _draw_few(console: Console, mark: str, lines: Sequence[str], *, verbose: bool) -> None:
    shown = lines if verbose else lines[:FEW]
    for line in shown:
        console.print(f"{mark}{safe(line)}")
    if len(shown) < len(lines):
        console.print(f"{mark}{len(lines) - len(shown)} more (-v shows them)")
