"""What is resident in the daemon after some commits, and after many more: what is committed needs no place there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from statistics import median

from bench import repositories
from bench.daemon import Daemon, memory_mb, running
from bench.options import Options
from bench.table import Goal, Table, goal_table

_ARTIFACTS = repositories.ARTIFACTS
_LOOKS = 10
"""Rounds whose median counts: what a fold takes for a moment comes and goes."""


def run(options: Options) -> Iterator[Table]:
    """Let the same artifacts be written anew, round after round."""
    few, many = options.pick((1_000, 5_000), (100, 200), (1_000, 50_000))
    small, _ = repositories.sizes(options)
    root = repositories.copy(small, options)
    found: dict[int, float] = {}
    looks: deque[float] = deque(maxlen=_LOOKS)
    with running(root) as daemon:
        for done in range(_ARTIFACTS, many + 1, _ARTIFACTS):
            _round(root, daemon, done)
            looks.append(memory_mb(daemon.process.pid))
            if done in (few, many):
                found[done] = median(looks)
    rows = tuple((f"{commits:,}", f"{mb:.1f}") for commits, mb in found.items())
    yield Table(
        "Memory of the daemon",
        ("commits", "MB"),
        rows,
        (f"resident, without its children; median of {_LOOKS} looks",),
    )
    name = f"memory after {many:,} commits / after {few:,}"
    yield goal_table(
        "Goals: memory",
        [Goal(name, found[many] / found[few], 1.2, beside=f"{found[few]:.1f} MB")],
    )


def _round(root: str, daemon: Daemon, done: int) -> None:
    """Write each artifact anew, and wait until all are committed."""
    wanted = set()
    for number in range(_ARTIFACTS):
        path, data = repositories.artifact(number, f"after {done} commits")
        repositories.put(root, path, data)
        wanted.add(path)
    while wanted:
        wanted -= {
            event["path"] for event in daemon.events() if event["event"] == "artifact.committed"
        }
