"""`yolo-fs fix`: repair what needs no decision of the author."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.reasons import Exit, safe
from yolo_fs.rules.artifacts.repair import diff
from yolo_fs.services.checking.fix import Fixed
from yolo_fs.services.checking.fix import fix as repair
from yolo_fs.services.checking.validate import Validator

if TYPE_CHECKING:
    from rich.console import Console


@verb("fix", example="yolo-fs fix .yolo-planning/phases/01-auth/01-02.plan.jsonl --write")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--write", is_flag=True, help="Write the repaired files; without it only a diff.")
def fix(asked: Invocation, *, paths: Sequence[str], write: bool) -> Reply:
    """Print a diff of what can be repaired without deciding anything for the author.

    Old names of keys, compound plan ids, numbers written as text, synonyms of listed values, blank
    lines and the like. No value is dropped. Without PATH: the whole planning tree. Ends with 0 when
    nothing is left, and with 1 when an author has to decide; each such question is a finding.
    """
    validator = Validator(asked.start)
    try:
        files = validator.paths(paths) if paths else validator.tree()
        fixed = [
            repair(validator, file, validator.full_path(file, of_tree=not paths), write=write)
            for file in list(files)
        ]
    finally:
        validator.close()
    questions = [question for file in fixed for question in file.questions]
    changed = [file for file in fixed if file.is_changed]
    data = {
        "checked": len(fixed),
        "repaired": [
            {"path": file.path, "written": file.was_written, "diff": _diff(file)}
            for file in changed
        ],
        "questions": len(questions),
    }
    code = Exit.FINDINGS if questions else Exit.DONE
    return Reply(data, questions, code, lambda console: _show(console, changed))


def _diff(file: Fixed) -> str:
    return diff(file.before, file.after, safe(file.path, 4096))


def _show(console: Console, changed: Sequence[Fixed]) -> None:
    for file in changed:
        if file.was_written:
            console.print(f"repaired {safe(file.path)}", soft_wrap=True)
            continue
        text = _diff(file)
        lines = [safe(line, 4096) for line in text.split("\n")]
        console.file.write("\n".join(lines) if console.is_terminal else text)
