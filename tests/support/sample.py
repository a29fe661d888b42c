"""The share of the tests that an ordinary run takes, others in each run.

With the mark `sampled(N)` one of N cases of a test is run. Of the rooms in `SHARES` one of N tests is run where the whole suite
is; whoever names files or folders runs all that they have. `YOLO_SEED`, which each run prints, repeats a sample. `YOLO_ALL=1`
runs everything, `YOLO_SECURITY=1` all cases of tests/security and what they go through.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

SHARES = {
    "e2e": 16,
    "recipes": 12,
    "security": 12,
    "cli": 10,
    "daemon": 8,
    "torture": 8,
    "hooks": 6,
    "progress": 6,
    "web": 6,
    "health": 5,
    "compat": 4,
    "git": 4,
    "system": 4,
    "team": 4,
    "test_bench.py": 4,
    "history": 3,
    "reports": 3,
    "test_action.py": 3,
    "agents": 2,
    "artifacts": 2,
    "authority": 2,
    "contexts": 2,
    "kept": 2,
    "systems": 2,
    "test_demo.py": 2,
    "test_package.py": 2,
    "test_tutorial.py": 2,
}
"""What stands in `tests`: a folder or a file → one of how many of its tests; what starts daemons or many processes is dear."""

Tried = TypeVar("Tried")
ALL = bool(os.environ.get("YOLO_SECURITY") or os.environ.get("YOLO_ALL"))
_GIVEN = "YOLO_SEED"
"""What repeats a run; tests with a seed of their own read it as well."""
_SEED = "YOLO_SAMPLE_SEED"


def sample_of(all_: Iterable[Tried], one_of: int, rng: random.Random) -> list[Tried]:
    """Return one of so many in their order, at least one; all of them in the larger tier."""
    things = list(all_)
    chosen = rng.sample(range(len(things)), -(-len(things) // one_of))
    return things if ALL else [things[at] for at in sorted(chosen)]


def turn_of(all_: Sequence[Tried], one_of: int) -> list[Tried]:
    """Return the sample of a test that goes through all of them itself."""
    return sample_of(all_, one_of, random.Random(os.environ[_SEED]))


def draw_seed() -> None:
    """Draw the seed of the run. The workers inherit it, so that all have the same sample."""
    drawn = os.environ.get(_GIVEN) or str(random.SystemRandom().randrange(2**32))
    os.environ.setdefault(_SEED, drawn)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what repeats the run."""
    terminalreporter.write_line(f"{_GIVEN}={os.environ[_SEED]} repeats the sample of this run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is in no sample."""
    if ALL:
        return
    groups: dict[tuple[str, ...], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            groups.setdefault((str(item.path), item.name.partition("[")[0]), []).append(item)
    rng = random.Random(os.environ[_SEED])
    left_out: set[pytest.Item] = set()
    for cases in groups.values():
        mark = cases[0].get_closest_marker("sampled")
        assert mark is not None
        left_out |= set(cases) - set(sample_of(cases, mark.args[0], rng))
    if config.args == config.getini("testpaths"):
        left_out |= set(_without_turn([item for item in items if item not in left_out], rng))
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def _without_turn(items: Sequence[pytest.Item], rng: random.Random) -> Iterable[pytest.Item]:
    """Return the tests of the dear rooms that a whole run leaves to others; of each file it takes some."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(str(item.path), []).append(item)
    for path, tests in files.items():
        folders = os.path.relpath(path, os.path.dirname(os.path.dirname(__file__))).split(os.sep)
        taken = set(sample_of(tests, SHARES.get(folders[0], 1), rng))
        yield from (test for test in tests if test not in taken)
