"""What an observer that is killed or frozen, and an index that is damaged, cost those who write and
those who ask: nothing but a cold answer.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from bench import repositories
from bench.keeper import Keeper
from bench.ledger import START, Ledger, judge
from bench.load import Agent
from bench.meter import descendants
from bench.options import Options
from bench.rounds import Sample
from bench.table import Goal, Table, goal_table, ms
from yolo_fs.system.ask import COLD, answers

AGENTS = 20
WRITES_PER_S = 12.0
"""Of all agents together."""
ROUNDS = 4
"""Each with and without harm, in turn."""
OF_OBSERVER = b"yolo_fs.observer"
RIGHT_S = 2.0
"""Within which a command has its right answer, whoever gives it."""
DRAIN_S = 60.0
QUESTIONS = (
    ("may", "yolo-dev", "write", "src/a.ts", "--json"),
    ("gate", "list", "--phase", "1", "--json"),
    ("schema", "list", "--json"),
)
"""Questions whose answers do not follow from what the agents write."""


@dataclass(slots=True)
class Asked:
    """What commands were asked, and how they answered."""

    asked: int = 0
    wrong: list[str] = field(default_factory=list)
    """Answers that are not those from before."""
    took: Sample = field(default_factory=Sample)
    """How long each command took."""


@dataclass(slots=True)
class Harmed(Asked):
    """What was done, and what came of it."""

    kills: int = 0
    freezes: int = 0
    damages: int = 0
    unserved: int = 0
    """Kills and freezes that found no observer, since one that ends at once is started later."""


@dataclass(slots=True)
class Ground:
    """One work tree with its daemon and its agents."""

    root: str
    keeper: Keeper
    right: Sequence[tuple[int, bytes]]
    """Exit code and text of each question, before any harm."""
    calm: Asked = field(default_factory=Asked)
    harmed: Harmed = field(default_factory=Harmed)

    @property
    def own_folder(self) -> str:
        """Where our files lie."""
        return f"{self.root}/.git/yolo-fs"

    def ask(self, of: Asked) -> None:
        """Ask each question once, and compare."""
        for question, right in zip(QUESTIONS, self.right, strict=True):
            of.asked += 1
            began = time.monotonic()
            if (given := answer(self.root, question)) != right:
                of.wrong.append(f"{' '.join(question)}: {given[0]}")
            of.took.times_s.append(time.monotonic() - began)

    def observers(self) -> list[int]:
        """Return the processes of the observer, the one that takes questions first."""
        found = []
        for pid in sorted(descendants(self.keeper.pid)):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                if OF_OBSERVER in file.read():
                    found.append(pid)
        return found


def answer(root: str, question: Sequence[str]) -> tuple[int, bytes]:
    """Return exit code and text of one command, by the observer where one answers."""
    environment = {name: value for name, value in os.environ.items() if name != COLD}
    command = [sys.executable, "-m", "yolo_fs", *question, "-C", root]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    return done.returncode, done.stdout


def run(options: Options) -> Iterator[Table]:
    """Let agents write while the observer is harmed, then while the index is."""
    seconds, kills, freezes = options.pick((40.0, 40, 8), (4.0, 4, 2), (300.0, 100, 20))
    damages = options.pick(60, 4, 200)
    rng = random.Random(options.seed)
    with _ground(options) as ground:
        calm, harmed = Sample(), Sample()
        for _ in range(ROUNDS):
            part = seconds / ROUNDS
            acts = [signal.SIGKILL] * (kills // ROUNDS) + [signal.SIGSTOP] * (freezes // ROUNDS)
            every_s = part / len(acts)
            calm.times_s += _written(ground, part, rng, partial(ground.ask, ground.calm), every_s)
            rng.shuffle(acts)
            harm = partial(_harm, ground, iter(acts), rng)
            harmed.times_s += _written(ground, part, rng, harm, every_s)
        yield _observer_table(ground, calm, harmed)
        yield _observer_goals(ground, calm, harmed)
        ground.harmed.asked, ground.harmed.wrong = 0, []
        while ground.harmed.damages < damages:
            _written(ground, 5.0, rng, partial(_damage, ground, rng), 0.25)
        yield _index_table(ground)


@contextlib.contextmanager
def _ground(options: Options) -> Iterator[Ground]:
    root = repositories.copy(repositories.sizes(options)[0], options)
    repositories.git(root, "tag", START)
    home = tempfile.mkdtemp(dir=options.scratch)
    cold = os.environ.pop(COLD, None)
    try:
        keeper = Keeper(root, Ledger(), home)
        keeper.start()
        ground = Ground(root, keeper, [])
        _until(lambda: answers(ground.own_folder), DRAIN_S)
        ground.right = [answer(root, question) for question in QUESTIONS]
        try:
            yield ground
        finally:
            keeper.stop()
    finally:
        if cold is not None:
            os.environ[COLD] = cold


def _written(
    ground: Ground, seconds: float, rng: random.Random, act: Callable[[], None], every_s: float
) -> list[float]:
    """Let agents write for some seconds, act meanwhile, and return how long each commit took."""
    ledger = ground.keeper.ledger
    before = len(ledger.latencies.times_s)
    with ExitStack() as stack:
        for number in range(1, AGENTS + 1):
            agent = Agent(ground.root, number, ledger, AGENTS / WRITES_PER_S, rng)
            agent.start()
            stack.callback(agent.stop)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            due = time.monotonic() + every_s
            act()
            time.sleep(max(0.0, min(due, end) - time.monotonic()))
    _until(lambda: judge(ground.root, ledger).lost == 0, DRAIN_S)
    took = ledger.latencies.times_s[before:]
    if not took:
        raise RuntimeError(f"nothing that agents wrote in {seconds:g} s was committed")
    return took


def _harm(ground: Ground, acts: Iterator[signal.Signals], rng: random.Random) -> None:
    """Kill or freeze a process of the observer, and ask at once."""
    number = next(acts, None)
    if number is None:
        return
    processes = ground.observers()
    if not processes:
        ground.harmed.unserved += 1
    with contextlib.suppress(ProcessLookupError, IndexError):
        os.kill(rng.choice(processes), number)
        ground.harmed.kills += number is signal.SIGKILL
        ground.harmed.freezes += number is signal.SIGSTOP
    ground.ask(ground.harmed)


def _damage(ground: Ground, rng: random.Random) -> None:
    """Do something to the index that no program of ours would, and ask."""
    path = f"{ground.own_folder}/index.db"
    rng.choice((_remove, _cut, _overwrite, _of_another_version, _replace_by_text))(path, rng)
    ground.harmed.damages += 1
    ground.ask(ground.harmed)


def _remove(path: str, rng: random.Random) -> None:
    for name in rng.choice(((path,), (path, f"{path}-wal"), (f"{path}-wal", f"{path}-shm"))):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _cut(path: str, rng: random.Random) -> None:
    with contextlib.suppress(OSError):
        os.truncate(path, rng.randrange(os.path.getsize(path) + 1))


def _overwrite(path: str, rng: random.Random) -> None:
    with contextlib.suppress(OSError), open(path, "r+b") as file:
        file.seek(rng.randrange(max(1, os.path.getsize(path))))
        file.write(rng.randbytes(rng.randrange(1, 5_000)))


def _of_another_version(path: str, _: random.Random) -> None:
    with contextlib.suppress(OSError), open(path, "r+b") as file:
        file.seek(60)  # user_version, in the head of a file of SQLite
        file.write((999).to_bytes(4, "big"))


def _replace_by_text(path: str, _: random.Random) -> None:
    with open(f"{path}.other", "wb") as file:
        file.write(b"this is no database\n" * 50)
    os.replace(f"{path}.other", path)


def _until(is_so: Callable[[], bool], at_most_s: float) -> None:
    deadline = time.monotonic() + at_most_s
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)


def _observer_table(ground: Ground, calm: Sample, harmed: Sample) -> Table:
    quiet, done = ground.calm, ground.harmed
    found = judge(ground.root, ground.keeper.ledger)
    return Table(
        "Observer killed and frozen",
        ("", "left alone", "harmed"),
        (
            ("artifacts committed", f"{len(calm.times_s):,}", f"{len(harmed.times_s):,}"),
            ("write to commit, p50 ms", ms(calm.p50), ms(harmed.p50)),
            ("write to commit, p99 ms", ms(calm.p99), ms(harmed.p99)),
            ("kills", "", str(done.kills)),
            ("freezes", "", str(done.freezes)),
            ("commands asked at once", str(quiet.asked), str(done.asked)),
            ("with another answer than before", str(len(quiet.wrong)), str(len(done.wrong))),
            ("a command, p50 ms", ms(quiet.took.p50), ms(done.took.p50)),
            ("a command, longest ms", ms(max(quiet.took.times_s)), ms(max(done.took.times_s))),
            ("found no observer to harm", "", str(done.unserved)),
            ("lost, twice, of nobody", "", f"{found.lost}, {found.twice}, {found.foreign}"),
        ),
        (
            f"{AGENTS} agents write {WRITES_PER_S:g} artifacts a second; {ROUNDS} rounds of each, in turn.",
            *done.wrong[:3],
        ),
    )


def _observer_goals(ground: Ground, calm: Sample, harmed: Sample) -> Table:
    found = judge(ground.root, ground.keeper.ledger)
    return goal_table(
        "Goals: observer",
        [
            Goal("p99 beside a harmed observer / beside a whole one", harmed.p99 / calm.p99, 1.2),
            Goal("a right answer, longest s", max(ground.harmed.took.times_s), RIGHT_S),
            Goal("wrong answers", len(ground.calm.wrong) + len(ground.harmed.wrong), 0),
            Goal("lost or twice", found.lost + found.twice + found.foreign, 0),
        ],
    )


def _index_table(ground: Ground) -> Table:
    done = ground.harmed
    found = judge(ground.root, ground.keeper.ledger)
    return Table(
        "Index damaged under load",
        ("damages", "commands asked", "with another answer", "lost", "twice"),
        (
            (
                str(done.damages),
                str(done.asked),
                str(len(done.wrong)),
                str(found.lost),
                str(found.twice),
            ),
        ),
        ("removed, cut, overwritten, of another version, replaced by a text", *done.wrong[:3]),
    )
