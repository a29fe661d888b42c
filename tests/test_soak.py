"""The soak runs at its least size, and its judge sees what is wrong. `tools/soak` is the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import meter, repositories
from bench.ledger import START, Ledger, Verdict, judge
from bench.meter import Look
from bench.options import Options
from bench.soak import Plan, goals, soak, table
from bench.table import render


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Options(str(tmp_path / "place"), str(tmp_path), small=True)


def test_two_seconds_of_a_day_lose_nothing_and_repeat_nothing(options: Options) -> None:
    outcome = soak(options, Plan(load_s=2, kill_every_s=0.8, quiet_s=0.2, agents=12, killed=4))
    shown = render(table(outcome)) + render(goals(outcome))
    print(shown)
    assert outcome.is_sound
    assert outcome.sides[1].keeper.kills
    assert all(verdict.commits == len(side.ledger.written) > 0 for side, verdict in zip(outcome.sides, outcome.verdicts, strict=True))  # fmt: skip
    assert all(worker.done for worker in outcome.workers[-2:])
    assert "idle processor %" in shown


def test_the_judge_counts_what_is_lost_what_came_twice_and_what_nobody_wrote(
    options: Options,
) -> None:
    root, ledger = repositories.copy(repositories.sizes(options)[0], options), Ledger()
    repositories.git(root, "tag", START)
    for text in ("one", "two", "one", "not noted"):
        path, data = repositories.artifact(100, text)
        repositories.put(root, path, data)
        if text != "not noted":
            ledger.wrote(path, data)
        repositories.git(root, "add", "--", path)
        repositories.git(root, "commit", "-q", "-m", text)
    ledger.wrote(*repositories.artifact(101, "never committed"))
    (Path(root) / path).unlink()
    assert judge(root, ledger) == Verdict(commits=4, lost=1, twice=1, foreign=1, gone=1)


def test_a_slope_is_what_grows_in_an_hour() -> None:
    looks = [Look(at, 50 + at / 60, 20, 5, 2, 90) for at in range(0, 600, 10)]
    assert meter.slope_per_hour(looks, lambda look: look.memory_mib) == pytest.approx(60)
    assert meter.slope_per_hour(looks, lambda look: look.descriptors) == 0
    assert len(meter.Meter(looks).settled(0.5)) == 30
