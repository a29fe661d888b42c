"""`scripts/bench [NAME…] [--small | --full]`: runs benchmarks and prints their tables.

Without a name, or as `goals`: runs all of them and prints every goal in one table.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

from bench.goals import overview
from bench.options import Options
from bench.table import Table, load, machine, render
from yolo_fs.system.ask import COLD

NAMES = (
    "latency",
    "beside",
    "burst",
    "gates",
    "hooks",
    "githooks",
    "warm",
    "growth",
    "idle",
    "memory",
    "missed",
    "adopt",
    "worktrees",
    "clones",
    "board",
    "mcp",
    "swarm",
    "faults",
    "observer",
    "libraries",
    "runner",
    "writers",
)
OVERVIEW = "goals"
APART = ("mcp", "swarm", "faults", "observer", "libraries", "runner", "writers")
"""What takes long: run by its own name alone."""


def run(name: str, options: Options, keep: str | None = None) -> Iterator[Table]:
    """Run one benchmark and yield its tables as they are ready; `keep`: a folder for what is
    printed.
    """
    if name == OVERVIEW:
        names = [one for one in NAMES if one not in APART]
        tables = iter([overview(names, partial(run, keep=keep), options)])
    else:
        tables = importlib.import_module(f"bench.{name}").run(options)
    return _kept(name, tables, options, keep) if keep else tables


def _kept(name: str, tables: Iterator[Table], options: Options, folder: str) -> Iterator[Table]:
    text = [head(name, options)]
    for table in tables:
        text.append(render(table))
        yield table
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"{name}.txt"), "w") as file:
        file.write("\n".join((*text, f"load at the end {load()}\n")))


def main() -> int:
    """Run the command line."""
    given = _arguments()
    place = os.path.abspath(given.place)
    os.makedirs(place, exist_ok=True)
    _forget_the_user(place)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=place) as scratch:
        options = Options(
            place,
            scratch,
            small=given.small,
            full=given.full,
            gitwatch=given.gitwatch,
            seed=given.seed,
        )
        for name in given.name or (OVERVIEW,):
            _report(name, options, given.keep)
    return 0


def _report(name: str, options: Options, keep: str | None) -> None:
    began = time.monotonic()
    print(head(name, options), flush=True)
    for table in run(name, options, keep):
        print(render(table), flush=True)
    print(f"load at the end {load()}\n", flush=True)
    print(f"bench {name}: {time.monotonic() - began:.0f} s", file=sys.stderr)


def head(name: str, options: Options) -> str:
    """Return what a reader has to know of a run: the command, when, and on what machine."""
    size = "".join(f" --{size}" for size in ("small", "full") if getattr(options, size))
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"scripts/bench {name}{size} --seed {options.seed}\n{now}\n{machine(options.place)}\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/bench", description=__doc__)
    parser.add_argument("name", nargs="*", metavar="NAME",
                        help=f"{', '.join(NAMES)}; default: {OVERVIEW}, every goal in one table")  # fmt: skip
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--small", action="store_true", help="least sizes: only prove that everything runs"
    )
    size.add_argument(
        "--full", action="store_true", help="the sizes of the goals, where they take minutes"
    )
    parser.add_argument("--place", default=os.path.join(tempfile.gettempdir(), "yolo-fs-bench"), metavar="DIR",
                        help="where repositories are made and kept (default: %(default)s)")  # fmt: skip
    parser.add_argument(
        "--gitwatch", metavar="PATH", help="the script gitwatch, to be measured beside the daemon"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of everything random (default: %(default)s)"
    )
    parser.add_argument(
        "--keep", metavar="DIR", help="also write the tables of each benchmark to DIR/NAME.txt"
    )
    given = parser.parse_args()
    if unknown := set(given.name) - {*NAMES, OVERVIEW}:
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {OVERVIEW}, {', '.join(NAMES)}"
        )
    return given


def _forget_the_user(place: str) -> None:
    """Leave the user's git configuration out: git, and what is measured, obey it."""
    home = os.path.join(place, "home")
    os.makedirs(home, exist_ok=True)
    os.environ["HOME"] = home
    os.environ.pop("XDG_CONFIG_HOME", None)
    os.environ[COLD] = "1"  # what is measured beside a daemon is measured without its observer


if __name__ == "__main__":
    sys.exit(main())
