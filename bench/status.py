"""Changing a status file under its lock, by one and by eight processes, beside a script of flock
and jq.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from bench.aims import Aim
from bench.options import Options
from bench.rounds import middle_half, ratios
from bench.table import Goal, Table, goal_table, rate, times

FLOOR = "floor: flock, sync, rename, sync"
STORE = "store.update, synced"
SCRIPT = "bash, flock, jq; not synced"
PROCESSES = (1, 8)
ABSENT = ("without the script: jq or flock is not there",)

_SCRIPT = """\
#!/bin/bash
# What a status script of shell does: one change under the lock.
exec 9>"$1.lock"
flock -x -w 10 9 || exit 1
jq '.plans_complete += 1 | .status = "running"' "$1" > "$1.tmp" && mv "$1.tmp" "$1"
"""


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to change the file, in processes of its own."""

    name: str
    command: tuple[str, ...]
    """Given path and number of changes; says `ready`, and begins when it reads a line."""
    changes: int
    """All processes together."""


def run(options: Options) -> Iterator[Table]:
    """Measure with one and with eight processes."""
    folder = tempfile.mkdtemp(prefix="status-", dir=options.scratch)
    ways = _ways(folder, options)
    rates: dict[tuple[str, int], list[float]] = {}
    for number in range(options.pick(5, 1)):
        turn = number % len(ways)
        for way in (*ways[turn:], *ways[:turn]):
            for processes in PROCESSES:
                rates.setdefault((way.name, processes), []).append(_rate(way, processes, folder))
    found = {key: median(values) for key, values in rates.items()}
    has_peer = (SCRIPT, 1) in found
    yield _table(found, rates, has_peer=has_peer)
    if has_peer:
        yield goal_table("Goals: status", [_goal(found, rates)])


def _goal(found: dict[tuple[str, int], float], rates: dict[tuple[str, int], list[float]]) -> Goal:
    return Goal(
        "store.update / script, 8 processes",
        found[STORE, 8] / found[SCRIPT, 8],
        30,
        at_least=True,
        aim=Aim.STATUS,
        spread=middle_half(ratios(rates[STORE, 8], rates[SCRIPT, 8])),
        beside=f"{rate(found[SCRIPT, 8])}/s",
    )


def _ways(folder: str, options: Options) -> list[_Way]:
    worker = (sys.executable, "-m", "bench.status")
    ways = [
        _Way(FLOOR, (*worker, "floor"), options.pick(1600, 16)),
        _Way(STORE, (*worker, "store"), options.pick(1600, 16)),
    ]
    if shutil.which("jq") and shutil.which("flock"):
        script = os.path.join(folder, "dept-status.sh")
        with open(script, "w") as file:
            file.write(_SCRIPT)
        loop = (
            'echo ready; read -r _; for ((i = 0; i < $3; i++)); do bash "$1" "$2" || exit 1; done'
        )
        ways.append(_Way(SCRIPT, ("bash", "-c", loop, "loop", script), options.pick(160, 16)))
    return ways


def _rate(way: _Way, processes: int, folder: str) -> float:
    path = os.path.join(folder, "status.json")
    with open(path, "w") as file:
        json.dump({"dept": "backend", "status": "pending", "plans_complete": 0}, file)
    each = way.changes // processes
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker(way, path, each)) for _ in range(processes)]
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()
        began = time.perf_counter()
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write(b"go\n")
            worker.stdin.flush()
        codes = [worker.wait() for worker in workers]
        taken = time.perf_counter() - began
    with open(path) as file:
        counted: int = json.load(file)["plans_complete"]
    if any(codes) or counted != each * processes:
        raise RuntimeError(f"{way.name}: {counted} of {each * processes} changes are there")
    return counted / taken


def _worker(way: _Way, path: str, changes: int) -> subprocess.Popen[bytes]:
    command = [*way.command, path, str(changes)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _table(
    found: dict[tuple[str, int], float],
    rates: dict[tuple[str, int], list[float]],
    *,
    has_peer: bool,
) -> Table:
    base = SCRIPT if has_peer else FLOOR
    rows = tuple(
        (
            name,
            *(rate(found[name, processes]) for processes in PROCESSES),
            *(times(found[name, processes] / found[base, processes]) for processes in PROCESSES),
            f"{rate(min(rates[name, 8]))} to {rate(max(rates[name, 8]))}",
        )
        for name in dict.fromkeys(name for name, _ in found)
    )
    columns = ("changes/s", "1 process", "8 processes", f"x {base}, 1", f"x {base}, 8", "range, 8")
    notes = ("no change was lost in any round",) if has_peer else ABSENT
    return Table("Status file", columns, rows, notes, absent=() if has_peer else ABSENT)


# --- in a process of its own ---


def _by_store(path: str, changes: int) -> None:
    from yolo_fs.system.store import SHARED, Damaged, update

    def change(value: object) -> dict[str, object]:
        assert isinstance(value, dict) and not isinstance(value, Damaged)
        return {**value, "plans_complete": value["plans_complete"] + 1, "status": "running"}

    for _ in range(changes):
        update(path, f"{path}.lock", change, timeout_s=60, mode=SHARED)


def _by_floor(path: str, changes: int) -> None:
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    for _ in range(changes):
        with open(f"{path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with open(path) as file:
                value = json.load(file)
            with open(f"{path}.tmp", "w") as file:
                json.dump({**value, "plans_complete": value["plans_complete"] + 1}, file)
                file.flush()
                os.fsync(file.fileno())
            os.rename(f"{path}.tmp", path)
            os.fsync(folder)


def _work(how: str, path: str, changes: int) -> None:
    from yolo_fs.system import store

    assert store
    import filelock  # noqa: F401 - imported before the clock starts

    print("ready", flush=True)
    sys.stdin.readline()
    {"store": _by_store, "floor": _by_floor}[how](path, changes)


if __name__ == "__main__":
    _work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
