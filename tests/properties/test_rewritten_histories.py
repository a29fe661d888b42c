"""What teams do to history changes no state: a commit that got another name is the same work, commits
that became one are no reason to do it again, and what a clone does not have is no fault.

`YOLO_EXAMPLES=100` tries so many histories, each in every way; `YOLO_SEED` names where they begin.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.properties.rewritten import (
    GOES_ON,
    IN_ORDER,
    MERGED,
    SQUASHED,
    Real,
    committed,
    done_in,
    git,
    merge_and_revert,
    prefixed,
    standing_of,
    turn_of,
)
from tests.properties.tales import EXAMPLES, MISMATCHES, SEED, Tale

NUMBERS = range(EXAMPLES) if EXAMPLES else (1, 20, 21, Random(SEED).randrange(1000))
"""Work that came after its verdict and was signed off, a FAIL that was mended, disguised work that was
judged; and any."""
DEPTHS = 3
"""How many of them each history is cloned to, unless all are wanted."""


class Told(Tale):
    """A history as it was left, or once everybody has done as told, in git."""

    def __init__(self, number: int, into: Path):
        super().__init__(number)
        self.chance = Random(f"{SEED} {number}")
        if number // len(MISMATCHES) % 2:
            self.finish()
        after = [GOES_ON] if self.phase.is_complete and number % 2 else []
        self.real = committed(into / "work", self.ground, self.events + after, self.chance)
        self.known = self.real.phase()


@pytest.fixture(scope="module", params=NUMBERS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    return Told(request.param, tmp_path_factory.mktemp("told"))


def test_a_history_in_git_stands_where_its_events_say(told: Told) -> None:
    assert [one.place.name for one in told.known.facts.committed if not one.valid] == []
    if (
        told.spoil.__name__ != "summary_that_names_no_commit"
    ):  # in git, the task's commit stands for it
        assert standing_of(told.known) == standing_of(told.phase), told.label
        assert turn_of(told.known) == turn_of(told.phase), told.label


def test_commits_that_get_other_names_in_their_order_change_nothing(told: Told) -> None:
    for way in IN_ORDER if EXAMPLES else (prefixed, told.chance.choice(IN_ORDER)):
        phase = told.real.phase(way(told.real, told.chance))
        assert standing_of(phase) == standing_of(told.known), (told.label, way.__name__)
        assert turn_of(phase) == turn_of(told.known), (told.label, way.__name__)


def test_nothing_is_to_be_done_again_where_commits_became_one_and_what_is_unknown_is_said(
    told: Told,
) -> None:
    for way in SQUASHED:
        phase = told.real.phase(way(told.real, told.chance))
        assert done_in(told.known) - done_in(phase) == set(), (told.label, way.__name__)
        is_same = standing_of(phase) == standing_of(told.known)
        # Of two versions in one commit the first is gone, and nobody can know that it was there.
        is_gone = told.spoil.__name__ == "audit_that_passes_what_it_failed"
        assert is_same or phase.unknown_order or is_gone, (told.label, way.__name__)
    assert not told.known.unknown_order


def test_nothing_is_to_be_done_again_where_departments_are_merged(told: Told) -> None:
    for way in MERGED:
        phase = told.real.phase(way(told.real, told.chance))
        assert done_in(told.known) - done_in(phase) == set(), (told.label, way.__name__)
        assert not phase.unknown_order


def test_a_merge_that_is_reverted_proves_nothing_and_what_was_signed_is_so_again_with_it(
    told: Told,
) -> None:
    for _ in range(1 if EXAMPLES else 3):
        merge_and_revert(told.real, told.chance)
        before, merged, back, again = map(told.real.phase, ("before", "side", "back", "again"))
        assert standing_of(merged) == standing_of(told.known), told.label
        assert done_in(back) - done_in(before) == set(), told.label
        assert done_in(again) - done_in(merged) == set(), told.label
        lost = {name for name in done_in(merged) - done_in(again) if "implementation" in name}
        assert lost == set(), told.label
        assert again.is_complete or not merged.is_complete, told.label


def test_a_clone_that_lacks_the_past_calls_no_work_undone(told: Told, tmp_path: Path) -> None:
    whole = range(1, len(told.real.commits) + 2)
    for depth in whole if EXAMPLES else told.chance.sample(whole, DEPTHS):
        phase = told.real.phase("HEAD", cloned(told.real, tmp_path, f"--depth={depth}"))
        assert done_in(told.known) - done_in(phase) == set(), (told.label, depth)


def test_a_clone_without_contents_stands_where_its_origin_does(told: Told, tmp_path: Path) -> None:
    phase = told.real.phase("HEAD", cloned(told.real, tmp_path, "--filter=blob:none"))
    assert standing_of(phase) == standing_of(told.known), told.label
    assert turn_of(phase) == turn_of(told.known), told.label


def test_a_clone_without_trees_calls_no_work_undone(told: Told, tmp_path: Path) -> None:
    phase = told.real.phase("HEAD", cloned(told.real, tmp_path, "--filter=tree:0"))
    assert done_in(told.known) - done_in(phase) == set(), told.label


def cloned(real: Real, into: Path, how: str) -> Path:
    clone = into / how
    git(into, "clone", "-q", "--branch=main", how, real.root.as_uri(), str(clone))
    return clone
