"""What it costs to start: the interpreter, the command, and what each import adds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from bench import repositories
from bench.aims import Aim
from bench.options import Options
from bench.rounds import Sample, Way, cost_goal, interleave
from bench.table import Table, goal_table, ms, times

PASS = "python -c pass"
VERSION = "yolo-fs --version"
STATUS = "yolo-fs status, 100 artifacts"
IMPORTS = (
    "json", "dataclasses", "click", "rich.table", "pydantic", "git", "filelock", "watchdog.observers", "jsonlines",
    "toon_format", "yaml", "yolo_fs.cli.main", "yolo_fs.git.repository", "yolo_fs.artifacts.table",
    "yolo_fs.workspace", "yolo_fs.cli.status", "yolo_fs.daemon.daemon",
)  # fmt: skip


def run(options: Options) -> Iterator[Table]:
    """Measure commands, then imports."""
    small, _ = repositories.sizes(options)
    root = repositories.copy(small, options)
    commands = {
        PASS: [sys.executable, "-c", "pass"],
        "python -I -S -c pass": [sys.executable, "-I", "-S", "-c", "pass"],
        "git rev-parse HEAD": ["git", "-C", root, "rev-parse", "HEAD"],
        "git status": ["git", "-C", root, "status"],
        VERSION: _yolo("--version"),
        "yolo-fs --help": _yolo("--help"),
        "yolo-fs status --help": _yolo("status", "--help"),
        "yolo-fs events (empty)": _yolo("events", "-C", root),
        STATUS: _yolo("status", "-C", root),
    }
    samples = interleave(
        [_way(name, command) for name, command in commands.items()], options.pick(15, 1)
    )
    yield _table("Start-up: commands", samples)
    ways = [_way(PASS, commands[PASS])]
    ways += [_way(f"import {name}", [sys.executable, "-c", f"import {name}"]) for name in IMPORTS]
    yield _table(
        "Start-up: imports, each in a fresh interpreter", interleave(ways, options.pick(11, 1))
    )
    goals = [
        cost_goal(f"{VERSION} / {PASS}", samples[VERSION], samples[PASS], 3, Aim.START),
        cost_goal(f"{STATUS} / {PASS}", samples[STATUS], samples[PASS], 30),
    ]
    yield goal_table("Goals: start-up (the second is no goal of the plan, only a bound)", goals)


def _yolo(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "yolo_fs", *arguments]


def _way(name: str, command: list[str]) -> Way:
    return Way(name, lambda _: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def _table(title: str, samples: dict[str, Sample]) -> Table:
    base = samples[PASS].p50
    rows = tuple(
        (name, ms(sample.p50), ms(sample.p50 - base), times(sample.p50 / base), sample.spread)
        for name, sample in samples.items()
    )
    notes = (f"{len(samples[PASS].times_s)} interleaved rounds",)
    return Table(title, ("", "p50 ms", "above pass", "x pass", "spread"), rows, notes)
