"""From the end of a write to its commit, twelve times a second, beside a user who commits."""

from __future__ import annotations

import random
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack

from bench import daemon, repositories
from bench.options import Options
from bench.repositories import artifact, git, put
from bench.rounds import Sample
from bench.table import Goal, Table, goal_table, ms

PER_S = 12
USER_EVERY_S = 5.0
OWN = "src/mine.txt"
TIMEOUT_S = 30.0


def run(options: Options) -> Iterator[Table]:
    """Measure in the small repository, in the configuration as shipped."""
    small, _ = repositories.sizes(options)
    root = repositories.copy(small, options)
    put(root, OWN, b"begun\n")
    git(root, "add", "--", OWN)
    git(root, "commit", "-q", "-m", "chore(01-01): begin", "--", OWN)
    with ExitStack() as stack:
        said = stack.enter_context(daemon.running(root))
        sample, acts, refused = _measure(root, said, options)
    yield Table(
        "Write to commit beside a committing user",
        ("", "p50 ms", "p95 ms", "p99 ms", "worst ms"),
        (
            (
                f"{PER_S} writes a second",
                *(ms(sample.quantile(part)) for part in (0.5, 0.95, 0.99, 1.0)),
            ),
        ),
        (
            f"{len(sample.times_s)} writes; {acts} commits of the user, one each {USER_EVERY_S:g} s, "
            f"{refused} of them refused",
        ),
    )
    yield goal_table(
        "Goals: beside a user",
        [Goal("write to commit beside a committing user, p99 ms", sample.p99 * 1000, 60)],
    )


def _measure(root: str, said: daemon.Daemon, options: Options) -> tuple[Sample, int, int]:
    """Write at even times, whether or not the last write is committed, and hear of the commits."""
    rng, sample, acts = random.Random(options.seed), Sample(), []
    writes = options.pick(150, 2) * PER_S
    began = time.perf_counter()
    due = [began + (number + rng.random()) / PER_S for number in range(writes)]
    written: dict[str, float] = {}
    next_act, number = began + USER_EVERY_S / 2, 0
    while number < writes or written:
        until = min(due[number] if number < writes else next_act, next_act)
        if select.select([said.fd], [], [], max(0.0, until - time.perf_counter()))[0]:
            now = time.perf_counter()
            for event in said.events():
                if event["event"] == "artifact.committed" and event["path"] in written:
                    sample.times_s.append(now - written.pop(event["path"]))
        now = time.perf_counter()
        if number < writes and now >= due[number]:
            path, data = artifact(1_000 + number, "beside a user")
            put(root, path, data)
            written[path] = time.perf_counter()
            number += 1
        if now >= next_act:
            acts.append(_commit(root, len(acts)))
            next_act += USER_EVERY_S
        if written and now - min(written.values()) > TIMEOUT_S:
            raise TimeoutError(f"not committed in {TIMEOUT_S} s: {sorted(written)}")
    return sample, len(acts), sum(act.wait() != 0 for act in acts)


def _commit(root: str, number: int) -> subprocess.Popen[bytes]:
    put(root, OWN, b"edited %d\n" % number)
    command = ["git", "-C", root, "commit", "-q", "-m", f"chore(01-01): edit {number}", "--", OWN]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
