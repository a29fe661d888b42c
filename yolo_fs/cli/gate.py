"""`yolo-fs gate`: open or closed, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import Asked, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Exit, safe
from yolo_fs.rules.gates import GateProgress
from yolo_fs.services.departments import find_phase
from yolo_fs.services.gatekeeping import Gates, gates_at, wait_for_gates
from yolo_fs.services.settings import load
from yolo_fs.services.team import Team

if TYPE_CHECKING:
    from rich.console import Console

_PHASE = click.option("--phase", required=True, help="Number or directory name of the phase.")


@click.group("gate", short_help="gates between departments: open or closed, and why not")
def gate() -> None:
    """Ask the gates between departments.

    A gate is open when its evidence is committed. No file that somebody makes by hand opens it.
    """


@verb("check", example="yolo-fs gate check ux-complete --phase 1", parent=gate)
@click.argument("name")
@_PHASE
def check(asked: Asked, *, name: str, phase: str) -> Reply:
    """Exit 0 when the gate is open, 1 when it is closed."""
    found = _gates(asked, phase).named(name)
    return Reply(_as_json(found), (), _code(found), lambda console: console.print(_line(found)))


@verb("why", example="yolo-fs gate why all-depts --phase 1", parent=gate)
@click.argument("name")
@_PHASE
def why(asked: Asked, *, name: str, phase: str) -> Reply:
    """Name each piece of evidence that the gate lacks, its file and line, and the command that shows it."""
    found = _gates(asked, phase).named(name)
    return Reply(_as_json(found), (), _code(found), lambda console: _show_why(console, found))


@verb("list", example="yolo-fs gate list --phase 1", parent=gate)
@_PHASE
def list_(asked: Asked, *, phase: str) -> Reply:
    """Show all gates of a phase, sentinels that nobody may trust, and what the Owner is to decide."""
    found = _gates(asked, phase)
    return Reply(_all_as_json(found), show=lambda console: _show_all(console, found))


@verb("wait", example="yolo-fs gate wait ux-complete --phase 1 --timeout 600", parent=gate)
@click.argument("names", nargs=-1, required=True)
@_PHASE
@click.option("--timeout", default=1800.0, show_default=True, help="Seconds to wait.")
def wait(asked: Asked, *, names: tuple[str, ...], phase: str, timeout: float) -> Reply:
    """Wait until all the gates are open. Exit 1 with what is missing when the time is over."""
    with Repository(asked.start) as repository:
        wanted = find_phase(repository.root, phase)
        found = wait_for_gates(repository, load(repository.root), wanted, names, timeout)
    closed = [one for name in names if not (one := found.named(name)).is_open]
    code = Exit.FINDINGS if closed else Exit.DONE
    return Reply(_all_as_json(found), (), code, lambda console: _show_each(console, closed))


def _gates(asked: Asked, phase: str) -> Gates:
    with Repository(asked.start) as repository:
        wanted = find_phase(repository.root, phase)
        return gates_at(repository, Team(repository, load(repository.root)), wanted, repository.head().tip)


def _code(found: GateProgress) -> Exit:
    return Exit.DONE if found.is_open else Exit.FINDINGS


def _as_json(found: GateProgress) -> dict[str, Any]:
    missing = [
        {"what": lack.what, "file": lack.file, "line": lack.line, "command": lack.command} for lack in found.missing
    ]
    evidence = [{"path": path, "commit": commit} for path, commit in found.evidence]
    return {"gate": found.name, "open": found.is_open, "missing": missing, "evidence": evidence}


def _all_as_json(found: Gates) -> dict[str, Any]:
    return {
        "phase": str(found.phase),
        "gates": [_as_json(one) for one in found.gates],
        "forged": list(found.forged),
        "sign_off": {"decision": found.decision, "why": found.why},
    }


def _line(found: GateProgress) -> str:
    return f"{found.name:14} {'open' if found.is_open else 'closed'}"


def _show_why(console: Console, found: GateProgress) -> None:
    console.print(_line(found), style="green" if found.is_open else "yellow")
    for lack in found.missing:
        console.print(f"  {safe(str(lack))}  → {safe(lack.command)}")


def _show_each(console: Console, gates: list[GateProgress]) -> None:
    for one in gates:
        _show_why(console, one)


def _show_all(console: Console, found: Gates) -> None:
    _show_each(console, list(found.gates))
    for name in found.forged:
        console.print(f"forged: {safe(name)} opens nothing", style="red")
    console.print(f"sign-off: {found.decision} ({safe(found.why)})")
