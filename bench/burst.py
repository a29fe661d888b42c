"""A burst: 1,000 artifacts at once, each to be its own commit."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from bench import daemon, repositories
from bench.options import Options
from bench.repositories import (
    BRANCH,
    Size,
    artifact,
    git,
    left_over,
    loose_objects,
    put,
)
from bench.rounds import middle_half
from bench.table import Goal, Table, goal_table, rate, times

DAEMON = "daemon, first write to last event"
ONLY = "git commit --only per file"
_FIRST = 1_000
"""Number of the first artifact of the first burst; the repositories hold those before."""

Files = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to commit a burst, in a work tree of its own."""

    name: str
    root: str
    count: int
    """Artifacts in one burst."""
    once: Callable[[Files], float]
    """Commits them and returns the seconds that counted."""


@dataclass(slots=True)
class _Result:
    """What came of one way."""

    rates: list[float]
    loose: float
    """Loose objects left by one burst."""
    count: int


def run(options: Options) -> Iterator[Table]:
    """Measure in both repositories."""
    results: dict[str, dict[str, _Result]] = {}
    for size in repositories.sizes(options):
        with ExitStack() as stack:
            ways = _ways(size, options, stack)
            results[size.name] = _measure(ways, options.pick(3, 1))
        yield _table(size.name, results[size.name])
    yield goal_table("Goals: burst", list(_goals(results)))


def _ways(size: Size, options: Options, stack: ExitStack) -> list[_Way]:
    count = options.pick(1_000, 20)
    slow = count if size.name == "small" else options.pick(100, 5)
    daemons, only = (repositories.copy(size, options) for _ in range(2))
    said = stack.enter_context(daemon.running(daemons))
    return [
        _Way(DAEMON, daemons, count, lambda files: _by_daemon(daemons, said, files)),
        _Way(ONLY, only, slow, lambda files: _by_only(only, files)),
    ]


def _measure(ways: list[_Way], rounds: int) -> dict[str, _Result]:
    results = {way.name: _Result([], 0.0, way.count) for way in ways}
    for number in range(rounds):
        turn = number % len(ways)
        for way in (*ways[turn:], *ways[:turn]):
            start = _FIRST + number * way.count
            files = [artifact(start + index, f"burst {number}") for index in range(way.count)]
            before, tip = loose_objects(way.root), git(way.root, "rev-parse", BRANCH)
            taken_s = way.once(files)
            results[way.name].rates.append(way.count / taken_s)
            _verify(way, tip)
            results[way.name].loose += (loose_objects(way.root) - before) / rounds
    return results


def _by_daemon(root: str, said: daemon.Daemon, files: Files) -> float:
    for folder in {os.path.dirname(path) for path, _ in files}:
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    time.sleep(0.2)  # the folders are news of their own
    awaited = {path for path, _ in files}
    began = time.perf_counter()
    for path, data in files:
        put(root, path, data)
    while awaited:
        awaited -= {
            event["path"] for event in said.events() if event["event"] == "artifact.committed"
        }
    ended = time.perf_counter()
    time.sleep(0.5)  # the index follows within 0.1 s
    return ended - began


def _by_only(root: str, files: Files) -> float:
    for path, data in files:
        put(root, path, data)
    git(root, "add", "-N", ".yolo-planning")
    began = time.perf_counter()
    for path, _ in files:
        subprocess.run(
            ["git", "-C", root, "commit", "-q", "--only", "-m", "docs(01): summary", "--", path],
            check=True,
        )
    return time.perf_counter() - began


def _verify(way: _Way, tip: str) -> None:
    """Prove that there is one commit per artifact, each with one file, and that nothing is left
    over.
    """
    span = f"{tip}..{BRANCH}"
    commits = int(git(way.root, "rev-list", "--count", span))
    names = git(way.root, "log", "--format=", "--name-only", span).split()
    left = left_over(way.root)
    if (commits, len(names), len(set(names)), left) != (way.count, way.count, way.count, ""):
        raise RuntimeError(
            f"{way.name}: {commits} commits of {len(set(names))} files, left over: {left[:200]!r}"
        )


def _table(size: str, results: dict[str, _Result]) -> Table:
    base = median(results[ONLY].rates)
    rows = tuple(
        (
            name,
            str(result.count),
            rate(median(result.rates)),
            f"{rate(min(result.rates))} to {rate(max(result.rates))}",
            times(median(result.rates) / base),
            f"{result.loose:.0f}",
        )
        for name, result in results.items()
    )
    columns = (
        "a burst, each file its own commit",
        "files",
        "commits/s",
        "range",
        "x git commit --only",
        "loose left",
    )
    rounds = len(results[ONLY].rates)
    notes = (
        (
            f"median of {rounds} interleaved bursts; each verified: one commit per file, one "
            "file per commit."
        ),
        "yolo-fs syncs to the disk and refreshes the user's index; git's commits are not synced.",
    )
    return Table(f"Burst, {size} repository", columns, rows, notes)


def _goals(results: dict[str, dict[str, _Result]]) -> Iterator[Goal]:
    for size, found in results.items():
        taken_s = [found[DAEMON].count / rate_per_s for rate_per_s in found[DAEMON].rates]
        by_git_s = found[DAEMON].count / median(found[ONLY].rates)
        yield Goal(
            f"{found[DAEMON].count:,} artifacts at once, each its own commit, {size} repository, s",
            median(taken_s),
            5,
            spread=middle_half(taken_s),
            beside=f"{ONLY}: {by_git_s:.0f} s",
        )
