"""Every family at its least size; `scripts/torture --full` runs the full targets."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

import pytest

from tests.e2e.artifacts import artifact
from tests.torture.__main__ import main
from tests.torture.families import FAMILIES, Family, tried
from tests.torture.kills import (
    MERGE_STAGES,
    OF_A_MEETING,
    OF_A_START,
    STAGES_OF_A_COMMIT,
    TEAM_STAGES,
)
from tests.torture.surroundings import Ground, Writelog
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


def test_what_a_faulty_run_tried_is_kept_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(ground: Ground, count: int) -> None:
        (ground.place / "trace").write_text("x")
        ground.tally.count += count
        if count > 1:
            raise AssertionError("two are too many")

    monkeypatch.setitem(FAMILIES, "some", Family("some", run, 1, 2))
    for size in ("1", "2"):
        arguments = ["some", "--alone", "--size", size, "--place", str(tmp_path), "--seed", "7"]
        monkeypatch.setattr(sys, "argv", ["torture", *arguments])
        assert main() == 0
    clean, faulty = map(json.loads, capsys.readouterr().out.splitlines())
    assert clean["notes"] == [] and faulty["faults"] == ["seed 7: two are too many"]
    (kept,) = tmp_path.iterdir()
    assert faulty["notes"] == [f"what was tried is kept in {kept}"]
    assert (kept / "trace").exists()


def test_a_repository_in_which_something_is_wrong_is_named_and_kept(tmp_path: Path) -> None:
    with Ground("some", tmp_path, seed=1) as ground:
        lost, sound = artifact("plan", 0), ground.repo()
        ground.forget(sound)
        repo = ground.repo()
        log = Writelog(repo)
        log.note(lost)
        ground.judge(repo, log, "killed")
        ground.forget(repo)
        later = ground.repo()
        ground.forget(later)
    (note,) = ground.tally.notes
    assert note.startswith(f"{repo.root.name}: killed: lost: {lost.path}")
    assert [each.root.exists() for each in (sound, repo, later)] == [False, True, False]


def test_every_stage_is_killed_at_by_some_family() -> None:
    of_a_start = {stage for stage in STAGES if stage.startswith(OF_A_START)}
    of_a_meeting = {stage for stage in STAGES if stage.startswith(OF_A_MEETING)}
    covered = {*STAGES_OF_A_COMMIT, *MERGE_STAGES, *TEAM_STAGES, *APPENDS}
    assert covered | of_a_start | of_a_meeting == STAGES.keys()
