"""Fixtures of the security tests: the repositories and daemons of the end-to-end tests.

The larger tiers run with `YOLO_SECURITY=1`. Without it, a test with the mark `sampled(N)` runs with one of N
of its cases, others in each run; `YOLO_SEED` repeats one.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.e2e.conftest import new_repo, repo, rng, start
from tests.security.sample import ALL, sample_of

__all__ = ["new_repo", "repo", "rng", "start"]


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
        reporter.write_line(f"YOLO_SEED={seed}: the sample of tests/security")
    rng, left_out = random.Random(seed), set()
    for each in cases.values():
        mark = each[0].get_closest_marker("sampled")
        assert mark is not None
        left_out |= set(each) - set(sample_of(each, mark.args[0], rng))
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
