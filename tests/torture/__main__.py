"""`scripts/torture [N | --full] [FAMILY…]`: breaks yolo_fs on purpose, and prints what became of it.

Without a size each family runs as small as in the tests; N tries each family that many times, or as often as its full
target where that is less; --full runs the full targets. The seed is printed, and taken from YOLO_SEED.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from bench.table import Table, machine, render
from tests.torture.families import FAMILIES, Family, tried
from tests.torture.surroundings import Tally
from yolo_fs.cli.validate import CLEARED, watched


def main() -> int:
    given = _arguments()
    place = Path(tempfile.gettempdir() if given.place is None else given.place).resolve()
    place.mkdir(parents=True, exist_ok=True)
    if given.alone:
        return _alone(FAMILIES[given.family[0]], int(given.size), place, given.seed)
    print(f"{machine(str(place))}\ncommit {_commit()}\nYOLO_SEED={given.seed}\n", flush=True)
    began = time.monotonic()
    with ThreadPoolExecutor(given.at_once) as pool:
        orders = [(name, FAMILIES[name].count(given.size)) for name in given.family or FAMILIES]
        done = pool.map(lambda order: _in_a_process(order[0], order[1], place, given.seed), orders)
        tallies = list(watched(done, "families", lambda _: len(orders)))
    print(render(_table(tallies, time.monotonic() - began)))
    for tally in tallies:
        for text in (*tally.faults, *tally.notes):
            print(f"{tally.family}: {text}")
    return int(not all(tally.is_clean for tally in tallies))


def _commit() -> str:
    """Return the commit of the tree that is tried; `-dirty` when the tree is not quite that commit."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=9", "--exclude=*"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _in_a_process(name: str, count: int, place: Path, seed: int) -> Tally:
    """Run a family in a process of its own, so that nothing of one family reaches another."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture", name, "--alone", "--size", str(count), "--place", str(place),
         "--seed", str(seed)], stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    last = done.stdout.rstrip().rpartition("\n")[2]
    if done.returncode or not last.startswith("{"):
        return Tally(
            name, faults=[f"the run itself failed with {done.returncode}: {done.stdout[-500:]}"]
        )
    tally = Tally(**json.loads(last))
    over = CLEARED if sys.stderr.isatty() else ""
    told = f"{over}{tally.family}: {tally.count:,} in {tally.seconds:.0f} s"
    print(told, file=sys.stderr, flush=True)
    return tally


def _alone(family: Family, count: int, place: Path, seed: int) -> int:
    with tempfile.TemporaryDirectory(
        prefix="torture-", dir=place, ignore_cleanup_errors=True
    ) as scratch:
        tally = tried(family, count, Path(scratch), seed)
        if not tally.is_clean:
            kept = Path(f"{scratch}-kept")
            Path(scratch).rename(kept)
            tally.notes.append(f"what was tried is kept in {kept}")
    print(json.dumps(asdict(tally)))
    return 0


def _table(tallies: Sequence[Tally], seconds: float) -> Table:
    rows = [
        (
            tally.family, tally.skipped or f"{tally.count:,}", str(tally.lost), str(tally.duplicated),
            str(len(tally.faults)), f"{tally.seconds:.0f} s",
        )
        for tally in tallies
    ]  # fmt: skip
    total = f"{seconds:.0f} s by the clock"
    return Table(
        "Torture",
        ("family", "count", "lost", "duplicated", "other faults", "time"),
        tuple(rows),
        (total,),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/torture", description=__doc__)
    parser.add_argument(
        "words", nargs="*", metavar="N | FAMILY", help=f"a size, and {', '.join(FAMILIES)}"
    )
    parser.add_argument(
        "--full", action="store_true", help="the full targets; takes an hour and more"
    )
    parser.add_argument(
        "--place", metavar="DIR", help="where repositories are made (default: the temporary folder)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=os.environ.get("YOLO_SEED", random.SystemRandom().randrange(2**32)),
    )
    parser.add_argument(
        "--at-once", type=int, default=2, metavar="N", help="families side by side (default: 2)"
    )
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--size", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [word for word in given.words if word.isdecimal()]
    given.family = [word for word in given.words if not word.isdecimal()]
    given.seed = int(given.seed)
    if unknown := set(given.family) - set(FAMILIES):
        parser.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    given.size = given.size or ("full" if given.full else sizes[0] if sizes else "small")
    return given


if __name__ == "__main__":
    sys.exit(main())
