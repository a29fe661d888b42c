"""A simulation of 2 to 1,000 clones that publish on one branch of a remote, from costs measured here:
where the one branch ends, and what sharding it would bring. Nothing but the costs is measured.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from bench import repositories
from bench.options import Options
from bench.repositories import git
from bench.table import Table, ms

CLONES = (2, 10, 50, 100, 250, 500, 1000)
SHARDS = (1, 4, 16)
PER_MINUTE = 1.0
"""Artifacts that each clone writes."""
ROUNDS = 8
"""Attempts of one exchange; as `team.remote_sync` has them."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds that one call to the remote takes."""

    look_s: float
    fetch_s: float
    push_s: float


@dataclass(slots=True)
class Shard:
    """One branch of the remote."""

    moves: list[float] = field(default_factory=list)
    """When it was moved."""
    pushes: int = 0
    refused: int = 0

    def moved_since(self, at: float) -> bool:
        """Return whether somebody was first since then."""
        return bool(self.moves) and self.moves[-1] > at


@dataclass(slots=True)
class Clone:
    """One clone: what waits to be published, and how far it is."""

    shard: Shard
    waiting: list[float] = field(default_factory=list)
    """When its unpublished artifacts were committed."""
    attempt: int = 0
    seen: float = -1.0
    """When it fetched the state of the branch that it builds on."""


def simulate(count: int, shards: int, costs: Costs, seconds: float, seed: int) -> tuple[float, ...]:
    """Return p50 and p90 of the seconds from a commit to its publication, the share of refused
    pushes, and the pushes per second that were taken.
    """
    rng = random.Random(seed)
    branches = [Shard() for _ in range(shards)]
    clones = [Clone(branches[number % shards]) for number in range(count)]
    waits: list[float] = []
    events: list[tuple[float, int, str, int]] = []
    order = iter(range(1_000_000_000))

    def at(when: float, what: str, clone: int) -> None:
        heapq.heappush(events, (when, next(order), what, clone))

    for number in range(count):
        at(rng.expovariate(PER_MINUTE / 60), "write", number)
    while events and events[0][0] < seconds:
        now, _, what, number = heapq.heappop(events)
        clone = clones[number]
        match what:
            case "write":
                clone.waiting.append(now)
                at(now + rng.expovariate(PER_MINUTE / 60), "write", number)
                if len(clone.waiting) == 1 and clone.attempt == 0:
                    clone.attempt = 1
                    at(now + costs.look_s + costs.fetch_s, "offer", number)
            case "offer":  # fetched a moment ago: what is offered is built on that
                clone.seen = now
                at(now + costs.push_s * rng.uniform(0.8, 1.2), "arrive", number)
            case "arrive":
                clone.shard.pushes += 1
                if clone.shard.moved_since(clone.seen):
                    clone.shard.refused += 1
                    pause = rng.uniform(0, 0.05 * 2 ** min(clone.attempt - 1, ROUNDS))
                    clone.attempt = clone.attempt % ROUNDS + 1
                    at(now + pause + costs.look_s + costs.fetch_s, "offer", number)
                else:
                    clone.shard.moves.append(now)
                    waits += [now - made for made in clone.waiting if made <= clone.seen]
                    clone.waiting = [made for made in clone.waiting if made > clone.seen]
                    clone.attempt = 1 if clone.waiting else 0
                    if clone.waiting:
                        at(now + costs.look_s + costs.fetch_s, "offer", number)
    pushes, refused = (
        sum(getattr(each, name) for each in branches) for name in ("pushes", "refused")
    )
    left = [seconds - made for clone in clones for made in clone.waiting]
    every = sorted(waits + left)
    p50, p90 = (every[int(len(every) * share)] for share in (0.5, 0.9)) if every else (0.0, 0.0)
    return p50, p90, refused / max(1, pushes), (pushes - refused) / seconds


def run(options: Options) -> Iterator[Table]:
    """Measure the costs, then simulate."""
    costs = _measured(options)
    rows = []
    for count in CLONES[: options.pick(len(CLONES), 2)]:
        for shards in SHARDS:
            seconds = options.pick(600, 120)
            p50, p90, refused, taken = simulate(count, shards, costs, seconds, options.seed)
            figures = (f"{p50:.2f}", f"{p90:.2f}", f"{refused:.0%}", f"{taken:.1f}")
            rows.append((f"{count}, {shards}", *figures))
    notes = (
        f"costs measured on this host over file://: look {ms(costs.look_s)} ms, fetch "
        f"{ms(costs.fetch_s)} ms, push {ms(costs.push_s)} ms",
        f"simulated: each clone writes {PER_MINUTE:g} artifact a minute at random, one push carries all that wait",
    )
    columns = ("clones, branches", "published after p50 s", "p90 s", "pushes refused", "pushes/s")
    yield Table("Simulation: clones that publish on one remote", columns, tuple(rows), notes)


def _measured(options: Options) -> Costs:
    """Measure one call of each kind, again and again, at a remote of this host."""
    small, _ = repositories.sizes(options)
    root = repositories.copy(small, options)
    bare = f"{root}.git"
    git(root, "clone", "-q", "--bare", root, bare)
    address, branch = f"file://{bare}", "refs/heads/yolo/team/main"
    looks, fetches, pushes = [], [], []
    for _ in range(options.pick(15, 2)):
        git(root, "commit", "-q", "--allow-empty", "-m", "chore(team): one more")
        for times, words in (
            (pushes, ("push", "-q", address, f"HEAD:{branch}")),
            (looks, ("ls-remote", address, branch)),
            (fetches, ("fetch", "-q", address, f"+{branch}:refs/bench/team")),
        ):
            began = time.perf_counter()
            git(root, *words)
            times.append(time.perf_counter() - began)
    return Costs(median(looks), median(fetches), median(pushes))
