"""`scripts/fuzz [LINES] [FRONT_MATTERS]`: lets the readers and the shapes be judged by a second opinion.

Half of the input is bred from the good examples, half is made up. Exits 1 when the two ever disagree. `scripts/fuzz --guided lines` searches by coverage instead.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.campaign import Tally, run, summary
from tests.fuzz.growth import measured
from tests.fuzz.trial import Difference


def main(given: Sequence[str] | None = None) -> int:
    """Run the command line."""
    asked = _arguments(given)
    print(
        f"seed {asked.seed}: {asked.lines} lines, {asked.front_matters} front matters, {asked.processes} processes"
    )
    began = time.monotonic()
    tally = run(asked.seed, asked.lines, asked.front_matters, asked.processes, _tell)
    _report(tally, time.monotonic() - began, Path(asked.keep))
    if asked.growth:
        _report_growth()
    return 1 if tally.wrong else 0


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/fuzz", description=__doc__)
    parser.add_argument(
        "lines", nargs="?", type=int, default=1_000_000, help="lines of JSONL (1,000,000)"
    )
    parser.add_argument(
        "front_matters", nargs="?", type=int, default=100_000, help="HANDOFF.md files (100,000)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=random.SystemRandom().randrange(2**32),
        help="repeats a campaign",
    )
    parser.add_argument(
        "--processes", type=int, default=min(2, os.cpu_count() or 1), help="at a time (2)"
    )
    parser.add_argument(
        "--keep", default="fuzz-findings", help="folder for the input of what differs"
    )
    parser.add_argument(
        "--growth", action="store_true", help="then measure how time and memory grow with the size"
    )
    return parser.parse_args(given)


def _tell(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def _report(tally: Tally, seconds: float, keep: Path) -> None:
    for name, count in sorted(tally.trials.items()):
        print(f"{name:24} {count:>10,}")
    print(f"{'seconds':24} {seconds:>10,.0f}")
    print(summary(tally))
    for number, one in enumerate(tally.kept):
        _show(one, keep / f"{number:03}-{one.sort.value.replace(' ', '-')}")


def _show(one: Difference, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(one.data)
    print(f"{one.sort} at {one.where}: {one.detail[:200]!a}\n  input: {path}")


def _report_growth() -> None:
    print(
        f"\n{'reader':13} {'input':22} {'time ~ n^':>9} {'memory ~ n^':>11} {'ms/MiB':>8} {'memory/size':>11}"
    )
    for one in measured():
        print(
            f"{one.reader:13} {one.unit:22} {one.time_slope:>9.2f} {one.memory_slope:>11.2f}"
            f" {one.ms_per_mib:>8.1f} {one.bytes_per_byte:>11.1f}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
