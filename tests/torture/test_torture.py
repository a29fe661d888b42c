"""Every family at its least size; `scripts/torture --full` runs the full targets."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.torture.families import FAMILIES, Family, tried
from tests.torture.kills import (
    MERGE_STAGES,
    OF_A_MEETING,
    OF_A_START,
    STAGES_OF_A_COMMIT,
    TEAM_STAGES,
)
from tests.torture.test_recovery import APPENDS
from yolo_fs.system.failpoint import STAGES


@pytest.mark.sampled(4)
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
def test_nothing_is_lost_and_nothing_is_repeated(family: Family, tmp_path: Path) -> None:
    seed = int(os.environ.get("YOLO_SEED", random.SystemRandom().randrange(2**32)))
    print(f"YOLO_SEED={seed}")
    tally = tried(family, family.small, tmp_path, seed)
    print(*tally.notes, sep="\n")
    if tally.skipped:
        pytest.skip(tally.skipped)
    assert tally.is_clean, tally


def test_every_stage_is_killed_at_by_some_family() -> None:
    of_a_start = {stage for stage in STAGES if stage.startswith(OF_A_START)}
    of_a_meeting = {stage for stage in STAGES if stage.startswith(OF_A_MEETING)}
    covered = {*STAGES_OF_A_COMMIT, *MERGE_STAGES, *TEAM_STAGES, *APPENDS}
    assert covered | of_a_start | of_a_meeting == STAGES.keys()
