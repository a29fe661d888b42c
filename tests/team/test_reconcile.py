"""Whatever happens between clones, they come to agree, and each version is on the team's ref once."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from tests.team.clones import ModelTeam
from yolo_fs.team.reconcile import Divergence, PathVersion, TeamPlan, plan_of

HISTORIES = int(os.environ.get("YOLO_HISTORIES", "200"))
"""`YOLO_HISTORIES=10000 .venv/bin/pytest tests/team` tries as many as are promised."""


def versions(*blobs: str | None, path: str = "a", by: str = "x") -> list[PathVersion]:
    return [PathVersion(path, blob, f"{by}{at}") for at, blob in enumerate(blobs)]


@pytest.mark.timeout(120 + HISTORIES / 5)
def test_any_history_of_clones_ends_in_agreement() -> None:
    for seed in range(HISTORIES):
        team = ModelTeam(seed)
        for _ in range(team.random.randint(5, 60)):
            team.step()

        assert team.settle(), f"seed {seed}: no agreement"

        trees = [clone.tree() for clone in team.clones]
        assert all(one == other for one, other in pairwise(trees)), f"seed {seed}"
        assert trees[0] == {change.path: change.blob for change in team.ref}, f"seed {seed}"
        published = [(change.path, change.blob) for change in team.ref]
        assert len(set(published)) == len(published), f"seed {seed}: something is there twice"
        assert lost_in(team) == set(), f"seed {seed}: a committed version never reached the team"
        assert_own_order(team, seed)


def lost_in(team: ModelTeam) -> set[str]:
    """Return the own commits of the branches that are stood on, and that the team does not have."""
    published = {(change.path, change.blob) for change in team.ref}
    dropped = {commit.rstrip("'") for commit in team.dropped}
    committed = [change for clone in team.clones for change in clone.branch]
    return {
        change.commit
        for change in committed
        if (change.path, change.blob) not in published and change.commit.rstrip("'") not in dropped
    }


def assert_own_order(team: ModelTeam, seed: int) -> None:
    places = {(change.path, change.blob): at for at, change in enumerate(team.ref)}
    for clone in team.clones:
        for path in clone.tree():
            of_path = [
                places[change.path, change.blob]
                for change in clone.branch
                if change.path == path and (change.path, change.blob) in places
            ]
            assert of_path == sorted(of_path), f"seed {seed}: {clone.name} {path}"


@pytest.mark.parametrize(
    ("ours", "theirs", "receive", "publish"),
    [
        (["1"], [], 0, 1),
        ([], ["1", "2"], 2, 0),
        (["1"], ["1", "2", "3"], 2, 0),
        (["1", "2"], ["1"], 0, 1),
        (["1", "2", "1"], ["1", "2"], 0, 1),
        (["1", "2"], ["1", "2", "1"], 1, 0),
        (["1", None], ["1"], 0, 0),
        (["1", None], ["1", "2"], 1, 0),
        (["1"], ["1", None], 0, 0),
        (["1", "2"], ["1", None], 0, 1),
    ],
)
def test_only_what_one_side_has_not_had_goes_to_it(
    ours: list[str | None], theirs: list[str | None], receive: int, publish: int
) -> None:
    plan = plan_of(versions(*ours), versions(*theirs, by="t"))

    assert (len(plan.receive), len(plan.publish)) == (receive, publish)
    assert not plan.diverged


def test_a_path_that_both_changed_diverges_from_what_they_last_agreed_on() -> None:
    plan = plan_of(versions("1", "2"), versions("1", "3", by="t"))

    assert plan == TeamPlan(diverged=(Divergence("a", "1", "2", "3"),))


def test_every_version_is_published_in_the_order_of_the_branch() -> None:
    ours = [*versions("1", "2"), *versions("1", path="b"), *versions("1", "2", "3")[2:]]

    plan = plan_of(ours, [])

    assert [(each.path, each.blob) for each in plan.publish] == [
        ("a", "1"), ("a", "2"), ("b", "1"), ("a", "3"),
    ]  # fmt: skip
