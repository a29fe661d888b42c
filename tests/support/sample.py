"""The share of the cases that an ordinary run tries: with the mark `sampled(N)` one of N, others in each run.

`YOLO_SEED` repeats a sample. `YOLO_ALL=1` tries all, `YOLO_SECURITY=1` those of tests/security and what they go through.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

import pytest

Tried = TypeVar("Tried")
ALL = bool(os.environ.get("YOLO_SECURITY") or os.environ.get("YOLO_ALL"))


def sample_of(all_: Iterable[Tried], one_of: int, rng: random.Random) -> list[Tried]:
    """Return one of so many in their order, at least one; all of them in the larger tier."""
    things = list(all_)
    chosen = rng.sample(range(len(things)), -(-len(things) // one_of))
    return things if ALL else [things[at] for at in sorted(chosen)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is in no sample. All workers of a run have the same one."""
    cases: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault((str(item.path), item.name.partition("[")[0]), []).append(item)
    if ALL or not cases:
        return
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or random.SystemRandom().randbytes(16).hex()
    seed = int(os.environ.get("YOLO_SEED", int(run, 16) % 2**32))
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        reporter.write_line(f"YOLO_SEED={seed}: the sample of this run")
    rng, left_out = random.Random(seed), set()
    for each in cases.values():
        mark = each[0].get_closest_marker("sampled")
        assert mark is not None
        left_out |= set(each) - set(sample_of(each, mark.args[0], rng))
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
