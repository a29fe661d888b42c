"""One department's status, declared by eight processes at once: none is lost, no reader sees half
of it, how fast.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from statistics import median
from typing import IO, cast

from bench.aims import Aim
from bench.options import Options
from bench.rounds import middle_half, ratios
from bench.status import ABSENT
from bench.table import Goal, Table, goal_table, rate, times

WRITERS = 8
READERS = 2
SCRIPT = os.path.join(os.path.dirname(__file__), "dept-status.sh")
OURS = "declare, synced"
THEIRS = "bash, flock, jq; not synced"
PHASE = "01-bench"
FOLDER = f".yolo-planning/phases/{PHASE}"
STATUS = ".dept-status-backend.json"


def run(options: Options) -> Iterator[Table]:
    """Prove, then kill, then race."""
    yield _proved(
        _root(options), options.pick(1_000, 25, 10_000), options.pick(100_000, 1_000, 1_000_000)
    )
    yield _killed(_root(options), options.pick(40, 4, 100), random.Random(options.seed))
    yield from _raced(options)


def _root(options: Options) -> str:
    root = tempfile.mkdtemp(prefix="departments-", dir=options.scratch)
    os.makedirs(os.path.join(root, FOLDER))
    return root


# --- nothing is lost, nothing is torn ---


def _proved(root: str, each: int, reads: int) -> Table:
    _declare(root, 0)
    before = _status(root)["seq"]
    workers = [_Worker("writer", root, each) for _ in range(WRITERS)]
    workers += [_Worker("reader", root, reads // READERS) for _ in range(READERS)]
    took_s, said = _go(workers)
    readers = [json.loads(one) for one in said[WRITERS:]]
    counted = _status(root)["seq"] - before
    seen = {
        key: sum(one[key] for one in readers) for key in ("reads", "partial", "backwards", "values")
    }
    if counted != WRITERS * each or seen["partial"] or seen["backwards"]:
        raise RuntimeError(f"{counted} of {WRITERS * each} updates are there; readers: {seen}")
    rows = (
        ("updates there", f"{counted:,} of {WRITERS * each:,}"),
        ("reads meanwhile", f"{seen['reads']:,}, of {seen['values']:,} different values"),
        ("partial reads", str(seen["partial"])),
        ("reads of an older number than the one before", str(seen["backwards"])),
        ("files left beside status and lock", str(len(_left(root)))),
    )
    notes = (f"{WRITERS} processes that write, {READERS} that read, {took_s:.0f} s",)
    return Table("Department status: proof", ("", "found"), rows, notes)


# --- killed writers ---


def _killed(root: str, kills: int, rng: random.Random) -> Table:
    """Kill writers at random moments; each said after every update that it was made."""
    workers = [_started(root) for _ in range(WRITERS)]
    acknowledged = orphans = 0
    for _ in range(kills):
        time.sleep(rng.uniform(0, 0.02))
        at = rng.randrange(WRITERS)
        acknowledged += len(workers[at].killed())
        orphans += any(f".{workers[at].pid}." in name for name in _left(root))
        workers[at] = _started(root)
    acknowledged += sum(len(worker.killed()) for worker in workers)
    _declare(root, 0)
    made = _status(root)["seq"] - 1
    if not acknowledged <= made <= acknowledged + kills + WRITERS or _left(root):
        raise RuntimeError(f"{made} updates, {acknowledged} acknowledged, left: {_left(root)}")
    rows = (
        ("writers killed", f"{kills + WRITERS:,}"),
        ("updates acknowledged, all there", f"{acknowledged:,}"),
        ("updates that the kill only kept from being acknowledged", f"{made - acknowledged:,}"),
        ("kills after which a temporary file was seen", f"{orphans:,}"),
        ("temporary files after the next update", str(len(_left(root)))),
    )
    return Table("Department status: killed writers", ("", "found"), rows)


def _started(root: str) -> _Worker:
    worker = _Worker("endless", root, 0)
    worker.go()
    return worker


# --- how fast ---


def _raced(options: Options) -> Iterator[Table]:
    ways = {OURS: ("writer", options.pick(4_000, 16))}
    if shutil.which("jq") and shutil.which("flock"):
        ways[THEIRS] = ("script", options.pick(160, 8))
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.pick(5, 1)):
        for name, (how, changes) in ways.items():
            rates[name].append(_rate(_root(options), how, changes))
    rows = tuple(
        (
            name,
            rate(median(found)),
            times(_ratio(found, rates)),
            f"{rate(min(found))} to {rate(max(found))}",
        )
        for name, found in rates.items()
    )
    notes = ("ratio: median of the ratios of neighbouring rounds",) if THEIRS in rates else ABSENT
    columns = ("updates/s", "median", "x script", "range")
    absent = () if THEIRS in rates else ABSENT
    yield Table(f"Department status: {WRITERS} processes", columns, rows, notes, absent=absent)
    if THEIRS in rates:
        yield goal_table(
            "Goals: departments",
            [_goal(rates)],
        )


def _goal(rates: dict[str, list[float]]) -> Goal:
    return Goal(
        "declare / script, 8 processes",
        _ratio(rates[OURS], rates),
        30,
        at_least=True,
        aim=Aim.STATUS,
        spread=middle_half(ratios(rates[OURS], rates[THEIRS])),
        beside=f"{rate(median(rates[THEIRS]))}/s",
    )


def _ratio(found: list[float], rates: dict[str, list[float]]) -> float:
    base = rates.get(THEIRS, rates[OURS])
    return median(ratios(found, base))


def _rate(root: str, how: str, changes: int) -> float:
    each = changes // WRITERS
    taken_s, _ = _go([_Worker(how, root, each) for _ in range(WRITERS)])
    return each * WRITERS / taken_s


# --- processes ---


class _Worker:
    """A process that is ready to begin."""

    def __init__(self, how: str, root: str, count: int) -> None:
        command = [sys.executable, "-m", "bench.departments", how, root, str(count)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        cast("IO[str]", self._process.stdout).readline()

    @property
    def pid(self) -> int:
        """Its process id, which its temporary files are named after."""
        return self._process.pid

    def go(self) -> None:
        """Let it begin."""
        pipe = cast("IO[str]", self._process.stdin)
        pipe.write("go\n")
        pipe.flush()

    def killed(self) -> str:
        """Kill it and return what it said."""
        self._process.kill()
        return self._process.communicate()[0]

    def ended(self) -> str:
        """Wait for its end and return what it said."""
        said = self._process.communicate()[0]
        if self._process.returncode:
            raise RuntimeError(f"a worker ended with {self._process.returncode}")
        return said


def _go(workers: list[_Worker]) -> tuple[float, list[str]]:
    """Let them work; return how long the slowest took, and what each said."""
    began = time.perf_counter()
    for worker in workers:
        worker.go()
    said = [worker.ended() for worker in workers]
    return time.perf_counter() - began, said


def _left(root: str) -> list[str]:
    """Return what lies beside the status and its lock."""
    return sorted(set(os.listdir(os.path.join(root, FOLDER))) - {STATUS, ".dept-lock-backend"})


def _status(root: str) -> dict[str, int]:
    with open(os.path.join(root, FOLDER, STATUS)) as file:
        return cast("dict[str, int]", json.load(file))


# --- in a process of its own ---


def _declare(root: str, number: int) -> None:
    from yolo_fs.core.ids import PhaseId
    from yolo_fs.progress.departments import Declaration, declare
    from yolo_fs.protocol.departments import Dept

    phase = PhaseId.parse(PHASE)
    assert phase is not None
    said = Declaration(
        {"status": "running", "step": "planning", "plans_complete": number, "plans_total": 10_000}
    )
    declare(root, Dept.BACKEND, phase, said)


def _write(root: str, count: int) -> None:
    for number in range(count):
        _declare(root, number)


def _write_on(root: str, _: int) -> None:
    number = 0
    while True:
        _declare(root, number)
        os.write(1, b".")
        number += 1


def _run_script(root: str, count: int) -> None:
    """Become the shell that runs the script again and again, so that nothing of Python is measured
    with it.
    """
    what = ["--dept", "backend", "--phase-dir", os.path.join(root, FOLDER), "--action", "write"]
    what += [
        "--status",
        "running",
        "--step",
        "planning",
        "--plans-total",
        "10000",
        "--plans-complete",
    ]
    loop = 'for ((i = 0; i < $1; i++)); do bash "${@:2}" "$i" || exit 1; done'
    os.execvp("bash", ["bash", "-c", loop, "loop", str(count), SCRIPT, *what])


def _read(root: str, count: int) -> None:
    """Read as a script does, without a lock and with nothing of ours."""
    path, last = os.path.join(root, FOLDER, STATUS), 0
    found = {"reads": count, "partial": 0, "backwards": 0, "values": 0}
    for _ in range(count):
        with open(path, "rb") as file:
            data = file.read()
        try:
            number = json.loads(data)["seq"]
        except (ValueError, KeyError):
            found["partial"] += 1
            continue
        found["backwards"] += number < last
        found["values"] += number != last
        last = number
    print(json.dumps(found))


WORK = {"writer": _write, "endless": _write_on, "script": _run_script, "reader": _read}


def _work(how: str, root: str, count: int) -> None:
    import filelock

    from yolo_fs.progress import departments

    assert departments and filelock, "imported before the clock starts"
    print("ready", flush=True)
    sys.stdin.readline()
    WORK[how](root, count)


if __name__ == "__main__":
    _work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
