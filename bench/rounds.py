"""Interleaved rounds: each way once a round, in turning order, so that a noisy moment hits all of
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.table import Goal, ms, times
from yolo_fs.cli.validate import watched

WARM_UP = 2
"""Rounds that are run and not counted."""


def _nothing(_round: int) -> None:
    return


@dataclass(frozen=True, slots=True)
class Way:
    """One way to do the thing that is compared."""

    name: str
    once: Callable[[int], object]
    """Does it once; is given the number of the round."""
    before: Callable[[int], object] = _nothing
    """Preparation of one round, not timed."""
    after: Callable[[int], object] = _nothing
    """What follows one round, not timed."""


@dataclass(slots=True)
class Sample:
    """Times of one way, in seconds."""

    times_s: list[float] = field(default_factory=list)

    def quantile(self, part: float) -> float:
        """Return the least time that `part` of all times do not exceed."""
        ordered = sorted(self.times_s)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))]

    @property
    def p50(self) -> float:
        """The median."""
        return self.quantile(0.5)

    @property
    def p99(self) -> float:
        """The 99th percentile; the longest time where there are fewer than 100."""
        return self.quantile(0.99)

    @property
    def spread(self) -> str:
        """The middle half of the times, as percent of the median: how noisy the machine was."""
        return f"±{50 * (self.quantile(0.75) - self.quantile(0.25)) / self.p50:.0f} %"


def middle_half(values: Sequence[float]) -> str:
    """Return the bounds of the middle half of some ratios."""
    sample = Sample(list(values))
    return f"{times(sample.quantile(0.25))} to {times(sample.quantile(0.75))}"


def ratios(ours: Sequence[float], base: Sequence[float]) -> list[float]:
    """Return the ratio of each round; what ran in the same round met the same noise."""
    return [one / other for one, other in zip(ours, base, strict=False)]


def time_goal(name: str, times: Sample, target_ms: float, base: Sample | None = None) -> Goal:
    """Return the goal that something takes at most so many milliseconds in the median; `base`: the floor beside it."""
    beside = f"floor {ms(base.p50)} ms" if base else ""
    return Goal(f"{name}, ms", times.p50 * 1000, target_ms, spread=times.spread, beside=beside)


def cost_goal(name: str, ours: Sample, base: Sample, target: float) -> Goal:
    """Return the goal that something costs at most `target` times as much time as something
    else: the median of the rounds, each compared with itself.
    """
    each = Sample(ratios(ours.times_s, base.times_s))
    spread = middle_half(each.times_s)
    return Goal(name, each.p50, target, spread=spread, beside=f"{ms(base.p50)} ms")


def interleave(ways: Sequence[Way], rounds: int) -> dict[str, Sample]:
    """Run all ways `rounds` times and return their samples by name."""
    samples = {way.name: Sample() for way in ways}
    every = WARM_UP + rounds
    for number in watched(range(every), "rounds", lambda _: every):
        turn = number % len(ways)
        for way in (*ways[turn:], *ways[:turn]):
            taken = _timed(way, number)
            if number >= WARM_UP:
                samples[way.name].times_s.append(taken)
    return samples


def _timed(way: Way, number: int) -> float:
    way.before(number)
    began = time.perf_counter()
    way.once(number)
    taken = time.perf_counter() - began
    way.after(number)
    return taken
