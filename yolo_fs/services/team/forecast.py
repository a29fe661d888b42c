"""Which files will conflict when the branches of the work trees are brought together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from yolo_fs.edges.git.repository import Repository
from yolo_fs.services.workspace.places import LINES

_BRANCHES = "refs/heads/"
_INTO = ("main", "master")
"""Branches that the others are likely to end in, where no work tree has one of them."""


@dataclass(frozen=True, slots=True)
class ExpectedConflict:
    """Two branches whose merge would stop."""

    one: str
    other: str
    paths: tuple[str, ...]


def lines_of(repository: Repository) -> tuple[str, ...]:
    """Return the branches that the work trees of this repository stand on, the main branch, and
    those of the team's other clones.
    """
    listed = repository.git.text("worktree", "list", "--porcelain").split("\n")
    named = [line.removeprefix("branch ") for line in listed if line.startswith("branch ")]
    into = (f"{_BRANCHES}{name}" for name in _INTO)
    known = [ref for ref in (*named, *into) if repository.tip(ref)]
    known += repository.refs_below(LINES)
    return tuple(ref.removeprefix(_BRANCHES) for ref in dict.fromkeys(known))


def forecast(repository: Repository, lines: tuple[str, ...]) -> Iterator[ExpectedConflict]:
    """Yield the pairs of branches that conflict; no branch and no file is touched.

    Raises:
        YoloError: GIT_FAILED when a branch is gone, or git is older than 2.38.
    """
    for one, other in itertools.combinations(lines, 2):
        if paths := _conflicts(repository, one, other):
            yield ExpectedConflict(one, other, paths)


def _conflicts(repository: Repository, one: str, other: str) -> tuple[str, ...]:
    answer = repository.git.run(
        "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z",
        "--allow-unrelated-histories", _full(one), _full(other),
        ok=(0, 1), settings=repository.filters_off(), timeout_s=60.0,
    )  # fmt: skip
    if answer.code == 0:
        return ()
    return tuple(dict.fromkeys(filter(None, answer.out.decode("utf-8", "replace").split("\0")[1:])))


def _full(line: str) -> str:
    return line if line.startswith(LINES) else f"{_BRANCHES}{line}"
