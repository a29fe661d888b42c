"""`yolo-fs fix`: repairs that need no decision of the author; and `yolo-fs adopt`: the first step
of a team that already has planning files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.artifacts.adoption import (
    MOST_CAUSES,
    AdoptedFile,
    Readiness,
    TeamWord,
    aliases_of,
    as_page,
    bar,
    causes,
    count_by_kind,
    learnt,
)
from yolo_fs.artifacts.repair import diff
from yolo_fs.checking.fix import Fixed, adopt_file
from yolo_fs.checking.fix import fix as repair
from yolo_fs.checking.validate import Validator
from yolo_fs.cli.reply import Invocation, Reply, draw_columns, print_text, verb
from yolo_fs.cli.validate import watched
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, safe
from yolo_fs.system.store import SHARED, write_atomic
from yolo_fs.workspace.output_places import output_place

if TYPE_CHECKING:
    from rich.console import Console


@verb("fix", example="yolo-fs fix .yolo-planning/phases/01-auth/01-02.plan.jsonl --write")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--write", is_flag=True, help="Write the repaired files; without --write, print a diff."
)
def fix(invocation: Invocation, *, paths: Sequence[str], write: bool) -> Reply:
    """Print a diff that repairs what needs no decision of the author. 'git apply' accepts it,
    unless it holds invisible characters, which are escaped; --json prints it unescaped.

    Old names of keys, compound plan ids, numbers written as text, synonyms of listed values, blank
    lines and the like. No value is dropped. Without PATH: the whole planning tree. Exit 0 when
    nothing is left, 1 when an author has to decide; each such question is a finding.
    """
    with closing(Validator(invocation.start)) as validator:
        files = validator.paths(paths) if paths else validator.tree()
        fixed = [
            repair(validator, file, validator.full_path(file, of_tree=not paths), write=write)
            for file in list(files)
        ]
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
    return Reply(data, questions, code, lambda console: _show(console, changed, questions))


def _diff(file: Fixed) -> str:
    return diff(file.before, file.after, safe(file.path, 4096))


def _show(console: Console, changed: Sequence[Fixed], questions: Sequence[Finding]) -> None:
    if not (changed or questions):
        console.print("nothing to repair")
    for file in changed:
        if file.was_written:
            console.print(f"repaired {safe(file.path)}", soft_wrap=True)
            continue
        print_text(console, _diff(file), "'--json' prints this diff as 'git apply' reads it")


@verb("adopt", example="yolo-fs adopt --write --report adoption.html")
@click.option("--from", "folder", metavar="DIR", help="Report on a planning tree of another name.")
@click.option("--write", is_flag=True, help="Apply the repairs, and commit what is valid.")
@click.option("--learn", is_flag=True, help="Propose meanings for keys and words of this team.")
@click.option("--report", "page", metavar="FILE.html", help="Keep the report as one HTML file.")
def adopt(
    invocation: Invocation, *, folder: str | None, write: bool, learn: bool, page: str | None
) -> Reply:
    """Report on an existing planning tree: what is valid, what can be repaired, and what needs its
    author.

    With --write, repairs that need no decision are applied, and each valid artifact is committed
    separately under its prescribed subject. Nothing is moved or deleted. Exit 1 while an author has
    to decide something.

    With --learn, `aliases` for the configuration are proposed: the known key for each unknown one,
    and the listed value for each unlisted one. Once the configuration has them, `fix` and `adopt
    --write` repair by them; nothing else is accepted.
    """
    if folder is not None and write:
        raise click.UsageError(
            "--write works on .yolo-planning alone: move the tree there first, for example "
            "with 'git mv'."
        )
    place = None if page is None else output_place(page, invocation.start, ".html")
    with closing(Validator(invocation.start)) as validator:
        checked = list(validator.paths([folder]) if folder is not None else validator.tree())
        files = _judged(validator, checked, invocation, of_tree=folder is None, write=write)
    committed = _commit(invocation) if write else []
    if place is not None:
        top, path = place
        text = as_page(os.path.abspath(invocation.start), files)
        write_atomic(path, text.encode(), root=top, mode=SHARED)
    return _reply(files, committed, write=write, learn=learn)


def _judged(
    validator: Validator,
    checked: Sequence[Any],
    invocation: Invocation,
    *,
    of_tree: bool,
    write: bool,
) -> list[AdoptedFile]:
    adopted_files = []
    for file in watched(checked, "files", lambda _: len(checked), quiet=invocation.quiet):
        full = validator.full_path(file, of_tree=of_tree)
        if judged := adopt_file(validator, file, full, write=write):
            adopted_files.append(judged)
    return adopted_files


def _commit(invocation: Invocation) -> list[dict[str, str]]:
    """Commit what is valid now, as the daemon does; nothing to do if one is running."""
    # Imported here: only a command that commits needs the daemon.
    from yolo_fs.daemon.daemon import Daemon
    from yolo_fs.daemon.health import acquire

    made: list[dict[str, str]] = []

    def note(event: str, path: str, data: Mapping[str, Any]) -> None:
        if event == "artifact.committed":
            made.append({"path": path, "commit": data["commit"], "subject": data["subject"]})

    try:
        repository, lock = acquire(invocation.start)
    except YoloError as error:
        if error.reason is not Reason.ALREADY_RUNNING:
            raise
        return made
    with lock, repository:
        Daemon(repository, lock, note).run_once()
    return made


def _reply(
    files: Sequence[AdoptedFile], committed: list[dict[str, str]], *, write: bool, learn: bool
) -> Reply:
    by_kind = count_by_kind(files)
    words = learnt(files) if learn else []
    data = {
        "files": len(files),
        "kinds": {
            kind: {readiness.value: counts[readiness] for readiness in Readiness}
            for kind, counts in by_kind.items()
        },
        "causes": [{"cause": cause, "files": count} for cause, count in causes(files)],
        "repaired": [
            file.path for file in files if write and file.readiness is Readiness.REPAIRABLE
        ],
        "committed": committed,
        "words": [word._asdict() | {"files": count} for word, count in words],
        "aliases": aliases_of(words),
    }
    open_files = [
        file for file in files if file.readiness in (Readiness.AUTHOR, Readiness.MISNAMED)
    ]
    questions: list[Finding] = [finding for file in open_files for finding in file.findings]
    code = Exit.FINDINGS if questions else Exit.DONE

    def show(console: Console) -> None:
        _show_adoption(console, files, committed, write)
        _show_words(console, words)

    return Reply(data, questions, code, show)


def _show_adoption(
    console: Console, files: Sequence[AdoptedFile], committed: Sequence[Any], write: bool
) -> None:
    rows = [[("kind", "bold"), *((readiness.value, "bold") for readiness in Readiness)]]
    for kind, counts in count_by_kind(files).items():
        rows.append(
            [(safe(kind), ""), *((str(counts[readiness] or "-"), "") for readiness in Readiness)]
        )
    draw_columns(console, rows, ">")
    common = causes(files)
    if common:
        console.print("\nCommonest causes", style="bold")
    for cause, count in common[:MOST_CAUSES]:
        console.print(f"  {safe(cause):40} {count:>5} {bar(count, common[0][1])}")
    if len(common) > MOST_CAUSES:
        more = len(common) - MOST_CAUSES
        console.print(f"  {more} more: see 'yolo-fs adopt --json', or --report FILE.html")
    if write:
        console.print(f"\n{len(committed)} artifacts committed")


def _show_words(console: Console, words: Sequence[tuple[TeamWord, int]]) -> None:
    for word, count in words:
        choice = f"one of {', '.join(word.listed)}?"
        line = f"{safe(word.kind)}: {safe(word.word)} -> {word.meaning or choice}"
        console.print(f"  {line}  ({count} files)", soft_wrap=True)
    if aliases := aliases_of(words):
        config = {"yolo_fs": {"aliases": aliases}}
        console.print("\nFor .yolo-planning/config.json, if this is what is meant:")
        console.print(safe(json.dumps(config, ensure_ascii=False), 4096), soft_wrap=True)
