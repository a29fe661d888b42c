"""Every goal of the plan in one table, beside what this run reached: `scripts/bench`.

Measures nothing: it runs the benchmarks and gathers the goals that they yield.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator

from bench.aims import Aim
from bench.options import Options
from bench.table import GOAL_COLUMNS, Goal, Table, goal_row

Run = Callable[[str, Options], Iterator[Table]]


def overview(names: Iterable[str], run: Run, options: Options) -> Table:
    """Run benchmarks and return their goals, in the order of the plan; bounds of our own come
    last.
    """
    goals: list[Goal] = []
    absent: dict[str, None] = {}
    for name in names:
        began = time.monotonic()
        for table in run(name, options):
            goals += table.goals
            absent.update(dict.fromkeys(table.absent))
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    rows = [
        row
        for aim in (*Aim, None)
        for row in _rows(aim, [goal for goal in goals if goal.aim is aim])
    ]
    met = sum(goal.is_met for goal in goals)
    notes = (
        f"{met} of {len(goals)} met; 'middle half': of the ratios of the single rounds",
        "'beside': the floor or the peer, as it was measured in the same rounds",
        *(f"not there: {one}" for one in absent),
    )
    return Table("Goals", ("goal of the plan", *GOAL_COLUMNS[1:]), tuple(rows), notes)


def _rows(aim: Aim | None, goals: list[Goal]) -> Iterator[tuple[str, ...]]:
    if not goals and aim is None:
        return
    blank = ("",) * (len(GOAL_COLUMNS) - 2)
    yield (aim.value if aim else "bounds of our own", *blank, "" if goals else "NOT MEASURED")
    for goal in goals:
        first, *others = goal_row(goal)
        yield (f"  {first}", *others)
