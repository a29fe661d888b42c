"""`tools/soak [MINUTES]`: the load of a day in an hour, on real daemons, with kills, and one table
at the end.

36 agents write 51,840 artifacts an hour, as many as they would in a day at one a minute each; a
user adds, stashes, commits and changes branches; other files change 278 times a second. Two thirds
of the agents work in the main work tree, whose daemon lives from the beginning to the end, so that
what it grows by can be seen; the others in a linked one, whose daemon is killed once a minute. At
the end git alone says what became of it all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import attrgetter

from bench.keeper import Keeper
from bench.ledger import START, Ledger, Verdict, committed, faults, judge, missing
from bench.load import Agent, Noise, User, Worker
from bench.meter import Look, Meter, processor_s, slope_per_hour
from bench.options import Options
from bench.repositories import copy, git, sizes
from bench.table import Goal, Table, goal_table, machine, ms, render

AGENTS = 36
AGENTS_OF_THE_KILLED = 12
ARTIFACTS_PER_HOUR = 51_840
NOISE_PER_HOUR = 1_000_000
USER_EVERY_S = 2.0
KILL_EVERY_S = 60.0
LOOK_EVERY_S = 2.0
WARM_UP = 0.3
"""Part of the time after which all paths are known, and growth counts."""
DRAIN_S = 120.0
MOST_MEMORY_MIB = 200.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, and how hard."""

    load_s: float
    kill_every_s: float = KILL_EVERY_S
    quiet_s: float = 60.0
    """How long the daemons are watched doing nothing, after the load."""
    agents: int = AGENTS
    killed: int = AGENTS_OF_THE_KILLED
    """How many of the agents work where daemons are killed."""
    seed: int = 1


@dataclass(slots=True)
class Side:
    """One work tree with its daemon."""

    name: str
    ledger: Ledger
    keeper: Keeper
    meter: Meter
    idle_percent: float = 0.0
    said_last: str = ""
    """What the board says at the end; told beside the verdict, and no part of it."""

    @property
    def root(self) -> str:
        """The work tree."""
        return self.keeper.root

    def is_drained(self) -> bool:
        """Whether the branch has all that was written."""
        return judge(self.root, self.ledger).lost == 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that is known at the end."""

    sides: tuple[Side, ...]
    verdicts: tuple[Verdict, ...]
    faults: Sequence[str]
    workers: Sequence[Worker]
    load_s: float

    @property
    def is_sound(self) -> bool:
        """Whether nothing was lost, nothing was committed twice, and git finds nothing broken."""
        return not self.faults and not any(
            one.lost or one.twice or one.foreign for one in self.verdicts
        )


def soak(options: Options, plan: Plan) -> Outcome:
    """Run the whole and return what came out.

    Raises:
        RuntimeError: no daemon was killed, so that the run proves too little.
    """
    sides = _sides(options)
    workers = list(_workers(sides, plan))
    with ExitStack() as stack:
        for side in sides:
            side.keeper.start()
            stack.callback(side.keeper.stop)
        began = time.monotonic()
        for worker in workers:
            worker.start()
            stack.callback(worker.stop)
        _watch(sides, plan, began)
        for worker in workers:
            worker.stop()
        load_s = time.monotonic() - began
        _until(lambda: all(side.is_drained() for side in sides), DRAIN_S)
        for side in sides:
            side.said_last = _board(side.root)
        _measure_idle(sides, plan.quiet_s)
    if not sides[1].keeper.kills:
        raise RuntimeError("no daemon was killed")
    verdicts = tuple(judge(side.root, side.ledger) for side in sides)
    return Outcome(sides, verdicts, faults(sides[0].root), workers, load_s)


def _sides(options: Options) -> tuple[Side, Side]:
    root = copy(sizes(options)[0], options)
    git(root, "config", "--unset", "gc.auto")  # a user's git keeps house, and we must bear it
    git(root, "config", "gc.autoDetach", "false")
    git(root, "tag", START)
    other = os.path.join(os.path.dirname(root), "linked")
    git(root, "worktree", "add", "-q", "-b", "linked", other)
    home = tempfile.mkdtemp(dir=options.scratch)
    os.mkdir(f"{home}/yolo-fs")
    with open(f"{home}/yolo-fs/config.json", "w") as file:
        json.dump({"policy": {"durability": "fsync"}}, file)
    first, second = (
        _side(name, place, home) for name, place in (("main tree", root), ("killed tree", other))
    )
    return first, second


def _side(name: str, root: str, home: str) -> Side:
    ledger = Ledger()
    return Side(name, ledger, Keeper(root, ledger, home), Meter())


def _workers(sides: Sequence[Side], plan: Plan) -> Iterator[Worker]:
    rng = random.Random(plan.seed)
    every_s = 3600 * AGENTS / ARTIFACTS_PER_HOUR
    for number in range(1, plan.agents + 1):
        side = sides[number > plan.agents - plan.killed]
        yield Agent(side.root, number, side.ledger, every_s, rng)
    yield Noise(sides[0].root, NOISE_PER_HOUR / 3600, rng)
    yield User(sides[0].root, USER_EVERY_S, rng)


def _watch(sides: Sequence[Side], plan: Plan, began: float) -> None:
    """Look at the daemons, and kill the second one, until the load has lasted long enough."""
    next_kill = began + plan.kill_every_s
    while (now := time.monotonic()) < began + plan.load_s:
        for side in sides:
            side.meter.look(side.keeper.pid)
        if now >= next_kill:
            sides[1].keeper.kill()
            next_kill += plan.kill_every_s
        time.sleep(min(LOOK_EVERY_S, plan.load_s / 10))


def _board(root: str) -> str:
    """Return what stands in the way of commits, and how many artifacts stand how."""
    said = subprocess.run(
        [sys.executable, "-m", "yolo_fs", "status", "--json", "-C", root],
        capture_output=True,
        text=True,
        check=False,
    )
    data = json.loads(said.stdout)["data"]
    counts = ", ".join(f"{count} {standing}" for standing, count in data["counts"].items() if count)
    return f"{data['obstacle'] or 'no obstacle'}; {counts}"


def _measure_idle(sides: Sequence[Side], quiet_s: float) -> None:
    time.sleep(min(5.0, quiet_s))
    before = [processor_s(side.keeper.pid) for side in sides]
    time.sleep(quiet_s)
    for side, was in zip(sides, before, strict=True):
        side.idle_percent = 100 * (processor_s(side.keeper.pid) - was) / quiet_s


def _until(is_so: Callable[[], bool], at_most_s: float) -> None:
    deadline = time.monotonic() + at_most_s
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.5)


# --- the table ---


def table(outcome: Outcome) -> Table:
    """Return the outcome, a column for each work tree."""
    rows = (
        _row("artifacts written", outcome, lambda side, _: f"{len(side.ledger.written):,}"),
        _row("committed", outcome, lambda _, verdict: f"{verdict.commits:,}"),
        _row("lost", outcome, lambda _, verdict: str(verdict.lost)),
        _row("twice", outcome, lambda _, verdict: str(verdict.twice)),
        _row("of nobody", outcome, lambda _, verdict: str(verdict.foreign)),
        _row("gone from the work tree", outcome, lambda _, verdict: str(verdict.gone)),
        _row("daemons killed", outcome, lambda side, _: str(side.keeper.kills)),
        *(
            _latency(outcome, name, part)
            for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("worst", 1))
        ),
        _ends(outcome, "memory, first and last MiB", lambda look: look.memory_mib),
        _ends(outcome, "memory of its observer, MiB", lambda look: look.below_mib),
        _ends(outcome, "descriptors, first and last", lambda look: look.descriptors),
        _ends(outcome, "threads, first and last", lambda look: look.threads),
        _growth(outcome, "memory, MiB more in an hour", lambda look: look.memory_mib),
        _growth(outcome, "memory of its observer, MiB more", lambda look: look.below_mib),
        _growth(outcome, "descriptors more in an hour", lambda look: look.descriptors),
        _growth(outcome, "threads more in an hour", lambda look: look.threads),
        _growth(outcome, "children more in an hour", lambda look: look.children),
        _row("idle processor %", outcome, lambda side, _: f"{side.idle_percent:.2f}"),
    )
    user, noise = outcome.workers[-1], outcome.workers[-2]
    refused, conflicts = (user.refused, user.conflicts) if isinstance(user, User) else (0, 0)
    notes = (
        (
            f"{outcome.load_s / 60:.1f} minutes of load; growth is the least-squares slope "
            f"after the first {WARM_UP:.0%}."
        ),
        (
            f"{noise.done:,} changes of files that are no artifacts; {user.done:,} commands of "
            f"a user, {refused} refused."
        ),
        (
            f"{conflicts} stashes came back with a conflict in an artifact, which holds all "
            "commits until it is resolved."
        ),
        (
            f"git fsck: {'; '.join(outcome.faults) or 'nothing'}. Commits are synced to the "
            "disk before they are reported."
        ),
        (
            "Latency is from the close of a file to the report, the daemon's start-up after a "
            "kill with it."
        ),
        *(f"{side.name}, status at the end: {side.said_last}." for side in outcome.sides),
    )
    return Table("Soak", ("", *(side.name for side in outcome.sides)), rows, notes)


def _row(name: str, outcome: Outcome, show: Callable[[Side, Verdict], str]) -> tuple[str, ...]:
    both = zip(outcome.sides, outcome.verdicts, strict=True)
    return (name, *(show(side, verdict) for side, verdict in both))


def _latency(outcome: Outcome, name: str, part: float) -> tuple[str, ...]:
    return _row(
        f"write to commit, {name} ms",
        outcome,
        lambda side, _: ms(side.ledger.latencies.quantile(part)),
    )


def _ends(outcome: Outcome, name: str, of: Callable[[Look], float]) -> tuple[str, ...]:
    settled = [side.meter.settled(WARM_UP) for side in outcome.sides]
    return (name, *(f"{of(all_[0]):.0f} → {of(all_[-1]):.0f}" if all_ else "–" for all_ in settled))


def _growth(outcome: Outcome, name: str, of: Callable[[Look], float]) -> tuple[str, ...]:
    """Return the slopes; a daemon that is killed each minute has none of its own."""
    slope = slope_per_hour(outcome.sides[0].meter.settled(WARM_UP), of)
    return (name, f"{slope:+.2f}", "–")


def goals(outcome: Outcome) -> Table:
    """Return what was aimed at beside what came out, for the daemon that lived."""
    main = outcome.sides[0]
    looks = main.meter.settled(WARM_UP)
    return goal_table(
        "Soak: goals",
        (
            Goal("lost", sum(one.lost for one in outcome.verdicts), 0),
            Goal("twice", sum(one.twice for one in outcome.verdicts), 0),
            Goal("write to commit, p95 s", main.ledger.latencies.quantile(0.95), 1),
            Goal("idle processor %", main.idle_percent, 1),
            Goal(
                "most memory MiB",
                max((look.memory_mib for look in main.meter.looks), default=0),
                MOST_MEMORY_MIB,
            ),
            *(
                Goal(f"{name} more in an hour", slope_per_hour(looks, attrgetter(name)), 1)
                for name in ("descriptors", "threads")
            ),
        ),
    )


def main() -> int:
    """Run the command line; 1 when something was lost, came twice or is broken."""
    parser = argparse.ArgumentParser(
        "tools/soak", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "minutes", nargs="?", type=float, default=60.0, metavar="MINUTES", help="default: 60"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the moments at which agents begin (default: 1)"
    )
    parser.add_argument("--place", default=os.path.join(tempfile.gettempdir(), "yolo-fs-bench"), metavar="DIR",
                        help="where repositories are made (default: %(default)s)")  # fmt: skip
    given = parser.parse_args()
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # the daemons are stopped whatever ends us
    place = os.path.abspath(given.place)
    os.makedirs(f"{place}/home", exist_ok=True)
    os.environ["HOME"] = f"{place}/home"  # git, and what is measured, obey the user's configuration
    print(f"{machine(place)}, seed {given.seed}\n", flush=True)
    scratch = tempfile.mkdtemp(prefix="scratch-", dir=place)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, scratch)
        outcome = soak(
            Options(place, scratch, seed=given.seed), Plan(60 * given.minutes, seed=given.seed)
        )
        print(render(table(outcome)))
        print(render(goals(outcome)))
        if outcome.is_sound:
            return 0
        stack.pop_all()
    for side in outcome.sides:
        for path, blob in missing(committed(side.root), side.ledger):
            print(f"not on the branch: {blob} {path}")
    print(f"what it ran in is kept: {scratch}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
