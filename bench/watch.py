"""From close() to the callback, in small and large trees, beside inotify itself; and what idling
costs.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench.aims import Aim
from bench.daemon import memory_mb, used_s
from bench.options import Options
from bench.rounds import Sample, cost_goal
from bench.table import Table, goal_table, ms, times

RAW = "inotify"
WATCHER = "yolo-fs watcher"
_KINDS = {RAW: "raw", WATCHER: "watcher"}


@dataclass(slots=True)
class _Watching:
    """A watcher at work in a tree of its own."""

    name: str
    root: str
    process: subprocess.Popen[bytes]
    start_s: float
    sample: Sample = field(default_factory=Sample)
    idle_percent: float = 0.0
    memory_mb: float = 0.0

    def time(self, folder: str, number: int) -> None:
        """Write a file and note how long its watcher took to tell."""
        path = f"{self.root}/{folder}/f{number}"
        file = open(path, "wb")  # noqa: SIM115
        file.write(b"x" * 500)
        file.flush()
        began = time.perf_counter_ns()
        file.close()
        assert self.process.stdout is not None
        said = b""
        while os.fsdecode(said) != path:
            told, _, said = self.process.stdout.readline().rstrip(b"\n").partition(b" ")
        self.sample.times_s.append((int(told) - began) / 1e9)


def run(options: Options) -> Iterator[Table]:
    """Measure trees of three sizes."""
    last: dict[str, _Watching] = {}
    rows: list[tuple[str, ...]] = []
    for count in options.pick((10, 1_000, 20_000), (5, 20)):
        last = _measure(count, options)
        rows += [_row(count, one, last[RAW]) for one in last.values()]
    columns = (
        "watcher",
        "folders",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "x inotify",
        "start ms",
        "idle CPU",
        "MB",
    )
    notes = (
        (
            "each in a process and a tree of its own; writes alternate; from the call of "
            "close() to the callback."
        ),
    )
    yield Table("Watch", columns, tuple(rows), notes)
    goal = cost_goal(
        "watcher / inotify, p50, largest tree", last[WATCHER].sample, last[RAW].sample, 5, Aim.WATCH
    )
    yield goal_table("Goals: watch", [goal])


def _measure(count: int, options: Options) -> dict[str, _Watching]:
    with ExitStack() as stack:
        both = [_watching(name, count, options, stack) for name in _KINDS]
        folders = _folders(count)
        rng = random.Random(options.seed)
        for number in range(options.pick(400, 5)):
            for one in both:
                time.sleep(0.002)
                one.time(rng.choice(folders), number)
        _idle(both, options.pick(10.0, 0.1))
    return {one.name: one for one in both}


def _watching(name: str, count: int, options: Options, stack: ExitStack) -> _Watching:
    root = tempfile.mkdtemp(prefix="watch-", dir=options.scratch)
    for folder in _folders(count):
        os.makedirs(f"{root}/{folder}")
    command = [sys.executable, "-m", "bench.watched", _KINDS[name], root]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    stack.callback(process.communicate)
    stack.callback(process.kill)
    assert process.stdout is not None
    process.stdout.readline()
    return _Watching(name, root, process, time.perf_counter() - began)


def _folders(count: int) -> list[str]:
    return [f"d{number // 100:03}/s{number % 100:02}" for number in range(count)]


def _idle(both: list[_Watching], for_s: float) -> None:
    before = {one.name: used_s(one.process.pid) for one in both}
    time.sleep(for_s)
    for one in both:
        one.idle_percent = 100 * (used_s(one.process.pid) - before[one.name]) / for_s
        one.memory_mb = memory_mb(one.process.pid)


def _row(count: int, one: _Watching, raw: _Watching) -> tuple[str, ...]:
    sample = one.sample
    return (
        one.name,
        f"{count:,}",
        ms(sample.p50),
        ms(sample.quantile(0.9)),
        ms(sample.p99),
        times(sample.p50 / raw.sample.p50),
        ms(one.start_s),
        f"{one.idle_percent:.1f} %",
        f"{one.memory_mb:.0f}",
    )
