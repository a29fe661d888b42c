"""Adopting a planning tree that is already there: 30 phases, two of three in milestones, with what
real teams get wrong; report, repair and commit, and a second time with nothing to do.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.options import Options
from bench.repositories import git, put
from bench.table import Goal, Table, goal_table
from yolo_fs.system.ask import COLD

PHASES = 30
DAY = "2026-02-18"
_KIB_IN_MB = 1024


class Ended(NamedTuple):
    """One command that has ended."""

    name: str
    took_s: float
    cpu_s: float
    peak_mb: float
    """Of the command alone, without the git processes that it asked."""
    data: dict[str, Any]


def run(options: Options) -> Iterator[Table]:
    """Measure a tree of 2,000 files."""
    root = os.path.join(options.scratch, "adopted")
    hopeless, count = make_tree(root, options.pick(2_000, 60), options.seed)
    report = _adopt(root, "adopt")
    write = _adopt(root, "adopt --write", "--write")
    again = _adopt(root, "adopt --write, again", "--write")
    commands = (report, write, again)
    wrong = _wrong(root, hopeless)
    rows = tuple(
        (
            each.name,
            f"{each.data['files']:,}",
            f"{len(each.data['committed']):,}",
            f"{each.took_s:.1f} s",
            f"{each.cpu_s:.1f} s",
            f"{each.peak_mb:.0f} MB",
        )
        for each in commands
    )
    columns = ("command", "files", "committed", "took", "processor", "memory")
    notes = (
        f"{len(hopeless)} of {count} files need their author; git's processes are not counted",
    )
    yield Table("Adoption", columns, rows, notes)
    changed = len(again.data["committed"]) + len(again.data["repaired"])
    yield goal_table(
        "Goals: adoption",
        [
            Goal("adopt: seconds, report", report.took_s, 60),
            Goal("adopt: seconds, --write", write.took_s, 60),
            Goal("adopt: MB, --write", write.peak_mb, 200),
            Goal("adopt: files committed wrongly, or not", len(wrong), 0),
            Goal("adopt: files changed or committed by the second run", changed, 0),
        ],
    )


def make_tree(root: str, count: int, seed: int) -> tuple[set[str], int]:
    """Make a repository with about `count` planning files; return those that only their author can
    mend, and how many there are.
    """
    os.makedirs(root)
    git(root, "init", "-q", "-b", "main", ".")
    git(root, "config", "user.name", "a")
    git(root, "config", "user.email", "a@b.invalid")
    git(root, "commit", "-q", "--allow-empty", "-m", "feat(01-01): T1 something")
    commit = git(root, "rev-parse", "--short=7", "HEAD")
    rng = random.Random(seed)
    hopeless: set[str] = set()
    phases = min(PHASES, max(1, count // 20))
    made = 0
    for number in range(1, phases + 1):
        third = (number - 1) * 3 // phases
        below = "" if third == 2 else f"milestones/m{third + 1}/"
        folder = f".yolo-planning/{below}phases/{number:02}-area"
        for name, lines, is_hopeless in _phase(number, count // phases, commit, rng):
            path = f"{folder}/{name}"
            put(root, path, "".join(json.dumps(line) + "\n" for line in lines).encode())
            os.utime(os.path.join(root, path), (1_700_000_000, 1_700_000_000))
            made += 1
            if is_hopeless:
                hopeless.add(path)
    return hopeless, made


def _phase(
    number: int, count: int, commit: str, rng: random.Random
) -> Iterator[tuple[str, list[dict[str, Any]], bool]]:
    """Yield name, lines, and whether its author is needed, of the files of one phase."""
    critique = {
        "id": "C1",
        "cat": "gap",
        "sev": "major",
        "q": "Who ends it?",
        "ctx": "Nobody is named",
    }
    yield "critique.jsonl", [{**critique, "sug": "Name the owner", "st": "open"}], False
    decision = {
        "ts": f"{DAY}T10:00:00Z",
        "agent": "lead",
        "dec": f"Area {number}",
        "reason": "Size",
    }
    yield "decisions.jsonl", [decision], False
    review = {"plan": f"{number:02}-01", "r": "approve", "cycle": 1, "dt": DAY}
    yield "code-review.jsonl", [review], False
    for plan in range(1, (count - 3) // 2 + 1):
        name = f"{number:02}-{plan:02}"
        fault = rng.choices(("", "mh", "p", "obj"), (70, 12, 10, 8))[0]
        yield f"{name}.plan.jsonl", _plan(number, plan, fault), fault == "obj"
        fault = rng.choices(("", "status", "tst"), (80, 12, 8))[0]
        yield f"{name}.summary.jsonl", [_summary(number, plan, commit, fault)], fault == "tst"


def _plan(phase: int, plan: int, fault: str) -> list[dict[str, Any]]:
    header: dict[str, Any] = {
        "p": f"{phase:02}", "n": f"{plan:02}", "t": "Tokens", "w": plan,
        "d": [f"{phase:02}-{plan - 1:02}"] if plan > 1 else [],
        "mh": {"tr": ["A token ends"], "ar": [], "kl": []}, "obj": "Sessions end. " * 20,
    }  # fmt: skip
    if fault == "mh":
        header["mh"] = ["A token ends"]
    elif fault == "p":
        header["phase"] = header.pop("p")
    elif fault == "obj":
        del header["obj"]
    task = {"tp": "auto", "a": "Write it", "f": ["src/a.ts"], "v": "npm test", "done": "Green"}
    return [header, *({"id": f"T{number}", **task} for number in range(1, 5))]


def _summary(phase: int, plan: int, commit: str, fault: str) -> dict[str, Any]:
    line: dict[str, Any] = {
        "p": f"{phase:02}", "n": f"{plan:02}", "t": "Tokens", "s": "complete", "dt": DAY, "tc": 4, "tt": 4,
        "ch": [commit], "fm": ["src/a.ts"], "dv": [], "built": ["Tokens"], "tst": "red_green",
    }  # fmt: skip
    if fault == "status":
        line["status"] = line.pop("s")
    elif fault == "tst":
        line["tst"] = "by hand"
    return line


def _adopt(root: str, name: str, *options: str) -> Ended:
    command = [sys.executable, "-m", "yolo_fs", "adopt", "--json", "-q", "-C", root, *options]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, COLD: "1"}, text=True
    )
    assert process.stdout
    with process.stdout as pipe:
        text = pipe.read()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0  # it has been waited for
    took_s = time.perf_counter() - began
    cpu_s = used.ru_utime + used.ru_stime
    return Ended(name, took_s, cpu_s, used.ru_maxrss / _KIB_IN_MB, json.loads(text)["data"])


def _wrong(root: str, hopeless: set[str]) -> list[str]:
    """Return what is on the branch though its author is needed, or is not though it should be; and
    a line where the history does not stand up to `verify`.
    """
    committed = set(git(root, "ls-tree", "-r", "--name-only", "HEAD").splitlines())
    every = {
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(os.path.join(root, ".yolo-planning"))
        for name in names
        if not name.startswith(".") and name != "state.json"  # the state is written, not committed
    }
    wrong = sorted(committed ^ (every - hopeless))
    command = [sys.executable, "-m", "yolo_fs", "verify", "-q", "-C", root]
    if subprocess.run(command, check=False).returncode:
        wrong.append("verify")
    return wrong
