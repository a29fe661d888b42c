"""Six faults that nobody survives today, the same for everybody: `tools/faults`.

Each trial is a repository of its own. What became of it is read from git alone: the branch, every
other commit that was made, the locks, and `git fsck`. A cell is the number of trials with each
harm.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench import peers, repositories
from bench.committing import Contender, File, Scripted, Served
from bench.options import Options
from bench.repositories import BRANCH, artifact, put, source_file
from bench.table import Goal, Table, goal_table
from bench.trial import USERS, Trial, blob_of, judge

WRITERS = 8
HIT = "hit"
"""No harm: a kill came before the branch had moved."""
OUR_PATIENCE_S = 45.0
"""Bounds a hang: longer than the daemon needs when every event is lost, and it finds by its scan
alone.
"""


# --- the faults ---


def staged(trial: Trial) -> None:
    """The user, or another agent, has something staged, something changed, and a secret lying
    about.
    """
    put(trial.root, source_file(0), b"staged by somebody else\n")
    trial.git("add", "--", source_file(0))
    put(trial.root, source_file(1), b"changed, and not meant to be committed\n")
    put(trial.root, "secret.env", b"PASSWORD=hunter2\n")
    for number in range(3):
        trial.submit(trial.file(number))
        trial.settle()


def locked(trial: Trial) -> None:
    """Somebody holds index.lock for a while."""
    lock = f"{trial.root}/.git/index.lock"
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
    trial.submit(trial.file(0))
    time.sleep(trial.hold_s)
    os.unlink(lock)
    trial.settle()


def killed(trial: Trial) -> None:
    """Whoever commits is killed at a random moment of it and begins again, until one kill came in
    time.
    """
    window_s = trial.usual_s
    for number in range(WRITERS - 1):
        if _killed_in_time(trial, trial.file(number), trial.rng.uniform(0, window_s)):
            trial.harms[HIT] += 1
            break
        window_s /= 2
    trial.submit(trial.file(WRITERS - 1))
    trial.settle()


def _killed_in_time(trial: Trial, file: File, after_s: float) -> bool:
    """Kill while a file is committed; a script is then run again.

    Tell whether the branch had not moved yet.
    """
    trial.submit(file)
    time.sleep(after_s)
    trial.contender.kill()
    in_time = bool(trial.lost())
    trial.contender.start()
    if isinstance(trial.contender, Scripted):
        trial.contender.submit(file)
    trial.settle()
    return in_time


def torn(trial: Trial) -> None:
    """A writer dies in the midst of a line; later another one writes the file whole."""
    path, data = trial.file(0)
    half = data[: trial.rng.randrange(10, len(data) - 10)]
    trial.contender.submit((path, half))
    trial.contender.settle(lambda: (path, blob_of(half)) in trial.changes(BRANCH), trial.hold_s)
    trial.submit((path, data))
    trial.settle()
    trial.harms["torn committed"] += (path, blob_of(half)) in trial.changes(BRANCH)


def rebased(trial: Trial) -> None:
    """The user is in the midst of a rebase with a conflict, resolved or not; it is ended, one way
    or the other.
    """
    _two_sides(trial)
    trial.git("rebase", "side")
    if trial.rng.random() < 0.5:
        put(trial.root, source_file(0), b"resolved\n")
        trial.git("add", "--", source_file(0))
    trial.submit(trial.file(0))
    trial.contender.settle(lambda: bool(_made(trial)), trial.hold_s)
    trial.harms["intruded"] += bool(_made(trial))
    _end_rebase(trial)
    trial.settle()


def crowded(trial: Trial) -> None:
    """Eight agents write at once."""
    trial.submit(*(trial.file(number) for number in range(WRITERS)))
    trial.settle()


FAULTS: dict[str, Callable[[Trial], None]] = {
    "others' staged files": staged,
    "index.lock held": locked,
    "SIGKILL in the midst": killed,
    "torn line": torn,
    "rebase": rebased,
    "8 writers at once": crowded,
}


def _two_sides(trial: Trial) -> None:
    trial.git("checkout", "-q", "-b", "side")
    put(trial.root, source_file(0), b"one side\n")
    trial.git("commit", "-q", "-a", "-m", f"{USERS}side")
    trial.git("checkout", "-q", BRANCH)
    put(trial.root, source_file(0), b"the other side\n")
    trial.git("commit", "-q", "-a", "-m", f"{USERS}main")


def _made(trial: Trial) -> list[list[tuple[str, str]]]:
    """Return what was committed anywhere while the user was at it."""
    return trial.commits("--all", "--reflog")


def _end_rebase(trial: Trial) -> None:
    if trial.rng.random() < 0.5:
        put(trial.root, source_file(0), b"resolved\n")
        trial.git("add", "--", source_file(0))
        trial.git("-c", "core.editor=true", "rebase", "--continue")
    if os.path.exists(f"{trial.root}/.git/rebase-merge"):
        trial.git("rebase", "--abort")


# --- the table ---


@dataclass(frozen=True, slots=True)
class _Entrant:
    """Somebody who takes part."""

    name: str
    make: Callable[[str], Contender]


def run(options: Options) -> Iterator[Table]:
    """Let everybody meet every fault, by turns."""
    trials = options.pick(10, 1, 50)
    harms: dict[tuple[str, str], Counter[str]] = {}
    hits: Counter[str] = Counter()
    entrants = entered(options)
    usual = {one.name: options.pick(_usual_s, _assumed_s)(one, options) for one in entrants}
    rng = random.Random(options.seed)
    for fault in FAULTS:
        for number in range(trials):
            seed = rng.randrange(2**32)
            for one in entrants:
                found = attempt(one, fault, options, seed, usual[one.name])
                hits[one.name] += found.pop(HIT, 0)
                harms.setdefault((one.name, fault), Counter()).update(found)
            print(f"faults: {fault}, {number + 1} of {trials}", file=sys.stderr, flush=True)
    rows = tuple(
        (one.name, *(_cell(harms[one.name, fault]) for fault in FAULTS)) for one in entrants
    )
    in_time = ", ".join(f"{one.name} {hits[one.name]}" for one in entrants)
    notes = (
        f"trials of each: {trials}, seed {options.seed}; a cell counts trials, by harm",
        (
            "intruded: a commit that holds anything but exactly one artifact, or that came "
            "while the user was at a rebase"
        ),
        f"trials with a kill that came before the branch had moved: {in_time}",
        (
            "a script is run once, as it stands in people's prompts; after a kill it is run "
            "again for the same artifact"
        ),
    )
    yield Table("Faults", ("", *FAULTS), rows, notes, absent=peers.absent(options))
    ours = sum(sum(harms[peers.OURS, fault].values()) for fault in FAULTS)
    yield goal_table("Goals: faults", [Goal("harms done by yolo-fs, all faults", ours, 0)])


def entered(options: Options) -> list[_Entrant]:
    """Return who takes part: the daemon, the scripts, and the services that are there."""
    patience_s = options.pick(3.0, 0.5, 10.0)
    present = [one for one in peers.services(options) if one.name != peers.LOOP]
    services, scripts = options.pick((present, peers.SCRIPTS), ([], peers.SCRIPTS[:1]))
    return [
        _served(peers.ours(), OUR_PATIENCE_S),
        *(_scripted(one) for one in scripts),
        *(_served(one, patience_s) for one in services),
    ]


def _served(service: peers.Service, patience_s: float) -> _Entrant:
    return _Entrant(service.name, lambda root: Served(service, root, patience_s))


def _scripted(script: peers.Script) -> _Entrant:
    return _Entrant(script.name, lambda root: Scripted(script, root))


def attempt(one: _Entrant, fault: str, options: Options, seed: int, usual_s: float) -> Counter[str]:
    """Run one trial and return its harms."""
    trial = _trial(one, options, seed)
    trial.usual_s = usual_s
    trial.contender.start()
    try:
        FAULTS[fault](trial)
    finally:
        trial.contender.stop()
    return judge(trial)


def _usual_s(one: _Entrant, options: Options) -> float:
    """Return how long one artifact takes, the second time."""
    trial = _trial(one, options, 0)
    trial.contender.start()
    for number in range(2):
        began = trial.submit(trial.file(number))
        trial.settle()
        taken_s = time.perf_counter() - began
    trial.contender.stop()
    return taken_s


def _assumed_s(_one: _Entrant, _options: Options) -> float:
    return 0.02


def _trial(one: _Entrant, options: Options, seed: int) -> Trial:
    size, _ = repositories.sizes(options)
    root = repositories.copy(size, options)
    repositories.git(root, "rm", "-q", *(artifact(number, "")[0] for number in range(WRITERS)))
    repositories.git(root, "commit", "-q", "-m", f"{USERS}fewer artifacts")
    tip = repositories.git(root, "rev-parse", BRANCH)
    hold_s = options.pick(1.0, 0.3, 5.0)
    return Trial(root, one.make(root), random.Random(seed), tip, hold_s=hold_s)


def _cell(harms: Counter[str]) -> str:
    return ", ".join(f"{harm} {count}" for harm, count in sorted(harms.items())) or "none"
