"""`yolo-fs schema`: the shape of every message, line and file, as JSON Schema 2020-12."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.artifacts.catalogue import Kind, all_kinds, find_kind
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.export import all_schemas, file_of, schemas_of, written
from yolo_fs.artifacts.misnamed import kind_called
from yolo_fs.checking.examples import example_for
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import Dept
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import SHARED, make_folders, write_atomic
from yolo_fs.workspace.output_places import output_place

if TYPE_CHECKING:
    from rich.console import Console


@click.group("schema")
def schema() -> None:
    """Show the schemas: every kind of message, line and file has a name, such as
    message/dev_progress.
    """


@verb("list", example="yolo-fs schema list", parent=schema)
def list_(invocation: Invocation) -> Reply:
    """List every kind with its format, and its file name if the protocol gives one."""
    return Reply([_row(kind) for kind in all_kinds()], show=_show_list)


@verb("show", example="yolo-fs schema show artifact/plan/task", parent=schema)
@click.argument("kind")
def show(invocation: Invocation, *, kind: str) -> Reply:
    """Print the JSON Schema of a kind, or of one of its lines.

    A kind with several lines gives one object, which maps each name to its schema.
    """
    named_kind, schemas = _find_schemas(kind)
    if not schemas:
        return Reply(
            _row(named_kind),
            show=lambda console: console.print(_explain_no_schema(named_kind), soft_wrap=True),
        )
    data = next(iter(schemas.values())) if len(schemas) == 1 else schemas
    return Reply(data, show=lambda console: print(written(data), end="", file=console.file))


@verb("example", example="yolo-fs schema example plan", parent=schema)
@click.argument("kind", metavar="KIND|FILE")
def example(invocation: Invocation, *, kind: str) -> Reply:
    """Print a valid example of a kind from 'schema list', or for a file, such as 01-02.plan.jsonl.

    For a whole path, the example fits its phase and plan: that of an existing plan has its own
    tasks, each with a spec, and a summary counts them and names their commits.

    'yolo-fs new KIND' writes the skeleton of one.
    """
    commits, plan = _find_work(kind, invocation.start)
    text = example_for(kind, commits, plan)
    return Reply(
        {"kind": kind, "text": text}, show=lambda console: print(text, end="", file=console.file)
    )


def _find_work(path: str, start: str) -> tuple[list[str], Sequence[Mapping[str, Any]]]:
    """Return hashes for an example that names commits, and the records of the committed plan that
    a file belongs to: the work on that plan, else the newest commit; nothing where there is none.
    """
    with suppress(YoloError), Repository(start) as repository:  # an example needs no repository
        newest = repository.head().tip
        if newest is None:
            return [], ()
        commits, records = _find_planned_work(repository, path, newest)
        return [oid[:SHORT] for oid in commits or [newest]], records
    return [], ()


def _find_planned_work(
    repository: Repository, path: str, commit: str
) -> tuple[list[str], Sequence[Mapping[str, Any]]]:
    """Return the commits and the records of the plan that a file belongs to, as of a commit."""
    place = classify(path)
    if place is None or place.plan is None:
        return [], ()
    from yolo_fs.evidence.facts import is_work_of
    from yolo_fs.history.facts_reader import FactsReader
    from yolo_fs.workspace.settings import load

    facts_reader = FactsReader(repository, load(repository.root))
    facts = next((each for each in facts_reader.facts(commit) if each.phase == place.phase), None)
    if facts is None:
        return [], ()
    own, department = place.plan, Dept(place.department)
    commits = [
        work.commit
        for work in facts_reader.collect_work(facts.committed)
        if work.plan == str(own) and is_work_of(work, department, facts.plans)
    ]
    plans = facts.of_kind("plan", department)
    return commits, next((plan.lines for plan in plans if plan.place.plan == own), ())


@verb("export", example="yolo-fs schema export schemas", parent=schema)
@click.argument("folder", metavar="DIR")
def export(invocation: Invocation, *, folder: str) -> Reply:
    """Write one file per schema below DIR.

    Files that are correct already are not written; no file is removed.
    """
    schemas = {file_of(name): written(schema) for name, schema in all_schemas().items()}
    fresh = [
        name
        for name, text in schemas.items()
        if _is_written(os.path.join(folder, name), invocation.start, text.encode())
    ]
    data = {"written": fresh, "unchanged": len(schemas) - len(fresh)}
    return Reply(
        data,
        show=lambda console: console.print(
            f"{len(fresh)} written, {data['unchanged']} were right already"
        ),
    )


def _explain_no_schema(kind: Kind) -> str:
    """Return the message for a kind without a schema of its own."""
    if members := [
        member.name for member in all_kinds() if member.name.startswith(f"{kind.name}/")
    ]:
        return f"{kind.name}: one of {', '.join(members)}"
    return (
        f"{kind.name}: {kind.format.value}, read as such; no JSON Schema describes it. "
        f"Source: {kind.source}."
    )


def _row(kind: Kind) -> dict[str, Any]:
    row = {
        "kind": kind.name,
        "read": kind.format.value,
        "how": kind.how,
        "file": kind.file,
        "source": kind.source,
    }
    return row | {"lines": [line.name for line in kind.lines if line.name]}


def _show_list(console: Console) -> None:
    for kind in all_kinds():
        lines = ", ".join(line.name for line in kind.lines if line.name)
        description = "; ".join(
            filter(
                None, (kind.file, kind.format.value, kind.how, f"lines {lines}" if lines else "")
            )
        )
        console.print(f"{kind.name:34} {description}", soft_wrap=True)


def _find_schemas(name: str) -> tuple[Kind, Mapping[str, Any]]:
    """Return a kind and its schemas; the name may select one of its lines."""
    kind = find_kind(name)
    if kind is not None:
        return kind, schemas_of(kind)
    family, _, line = name.rpartition("/")
    if (kind := find_kind(family)) and (schema := schemas_of(kind).get(f"{kind.name}/{line}")):
        return kind, {name: schema}
    return (kind := kind_called(name)), schemas_of(kind)


def _is_written(path: str, start: str, data: bytes) -> bool:
    """Write a file that is absent or differs, and return whether it was written."""
    top, full = output_place(path, start)
    content = read(os.path.dirname(full), os.path.basename(full), len(data))
    if isinstance(content, Content) and content.data == data:
        return False
    make_folders(os.path.dirname(full), root=top)
    write_atomic(full, data, root=top, durable=False, mode=SHARED)
    return True
