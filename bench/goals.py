"""Every goal in one table, beside what this run reached: `scripts/bench`.

A goal is what somebody would feel who works with the program: a wait, a full memory, a warm machine. Measures nothing: it
runs the benchmarks and gathers the goals that they yield.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator

from bench.options import Options
from bench.table import GOAL_COLUMNS, Goal, Table, goal_row

Run = Callable[[str, Options], Iterator[Table]]


def overview(names: Iterable[str], run: Run, options: Options) -> Table:
    """Run benchmarks and return their goals, in the order of the benchmarks."""
    goals: list[Goal] = []
    absent: dict[str, None] = {}
    for name in names:
        began = time.monotonic()
        for table in run(name, options):
            goals += table.goals
            absent.update(dict.fromkeys(table.absent))
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    met = sum(goal.is_met for goal in goals)
    notes = (
        f"{met} of {len(goals)} met; 'middle half': of the single rounds",
        "'beside': the floor or the peer, as it was measured in the same rounds",
        *(f"not there: {peer}" for peer in absent),
    )
    return Table("Goals", GOAL_COLUMNS, tuple(goal_row(goal) for goal in goals), notes)
