"""A thousand artifacts at once, again and again. See docs/dev/faults.md#f60.

`YOLO_BURST=50000` is the full line, fifty times a thousand; every run writes 300.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.e2e.artifacts import mixed
from tests.e2e.daemon import Daemon
from tests.e2e.history import History, loose_objects
from tests.e2e.repo import Repo

BURST = int(os.environ.get("YOLO_BURST", "300"))
AT_ONCE = 1_000
MOST_LOOSE = 50
"""More loose objects than before; each commit written loose would cost seven."""


@pytest.mark.timeout(max(120, BURST // 20))
def test_a_burst_is_one_commit_each_and_few_loose_objects(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    history, daemon = History(repo), start(repo)
    bursts = [mixed(min(BURST, AT_ONCE), version=n) for n in range(-(-BURST // AT_ONCE))]
    before = loose_objects(repo)
    for artifacts in bursts:
        repo.write(*artifacts)
        daemon.wait_committed(artifacts)
    assert daemon.stop() == 0
    assert loose_objects(repo) - before <= MOST_LOOSE
    history.check([one for artifacts in bursts for one in artifacts])


def test_what_was_written_before_the_start_is_one_commit_each(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    history, artifacts = History(repo), mixed(min(BURST, AT_ONCE))
    before = loose_objects(repo)
    repo.write(*artifacts)
    daemon = start(repo)
    daemon.wait_committed(artifacts)
    assert daemon.stop() == 0
    assert loose_objects(repo) - before <= MOST_LOOSE
    history.check(artifacts)
