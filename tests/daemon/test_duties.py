"""Duties are run when they are due, and a look that takes long is not repeated at once."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from yolo_fs.daemon import duties
from yolo_fs.daemon.daemon import DUTIES
from yolo_fs.daemon.duties import LONGEST_REST_S, Duty, Schedule


class Clock:
    """A clock that goes on only when a duty says how long it took."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(duties, "time", clock)
    return clock


def times_run(clock: Clock, *, took_s: float, rest: float, after_s: float) -> int:
    """Return how often a duty is run in two turns, though it is wanted in each."""
    runs = []

    def run(_owner: None) -> float:
        runs.append(clock.now_s)
        clock.now_s += took_s
        return 1.0

    duty = Duty("look", run, is_wanted=lambda _owner: True, rest=rest)
    schedule = Schedule((duty,), None, lambda *_: None)
    schedule.run_due(lambda: True)
    clock.now_s += after_s
    schedule.run_due(lambda: True)
    return len(runs)


@pytest.mark.parametrize(
    ("took_s", "rest", "after_s", "expected"),
    [
        (0.1, 0, 0, 2),
        (0.1, 50, 4.9, 1),
        (0.1, 50, 5.1, 2),
        (1.0, 50, LONGEST_REST_S - 0.1, 1),
        (1.0, 50, LONGEST_REST_S + 0.1, 2),
    ],
)
def test_a_duty_rests_so_many_times_as_long_as_it_took_whoever_asks_for_it(
    clock: Clock, took_s: float, rest: float, after_s: float, expected: int
) -> None:
    assert times_run(clock, took_s=took_s, rest=rest, after_s=after_s) == expected


def test_a_duty_that_is_hastened_rests_no_longer(clock: Clock) -> None:
    runs: list[float] = []

    def run(_owner: None) -> float:
        runs.append(clock.now_s)
        clock.now_s += 1.0
        return 1.0

    schedule = Schedule((Duty("health", run, rest=50),), None, lambda *_: None)
    schedule.run_due(lambda: True)
    schedule.hasten("health")
    schedule.run_due(lambda: True)

    assert len(runs) == 2


def test_a_duty_that_is_hastened_while_it_runs_is_run_once_more(clock: Clock) -> None:
    runs = []

    def run(_owner: None) -> float:
        runs.append(clock.now_s)
        clock.now_s += 0.1
        if len(runs) == 1:
            schedule.hasten("look")
        return 1.0

    schedule = Schedule((Duty("look", run, rest=50),), None, lambda *_: None)
    for _ in range(3):
        schedule.run_due(lambda: True)
    assert len(runs) == 2


def test_the_daemon_does_not_wake_for_a_duty_that_rests(clock: Clock) -> None:
    def run(_owner: None) -> float:
        clock.now_s += 0.01
        return 0.0

    schedule = Schedule((Duty("look", run, rest=50),), None, lambda *_: None)
    schedule.run_due(lambda: True)

    assert schedule.sleep_s() == pytest.approx(0.5)


def resident_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@pytest.mark.skipif(
    not (hasattr(ctypes.CDLL(None), "malloc_trim") and Path("/proc/self/status").exists()),
    reason="this C library gives free memory back by itself, or never",
)
def test_free_memory_between_what_is_still_used_is_given_back() -> None:
    pieces = [bytes(3_000) for _ in range(20_000)]
    kept = pieces[::100]
    del pieces
    before = resident_mib()
    pause_s = next(duty for duty in DUTIES if duty.name == "memory").run(None)  # type: ignore[arg-type]
    assert resident_mib() < before - 30 and len(kept) == 200
    assert pause_s
