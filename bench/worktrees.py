"""From the end of a write in one work tree to its commit in all others of the team: each has its
own branch and its own real daemon.
"""

from __future__ import annotations

import random
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from bench import daemon, repositories
from bench.options import Options
from bench.repositories import BRANCH, artifact, git, put
from bench.rounds import WARM_UP, Sample, time_goal
from bench.table import Goal, Table, goal_table, ms
from yolo_fs.system.ask import answers
from yolo_fs.system.warm_path import own_folder

TREES = 8
TIMEOUT_S = 30.0
PAUSE_S = (0.25, 0.35)
"""Before each write: what follows on the last one is done."""

OWN, FIRST, LAST = "in its own tree", "in the first other tree", "in all other trees"


@dataclass(frozen=True, slots=True)
class _Tree:
    """One work tree and its daemon."""

    root: str
    branch: str
    daemon: daemon.Daemon


class _HandOver(NamedTuple):
    """One artifact on its way through the trees."""

    writer: str
    """Its root, as those of the others."""
    began: float
    took: dict[str, float]
    """Root → seconds until the tree told of its commit."""

    @property
    def times_s(self) -> tuple[float, float, float]:
        """Until the writer's own commit, the first of another tree and the last."""
        others = [took for root, took in self.took.items() if root != self.writer]
        return self.took[self.writer], min(others), max(others)


def run(options: Options) -> Iterator[Table]:
    """Measure, then merge all branches."""
    small, _ = repositories.sizes(options)
    main = repositories.copy(small, options)
    count = options.pick(TREES, 2)
    samples = {name: Sample() for name in (OWN, FIRST, LAST)}
    rng = random.Random(options.seed)
    rounds = options.pick(40, 2)
    with ExitStack() as stack:
        trees = [_tree(main, number, stack) for number in range(count)]
        _settle(trees)
        before = _used_s(trees)
        for number in range(WARM_UP + rounds):
            time.sleep(rng.uniform(*PAUSE_S))
            span = _time(trees, number)
            if number >= WARM_UP:
                for name, one in zip(samples, span.times_s, strict=True):
                    samples[name].times_s.append(one)
        cpu_s = (_used_s(trees) - before) / (WARM_UP + rounds) / count
    conflicts = [tree.branch for tree in trees[1:] if not _merges(main, tree.branch)]
    rows = tuple(
        (name, ms(one.p50), ms(one.quantile(0.95)), one.spread) for name, one in samples.items()
    )
    notes = (
        f"{count} work trees of one repository, {rounds} writes, synced",
        f"CPU time of each daemon per artifact: {ms(cpu_s)} ms",
        f"branches that did not merge without a conflict: {len(conflicts)}",
    )
    yield Table(
        f"Write to commit, {count} work trees", ("", "p50 ms", "p95 ms", "spread"), rows, notes
    )
    yield goal_table(
        "Goals: work trees",
        [
            time_goal(
                f"write in one of {count} work trees to its commit in all", samples[LAST], 100
            ),
            Goal("conflicts when the branches merge", len(conflicts), 0),
        ],
    )


def _tree(main: str, number: int, stack: ExitStack) -> _Tree:
    root, branch = main, BRANCH
    if number:
        root, branch = f"{main}-{number}", f"tree-{number}"
        git(main, "worktree", "add", "-q", "-b", branch, root)
    join = [sys.executable, "-m", "yolo_fs", "team", "join", "-q", "-C", root]
    subprocess.run(join, check=True)
    return _Tree(root, branch, stack.enter_context(daemon.running(root)))


def _settle(trees: list[_Tree]) -> None:
    """Wait until the processes that answer commands have started: that costs once what many
    artifacts do.
    """
    deadline = time.monotonic() + TIMEOUT_S
    for tree in trees:
        while not answers(own_folder(tree.root)) and time.monotonic() < deadline:
            time.sleep(0.2)


def _time(trees: list[_Tree], number: int) -> _HandOver:
    """Write an artifact in one tree, and hear when each has committed it."""
    path, data = artifact(number % repositories.ARTIFACTS, f"write {number}")
    writer = trees[number % len(trees)]
    put(writer.root, path, data)
    began = time.perf_counter()
    took: dict[str, float] = {}
    by_fd = {tree.daemon.fd: tree for tree in trees}
    while len(took) < len(trees):
        readable, _, _ = select.select(list(by_fd), [], [], TIMEOUT_S)
        now = time.perf_counter() - began
        if not readable:
            raise TimeoutError(f"{path} is not everywhere: {sorted(took)} of {len(trees)}")
        for fd in readable:
            tree = by_fd[fd]
            for event in tree.daemon.events():
                if event["event"] == "artifact.committed" and event["path"] == path:
                    took[tree.root] = now
    return _HandOver(writer.root, began, took)


def _used_s(trees: list[_Tree]) -> float:
    return sum(daemon.used_s(tree.daemon.process.pid) for tree in trees)


def _merges(root: str, branch: str) -> bool:
    done = subprocess.run(
        ["git", "-C", root, "merge", "-q", "--no-edit", branch], capture_output=True, check=False
    )
    if done.returncode:
        git(root, "merge", "--abort")
    return done.returncode == 0
