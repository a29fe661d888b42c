"""What the daemon costs while nothing happens: memory with 1,000 folders, CPU with 20,000, and with
few and many open phases, its scans included.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench import daemon, growth, repositories
from bench.options import Options
from bench.rounds import Sample
from bench.table import Goal, Table, goal_table

SCAN_S = 30
"""How often the daemon looks at everything, unless told otherwise."""
IMPORTS = (
    ("nothing", "os"),
    ("GitPython", "git"),
    (
        "every library that the daemon uses",
        "git, pydantic, watchdog.observers, filelock, jsonlines, click, yaml",
    ),
    ("the daemon", "yolo_fs.daemon.daemon"),
)
"""Who → what is imported."""
PHASE = ".yolo-planning/phases/01-bench"


@dataclass(frozen=True, slots=True)
class _Idle:
    """A daemon at rest."""

    beside: str
    """What is there."""
    watched: int
    memory_mb: float
    percents: Sample
    """CPU of each stretch of time; every stretch has as many scans as any other."""

    @property
    def percent(self) -> float:
        """CPU of all stretches together."""
        return sum(self.percents.times_s) / len(self.percents.times_s)


def run(options: Options) -> Iterator[Table]:
    """Measure with few folders and phases, then with many."""
    few, many = options.pick((1_000, 20_000), (20, 40))
    found = [
        _measure(f"{count:,} folders", _with_folders(count, options), options)
        for count in (few, many)
    ]
    found += [
        _measure(f"{count} open phases", growth.make(options, count), options)
        for count in options.pick((5, 95), (1, 2))
    ]
    yield _table(found)
    yield _imports()
    yield goal_table(
        "Goals: idle",
        [
            Goal(f"MB of the daemon, {few:,} folders", found[0].memory_mb, 100),
            *(
                Goal(
                    f"CPU of the idle daemon in percent, {one.beside}",
                    one.percent,
                    1,
                    spread=_range(one.percents),
                )
                for one in found[1:]
            ),
        ],
    )


def _with_folders(count: int, options: Options) -> str:
    size, _ = repositories.sizes(options)
    root = repositories.copy(size, options)
    for number in range(count):
        os.makedirs(f"{root}/{PHASE}/d{number // 100:03}/s{number % 100:02}")
    return root


def _measure(beside: str, root: str, options: Options) -> _Idle:
    stretch_s = options.pick(SCAN_S, 0.2)
    with daemon.process(root, rescan_s=SCAN_S) as child:
        # The second scan reads once more what was too young to be believed in the first.
        time.sleep(options.pick(SCAN_S + 5, 0.1))
        used = [daemon.used_s(child.pid)]
        for _ in range(options.pick(3, 1, 10)):
            time.sleep(stretch_s)
            used.append(daemon.used_s(child.pid))
        percents = [
            100 * (after - before) / stretch_s for before, after in itertools.pairwise(used)
        ]
        return _Idle(beside, _watched(child.pid), daemon.memory_mb(child.pid), Sample(percents))


def _watched(pid: int) -> int:
    """Return how many folders the kernel watches for a process."""
    count = 0
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        with open(f"/proc/{pid}/fdinfo/{name}") as file:
            count += sum(line.startswith("inotify ") for line in file)
    return count


def _table(found: list[_Idle]) -> Table:
    rows = tuple(
        (
            one.beside,
            f"{one.watched:,}",
            f"{one.memory_mb:.1f}",
            f"{one.percent:.2f} %",
            _range(one.percents),
        )
        for one in found
    )
    notes = (
        (
            f"CPU: stretches of {SCAN_S} s, one scan of everything in each; memory: resident, "
            "at the end"
        ),
    )
    return Table("Idle daemon", ("beside", "watched", "MB", "CPU", "range"), rows, notes)


def _imports() -> Table:
    """Show what is resident before anything is watched: the interpreter, the libraries, our own
    modules.
    """
    rows = tuple((name, f"{_imported_mb(modules):.1f}") for name, modules in IMPORTS)
    return Table("Memory of imports", ("a process that has imported", "MB"), rows)


def _imported_mb(modules: str) -> float:
    program = f"import sys, {modules}; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = daemon.memory_mb(child.pid)
        child.communicate()
    return found


def _range(sample: Sample) -> str:
    return f"{min(sample.times_s):.2f} to {max(sample.times_s):.2f}"
