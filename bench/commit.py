"""One commit of one artifact: the engine beside six bare files, and beside `git commit`."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench import repositories
from bench.aims import Aim
from bench.engine import Engine
from bench.floor import OBJECT_BYTES, Floor
from bench.options import Options
from bench.repositories import artifact, git, put
from bench.rounds import WARM_UP, Sample, Way, cost_goal, interleave
from bench.table import Goal, Table, goal_table, ms, times

FLOOR = "floor: 6 files, ref, reflog"
FLOOR_SYNCED = "floor, each file synced"
FLOOR_NAMES_SYNCED = "floor, files and folders synced"
ENGINE = "engine"
ENGINE_DURABLE = "engine, durable"
ENGINE_SHARED = "engine, durable, git commits between"
ONLY = "git commit --only"
ADD = "git add, git commit"
REST = "HEAD is read, trees are built, locks are looked for"
WHOLE = "the whole"


@dataclass(frozen=True, slots=True)
class _Conduct:
    """What a way did to the user's index."""

    clean: str
    leaks: str


def run(options: Options) -> Iterator[Table]:
    """Measure in both repositories."""
    samples: dict[str, dict[str, Sample]] = {}
    for size in repositories.sizes(options):
        bench = _Bench(repositories.copy(size, options))
        rounds = options.pick(150, 2)
        samples[size.name] = interleave(bench.ways, rounds)
        bench.verify(rounds + WARM_UP)
        yield _table(size.name, samples[size.name], bench.conduct())
        yield _parts_table(size.name, bench.parts(rounds))
        bench.close()
    yield goal_table("Goals: one commit", _goals(samples["small"], samples["large"]))


class _Bench:
    """All ways in one repository: the engine on branches of its own, git and a second engine on the
    user's.
    """

    def __init__(self, root: str):
        self._root = root
        self._shared = Engine(root, durable=True)
        self._engines = [
            self._engine("quick", durable=False),
            self._engine("durable", durable=True),
        ]
        self._stored = repositories.stored_objects(root)
        floors = f"{root}/.git/bench"
        quick, durable = self._engines
        self._own = (
            Way(ENGINE_SHARED, self._by_shared_engine, before=self._put(2), after=self._follow),
            Way(ONLY, self._by_only, before=self._put(3)),
            Way(ADD, self._by_add, before=self._put(4)),
        )
        self.ways = (
            Way(FLOOR, Floor(f"{floors}/0").commit),
            Way(FLOOR_SYNCED, Floor(f"{floors}/1", files_synced=True).commit),
            Way(
                FLOOR_NAMES_SYNCED,
                Floor(f"{floors}/2", files_synced=True, folders_synced=True).commit,
            ),
            Way(ENGINE, lambda round_: quick.commit(_content(0, round_))),
            Way(ENGINE_DURABLE, lambda round_: durable.commit(_content(1, round_))),
            *self._own,
        )

    def verify(self, rounds: int) -> None:
        """Prove that each commit wrote objects of its own: what another way has stored already
        costs nothing.
        """
        made = repositories.stored_objects(self._root) - self._stored
        committing = len(self._engines) + len(self._own)
        if made != rounds * committing * len(OBJECT_BYTES):
            raise RuntimeError(f"{made} objects were written by {rounds * committing} commits")

    def conduct(self) -> dict[str, _Conduct]:
        """Try each way that works on the user's branch once more, with something of the user's
        staged.
        """
        found = {
            way.name: self._conduct_of(way, 10_000 + number) for number, way in enumerate(self._own)
        }
        return found | {ENGINE_DURABLE: found[ENGINE_SHARED], ENGINE: found[ENGINE_SHARED]}

    def parts(self, rounds: int) -> dict[str, Sample]:
        """Time the parts of a commit that is not synced."""
        engine = self._engines[0]
        timers = [_Timer(*part) for part in _parts(engine)]
        wholes = []
        for round_ in range(rounds):
            began = time.perf_counter()
            engine.commit(_content(5, round_))
            wholes.append(time.perf_counter() - began)
        found = {timer.name: timer.times_s for timer in timers}
        rest = [whole - sum(each) for whole, *each in zip(wholes, *found.values(), strict=True)]
        return {
            name: Sample(times_s) for name, times_s in {**found, REST: rest, WHOLE: wholes}.items()
        }

    def close(self) -> None:
        for engine in (self._shared, *self._engines):
            engine.close()

    def _engine(self, name: str, *, durable: bool) -> Engine:
        place = f"{os.path.dirname(self._root)}/{name}"
        git(self._root, "worktree", "add", "-q", "--no-checkout", "-b", name, place)
        git(place, "read-tree", "HEAD")  # what git's own commits have to write as well
        return Engine(place, durable=durable)

    def _put(self, number: int) -> Callable[[int], None]:
        return lambda round_: put(self._root, *_content(number, round_))

    def _by_shared_engine(self, round_: int) -> None:
        self._shared.commit(_content(2, round_))

    def _follow(self, _round: int) -> None:
        assert self._shared.follower.follow()

    def _by_only(self, round_: int) -> None:
        _run(
            self._root,
            "commit",
            "-q",
            "--only",
            "-m",
            "docs(01): summary",
            "--",
            _content(3, round_)[0],
        )

    def _by_add(self, round_: int) -> None:
        _run(self._root, "add", "--", _content(4, round_)[0])
        _run(self._root, "commit", "-q", "-m", "docs(01): summary")

    def _conduct_of(self, way: Way, round_: int) -> _Conduct:
        users = repositories.source_file(0)
        put(self._root, users, b"staged by the user in round %d\n" % round_)
        git(self._root, "add", "--", users)
        way.before(round_)
        way.once(round_)
        at_once = self._staged() - {users}
        way.after(round_)
        staged = self._staged()
        clean = "NO" if staged - {users} else "after the refresh" if at_once else "yes"
        return _Conduct(clean, "no" if users in staged else "YES")

    def _staged(self) -> set[str]:
        return set(git(self._root, "diff", "--cached", "--name-only").splitlines())


class _Timer:
    """Stands before a method of one object, and notes how long each call takes."""

    def __init__(self, name: str, of: object, method: str):
        self.name = name
        self.times_s: list[float] = []
        self._call = getattr(of, method)
        setattr(of, method, self)

    def __call__(self, *arguments: object, **named: object) -> object:
        began = time.perf_counter()
        try:
            return self._call(*arguments, **named)
        finally:
            self.times_s.append(time.perf_counter() - began)


def _parts(engine: Engine) -> tuple[tuple[str, object, str], ...]:
    return (
        ("what the index has to follow is noted", engine.follower, "expect"),
        ("six objects are written", engine.repository.objects, "begin_to_write"),
        ("the index is written, git moves and logs the branch", engine.branches, "move"),
    )


def _content(number: int, round_: int) -> tuple[str, bytes]:
    return artifact(number, f"round {round_}")


def _run(root: str, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, *arguments], check=True, stdout=subprocess.DEVNULL)


def _table(size: str, samples: dict[str, Sample], conduct: dict[str, _Conduct]) -> Table:
    floor, synced = samples[FLOOR].p50, samples[FLOOR_SYNCED].p50
    rows = tuple(
        (
            name,
            ms(sample.quantile(0.25)),
            ms(sample.p50),
            ms(sample.p99),
            times(sample.p50 / floor),
            times(sample.p50 / synced),
            sample.spread,
            conduct[name].clean if name in conduct else "-",
            conduct[name].leaks if name in conduct else "-",
        )
        for name, sample in samples.items()
    )
    columns = (
        "one commit",
        "p25 ms",
        "p50 ms",
        "p99 ms",
        "x floor",
        "x synced floor",
        "spread",
        "index clean",
        "takes staged",
    )
    count = len(samples[FLOOR].times_s)
    return Table(
        f"Commit, {size} repository",
        columns,
        rows,
        (
            f"{count} interleaved rounds, one commit of 500 bytes each; the ratios are of medians.",
            (
                "git's own commits are not synced; 'takes staged': it commits what the user "
                "had staged elsewhere."
            ),
        ),
    )


def _parts_table(size: str, parts: dict[str, Sample]) -> Table:
    whole = parts[WHOLE].p50
    rows = tuple(
        (name, ms(sample.p50), f"{sample.p50 / whole:.0%}") for name, sample in parts.items()
    )
    return Table(
        f"Parts of a commit, {size} repository",
        ("part", "p50 ms", "share"),
        rows,
        ("engine, not synced",),
    )


def _goals(small: dict[str, Sample], large: dict[str, Sample]) -> list[Goal]:
    both = (("small", small), ("large", large))
    return [
        *(
            cost_goal(f"{ENGINE} / floor, {name}", found[ENGINE], found[FLOOR], 4, Aim.COMMIT)
            for name, found in both
        ),
        *(
            cost_goal(
                f"{ENGINE_DURABLE} / synced floor, {name}",
                found[ENGINE_DURABLE],
                found[FLOOR_SYNCED],
                2,
                Aim.DURABLE,
            )
            for name, found in both
        ),
        *(
            cost_goal(f"{name}, large / small", large[name], small[name], 2, Aim.SIZE)
            for name in (ENGINE, ENGINE_DURABLE)
        ),
    ]
