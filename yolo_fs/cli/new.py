"""`yolo-fs new`: the skeleton of an artifact, under its prescribed path."""

from __future__ import annotations

import os

import click

from yolo_fs.artifacts.classify import PLANNING_ROOT, place_of_name
from yolo_fs.checking.examples import place_of_new, skeleton_of
from yolo_fs.cli.reply import PHASE, Invocation, Reply, verb
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.workflow import phase_at_work
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME, Dept
from yolo_fs.system.store import SHARED, make_folders, write_atomic
from yolo_fs.workspace.planning_tree import find_phase, seen_from
from yolo_fs.workspace.settings import load, not_initialised


@verb("new", example="yolo-fs new plan --plan 01-01")
@click.argument("kind")
@PHASE
@click.option("--plan", default="", metavar="NN-MM", help="The plan that it belongs to.")
@click.option(
    "--dept", type=click.Choice([str(department) for department in Dept]), help="The department."
)
def new(invocation: Invocation, *, kind: str, phase: str, plan: str, dept: str | None) -> Reply:
    """Write the skeleton of an artifact: the correct path, name and keys, with empty values.

    The skeleton is refused until its author has filled it in. No existing file is overwritten.
    'yolo-fs schema example KIND' prints a valid artifact.
    """
    with Repository(invocation.start) as repository:
        root = repository.root
        if not os.path.isdir(os.path.join(root, PLANNING_ROOT)):
            raise not_initialised(root)
        chosen = find_phase(root, phase) if phase else _at_work(repository)
        if place := place_of_name(kind):
            plan, dept = plan or str(place.plan or ""), dept or place.department
        prefix = DEPARTMENT_BY_NAME[Dept(dept)].prefix if dept else ""
        path = f"{PLANNING_ROOT}/{place_of_new(kind, chosen, plan, prefix)}"
        full = os.path.join(root, path)
        if os.path.lexists(full):
            raise YoloError(
                Reason.STATE_CONFLICT,
                f"{path} exists already",
                hint=f"'yolo-fs validate {path}' checks it.",
            )
        make_folders(os.path.dirname(full), root=root)
        write_atomic(full, skeleton_of(kind, chosen, plan).encode(), root=root, mode=SHARED)
    seen = seen_from(invocation.start, root, path)
    return Reply({"path": path}, show=lambda console: console.print(seen, soft_wrap=True))


def _at_work(repository: Repository) -> PhaseId | None:
    phase = phase_at_work(FactsReader(repository, load(repository.root)))
    return phase.id if phase else None
