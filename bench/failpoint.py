"""What a failpoint costs while none is set."""

from __future__ import annotations

import timeit
from collections.abc import Iterator

from bench.options import Options
from bench.table import Goal, Table, goal_table
from yolo_fs.system import failpoint

_PASSES_OF_A_COMMIT = 25
"""Stages that one commit of one artifact comes by, rounded up."""


def run(options: Options) -> Iterator[Table]:
    """Time the pass of a stage beside a call of an empty function."""
    times = 10_000 if options.small else 1_000_000
    passing = _ns("failpoint.reach('objects.synced')", times)
    empty = _ns("empty('objects.synced')", times)
    commit_us = passing * _PASSES_OF_A_COMMIT / 1000
    yield Table(
        "Failpoints, none set",
        ("", "ns"),
        (("pass of a stage", f"{passing:.0f}"), ("call of an empty function", f"{empty:.0f}")),
        notes=(f"one commit passes {_PASSES_OF_A_COMMIT} stages at most: {commit_us:.1f} µs",),
    )
    yield goal_table(
        "Goals: failpoints",
        [Goal("pass of a stage / call of an empty function", passing / empty, 4)],
    )


def _ns(statement: str, times: int) -> float:
    seconds = min(
        timeit.repeat(
            statement, number=times, globals={"failpoint": failpoint, "empty": lambda _: None}
        )
    )
    return seconds / times * 1e9
