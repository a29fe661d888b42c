"""`yolo-fs workflow`: who is next, what a step lacks, and the state of the team's loops."""

from __future__ import annotations

import shlex
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from yolo_fs.agents.access import Access, out_of_lane
from yolo_fs.artifacts.decide import reason_and_findings
from yolo_fs.artifacts.verdicts import CandidateState
from yolo_fs.cli.reply import PHASE, Invocation, Reply, as_agent, verb
from yolo_fs.core.ids import spelled_below
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, Finding, safe
from yolo_fs.evidence.judged import paths_of_verdicts
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader, loops_of
from yolo_fs.loops.facts import LoopProgress
from yolo_fs.phase.acts import act_for, describe_files
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import Next
from yolo_fs.progress.cut_off import find_unproved
from yolo_fs.progress.workflow import StepLook, facts_of, find_step, looks, skip, spelled_or_at_work
from yolo_fs.protocol.departments import Dept
from yolo_fs.reports.status import unsettled_among
from yolo_fs.states.signoff import SIGN_OFF
from yolo_fs.workspace.planning_tree import folder_of
from yolo_fs.workspace.settings import Settings, load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("workflow")
def workflow() -> None:
    """Show the steps of the workflow. Committed evidence completes a step, not the word of an
    agent.
    """


class _PhaseLook(NamedTuple):
    """One phase of one repository, as of the branch."""

    repository: Repository
    settings: Settings
    team: FactsReader
    phase: Phase

    @property
    def looks(self) -> tuple[StepLook, ...]:
        return tuple(looks(self.phase))

    @property
    def unproved(self) -> tuple[Finding, ...]:
        """What this clone cannot prove, as warnings."""
        return find_unproved(self.repository, self.phase)

    @property
    def loops(self) -> tuple[LoopProgress, ...]:
        return loops_of(self.team, self.phase, int(time.time()))


@contextmanager
def _scene(invocation: Invocation, phase: str) -> Iterator[_PhaseLook]:
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        facts_reader = FactsReader(repository, settings)
        facts = facts_of(facts_reader, spelled_or_at_work(facts_reader, phase))
        yield _PhaseLook(repository, settings, facts_reader, Phase(facts))


@verb("next", example="yolo-fs workflow next --phase 1", parent=workflow)
@PHASE
def next_(invocation: Invocation, *, phase: str) -> Reply:
    """Name the next agent of the phase and each department, its inputs, and what its step lacks."""
    with _scene(invocation, phase) as scene:
        progress, step_looks = scene.phase.progress, scene.looks
        loops = [loop for loop in scene.loops if not loop.is_over]
        below = folder_of(invocation.start, scene.repository.root)
        turns = [(status.department.value, status.next) for status in progress.departments]
        data: dict[str, Any] = {
            "phase": str(progress.phase),
            "next": _turn_as_json(scene.phase, progress.next, step_looks),
            "departments": {
                name: _turn_as_json(scene.phase, turn, step_looks, name) for name, turn in turns
            },
            "waits": {name: needs for name, _ in turns if (needs := _needs_of(scene.phase, name))},
            "loops": loops,
        }
        open_turns = filter(None, (data["next"], *data["departments"].values()))
        written = {path for turn in open_turns for path in turn["writes"]}
        if progress.next and progress.next.step == SIGN_OFF:
            written.update(paths_of_verdicts(scene.phase.facts))
        data["refused"] = _refused_among(scene, written)
        unproved = scene.unproved
    return Reply(data, unproved, show=lambda console: _show_next(console, data, loops, below))


def _refused_among(scene: _PhaseLook, paths: Collection[str]) -> dict[str, str]:
    """Return why those of some files that were written and not committed are rejected or held."""
    return {
        each.path: f"{each.standing.value}: {reason_and_findings(each.verdict)[0].with_sentence}"
        for each in unsettled_among(scene.repository, scene.settings, paths)
        if each.standing in (CandidateState.REJECTED, CandidateState.HELD)
    }


@verb("show", example="yolo-fs workflow show --phase 1", parent=workflow)
@PHASE
def show(invocation: Invocation, *, phase: str) -> Reply:
    """Show every step with its gates, every loop with its metrics, and what agents did outside
    their role.
    """
    with _scene(invocation, phase) as scene:
        step_looks, loops = scene.looks, scene.loops
        findings = (*out_of_lane(scene.phase.facts), *scene.unproved)
    data = {"phase": str(scene.phase.id), "steps": step_looks, "loops": loops}
    return Reply(data, findings, Exit.DONE, lambda console: _show_all(console, step_looks, loops))


@verb(
    "skip",
    example='yolo-fs workflow skip research --phase 1 --reason "nothing is unknown"',
    parent=workflow,
)
@click.argument("step")
@PHASE
@click.option("--reason", "because", required=True, help="Why the step is not needed.")
@as_agent("Who decides; only the user may.")
def skip_(invocation: Invocation, *, step: str, phase: str, because: str, agent: str) -> Reply:
    """Declare that a step is skipped, in the phase's execution state; it counts once that file is
    committed.

    A mandatory step cannot be skipped, nor one that is complete.
    """
    with Repository(invocation.start) as repository:
        Access(repository).check_verb("workflow skip", agent)
    chosen = find_step(step)
    with _scene(invocation, phase) as scene:
        is_new = skip(scene.repository, scene.settings, scene.phase, chosen, because, time.time())
    outcome = "declared skipped" if is_new else "declared skipped already"
    data = {"step": chosen.key, "status": "skipped", "reason": because, "is_new": is_new}
    return Reply(data, show=lambda console: console.print(f"{chosen.key}: {outcome}"))


@verb("check", example="yolo-fs workflow check planning --phase 1", parent=workflow)
@click.argument("step")
@PHASE
def check(invocation: Invocation, *, step: str, phase: str) -> Reply:
    """Check whether evidence shows a step as complete. Exit 1 with what is missing."""
    chosen = find_step(step)
    with _scene(invocation, phase) as scene:
        step_looks = [step_look for step_look in scene.looks if step_look.progress.step == chosen]
        unproved = scene.unproved
    is_done = all(step_look.progress.is_passed for step_look in step_looks)
    data = {"step": chosen.key, "complete": is_done, "departments": step_looks}
    code = Exit.DONE if is_done else Exit.FINDINGS
    return Reply(data, unproved, code, lambda console: _show_steps(console, step_looks))


workflow.add_command(check, "complete")  # its name in earlier versions


def _needs_of(phase: Phase, department: str) -> list[str]:
    """Return what a department waits for if no step of it can go on, or what its gate lacks."""
    gates = {f"gate:{gate.name}": gate for gate in phase.gates}
    waits = [wait for wait in phase.waits if wait.waiter == department]
    at_gate = [wait for wait in waits if wait.is_at_gate]
    status = next(
        department_status
        for department_status in phase.progress.departments
        if department_status.department == department
    )
    needs = at_gate or ([] if status.next or status.is_complete else waits)
    return [
        f"{wait.need}: {gates[wait.on].missing[0]}" if wait.on in gates else wait.need
        for wait in needs
    ]


def _turn_as_json(
    phase: Phase, turn: Next | None, step_looks: Iterable[StepLook], department: str | None = None
) -> dict[str, Any] | None:
    if turn is None:
        return None
    act = act_for(phase, turn, Dept(department) if department else None)
    own = [step_look for step_look in step_looks if step_look.progress.step.key == turn.step]
    turns = phase.progress.departments
    whose = department or next((each.department for each in turns if each.next == turn), None)
    look = next((step_look for step_look in own if whose in (None, step_look.department)), own[0])
    gates = {"entry": look.entry, "exit": look.exit}
    return {**act.as_json(), **gates}


def _show_next(
    console: Console, data: dict[str, Any], loops: list[LoopProgress], below: str
) -> None:
    """`below`: the folder of the repository that the asker stands in."""

    def spelled(path: str) -> str:
        return safe(spelled_below(below, path), 500)

    for name, turn in (("phase", data["next"]), *data["departments"].items()):
        waits = data["waits"].get(name, ())
        for need in waits:
            console.print(f"{name:10} waits for {safe(need, 400)}")
        if turn is None:
            console.print(f"{name:10} nobody")
            continue
        then = "then " if waits else ""
        line = f"{name:10} {then}{turn['sentence']} from {', '.join(turn['inputs'])}"
        console.print(safe(line, 500))
        if name != "phase" and turn == data["next"]:
            continue  # the line of the phase has the rest
        if turn["why"]:
            console.print(f"  because: {safe(turn['why'], 300)}")
        if turn["command"]:
            console.print(f"  run: {turn['command']}")
        if files := describe_files(turn, spelled):
            console.print(f"  {files}")
        if turn["commit"]:
            console.print(f"  commit: {turn['commit']}")
        for path in filter(data["refused"].get, turn["writes"]):
            console.print(f"  {spelled(path)} is {safe(data['refused'][path], 500)}")
            console.print(f"    → yolo-fs validate {shlex.quote(spelled_below(below, path))}")
        for gate in turn["exit"]:
            for lack in gate.missing:
                console.print(f"  lacks: {safe(lack)}")
    _show_loops(console, loops)


def _show_all(
    console: Console, step_looks: Iterable[StepLook], loops: Iterable[LoopProgress]
) -> None:
    _show_steps(console, step_looks)
    _show_loops(console, loops)


def _show_steps(console: Console, step_looks: Iterable[StepLook]) -> None:
    for step_look in step_looks:
        step = step_look.progress.step
        where = step_look.department.value if step_look.department else "(phase)"
        console.print(f"{step.number:>4} {step.key:16} {where:9} {step_look.progress.sentence}")
        for lack in step_look.missing:
            console.print(f"       lacks: {safe(lack)}")


def _show_loops(console: Console, loops: Iterable[LoopProgress]) -> None:
    for loop in loops:
        console.print(safe(str(loop), 500))
        if loop.metrics:
            listed = (f"{name} {value}" for name, value in to_json(loop.metrics).items())
            console.print(f"  {safe('; '.join(listed), 500)}")
