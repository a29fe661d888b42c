"""Every benchmark runs at its least size, and proves what it did while it measured. No time is asserted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench import peers, repositories, rounds, table
from bench.__main__ import APART, NAMES, run
from bench.aims import Aim
from bench.faults import FAULTS
from bench.goals import overview
from bench.options import Options
from bench.rounds import Sample, Way
from bench.swarm import Costs, simulate
from bench.table import Goal, Table

ROWS = {
    "commit": ("Commit, large repository", "git commit --only"),
    "latency": ("Write to commit, large repository, each write alone", "yolo-fs: event line"),
    "beside": ("Write to commit beside a committing user", "12 writes a second"),
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
    "warm": ("Warm and cold", "status, warm"),
    "growth": ("Growth", "status, 3 open phases"),
    "failpoint": ("Failpoints, none set", "pass of a stage"),
    "idle": ("Idle daemon", "40 folders"),
    "memory": ("Memory of the daemon", "200"),
    "missed": ("Missed", "yolo-fs"),
    "adopt": ("Adoption", "adopt --write"),
    "kept": ("Keeping aside", "20 artifacts, as shipped"),
    "worktrees": ("Write to commit, 2 work trees", "in all other trees"),
    "board": ("Write to commit beside the board", "no page"),
    "clones": ("Lag: commit in one clone to commit in the other", "lane git"),
}
"""Name of a benchmark → one table that it prints, and a row of it."""
AIMS = {
    "commit": {Aim.COMMIT, Aim.DURABLE, Aim.SIZE},
    "latency": {Aim.LATENCY},
    "beside": {Aim.BESIDE},
    "burst": {Aim.BURST, Aim.STREAM, Aim.LOOSE, Aim.FOLLOW},
    "validate": {Aim.TYPED, Aim.STRICT, Aim.PIPELINE},
    "status": {Aim.STATUS},
    "startup": {Aim.START},
    "watch": {Aim.WATCH},
    "departments": {Aim.STATUS},
    "resume": {Aim.RESUME},
    "hooks": {Aim.START},
    "githooks": {Aim.MESSAGE, Aim.START},
    "warm": {Aim.WARM, Aim.WARM_HOOK, Aim.COLD, Aim.CROWD},
    "growth": {Aim.GROWTH},
    "idle": {Aim.IDLE, Aim.MEMORY},
    "memory": {Aim.FLAT},
    "missed": {Aim.MISSED},
    "worktrees": {Aim.TEAM},
    "clones": {Aim.LANE, Aim.SLOW_REMOTE},
}
"""Name of a benchmark → the goals of the plan that it answers."""


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
    "status",
    "latency",
    "startup",
    "departments",
    "hooks",
    "resume",
    "gates",
    "idle",
    "adopt",
    "kept",
    "worktrees",
    "clones",
    "board",
}
"""Benchmarks whose least size takes seconds all the same; `YOLO_BENCH=1` runs them too."""


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
    assert {goal.aim for goal in goals if goal.aim} == AIMS.get(name, set())
    assert goals, "a benchmark has a goal, or a bound of its own"


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


def test_every_goal_of_the_plan_is_answered_by_a_benchmark() -> None:
    assert set().union(*AIMS.values()) == set(Aim)


def test_the_overview_shows_every_goal_of_the_plan_and_which_was_not_measured(
    options: Options,
) -> None:
    goals = [Goal("engine / floor", 5.0, 4, aim=Aim.COMMIT, beside="0.60 ms"), Goal("own", 1, 2)]

    def measured(name: str, _options: Options) -> Iterator[Table]:
        yield Table(name, (), (), absent=("gitwatch: not given",))
        yield table.goal_table(name, goals if name == "one" else [])

    shown = overview(["one", "two"], measured, options)
    verdicts = {cells[0]: cells[-1] for cells in shown.rows}
    assert [one for one in verdicts if not one.startswith("  ")] == [
        *(aim.value for aim in Aim),
        "bounds of our own",
    ]
    assert verdicts["  engine / floor"] == "MISSED" and verdicts["  own"] == "met"
    assert verdicts[Aim.COMMIT.value] == "" and verdicts[Aim.IDLE.value] == "NOT MEASURED"
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


def test_an_engine_that_commits_nothing_is_found_out(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.engine.Engine.commit", lambda *_: ())
    with pytest.raises(
        RuntimeError, match="engine, durable, index refreshed: 0 commits of 0 files"
    ):
        list(run("burst", options))


def test_a_repository_is_made_once_and_copied_ever_after(options: Options) -> None:
    size, _ = repositories.sizes(options)
    roots = [repositories.copy(size, options) for _ in range(2)]
    (kept,) = Path(options.place).glob("base-small-*")
    first_made = kept.stat().st_ctime_ns
    roots.append(repositories.copy(size, options))
    assert kept.stat().st_ctime_ns == first_made
    assert [repositories.git(root, "status", "--porcelain") for root in roots] == ["", "", ""]


def test_without_jq_the_status_benchmark_says_so(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    shown = table.render(
        Table("T", ("name", "ms"), (("a", "1.00"), ("long one", "10.0")), ("a note",))
    )
    assert shown.splitlines()[2:6] == [
        "| name     |   ms |",
        "|----------|------|",
        "| a        | 1.00 |",
        "| long one | 10.0 |",
    ]
