"""`scripts/systems [WORD…]`: walks with yolo_fs through other gits, repositories, users, file systems and networks, and
prints what ran and what came of it.

Each row is one walk of the real program: init, a daemon, an artifact committed and rewritten, a wrong one refused, a
gate, a commit of the user's beside it, `resume`, `status` without trouble, stop, uninstall. With words, only the rows
whose name has one of them. What this machine cannot do is told in its own words and is no failure.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.table import Table, load, machine, render
from tests.systems.gits import build, built
from tests.systems.places import PLACES, git_of, suite_rooms
from tests.systems.walk import STEPS, walked
from tests.torture.surroundings import Ground, SkipError


class Row(NamedTuple):
    """What became of one system."""

    kind: str
    name: str
    result: str
    seconds: float
    is_wrong: bool


def main() -> int:
    given = _arguments()
    if given.build:
        build()
    with tempfile.TemporaryDirectory(prefix="systems-home-") as home:
        os.environ["HOME"] = home  # servers set git's own settings
        return _walk(given)


def _walk(given: argparse.Namespace) -> int:
    names = [
        (kind, name)
        for kind, places in (*PLACES.items(), ("git", dict.fromkeys(built())))
        for name in places
        if not given.words or any(word in f"{kind}: {name}" for word in given.words)
    ]
    with ThreadPoolExecutor(given.at_once) as pool:
        rows = list(pool.map(lambda each: _told(_tried(*each)), names))
    if given.rooms:
        rows += [_told(_of_the_suite(name)) for kind, name in names if kind == "git"]
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    words = "".join(f" {word}" for word in (*given.words, *(["--rooms"] if given.rooms else [])))
    printed = "\n".join((
        f"scripts/systems{words}\n{now}\n{machine(str(Path.cwd()))}\n",
        *(render(_table(kind, rows)) for kind in dict.fromkeys(row.kind for row in rows)),
        f"load at the end {load()}\n",
    ))  # fmt: skip
    print(printed)
    if given.keep:
        Path(given.keep, "systems.txt").write_text(printed)
    return int(any(row.is_wrong for row in rows))


def _table(kind: str, rows: list[Row]) -> Table:
    cells = tuple(
        (row.name, row.result, f"{row.seconds:.0f} s") for row in rows if row.kind == kind
    )
    return Table(kind, (kind, "result", "time"), cells)


def _tried(kind: str, name: str) -> Row:
    """Walk in one place, in a folder of its own."""
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="systems-", ignore_cleanup_errors=True) as place,
        Ground(name, Path(place), 0) as ground,
    ):
        try:
            make = git_of(name) if kind == "git" else PLACES[kind][name]
            with make(ground) as walk:
                outcome = walked(walk)
        except SkipError as why:
            return Row(kind, name, f"not here: {why}", time.monotonic() - began, False)
        except AssertionError as error:
            return Row(
                kind, name, f"WRONG at the beginning: {error}", time.monotonic() - began, True
            )
    result = f"WRONG at {outcome.defect}" if outcome.defect else f"{outcome.steps} of {len(STEPS)}"
    return Row(kind, name, result, time.monotonic() - began, bool(outcome.defect))


def _of_the_suite(version: str) -> Row:
    began = time.monotonic()
    code, last = suite_rooms(version)
    return Row("rooms of the suite", f"git {version}", last, time.monotonic() - began, code != 0)


def _told(row: Row) -> Row:
    print(f"{row.kind}: {row.name}: {row.result}, {row.seconds:.0f} s", file=sys.stderr, flush=True)
    return row._replace(result=" ".join(row.result.split())[:300].replace("|", "/"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/systems", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only rows whose name has it")
    parser.add_argument(
        "--build", action="store_true", help="build the gits of Debian's suites first, once"
    )
    parser.add_argument(
        "--rooms", action="store_true", help="run the suite's git rooms with each git, too"
    )
    parser.add_argument("--at-once", type=int, default=2, metavar="N", help="walks side by side")
    parser.add_argument("--keep", metavar="DIR", help="write systems.txt there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
