"""`yolo-fs workflow`: who is next, what a step lacks, and where the team's loops stand."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from yolo_fs.agents.access import out_of_lane
from yolo_fs.cli.reply import PHASE, Invocation, Reply, verb
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.history.team import Team, loops_of
from yolo_fs.loops.facts import LoopProgress
from yolo_fs.phase.acts import act_for
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import Next
from yolo_fs.progress.workflow import (
    StepLook,
    facts_of,
    find_step,
    looks,
    skip,
    spelled_or_at_work,
)
from yolo_fs.protocol.authority import ROUTES, ROUTING_RULES, Route
from yolo_fs.protocol.departments import Dept
from yolo_fs.workspace import load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("workflow", short_help="the steps: who is next, what is missing, what may be skipped")
def workflow() -> None:
    """Ask the workflow. A step is complete when evidence shows it, not when an agent says so."""


class _PhaseLook(NamedTuple):
    """One phase of one repository, as the branch has it."""

    repository: Repository
    team: Team
    phase: Phase

    @property
    def looks(self) -> tuple[StepLook, ...]:
        return tuple(looks(self.phase))

    @property
    def loops(self) -> tuple[LoopProgress, ...]:
        return loops_of(self.team, self.phase.facts, int(time.time()))


@contextmanager
def _scene(asked: Invocation, phase: str) -> Iterator[_PhaseLook]:
    with Repository(asked.start) as repository:
        settings = load(repository.root)
        team = Team(repository, settings)
        chosen = spelled_or_at_work(repository, settings, team, phase)
        facts = facts_of(repository, settings, team, chosen)
        yield _PhaseLook(repository, team, Phase(facts))


@verb("next", example="yolo-fs workflow next --phase 1", parent=workflow)
@PHASE
def next_(asked: Invocation, *, phase: str) -> Reply:
    """Name the next agent of the phase and each department, its inputs, and what its step lacks."""
    with _scene(asked, phase) as scene:
        progress, found = scene.phase.progress, scene.looks
        loops = [one for one in scene.loops if not one.is_over]
    turns = [(one.department.value, one.next) for one in progress.departments]
    data = {
        "phase": str(progress.phase),
        "next": _turn_as_json(scene.phase, progress.next, found),
        "departments": {
            name: _turn_as_json(scene.phase, turn, found, name) for name, turn in turns
        },
        "waits": {name: needs for name, _ in turns if (needs := _needs_of(scene.phase, name))},
        "loops": loops,
    }
    return Reply(data, show=lambda console: _show_next(console, data, loops))


@verb("show", example="yolo-fs workflow show --phase 1", parent=workflow)
@PHASE
def show(asked: Invocation, *, phase: str) -> Reply:
    """Show every step with its gates, every loop with its metrics, and what left its lane."""
    with _scene(asked, phase) as scene:
        found, loops = scene.looks, scene.loops
        findings = out_of_lane(scene.phase.facts)
    data = {"phase": str(scene.phase.id), "steps": found, "loops": loops}
    return Reply(data, findings, Exit.DONE, lambda console: _show_all(console, found, loops))


@verb(
    "skip",
    example='yolo-fs workflow skip research --phase 1 --reason "nothing is unknown"',
    parent=workflow,
)
@click.argument("step")
@PHASE
@click.option("--reason", "because", required=True, help="Why the step is not needed.")
def skip_(asked: Invocation, *, step: str, phase: str, because: str) -> Reply:
    """Declare that a step is skipped, in the phase's execution state; it counts once that file is
    committed.

    A mandatory step cannot be skipped, nor one that is complete.
    """
    chosen = find_step(step)
    with _scene(asked, phase) as scene:
        settings, now_s = load(scene.repository.root), time.time()
        is_new = skip(scene.repository, settings, scene.phase, chosen, because, now_s)
    said = "declared skipped" if is_new else "declared skipped already"
    data = {"step": chosen.key, "status": "skipped", "reason": because, "is_new": is_new}
    return Reply(data, show=lambda console: console.print(f"{chosen.key}: {said}"))


@verb("check", example="yolo-fs workflow check planning --phase 1", parent=workflow)
@click.argument("step")
@PHASE
def check(asked: Invocation, *, step: str, phase: str) -> Reply:
    """Check whether evidence shows a step as complete. Exit 1 with what is missing."""
    chosen = find_step(step)
    with _scene(asked, phase) as scene:
        found = [one for one in scene.looks if one.progress.step == chosen]
    is_done = all(one.progress.is_passed for one in found)
    data = {"step": chosen.key, "complete": is_done, "departments": found}
    code = Exit.DONE if is_done else Exit.FINDINGS
    return Reply(data, (), code, lambda console: _show_steps(console, found))


workflow.add_command(check, "complete")  # its name in earlier versions


@verb("routes", example="yolo-fs workflow routes /yolo:fix", parent=workflow)
@click.argument("command", required=False)
def routes(asked: Invocation, *, command: str | None) -> Reply:
    """Tell where a command enters, whom it spawns, how it escalates; of all without COMMAND."""
    found = [
        row
        for row in ROUTES
        if command is None or command in (row.command, row.command.split(" ")[0])
    ]
    if not found:
        hint = f"The commands are {', '.join(row.command for row in ROUTES)}."
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"no command {safe(command or '')!r}",
            hint=hint,
            exit_code=Exit.USAGE,
        )
    rules = [row.text for row in ROUTING_RULES]
    data = {"routes": found, "rules": rules}
    return Reply(data, show=lambda console: _show_routes(console, found, rules))


def _needs_of(phase: Phase, department: str) -> list[str]:
    """Return what a department waits for that has nobody to go on, or what its gate lacks."""
    gates = {f"gate:{gate.name}": gate for gate in phase.gates}
    waits = [one for one in phase.waits if one.waiter == department]
    at_gate = [one for one in waits if one.on.startswith("gate:")]
    status = next(one for one in phase.progress.departments if one.department == department)
    needs = at_gate or ([] if status.next or status.is_complete else waits)
    return [
        f"{one.need}: {gates[one.on].missing[0]}" if one.on in gates else one.need for one in needs
    ]


def _turn_as_json(
    phase: Phase, turn: Next | None, found: Iterable[StepLook], department: str | None = None
) -> dict[str, Any] | None:
    if turn is None:
        return None
    act = act_for(phase, turn, Dept(department) if department else None)
    own = [one for one in found if one.progress.step.key == turn.step]
    look = next((one for one in own if department in (None, one.department)), own[0])
    gates = {"entry": look.entry, "exit": look.exit}
    return {**act.as_json(), **gates}


def _show_next(console: Console, data: dict[str, Any], loops: list[LoopProgress]) -> None:
    for name, turn in (("phase", data["next"]), *data["departments"].items()):
        for need in data["waits"].get(name, ()):
            console.print(f"{name:10} waits for {safe(need, 400)}")
        if turn is None:
            console.print(f"{name:10} nobody")
            continue
        line = f"{name:10} {turn['sentence']} from {', '.join(turn['inputs'])}"
        console.print(safe(line, 500))
        if turn["why"]:
            console.print(f"  because: {safe(turn['why'], 300)}")
        if turn["command"]:
            console.print(f"  run: {turn['command']}")
        if turn["writes"]:
            example = f" ('{turn['example']}' prints a valid one)" if turn["example"] else ""
            console.print(f"  write: {safe(', '.join(turn['writes']), 500)}{example}")
        for gate in turn["exit"]:
            for lack in gate.missing:
                console.print(f"  lacks: {safe(lack)}")
    _show_loops(console, loops)


def _show_all(console: Console, found: Iterable[StepLook], loops: Iterable[LoopProgress]) -> None:
    _show_steps(console, found)
    _show_loops(console, loops)


def _show_steps(console: Console, found: Iterable[StepLook]) -> None:
    for one in found:
        step = one.progress.step
        where = one.department.value if one.department else "(phase)"
        by = f" by {one.progress.by}" if one.progress.by else ""
        console.print(
            safe(f"{step.number:>4} {step.key:16} {where:9} {one.progress.standing.value}{by}")
        )
        for lack in one.missing:
            console.print(f"       lacks: {safe(lack)}")


def _show_loops(console: Console, loops: Iterable[LoopProgress]) -> None:
    for one in loops:
        console.print(safe(str(one), 500))
        if one.metrics:
            listed = (f"{name} {value}" for name, value in to_json(one.metrics).items())
            console.print(f"  {safe('; '.join(listed), 500)}")


def _show_routes(console: Console, found: Iterable[Route], rules: Iterable[str]) -> None:
    for row in found:
        console.print(f"{row.command}: {' → '.join(row.chain)}")
        console.print(f"  escalation: {row.escalation}")
    for number, text in enumerate(rules, 1):
        console.print(f"{number}. {text}")
