"""The judge of `scripts/torture machines` sees each promise that is broken, and nothing where all are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.team.test_leases import take
from tests.team.test_remote_sync import BRANCH, at_remote, settle
from tests.team.work_trees import GAPS, Clones, CloneTree, gap
from tests.torture.team_judge import faults


@pytest.fixture
def clones(new_clone: Callable[[str], CloneTree]) -> Clones:
    a, b = new_clone("a").join_remote(), new_clone("b").join_remote()
    take(a)
    a.write(GAPS, gap(1))
    a.write(GAPS, gap(1), gap(2))
    settle(a, b)
    return a, b


def judged(bare: Path, clones: Clones) -> list[str]:
    return list(faults("main", bare, [clone.root for clone in clones]))


def test_where_all_is_kept_nothing_is_found(clones: Clones, bare: Path) -> None:
    assert judged(bare, clones) == []


def test_a_version_that_the_team_lost_and_a_tree_that_differs_are_found(
    clones: Clones, bare: Path
) -> None:
    at_remote(bare, "update-ref", BRANCH, f"{BRANCH}~1")

    found = judged(bare, clones)
    assert any("is lost" in each for each in found)
    assert any("is not what the team has" in each for each in found)


def test_a_version_twice_and_one_of_who_does_not_hold_the_lease_are_found(
    clones: Clones, bare: Path
) -> None:
    _, b = clones
    b.remote_sync.exchange()
    tip = b.synchronizer.team_tip() or ""
    origin = b.git("log", "-1", "--format=%(trailers:key=Yolo-Origin,valueonly)", tip).strip()
    other = f"{b.synchronizer.membership.clone}/{origin.partition('/')[2]}"
    parent = tip
    for trailer, before in ((origin, f"{tip}~1"), (other, tip)):
        text = f"docs(01): gaps\n\nYolo-Artifact: gap\nYolo-Origin: {trailer}\n"
        parent = b.git("commit-tree", f"{before}^{{tree}}", "-p", parent, "-m", text).strip()
    b.git("push", "-q", "origin", f"{parent}:{BRANCH}")

    found = judged(bare, clones)
    assert any("is there 2 times" in each for each in found)
    assert any(f"of {b.synchronizer.membership.clone}, under epoch 1" in each for each in found)
