"""A burst: 1,000 artifacts at once, each to be its own commit."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from bench import daemon, repositories, staged
from bench.aims import Aim
from bench.engine import Engine
from bench.inotify import MOVED_TO, Inotify
from bench.options import Options
from bench.repositories import (
    BRANCH,
    Size,
    artifact,
    commit_head,
    file_change,
    git,
    loose_objects,
    put,
)
from bench.rounds import middle_half, ratios
from bench.table import Goal, Table, goal_table, rate, times

DAEMON = "daemon, first write to last event"
ENGINE = "engine, durable, index refreshed"
FAST_IMPORT = "git fast-import, one stream"
ONLY = "git commit --only per file"
_FIRST = 1_000
"""Number of the first artifact of the first burst; the repositories hold those before."""

Files = list[tuple[str, bytes]]
Spans = list[tuple[float, float]]
"""When each burst through the daemon began and ended, by the clock that processes share."""


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to commit a burst, in a work tree of its own."""

    name: str
    root: str
    count: int
    """Artifacts in one burst."""
    once: Callable[[Files], float]
    """Commits them and returns the seconds that counted."""
    index: Inotify | None = None
    """Tells of each rewrite of the user's index, where that is of interest."""


@dataclass(slots=True)
class _Result:
    """What came of one way."""

    rates: list[float]
    loose: float
    """Loose objects left by one burst."""
    count: int
    refreshes: list[float] = field(default_factory=list)
    """Rewrites of the index per 100 ms of a burst."""


def run(options: Options) -> Iterator[Table]:
    """Measure in both repositories."""
    results: dict[str, dict[str, _Result]] = {}
    for size in repositories.sizes(options):
        spans: Spans = []
        with ExitStack() as stack:
            ways = _ways(size, options, stack, spans)
            results[size.name] = _measure(ways, options.pick(3, 1))
        yield _table(size.name, results[size.name])
        yield _stages(size.name, ways[0], spans)
    yield goal_table("Goals: burst", list(_goals(results)))


def _ways(size: Size, options: Options, stack: ExitStack, spans: Spans) -> list[_Way]:
    count = options.pick(1_000, 20)
    slow = count if size.name == "small" else options.pick(100, 5)
    daemons, engines, imports, only = (repositories.copy(size, options) for _ in range(4))
    running = daemon.running(daemons, notes=staged.notes_of(daemons))
    said = stack.enter_context(running)
    engine = Engine(engines, durable=True)
    stack.callback(engine.close)
    return [
        _Way(
            DAEMON,
            daemons,
            count,
            lambda files: _by_daemon(daemons, said, files, spans),
            _index_of(daemons, stack),
        ),
        _Way(ENGINE, engines, count, lambda files: _by_engine(engines, engine, files)),
        _Way(FAST_IMPORT, imports, count, lambda files: _by_fast_import(imports, files)),
        _Way(ONLY, only, slow, lambda files: _by_only(only, files)),
    ]


def _index_of(root: str, stack: ExitStack) -> Inotify:
    watch = Inotify(MOVED_TO)
    stack.callback(watch.close)
    watch.add(f"{root}/.git")
    return watch


def _refreshes(index: Inotify) -> int:
    """Return how often the index was rewritten since the last call."""
    return sum(name.endswith("/index") for name in index.read())


def _measure(ways: list[_Way], rounds: int) -> dict[str, _Result]:
    results = {way.name: _Result([], 0.0, way.count) for way in ways}
    for number in range(rounds):
        turn = number % len(ways)
        for way in (*ways[turn:], *ways[:turn]):
            start = _FIRST + number * way.count
            files = [artifact(start + index, f"burst {number}") for index in range(way.count)]
            before, tip = loose_objects(way.root), git(way.root, "rev-parse", BRANCH)
            if way.index:
                _refreshes(way.index)
            taken_s = way.once(files)
            results[way.name].rates.append(way.count / taken_s)
            if way.index:
                results[way.name].refreshes.append(_refreshes(way.index) / (taken_s / 0.1 + 1))
            _verify(way, tip)
            results[way.name].loose += (loose_objects(way.root) - before) / rounds
    return results


def _by_daemon(root: str, said: daemon.Daemon, files: Files, spans: Spans) -> float:
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
    spans.append((began, ended))
    time.sleep(0.5)  # the index follows within 0.1 s
    return ended - began


def _by_engine(root: str, engine: Engine, files: Files) -> float:
    for path, data in files:
        put(root, path, data)
    began = time.perf_counter()
    engine.commit(*files)
    engine.follower.follow()
    return time.perf_counter() - began


def _by_fast_import(root: str, files: Files) -> float:
    began = time.perf_counter()
    tip = git(root, "rev-parse", BRANCH)
    stream = bytearray()
    for number, (path, data) in enumerate(files):
        stream += commit_head(
            f"refs/heads/{BRANCH}", number, "docs(01): summary", parent="" if number else tip
        )
        stream += file_change(path, data)
    git(root, "fast-import", "--quiet", given=bytes(stream))
    taken = time.perf_counter() - began
    git(root, "reset", "--hard", "-q")
    return taken


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
    left = git(way.root, "status", "--porcelain")
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
        "yolo-fs syncs to the disk and refreshes the user's index; fast-import refreshes no index.",
    )
    return Table(f"Burst, {size} repository", columns, rows, notes)


def _stages(size: str, way: _Way, spans: Spans) -> Table:
    """Say where each microsecond of the daemon's main thread goes, per artifact."""
    noted = staged.read(way.root)
    taken = [staged.within(noted, *span) for span in spans]
    each = {stage: median(one[stage] for one in taken) / way.count * 1e6 for stage in staged.STAGES}
    whole = sum(each.values())
    rows = tuple((stage, f"{us:.0f}", f"{us / whole:.0%}") for stage, us in each.items())
    return Table(
        f"Where each microsecond goes, {size} repository",
        ("of the main thread, for one artifact", "µs", "of the whole"),
        rows,
        (f"medians of {len(spans)} bursts; all else: events told, files followed, duties due",),
    )


def _goals(results: dict[str, dict[str, _Result]]) -> Iterator[Goal]:
    for size, least in (("small", 40), ("large", 300)):
        found = results[size]
        for name in (DAEMON, ENGINE):
            yield _goal(found, name, ONLY, size, least, Aim.BURST)
        yield _goal(found, ENGINE, FAST_IMPORT, size, 2, Aim.STREAM)
        yield Goal(f"{DAEMON}: loose objects left, {size}", found[DAEMON].loose, 50, aim=Aim.LOOSE)
        refreshes = found[DAEMON].refreshes
        yield Goal(
            f"{DAEMON}: index refreshes per 100 ms, {size}",
            median(refreshes),
            1,
            aim=Aim.FOLLOW,
            spread=middle_half(refreshes),
        )


def _goal(
    found: dict[str, _Result], ours: str, base: str, size: str, least: float, aim: Aim
) -> Goal:
    return Goal(
        f"{ours} / {base}, {size}",
        median(found[ours].rates) / median(found[base].rates),
        least,
        at_least=True,
        aim=aim,
        spread=middle_half(ratios(found[ours].rates, found[base].rates)),
        beside=f"{rate(median(found[base].rates))}/s",
    )
