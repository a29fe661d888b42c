"""Finds plans and their like that were written outside the planning tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from yolo_fs.artifacts.classify import place_of_name
from yolo_fs.artifacts.misnamed import misplaced, nested
from yolo_fs.core.reasons import Finding
from yolo_fs.git.repository import Repository
from yolo_fs.workspace.planning_tree import phases_in

NUMBERED = "*[0-9][0-9]-[0-9][0-9].*.jsonl"
"""Pattern of names with the number of a plan."""
EVERYWHERE = f":(glob)**/{NUMBERED}"


def is_numbered(path: str) -> bool:
    """Return whether a file outside any planning tree is named as an artifact of one plan."""
    place = place_of_name(path)
    is_outside = misplaced(path) is not None and nested(path) is None
    return is_outside and place is not None and place.plan is not None


def find_misplaced(repository: Repository, *where: str) -> Iterator[Finding]:
    """Yield a warning of each such file whose phase is there and that git neither tracks nor
    ignores, with the place where it belongs.

    `where`: as `git ls-files` takes it.
    """
    folders = {phase.number: str(phase) for phase in phases_in(repository.root)}
    if not folders:
        return
    how = ("-zo", "--exclude-standard", "--", *where)
    listed = repository.git.run("ls-files", *how, more={"GIT_LITERAL_PATHSPECS": "0"})
    for path in listed.out.decode("utf-8", "surrogateescape").split("\0"):
        place, wrong = place_of_name(path), misplaced(path)
        folder = folders.get(place.plan.phase) if place and place.plan else None
        if wrong and folder and is_numbered(path):
            yield replace(wrong, expected=wrong.expected.replace("NN-SLUG", folder))


def literally(path: str) -> str:
    """Return a path as `find_misplaced` takes it."""
    return f":(literal){path}"
