"""Every benchmark runs at its least size, and proves what it did while it measured. No time is asserted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench import peers, repositories, rounds, table, writers
from bench.__main__ import APART, NAMES, run
from bench.faults import FAULTS
from bench.goals import overview
from bench.libraries import refuse_stale_names
from bench.options import Options
from bench.rounds import Sample, Way
from bench.swarm import Costs, simulate
from bench.table import Goal, Table

ROWS = {
    "latency": ("Write to commit, large repository, each write alone", "yolo-fs: event line"),
    "beside": ("Write to commit beside a committing user", "12 writes a second"),
    "burst": ("Burst, large repository", "daemon, first write to last event"),
    "gates": ("Gate wait", "4 waiters, daemon"),
    "hooks": ("Hooks", "python -c pass"),
    "githooks": ("Git hooks: nothing of ours is touched", "commit-msg"),
    "warm": ("Warm and cold", "status, warm"),
    "growth": ("Growth", "status, 3 open phases"),
    "idle": ("Idle daemon", "40 folders"),
    "memory": ("Memory of the daemon", "200"),
    "missed": ("Missed", "yolo-fs"),
    "adopt": ("Adoption", "adopt --write"),
    "worktrees": ("Write to commit, 2 work trees", "in all other trees"),
    "board": ("Write to commit beside the board", "no page"),
    "clones": ("Lag: commit in one clone to commit in the other", "lane git"),
}
"""Name of a benchmark → one table that it prints, and a row of it."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("bench"))


@pytest.fixture
def options(place: str, tmp_path: Path) -> Options:
    return Options(place, str(tmp_path), small=True)


LONG = {
    "beside",
    "growth",
    "warm",
    "githooks",
    "latency",
    "hooks",
    "gates",
    "idle",
    "adopt",
    "clones",
    "board",
}
"""Benchmarks whose least size takes seconds all the same; `YOLO_BENCH=1` runs them too."""


@pytest.mark.sampled(3)
def test_whatever_is_counted_of_a_job_is_there() -> None:
    refuse_stale_names()


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in NAMES
        if name not in APART and (name not in LONG or "YOLO_BENCH" in os.environ)
    ],
)
def test_a_benchmark_runs_at_its_least_size(name: str, options: Options) -> None:
    tables = {one.title: one for one in run(name, options)}
    title, row = ROWS[name]
    assert row in [cells[0] for cells in tables[title].rows]
    assert all(len(cells) == len(one.columns) for one in tables.values() for cells in one.rows)
    goals = [goal for one in tables.values() for goal in one.goals]
    assert goals, "a benchmark has a goal"


def test_simulated_clones_publish_at_the_cost_of_a_call_each_until_they_are_too_many() -> None:
    costs = Costs(look_s=0.02, fetch_s=0.03, push_s=0.05)
    alone, few, many, sharded = (
        simulate(count, shards, costs, seconds=300, seed=1)
        for count, shards in ((1, 1), (10, 1), (1000, 1), (1000, 16))
    )

    assert alone[:3] == pytest.approx((0.1, 0.1, 0), abs=0.02)
    assert few[0] < 0.2
    assert many[0] > 3 * few[0]
    assert many[2] > 2 * sharded[2]
    assert sharded[3] == pytest.approx(1000 / 60, rel=0.2)  # all that is written goes out


def test_the_overview_shows_the_goals_of_all_benchmarks_and_which_peer_is_not_there(
    options: Options,
) -> None:
    goals = [Goal("write to commit, ms", 50.1, 50, beside="0.60 ms"), Goal("lost", 0, 0)]

    def measured(name: str, _options: Options) -> Iterator[Table]:
        yield Table(name, (), (), absent=("gitwatch: not given",))
        yield table.goal_table(name, goals if name == "first" else [])

    shown = overview(["first", "second"], measured, options)
    assert {cells[0]: cells[-1] for cells in shown.rows} == {
        "write to commit, ms": "MISSED",
        "lost": "met",
    }
    assert "1 of 2 met; 'middle half': of the single rounds" in shown.notes
    assert "not there: gitwatch: not given" in shown.notes


def test_a_peer_that_is_not_there_is_named_with_what_it_would_take(
    options: Options, tmp_path: Path
) -> None:
    assert any(peers.GITWATCH in one and "--gitwatch" in one for one in peers.absent(options))
    given = replace(options, gitwatch=str(tmp_path / "gitwatch.sh"))
    assert peers.GITWATCH in [one.name for one in peers.services(given)]
    assert not any(peers.GITWATCH in one for one in peers.absent(given))


def test_six_faults_harm_the_script_that_people_write_and_not_the_daemon(options: Options) -> None:
    faults, _ = run("faults", options)
    assert faults.columns[1:] == tuple(FAULTS)
    harms = {cells[0]: dict(zip(FAULTS, cells[1:], strict=True)) for cells in faults.rows}
    assert set(harms[peers.OURS].values()) == {"none"}
    script = harms[peers.ADD]
    assert script["others' staged files"] == "intruded 1"
    assert script["index.lock held"] == "lost 1"
    assert script["torn line"] == "torn committed 1"
    assert script["rebase"] != "none"


def test_a_repository_is_made_once_and_copied_ever_after(options: Options) -> None:
    size, _ = repositories.sizes(options)
    roots = [repositories.copy(size, options) for _ in range(2)]
    (kept,) = Path(options.place).glob("base-small-*")
    first_made = kept.stat().st_ctime_ns
    roots.append(repositories.copy(size, options))
    assert kept.stat().st_ctime_ns == first_made
    assert [repositories.git(root, "status", "--porcelain") for root in roots] == ["", "", ""]


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
    shown = table.render(
        Table("T", ("name", "ms"), (("a", "1.00"), ("long one", "10.0")), ("a note",))
    )
    assert shown.splitlines()[2:6] == [
        "| name     |   ms |",
        "|----------|------|",
        "| a        | 1.00 |",
        "| long one | 10.0 |",
    ]


@pytest.mark.sampled(3)
def test_whatever_collects_garbage_what_we_store_is_there(options: Options) -> None:
    rows = [cells for one in run("writers", options) for cells in one.rows]
    ours = [cells for cells in rows if cells[0] == writers.OURS]
    assert [(cells[1], cells[3]) for cells in ours] == [("3 of 3", "0")] * len(ours)
    assert len(ours) > 1
