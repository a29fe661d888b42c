"""Runs the company with a scripted agent that makes faults by a seed, and counts how each run ends.

`scripts/company --runs 300 --seed 1 --share 0.15` plays each run in a repository of its own.
A run ends shipped, at a person, or with an act given up, each with its reason. Whatever is left
behind counts: a process, a commit that `verify` refuses, an act that was done twice, a run that
hangs.

`--kept FILE` keeps each ending as a line, and plays no seed again that the file has: a campaign
that is cut off goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e import faulty_agent
from yolo_fs.protocol.departments import WORKING

LONGEST_S = 600.0
AGENT = f"{sys.executable} -P {faulty_agent.__file__}"
SILENCE = {"silent_s": 8, "deadline_s": 1}


class Trial(NamedTuple):
    """What is played in each run."""

    verb: str = "go"
    """The command that begins it."""
    departments: tuple[str, ...] = ("backend",)
    worktrees: bool = False
    """Three plans, each with a Dev in a work tree of its own."""
    share: float = 0.15
    """Part of the acts in which the agent makes a fault."""


class Ending(NamedTuple):
    """How one run ended."""

    seed: int
    outcome: str
    seconds: float
    faults: tuple[str, ...]
    """What agents did instead of their acts, in order."""
    retries: int
    escalations: int
    wrong: tuple[str, ...]
    """What must never be: an orphan, a bad commit, an act twice, a hang, a defect."""
    why: tuple[str, ...] = ()
    """What was given up, or waits for a person."""


def play(seed: int, trial: Trial, folder: Path) -> Ending:
    """Play one run in a repository of its own, below `folder`."""
    root = folder / f"run{seed}"
    environment = environment_of(folder) | {
        "YOLO_FS_COLD": "1",
        "YOLO_FAULT_SEED": f"{seed}:{trial.share}",
    }
    make(root, environment, trial.departments)
    started = time.monotonic()
    command = [
        sys.executable, "-P", "-m", "yolo_fs", trial.verb, "a login", "--json", "--with", AGENT,
    ]  # fmt: skip
    if trial.verb == "fix-it" and "backend" not in trial.departments:
        command += ["--dept", trial.departments[0]]
    if trial.worktrees:
        command += ["--worktrees"]
        environment["YOLO_FS_DEMO_PLANS"] = "3"
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=LONGEST_S,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Ending(seed, "hang", LONGEST_S, (), 0, 0, ("it hangs",))
    seconds = time.monotonic() - started
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    events, data = lines[:-1], (lines[-1]["data"] or {}) if lines else {}
    named = Counter(event["event"] for event in events)
    wrong = tuple(_wrong(root, environment, done, data))
    faults = tuple(_faults(root / ".git/yolo-fs/company"))
    outcome = data.get("outcome", f"exit {done.returncode}")
    again = [event for event in events if event["event"] == "agent.started"]
    waiting = [one["question"] for one in data.get("waiting", ()) if one["kind"] != "agent"]
    why = (*data.get("given_up", ()), *waiting)
    if outcome not in ("shipped", "interrupted") and not why:
        wrong = (*wrong, f"it ends as {outcome}, and says no reason")
    retries = sum(event["attempt"] > 1 for event in again)
    return Ending(seed, outcome, seconds, faults, retries, named["act.escalated"], wrong, why)


def environment_of(folder: Path) -> dict[str, str]:
    """Return an environment in which nothing of this user counts; `folder`: a home."""
    bin_ = Path(sys.executable).parent
    return {
        "PATH": f"{bin_}:{os.environ['PATH']}", "HOME": str(folder), "LANG": "C.UTF-8",
        "XDG_CONFIG_HOME": str(folder / ".config"), "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip


def make(root: Path, environment: Mapping[str, str], departments: Collection[str]) -> None:
    """Make a repository in which these departments work."""

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=root, env=environment, check=True, capture_output=True)

    root.mkdir(parents=True)
    git("init", "-q")
    for key in ("user.name", "user.email"):
        git("config", key, "a@b.example")
    (root / ".yolo-planning/phases").mkdir(parents=True)
    config = {
        "departments": {str(row.name): row.name in departments for row in WORKING},
        "department_workflow": "parallel" if len(departments) > 1 else "backend_only",
        "company": SILENCE,
    }
    (root / ".yolo-planning/config.json").write_text(json.dumps(config))
    git("add", ".")
    git("commit", "-q", "-m", "chore(repo): begin")


def _faults(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*/errors.log")):
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith("fault: "):
                yield line.removeprefix("fault: ")


def _wrong(
    root: Path,
    environment: dict[str, str],
    done: subprocess.CompletedProcess[str],
    data: dict[str, Any],
) -> Iterator[str]:
    if done.returncode not in (0, 1, 75) or not data:
        yield f"exit {done.returncode}: {done.stderr[-300:]}"
    until = time.monotonic() + 5.0
    while (left := list(_processes(root))) and time.monotonic() < until:
        time.sleep(0.1)
    yield from (f"a process is left: {command}" for command in left)
    words = [sys.executable, "-P", "-m", "yolo_fs", "verify"]
    verified = subprocess.run(words, cwd=root, env=environment, capture_output=True, check=False)
    if verified.returncode:
        yield f"verify: {verified.stderr.decode()[-300:]}"
    log = ["git", "log", "--format=%s"]
    told = _answers(root)
    said = subprocess.run(
        log, cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    for subject, count in Counter(said.stdout.splitlines()).items():
        found = re.match(r"feat\((\d\d-\d\d)\): (T\d+)", subject)
        if found and count > 1 + told[f"ESC-{found[1]}-{found[2]}"]:
            yield f"{count} times: {subject}"


def _answers(root: Path) -> Counter[str]:
    """Return how often whoever does a task was told how to go on, which is work again."""
    logs = root.glob(".yolo-planning/phases/*/escalation.jsonl")
    lines = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    return Counter(line["id"] for line in lines if line.get("dec") and line["tgt"].endswith("dev"))


def _processes(root: Path) -> Iterator[str]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            place = os.readlink(f"/proc/{name}/cwd")
            if place == str(root) or f"/yolo-fs/trees/{root.name}-" in place:
                yield Path(f"/proc/{name}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue


def main() -> int:
    """Play all runs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--share", type=float, default=0.15)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--verb", choices=("go", "fix-it"), default="go")
    parser.add_argument("--company", action="store_true", help="all three departments")
    parser.add_argument("--departments", default="backend", help="those at work, such as frontend")
    parser.add_argument(
        "--worktrees", action="store_true", help="three plans, each with a Dev in a work tree"
    )
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no run after that many")
    parser.add_argument("--kept", type=Path, help="file of the endings, also of earlier campaigns")
    asked = parser.parse_args()
    found = kept_in(asked.kept) if asked.kept and asked.kept.exists() else []
    every = tuple(str(row.name) for row in WORKING)
    departments = every if asked.company else tuple(asked.departments.split(","))
    trial = Trial(asked.verb, departments, asked.worktrees, asked.share)
    print(f"seeds {asked.seed} to {asked.seed + asked.runs - 1}, share {trial.share}")
    print(f"{trial.verb}, {', '.join(trial.departments)}")
    known = {one.seed for one in found}
    seeds = [seed for seed in range(asked.seed, asked.seed + asked.runs) if seed not in known]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.at_once) as pool:
        until = time.monotonic() + asked.minutes * 60

        def play_in_time(seed: int) -> Ending | None:
            if time.monotonic() >= until:
                return None
            return play(seed, trial, Path(folder))

        for one in filter(None, pool.map(play_in_time, seeds)):
            found.append(one)
            if asked.kept:
                keep(asked.kept, one)
            for what in one.why:
                print(f"  seed {one.seed}: {one.outcome}: {what[:500]}", flush=True)
    return report(found)


def keep(path: Path, one: Ending) -> None:
    """Add an ending to a file."""
    with path.open("a") as file:
        file.write(json.dumps(one._asdict()) + "\n")


def kept_in(path: Path) -> list[Ending]:
    """Return the endings in a file."""
    values = [json.loads(line) for line in path.read_text().splitlines()]
    return [Ending(**{**value, "faults": tuple(value["faults"])}) for value in values]


def report(found: list[Ending]) -> int:
    """Print how runs ended, by fault; return 1 if something must never be."""
    head = ("fault", "acts", "shipped", "person", "given up", "retries", "escalations")
    print(" | ".join(f"{name:20}" if not at else name for at, name in enumerate(head)))
    for fault in ("none", *faulty_agent.FAULTS):
        own = [one for one in found if (fault in one.faults if one.faults else fault == "none")]
        outcomes = Counter(one.outcome for one in own)
        acts = sum(one.faults.count(fault) for one in own)
        cells = (
            acts, outcomes["shipped"], outcomes["waits for a person"], outcomes["given up"],
            sum(one.retries for one in own), sum(one.escalations for one in own),
        )  # fmt: skip
        print(" | ".join([f"{fault:20}", *map(str, cells)]))
    slowest = max(found, key=lambda one: one.seconds)
    print(f"{len(found)} runs: {dict(Counter(one.outcome for one in found))}")
    print(f"slowest: seed {slowest.seed}, {slowest.seconds:.0f} s")
    wrong = [(one.seed, what) for one in found for what in one.wrong]
    print(f"must never be: {len(wrong)}")
    for seed, what in wrong:
        print(f"  seed {seed}: {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
