"""What a command takes by the observer beside the daemon, and by itself, beside a bare interpreter and beside what it
imports of others.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

from bench import repositories
from bench.daemon import process
from bench.options import Options
from bench.rounds import Sample, Way, interleave, time_goal
from bench.table import Goal, Table, goal_table, ms, times
from yolo_fs.git.repository import Repository
from yolo_fs.system.ask import COLD, answers

PASS = "python -I -S -c pass"
ARTIFACT = ".yolo-planning/phases/01-bench/01-00.summary.jsonl"
COMMANDS = (
    "status",
    "resume",
    "gate why all-depts --phase 1",
    "may dev decide architecture",
    f"validate {ARTIFACT}",
)
AT_ONCE = 20
HOOKS = {"hook, planning tree": ARTIFACT, "hook, elsewhere": "src/a.ts"}
_START_S = 60


def run(options: Options) -> Iterator[Table]:
    """Measure commands beside a daemon, warm and cold in the same rounds."""
    small, _ = repositories.sizes(options)
    root = repositories.copy(small, options)
    with warm(root):
        samples = interleave(list(_ways(root)), options.pick(15, 1))
        crowd = _crowd(root, options.pick(10, 1))
    yield _table(samples)
    base = samples[PASS]
    goals = [
        time_goal(f"{name}, beside a daemon", samples[f"{name}, warm"], 100, base)
        for name in (*COMMANDS, *HOOKS)
    ]
    goals += [
        time_goal(f"{name}, no daemon", samples[f"{name}, cold"], 500, samples[_floor(name)])
        for name in COMMANDS
    ]
    goals += [
        Goal(
            f"{name}, {AT_ONCE} at once, p99 ms",
            crowd[name].p99 * 1000,
            1000,
            spread=crowd[name].spread,
            beside=f"bare interpreters {ms(crowd[PASS].p99)} ms",
        )
        for name in COMMANDS
    ]
    yield goal_table("Goals: warm", goals)


@contextlib.contextmanager
def warm(*roots: str) -> Iterator[None]:
    """Let daemons run, each with its observer, which answers."""
    kept = os.environ.pop(COLD, None)
    try:
        with contextlib.ExitStack() as daemons:
            for root in roots:
                daemons.enter_context(process(root))
                _wait(root)
            yield
    finally:
        if kept is not None:
            os.environ[COLD] = kept


def _wait(root: str) -> None:
    with Repository(root) as repository:
        deadline = time.monotonic() + _START_S
        while not answers(repository.own_dir):
            if time.monotonic() > deadline:
                raise TimeoutError("the observer does not answer")
            time.sleep(0.05)


def _ways(root: str) -> Iterator[Way]:
    yield Way(PASS, lambda _: call([sys.executable, "-I", "-S", "-c", "pass"], root, cold=True))
    for name in COMMANDS:
        yield _without_ours(name, root)
    for heat in ("warm", "cold"):
        for name in COMMANDS:
            yield _way(f"{name}, {heat}", name.split(), root, b"")
        for name, path in HOOKS.items():
            edit = {"tool_name": "Write", "tool_input": {"file_path": path}, "cwd": root}
            yield _way(f"{name}, {heat}", ["hook", "pre-tool-use"], root, json.dumps(edit).encode())


def _without_ours(name: str, root: str) -> Way:
    imported = "; ".join(f"import {module}" for module in _others(name.split(), root))
    command = [sys.executable, "-c", imported]
    return Way(_floor(name), lambda _: subprocess.run(command, cwd=root, check=True))


def _floor(name: str) -> str:
    return f"{name}, cold, what it imports of others"


def _others(arguments: list[str], root: str) -> list[str]:
    """Return the modules of others that a command imports: what is left of it without ours."""
    for _ in range(2):  # the second finds what the first has kept, as those that are timed do
        told = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "yolo_fs", *arguments], cwd=root, env={**os.environ, COLD: "1"},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
        ).stderr  # fmt: skip
    names = (line.rpartition("|")[2].strip() for line in told.splitlines()[1:])
    return [name for name in names if _is_of_others(name.partition(".")[0])]


def _is_of_others(package: str) -> bool:
    return package.isidentifier() and package != "yolo_fs" and find_spec(package) is not None


def _crowd(root: str, rounds: int) -> dict[str, Sample]:
    """Start each command many times at once; bare interpreters in the same rounds."""
    ways = {PASS: [sys.executable, "-I", "-S", "-c", "pass"]}
    ways |= {name: [*program(), *name.split()] for name in COMMANDS}
    samples = {name: Sample() for name in ways}

    def timed(command: list[str]) -> float:
        began = time.perf_counter()
        call(command, root)
        return time.perf_counter() - began

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(rounds):
            for name, command in ways.items():
                samples[name].times_s += pool.map(timed, [command] * AT_ONCE)
    return samples


def _way(name: str, arguments: list[str], root: str, given: bytes) -> Way:
    return Way(
        name, lambda _: call([*program(), *arguments], root, given, cold=name.endswith("cold"))
    )


def program() -> list[str]:
    """Return the words that our command begins with."""
    beside = os.path.join(os.path.dirname(sys.executable), "yolo-fs")
    return [beside] if os.path.exists(beside) else [sys.executable, "-m", "yolo_fs"]


def call(command: list[str], root: str, given: bytes = b"", *, cold: bool = False) -> None:
    """Run a command to its end, whatever that is."""
    environment = {**os.environ, **({COLD: "1"} if cold else {})}
    subprocess.run(
        command, cwd=root, input=given, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip


def _table(samples: dict[str, Sample]) -> Table:
    base = samples[PASS].p50
    rows = tuple(
        (name, ms(one.p50), times(one.p50 / base), one.spread) for name, one in samples.items()
    )
    return Table(
        "Warm and cold",
        ("", "p50 ms", "x pass", "spread"),
        rows,
        (f"{len(samples[PASS].times_s)} interleaved rounds",),
    )
