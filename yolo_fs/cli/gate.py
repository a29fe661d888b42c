"""`yolo-fs gate`: open or closed, and why not.

`wait` sleeps for long and in many processes, so what it does not need is imported by the other
verbs alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import PHASE, Invocation, Reply, verb
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, safe, shortened
from yolo_fs.progress.gate_wait import GateWaitResult, look_aside
from yolo_fs.progress.gate_wait import wait as wait_for

if TYPE_CHECKING:
    from rich.console import Console

    from yolo_fs.checking.verify_command import Verification
    from yolo_fs.phase.gate_status import GateStatus
    from yolo_fs.progress.gates import Gates


_OUTPUT_LINES = 12
"""Of what a failed `verify_command` printed, its last."""


@click.group("gate", short_help="gates between departments: open or closed, and why not")
def gate() -> None:
    """Ask the gates between departments.

    A gate is open when its evidence is committed. No file made by hand opens it.
    """


@verb("check", example="yolo-fs gate check ux-complete --phase 1", parent=gate)
@click.argument("name")
@PHASE
def check(asked: Invocation, *, name: str, phase: str) -> Reply:
    """Exit 0 when the gate is open, 1 when it is closed."""
    found = _gates(asked, phase).named(name)
    return Reply(found, (), _code(found), lambda console: console.print(_line(found)))


@verb("why", example="yolo-fs gate why all-depts --phase 1", parent=gate)
@click.argument("name")
@PHASE
def why(asked: Invocation, *, name: str, phase: str) -> Reply:
    """Show each missing piece of evidence: its file and line, and the command that shows it.

    Where your own configuration has a `verify_command`, how its last run on these sources ended
    stands below: it opens and closes no gate.
    """
    found = _gates(asked, phase).named(name)
    run = _verification(asked)

    def show(console: Console) -> None:
        _show_why(console, found)
        if run:
            console.print(f"  {safe(run.sentence)}", style="" if run.passed else "red")
        for line in run.output.splitlines()[-_OUTPUT_LINES:] if run and not run.passed else ():
            console.print(f"    {safe(line)}")

    data = {**to_json(found), "verification": run._asdict() if run else None}
    return Reply(data, (), _code(found), show)


@verb("list", example="yolo-fs gate list --phase 1", parent=gate)
@PHASE
def list_(asked: Invocation, *, phase: str) -> Reply:
    """Show all gates of a phase, forged sentinels, and what the Owner is to decide."""
    found = _gates(asked, phase)
    return Reply(_all_as_json(found), show=lambda console: _show_all(console, found))


@verb("wait", example="yolo-fs gate wait ux-complete --phase 1 --timeout 600", parent=gate)
@click.argument("names", nargs=-1, required=True)
@PHASE
@click.option(
    "--timeout", type=click.FloatRange(min=0), help="Seconds to wait; default: as configured."
)
def wait(asked: Invocation, *, names: tuple[str, ...], phase: str, timeout: float | None) -> Reply:
    """Wait until all the gates are open.

    Exit 1 with what each department lacks when the time is over.
    """
    waited = wait_for(partial(look_aside, asked.start, phase, names), timeout)
    code = Exit.DONE if waited.is_open else Exit.FINDINGS
    return Reply(_waited_as_json(waited), (), code, lambda console: _show_waited(console, waited))


def _gates(asked: Invocation, phase: str) -> Gates:
    from yolo_fs.git.repository import Repository
    from yolo_fs.history.team import Team
    from yolo_fs.progress.gates import gates_at
    from yolo_fs.progress.workflow import spelled_or_at_work
    from yolo_fs.workspace import load

    with Repository(asked.start) as repository:
        settings = load(repository.root)
        team = Team(repository, settings)
        wanted = spelled_or_at_work(repository, settings, team, phase)
        found = gates_at(repository, team, wanted, repository.head().tip)
        team.keep()
        return found


def _verification(asked: Invocation) -> Verification | None:
    from yolo_fs.checking.verify_command import verification_of
    from yolo_fs.git.repository import Repository

    with Repository(asked.start) as repository:
        return verification_of(repository, repository.head().tip)


def _code(found: GateStatus) -> Exit:
    return Exit.DONE if found.is_open else Exit.FINDINGS


def _all_as_json(found: Gates) -> dict[str, Any]:
    decision, why = found.phase.sign_off
    return {
        "phase": found.phase.id,
        "gates": found.phase.gates,
        "forged": found.forged,
        "drift": found.drift,
        "sign_off": {"decision": decision, "why": why},
    }


def _line(found: GateStatus) -> str:
    return f"{found.name:14} {'open' if found.is_open else 'closed'}"


def _show_why(console: Console, found: GateStatus) -> None:
    console.print(_line(found), style="green" if found.is_open else "yellow")
    for lack in found.missing:
        console.print(f"  {safe(str(lack))}  → {safe(lack.command)}")


def _show_each(console: Console, gates: list[GateStatus]) -> None:
    for one in gates:
        _show_why(console, one)


def _show_all(console: Console, found: Gates) -> None:
    _show_each(console, list(found.phase.gates))
    for name in found.forged:
        console.print(f"forged: {safe(name)} was made by hand and opens nothing", style="red")
    for drift in found.drift:
        console.print(f"drift: {safe(str(drift))}", style="yellow")
    decision, why = found.phase.sign_off
    console.print(f"sign-off: {decision} ({safe(why)})")


def _waited_as_json(waited: GateWaitResult) -> dict[str, Any]:
    """Return how the waiting ended: with open gates, as the daemon or a look said, or a report."""
    look, notice = waited.look, waited.notice
    gates = [{**gate, "open": True, "missing": []} if notice else dict(gate) for gate in look.gates]
    return {
        "phase": look.phase,
        "gates": gates,
        "open": waited.is_open,
        "commit": notice.commit if notice else look.commit,
        "by": "daemon" if notice else "look",
        "woke_at": datetime.fromtimestamp(waited.woke_at_ns / 1e9, UTC)
        .isoformat()
        .replace("+00:00", "Z"),
        "waited_s": round(waited.waited_s, 3),
        "departments": [] if waited.is_open else [dict(one) for one in look.departments],
    }


def _show_waited(console: Console, waited: GateWaitResult) -> None:
    if waited.is_open:
        return
    for gate in waited.look.gates:
        console.print(f"{gate['gate']:14} {'open' if gate['open'] else 'closed'}")
        for lack in gate["missing"]:
            place = f"{lack['file']}:{lack['line']}" if lack["line"] else lack["file"]
            console.print(f"  {safe(lack['what'])} ({safe(place)})  → {safe(lack['command'])}")
    console.print(f"not open after {waited.waited_s:.0f} s:")
    for department in waited.look.departments:
        console.print(f"  {department['department']:10} {_standing(department)}")


def _standing(department: Mapping[str, Any]) -> str:
    if department["complete"]:
        return "complete"
    check = f"'yolo-fs workflow check {department['step']}'"
    lacks = shortened(department["missing"], 3, shown_by=check, between="; ")
    why = "; ".join(filter(None, (lacks, *department["blockers"])))
    return safe(f"at {department['step']}: {why or 'nothing of it is there'}", 500)
