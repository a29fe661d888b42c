"""A thousand artifacts at once. See docs/faults.md#f60.

`YOLO_BURST=1000` is the full line; every run writes 300.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from tests.e2e.artifacts import mixed
from tests.e2e.daemon import Daemon
from tests.e2e.history import History, loose_objects
from tests.e2e.repo import Repo

BURST = int(os.environ.get("YOLO_BURST", "300"))
MOST_LOOSE = 50
"""More loose objects than before; each commit written loose would cost seven."""


def test_a_burst_is_one_commit_each_and_few_loose_objects(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    history, daemon, artifacts = History(repo), start(repo), mixed(BURST)
    before = loose_objects(repo)
    repo.write(*artifacts)
    daemon.wait_committed(artifacts)
    assert daemon.stop() == 0
    assert loose_objects(repo) - before <= MOST_LOOSE
    history.check(artifacts)


def test_what_was_written_before_the_start_is_one_commit_each(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    history, artifacts = History(repo), mixed(BURST)
    before = loose_objects(repo)
    repo.write(*artifacts)
    daemon = start(repo)
    daemon.wait_committed(artifacts)
    assert daemon.stop() == 0
    assert loose_objects(repo) - before <= MOST_LOOSE
    history.check(artifacts)
