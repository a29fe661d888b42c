"""Every benchmark runs at its least size, and proves what it did while it measured. No time is asserted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench import repositories, rounds, table
from bench.__main__ import NAMES, run
from bench.options import Options
from bench.rounds import Sample, Way
from bench.table import Goal, Table

ROWS = {
    "commit": ("Commit, large repository", "git commit --only"),
    "latency": ("Write to commit, large repository, each write alone", "yolo-fs: event line"),
    "burst": ("Burst, large repository", "daemon, first write to last event"),
    "validate": ("Validation", "strict reader and shapes"),
    "status": ("Status file", "store.update, synced"),
    "startup": ("Start-up: commands", "yolo-fs --version"),
    "watch": ("Watch", "yolo-fs watcher"),
    "gates": ("Gate wait", "4 waiters, daemon"),
    "departments": ("Department status: 8 processes", "declare, synced"),
    "resume": ("Resume", "yolo-fs resume, warm"),
    "hooks": ("Hooks", "python -c pass"),
    "githooks": ("Git hooks: nothing of ours is touched", "commit-msg"),
    "failpoint": ("Failpoints, none set", "pass of a stage"),
}
"""Name of a benchmark → one table that it prints, and a row of it."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("bench"))


@pytest.fixture
def options(place: str, tmp_path: Path) -> Options:
    return Options(place, str(tmp_path), small=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs_at_its_least_size(name: str, options: Options) -> None:
    tables = {one.title: one for one in run(name, options)}
    title, row = ROWS[name]
    assert row in [cells[0] for cells in tables[title].rows]
    assert all(len(cells) == len(one.columns) for one in tables.values() for cells in one.rows)


def test_an_engine_that_commits_nothing_is_found_out(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.engine.Engine.commit", lambda *_: ())
    with pytest.raises(RuntimeError, match="engine, durable, index refreshed: 0 commits of 0 files"):
        list(run("burst", options))


def test_a_repository_is_made_once_and_copied_ever_after(options: Options) -> None:
    size, _ = repositories.sizes(options)
    roots = [repositories.copy(size, options) for _ in range(2)]
    (kept,) = Path(options.place).glob("base-small-*")
    first_made = kept.stat().st_ctime_ns
    roots.append(repositories.copy(size, options))
    assert kept.stat().st_ctime_ns == first_made
    assert [repositories.git(root, "status", "--porcelain") for root in roots] == ["", "", ""]


def test_without_jq_the_status_benchmark_says_so(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    (only,) = run("status", options)
    assert only.notes == ("without the script: jq or flock is not there",)


def test_each_way_comes_first_equally_often() -> None:
    order: list[str] = []
    ways = [Way(name, lambda _, name=name: order.append(name)) for name in "abc"]
    samples = rounds.interleave(ways, rounds=4)
    assert "".join(order) == "abcbcacababcbcacab"
    assert [len(sample.times_s) for sample in samples.values()] == [4, 4, 4]


def test_quantiles_are_times_that_were_taken() -> None:
    sample = Sample([0.4, 0.1, 0.3, 0.2])
    assert (sample.p50, sample.p99, sample.quantile(0)) == (0.3, 0.4, 0.1)


@pytest.mark.parametrize(("at_least", "met"), [(True, "MISSED"), (False, "met")])
def test_a_goal_tells_on_which_side_it_is(at_least: bool, met: str) -> None:
    (row,) = table.goal_table("", [Goal("speed", 3.0, 4.0, at_least=at_least)]).rows
    assert row[-1] == met


def test_tables_are_aligned_markdown() -> None:
    shown = table.render(Table("T", ("name", "ms"), (("a", "1.00"), ("long one", "10.0")), ("a note",)))
    assert shown.splitlines()[2:6] == [
        "| name     |   ms |",
        "|----------|------|",
        "| a        | 1.00 |",
        "| long one | 10.0 |",
    ]
