"""`yolo-fs explain`: a name of the protocol, a gate or a file in a sentence, and the command that
helps.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.artifacts.meanings import Meaning, alike, meanings_of
from yolo_fs.checking.remedies import remedy_of
from yolo_fs.cli import gate as gates
from yolo_fs.cli.explain_names import Explanation, explanation_of
from yolo_fs.cli.reply import Invocation, Reply, reply_of, verb
from yolo_fs.cli.validate import validate
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.workflow import phase_at_work
from yolo_fs.reports.status import report
from yolo_fs.workspace.planning_tree import found_from
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@verb("explain", example="yolo-fs explain gitignored")
@click.argument("name", metavar="NAME|PATH")
def explain(invocation: Invocation, *, name: str) -> Reply:
    """Explain a name: a reason code, a gate, a kind of file or message, a step, an agent, a
    department, a state of files; or show how a file, a phase, a plan, a task or an escalation
    stands.

    A gate is that of the phase at work; for another phase: 'yolo-fs gate why GATE --phase N'.
    Everything but gates and files works outside of a repository, too.
    """
    meanings = meanings_of(name)
    is_there = os.path.lexists(os.path.join(invocation.start, name))
    asks_the_branch = is_there or "/" in name or not meanings or meanings[0].what == "gate"
    try:
        answer = _ask_repository(invocation, name, meanings) if asks_the_branch else None
    except YoloError as error:
        if error.reason not in _NOWHERE or is_there:
            raise
        answer = None
    if answer is None and not meanings:
        raise _error_for_unknown(name)
    return answer or _show_meanings(name, meanings)


_NOWHERE = (Reason.NOT_A_REPOSITORY, Reason.BARE_REPOSITORY, Reason.NOT_INITIALISED)


def _show_meanings(name: str, meanings: Sequence[Meaning]) -> Reply:
    first = meanings[0]
    reason = Reason.known(first.name) if first.what == "reason" else None
    remedy = remedy_of(reason) if reason else ""
    data = {
        "name": name,
        "says": first.says,
        "helps": remedy,
        "command": first.command,
        "meanings": [meaning._asdict() for meaning in meanings],
    }

    def show(console: Console) -> None:
        for meaning in meanings:
            sort = "" if meaning.what == "reason" else f" ({meaning.what})"
            console.print(f"{meaning.name}{sort}: {meaning.says}", soft_wrap=True)
            if meaning.what == "reason" and remedy:
                console.print(f"  What to do: {remedy}", soft_wrap=True)
            more = "Files with it now" if meaning.what == "reason" else "More"
            console.print(f"  {more}: {meaning.command}", soft_wrap=True)

    return Reply(data, show=show)


def _ask_repository(invocation: Invocation, name: str, meanings: Sequence[Meaning]) -> Reply | None:
    """Return how a gate or a file stands; None where the branch has no more to say."""
    with Repository(invocation.start) as repository:
        if meanings and meanings[0].what == "gate":
            phase = phase_at_work(FactsReader(repository, load(repository.root)))
            has_it = phase and any(gate.name == meanings[0].name for gate in phase.gates)
            if phase is None or not has_it:
                return None
            return reply_of(gates.why, invocation, name=meanings[0].name, phase=str(phase.id))
        settings = load(repository.root)
        known = explanation_of(repository, settings, name)
        return _show_explanation(known) if known else _file(invocation, repository, name)


def _show_explanation(known: Explanation) -> Reply:
    def show(console: Console) -> None:
        first, *more = known.says
        line = f"{safe(known.name)} ({known.what}): {safe(first, 1000)}"
        console.print(line, soft_wrap=True)
        for sentence in more:
            console.print(f"  {safe(sentence, 1000)}", soft_wrap=True)
        console.print(f"  → {known.command}", soft_wrap=True)

    return Reply(known._asdict(), show=show)


def _file(invocation: Invocation, repository: Repository, name: str) -> Reply | None:
    full = os.path.realpath(found_from(invocation.start, repository.root, name))
    path = os.path.relpath(full, os.path.realpath(repository.root))
    status_report = report(repository, load(repository.root))
    standing = next((each for each in status_report.listing.all if each.path == path), None)
    if standing is None:
        checked = reply_of(validate, invocation, **_alone(name)) if os.path.lexists(full) else None
        return checked if checked and checked.exit_code != Exit.DONE else None  # nobody reads it
    known = standing.as_json()
    reason = Reason.known(str(known.get("reason")))
    words = [safe(path), standing.standing.value, *([reason.sentence] if reason else [])]
    checked = reply_of(validate, invocation, **_alone(name))
    line = ": ".join((words[0], ", ".join(words[1:])))

    def show(console: Console) -> None:
        console.print(line, soft_wrap=True)
        if checked.show is not None:
            checked.show(console)

    return checked._replace(data=known, show=show)


def _alone(name: str) -> dict[str, Any]:
    """Return the options by which one file is validated."""
    return {"paths": (name,), "staged": False, "kind": None, "form": "text"}


def _error_for_unknown(name: str) -> YoloError:
    near = alike(name)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return YoloError(
        Reason.UNKNOWN_NAME,
        f"{safe(name)!r} is neither a name of the protocol nor a file of the planning tree",
        hint=f"{meant}'yolo-fs status' names the files, 'yolo-fs schema list' the kinds.",
    )
