"""The whole walk in one of the places that `scripts/systems` knows, another one in each run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.systems.places import PLACES
from tests.systems.walk import STEPS, Walk, walked
from tests.torture.surroundings import Ground, SkipError

CASES = [(kind, name) for kind, places in PLACES.items() for name in places]


@pytest.mark.sampled(100)
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda value: value.replace(" ", "-"))
def test_the_walk_goes_to_its_end_in_each_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with Ground(name, tmp_path, 0) as ground:
        try:
            with PLACES[kind][name](ground) as walk:
                outcome = walked(walk)
                assert outcome.steps == len(STEPS), outcome.defect
        except SkipError as why:
            pytest.skip(f"not here: {why}")


def test_a_walk_says_at_which_step_something_is_not_as_promised(tmp_path: Path) -> None:
    with (
        Ground("broken", tmp_path, 0) as ground,
        PLACES["repository"]["as shipped"](ground) as walk,
    ):
        walk.keeper.git("config", "core.hooksPath", "/nonexistent")
        (walk.keeper.root / ".yolo-planning").symlink_to(tmp_path)
        steps, defect = walked(Walk(walk.keeper))
    assert (steps, defect.partition(":")[0]) == (0, "init")
