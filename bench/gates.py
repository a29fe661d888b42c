"""`gate wait` in a hundred processes: how long after the opening commit each of them is awake.

The commit counts from the moment when the branch moved, by the kernel's clock; a waiter is awake
when it knows that the gate is open and would print it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime

from bench import daemon, repositories
from bench.options import Options
from bench.repositories import BRANCH, git, put
from bench.rounds import Sample
from bench.table import Goal, Table, goal_table, ms
from yolo_fs.system.ask import COLD, answers
from yolo_fs.system.warm_path import own_folder

GATE = "ux-complete"
CONFIG = {"departments": {"frontend": True, "uiux": True}, "department_workflow": "parallel"}
SPEC = {
    "name": "LoginForm", "desc": "signs a user in", "states": ["idle"], "props": ["onLogin"],
    "tokens": ["color-primary"], "a11y": {"role": "form"}, "status": "ready",
}  # fmt: skip
EVIDENCE = {
    "design-handoff": {"component": "LoginForm", "status": "ready"},
    "component-specs": SPEC,
    "design-tokens": {
        "cat": "color",
        "name": "color-primary",
        "val": "#3B82F6",
        "sem": "main action",
    },
}
"""Kind → line; the last one opens the gate."""
OPENING = "design-tokens"
STARTED_AT_ONCE = 8
"""Waiters that take their first look at the same time: it costs half a second of computing each."""
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class _Round:
    """One opening commit and those who waited for it."""

    awake: Sample
    """From the commit until each waiter was awake."""
    ended_s: float
    """From the commit until the last waiter's process was gone."""
    memory_mb: float
    """Of all waiters together while they sleep, shared pages counted once."""


def run(options: Options) -> Iterator[Table]:
    """Measure with a daemon, whose observer looks for all who wait, then without one."""
    size, _ = repositories.sizes(options)
    waiters = options.pick(20, 4, 100)
    with ExitStack() as stack:
        root = _team(repositories.copy(size, options))
        said = stack.enter_context(_observed(root))
        rounds = [
            _measure(root, number, waiters, lambda: _by_daemon(root, said))
            for number in range(options.pick(2, 1, 3))
        ]
    alone = _team(repositories.copy(size, options))
    few = options.pick(4, 2, 8)
    by_hand = [
        _measure(alone, number, few, lambda: _by_user(alone))
        for number in range(options.pick(2, 1))
    ]
    found = {f"{waiters} waiters, daemon": rounds, f"{few} waiters, no daemon": by_hand}
    yield _table(found)
    awake = Sample([taken for one in rounds for taken in one.awake.times_s])
    yield goal_table(
        "Goals: gates",
        [
            Goal(
                f"from the commit that opens a gate to the last of {waiters} who wait, p99 ms",
                awake.p99 * 1000,
                100,
            )
        ],
    )


@contextmanager
def _observed(root: str) -> Iterator[daemon.Daemon]:
    """Run the daemon, and wait until its observer answers."""
    cold = os.environ.pop(COLD, None)
    try:
        with daemon.running(root) as said:
            _until(lambda: answers(own_folder(root)), "no observer answers")
            yield said
    finally:
        if cold is not None:
            os.environ[COLD] = cold


def _team(root: str) -> str:
    """Make a project of three departments of it."""
    put(root, ".yolo-planning/config.json", json.dumps(CONFIG).encode())
    git(root, "add", ".yolo-planning/config.json")
    git(root, "commit", "-qm", "chore: three departments")
    return root


def _measure(
    root: str, number: int, waiters: int, commit: Callable[[], Callable[[int, str], None]]
) -> _Round:
    """Let them wait at a gate of a fresh phase, open it, and see when each of them awoke."""
    commit_one = commit()
    for kind in EVIDENCE:
        if kind != OPENING:
            commit_one(number, kind)
    asleep = _asleep(root, number, waiters)
    memory_mb = sum(_proportional_mb(one.pid) for one in asleep)
    time.sleep(1)
    commit_one(number, OPENING)
    answers = [one.communicate(timeout=TIMEOUT_S)[0] for one in asleep]
    ended_ns = time.time_ns()
    at_ns = _committed_at_ns(root)
    said = [json.loads(answer)["data"] for answer in answers]
    if any(one.returncode for one in asleep) or not all(one["open"] for one in said):
        raise RuntimeError(f"somebody did not see {GATE} open: {answers}")
    woke_ns = [1e9 * datetime.fromisoformat(one["woke_at"]).timestamp() for one in said]
    return _Round(
        Sample([(woke - at_ns) / 1e9 for woke in woke_ns]), (ended_ns - at_ns) / 1e9, memory_mb
    )


def _artifact(number: int, kind: str) -> tuple[str, bytes]:
    path = f".yolo-planning/phases/{number + 2:02}-gate/{kind}.jsonl"
    return path, json.dumps(EVIDENCE[kind]).encode() + b"\n"


def _by_daemon(root: str, said: daemon.Daemon) -> Callable[[int, str], None]:
    def commit(number: int, kind: str) -> None:
        path, data = _artifact(number, kind)
        put(root, path, data)
        while not any(
            event["event"] == "artifact.committed" and event["path"] == path
            for event in said.events()
        ):
            pass

    return commit


def _by_user(root: str) -> Callable[[int, str], None]:
    def commit(number: int, kind: str) -> None:
        path, data = _artifact(number, kind)
        put(root, path, data)
        git(root, "add", path)
        git(root, "commit", "-qm", f"docs: {kind}", "--", path)

    return commit


def _asleep(root: str, number: int, waiters: int) -> list[subprocess.Popen[bytes]]:
    """Start waiters and return them when all have looked and sleep."""
    phase = f"{number + 2:02}"
    command = [
        sys.executable,
        "-m",
        "yolo_fs",
        "gate",
        "wait",
        GATE,
        "--phase",
        phase,
        "--json",
        "-C",
        root,
    ]
    started: list[subprocess.Popen[bytes]] = []
    while len(started) < waiters:
        some = [
            subprocess.Popen(command, stdout=subprocess.PIPE)
            for _ in range(min(STARTED_AT_ONCE, waiters - len(started)))
        ]
        for one in some:
            _until(lambda: _has_looked(one), f"waiter {one.pid} does not sleep")  # noqa: B023
        started += some
    return started


def _has_looked(one: subprocess.Popen[bytes]) -> bool:
    """Return whether the process sleeps: not for git, which works for its look."""
    if one.poll() is not None:
        raise RuntimeError(f"a waiter ended: {one.communicate()[0]!r}")
    with open(f"/proc/{one.pid}/wchan") as file:
        place = file.read()
    with open(f"/proc/{one.pid}/task/{one.pid}/children") as file:
        return not file.read().split() and ("poll" in place or "nanosleep" in place)


def _until(is_so: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(0.02)


def _committed_at_ns(root: str) -> int:
    """Return when the branch moved: git renames a lock file into its place, which the inode's
    change time tells.
    """
    return os.stat(f"{root}/.git/refs/heads/{BRANCH}").st_ctime_ns


def _proportional_mb(pid: int) -> float:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def _table(found: dict[str, list[_Round]]) -> Table:
    rows = []
    for name, rounds in found.items():
        awake = Sample([taken for one in rounds for taken in one.awake.times_s])
        worst = max(max(one.awake.times_s) for one in rounds)
        ended = max(one.ended_s for one in rounds)
        memory_mb = max(one.memory_mb / len(one.awake.times_s) for one in rounds)
        times_ms = (ms(value) for value in (min(awake.times_s), awake.p50, awake.p99, worst, ended))
        rows.append((name, str(len(rounds)), *times_ms, f"{memory_mb:.1f}"))
    columns = (
        "commit to awake",
        "rounds",
        "min ms",
        "p50 ms",
        "p99 ms",
        "max ms",
        "all ended ms",
        "MB each",
    )
    notes = (
        (
            "from the move of the branch until a waiter knows that the gate is open; all "
            "rounds together, worst end"
        ),
        "MB: proportional, asleep",
    )
    return Table("Gate wait", columns, tuple(rows), notes)
