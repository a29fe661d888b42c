"""`yolo-fs explain`: a reason, a gate or a file in a sentence, and the command that helps."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from yolo_fs.cli import gate as gates
from yolo_fs.cli.reply import Invocation, Reply, reply_of, verb
from yolo_fs.cli.validate import validate
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.history.team import Team
from yolo_fs.progress.workflow import phase_at_work
from yolo_fs.protocol.gates import GATE_BY_NAME
from yolo_fs.reports.status import report
from yolo_fs.workspace import load

if TYPE_CHECKING:
    from rich.console import Console


@verb("explain", example="yolo-fs explain gitignored")
@click.argument("name", metavar="CODE|GATE|PATH")
def explain(invocation: Invocation, *, name: str) -> Reply:
    """Say what a reason code means, why a gate is closed, or how a file stands.

    A gate is asked in the phase that is worked on; 'yolo-fs gate why GATE --phase N' asks in
    another.
    """
    if reason := Reason.known(name):
        data = {"name": name, "says": reason.sentence, "command": "yolo-fs status"}
        lines = (f"{name}: {reason.sentence}", "Where it holds now: yolo-fs status")
        return Reply(data, show=lambda console: console.print("\n".join(lines), soft_wrap=True))
    with Repository(invocation.start) as repository:
        if name in GATE_BY_NAME:
            settings = load(repository.root)
            phase = phase_at_work(repository, settings, Team(repository, settings))
            if phase is None:
                hint = "Create one: yolo-fs phase new SLUG"
                raise YoloError(Reason.UNKNOWN_NAME, "there is no phase yet", hint=hint)
            return reply_of(gates.why, invocation, name=name, phase=str(phase.id))
        return _file(invocation, repository, name)


def _file(invocation: Invocation, repository: Repository, name: str) -> Reply:
    full = os.path.realpath(os.path.join(invocation.start, name))
    path = os.path.relpath(full, os.path.realpath(repository.root))
    status_report = report(repository, load(repository.root))
    standing = next((each for each in status_report.listing.all if each.path == path), None)
    if standing is not None:
        known = standing.as_json()
        reason = Reason.known(str(known.get("reason")))
        words = [safe(path), standing.standing.value, *([reason.sentence] if reason else [])]
        checked = reply_of(
            validate, invocation, paths=(name,), staged=False, kind=None, form="text"
        )
        line = ": ".join((words[0], ", ".join(words[1:])))

        def show(console: Console) -> None:
            console.print(line, soft_wrap=True)
            if checked.show is not None:
                checked.show(console)

        return checked._replace(data=known, show=show)
    hint = "'yolo-fs status' names the files, 'yolo-fs gate list' the gates."
    message = f"{safe(name)!r} is no reason code, no gate, and no file of the planning tree"
    raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint, exit_code=Exit.USAGE)
