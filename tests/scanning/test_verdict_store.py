"""How long a file has been left alone: by its own clock, whatever happens to other files.

See docs/dev/faults.md#f14 and #f19.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from yolo_fs.scanning.cached_verdicts import QuietTimer
from yolo_fs.system.files import Stamp

HOUR_NS = 3_600_000_000_000


@pytest.fixture
def stamp(tmp_path: Path) -> Stamp:
    """The stamp of a file that was written an hour ago."""
    (tmp_path / "a").write_text("x")
    return Stamp.of((tmp_path / "a").stat())._replace(mtime_ns=time.time_ns() - HOUR_NS)


def test_a_file_seen_for_the_first_time_is_as_old_as_it_says(stamp: Stamp) -> None:
    assert 3599 < QuietTimer().quiet_s("a", stamp) < 3700


def test_a_time_in_the_future_counts_as_now(stamp: Stamp) -> None:
    assert QuietTimer().quiet_s(
        "a", stamp._replace(mtime_ns=time.time_ns() + HOUR_NS)
    ) == pytest.approx(0, abs=5)


def test_a_change_begins_anew_although_the_file_says_that_it_is_old(stamp: Stamp) -> None:
    patience = QuietTimer()
    patience.quiet_s("a", stamp)
    assert patience.quiet_s("a", stamp._replace(size=stamp.size + 1)) < 60


def test_no_stream_of_other_files_makes_one_wait(stamp: Stamp) -> None:
    patience = QuietTimer()
    patience.quiet_s("a", stamp)
    for number in range(100):
        patience.quiet_s("b", stamp._replace(size=number, mtime_ns=time.time_ns()))
        assert patience.quiet_s("a", stamp) > 3599


def test_a_file_that_was_forgotten_is_seen_for_the_first_time(stamp: Stamp) -> None:
    patience = QuietTimer()
    patience.quiet_s("a", stamp._replace(mtime_ns=time.time_ns()))
    patience.forget("a")
    assert patience.quiet_s("a", stamp) > 3599
