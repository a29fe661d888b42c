"""`scripts/bench [NAME…] [--small | --full]`: runs benchmarks and prints their tables."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator

from bench.options import Options
from bench.table import Table, machine, render

NAMES = (
    "commit",
    "latency",
    "burst",
    "validate",
    "status",
    "startup",
    "watch",
    "gates",
    "departments",
    "resume",
    "hooks",
    "githooks",
    "failpoint",
)


def run(name: str, options: Options) -> Iterator[Table]:
    """Run one benchmark and yield its tables as they are ready."""
    tables: Iterator[Table] = importlib.import_module(f"bench.{name}").run(options)
    return tables


def main() -> int:
    """Run the command line."""
    given = _arguments()
    place = os.path.abspath(given.place)
    os.makedirs(place, exist_ok=True)
    _forget_the_user(place)
    print(f"{machine(place)}\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=place) as scratch:
        options = Options(place, scratch, small=given.small, full=given.full, gitwatch=given.gitwatch)
        for name in given.name or NAMES:
            _print(name, options)
    return 0


def _print(name: str, options: Options) -> None:
    began = time.monotonic()
    for table in run(name, options):
        print(render(table), flush=True)
    print(f"bench {name}: {time.monotonic() - began:.0f} s", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/bench", description=__doc__)
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; default: all")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--small", action="store_true", help="least sizes: only prove that everything runs")
    size.add_argument("--full", action="store_true", help="the sizes of the plan's goals, where they take minutes")
    parser.add_argument("--place", default=os.path.join(tempfile.gettempdir(), "yolo-fs-bench"), metavar="DIR",
                        help="where repositories are made and kept (default: %(default)s)")  # fmt: skip
    parser.add_argument("--gitwatch", metavar="PATH", help="the script gitwatch, to be measured beside the daemon")
    given = parser.parse_args()
    if unknown := set(given.name) - set(NAMES):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    return given


def _forget_the_user(place: str) -> None:
    """Leave the user's git configuration out: git, and what is measured, obey it. Source: performance, trap 12."""
    home = os.path.join(place, "home")
    os.makedirs(home, exist_ok=True)
    os.environ["HOME"] = home
    os.environ.pop("XDG_CONFIG_HOME", None)


if __name__ == "__main__":
    sys.exit(main())
