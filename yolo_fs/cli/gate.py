"""`yolo-fs gate`: whether a gate is open, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import PHASE, Invocation, Reply, verb
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, safe, shortened
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.gate_status import GateStatus, MissingEvidence
from yolo_fs.phase.root_cause import root_cause
from yolo_fs.progress.drift import FORGED
from yolo_fs.progress.gate_wait import GateWaitResult
from yolo_fs.progress.gate_wait import wait as wait_for
from yolo_fs.progress.gates import Gates, gates_at
from yolo_fs.progress.workflow import spelled_or_at_work
from yolo_fs.snapshots.inbox import COMMAND_LENGTH
from yolo_fs.workspace.settings import Settings, load

if TYPE_CHECKING:
    from rich.console import Console

_OUTPUT_LINES = 12
"""Of what a failed `verify_command` printed, its last."""


@click.group("gate")
def gate() -> None:
    """Show whether the gates between departments are open.

    A gate is open when its evidence is committed. No file made by hand opens it.
    """


@verb("check", example="yolo-fs gate check ux-complete --phase 1", parent=gate)
@click.argument("name")
@PHASE
def check(invocation: Invocation, *, name: str, phase: str) -> Reply:
    """Exit 0 when the gate is open, 1 when it is closed."""
    gates = _gates(invocation, phase)
    status = gates.named(name)
    return Reply(
        status, gates.unproved, _code(status), lambda console: console.print(_line(status))
    )


@verb("why", example="yolo-fs gate why all-depts --phase 1", parent=gate)
@click.argument("name")
@PHASE
def why(invocation: Invocation, *, name: str, phase: str) -> Reply:
    """Show each missing piece of evidence: its file and line, and the command that shows it.

    First comes what most of the phase waits for, with the command that settles it.

    If your own configuration has a `verify_command`, the result of its last run on these sources
    comes last. It opens and closes no gate.
    """
    from yolo_fs.checking.verify_command import verification_of

    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        gates = _gates_in(repository, settings, phase)
        status = gates.named(name)
        cause = None if status.is_open else root_cause(gates.phase)
        run = verification_of(repository, settings, repository.head().tip)

    def show(console: Console) -> None:
        if cause:
            console.print(f"root cause: {safe(cause.sentence, 800)}")
            console.print(f"  → {cause.command}")
        _show_why(console, status)
        if run:
            console.print(f"  {safe(run.sentence)}", style="" if run.passed else "red")
        for line in run.output.splitlines()[-_OUTPUT_LINES:] if run and not run.passed else ():
            console.print(f"    {safe(line)}")

    data = {**to_json(status), "root_cause": cause, "verification": run}
    return Reply(data, gates.unproved, _code(status), show)


@verb("list", example="yolo-fs gate list --phase 1", parent=gate)
@PHASE
def list_(invocation: Invocation, *, phase: str) -> Reply:
    """Show all gates of a phase, forged sentinels, and what the Owner is to decide."""
    gates = _gates(invocation, phase)
    return Reply(
        _gates_as_json(gates), gates.unproved, show=lambda console: _show_all(console, gates)
    )


@verb("wait", example="yolo-fs gate wait ux-complete --phase 1 --timeout 600", parent=gate)
@click.argument("names", nargs=-1, required=True)
@PHASE
@click.option(
    "--timeout", type=click.FloatRange(min=0), help="Seconds to wait; default: as configured."
)
def wait(
    invocation: Invocation, *, names: tuple[str, ...], phase: str, timeout: float | None
) -> Reply:
    """Wait until all the gates are open.

    When the time is over, exit 1 and print what each department lacks.
    """
    waited = wait_for(invocation.start, phase, names, timeout)
    code = Exit.DONE if waited.look.is_open else Exit.FINDINGS
    return Reply(
        _wait_result_as_json(waited),
        waited.look.unproved,
        code,
        lambda console: _show_waited(console, waited),
    )


def _gates(invocation: Invocation, phase: str) -> Gates:
    with Repository(invocation.start) as repository:
        return _gates_in(repository, load(repository.root), phase)


def _gates_in(repository: Repository, settings: Settings, phase: str) -> Gates:
    facts_reader = FactsReader(repository, settings)
    wanted = spelled_or_at_work(facts_reader, phase)
    gates = gates_at(facts_reader, wanted, repository.head().tip)
    facts_reader.keep()
    return gates


def _code(status: GateStatus) -> Exit:
    return Exit.DONE if status.is_open else Exit.FINDINGS


def _gates_as_json(gates: Gates) -> dict[str, Any]:
    return {
        "phase": gates.phase.id,
        "gates": gates.phase.gates,
        "forged": gates.forged,
        "drift": gates.drift,
        "sign_off": gates.phase.sign_off,
    }


def _line(status: GateStatus) -> str:
    return f"{status.name:14} {status.standing}"


def _show_why(console: Console, status: GateStatus) -> None:
    console.print(_line(status), style="green" if status.is_open else "yellow")
    for lack in status.missing:
        console.print(f"  {lack.with_command}")


def _show_all(console: Console, gates: Gates) -> None:
    for status in gates.phase.gates:
        _show_why(console, status)
    for name in gates.forged:
        console.print(f"forged: {safe(name)} {FORGED}", style="red")
    for drift in gates.drift:
        console.print(f"drift: {safe(str(drift))}", style="yellow")
    for command in dict.fromkeys(drift.command for drift in gates.drift):
        console.print(f"  → {safe(command, COMMAND_LENGTH)}")
    console.print(gates.phase.sign_off.sentence)


def _wait_result_as_json(waited: GateWaitResult) -> dict[str, Any]:
    """Return the result of waiting: open gates, or what each department lacks."""
    look = waited.look
    return {
        "phase": look.phase,
        "gates": look.gates,
        "open": look.is_open,
        "commit": look.commit,
        "by": "look",  # 1.0 also had `daemon`; the keys stay
        "woke_at": datetime.fromtimestamp(waited.woke_at_s, UTC).isoformat().replace("+00:00", "Z"),
        "waited_s": round(waited.waited_s, 3),
        "departments": [] if look.is_open else look.departments,
    }


def _show_waited(console: Console, waited: GateWaitResult) -> None:
    if waited.look.is_open:
        return
    for gate in waited.look.gates:
        missing = tuple(MissingEvidence(**lack) for lack in gate["missing"])
        _show_why(console, GateStatus(gate["gate"], missing, (), gate["blocking"]))
    console.print(f"not open after {waited.waited_s:.0f} s:")
    for department in waited.look.departments:
        standing = _standing(department, waited.look.phase)
        console.print(f"  {department['department']:10} {standing}")


def _standing(department: Mapping[str, Any], phase: str) -> str:
    if department["complete"]:
        return "complete"
    check = f"'yolo-fs workflow check {department['step']} --phase {phase}'"
    lacks = shortened(department["missing"], 3, shown_by=check, between="; ")
    why = "; ".join(filter(None, (lacks, *department["blockers"])))
    return safe(f"at {department['step']}: {why or 'nothing of it exists'}", 500)
