"""From the end of a write to its commit, through the real daemon, beside the loops that people
write. Each contender works in a copy of its own; the writes alternate.
"""

from __future__ import annotations

import itertools
import random
import select
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from bench import daemon, peers, repositories
from bench.inotify import Inotify
from bench.options import Options
from bench.repositories import BRANCH, artifact, git, left_over, put
from bench.rounds import WARM_UP, Sample, time_goal
from bench.table import Goal, Table, goal_table, ms, times

TIMEOUT_S = 30.0
IDLE_S = (0.25, 0.35)
"""Pause before a write that finds everybody at rest."""
STREAM_S = (0.005, 0.03)
"""Pause before a write that comes while the last one is still being tidied up."""

_SERIAL = itertools.count()
"""Makes every write differ from those before: equal content is no commit."""

EVENT = "yolo-fs: event line"
MOVED = "yolo-fs: branch moved"
EVENT_UNSYNCED = "yolo-fs, not synced: event line"
MOVED_UNSYNCED = "yolo-fs, not synced: branch moved"
OWN = (EVENT, MOVED, EVENT_UNSYNCED, MOVED_UNSYNCED)


def run(options: Options) -> Iterator[Table]:
    """Measure in both repositories."""
    at_rest: dict[str, dict[str, Sample]] = {}
    for size in repositories.sizes(options):
        with ExitStack() as stack:
            contenders = _contenders(size, options, stack)
            rng = random.Random(options.seed)
            at_rest[size.name] = _alternate(
                contenders, options.pick(80, 2), rng, options.pick(IDLE_S, STREAM_S)
            )
            table = _table(
                f"Write to commit, {size.name} repository, each write alone", at_rest[size.name]
            )
            yield replace(table, absent=peers.absent(options))
            stream = _alternate(contenders[:2], options.pick(200, 3), rng, STREAM_S)
            yield _table(
                f"Write to commit, {size.name} repository, a write each 5 to 30 ms", stream
            )
    yield goal_table("Goals: write to commit", list(_goals(at_rest)))


@dataclass(frozen=True, slots=True)
class _Contender:
    """Somebody who commits what is written to a work tree."""

    root: str
    moved: str
    """What the time until the branch moves is called."""
    refs: Inotify
    event: str = ""
    """What the time until the event line is called."""
    said: daemon.Daemon | None = None

    def time(self, number: int) -> dict[str, float]:
        """Write an artifact and return the seconds until each sign of its commit."""
        path, data = artifact(number % repositories.ARTIFACTS, f"write {next(_SERIAL)}")
        list(self.refs.read())
        put(self.root, path, data)
        began = time.perf_counter()
        signs: dict[str, float] = {}
        awaited = {self.moved} | ({self.event} if self.said else set())
        while awaited - signs.keys():
            self._wait(path, signs, began)
        return signs

    def _wait(self, path: str, signs: dict[str, float], began: float) -> None:
        sources = [self.refs.fd, *([self.said.fd] if self.said else [])]
        readable, _, _ = select.select(sources, [], [], TIMEOUT_S)
        now = time.perf_counter() - began
        if not readable:
            raise TimeoutError(f"{path} was not committed in {TIMEOUT_S} s by {self.moved}")
        if self.refs.fd in readable and any(
            name.endswith(f"/{BRANCH}") for name in self.refs.read()
        ):
            signs.setdefault(self.moved, now)
        if self.said and self.said.fd in readable:
            for event in self.said.events():
                if event["event"] == "artifact.committed" and event["path"] == path:
                    signs[self.event] = now


def _contenders(size: repositories.Size, options: Options, stack: ExitStack) -> list[_Contender]:
    found = []
    for moved, event, durable in ((MOVED, EVENT, True), (MOVED_UNSYNCED, EVENT_UNSYNCED, False)):
        root = repositories.copy(size, options)
        said = stack.enter_context(daemon.running(root, durable=durable))
        found.append(_Contender(root, moved, _refs(root, stack), event, said))
    for peer in peers.services(options):
        root = repositories.copy(size, options)
        stack.enter_context(peer.run(root))
        found.append(_Contender(root, peer.name, _refs(root, stack)))
    return found


def _refs(root: str, stack: ExitStack) -> Inotify:
    watch = Inotify()
    stack.callback(watch.close)
    watch.add(f"{root}/.git/refs/heads")
    return watch


def _alternate(
    contenders: list[_Contender], rounds: int, rng: random.Random, pause_s: tuple[float, float]
) -> dict[str, Sample]:
    samples: dict[str, Sample] = {}
    for number in range(WARM_UP + rounds):
        for contender in contenders:
            time.sleep(rng.uniform(*pause_s))
            signs = contender.time(number)
            for sign, taken in signs.items() if number >= WARM_UP else ():
                samples.setdefault(sign, Sample()).times_s.append(taken)
    for contender in contenders:
        _verify(contender)
    return samples


def _verify(contender: _Contender) -> None:
    """Prove that the last commits hold one artifact each and that nothing is left over, once it is
    calm.
    """
    names = git(contender.root, "log", "-2", "--format=", "--name-only").split()
    if len(names) != 2:
        raise RuntimeError(f"two commits of {contender.moved} hold {names}")
    _until(
        lambda: not left_over(contender.root),
        f"{contender.moved} left the index behind",
    )


def _until(is_so: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(0.2)


def _table(title: str, samples: dict[str, Sample]) -> Table:
    base = samples[EVENT].p50
    rows = tuple(
        (
            name,
            ms(sample.quantile(0.25)),
            ms(sample.p50),
            ms(sample.p99),
            times(sample.p50 / base),
            sample.spread,
        )
        for name, sample in samples.items()
    )
    notes = (
        (
            f"{len(samples[EVENT].times_s)} alternating writes of 500 bytes; from the return "
            "of close()."
        ),
        (
            "yolo-fs syncs each commit to the disk before it is acknowledged, where not said "
            "otherwise; the peers never."
        ),
    )
    return Table(
        title, ("write to commit", "p25 ms", "p50 ms", "p99 ms", "x yolo-fs", "spread"), rows, notes
    )


def _goals(samples: dict[str, dict[str, Sample]]) -> Iterator[Goal]:
    for name, target_ms in (("small", 50), ("large", 250)):
        found = samples[name]
        best = min((sign for sign in found if sign not in OWN), key=lambda sign: found[sign].p50)
        times = found[EVENT]
        yield replace(
            time_goal(f"write to commit, {name} repository", times, target_ms),
            beside=f"{best}, not synced: {ms(found[best].p50)} ms",
        )
        yield Goal(f"write to commit, {name} repository, p99 ms", times.p99 * 1000, 5 * target_ms)
