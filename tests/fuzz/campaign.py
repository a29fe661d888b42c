"""Many trials: a share of them in each process, counted, every difference kept, and a seed that repeats them."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.fuzz import mutations
from tests.fuzz.reference import Rules
from tests.fuzz.trial import SMALL, Difference, Sort, try_handoff, try_lines, try_others

_KEPT = 20
"""Differences of one process that are kept in full; all are counted."""


@dataclass(slots=True)
class Tally:
    """What a number of trials came to."""

    trials: Counter[str] = field(default_factory=Counter)
    """`lines`, `front matters`, and how many of each the product accepted."""
    wrong: Counter[Sort] = field(default_factory=Counter)
    kept: list[Difference] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count another's trials too."""
        self.trials += other.trials
        self.wrong += other.wrong
        self.kept += other.kept

    def take(self, differences: Iterator[Difference]) -> None:
        """Count the differences of one trial."""
        for one in differences:
            self.wrong[one.sort] += 1
            if len(self.kept) < _KEPT:
                self.kept.append(one)


@dataclass(frozen=True, slots=True)
class Share:
    """What one process does."""

    seed: str
    """Of this share: the campaign's seed and the number of the share."""
    lines: int
    handoffs: int


def run_share(share: Share) -> Tally:
    """Try a share in this process."""
    tally, chance = Tally(), random.Random(share.seed)
    _until("lines", share.lines, tally, lambda: _lines(chance, tally))
    _until("front matters", share.handoffs, tally, lambda: _handoff(chance, tally))
    return tally


def _until(name: str, wanted: int, tally: Tally, try_one: Callable[[], None]) -> None:
    while tally.trials[name] < wanted:
        try_one()


def _lines(chance: random.Random, tally: Tally) -> None:
    specimen = (mutations.mutant if chance.random() < 0.5 else mutations.made_up)(chance)
    rules = SMALL if chance.random() < 0.05 else Rules()
    tally.trials["lines"] += max(1, specimen.data.count(b"\n"))
    tally.take(try_lines(specimen, rules, lambda name: tally.trials.update((name,))))
    if chance.random() < 0.1:
        tally.trials["objects"] += 1
        tally.take(try_others(specimen.data.replace(b"\n", b"", chance.randrange(3)), rules))


def _handoff(chance: random.Random, tally: Tally) -> None:
    data = (mutations.handoff_mutant if chance.random() < 0.5 else mutations.handoff_made_up)(
        chance
    )
    rules = SMALL if chance.random() < 0.05 else Rules()
    tally.trials["front matters"] += 1
    tally.take(try_handoff(data, rules, lambda name: tally.trials.update((name,))))


SHARE_LINES = 20_000
"""So that progress is shown, and a share that fails is quick to repeat."""


def shares(seed: int, lines: int, handoffs: int) -> list[Share]:
    """Cut a campaign into shares, each with a seed of its own."""
    count = max(1, -(-lines // SHARE_LINES))
    return [
        Share(f"{seed}:{number}", _part(lines, number, count), _part(handoffs, number, count))
        for number in range(count)
    ]


def _part(whole: int, number: int, count: int) -> int:
    return whole * (number + 1) // count - whole * number // count


def run(seed: int, lines: int, handoffs: int, processes: int, told: Callable[[str], None]) -> Tally:
    """Run a campaign, telling how far it is after each share."""
    total, began = Tally(), time.monotonic()
    planned = shares(seed, lines, handoffs)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for done, tally in enumerate(pool.imap_unordered(run_share, planned), 1):
            total.add(tally)
            told(
                f"{done} of {len(planned)} shares, {time.monotonic() - began:.0f} s, {summary(total)}"
            )
    return total


def summary(tally: Tally) -> str:
    """Return what went wrong, sort by sort, zeros too."""
    return ", ".join(f"{sort} {tally.wrong[sort]}" for sort in Sort)
